/* stored_run_read.c - an environment out of bytes that may say anything. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sink/raw/stored_run.h"
#include "sink/raw/stored_tags.h"

/* Beyond what any detector has: a file that says more is damaged. */
#define PIXELS_MOST (UINT64_C(1) << 30)
#define RESULT_MOST (UINT64_C(1) << 32)

enum { SIDE_MOST = 1 << 20, GAP_MOST = 4096, ITEMS_MOST = 1 << 24, CELLS_MOST = 1 << 16 };

static uint32_t get_below(struct sl_bytes_reader *r, uint32_t limit)
{
	uint32_t value = sl_bytes_get_u32(r);

	if (value < limit)
		return value;
	sl_bytes_bad(r);
	return 0;
}

/* Names of results, constants and axes become names in files. */
static void check_name(struct sl_bytes_reader *r, const char *name)
{
	if (!name[0] || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
		sl_bytes_bad(r);
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < ' ')
			sl_bytes_bad(r);
}

/* ---- geometry ---- */

static void read_planes(struct sl_stored_run *run, struct sl_bytes_reader *r)
{
	struct sl_geometry *g = &run->geometry;
	uint32_t planes = sl_bytes_get_u32(r);
	const void *data;
	size_t bytes = planes * sizeof(*run->plane);

	if (r->error || !planes)
		return;
	if (planes != 1 && planes != g->modules && planes != g->modules * sl_layout_pieces(g)) {
		sl_bytes_bad(r);
		return;
	}
	data = sl_bytes_get(r, bytes);
	if (!data)
		return;
	run->plane = malloc(bytes);
	if (!run->plane) {
		r->error = -ENOMEM;
		return;
	}
	memcpy(run->plane, data, bytes);
	g->plane = run->plane;
	g->planes = planes;
}

/* Where modules have places, these must make an image. */
static void check_layout(const struct sl_geometry *g, struct sl_bytes_reader *r)
{
	struct sl_geometry resolved = *g;
	char why[128];

	if (r->error)
		return;
	sl_layout_resolve(g, &resolved.layout);
	if (resolved.layout.rows > UINT32_MAX / 2 || resolved.layout.columns > SIDE_MOST ||
	    (uint64_t)resolved.layout.rows * resolved.layout.columns > 4 * PIXELS_MOST ||
	    sl_layout_check(&resolved, why, sizeof(why)))
		sl_bytes_bad(r);
}

static void read_layout(struct sl_stored_run *run, struct sl_bytes_reader *r)
{
	struct sl_geometry *g = &run->geometry;
	struct sl_layout *l = &g->layout;

	l->rows = get_below(r, SIDE_MOST);
	l->columns = get_below(r, SIDE_MOST);
	l->asic_rows = get_below(r, SIDE_MOST);
	l->asic_columns = get_below(r, SIDE_MOST);
	l->gap = get_below(r, GAP_MOST);
	l->beam_row = sl_bytes_get_f64(r);
	l->beam_column = sl_bytes_get_f64(r);
	for (uint32_t m = 0; m < g->modules && !r->error; m++) {
		l->module[m].row = get_below(r, SIDE_MOST);
		l->module[m].column = get_below(r, SIDE_MOST);
		l->module[m].turns = get_below(r, 4);
	}
	/* In image pixels a module must not be more than numbers hold. */
	if (((uint64_t)g->rows + g->columns) * (1 + l->gap) > UINT32_MAX / 128)
		sl_bytes_bad(r);
	check_layout(g, r);
	read_planes(run, r);
}

static void check_geometry(const struct sl_geometry *g, struct sl_bytes_reader *r)
{
	uint64_t pixels = sl_geometry_pixels(g);

	if (r->error || !g->modules || !g->rows || !g->columns ||
	    pixels > PIXELS_MOST / g->modules || !g->module_bytes || g->module_bytes > RESULT_MOST)
		sl_bytes_bad(r);
}

