/* format_test.c - bytes on disk are those of docs/reference/raw.md, come back as the numbers that
 * they were, and numbers that no writer writes are refused. */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"
#include "raw/format.h"
#include "raw/io.h"

static uint8_t block[RAW_BLOCK];

static uint64_t at64(size_t at)
{
	uint64_t value;

	memcpy(&value, block + at, sizeof(value));
	return le64toh(value);
}

static uint32_t at32(size_t at)
{
	uint32_t value;

	memcpy(&value, block + at, sizeof(value));
	return le32toh(value);
}

/* Magic, version 1, byte order; the checksum at the end. */
static void expect_frame(const char *magic, size_t bytes)
{
	assert_memory_equal(block, magic, 8);
	assert_int_equal(at32(8), 1);
	assert_int_equal(at32(12), 0x01020304);
	assert_int_equal(at32(bytes - 4), sl_crc32c(0, block, bytes - 4));
}

/* ---- the run file ---- */

static const struct raw_run_head a_head = {.generation = 11,
					   .created_unix_ns = 12,
					   .keep_ns = 13,
					   .keep_bytes = 14,
					   .head_bytes = 5000,
					   .folders_bytes = 16,
					   .end_at = 3 * RAW_BLOCK,
					   .folders = 2,
					   .head_crc = 18,
					   .folders_crc = 19};

static int head_again(const struct raw_run_head *head)
{
	struct raw_run_head again;
	int err;

	raw_write_run_head(head, block);
	err = raw_read_run_head(block, &again);
	if (!err)
		assert_memory_equal(&again, head, /* without what fills it up */
				    offsetof(struct raw_run_head, folders_crc) + 4);
	return err;
}

static void the_head_of_a_run_has_its_numbers_at_their_places(void **state)
{
	assert_int_equal(head_again(&a_head), 0);
	expect_frame("SLRAWRUN", RAW_BLOCK);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(at64(16 + 8 * i), 11 + i);
	assert_int_equal(at64(48), 5000);
	assert_int_equal(at64(56), 16);
	assert_int_equal(at64(64), 3 * RAW_BLOCK);
	assert_int_equal(at32(72), 2);
	assert_int_equal(at32(76), 18);
	assert_int_equal(at32(80), 19);
}

static void a_head_that_no_writer_writes_is_refused(void **state)
{
	struct raw_run_head head = a_head;

	head.head_bytes = RAW_BLOB_MAX;
	head.end_at = raw_up(RAW_BLOCK + RAW_BLOB_MAX + 16, RAW_BLOCK);
	assert_int_equal(head_again(&head), 0);
	head.head_bytes++;
	assert_int_equal(head_again(&head), -EBADMSG);
	head = a_head;
	head.folders_bytes = RAW_BLOB_MAX + 1;
	head.end_at = raw_up(RAW_BLOCK + 5000 + head.folders_bytes, RAW_BLOCK);
	assert_int_equal(head_again(&head), -EBADMSG);
	head.folders_bytes--;
	head.end_at = raw_up(RAW_BLOCK + 5000 + head.folders_bytes, RAW_BLOCK);
	assert_int_equal(head_again(&head), 0);
	head = a_head;
	head.folders = 16; /* names of one byte: the 0 at their end */
	assert_int_equal(head_again(&head), 0);
	head.folders = 17;
	assert_int_equal(head_again(&head), -EBADMSG);
	head = a_head;
	head.end_at += RAW_BLOCK;
	assert_int_equal(head_again(&head), -EBADMSG);
}

static void other_files_are_told_from_damaged_ones(void **state)
{
	struct raw_run_head head;

	for (size_t at = 0; at < RAW_BLOCK; at += at < 16 ? 1 : 509) {
		raw_write_run_head(&a_head, block);
		block[at] ^= 0x10;
		assert_int_equal(raw_read_run_head(block, &head), at < 16 ? -EPROTO : -EBADMSG);
	}
}

/* ---- chunks ---- */

static const struct raw_chunk a_chunk = {
	.kind = RAW_DATA,
	.generation = 21,
	.number = 22,
	.bytes = 23,
	.key = {.sequence = 24, .number = 25, .timestamp = 26, .arrived_ns = 27, .flags = 28}};

static int chunk_again(const struct raw_chunk *chunk)
{
	struct raw_chunk again;
	int err;

	raw_write_chunk(chunk, block);
	err = raw_read_chunk(block, &again);
	if (!err) {
		assert_int_equal(again.kind, chunk->kind);
		assert_int_equal(again.generation, chunk->generation);
		assert_int_equal(again.number, chunk->number);
		assert_int_equal(again.bytes, chunk->bytes);
		assert_int_equal(again.key.sequence, chunk->key.sequence);
		assert_int_equal(again.key.number, chunk->key.number);
		assert_int_equal(again.key.timestamp, chunk->key.timestamp);
		assert_int_equal(again.key.arrived_ns, chunk->key.arrived_ns);
		assert_int_equal(again.key.flags, chunk->key.flags);
	}
	return err;
}

static void a_chunk_has_its_numbers_at_their_places(void **state)
{
	assert_int_equal(chunk_again(&a_chunk), 0);
	assert_memory_equal(block, "SLRC", 4);
	assert_int_equal(at32(4), 1);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(at64(8 + 8 * i), 21 + i);
	assert_int_equal(at32(64), 28);
	assert_int_equal(at32(RAW_HEADER - 4), sl_crc32c(0, block, RAW_HEADER - 4));
	raw_write_trailer(&(struct raw_trailer){.number = 31, .payload_crc = 32}, block);
	assert_memory_equal(block, "SLRE", 4);
	assert_int_equal(at32(4), 32);
	assert_int_equal(at64(8), 31);
}

