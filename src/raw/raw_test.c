/* raw_test.c - what is appended is read back: complete, live, rolling, in several folders; damage
 * is found and named. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/capture.h"
#include "lib/raw_rig.h"
#include "raw/format.h"
#include "raw/raw.h"

static void test_a_complete_run_is_read_back(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_counts counts;
	struct sl_raw_facts facts;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;
	const void *blob;
	size_t bytes;

	o.file_bytes = 256 << 10;
	assert_int_equal(sl_raw_create(&o, "head", 4, &w), 0);
	raw_rig_append(w, 0, 300);
	assert_int_equal(sl_raw_flush(w), 0);
	assert_int_equal(sl_raw_durable(w), 300);
	sl_raw_counts(w, &counts);
	assert_int_equal(counts.chunks, 300);
	assert_true(counts.files > 3 && counts.lost == 0 && counts.removed_files == 0);
	assert_int_equal(sl_raw_finish(w, "the tail", 8), 0);

	assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
	sl_raw_facts(r, &facts);
	assert_int_equal(facts.state, SL_RAW_COMPLETE);
	assert_int_equal(facts.chunks, 300);
	assert_true(facts.first == 0 && facts.missing == 0 && facts.missing_files == 0);
	assert_int_equal(facts.bytes, counts.bytes);
	assert_int_equal(facts.files, counts.files);
	blob = sl_raw_head(r, &bytes);
	assert_true(bytes == 4 && !memcmp(blob, "head", 4));
	blob = sl_raw_tail(r, &bytes);
	assert_true(bytes == 8 && !memcmp(blob, "the tail", 8));
	raw_rig_check(r, 0, 300);
	sl_raw_close(r);
}

static void test_sizes_around_every_boundary(void **state)
{
	static const size_t size[] = {0,    1,	  111,	112,  113,  127,   128,	  129,	 3967,
				      3968, 3969, 4096, 8191, 8192, 65535, 65536, 65537, 300000};
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;
	uint8_t *data = malloc(300000), *back = malloc(300000);

	for (size_t i = 0; i < 300000; i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	o.file_bytes = 128 << 10; /* the last one is larger than a file */
	o.buffer_bytes = 8192;
	o.buffers = 3;
	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		struct sl_raw_key key = {.sequence = i, .flags = (uint32_t)i};
		struct iovec part[] = {{data, size[i] / 3},
				       {data + size[i] / 3, size[i] - size[i] / 3}};

		assert_int_equal(sl_raw_append(w, &key, part, 2), 0);
	}
	assert_int_equal(sl_raw_finish(w, NULL, 0), 0);
	assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
	for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		const struct sl_raw_entry *entry = sl_raw_entry(r, i);

		assert_int_equal(entry->bytes, size[i]);
		assert_int_equal(entry->key.flags, i);
		memset(back, 0xaa, 300000);
		if (size[i])
			assert_int_equal(sl_raw_read(r, i, back, size[i] - 1), -ENOBUFS);
		assert_int_equal(sl_raw_read(r, i, back, size[i]), 0);
		assert_memory_equal(back, data, size[i]);
		assert_true(size[i] == 300000 || back[size[i]] == 0xaa);
	}
	sl_raw_close(r);
	free(data);
	free(back);
}

static void write_in_folders(struct raw_rig *rig, struct sl_raw_options *o, char folder[3][256])
{
	const char *list[3];
	struct sl_raw_writer *w;

	for (int i = 0; i < 3; i++) {
		snprintf(folder[i], 256, "%s/disk%d", rig->folder, i);
		list[i] = folder[i];
	}
	o->folder = list;
	o->folders = 3;
	o->file_bytes = 128 << 10;
	o->buffer_bytes = 16 << 10;
	assert_int_equal(sl_raw_create(o, "h", 1, &w), 0);
	raw_rig_append(w, 0, 400);
	assert_int_equal(sl_raw_finish(w, "t", 1), 0);
}

