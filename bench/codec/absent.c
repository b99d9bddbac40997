/* absent.c - `sluice bench codec` where Sluice was built without its codecs. */
#include <errno.h>

#include "base/log.h"
#include "bench/bench.h"

int sl_bench_codec(const struct sl_bench *bench, const struct sl_bench_row *row,
		   struct sl_bench_sample *sample)
{
	(void)bench, (void)row, (void)sample;
	sl_error("skipped: built without liblz4 or libzstd");
	return -ENODEV;
}
