/* trig.c - series, where they end soon. */
#include "detector/trig.h"

#include <math.h>

#include <sluice/random.h>

static const double TAU = 6.283185307179586476925;

/* At most an eighth of a turn: eleven terms leave less than the last bit. */
static void series(double x, double *cosine, double *sine)
{
	double square = x * x, c = 1, s = x;

	*cosine = 1;
	*sine = x;
	for (int i = 1; i <= 10; i++) {
		c *= -square / ((2 * i - 1) * (2 * i));
		s *= -square / ((2 * i) * (2 * i + 1));
		*cosine += c;
		*sine += s;
	}
}

void sl_cos_sin(double turns, double *cosine, double *sine)
{
	double quarter = floor(4 * turns + 0.5), c, s;

	series((turns - quarter / 4) * TAU, &c, &s);
	switch ((long long)quarter & 3) {
	case 0:
		*cosine = c;
		*sine = s;
		break;
	case 1:
		*cosine = -s;
		*sine = c;
		break;
	case 2:
		*cosine = -c;
		*sine = -s;
		break;
	default:
		*cosine = s;
		*sine = -c;
		break;
	}
}

/* Newton's method on the sine, from the first terms of the series. */
double sl_asin(double x)
{
	double angle = x + x * x * x / 6, c, s;

	for (int i = 0; i < 6; i++) {
		sl_cos_sin(angle / TAU, &c, &s);
		angle -= (s - x) / c;
	}
	return angle;
}

double sl_sinh(double x)
{
	double e = sl_exp(x);

	return (e - 1 / e) / 2;
}
