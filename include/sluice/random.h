/* random.h - noise that is a function of where it falls, not of who asked first.
 *
 * Model:     a counter-based generator: random bits are a hash of (key, counter), so any pixel of
 *            any frame can be drawn alone and always comes out the same. Distributions are tables.
 *            Only + - * / and square roots are used, which IEEE 754 defines to the last bit: two
 *            hosts with different mathematical libraries draw the same frames.
 * Threads:   tables are read-only once filled. */
#ifndef SLUICE_RANDOM_H
#define SLUICE_RANDOM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The finaliser of splitmix64: every input bit reaches every output bit. */
static inline uint64_t sl_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* A key under a key: fold the coordinates of a thing into one number, one call for each. */
static inline uint64_t sl_key(uint64_t key, uint64_t coordinate)
{
	return sl_mix(key ^ sl_mix(coordinate + 0x9e3779b97f4a7c15u));
}

/* Number `counter` of the sequence that belongs to the key. */
static inline uint64_t sl_draw(uint64_t key, uint64_t counter)
{
	return sl_mix(key + counter * 0x9e3779b97f4a7c15u);
}

/* Uniform in [0, 1). */
static inline double sl_uniform(uint64_t bits)
{
	return (double)(bits >> 11) * 0x1p-53;
}

double sl_exp(double x);

/* Quantiles of the normal distribution: index it with 16 random bits. Symmetric, so its mean is
 * exactly 0; reaches 4.3 sigma. */
enum { SL_NORMAL_ENTRIES = 1 << 16 };
void sl_normal_fill(float *table);

/* Poisson numbers below SL_POISSON_MEAN_MAX, from 32 random bits. The guide answers nearly all from
 * one byte; where a step of the distribution falls inside a guide cell the steps themselves decide.
 */
enum { SL_POISSON_GUIDE_BITS = 10, SL_POISSON_STEPS = 127, SL_POISSON_MEAN_MAX = 50 };
struct sl_poisson {
	uint8_t guide[1 << SL_POISSON_GUIDE_BITS]; /* the number; bit 7: look at the steps */
	uint32_t step[SL_POISSON_STEPS];	   /* the number is above i when bits > step[i] */
};
void sl_poisson_fill(struct sl_poisson *poisson, double mean);

static inline unsigned sl_poisson_draw(const struct sl_poisson *poisson, uint32_t bits)
{
	unsigned n = poisson->guide[bits >> (32 - SL_POISSON_GUIDE_BITS)];

	if (__builtin_expect(n & 0x80, 0))
		for (n &= 0x7f; n < SL_POISSON_STEPS && bits > poisson->step[n]; n++)
			;
	return n;
}

/* Poisson for any mean, slowly: exact below SL_POISSON_MEAN_MAX, above it the normal distribution
 * of that mean and variance (`normal`: the table above). */
double sl_poisson_any(double mean, uint64_t bits, const float *normal);

#ifdef __cplusplus
}
#endif

#endif