static void read_geometry(struct sl_stored_run *run, struct sl_bytes_reader *r)
{
	struct sl_geometry *g = &run->geometry;

	sl_bytes_get_name(r, g->detector, sizeof(g->detector));
	g->modules = get_below(r, SL_LAYOUT_MODULES + 1);
	g->rows = sl_bytes_get_u32(r);
	g->columns = sl_bytes_get_u32(r);
	g->dtype = (enum sl_dtype)get_below(r, SL_DTYPES);
	g->bit_depth = get_below(r, 65);
	g->unread_rows = get_below(r, SIDE_MOST);
	g->module_bytes = sl_bytes_get_u64(r);
	g->pixel_size_m = sl_bytes_get_f64(r);
	g->sensor_thickness_m = sl_bytes_get_f64(r);
	g->distance_m = sl_bytes_get_f64(r);
	sl_bytes_get_name(r, g->sensor_material, sizeof(g->sensor_material));
	g->photon_energy_keV = sl_bytes_get_f64(r);
	g->items = get_below(r, ITEMS_MOST);
	g->items_shared = get_below(r, 2);
	g->cells = get_below(r, CELLS_MOST);
	g->first_frame = sl_bytes_get_u64(r);
	g->frame_step = sl_bytes_get_u64(r);
	g->frames = sl_bytes_get_u64(r);
	check_geometry(g, r);
	if (!r->error)
		read_layout(run, r);
	run->env.geometry = g;
}

/* ---- calibration ---- */

static void read_calibration(struct sl_stored_run *run, struct sl_bytes_reader *r)
{
	static const float gain = 1; /* there are some: sinks ask no more */
	struct sl_calibration *c = &run->calibration;
	size_t bytes = run->geometry.modules * sl_geometry_pixels(&run->geometry);
	const void *mask;

	if (run->env.calibration)
		sl_bytes_bad(r); /* a second one */
	if (get_below(r, 2))
		c->gain[0] = &gain;
	c->cells = get_below(r, CELLS_MOST);
	c->measured = get_below(r, 2);
	if (get_below(r, 2)) {
		mask = sl_bytes_get(r, bytes);
		run->mask = mask ? malloc(bytes) : NULL;
		if (run->mask)
			memcpy(run->mask, mask, bytes);
		else if (mask)
			r->error = -ENOMEM;
		c->mask = run->mask;
	}
	run->env.calibration = c;
}

/* ---- results ---- */

static uint64_t checked_bytes(const struct sl_shape *shape)
{
	uint64_t bytes = sl_dtype_bytes(shape->dtype);

	for (uint32_t d = 0; d < shape->rank; d++) {
		if (!shape->dim[d] || bytes > RESULT_MOST / shape->dim[d])
			return 0;
		bytes *= shape->dim[d];
	}
	return bytes;
}

static void read_shape(struct sl_bytes_reader *r, struct sl_shape *shape)
{
	uint32_t dtype;

	sl_bytes_get_name(r, shape->name, sizeof(shape->name));
	check_name(r, shape->name);
	dtype = get_below(r, SL_F64 + 1);
	shape->dtype = (enum sl_dtype)dtype;
	shape->rank = get_below(r, SL_RANK + 1);
	for (uint32_t d = 0; d < shape->rank; d++)
		shape->dim[d] = sl_bytes_get_u32(r);
	shape->ragged = get_below(r, 2);
	shape->image = get_below(r, 2);
	shape->photons = get_below(r, 2);
	shape->doc = sl_bytes_get_text(r);
	if (dtype == SL_DTYPES || (shape->ragged && !shape->rank) ||
	    (shape->ragged && shape->image) || (!r->error && !checked_bytes(shape)))
		sl_bytes_bad(r);
}

static void read_results(struct sl_stored_run *run, struct sl_bytes_reader *r)
{
	uint32_t results = get_below(r, SL_RESULTS + 1);

	run->choice.image = (int32_t)sl_bytes_get_u32(r);
	run->choice.all = get_below(r, 2);
	if (run->choice.image < SL_STORED_NO_IMAGE || run->choice.image >= (int32_t)results ||
	    run->result)
		sl_bytes_bad(r);
	if (r->error)
		return;
	run->result = calloc(results ? results : 1, sizeof(*run->result));
	if (!run->result) {
		r->error = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < results && !r->error; i++) {
		read_shape(r, &run->result[i]);
		run->env.results = i + 1;
	}
	run->env.result = run->result;
}

static void read_constant(struct sl_bytes_reader *r, struct sl_constant *c)
{
	const void *data;
	uint64_t bytes;
	void *own;

	read_shape(r, &c->shape);
	if (r->error)
		return;
	bytes = checked_bytes(&c->shape);
	data = sl_bytes_get(r, bytes);
	own = data ? malloc(bytes) : NULL;
	if (own)
		memcpy(own, data, bytes);
	else if (!r->error)
		r->error = -ENOMEM;
	c->data = own;
}

