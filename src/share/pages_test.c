/* pages_test.c - memory for huge pages: where it is mapped, that nothing else stays mapped, and
 * that its bytes are zeros and shared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/sanitized.h"
#include "share/pages.h"

#define MiB (UINT64_C(1) << 20)

static int file_of(uint64_t bytes)
{
	int fd = memfd_create("pages", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

/* Bytes that this process has mapped or reserved. */
static unsigned long mapped(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	return pages * (unsigned long)sysconf(_SC_PAGESIZE);
}

static void test_where_it_is_mapped(void **state)
{
	static const uint64_t sizes[] = {4096, MiB, 2 * MiB, 2 * MiB + 4096, 5 * MiB + 8192};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int fd = file_of(sizes[i]);
		unsigned long before = mapped();
		uint8_t *at = sl_share_map(fd, sizes[i], PROT_READ | PROT_WRITE, MAP_POPULATE);
		uint8_t *again = sl_share_map(fd, sizes[i], PROT_READ, 0);

		assert_ptr_not_equal(at, MAP_FAILED);
		assert_ptr_not_equal(again, MAP_FAILED);
		if (sizes[i] >= 2 * MiB)
			assert_int_equal((uintptr_t)at % (2 * MiB), 0);
		assert_true(SANITIZED || mapped() == before + 2 * sizes[i]);
		at[0] = 1;
		at[sizes[i] - 1] = 2;
		assert_int_equal(again[0], 1);
		assert_int_equal(again[sizes[i] - 1], 2);
		munmap(at, sizes[i]);
		munmap(again, sizes[i]);
		assert_true(SANITIZED || mapped() == before);
		close(fd);
	}
	assert_ptr_equal(sl_share_map(-1, 4 * MiB, PROT_READ, 0), MAP_FAILED);
}

/* With huge pages or without: the file has its size and zeros, and nothing stays mapped. */
static void test_huge_pages(void **state)
{
	const uint64_t bytes = 6 * MiB + 4096;
	int fd = file_of(bytes);
	unsigned long before = mapped();
	uint8_t *at;

	sl_share_use_huge_pages(fd, bytes);
	assert_true(SANITIZED || mapped() == before);
	assert_int_equal(lseek(fd, 0, SEEK_END), bytes);
	at = sl_share_map(fd, bytes, PROT_READ | PROT_WRITE, MAP_POPULATE);
	assert_ptr_not_equal(at, MAP_FAILED);
	for (uint64_t i = 0; i < bytes; i += 512)
		assert_int_equal(at[i], 0);
	munmap(at, bytes);
	close(fd);
	sl_share_use_huge_pages(-1, bytes); /* changes nothing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where_it_is_mapped),
		cmocka_unit_test(test_huge_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
