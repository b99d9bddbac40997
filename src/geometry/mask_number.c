/* mask_number.c - a number of a file: 0, a label, or neither. */
#include <math.h>
#include <string.h>

#include "geometry/mask.h"

uint32_t sl_mask_number_of(double number)
{
	if (isnan(number))
		return SL_MASK_NAN;
	if (!(number >= 0) || number > SL_LABEL_MOST || number != floor(number))
		return SL_MASK_OTHER;
	return (uint32_t)number; /* minus zero is zero */
}

static double half_of(uint64_t bits)
{
	int exponent = (int)(bits >> 10 & 0x1f);
	double fraction = (double)(bits & 0x3ff) / 1024, value;

	if (exponent == 0x1f)
		value = fraction != 0 ? (double)NAN : (double)INFINITY;
	else
		value = exponent ? ldexp(1 + fraction, exponent - 15) : ldexp(fraction, -14);
	return bits & 0x8000 ? -value : value;
}

static double real_of(uint64_t bits, uint32_t size)
{
	uint32_t low = (uint32_t)bits;
	double number;
	float single;

	if (size == 2)
		return half_of(bits);
	memcpy(&single, &low, sizeof(single));
	memcpy(&number, &bits, sizeof(number));
	return size == 4 ? (double)single : number;
}

uint32_t sl_mask_number(const struct sl_mask_numbers *numbers, const uint8_t *at)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < numbers->size && i < sizeof(bits); i++)
		bits |= (uint64_t)at[numbers->big_endian ? numbers->size - 1 - i : i] << (8 * i);
	if (numbers->real)
		return sl_mask_number_of(real_of(bits, numbers->size));
	if (bits > SL_LABEL_MOST || (numbers->has_sign && bits >> (8 * numbers->size - 1)))
		return SL_MASK_OTHER;
	return (uint32_t)bits;
}
