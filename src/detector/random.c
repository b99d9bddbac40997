/* random.c - tables of distributions, from + - * / and square roots alone. */
#include <sluice/random.h>

double sl_exp(double x)
{
	double y, term = 1, sum = 1;
	unsigned halvings = 0;

	if (x < -700)
		return 0;
	for (y = x; y > 0.125 || y < -0.125; y /= 2)
		halvings++;
	/* At most 1/8: ten terms leave less than the last bit. */
	for (int i = 1; i <= 10; i++) {
		term *= y / i;
		sum += term;
	}
	for (; halvings; halvings--)
		sum *= sum;
	return sum;
}

/* Walk the upper half of the bell in small steps, and note where the area passes the middle of each
 * entry's share; the lower half mirrors it. */
void sl_normal_fill(float *table)
{
	const double step = 1. / 4096, scale = 0.3989422804014327; /* 1 / sqrt(2 pi) */
	const unsigned half = SL_NORMAL_ENTRIES / 2;
	double area = 0.5, x = 0, before = scale;

	for (unsigned i = 0; i < half;) {
		double after = scale * sl_exp(-(x + step) * (x + step) / 2);
		double slice = step * (before + after) / 2;

		for (; i < half; i++) {
			double want = (half + i + 0.5) / SL_NORMAL_ENTRIES;

			if (want > area + slice)
				break;
			table[half + i] = (float)(x + step * (want - area) / slice);
			table[half - 1 - i] = -table[half + i];
		}
		area += slice;
		before = after;
		x += step;
	}
}

void sl_poisson_fill(struct sl_poisson *poisson, double mean)
{
	double probability = sl_exp(-mean), sum = probability;
	unsigned n = 0;

	for (unsigned i = 0; i < SL_POISSON_STEPS; i++) {
		double at = sum * 0x1p32 + 0.5;

		/* A step at UINT32_MAX is never taken: where rounding ends the sum, the tail does.
		 */
		poisson->step[i] = at < 1 ? 0 : at < 0x1p32 ? (uint32_t)at - 1 : UINT32_MAX;
		probability *= mean / (i + 1);
		sum += probability;
	}
	for (unsigned cell = 0; cell < 1u << SL_POISSON_GUIDE_BITS; cell++) {
		uint32_t first = cell << (32 - SL_POISSON_GUIDE_BITS);
		uint32_t last = first | (UINT32_MAX >> SL_POISSON_GUIDE_BITS);

		while (n + 1 < SL_POISSON_STEPS && first > poisson->step[n])
			n++;
		poisson->guide[cell] = (uint8_t)(n | (last > poisson->step[n] ? 0x80 : 0));
	}
}

double sl_poisson_any(double mean, uint64_t bits, const float *normal)
{
	double u = sl_uniform(bits), probability, sum, n = 0;

	if (mean >= SL_POISSON_MEAN_MAX) {
		n = mean + __builtin_sqrt(mean) * normal[bits >> 48];
		return n > 0 ? (double)(int64_t)(n + 0.5) : 0;
	}
	probability = sl_exp(-mean);
	for (sum = probability; u >= sum && n < SL_POISSON_STEPS; sum += probability) {
		n++;
		probability *= mean / n;
	}
	return n;
}
