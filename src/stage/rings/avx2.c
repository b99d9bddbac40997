/* avx2.c - the passes of the stage `rings` for 8 events side by side. */
#include "stage/vectors.h"

#ifdef __x86_64__
#define VECTOR_WIDTH  8
#define VECTOR_TARGET SL_TARGET_AVX2
#define PASSES	      sl_rings_avx2
#include "stage/rings/passes.h"
#endif
