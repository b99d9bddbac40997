/* openmp.c - correction with OpenMP: rows shared among the cores, `omp simd` within a row,
 * frame by frame, as the thesis does it whose listing 4.4 sketches such a loop. Gains are chosen
 * by index rather than by branch, so that the compiler may make vectors of it. */
#include <omp.h>

#include "bench/peer/scene.h"

#define USAGE BENCH_PEER_USAGE("peer_openmp", "openmp")

static void correct(const struct scene *s, size_t frame, size_t width)
{
	const uint16_t *raw = s->raw + frame * s->pixels;
	int16_t *out = s->out + frame * s->pixels;
	const float *const *pedestal = (const float *const *)s->pedestal;
	const float *const *factor = (const float *const *)s->factor;

#pragma omp parallel for
	for (size_t j = 0; j < s->pixels / width; j++)
#pragma omp simd
		for (size_t i = j * width; i < (j + 1) * width; i++) {
			int code = raw[i] >> 14, g = code == 3 ? 2 : code == 1;
			float value = ((float)(raw[i] & 0x3fff) - pedestal[g][i]) * factor[g][i];
			int bad = code == 2 || raw[i] == 0xffff || raw[i] == 0x4000 || isnan(value);
			float whole = truncf(value + copysignf(0x1.fffffep-2f, value));

			whole = whole > 32766 ? 32766 : whole < -32767 ? -32767 : whole;
			out[i] = raw[i] == 0xc000 ? INT16_MAX : bad ? INT16_MIN : (int16_t)whole;
		}
}

static uint64_t run(const struct scene *s, double seconds, size_t width, double *took)
{
	double start = bench_now_s();
	uint64_t frames = 0;

	do {
		correct(s, frames++ % s->frames, width);
		*took = bench_now_s() - start;
	} while (*took < seconds);
	return frames;
}

int main(int argc, char **argv)
{
	uint64_t frames;
	struct scene s;
	double seconds, took;
	size_t bytes, width;

	if (argc != 4 || strcmp(argv[1], "openmp") != 0)
		bench_usage(USAGE);
	bytes = bench_number(argv[2], USAGE);
	seconds = bench_seconds(argv[3], USAGE);
	width = strcmp(getenv("BENCH_SIZE") ? getenv("BENCH_SIZE") : "4m", "4m") ? 1024 : 2068;
	omp_set_num_threads(2);
	scene_load(&s, bytes);
	run(&s, seconds / 4, width, &took); /* warm */
	frames = run(&s, seconds, width, &took);
	correct(&s, 0, width);
	scene_print((double)frames / took, bytes, took, scene_check(&s));
	return 0;
}
