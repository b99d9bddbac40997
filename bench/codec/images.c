/* images.c - images to pack: photons, raw ADU of a detector with gain bits, and noise. */
#include <stdlib.h>
#include <string.h>

#include <sluice/random.h>

#include "bench/codec/rows.h"

enum {
	PEDESTAL = 2500, /* ADU; pixels differ by SPREAD (RMS), frames by READ_NOISE (RMS) */
	SPREAD = 300,
	READ_NOISE = 20,
	HIT_ADU = 500,	   /* the most that a hit adds */
	HITS = 20,	   /* one pixel of this many */
	SWITCHED = 500,	   /* one pixel of this many has gain bit 14 set */
	ADC_BITS = 0x3fff, /* 14 bits, and two of gain above them */
};

static uint64_t adu_of(const float *normal, uint64_t bits, uint64_t of_pixel)
{
	double adu = PEDESTAL + SPREAD * (double)normal[of_pixel & 0xffff] +
		     READ_NOISE * (double)normal[bits & 0xffff];

	if ((bits >> 16 & 0xffff) % HITS == 0)
		adu += (double)(bits >> 32 & 0xffff) * HIT_ADU / 65536;
	return ((uint64_t)adu & ADC_BITS) | ((bits >> 48) % SWITCHED == 0 ? ADC_BITS + 1u : 0);
}

void sl_bench_draw(const struct sl_bench_images *images, unsigned index, uint8_t *pixels)
{
	static float normal[SL_NORMAL_ENTRIES];
	struct sl_poisson poisson;
	uint64_t frame = sl_key(1, index), detector = sl_key(2, 0);

	sl_normal_fill(normal);
	sl_poisson_fill(&poisson, images->mean);
	for (uint64_t i = 0; i < SL_BENCH_PIXELS; i++) {
		uint64_t bits = sl_draw(frame, i), value;

		if (images->content == SL_BENCH_PHOTONS)
			value = sl_poisson_draw(&poisson, (uint32_t)bits);
		else if (images->content == SL_BENCH_ADU)
			value = adu_of(normal, bits, sl_draw(detector, i));
		else
			value = (bits & ADC_BITS) |
				((bits >> 48) % SWITCHED == 0 ? ADC_BITS + 1u : 0);
		memcpy(pixels + i * images->element, &value, images->element);
	}
}
