/* peer_memcpy.c - what the memory of this machine gives one core: memcpy between two buffers larger
 * than caches, a megabyte at a time, as the shm link copies a module. No link on one host that
 * copies once can be faster. */
#include "bench.h"

#define USAGE "peer_memcpy MEGABYTES"

enum { BLOCK = 1 << 20, BLOCKS = 128 };

int main(int argc, char **argv)
{
	uint64_t blocks = argc == 2 ? bench_number(argv[1], USAGE) : (bench_usage(USAGE), 0);
	uint8_t *from = bench_memory((size_t)BLOCK * BLOCKS, MAP_PRIVATE);
	uint8_t *to = bench_memory((size_t)BLOCK * BLOCKS, MAP_PRIVATE);
	double start = bench_now_s(), seconds;

	for (uint64_t i = 0; i < blocks; i++) {
		memcpy(to + i % BLOCKS * BLOCK, from + i % BLOCKS * BLOCK, BLOCK);
		/* Somebody might read it. */
		__asm__ volatile("" : : "r"(to) : "memory");
	}
	seconds = bench_now_s() - start;
	printf("{\"GB_per_s\": %.6f, \"seconds\": %.6f}\n",
	       1e-9 * (double)(blocks * BLOCK) / seconds, seconds);
	return 0;
}