static void test_folders_take_turns(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_reader *r;
	char folder[3][256], command[1024];
	unsigned in[3] = {0};

	write_in_folders(rig, &o, folder);
	assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
	raw_rig_check(r, 0, 400);
	for (uint64_t i = 0; i < 400; i++)
		for (int k = 0; k < 3; k++)
			in[k] += !strncmp(sl_raw_file(r, sl_raw_entry(r, i)->file), folder[k],
					  strlen(folder[k]));
	assert_true(in[0] > 80 && in[1] > 80 && in[2] > 80);
	sl_raw_close(r);

	/* Data files that were moved beside the run file are found there. */
	snprintf(command, sizeof(command), "mv %s/* %s && rmdir %s", folder[1], rig->folder,
		 folder[1]);
	assert_int_equal(system(command), 0);
	assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
	raw_rig_check(r, 0, 400);
	sl_raw_close(r);
}

static void test_a_live_run_is_followed(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_facts facts;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;
	size_t bytes;

	o.file_bytes = 256 << 10;
	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
	sl_raw_facts(r, &facts);
	assert_true(facts.state == SL_RAW_WRITING && facts.chunks == 0);
	assert_null(sl_raw_tail(r, &bytes));
	for (unsigned n = 0; n < 200; n += 20) {
		raw_rig_append(w, n, 20);
		assert_int_equal(sl_raw_flush(w), 0);
		assert_int_equal(sl_raw_refresh(r), 0);
		sl_raw_facts(r, &facts);
		assert_true(facts.state == SL_RAW_WRITING && facts.missing == 0);
		raw_rig_check(r, 0, n + 20);
	}
	raw_rig_append(w, 200, 10);
	assert_int_equal(sl_raw_finish(w, "t", 1), 0);
	assert_int_equal(sl_raw_refresh(r), 0);
	sl_raw_facts(r, &facts);
	assert_int_equal(facts.state, SL_RAW_COMPLETE);
	assert_non_null(sl_raw_tail(r, &bytes));
	raw_rig_check(r, 0, 210);
	sl_raw_close(r);
}

static void test_an_abandoned_run_is_killed(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_facts facts;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;

	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 50);
	sl_raw_abandon(w);
	assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
	sl_raw_facts(r, &facts);
	assert_int_equal(facts.state, SL_RAW_KILLED);
	raw_rig_check(r, 0, 50);
	sl_raw_close(r);
}

static void test_a_discarded_run_leaves_nothing(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_writer *w;

	o.file_bytes = 128 << 10;
	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 150);
	sl_raw_discard(w);
	assert_int_equal(raw_rig_files(rig), 0);
}

static void test_nothing_is_overwritten(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_writer *w, *second;

	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 10);
	CAPTURED(-EEXIST, sl_raw_create(&o, NULL, 0, &second));
	assert_int_equal(sl_raw_finish(w, NULL, 0), 0);
	CAPTURED(-EEXIST, sl_raw_create(&o, NULL, 0, &second));
	assert_int_equal(unlink(o.path), 0); /* the data file alone is in the way, too */
	CAPTURED(-EEXIST, sl_raw_create(&o, NULL, 0, &second));
	assert_int_equal(raw_rig_files(rig), 1);
}

static void test_options_out_of_range_are_refused(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_writer *w;

	o.buffer_bytes = 5000;
	CAPTURED(-EINVAL, sl_raw_create(&o, NULL, 0, &w));
	o = rig->options;
	o.buffers = 5000;
	CAPTURED(-EINVAL, sl_raw_create(&o, NULL, 0, &w));
	o = rig->options;
	o.file_bytes = 1000;
	CAPTURED(-EINVAL, sl_raw_create(&o, NULL, 0, &w));
	o = rig->options;
	o.keep_bytes = 100000;
	CAPTURED(-EINVAL, sl_raw_create(&o, NULL, 0, &w));
	o = rig->options;
	o.folders = 65;
	CAPTURED(-EINVAL, sl_raw_create(&o, NULL, 0, &w));
	assert_int_equal(raw_rig_files(rig), 0);
}

/* Files that vanish, or change, while the run is written. */
static void test_stolen_files_are_found_at_the_end(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;
	char path[512];

	o.file_bytes = 128 << 10;
	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 100);
	assert_int_equal(sl_raw_flush(w), 0);
	snprintf(path, sizeof(path), "%s/run_raw_000001.bin", rig->folder);
	assert_int_equal(unlink(path), 0);
	CAPTURED(-ESTALE, sl_raw_finish(w, NULL, 0));
	CAPTURED(-EBADMSG, sl_raw_open(o.path, 0, &r));
	assert_non_null(strstr(captured, "run_raw_000001.bin"));
}

