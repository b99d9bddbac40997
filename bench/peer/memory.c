/* memory.c - what this machine's memory gives one core, or two: reading, writing through the
 * cache (which reads first), writing past it, and copying with such writes. Buffers are larger than
 * caches; the unit is a frame of BYTES, and GB/s are the bytes that are read or, where nothing is,
 * written. A stage cannot be faster than what it moves. */
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench/peer/cores.h"

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

struct place {
	const char *mode;
	uint8_t *from, *to;
	size_t bytes;
};

static void work(void *arg, uint64_t i)
{
	const struct place *p = arg;
	size_t at = i % (BUFFER / p->bytes) * p->bytes, n = p->bytes / sizeof(word);
	word *to = (word *)(void *)(p->to + at);
	const word *from = (const word *)(const void *)(p->from + at);

	if (!strcmp(p->mode, "read"))
		load_all(from, n);
	else if (!strcmp(p->mode, "write"))
		store_all(to, n, random_word(i));
	else if (!strcmp(p->mode, "write-streaming"))
		stream_all(to, n, random_word(i));
	else
		stream_copy(to, from, n);
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
	struct cores cores;
	struct place place;
	double seconds, rate;
	size_t bytes;

	if (argc != 4 || !is_mode(argv[1]))
		bench_usage(USAGE);
	if (!can(argv[1])) {
		fprintf(stderr, "this is only written for AVX2\n");
		return 77;
	}
	bytes = bench_number(argv[2], USAGE) / 128 * 128;
	seconds = bench_seconds(argv[3], USAGE);
	if (!bytes || bytes > BUFFER)
		bench_usage(USAGE);
	cores_split(&cores);
	place = (struct place){.mode = argv[1],
			       .from = random_memory(BUFFER),
			       .to = random_memory(BUFFER),
			       .bytes = bytes};
	rate = cores_measure(&cores, work, &place, seconds);
	printf("{\"GB_per_s\": %.6f, \"lost\": 0, \"bytes\": %.0f, \"frame_bytes\": %zu}\n",
	       1e-9 * rate * (double)bytes, rate * seconds * (double)bytes, bytes);
	return 0;
}
