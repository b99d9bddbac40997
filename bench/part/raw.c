/* raw.c - the raw container alone: chunks that lie in memory, one after the other, until the run is
 * finished and on disk. */
#include "raw/raw.h"
#include "bench/peer/peer.h"

#define USAGE "bench_raw PATH CHUNK_BYTES CHUNKS FILES"

enum { SOURCES = 8, BUFFER = 1 << 20, BUFFERS = 32 }; /* as tools/bench_probes.py tells fio */

static _Noreturn void give_up(const char *what, int err)
{
	errno = -err;
	bench_fail(what);
}

/* Nothing that a disk could pack. */
static void scramble(uint8_t *data, size_t bytes)
{
	uint64_t state = 1;

	for (size_t i = 0; i + sizeof(state) <= bytes; i += sizeof(state)) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		memcpy(data + i, &state, sizeof(state));
	}
}

static int append_all(struct sl_raw_writer *w, uint8_t *from, uint64_t bytes, uint64_t chunks)
{
	int r = 0;

	for (uint64_t i = 0; i < chunks && !r; i++) {
		const struct sl_raw_key key = {.sequence = i, .number = i};
		struct iovec part = {from + i % SOURCES * bytes, bytes};

		r = sl_raw_append(w, &key, &part, 1);
	}
	return r;
}

int main(int argc, char **argv)
{
	struct sl_raw_options options = {.buffer_bytes = BUFFER, .buffers = BUFFERS};
	struct sl_raw_counts counts;
	struct sl_raw_writer *w;
	uint64_t bytes, chunks;
	double start, seconds;
	uint8_t *from;
	int r;

	if (argc != 5)
		bench_usage(USAGE);
	options.path = argv[1];
	bytes = bench_number(argv[2], USAGE);
	chunks = bench_number(argv[3], USAGE);
	/* Each with room for its head, index and padding. */
	options.file_bytes = bytes * chunks / bench_number(argv[4], USAGE) + BUFFER;
	from = bench_memory(bytes * SOURCES, MAP_PRIVATE);
	scramble(from, bytes * SOURCES);

	start = bench_now_s();
	r = sl_raw_create(&options, NULL, 0, &w);
	if (r)
		give_up(argv[1], r);
	r = append_all(w, from, bytes, chunks);
	sl_raw_counts(w, &counts);
	r = r ? r : sl_raw_finish(w, NULL, 0);
	seconds = bench_now_s() - start;
	if (r)
		give_up(argv[1], r);
	printf("{\"GB_per_s\": %.6f, \"seconds\": %.6f, \"stalls\": %llu, \"longest_stall_ms\": "
	       "%.3f, "
	       "\"direct\": %s, \"uring\": %s}\n",
	       1e-9 * (double)(bytes * chunks) / seconds, seconds,
	       (unsigned long long)counts.stalls, 1e-6 * (double)counts.longest_stall_ns,
	       counts.direct ? "true" : "false", counts.uring ? "true" : "false");
	return 0;
}