static void a_chunk_that_no_writer_writes_is_refused(void **state)
{
	struct raw_chunk chunk = a_chunk;

	chunk.bytes = RAW_CHUNK_MAX;
	assert_int_equal(chunk_again(&chunk), 0);
	chunk.bytes++;
	assert_int_equal(chunk_again(&chunk), -EBADMSG);
	chunk.kind = RAW_PAD;
	chunk.bytes = 3 * RAW_HEADER;
	assert_int_equal(chunk_again(&chunk), 0);
	chunk.bytes++;
	assert_int_equal(chunk_again(&chunk), -EBADMSG);
	chunk = a_chunk;
	chunk.kind = RAW_INDEX;
	assert_int_equal(chunk_again(&chunk), 0);
	chunk.kind = RAW_INDEX + 1;
	assert_int_equal(chunk_again(&chunk), -EBADMSG);
	chunk.kind = 0;
	assert_int_equal(chunk_again(&chunk), -EBADMSG);
}

static void an_index_points_into_its_file_and_at_the_beginning_of_chunks(void **state)
{
	static const struct {
		uint64_t offset, bytes;
		int err;
	} cases[] = {{RAW_BLOCK, 1, 0},
		     {RAW_BLOCK + RAW_HEADER, RAW_CHUNK_MAX, 0},
		     {RAW_BLOCK, RAW_CHUNK_MAX + 1, -EBADMSG},
		     {RAW_BLOCK - RAW_HEADER, 1, -EBADMSG},
		     {RAW_BLOCK + 1, 1, -EBADMSG},
		     {UINT64_C(1) << 62, 1, -EBADMSG}};
	struct raw_index_entry entry = {.number = 41, .key = a_chunk.key, .payload_crc = 44}, again;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		entry.offset = cases[i].offset;
		entry.bytes = cases[i].bytes;
		raw_write_entry(&entry, block);
		assert_int_equal(raw_read_entry(block, &again), cases[i].err);
		assert_int_equal(at64(0), 41);
		assert_int_equal(at64(8), cases[i].offset);
		assert_int_equal(at64(16), cases[i].bytes);
		assert_int_equal(at64(24), 24);
		assert_int_equal(at32(60), 44);
		assert_int_equal(again.payload_crc, 44);
		assert_int_equal(again.key.arrived_ns, 27);
	}
}

static void a_footer_points_to_a_block_of_its_file(void **state)
{
	const uint64_t most = RAW_CHUNK_MAX / RAW_ENTRY;
	const struct {
		uint64_t index_at, entries;
		int err;
	} cases[] = {{RAW_BLOCK, most, 0},
		     {RAW_BLOCK, most + 1, -EBADMSG},
		     {0, 1, -EBADMSG},
		     {RAW_BLOCK + RAW_HEADER, 1, -EBADMSG},
		     {UINT64_C(1) << 62, 1, -EBADMSG}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct raw_footer footer = {51, cases[i].index_at, cases[i].entries}, again;

		raw_write_footer(&footer, block);
		expect_frame("SLRAWIDX", RAW_FOOTER);
		assert_int_equal(raw_read_footer(block, &again), cases[i].err);
		assert_memory_equal(&again, &footer, sizeof(again));
	}
}

/* ---- writes that went wrong (io.h) ---- */

static void a_write_is_tried_again_only_where_that_may_help(void **state)
{
	static const int final[] = {-EIO, -ENOSPC, -EFBIG, -EBADF};
	static const int passing[] = {-EAGAIN, -EINTR, 0};
	int error;

	for (size_t i = 0; i < sizeof(final) / sizeof(final[0]); i++) {
		struct raw_write write = {.fd = -1, .bytes = 2 * RAW_BLOCK};

		assert_true(raw_write_went(&write, final[i], &error));
		assert_int_equal(error, final[i]);
	}
	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
		struct raw_write write = {.fd = -1, .bytes = 2 * RAW_BLOCK};
		unsigned tries = 1;

		while (tries < 100 && !raw_write_went(&write, passing[i], &error))
			tries++;
		assert_true(tries > 2 && tries < 100); /* not for ever */
		assert_int_equal(error, passing[i] ? passing[i] : -EIO);
	}
}

static void the_rest_of_a_short_write_begins_at_a_block(void **state)
{
	struct raw_write write = {.fd = -1, .bytes = 3 * RAW_BLOCK, .stuck = 5};
	int error;

	assert_false(raw_write_went(&write, RAW_BLOCK + 100, &error));
	assert_int_equal(write.written, RAW_BLOCK);
	assert_int_equal(write.stuck, 0);
	assert_false(raw_write_went(&write, 2 * RAW_BLOCK - 1, &error));
	assert_int_equal(write.written, 2 * RAW_BLOCK);
	assert_true(raw_write_went(&write, RAW_BLOCK, &error));
	assert_int_equal(error, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_head_of_a_run_has_its_numbers_at_their_places),
		cmocka_unit_test(a_head_that_no_writer_writes_is_refused),
		cmocka_unit_test(other_files_are_told_from_damaged_ones),
		cmocka_unit_test(a_chunk_has_its_numbers_at_their_places),
		cmocka_unit_test(a_chunk_that_no_writer_writes_is_refused),
		cmocka_unit_test(an_index_points_into_its_file_and_at_the_beginning_of_chunks),
		cmocka_unit_test(a_footer_points_to_a_block_of_its_file),
		cmocka_unit_test(a_write_is_tried_again_only_where_that_may_help),
		cmocka_unit_test(the_rest_of_a_short_write_begins_at_a_block),
	};

	return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
