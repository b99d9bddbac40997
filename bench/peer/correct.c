/* correct.c - what the stage `correct` is compared with: memcpy of the same bytes in and out,
 * and the loop that one would write, pixel by pixel with a branch for everything. Frame by frame,
 * each to a place of its own, as the stage's results have. */
#include "bench/peer/cores.h"
#include "bench/peer/scene.h"

#define USAGE BENCH_PEER_USAGE("peer_correct", "memcpy|scalar")

static inline int16_t to_i16(float value)
{
	if (isnan(value))
		return INT16_MIN;
	/* Faster than roundf(); the float below 0.5, or that one would be rounded up itself. */
	value = value < 0 ? value - 0x1.fffffep-2f : value + 0x1.fffffep-2f;
	return (int16_t)(value >= 32766 ? 32766 : value <= -32767 ? -32767 : value);
}

static __attribute__((noinline)) void scalar(const struct scene *s, size_t frame)
{
	const uint16_t *restrict raw = s->raw + frame * s->pixels;
	int16_t *restrict out = s->out + frame * s->pixels;
	const float *restrict p0 = s->pedestal[0], *restrict f0 = s->factor[0];
	const float *restrict p1 = s->pedestal[1], *restrict f1 = s->factor[1];
	const float *restrict p2 = s->pedestal[2], *restrict f2 = s->factor[2];

	for (size_t i = 0, n = s->pixels; i < n; i++) {
		float adu = (float)(raw[i] & 0x3fff);

		if (raw[i] == 0xc000)
			out[i] = INT16_MAX;
		else if (raw[i] == 0xffff || raw[i] == 0x4000 || raw[i] >> 14 == 2)
			out[i] = INT16_MIN;
		else if (raw[i] >> 14 == 0)
			out[i] = to_i16((adu - p0[i]) * f0[i]);
		else if (raw[i] >> 14 == 1)
			out[i] = to_i16((adu - p1[i]) * f1[i]);
		else
			out[i] = to_i16((adu - p2[i]) * f2[i]);
	}
}

static void copy(const struct scene *s, size_t frame)
{
	memcpy(s->out + frame * s->pixels, s->raw + frame * s->pixels, s->pixels * sizeof(*s->raw));
	__asm__ volatile("" : : "r"(s->out) : "memory"); /* somebody might read it */
}

static void copy_next(void *scene, uint64_t i)
{
	copy(scene, i % ((const struct scene *)scene)->frames);
}

static void scalar_next(void *scene, uint64_t i)
{
	scalar(scene, i % ((const struct scene *)scene)->frames);
}

int main(int argc, char **argv)
{
	cores_work *work;
	struct cores cores;
	struct scene scene;
	double seconds, rate;
	size_t bytes;

	if (argc != 4)
		bench_usage(USAGE);
	work = !strcmp(argv[1], "memcpy")   ? copy_next
	       : !strcmp(argv[1], "scalar") ? scalar_next
					    : NULL;
	bytes = bench_number(argv[2], USAGE);
	seconds = bench_seconds(argv[3], USAGE);
	if (!work)
		bench_usage(USAGE);
	cores_split(&cores);
	scene_load(&scene, bytes);
	rate = cores_measure(&cores, work, &scene, seconds);
	work(&scene, 0);
	scene_print(rate, bytes, seconds, scene_check(&scene));
	return 0;
}
