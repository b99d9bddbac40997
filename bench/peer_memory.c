/* peer_memory.c - what this machine's memory gives one core, or two: reading, writing through the
 * cache (which reads first), writing past it, and copying with such writes. Buffers are larger than
 * caches; the unit is a frame of BYTES, and GB/s are the bytes that are read or, where nothing is,
 * written. A stage cannot be faster than what it moves. */
#include <pthread.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench.h"

#define USAGE BENCH_PEER_USAGE("peer_memory", "read|write|write-streaming|copy-streaming")

enum { BUFFER = 256 << 20 };

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2"), noinline))
typedef __m256i word;

WIDE static void load_all(const word *from, size_t n)
{
	word a = _mm256_setzero_si256(), b = a, c = a, d = a;

	for (size_t i = 0; i + 4 <= n; i += 4) {
		a = _mm256_or_si256(a, _mm256_load_si256(from + i));
		b = _mm256_or_si256(b, _mm256_load_si256(from + i + 1));
		c = _mm256_or_si256(c, _mm256_load_si256(from + i + 2));
		d = _mm256_or_si256(d, _mm256_load_si256(from + i + 3));
	}
	a = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
	__asm__ volatile("" : : "x"(a));
}

WIDE static void store_all(word *to, size_t n, uint64_t what)
{
	word v = _mm256_set1_epi64x((long long)what);

	for (size_t i = 0; i < n; i++) {
		_mm256_store_si256(to + i, v);
		__asm__ volatile("" : : "r"(to) : "memory"); /* no call of memset */
	}
}

WIDE static void stream_all(word *to, size_t n, uint64_t what)
{
	word v = _mm256_set1_epi64x((long long)what);

	for (size_t i = 0; i < n; i++)
		_mm256_stream_si256(to + i, v);
	_mm_sfence();
}

WIDE static void stream_copy(word *to, const word *from, size_t n)
{
	for (size_t i = 0; i + 4 <= n; i += 4) {
		word a = _mm256_load_si256(from + i), b = _mm256_load_si256(from + i + 1);
		word c = _mm256_load_si256(from + i + 2), d = _mm256_load_si256(from + i + 3);

		_mm256_stream_si256(to + i, a);
		_mm256_stream_si256(to + i + 1, b);
		_mm256_stream_si256(to + i + 2, c);
		_mm256_stream_si256(to + i + 3, d);
	}
	_mm_sfence();
}

static int can(const char *mode)
{
	return __builtin_cpu_supports("avx2");
}
#else
typedef uint64_t word;

static void load_all(const word *from, size_t n)
{
	word a = 0;

	for (size_t i = 0; i < n; i++)
		a |= from[i];
	__asm__ volatile("" : : "r"(a));
}

static void store_all(word *to, size_t n, uint64_t what)
{
	for (size_t i = 0; i < n; i++)
		to[i] = what;
	__asm__ volatile("" : : "r"(to) : "memory");
}

static void stream_all(word *to, size_t n, uint64_t what)
{
}

static void stream_copy(word *to, const word *from, size_t n)
{
}

static int can(const char *mode)
{
	return !strstr(mode, "streaming"); /* C has no such stores */
}
#endif

/* Lines of zeros are written three times as fast as others on some machines. */
static uint64_t random_word(uint64_t i)
{
	i = (i + 1) * 0x9e3779b97f4a7c15u;
	i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
	return (i ^ i >> 27) * 0x94d049bb133111ebu;
}

static uint8_t *random_memory(size_t bytes)
{
	uint64_t *memory = bench_memory(bytes, MAP_PRIVATE);

	for (size_t i = 0; i < bytes / sizeof(*memory); i++)
		memory[i] = random_word(i);
	return (uint8_t *)memory;
}

struct worker {
	const char *mode, *core;
	uint8_t *from, *to;
	size_t bytes;
	double until, took;
	uint64_t frames;
	pthread_t thread;
};

static void work(const struct worker *w, size_t at)
{
	word *to = (word *)(void *)(w->to + at);
	const word *from = (const word *)(const void *)(w->from + at);
	size_t n = w->bytes / sizeof(word);

	if (!strcmp(w->mode, "read"))
		load_all(from, n);
	else if (!strcmp(w->mode, "write"))
		store_all(to, n, random_word(w->frames));
	else if (!strcmp(w->mode, "write-streaming"))
		stream_all(to, n, random_word(w->frames));
	else
		stream_copy(to, from, n);
}

static void *run(void *arg)
{
	struct worker *w = arg;
	size_t places = BUFFER / w->bytes;
	double start = bench_now_s();

	bench_pin(w->core);
	do {
		work(w, w->frames++ % places * w->bytes);
		w->took = bench_now_s() - start;
	} while (w->took < w->until);
	return NULL;
}

static double run_all(struct worker *w, size_t workers, double seconds)
{
	double rate = 0;

	for (size_t i = 0; i < workers; i++) {
		w[i].frames = 0;
		w[i].until = seconds;
		if (pthread_create(&w[i].thread, NULL, run, &w[i]))
			bench_fail("thread");
	}
	for (size_t i = 0; i < workers; i++) {
		pthread_join(w[i].thread, NULL);
		rate += (double)w[i].frames / w[i].took;
	}
	return rate;
}

static int is_mode(const char *text)
{
	static const char *const modes[] = {"read", "write", "write-streaming", "copy-streaming"};

	for (size_t i = 0; i < 4; i++)
		if (!strcmp(text, modes[i]))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	size_t cores = bench_env("BENCH_CORES", 1), bytes;
	struct worker w[2];
	double seconds, rate;

	if (argc != 4 || cores > 2 || !is_mode(argv[1]))
		bench_usage(USAGE);
	if (!can(argv[1])) {
		fprintf(stderr, "this is only written for AVX2\n");
		return 77;
	}
	bytes = bench_number(argv[2], USAGE) / 128 * 128;
	seconds = bench_seconds(argv[3], USAGE);
	if (!bytes || bytes > BUFFER)
		bench_usage(USAGE);
	for (size_t i = 0; i < cores; i++)
		w[i] = (struct worker){.mode = argv[1],
				       .core = i ? "BENCH_SENDER_CORE" : "BENCH_RECEIVER_CORE",
				       .from = random_memory(BUFFER),
				       .to = random_memory(BUFFER),
				       .bytes = bytes};
	run_all(w, cores, seconds / 4); /* warm */
	rate = run_all(w, cores, seconds);
	printf("{\"GB_per_s\": %.6f, \"lost\": 0, \"bytes\": %.0f, \"frame_bytes\": %zu}\n",
	       1e-9 * rate * (double)bytes, rate * seconds * (double)bytes, bytes);
	return 0;
}