/* A link in the place of a data file is not followed: the reader says why it does not open. */
static void test_a_data_file_that_cannot_be_opened_is_an_error(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	char path[512], moved[512];
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;

	o.file_bytes = 128 << 10;
	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 100);
	assert_int_equal(sl_raw_finish(w, NULL, 0), 0);
	snprintf(path, sizeof(path), "%s/run_raw_000002.bin", rig->folder);
	snprintf(moved, sizeof(moved), "%s/elsewhere", rig->folder);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(symlink("elsewhere", path), 0);
	CAPTURED(-ELOOP, sl_raw_open(o.path, 0, &r));
	assert_non_null(strstr(captured, "run_raw_000002.bin: cannot open: "));
	assert_int_equal(rename(moved, path), 0);
	assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
	raw_rig_check(r, 0, 100);
	sl_raw_close(r);
}

static void find_all(const struct sl_raw_reader *r)
{
	uint64_t i;

	for (uint64_t n = 0; n < 100; n++) {
		assert_int_equal(sl_raw_find(r, SL_RAW_BY_SEQUENCE, n, &i), 0);
		assert_int_equal(i, n);
		assert_int_equal(sl_raw_find(r, SL_RAW_BY_NUMBER, 1000 + 2 * n - 1, &i), 0);
		assert_int_equal(i, n);
		assert_int_equal(sl_raw_find(r, SL_RAW_BY_ARRIVAL, RIG_ARRIVED(n), &i), 0);
		assert_int_equal(i, n);
	}
	assert_int_equal(sl_raw_find(r, SL_RAW_BY_SEQUENCE, 100, &i), -ENOENT);
	assert_int_equal(sl_raw_find(r, SL_RAW_BY_CHUNK, 17, &i), 0);
	assert_int_equal(i, 17);
}

static void test_chunks_are_found_by_key(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;
	struct sl_raw_key odd = {.sequence = 50, .number = 1, .arrived_ns = 1};
	uint64_t i;

	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 100);
	assert_int_equal(sl_raw_flush(w), 0);
	assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
	find_all(r);
	/* One that is out of order changes how, not what is found. */
	assert_int_equal(sl_raw_append(w, &odd, NULL, 0), 0);
	assert_int_equal(sl_raw_finish(w, NULL, 0), 0);
	assert_int_equal(sl_raw_refresh(r), 0);
	find_all(r);
	assert_int_equal(sl_raw_find(r, SL_RAW_BY_NUMBER, 0, &i), 0);
	assert_int_equal(i, 100);
	sl_raw_close(r);
}

/* One bit of a payload: found on reading, and only there. */
static void test_a_flipped_bit_is_named(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;
	const struct sl_raw_entry *entry;
	uint8_t *buffer = malloc(RIG_MOST);
	char where[64];

	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 20);
	assert_int_equal(sl_raw_finish(w, NULL, 0), 0);
	assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
	entry = sl_raw_entry(r, 7);
	for (int k = 0; k < 3; k++) { /* payload, header, trailer */
		uint64_t at[] = {entry->offset + RAW_HEADER, entry->offset + 40,
				 entry->offset + raw_chunk_bytes(entry->bytes) - 12};

		raw_rig_flip(sl_raw_file(r, entry->file), at[k]);
		CAPTURED(-EBADMSG, sl_raw_read(r, 7, buffer, RIG_MOST));
		snprintf(where, sizeof(where), "byte %llu: chunk 7",
			 (unsigned long long)entry->offset);
		assert_non_null(strstr(captured, where));
		assert_non_null(strstr(captured, "run_raw_000001.bin"));
		raw_rig_flip(sl_raw_file(r, entry->file), at[k]);
	}
	raw_rig_check(r, 0, 20);
	sl_raw_close(r);
	free(buffer);
}

