/* avx512.c - the passes of the stage `rings` for 16 events side by side. */
#include "stage/vectors.h"

#ifdef __x86_64__
#define VECTOR_WIDTH  16
#define VECTOR_TARGET SL_TARGET_AVX512
#define PASSES	      sl_rings_avx512
#include "stage/rings/passes.h"
#endif
