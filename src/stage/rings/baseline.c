/* baseline.c - the passes of the stage `rings` for 4 events side by side, which every CPU of
 * its kind can do. */
#define LANES 4
#define LANES_TARGET
#define PASSES sl_rings_baseline
#include "stage/rings/passes.h"
