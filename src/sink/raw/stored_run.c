/* stored_run.c - an environment as bytes: writing. */
#include "sink/raw/stored_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sink/raw/stored_tags.h"

static void write_layout(const struct sl_geometry *g, struct sl_bytes *b)
{
	const struct sl_layout *l = &g->layout;

	sl_bytes_u32(b, l->rows);
	sl_bytes_u32(b, l->columns);
	sl_bytes_u32(b, l->asic_rows);
	sl_bytes_u32(b, l->asic_columns);
	sl_bytes_u32(b, l->gap);
	sl_bytes_f64(b, l->beam_row);
	sl_bytes_f64(b, l->beam_column);
	for (uint32_t m = 0; m < g->modules; m++) {
		sl_bytes_u32(b, l->module[m].row);
		sl_bytes_u32(b, l->module[m].column);
		sl_bytes_u32(b, l->module[m].turns);
	}
	sl_bytes_u32(b, g->planes);
	sl_bytes_put(b, g->plane, g->planes * sizeof(*g->plane));
}

static void write_geometry(const struct sl_geometry *g, struct sl_bytes *b)
{
	size_t begun = sl_bytes_begin(b, SL_TAG_GEOMETRY);

	sl_bytes_text(b, g->detector);
	sl_bytes_u32(b, g->modules);
	sl_bytes_u32(b, g->rows);
	sl_bytes_u32(b, g->columns);
	sl_bytes_u32(b, g->dtype);
	sl_bytes_u32(b, g->bit_depth);
	sl_bytes_u32(b, g->unread_rows);
	sl_bytes_u64(b, g->module_bytes);
	sl_bytes_f64(b, g->pixel_size_m);
	sl_bytes_f64(b, g->sensor_thickness_m);
	sl_bytes_f64(b, g->distance_m);
	sl_bytes_text(b, g->sensor_material);
	sl_bytes_f64(b, g->photon_energy_keV);
	sl_bytes_u32(b, g->items);
	sl_bytes_u32(b, g->items_shared);
	sl_bytes_u32(b, g->cells);
	sl_bytes_u64(b, g->first_frame);
	sl_bytes_u64(b, g->frame_step);
	sl_bytes_u64(b, g->frames);
	write_layout(g, b);
	sl_bytes_end(b, begun);
}

static void write_calibration(const struct sl_env *env, struct sl_bytes *b)
{
	const struct sl_calibration *c = env->calibration;
	const struct sl_geometry *g = env->geometry;
	size_t begun;

	if (!c)
		return;
	begun = sl_bytes_begin(b, SL_TAG_CALIBRATION);
	sl_bytes_u32(b, sl_calibration_has_gains(c));
	sl_bytes_u32(b, c->cells);
	sl_bytes_u32(b, c->measured);
	sl_bytes_u32(b, c->mask != NULL);
	if (c->mask)
		sl_bytes_put(b, c->mask, g->modules * sl_geometry_pixels(g));
	sl_bytes_end(b, begun);
}

static void write_shape(const struct sl_shape *shape, struct sl_bytes *b)
{
	sl_bytes_text(b, shape->name);
	sl_bytes_u32(b, shape->dtype);
	sl_bytes_u32(b, shape->rank);
	for (uint32_t d = 0; d < shape->rank; d++)
		sl_bytes_u32(b, shape->dim[d]);
	sl_bytes_u32(b, shape->ragged);
	sl_bytes_u32(b, shape->image);
	sl_bytes_u32(b, shape->photons);
	sl_bytes_text(b, shape->doc);
}

static void write_results(const struct sl_env *env, const struct sl_stored_choice *choice,
			  struct sl_bytes *b)
{
	size_t begun = sl_bytes_begin(b, SL_TAG_RESULTS);

	sl_bytes_u32(b, env->results);
	sl_bytes_u32(b, (uint32_t)choice->image);
	sl_bytes_u32(b, choice->all);
	for (uint32_t i = 0; i < env->results; i++)
		write_shape(&env->result[i], b);
	sl_bytes_end(b, begun);
}

