/* bench_stage_check.c - whether a row computed what it should, and the same as others: its time
 * says nothing otherwise. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/bench_stage.h"

enum { VETO = 10 }; /* the threshold of rows with a veto */

static const struct sl_array *result_of(const struct sl_bench_subject *s, uint32_t f,
					const char *name)
{
	return sl_frame_result(s->line[f], name);
}

static int wrong(const char *what, uint32_t frame)
{
	sl_error("%s of frame %u is not what a plain loop makes of it", what, frame);
	return -EBADMSG;
}

/* keV are photons but for the factor: both are rounded once, so the last bits may differ. */
static bool same_keV(const struct sl_bench_scene *s, const float *keV, const uint16_t *raw)
{
	for (uint64_t i = 0; i < s->pixels; i++) {
		unsigned g = raw[i] >> 14 == 3 ? 2 : raw[i] >> 14;
		double want = ((raw[i] & 0x3fff) - s->plane[g][i]) / (double)s->plane[3 + g][i];

		if (s->mask[i] ? !isnan(keV[i])
			       : !(fabs(keV[i] - want) <= 1e-5 * fabs(want) + 1e-3))
			return false;
	}
	return true;
}

static int check_image(const struct sl_bench_subject *s, uint32_t f)
{
	const struct sl_bench_scene *scene = s->scene;
	const struct sl_array *image = result_of(s, f, "image");
	uint64_t at = f * scene->pixels;

	if (!image)
		return 0;
	if (image->shape.dtype == SL_F32)
		return same_keV(scene, image->host, scene->raw + at) ? 0 : wrong("keV", f);
	return memcmp(image->host, scene->image + at, scene->pixels * sizeof(int16_t)) == 0
		       ? 0
		       : wrong("the image", f);
}

static int check_veto(const struct sl_bench_subject *s, uint32_t f)
{
	const struct sl_verdict *verdict = s->line[f]->verdict;
	const int16_t *image = s->scene->image + f * s->scene->pixels;
	uint64_t n = 0;

	if (verdict->reason != SL_REASON_BRIGHT_PIXELS)
		return 0;
	for (uint64_t i = 0; i < s->scene->pixels; i++)
		n += image[i] >= VETO;
	return verdict->score == (float)n ? 0 : wrong("the score", f);
}

static int keep_profile(const struct sl_bench_subject *s, const struct sl_bench_stages *stages)
{
	const struct sl_array *profile = result_of(s, 0, "profile");
	char path[256];
	FILE *file;
	bool whole;

	if (!profile || s->row->work->agree < SL_BENCH_AGREE_NO_SPLIT)
		return 0;
	sl_bench_files_profile(stages, s->row->name, path, sizeof(path));
	file = fopen(path, "wb");
	if (!file)
		return -errno;
	whole = fwrite(profile->host, sl_shape_bytes(&profile->shape), 1, file) == 1;
	return fclose(file) || !whole ? -EIO : 0;
}

int sl_bench_subject_check(const struct sl_bench_subject *s, uint32_t frames,
			   const struct sl_bench_stages *stages, struct sl_bench_sample *sample)
{
	int err = 0;

	for (uint32_t f = 0; f < frames && !err; f++) {
		err = check_image(s, f);
		if (!err)
			err = check_veto(s, f);
	}
	return err ? err : keep_profile(s, stages);
}

/* ---- between rows ---- */

void sl_bench_agree(const struct sl_bench *bench, const struct sl_bench_row *row,
		    struct sl_bench_sample *sample)
{
	const struct sl_bench_scene *scene = &bench->stages->scene[row->size];

	if (sample->why[0] || row->work->chain)
		return;
	if (row->work->agree == SL_BENCH_AGREE_IMAGE &&
	    sample->check != sl_bench_check(scene->image, scene->pixels)) {
		snprintf(sample->why, sizeof(sample->why),
			 "its photons are not those of the stage: their times say nothing");
		sample->wrong = true;
	}
}
