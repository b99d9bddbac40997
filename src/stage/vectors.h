/* vectors.h - the same loop for several instruction sets, chosen when a stage is opened.
 *
 * Model:     SL_VECTORS(name, (parameters), (arguments)) makes name_baseline(), name_avx2() and
 *            name_avx512() out of name(), an always inlined body in plain C that compilers make
 *            vectors of. No result depends on which: integers are the same, and floats too as long
 *            as the body adds them in a fixed order. Where another body is faster by hand, write
 *            the functions out instead and compare them in the test.
 * Threads:   sl_vectors_choose() when a stage is opened. */
#ifndef SL_STAGE_VECTORS_H
#define SL_STAGE_VECTORS_H

#include <sluice/option.h>

#include "base/vector/choose.h"

/* The option of every stage that has such loops. */
#define SL_VECTORS_OPTION(type)                                                                    \
	SL_CHOICE(type, vectors, auto, "auto|avx512|avx2|baseline",                                \
		  "vector instructions: the best of this CPU, at most these, or those that every " \
		  "CPU of its kind has")

#ifdef __x86_64__

#define SL_VECTORS(name, parameters, arguments)               \
	static void name##_baseline parameters                \
	{                                                     \
		name arguments;                               \
	}                                                     \
	SL_TARGET_AVX2 static void name##_avx2 parameters     \
	{                                                     \
		name arguments;                               \
	}                                                     \
	SL_TARGET_AVX512 static void name##_avx512 parameters \
	{                                                     \
		name arguments;                               \
	}

#else

#define SL_VECTORS(name, parameters, arguments) \
	static void name##_baseline parameters  \
	{                                       \
		name arguments;                 \
	}                                       \
	enum { name##_has_one_kind };

#endif

/* One of the three, by what sl_vectors_choose() said. */
#ifdef __x86_64__
#define SL_VECTORS_PICK(name, vectors)                  \
	((vectors) == SL_VECTORS_AVX512 ? name##_avx512 \
	 : (vectors) == SL_VECTORS_AVX2 ? name##_avx2   \
					: name##_baseline)
#else
#define SL_VECTORS_PICK(name, vectors) ((void)(vectors), name##_baseline)
#endif

#endif