static void read_constants(struct sl_stored_run *run, struct sl_bytes_reader *r)
{
	uint32_t constants = get_below(r, SL_RESULTS + 1);

	if (run->constant)
		sl_bytes_bad(r);
	if (r->error)
		return;
	run->constant = calloc(constants ? constants : 1, sizeof(*run->constant));
	if (!run->constant) {
		r->error = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < constants && !r->error; i++) {
		read_constant(r, &run->constant[i]);
		run->env.constants = i + 1;
	}
	run->env.constant = run->constant;
}

/* ---- the rest ---- */

static void read_about(struct sl_stored_run *run, struct sl_bytes_reader *r)
{
	if (run->link || run->guard || run->proof || run->experiment || run->name) {
		sl_bytes_bad(r);
		return;
	}
	run->env.link = run->link = sl_bytes_get_text(r);
	run->env.guard = run->guard = sl_bytes_get_text(r);
	run->env.proof = run->proof = sl_bytes_get_text(r);
	run->env.experiment = run->experiment = sl_bytes_get_text(r);
	run->env.name = run->name = sl_bytes_get_text(r);
	run->env.frame_rate_Hz = sl_bytes_get_f64(r);
	run->env.frames = sl_bytes_get_u64(r);
	run->env.batch_frames = sl_bytes_get_u32(r);
	run->env.pool_frames = sl_bytes_get_u32(r);
	run->env.began_unix_ns = sl_bytes_get_u64(r);
	if (!isfinite(run->env.frame_rate_Hz) || run->env.frame_rate_Hz < 0)
		sl_bytes_bad(r);
}

static void read_goniometer(struct sl_stored_run *run, struct sl_bytes_reader *r)
{
	struct sl_goniometer *g = &run->goniometer;

	g->first_frame = sl_bytes_get_u64(r);
	g->axes = get_below(r, SL_AXES + 1);
	for (uint32_t i = 0; i < g->axes && !r->error; i++) {
		struct sl_axis *a = &g->axis[i];

		sl_bytes_get_name(r, a->name, sizeof(a->name));
		check_name(r, a->name);
		a->x = sl_bytes_get_f64(r);
		a->y = sl_bytes_get_f64(r);
		a->z = sl_bytes_get_f64(r);
		a->start_deg = sl_bytes_get_f64(r);
		a->increment_deg = sl_bytes_get_f64(r);
	}
	run->env.goniometer = g;
}

static void free_metadata(struct sl_stored_metadata *m)
{
	for (uint32_t i = 0; i < m->pairs; i++) {
		free(m->key[i]);
		free(m->value[i]);
	}
	m->pairs = 0;
}

void sl_stored_metadata_read(struct sl_bytes_reader *r, struct sl_stored_metadata *m)
{
	free_metadata(m);
	while (r->left && !r->error) {
		uint32_t i = m->pairs;

		if (i == SL_STORED_METADATA) {
			sl_bytes_bad(r);
			return;
		}
		m->key[i] = sl_bytes_get_text(r);
		m->value[i] = sl_bytes_get_text(r);
		m->pairs++;
		if (!m->key[i] || !m->value[i])
			sl_bytes_bad(r);
		else
			check_name(r, m->key[i]);
	}
}

static void free_changes(struct sl_stored_metadata *m)
{
	for (uint32_t i = 0; i < m->changes; i++) {
		free(m->change[i].key);
		free(m->change[i].from);
		free(m->change[i].to);
	}
	free(m->change);
	m->change = NULL;
	m->changes = 0;
}

static uint64_t
changes(void *arg, void (*one)(void *to, const struct sl_env_metadata_change *change), void *to)
{
	const struct sl_stored_metadata *m = arg;

	for (uint32_t i = 0; i < m->changes; i++)
		one(to, &(struct sl_env_metadata_change){m->change[i].unix_ns, m->change[i].key,
							 m->change[i].from, m->change[i].to});
	return m->left_out;
}