static void write_constants(const struct sl_env *env, struct sl_bytes *b)
{
	size_t begun = sl_bytes_begin(b, SL_TAG_CONSTANTS);
	uint32_t n = 0;

	for (uint32_t i = 0; i < env->constants; i++)
		n += !env->constant[i].at_end;
	sl_bytes_u32(b, n);
	for (uint32_t i = 0; i < env->constants; i++) {
		const struct sl_constant *c = &env->constant[i];

		if (c->at_end)
			continue; /* this is written at the beginning */
		write_shape(&c->shape, b);
		sl_bytes_put(b, c->data, sl_shape_bytes(&c->shape));
	}
	sl_bytes_end(b, begun);
}

static void write_about(const struct sl_env *env, struct sl_bytes *b)
{
	size_t begun = sl_bytes_begin(b, SL_TAG_RUN);

	sl_bytes_text(b, env->link);
	sl_bytes_text(b, env->guard);
	sl_bytes_text(b, env->proof);
	sl_bytes_text(b, env->experiment);
	sl_bytes_text(b, env->name);
	sl_bytes_f64(b, env->frame_rate_Hz);
	sl_bytes_u64(b, env->frames);
	sl_bytes_u32(b, env->batch_frames);
	sl_bytes_u32(b, env->pool_frames);
	sl_bytes_u64(b, env->began_unix_ns);
	sl_bytes_end(b, begun);
}

static void write_goniometer(const struct sl_goniometer *g, struct sl_bytes *b)
{
	size_t begun;

	if (!g)
		return;
	begun = sl_bytes_begin(b, SL_TAG_GONIOMETER);
	sl_bytes_u64(b, g->first_frame);
	sl_bytes_u32(b, g->axes);
	for (uint32_t i = 0; i < g->axes; i++) {
		const struct sl_axis *a = &g->axis[i];

		sl_bytes_text(b, a->name);
		sl_bytes_f64(b, a->x);
		sl_bytes_f64(b, a->y);
		sl_bytes_f64(b, a->z);
		sl_bytes_f64(b, a->start_deg);
		sl_bytes_f64(b, a->increment_deg);
	}
	sl_bytes_end(b, begun);
}

struct metadata {
	struct sl_bytes *bytes;
	uint32_t pairs;
};

static void write_pair(void *to, const char *key, const char *value)
{
	struct metadata *m = to;

	if (m->pairs++ == SL_STORED_METADATA)
		return;
	sl_bytes_text(m->bytes, key);
	sl_bytes_text(m->bytes, value);
}

void sl_stored_metadata_write(const struct sl_env_metadata *metadata, struct sl_bytes *b)
{
	struct metadata all = {.bytes = b};
	size_t begun;

	if (!metadata)
		return;
	begun = sl_bytes_begin(b, SL_TAG_METADATA);
	metadata->each(metadata->arg, write_pair, &all);
	sl_bytes_end(b, begun);
}

static void write_change(void *to, const struct sl_env_metadata_change *change)
{
	struct sl_bytes *b = to;

	sl_bytes_u64(b, change->unix_ns);
	sl_bytes_text(b, change->key);
	sl_bytes_text(b, change->from);
	sl_bytes_text(b, change->to);
}

/* How many are left out is known behind them. */
void sl_stored_changes_write(const struct sl_env_metadata *metadata, struct sl_bytes *b)
{
	uint64_t left_out = 0;
	size_t begun;

	if (!metadata || !metadata->changes)
		return;
	begun = sl_bytes_begin(b, SL_TAG_CHANGES);
	sl_bytes_u64(b, left_out);
	left_out = metadata->changes(metadata->arg, write_change, b);
	if (!b->error)
		memcpy(b->data + begun, &left_out, sizeof(left_out));
	sl_bytes_end(b, begun);
}

int sl_stored_run_write(const struct sl_env *env, const struct sl_stored_choice *choice,
			struct sl_bytes *b)
{
	sl_bytes_u32(b, SL_STORED_VERSION);
	sl_bytes_u32(b, 0); /* reserved */
	write_geometry(env->geometry, b);
	write_calibration(env, b);
	write_results(env, choice, b);
	write_constants(env, b);
	write_about(env, b);
	write_goniometer(env->goniometer, b);
	sl_stored_metadata_write(env->metadata, b);
	return b->error;
}
