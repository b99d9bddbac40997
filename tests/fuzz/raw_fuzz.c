/* raw_fuzz.c - any bytes as a run file and its data files: a reader says what is wrong, and reads
 * nothing beyond them. The input: the first byte chooses how the rest becomes files: as a run with
 * one data file that is right but for some bytes, or as the bytes of the files themselves. */
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/log.h"
#include "raw/format.h"
#include "raw/raw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHUNKS = 4, RUN_BYTES = 4 * RAW_BLOCK, DATA_BYTES = 4 * RAW_BLOCK };

static char folder[PATH_MAX];
static uint8_t good_run[RUN_BYTES], good_data[DATA_BYTES];

static void require(int good)
{
	if (!good)
		abort();
}

static void path_of(const char *name, char *path)
{
	require(snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX);
}

static void put_file(const char *name, const uint8_t *data, size_t size)
{
	char path[PATH_MAX];
	int fd;

	path_of(name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

static void get_file(const char *name, uint8_t *data, size_t size)
{
	char path[PATH_MAX];
	int fd;

	path_of(name, path);
	fd = open(path, O_RDONLY);
	memset(data, 0, size);
	require(fd >= 0 && read(fd, data, size) > 0);
	close(fd);
	unlink(path);
}

static void remove_folder(void)
{
	char path[PATH_MAX];

	path_of("run.raw", path);
	unlink(path);
	path_of("run_raw_000001.bin", path);
	unlink(path);
	rmdir(folder);
}

/* A folder of this process, and a run as the writer makes it: head 4 bytes, chunks of 0, 600, 1200
 * and 1800 bytes. */
static void prepare(void)
{
	const char *base = getenv("TMPDIR");
	char path[PATH_MAX];
	struct sl_raw_options o = {.path = path,
				   .buffer_bytes = RAW_BLOCK,
				   .buffers = 4,
				   .file_bytes = 64 << 10,
				   .plain = true};
	static uint8_t payload[600 * CHUNKS];
	struct sl_raw_writer *w;

	sl_log_level(SL_LOG_ERROR);
	snprintf(folder, sizeof(folder), "%s/raw-fuzz-XXXXXX", base && *base ? base : "/dev/shm");
	require(mkdtemp(folder) != NULL);
	atexit(remove_folder);
	path_of("run.raw", path);
	require(!sl_raw_create(&o, "head", 4, &w));
	for (uint64_t i = 0; i < CHUNKS; i++) {
		struct sl_raw_key key = {.sequence = i, .number = i};
		struct iovec part = {payload, 600 * i};

		require(!sl_raw_append(w, &key, &part, 1));
	}
	require(!sl_raw_finish(w, "tail", 4));
	get_file("run.raw", good_run, sizeof(good_run));
	get_file("run_raw_000001.bin", good_data, sizeof(good_data));
}

static void quiet(void *arg, enum sl_log_level level, const char *line)
{
}

static void read_all(struct sl_raw_reader *r)
{
	struct sl_raw_facts facts;
	uint64_t found, last = 0;
	size_t bytes;

	sl_raw_facts(r, &facts);
	require(sl_raw_head(r, &bytes) != NULL && bytes <= DATA_BYTES + RUN_BYTES);
	sl_raw_tail(r, &bytes);
	for (uint64_t i = 0; i < facts.chunks; i++) {
		const struct sl_raw_entry *entry = sl_raw_entry(r, i);
		uint8_t *payload;

		require(!i || entry->chunk > last);
		last = entry->chunk;
		require(sl_raw_file(r, entry->file) != NULL);
		require(sl_raw_find(r, SL_RAW_BY_SEQUENCE, entry->key.sequence, &found) == 0 &&
			sl_raw_entry(r, found)->key.sequence == entry->key.sequence);
		require(entry->bytes <= 1 << 20); /* it fits into the file */
		payload = malloc(entry->bytes ? entry->bytes : 1);
		require(payload != NULL);
		sl_raw_read(r, i, payload, entry->bytes);
		free(payload);
	}
}

/* Changes as the input says: offset (2 bytes) and value; then the checksum of what holds that byte
 * is put right, so that the numbers themselves are looked at. */
static void change(uint8_t *bytes, size_t size, const uint8_t script[4])
{
	size_t at = (script[0] | (size_t)script[1] << 8) % size, block;
	uint32_t crc;

	bytes[at] ^= script[2];
	if (script[3] & 1)
		return;
	block = script[3] & 2 ? RAW_HEADER : RAW_BLOCK;
	at = at / block * block;
	if (at + block > size)
		return;
	crc = sl_crc32c(0, bytes + at, block - 4);
	memcpy(bytes + at + block - 4, &crc, sizeof(crc));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sl_log_target target = {.line = quiet};
	uint8_t run[RUN_BYTES], file[DATA_BYTES];
	struct sl_raw_reader *r;
	char path[PATH_MAX];
	size_t cut;

	sl_log_set_target(&target);
	if (!*folder)
		prepare();
	if (size < 3)
		return 0;
	if (data[0] & 1) { /* as they are: the run file, then the data file */
		cut = (data[1] | (size_t)data[2] << 8) % (size - 2);
		put_file("run.raw", data + 3, cut < size - 3 ? cut : size - 3);
		put_file("run_raw_000001.bin", data + 3 + cut, size - 3 - cut);
	} else {
		memcpy(run, good_run, sizeof(run));
		memcpy(file, good_data, sizeof(file));
		for (size_t i = 3; i + 5 <= size; i += 5)
			change(data[i] & 1 ? run : file, data[i] & 1 ? sizeof(run) : sizeof(file),
			       data + i + 1);
		/* Without its end block a run was killed; without its footer a file is scanned. */
		put_file("run.raw", run, data[0] & 2 ? RAW_BLOCK + data[1] * 32u : sizeof(run));
		put_file("run_raw_000001.bin", file,
			 data[0] & 4 ? RAW_BLOCK + data[2] * 32u : sizeof(file));
	}
	path_of("run.raw", path);
	if (!sl_raw_open(path, data[0] & 8 ? SL_RAW_DAMAGED : 0, &r)) {
		read_all(r);
		sl_raw_refresh(r);
		read_all(r);
		sl_raw_close(r);
	}
	return 0;
}
