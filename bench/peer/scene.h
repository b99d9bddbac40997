/* scene.h - the frames that `sluice bench stage` made, for programs that are compared with its
 * stages. They use nothing of Sluice: it is files of plain numbers in a folder.
 *
 * From the environment: BENCH_SCENE, the folder; BENCH_SIZE, which of its frames, 4m or 500k;
 * BENCH_CORES, how many to use; BENCH_RECEIVER_CORE and BENCH_SENDER_CORE, which. On the command
 * line: MODE BYTES SECONDS, BYTES being those of a raw frame. */
#ifndef SL_BENCH_PEER_SCENE_H
#define SL_BENCH_PEER_SCENE_H

#include <math.h>
#include <sys/stat.h>

#include "bench/peer/peer.h"

struct scene {
	size_t pixels, frames;
	uint16_t *raw;		      /* [frames][pixels] */
	int16_t *out;		      /* [frames][pixels] */
	float *pedestal[3], *gain[3]; /* [pixels] */
	float *factor[3];	      /* photons per ADU */
	uint8_t *mask;		      /* [pixels] */
};

static inline int scene_open(const char *name, size_t *bytes)
{
	const char *folder = getenv("BENCH_SCENE"), *size = getenv("BENCH_SIZE");
	struct stat about;
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s-%s", folder ? folder : ".", size ? size : "4m", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &about) < 0)
		bench_fail(path);
	*bytes = (size_t)about.st_size;
	return fd;
}

static inline void *scene_read(const char *name, size_t *bytes)
{
	int fd = scene_open(name, bytes);
	char *memory = bench_memory(*bytes, MAP_PRIVATE);

	for (size_t at = 0; at < *bytes;) {
		ssize_t n = read(fd, memory + at, *bytes - at);

		if (n <= 0)
			bench_fail(name);
		at += (size_t)n;
	}
	close(fd);
	return memory;
}

/* The energy is that of the scenes; a masked pixel gets a factor that is no number. */
static inline void scene_load(struct scene *s, size_t frame_bytes)
{
	const double energy_keV = 12.4;
	size_t bytes;
	float *at;

	s->pixels = frame_bytes / sizeof(*s->raw);
	s->raw = scene_read("raw.u16", &bytes);
	s->frames = bytes / frame_bytes;
	s->out = bench_memory(bytes, MAP_PRIVATE);
	at = scene_read("tables", &bytes);
	if (bytes != s->pixels * 25 || !s->frames)
		bench_usage("MODE BYTES SECONDS, with the frames of BENCH_SCENE");
	for (int g = 0; g < 3; g++) {
		s->pedestal[g] = at + (size_t)g * s->pixels;
		s->gain[g] = at + (size_t)(3 + g) * s->pixels;
		s->factor[g] = bench_memory(s->pixels * sizeof(float), MAP_PRIVATE);
	}
	s->mask = (uint8_t *)(at + 6 * s->pixels);
	for (int g = 0; g < 3; g++)
		for (size_t i = 0; i < s->pixels; i++)
			s->factor[g][i] = s->mask[i] ? NAN
						     : (float)(1 / (s->gain[g][i] * energy_keV));
}

/* What rows are compared by: sum of pixel * (2 * index + 1), modulo 2^32, of the first frame. */
static inline uint32_t scene_check(const struct scene *s)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < s->pixels; i++)
		sum += (uint16_t)s->out[i] * (uint32_t)(2 * i + 1);
	return sum;
}

static inline void scene_print(double frames_per_s, size_t frame_bytes, double seconds,
			       uint32_t check)
{
	double bytes_per_s = frames_per_s * (double)frame_bytes;

	printf("{\"GB_per_s\": %.6f, \"lost\": 0, \"bytes\": %.0f, \"frame_bytes\": %zu, "
	       "\"check\": %u}\n",
	       1e-9 * bytes_per_s, bytes_per_s * seconds, frame_bytes, check);
}

#endif
