/* check.c - whether a row computed what it should, and the same as others: its time
 * says nothing otherwise. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/stage/stage.h"

enum { CORNER = SL_BENCH_BINS / 100 };
enum { BRIGHT = 10 };		      /* the threshold of veto and sparse */
static const double TOLERANCE = 1e-5; /* of profiles */
static const float NEAR = 1;	      /* pixels from where a peak was planted */

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

	if (!image || s->row->work->unread)
		return 0;
	if (image->shape.dtype == SL_F32)
		return same_keV(scene, image->host, scene->raw + at) ? 0 : wrong("keV", f);
	return memcmp(image->host, scene->image + at, scene->pixels * sizeof(int16_t)) == 0
		       ? 0
		       : wrong("the image", f);
}

static uint32_t count_bright(const struct sl_bench_subject *s, uint32_t f)
{
	const int16_t *image = s->scene->image + f * s->scene->pixels;
	uint32_t n = 0;

	for (uint64_t i = 0; i < s->scene->pixels; i++)
		n += image[i] >= BRIGHT;
	return n;
}

static int check_veto(const struct sl_bench_subject *s, uint32_t f)
{
	const struct sl_verdict *verdict = s->line[f]->verdict;

	if (verdict->reason != SL_REASON_BRIGHT_PIXELS)
		return 0;
	return verdict->score == (float)count_bright(s, f) ? 0 : wrong("the score", f);
}

static int check_sparse(const struct sl_bench_subject *s, uint32_t f)
{
	const struct sl_array *found = result_of(s, f, "sparse_found");

	if (!found || found->shape.dtype != SL_U32 ||
	    !strstr(s->row->work->chain, "sparse:method=threshold"))
		return 0;
	return *(const uint32_t *)found->host == count_bright(s, f) ? 0 : wrong("the list", f);
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

/* How many of the planted peaks of frame 0 are in its list: module, row, column, ... */
static uint32_t count_found(const struct sl_bench_subject *s, const struct sl_array *list)
{
	const float *entry = list->host;
	uint32_t found = 0, columns = list->shape.dim[1];

	for (uint32_t p = 0; p < s->scene->peaks; p++) {
		bool near = false;

		for (uint32_t i = 0; i < list->rows && !near; i++)
			near = hypotf(entry[i * columns + 1] - s->scene->peak[p].row,
				      entry[i * columns + 2] - s->scene->peak[p].column) < NEAR;
		found += near;
	}
	return found;
}

static bool is_list(const struct sl_array *list)
{
	return list && list->shape.ragged && list->shape.dtype == SL_F32 && list->shape.rank == 2 &&
	       list->shape.dim[1] >= 3;
}

/* What it found in frame 0, for the reader of the table to judge. */
static void count(const struct sl_bench_subject *s, struct sl_bench_sample *sample)
{
	const struct sl_array *peaks = result_of(s, 0, "peaks"), *spots = result_of(s, 0, "spots");
	const struct sl_array *picked = result_of(s, 0, "sparse_found");

	if (is_list(peaks) || is_list(spots)) {
		sample->planted = s->scene->peaks;
		sample->found = count_found(s, is_list(peaks) ? peaks : spots);
	}
	if (picked && picked->shape.dtype == SL_U32)
		sample->picked = *(const uint32_t *)picked->host;
}

int sl_bench_subject_check(const struct sl_bench_subject *s, uint32_t frames,
			   const struct sl_bench_stages *stages, struct sl_bench_sample *sample)
{
	int err = 0;

	for (uint32_t f = 0; f < frames && !err; f++) {
		err = check_image(s, f);
		if (!err)
			err = check_veto(s, f);
		if (!err)
			err = check_sparse(s, f);
	}
	count(s, sample);
	return err ? err : keep_profile(s, stages);
}

/* ---- between rows ---- */

/* A profile: [3][bins], the middles of the bins, intensity, sigma. */
static bool read_profile(const struct sl_bench_stages *stages, const char *row,
			 float profile[3 * SL_BENCH_BINS])
{
	char path[256];
	FILE *file;
	bool whole;

	sl_bench_files_profile(stages, row, path, sizeof(path));
	file = fopen(path, "rb");
	if (!file)
		return false;
	whole = fread(profile, sizeof(float) * 3 * SL_BENCH_BINS, 1, file) == 1;
	fclose(file);
	return whole;
}

/* The largest relative difference of intensity or sigma. Both sides may say in their way that
 * nothing is in a bin. The last bins are not looked at: the image's corner ends there, in slivers
 * of pixels whose share pyFAI has as a difference of float32. */
static double differ(const float *a, const float *b, unsigned *bin)
{
	double most = 0;

	for (unsigned i = SL_BENCH_BINS; i < 3 * SL_BENCH_BINS; i++) {
		bool last = i % SL_BENCH_BINS >= SL_BENCH_BINS - CORNER;
		bool empty = last || (!(fabsf(a[i]) > 0) && !(fabsf(b[i]) > 0));
		double d = empty ? 0 : fabs((double)a[i] - b[i]) / fabs((double)b[i]);

		if (!(d <= most)) {
			most = d;
			*bin = i % SL_BENCH_BINS;
		}
	}
	return most;
}

/* A row of ours with each of pyFAI's that has a profile by now, and the other way around. */
static void agree_on_profile(const struct sl_bench *bench, const struct sl_bench_row *row,
			     struct sl_bench_sample *sample)
{
	float own[3 * SL_BENCH_BINS], other[3 * SL_BENCH_BINS];

	if (!read_profile(bench->stages, row->name, own))
		return;
	for (unsigned i = 0; i < bench->rows && !sample->wrong; i++) {
		const struct sl_bench_row *peer = &bench->row[i];
		unsigned bin = 0;
		double d;

		if (peer->work->agree != row->work->agree || peer->size != row->size ||
		    !peer->work->chain == !row->work->chain || peer->broken ||
		    !read_profile(bench->stages, peer->name, other))
			continue;
		d = differ(own, other, &bin);
		if (d <= TOLERANCE)
			continue;
		sample->wrong = true;
		snprintf(sample->why, sizeof(sample->why),
			 "its profile differs from that of %s by %.2g in bin %u", peer->name, d,
			 bin);
	}
}

void sl_bench_agree(const struct sl_bench *bench, const struct sl_bench_row *row,
		    struct sl_bench_sample *sample)
{
	const struct sl_bench_scene *scene = &bench->stages->scene[row->size];

	if (sample->why[0])
		return;
	if (row->work->agree >= SL_BENCH_AGREE_NO_SPLIT)
		agree_on_profile(bench, row, sample);
	if (!row->work->chain && row->work->agree == SL_BENCH_AGREE_IMAGE &&
	    sample->check != sl_bench_check(scene->image, scene->pixels)) {
		snprintf(sample->why, sizeof(sample->why),
			 "its photons are not those of the stage: their times say nothing");
		sample->wrong = true;
	}
}