/* A damaged index is replaced by a scan; a missing file is named, and accepted on demand. */
static void test_damaged_files(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_facts facts;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;
	struct stat st;
	char path[512];

	o.file_bytes = 128 << 10;
	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 100);
	assert_int_equal(sl_raw_finish(w, NULL, 0), 0);
	snprintf(path, sizeof(path), "%s/run_raw_000002.bin", rig->folder);
	assert_int_equal(stat(path, &st), 0);
	for (int k = 0; k < 2; k++) { /* footer, entries */
		uint64_t at = (uint64_t)st.st_size - (k ? 4096 - 200 : 10);

		raw_rig_flip(path, at);
		assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
		raw_rig_check(r, 0, 100);
		sl_raw_close(r);
		raw_rig_flip(path, at);
	}
	raw_rig_flip(path, 20); /* its head */
	CAPTURED(-EBADMSG, sl_raw_open(o.path, 0, &r));
	assert_non_null(strstr(captured, path));
	CAPTURED(0, sl_raw_open(o.path, SL_RAW_DAMAGED, &r));
	sl_raw_facts(r, &facts);
	assert_true(facts.missing_files == 1 && facts.missing > 5);
	assert_int_equal(facts.chunks + facts.missing, 100);
	sl_raw_close(r);

	raw_rig_flip(o.path, 100);
	CAPTURED(-EBADMSG, sl_raw_open(o.path, 0, &r));
	raw_rig_flip(o.path, 100);
	raw_rig_flip(o.path, 8);
	CAPTURED(-EPROTO, sl_raw_open(o.path, 0, &r));
	CAPTURED(-ENOENT, sl_raw_open("/nowhere/run.raw", 0, &r));
}

/* With one folder and with two: chunks 1 ms apart, of which the last 100 ms are kept. */
static void roll_window(struct raw_rig *rig, unsigned folders)
{
	struct sl_raw_options o = rig->options;
	struct sl_raw_counts counts;
	struct sl_raw_facts facts;
	struct sl_raw_reader *r, *held;
	struct sl_raw_writer *w;
	char folder[2][256];
	const char *list[] = {folder[0], folder[1]};

	for (int i = 0; i < 2; i++)
		snprintf(folder[i], sizeof(folder[i]), "%s/ring%d", rig->folder, i);
	o.folder = list;
	o.folders = folders;
	o.buffer_bytes = 8192;
	o.keep_ns = 100000000;
	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 90);
	assert_int_equal(sl_raw_flush(w), 0);
	assert_int_equal(sl_raw_open(o.path, 0, &held), 0);
	raw_rig_append(w, 90, 910);
	assert_int_equal(sl_raw_flush(w), 0);
	sl_raw_counts(w, &counts);
	assert_true(counts.removed_files > 30 && counts.removed_chunks > 700);
	assert_true(counts.removed_chunks <= 900);

	assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
	sl_raw_facts(r, &facts);
	assert_int_equal(facts.state, SL_RAW_WRITING);
	assert_true(facts.first > 800 && facts.first <= 900 && facts.files >= 8);
	assert_int_equal(sl_raw_entry(r, facts.chunks - 1)->chunk, 999);
	raw_rig_check_all(r);
	raw_rig_check(held, 0, 90); /* removed, and still read */
	/* A reader that missed a part goes on behind it. */
	assert_int_equal(sl_raw_refresh(held), 0);
	sl_raw_facts(held, &facts);
	assert_int_equal(sl_raw_entry(held, facts.chunks - 1)->chunk, 999);
	raw_rig_check_all(held);
	sl_raw_close(held);

	assert_int_equal(sl_raw_finish(w, NULL, 0), 0);
	assert_int_equal(sl_raw_refresh(r), 0);
	sl_raw_close(r);
	assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
	sl_raw_facts(r, &facts);
	assert_true(facts.state == SL_RAW_COMPLETE && facts.missing == 0);
	raw_rig_check_all(r);
	sl_raw_close(r);
}

static void test_a_window_of_time(void **state)
{
	roll_window(*state, 0);
}

static void test_a_window_of_time_in_two_folders(void **state)
{
	roll_window(*state, 2);
}

static void test_a_window_of_bytes(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_counts counts;
	struct sl_raw_facts facts;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;

	o.keep_bytes = 2 << 20;
	o.buffer_bytes = 8192;
	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	for (unsigned n = 0; n < 2000; n += 50) {
		raw_rig_append(w, n, 50);
		assert_int_equal(sl_raw_flush(w), 0);
		assert_true(raw_rig_bytes(rig) <= (2 << 20) + (256 << 10)); /* and the run file */
	}
	sl_raw_counts(w, &counts);
	assert_true(counts.removed_files > 8);
	assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
	sl_raw_facts(r, &facts);
	assert_true(facts.files >= 8 && facts.missing == 0);
	assert_int_equal(facts.first, counts.removed_chunks);
	raw_rig_check_all(r);
	sl_raw_close(r);
	assert_int_equal(sl_raw_finish(w, NULL, 0), 0);
}

