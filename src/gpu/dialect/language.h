/* language.h - one spelling for C, CUDA C and OpenCL C, so that every processor computes the same.
 *
 * Model:     headers in this folder hold the mathematics of single pixels, rings and peaks:
 *            functions of scalars and small structures by value. No pointers (OpenCL has kinds of
 *            them), no libc, no double (not every accelerator has it), no state. Whoever runs them
 *            brings the loops and the memory.
 * Exact:     integers are the same everywhere. Floats are too where a compiler does what it is
 *            told: no fused multiply-add (-ffp-contract=off, --fmad=false, the pragma below),
 *            square root and division rounded correctly. */
#ifndef SL_GPU_DIALECT_LANGUAGE_H
#define SL_GPU_DIALECT_LANGUAGE_H

#if defined(__OPENCL_C_VERSION__)

#pragma OPENCL FP_CONTRACT OFF
#define SL_FN static inline
typedef char sl_i8;
typedef uchar sl_u8;
typedef short sl_i16;
typedef ushort sl_u16;
typedef int sl_i32;
typedef uint sl_u32;
typedef long sl_i64;
typedef ulong sl_u64;
#define sl_sqrt(x)	 sqrt(x)
#define sl_fabs(x)	 fabs(x)
#define sl_float_bits(x) as_int(x)
#define sl_bits_float(x) as_float(x)

#else

typedef signed char sl_i8;
typedef unsigned char sl_u8;
typedef short sl_i16;
typedef unsigned short sl_u16;
typedef int sl_i32;
typedef unsigned sl_u32;
typedef long long sl_i64;
typedef unsigned long long sl_u64;

#if defined(__CUDACC__) || defined(__CUDA__)
#define SL_FN		 static __device__ __forceinline__
#define sl_sqrt(x)	 __fsqrt_rn(x)
#define sl_fabs(x)	 fabsf(x)
#define sl_float_bits(x) __float_as_int(x)
#define sl_bits_float(x) __int_as_float(x)
#else
#define SL_FN	   static inline __attribute__((always_inline, unused))
#define sl_sqrt(x) __builtin_sqrtf(x)
#define sl_fabs(x) __builtin_fabsf(x)
/* Through a union: what compilers make vectors of. */
SL_FN sl_i32 sl_float_bits(float x)
{
	union {
		float f;
		sl_i32 i;
	} u = {x};

	return u.i;
}

SL_FN float sl_bits_float(sl_i32 x)
{
	union {
		sl_i32 i;
		float f;
	} u = {x};

	return u.f;
}
#endif

#endif

#endif
