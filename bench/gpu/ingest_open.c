/* ingest_open.c - rows ingest/...: frames of the scene cut into five modules, the stages,
 * the unit, and the rings. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/gpu/ingest.h"

enum { BRIGHT = 10 }; /* photons: the threshold of `veto` */

/* The scene's frames, cut into modules of whole rows. */
static int cut(struct sl_ingest *g, const struct sl_bench_scene *scene)
{
	struct sl_geometry *geometry = &g->scene.geometry;
	uint64_t module_pixels;

	g->scene = *scene;
	g->scene.frames = g->terms.buffers; /* whatever the scene has */
	g->drawn = scene->frames;
	geometry->modules = SL_INGEST_SOURCES;
	geometry->rows /= SL_INGEST_SOURCES;
	module_pixels = (uint64_t)geometry->rows * geometry->columns;
	g->module_bytes = geometry->module_bytes = module_pixels * sizeof(uint16_t);
	if (geometry->dtype != SL_U16 || !module_pixels || g->module_bytes % 64) {
		sl_error("ingest: modules of %" PRIu64 " bytes are not lines of 64",
			 g->module_bytes);
		return -EINVAL;
	}
	sl_layout_resolve(geometry, &geometry->layout);
	g->mask = malloc(scene->pixels);
	if (!g->mask)
		return -ENOMEM;
	memcpy(g->mask, scene->mask, scene->pixels);
	for (unsigned m = 0; m < SL_INGEST_SOURCES; m++)
		memset(g->mask + m * module_pixels, 1, SL_INGEST_PIXELS);
	g->scene.calibration.mask = g->mask;
	return 0;
}

/* What `veto` must count in resident frames; where stamps are, pixels are masked. */
static uint32_t count_bright(const struct sl_ingest *g, uint32_t frame)
{
	const int16_t *image = g->scene.image + frame * g->scene.pixels;
	uint64_t pixels = SL_INGEST_SOURCES * g->module_bytes / sizeof(uint16_t);
	uint32_t n = 0;

	for (uint64_t i = 0; i < pixels; i++)
		n += image[i] >= BRIGHT && !g->mask[i];
	return n;
}

static void note_results(struct sl_ingest *g)
{
	const struct sl_chain *chain = &g->s.build.chain;

	g->checksum = -1;
	for (uint32_t i = 0; i < g->s.build.results; i++) {
		g->counted[i] = true;
		if (!strcmp(g->s.build.result[i].name, SL_INGEST_CHECKSUM)) {
			g->checksum = (int)i;
			g->counted[i] = false;
		}
	}
	for (unsigned s = 0; s < chain->stages; s++)
		if (chain->stage[s].unread && chain->stage[s].output >= 0)
			g->counted[chain->stage[s].output] = false;
}

/* Frame b is what is in buffer b of all rings. */
static int open_frames(struct sl_ingest *g)
{
	uint32_t buffers = g->terms.buffers;

	g->batch = calloc(buffers, sizeof(*g->batch));
	g->seen_ns = calloc(buffers, sizeof(*g->seen_ns));
	g->bright = calloc(buffers, sizeof(*g->bright));
	if (!g->batch || !g->seen_ns || !g->bright)
		return -ENOMEM;
	note_results(g);
	if (g->checksum < 0)
		return -EINVAL;
	for (uint32_t b = 0; b < buffers; b++) {
		for (unsigned m = 0; m < SL_INGEST_SOURCES; m++)
			g->s.line[b]->view[m].pixels.host = (uint8_t *)g->pixels.host +
							    ((uint64_t)b * SL_INGEST_SOURCES + m) *
								    g->module_bytes;
		g->bright[b] = b < g->drawn ? count_bright(g, b) : g->bright[b % g->drawn];
	}
	return 0;
}

int sl_ingest_open(struct sl_ingest *g, const struct sl_ingest_terms *terms,
		   const struct sl_bench_row *row, const struct sl_bench_scene *scene,
		   struct sl_device *device)
{
	int err;

	memset(g, 0, sizeof(*g));
	g->terms = *terms;
	g->device = device;
	g->vectors = sl_vectors_choose(SL_VECTORS_AUTO);
	err = cut(g, scene);
	if (!err)
		err = sl_bench_subject_open(&g->s, row, &g->scene);
	if (!err && row->platform)
		err = sl_bench_unit_open(&g->s, row->platform->name, NULL, 0);
	if (!err && g->s.unit->know)
		g->s.unit->know(g->s.unit_state, g->s.pool.results.base, g->s.pool.results.bytes);
	if (!err)
		err = sl_ingest_pixels_open(g);
	for (unsigned i = 0; i < SL_INGEST_SOURCES && !err; i++)
		err = sl_ingest_source_open(g, i);
	return err ? err : open_frames(g);
}

void sl_ingest_close(struct sl_ingest *g)
{
	sl_bench_subject_close(&g->s);
	for (unsigned i = 0; i < SL_INGEST_SOURCES; i++)
		sl_ingest_source_close(&g->source[i]);
	sl_ingest_pixels_close(g);
	free(g->batch);
	free(g->seen_ns);
	free(g->bright);
	free(g->mask);
}
