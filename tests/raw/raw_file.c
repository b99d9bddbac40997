/* raw_file.c - a writer and a reader of the raw container as a program, for tests with real
 * processes (tests/system/raw_test.py, tests/interop). Payloads follow from their number:
 *
 *   raw_file write PATH [chunks=N] [bytes=N] [file_bytes=N] [buffer_bytes=N] [keep_ms=N]
 *            [flush_ms=N] [folder=DIR]... [cached=1] [plain=1]
 *       N chunks, 1 ms apart by their keys, of up to `bytes` bytes; chunks=0: until it is killed.
 *       Prints "durable N" whenever that grows, and at the end one line of JSON.
 *   raw_file read PATH
 *       Reads everything back, compares it, and prints one line of JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "raw/raw.h"

enum { FOLDERS = 8 };

struct words {
	struct sl_raw_options options;
	uint64_t chunks, bytes;
	const char *folder[FOLDERS];
};

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "raw_file: %s\n", what);
	exit(1);
}

static size_t make_payload(uint64_t n, uint64_t most, uint8_t *to)
{
	size_t bytes = n * 7919 % most;

	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(n * 3 + i * 31 + i / 256 * 7);
	return bytes;
}

static bool take_number(const char *word, const char *name, uint64_t *value)
{
	size_t length = strlen(name);

	if (strncmp(word, name, length) != 0 || word[length] != '=')
		return false;
	*value = strtoull(word + length + 1, NULL, 10);
	return true;
}

static void take_word(struct words *w, const char *word)
{
	uint64_t n;

	if (!strncmp(word, "folder=", 7) && w->options.folders < FOLDERS)
		w->folder[w->options.folders++] = word + 7;
	else if (take_number(word, "chunks", &n))
		w->chunks = n;
	else if (take_number(word, "bytes", &n) && n)
		w->bytes = n;
	else if (take_number(word, "file_bytes", &n))
		w->options.file_bytes = n;
	else if (take_number(word, "buffer_bytes", &n))
		w->options.buffer_bytes = (uint32_t)n;
	else if (take_number(word, "keep_ms", &n))
		w->options.keep_ns = n * 1000000;
	else if (take_number(word, "flush_ms", &n))
		w->options.flush_ns = n * 1000000;
	else if (take_number(word, "cached", &n))
		w->options.cached = n;
	else if (take_number(word, "plain", &n))
		w->options.plain = n;
	else
		fail(word);
}

static void say_durable(const struct sl_raw_writer *writer, uint64_t *said)
{
	uint64_t durable = sl_raw_durable(writer);

	if (durable == *said)
		return;
	*said = durable;
	printf("durable %llu\n", (unsigned long long)durable);
	fflush(stdout);
}

static int write_run(struct words *w)
{
	uint8_t *data = malloc(w->bytes);
	struct sl_raw_counts counts;
	struct sl_raw_writer *writer;
	char head[64];
	uint64_t said = 0;
	int r;

	snprintf(head, sizeof(head), "up to %llu", (unsigned long long)w->bytes);
	if (!data || sl_raw_create(&w->options, head, strlen(head), &writer))
		fail("cannot create the run");
	for (uint64_t n = 0; !w->chunks || n < w->chunks; n++) {
		struct sl_raw_key key = {.sequence = n,
					 .number = 2 * n,
					 .timestamp = n * n,
					 .arrived_ns = (n + 1) * 1000000,
					 .flags = (uint32_t)n % 3};
		struct iovec part = {data, make_payload(n, w->bytes, data)};

		if (sl_raw_append(writer, &key, &part, 1))
			fail("cannot append");
		say_durable(writer, &said);
	}
	r = sl_raw_flush(writer);
	sl_raw_counts(writer, &counts);
	r = r ? r : sl_raw_finish(writer, "the end", 7);
	printf("{\"chunks\": %llu, \"bytes\": %llu, \"durable\": %llu, \"files\": %llu, "
	       "\"removed_chunks\": %llu, \"direct\": %s, \"uring\": %s}\n",
	       (unsigned long long)counts.chunks, (unsigned long long)counts.bytes,
	       (unsigned long long)counts.durable, (unsigned long long)counts.files,
	       (unsigned long long)counts.removed_chunks, counts.direct ? "true" : "false",
	       counts.uring ? "true" : "false");
	free(data);
	return r ? 1 : 0;
}

static void compare(const struct sl_raw_reader *reader, uint64_t i, uint64_t most)
{
	const struct sl_raw_entry *entry = sl_raw_entry(reader, i);
	uint8_t *wanted = malloc(most), *got = malloc(most);

	if (!wanted || !got || make_payload(entry->key.sequence, most, wanted) != entry->bytes ||
	    sl_raw_read(reader, i, got, most) || memcmp(wanted, got, entry->bytes) != 0 ||
	    entry->chunk != entry->key.sequence)
		fail("a chunk is not what was written");
	free(wanted);
	free(got);
}

static int read_run(const char *path)
{
	static const char *const state[] = {"writing", "complete", "killed"};
	struct sl_raw_reader *reader;
	struct sl_raw_facts facts;
	uint64_t most;
	size_t bytes;

	if (sl_raw_open(path, 0, &reader))
		return 1;
	sl_raw_facts(reader, &facts);
	most = strtoull((const char *)sl_raw_head(reader, &bytes) + strlen("up to "), NULL, 10);
	for (uint64_t i = 0; i < facts.chunks; i++)
		compare(reader, i, most);
	printf("{\"state\": \"%s\", \"chunks\": %llu, \"first\": %llu, \"missing\": %llu, "
	       "\"bytes\": %llu, \"files\": %u}\n",
	       state[facts.state], (unsigned long long)facts.chunks,
	       (unsigned long long)facts.first, (unsigned long long)facts.missing,
	       (unsigned long long)facts.bytes, facts.files);
	sl_raw_close(reader);
	return 0;
}

int main(int argc, char **argv)
{
	struct words w = {.chunks = 100, .bytes = 10000};

	if (argc == 3 && !strcmp(argv[1], "read"))
		return read_run(argv[2]);
	if (argc < 3 || strcmp(argv[1], "write") != 0)
		fail("usage: raw_file write PATH [WORD=N]... | read PATH");
	for (int i = 3; i < argc; i++)
		take_word(&w, argv[i]);
	w.options.path = argv[2];
	w.options.folder = w.folder;
	return write_run(&w);
}
