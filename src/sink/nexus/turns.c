/* turns.c - axes as NXtransformations. */
#include "sink/nexus/turns.h"

#include <stdio.h>

#include "base/log.h"
#include "sink/nexus/account.h"

#define TRANSFORMATIONS "/entry/sample/transformations"

enum { PATH = 128 };

static struct sl_h5_series *open_angles(struct sl_h5 *file, const char *path)
{
	const struct sl_h5_shape angle = {.type = SL_H5_F64};
	struct sl_h5_series *series = NULL;

	sl_h5_series_open(file, path, &angle, SL_ACCOUNT_ROWS, &series);
	sl_h5_attribute_text(file, path, "units", "deg");
	return series;
}

static void open_axis(struct sl_turns *t, struct sl_h5 *file, uint32_t i)
{
	const struct sl_goniometer *g = t->goniometer;
	const struct sl_axis *axis = &g->axis[i];
	const double vector[3] = {axis->x, axis->y, axis->z}, origin[3] = {0};
	char path[PATH], next[PATH] = ".", end[PATH];

	snprintf(path, sizeof(path), TRANSFORMATIONS "/%s", axis->name);
	if (i + 1 < g->axes)
		snprintf(next, sizeof(next), TRANSFORMATIONS "/%s", g->axis[i + 1].name);
	t->begin[i] = open_angles(file, path);
	sl_h5_attribute_text(file, path, "transformation_type", "rotation");
	sl_h5_attribute(file, path, "vector", SL_H5_F64, 3, vector);
	sl_h5_attribute(file, path, "offset", SL_H5_F64, 3, origin);
	sl_h5_attribute_text(file, path, "offset_units", "m");
	sl_h5_attribute_text(file, path, "depends_on", next);
	if (axis->increment_deg == 0)
		return;
	snprintf(end, sizeof(end), TRANSFORMATIONS "/%s_end", axis->name);
	t->end[i] = open_angles(file, end);
	snprintf(end, sizeof(end), TRANSFORMATIONS "/%s_increment_set", axis->name);
	sl_h5_write_f64(file, end, axis->increment_deg, "deg");
}

void sl_turns_open(struct sl_turns *turns, struct sl_h5 *file, const struct sl_env *env)
{
	char path[PATH] = ".";

	*turns = (struct sl_turns){.goniometer = env->goniometer, .geometry = env->geometry};
	if (env->goniometer)
		snprintf(path, sizeof(path), TRANSFORMATIONS "/%s", env->goniometer->axis[0].name);
	sl_h5_write_text(file, "/entry/sample/depends_on", path);
	if (!env->goniometer)
		return;
	sl_h5_group(file, TRANSFORMATIONS, "NXtransformations");
	for (uint32_t i = 0; i < env->goniometer->axes; i++)
		open_axis(turns, file, i);
}

/* A detector that counts from another number on begins with sequence 0 all the same. */
void sl_turns_append(struct sl_turns *turns, const struct sl_frame *frame)
{
	const struct sl_goniometer *g = turns->goniometer;
	uint64_t number;

	if (!g)
		return;
	number = sl_geometry_frame(turns->geometry, frame->sequence);
	turns->first = turns->images ? turns->first : number;
	turns->last = number;
	turns->images++;
	for (uint32_t i = 0; i < g->axes; i++) {
		double angle = sl_axis_angle_deg(g, i, number), end;

		sl_h5_series_append(turns->begin[i], &angle);
		end = angle + g->axis[i].increment_deg;
		if (turns->end[i])
			sl_h5_series_append(turns->end[i], &end);
	}
}

void sl_turns_end(const struct sl_turns *turns, const char *path)
{
	const struct sl_goniometer *g = turns->goniometer;
	uint64_t frames = turns->last - turns->first + 1;
	bool turned = false;

	for (uint32_t i = 0; g && i < g->axes; i++)
		turned |= g->axis[i].increment_deg != 0;
	if (turned && turns->images && turns->images < frames)
		sl_warn("nexus: %s: %llu of %llu frames of a sweep were kept: their angles are "
			"right in the file, but DIALS takes the images of a sweep to be equally "
			"spaced; keep all frames (no veto, no dark frames between)",
			path, (unsigned long long)turns->images, (unsigned long long)frames);
}