static void read_change(struct sl_bytes_reader *r, struct sl_stored_change *change)
{
	change->unix_ns = sl_bytes_get_u64(r);
	change->key = sl_bytes_get_text(r);
	change->from = sl_bytes_get_text(r);
	change->to = sl_bytes_get_text(r);
	if (!change->key || !change->from || !change->to)
		sl_bytes_bad(r);
	else
		check_name(r, change->key);
}

void sl_stored_changes_read(struct sl_bytes_reader *r, struct sl_stored_run *run)
{
	struct sl_stored_metadata *m = &run->metadata;

	free_changes(m);
	m->left_out = sl_bytes_get_u64(r);
	m->change = calloc(SL_STORED_CHANGES, sizeof(*m->change));
	if (!m->change && !r->error)
		r->error = -ENOMEM;
	while (r->left && !r->error) {
		if (m->changes == SL_STORED_CHANGES)
			sl_bytes_bad(r);
		else
			read_change(r, &m->change[m->changes++]);
	}
	if (!r->error)
		run->each.changes = changes;
}

static void each(void *arg, void (*one)(void *to, const char *key, const char *value), void *to)
{
	const struct sl_stored_metadata *m = arg;

	for (uint32_t i = 0; i < m->pairs; i++)
		one(to, m->key[i], m->value[i]);
}

static void read_section(struct sl_stored_run *run, uint32_t tag, struct sl_bytes_reader *r)
{
	switch (tag) {
	case SL_TAG_CALIBRATION:
		read_calibration(run, r);
		break;
	case SL_TAG_RESULTS:
		read_results(run, r);
		break;
	case SL_TAG_CONSTANTS:
		read_constants(run, r);
		break;
	case SL_TAG_RUN:
		read_about(run, r);
		break;
	case SL_TAG_GONIOMETER:
		read_goniometer(run, r);
		break;
	case SL_TAG_METADATA:
		sl_stored_metadata_read(r, &run->metadata);
		run->env.metadata = &run->each;
		break;
	case SL_TAG_GEOMETRY:
		sl_bytes_bad(r); /* a second one */
		break;
	default:
		break; /* of a later version */
	}
}

/* The image that is stored has a pixel for each of its own. */
static int check_run(const struct sl_stored_run *run)
{
	if (!run->result || !run->env.batch_frames)
		return -EBADMSG;
	if (run->choice.image >= 0 && run->result[run->choice.image].ragged)
		return -EBADMSG;
	return 0;
}

static int read_all(struct sl_bytes_reader *r, struct sl_stored_run *run)
{
	struct sl_bytes_reader section;
	uint32_t tag;

	/* What follows is measured by the geometry. */
	if (!sl_bytes_section(r, &tag, &section) || tag != SL_TAG_GEOMETRY)
		return -EBADMSG;
	read_geometry(run, &section);
	while (!section.error && sl_bytes_section(r, &tag, &section))
		read_section(run, tag, &section);
	if (section.error || r->error)
		return section.error ? section.error : r->error;
	return check_run(run);
}

int sl_stored_run_read(const void *data, size_t bytes, struct sl_stored_run *run)
{
	struct sl_bytes_reader r = {.at = data, .left = bytes};
	uint32_t version = sl_bytes_get_u32(&r);
	int err;

	*run = (struct sl_stored_run){.each = {.each = each}};
	run->each.arg = &run->metadata;
	sl_bytes_get_u32(&r);
	if (r.error)
		return r.error;
	if (version != SL_STORED_VERSION)
		return version > SL_STORED_VERSION ? -EPROTO : -EBADMSG;
	err = read_all(&r, run);
	if (err)
		sl_stored_run_free(run);
	return err;
}

void sl_stored_run_free(struct sl_stored_run *run)
{
	for (uint32_t i = 0; i < run->env.results && run->result; i++)
		free((void *)(uintptr_t)run->result[i].doc);
	for (uint32_t i = 0; i < run->env.constants && run->constant; i++) {
		free((void *)(uintptr_t)run->constant[i].shape.doc);
		free((void *)(uintptr_t)run->constant[i].data);
	}
	free_metadata(&run->metadata);
	free_changes(&run->metadata);
	free(run->where);
	free(run->plane);
	free(run->mask);
	free(run->result);
	free(run->constant);
	free(run->link);
	free(run->guard);
	free(run->proof);
	free(run->experiment);
	free(run->name);
	*run = (struct sl_stored_run){.plane = NULL};
}
