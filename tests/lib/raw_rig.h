/* raw_rig.h - for tests of the raw container: a scratch folder, and chunks whose bytes follow from
 * their number. */
#ifndef TESTS_LIB_RAW_RIG_H
#define TESTS_LIB_RAW_RIG_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hdf5/testing.h"
#include "lib/capture.h"
#include "raw/raw.h"

enum { RIG_MOST = 9000 }; /* bytes of a chunk */
#define RIG_ARRIVED(n) (UINT64_C(5000000000) + (uint64_t)(n)*1000000)

struct raw_rig {
	char folder[200], path[256];
	struct sl_raw_options options;
};

/* The call returns this; what it logged is in `captured`. */
static const char *captured __attribute__((unused));
#define CAPTURED(expected, call)                             \
	do {                                                 \
		int captured_result;                         \
                                                             \
		capture_begin();                             \
		captured_result = call;                      \
		captured = capture_end();                    \
		assert_int_equal(captured_result, expected); \
	} while (0)

static inline void raw_rig_open(struct raw_rig *rig, const char *base)
{
	*rig = (struct raw_rig){0};
	if (base) {
		snprintf(rig->folder, sizeof(rig->folder), "%s/sluice-test-XXXXXX", base);
		assert_non_null(mkdtemp(rig->folder));
	} else {
		scratch_make(rig->folder, sizeof(rig->folder));
	}
	snprintf(rig->path, sizeof(rig->path), "%s/run.raw", rig->folder);
	/* Few and small buffers: the memory of 32 MiB takes longer than most tests. */
	rig->options = (struct sl_raw_options){.path = rig->path,
					       .buffer_bytes = 64 << 10,
					       .buffers = 4,
					       .file_bytes = 4 << 20,
					       .flush_ns = 50000000};
}

static inline void raw_rig_close(struct raw_rig *rig)
{
	scratch_remove(rig->folder);
}

static inline void raw_rig_clean(struct raw_rig *rig)
{
	scratch_remove(rig->folder);
	assert_int_equal(mkdir(rig->folder, 0700), 0);
}

static inline int raw_rig_setup(void **state)
{
	struct raw_rig *rig = calloc(1, sizeof(*rig));

	raw_rig_open(rig, NULL);
	*state = rig;
	return 0;
}

static inline int raw_rig_teardown(void **state)
{
	raw_rig_close(*state);
	free(*state);
	return 0;
}

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, raw_rig_setup, raw_rig_teardown)

static inline size_t raw_rig_payload(uint64_t n, uint8_t *to)
{
	uint64_t x = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
	size_t bytes = (x >> 40) % RIG_MOST;

	for (size_t i = 0; i < bytes; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
		to[i] = (uint8_t)(x >> 56);
	}
	return bytes;
}

static inline struct sl_raw_key raw_rig_key(uint64_t n)
{
	return (struct sl_raw_key){.sequence = n,
				   .number = 1000 + 2 * n,
				   .timestamp = n * n,
				   .arrived_ns = RIG_ARRIVED(n),
				   .flags = (uint32_t)(n % 5)};
}

static inline int raw_rig_append_one(struct sl_raw_writer *w, uint64_t n)
{
	uint8_t data[RIG_MOST];
	struct sl_raw_key key = raw_rig_key(n);
	size_t bytes = raw_rig_payload(n, data);
	struct iovec part[] = {{data, bytes / 2}, {data + bytes / 2, bytes - bytes / 2}};

	return sl_raw_append(w, &key, part, 2);
}

static inline void raw_rig_append(struct sl_raw_writer *w, uint64_t first, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(raw_rig_append_one(w, first + i), 0);
}

/* Entry i is chunk number n, with the right key and payload. */
static inline void raw_rig_check_one(const struct sl_raw_reader *r, uint64_t i, uint64_t n)
{
	const struct sl_raw_entry *entry = sl_raw_entry(r, i);
	struct sl_raw_key key = raw_rig_key(n);
	uint8_t data[RIG_MOST], back[RIG_MOST];
	size_t bytes = raw_rig_payload(n, data);

	assert_int_equal(entry->chunk, n);
	assert_int_equal(entry->bytes, bytes);
	assert_true(entry->key.sequence == key.sequence && entry->key.number == key.number &&
		    entry->key.timestamp == key.timestamp &&
		    entry->key.arrived_ns == key.arrived_ns && entry->key.flags == key.flags);
	assert_int_equal(sl_raw_read(r, i, back, sizeof(back)), 0);
	assert_memory_equal(back, data, bytes);
}

/* Exactly these chunks. */
static inline void raw_rig_check(const struct sl_raw_reader *r, uint64_t first, uint64_t count)
{
	struct sl_raw_facts facts;

	sl_raw_facts(r, &facts);
	assert_int_equal(facts.chunks, count);
	for (uint64_t i = 0; i < count; i++)
		raw_rig_check_one(r, i, first + i);
}

/* Whatever chunks there are. */
static inline void raw_rig_check_all(const struct sl_raw_reader *r)
{
	struct sl_raw_facts facts;

	sl_raw_facts(r, &facts);
	for (uint64_t i = 0; i < facts.chunks; i++)
		raw_rig_check_one(r, i, sl_raw_entry(r, i)->chunk);
}

static unsigned rig_files;
static uint64_t rig_bytes;

static inline int raw_rig_count(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)path, (void)ftw;
	if (flag == FTW_F) {
		rig_files++;
		rig_bytes += (uint64_t)st->st_blocks * 512;
	}
	return 0;
}

static inline unsigned raw_rig_files(const struct raw_rig *rig)
{
	rig_files = 0;
	nftw(rig->folder, raw_rig_count, 16, FTW_PHYS);
	return rig_files;
}

static inline uint64_t raw_rig_bytes(const struct raw_rig *rig)
{
	rig_bytes = 0;
	nftw(rig->folder, raw_rig_count, 16, FTW_PHYS);
	return rig_bytes;
}

static inline void raw_rig_flip(const char *path, uint64_t at)
{
	int fd = open(path, O_RDWR);
	uint8_t byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	close(fd);
}

#endif
