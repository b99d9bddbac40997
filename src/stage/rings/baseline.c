/* baseline.c - the passes of the stage `rings` for 4 events side by side, which every CPU of
 * its kind can do. */
#define VECTOR_WIDTH 4
#define VECTOR_TARGET
#define PASSES sl_rings_baseline
#include "stage/rings/passes.h"
