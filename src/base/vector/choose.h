/* choose.h - which vector instructions of this CPU code may use.
 *
 * Model:     code that has a variant for each instruction set compiles it with SL_TARGET_AVX2 or
 *            SL_TARGET_AVX512, and asks sl_vectors_choose() once, when it is opened, which to call.
 *            Other CPUs than x86-64 have the baseline alone. All variants give the same result.
 * Threads:   no state. */
#ifndef SL_BASE_VECTOR_CHOOSE_H
#define SL_BASE_VECTOR_CHOOSE_H

#include <stdint.h>

#define SL_FORCE_INLINE static inline __attribute__((always_inline))

enum sl_vectors { SL_VECTORS_AUTO, SL_VECTORS_AVX512, SL_VECTORS_AVX2, SL_VECTORS_BASELINE };

#ifdef __x86_64__

#define SL_TARGET_AVX2 __attribute__((target("avx2")))
#define SL_AVX512_SETS "avx512f,avx512bw,avx512vl,avx512dq,avx512cd"
#ifdef __clang__ /* does not know how to be told that vectors should be that wide */
#define SL_TARGET_AVX512 __attribute__((target(SL_AVX512_SETS)))
#else
#define SL_TARGET_AVX512 __attribute__((target(SL_AVX512_SETS ",prefer-vector-width=512")))
#endif

/* The best instruction set of this CPU, never more than `wanted`. */
static inline enum sl_vectors sl_vectors_choose(uint32_t wanted)
{
	if (wanted <= SL_VECTORS_AVX512 && __builtin_cpu_supports("avx512f") &&
	    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd"))
		return SL_VECTORS_AVX512;
	if (wanted <= SL_VECTORS_AVX2 && __builtin_cpu_supports("avx2"))
		return SL_VECTORS_AVX2;
	return SL_VECTORS_BASELINE;
}

#else

static inline enum sl_vectors sl_vectors_choose(uint32_t wanted)
{
	(void)wanted;
	return SL_VECTORS_BASELINE;
}

#endif

#endif
