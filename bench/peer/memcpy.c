/* memcpy.c - what the memory of this machine gives one core: memcpy from buffers larger than
 * caches into a ring larger than caches, as the shm link copies a module. No link on one host that
 * copies once can be faster. */
#include "bench/peer/peer.h"

#define USAGE BENCH_PEER_USAGE("peer_memcpy", "copy|streams|fetch")

enum { MODULE = 1 << 20 };

static __attribute__((noinline)) void bench_send_all(uint8_t *to, uint64_t ring,
						     const uint8_t *from, size_t bytes,
						     uint64_t first, uint64_t blocks)
{
	for (uint64_t i = first; i < first + blocks; i++) {
		memcpy(to + i % (ring / bytes) * bytes, from + i % (BENCH_SOURCE / bytes) * bytes,
		       bytes);
		/* Somebody might read it. */
		__asm__ volatile("" : : "r"(to) : "memory");
	}
}

/* So many modules of 1 MiB take turns, `bytes` each: piece i of the stream. */
static uint64_t place_of(uint64_t i, uint64_t streams, size_t bytes)
{
	uint64_t pieces = MODULE / bytes, turn = i / streams;

	return (turn / pieces * streams + i % streams) * MODULE + turn % pieces * bytes;
}

static __attribute__((noinline)) void bench_send_streams(uint8_t *to, uint64_t ring,
							 const uint8_t *from, size_t bytes,
							 uint64_t first, uint64_t blocks)
{
	uint64_t streams = bench_env("BENCH_STREAMS", 1);

	/* Whole frames fit into the ring. */
	ring = ring / (streams * MODULE) * streams * MODULE;
	for (uint64_t i = first; i < first + blocks; i++) {
		uint64_t at = place_of(i, streams, bytes);

		memcpy(to + at % ring, from + at % BENCH_SOURCE, bytes);
		__asm__ volatile("" : : "r"(to) : "memory");
	}
}

struct piece {
	uint8_t *to;
	const uint8_t *from;
	size_t bytes;
};

static void bench_copy(void *arg)
{
	const struct piece *piece = arg;

	memcpy(piece->to, piece->from, piece->bytes);
	__asm__ volatile("" : : "r"(piece->to) : "memory");
}

/* The same piece of memory again and again, as followers of a share fetch it. */
static int fetch(size_t bytes, double seconds)
{
	struct piece piece = {.to = bench_memory(bytes, MAP_PRIVATE),
			      .from = bench_memory(bytes, MAP_PRIVATE),
			      .bytes = bytes};

	bench_each(bench_copy, &piece, bytes, seconds);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t ring = bench_env("BENCH_RING", 512 << 20), blocks = 0, batch;
	double seconds, start, took;
	uint8_t *from, *to;
	size_t bytes;
	bool streams;

	if (argc != 4 || (strcmp(argv[1], "copy") != 0 && strcmp(argv[1], "streams") != 0 &&
			  strcmp(argv[1], "fetch") != 0))
		bench_usage(USAGE);
	streams = argv[1][0] == 's';
	bytes = bench_number(argv[2], USAGE);
	seconds = bench_seconds(argv[3], USAGE);
	bench_pin("BENCH_RECEIVER_CORE");
	if (argv[1][0] == 'f')
		return fetch(bytes, seconds);
	if (bytes > BENCH_SOURCE || bytes > ring)
		bench_usage(USAGE);
	batch = bytes < 1 << 20 ? (1 << 20) / bytes : 1; /* the clock costs, too */
	from = bench_memory(BENCH_SOURCE, MAP_PRIVATE);
	to = bench_memory(ring, MAP_PRIVATE);
	start = bench_now_s();
	do {
		(streams ? bench_send_streams : bench_send_all)(to, ring, from, bytes, blocks,
								batch);
		blocks += batch;
		took = bench_now_s() - start;
	} while (took < seconds);
	bench_print_rate(blocks, bytes, took, 0);
	return 0;
}