static void run_as(struct raw_rig *rig, bool cached, bool plain)
{
	struct sl_raw_options o = rig->options;
	struct sl_raw_counts counts;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;

	o.cached = cached;
	o.plain = plain;
	o.file_bytes = 256 << 10;
	o.buffer_bytes = 16 << 10;
	o.buffers = 2;
	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 200);
	sl_raw_counts(w, &counts);
	assert_true((!counts.uring || !plain) && (!counts.direct || !cached));
	assert_int_equal(sl_raw_finish(w, NULL, 0), 0);
	assert_int_equal(sl_raw_open(o.path, 0, &r), 0);
	raw_rig_check(r, 0, 200);
	sl_raw_close(r);
}

static void test_every_way_to_write(void **state)
{
	run_as(*state, false, true);
	raw_rig_clean(*state);
	run_as(*state, true, false);
	raw_rig_clean(*state);
	run_as(*state, true, true);
}

static void test_tmpfs(void **state)
{
	struct raw_rig rig;

	if (access("/dev/shm", W_OK))
		skip();
	raw_rig_open(&rig, "/dev/shm");
	run_as(&rig, false, false);
	raw_rig_close(&rig);
}

static void test_more_files_than_descriptors(void **state)
{
	struct raw_rig *rig = *state;
	struct rlimit before, few;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;

	rig->options.file_bytes = 64 << 10;
	assert_int_equal(sl_raw_create(&rig->options, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 600);
	assert_int_equal(sl_raw_finish(w, NULL, 0), 0);
	assert_true(raw_rig_files(rig) > 40);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 40;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(sl_raw_open(rig->path, 0, &r), 0);
	raw_rig_check(r, 0, 600);
	sl_raw_close(r);
	setrlimit(RLIMIT_NOFILE, &before);
}

static void test_names_of_data_files(void **state)
{
	static const struct {
		const char *run, *folder, *path;
	} row[] = {{"a/run.raw", NULL, "a/run_raw_000012.bin"},
		   {"run.raw", NULL, "run_raw_000012.bin"},
		   {"run", "/x", "/x/run_raw_000012.bin"},
		   {"a.b/.run", "/x/", "/x/.run_raw_000012.bin"},
		   {"/r.1.raw", NULL, "/r.1_raw_000012.bin"}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		char *path = raw_data_path(row[i].run, row[i].folder, 12), *slash;

		assert_string_equal(path, row[i].path);
		slash = strrchr(path, '/');
		assert_int_equal(raw_data_number(row[i].run, slash ? slash + 1 : path), 12);
		free(path);
	}
	assert_int_equal(raw_data_number("run.raw", "run_raw_00012.bin"), 0);
	assert_int_equal(raw_data_number("run.raw", "run_raw_0000012.bin"), 0);
	assert_int_equal(raw_data_number("run.raw", "run_raw_1000012.bin"), 1000012);
	assert_int_equal(raw_data_number("run.raw", "run_raw_000012.bin2"), 0);
	assert_int_equal(raw_data_number("run.raw", "ran_raw_000012.bin"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_a_complete_run_is_read_back),
		RIG_TEST(test_sizes_around_every_boundary),
		RIG_TEST(test_folders_take_turns),
		RIG_TEST(test_a_live_run_is_followed),
		RIG_TEST(test_an_abandoned_run_is_killed),
		RIG_TEST(test_a_discarded_run_leaves_nothing),
		RIG_TEST(test_nothing_is_overwritten),
		RIG_TEST(test_options_out_of_range_are_refused),
		RIG_TEST(test_stolen_files_are_found_at_the_end),
		RIG_TEST(test_a_data_file_that_cannot_be_opened_is_an_error),
		RIG_TEST(test_chunks_are_found_by_key),
		RIG_TEST(test_a_flipped_bit_is_named),
		RIG_TEST(test_damaged_files),
		RIG_TEST(test_a_window_of_time),
		RIG_TEST(test_a_window_of_time_in_two_folders),
		RIG_TEST(test_a_window_of_bytes),
		RIG_TEST(test_every_way_to_write),
		RIG_TEST(test_more_files_than_descriptors),
		cmocka_unit_test(test_tmpfs),
		cmocka_unit_test(test_names_of_data_files),
	};

	return cmocka_run_group_tests_name("raw", tests, NULL, NULL);
}
