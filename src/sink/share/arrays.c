/* arrays.c - results of a frame as arrays of a share. */
#include "sink/share/arrays.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "share/layout.h"
#include "sink/row.h"

_Static_assert((int)SL_NAME_BYTES <= (int)sizeof(((struct sl_share_array *)0)->name), "names fit");
_Static_assert((int)SL_RANK <= (int)SL_SHARE_RANK, "shapes fit");
_Static_assert(SL_SHARE_ARRAYS <= 64, "note.absent has a bit for each");

static const char *type_of(enum sl_dtype dtype)
{
	static const char *const types[] = {
		[SL_U8] = "|u1",  [SL_U16] = "<u2", [SL_U32] = "<u4", [SL_I16] = "<i2",
		[SL_I32] = "<i4", [SL_F32] = "<f4", [SL_I64] = "<i8", [SL_F64] = "<f8"};

	return types[dtype];
}

/* ---- which results ---- */

bool sl_shared_selects(const char *selection, const char *name)
{
	size_t length = strlen(name);

	if (!strcmp(selection, "auto"))
		return true; /* which of them is known when the sink is opened */
	if (!selection[0])
		return strcmp(name, "raw") != 0;
	for (const char *at = selection; *at;) {
		size_t n = strcspn(at, ", ");

		if (n == length && !strncmp(at, name, n))
			return true;
		at += n + (at[n] != 0);
	}
	return false;
}

const char *sl_shared_auto(const struct sl_env *env)
{
	bool makes_image = false, makes_any = false, has_raw = false;

	for (uint32_t i = 0; i < env->results; i++) {
		bool is_raw = !strcmp(env->result[i].name, "raw");

		has_raw |= is_raw;
		makes_any |= !is_raw;
		makes_image |= !is_raw && env->result[i].image;
	}
	if (!has_raw || makes_image || env->geometry->items)
		return makes_any ? "" : NULL;
	return "auto"; /* every result */
}

static bool is_result(const struct sl_env *env, const char *name, size_t length)
{
	for (uint32_t i = 0; i < env->results; i++)
		if (strlen(env->result[i].name) == length &&
		    !strncmp(env->result[i].name, name, length))
			return true;
	return false;
}

static int no_such_result(const struct sl_env *env, const char *sink, const char *name,
			  size_t length)
{
	char names[SL_RESULTS * (SL_NAME_BYTES + 2)] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < env->results; i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", i ? ", " : "",
				       env->result[i].name);
	if (env->results)
		sl_error("%s: results: no stage makes '%.*s'; these there are: %s%s", sink,
			 (int)length, name, names, is_result(env, "raw", 3) ? "" : ", raw");
	else
		sl_error("%s: results: no stage makes '%.*s': add one to stages, for example "
			 "'- correct:', or set results: raw",
			 sink, (int)length, name);
	return -EINVAL;
}

static int check_selection(const struct sl_env *env, const char *selection, const char *sink)
{
	uint32_t shared = 0;

	for (const char *at = strcmp(selection, "auto") ? selection : ""; *at;) {
		size_t n = strcspn(at, ", ");

		if (n && !is_result(env, at, n))
			return no_such_result(env, sink, at, n);
		at += n + (at[n] != 0);
	}
	for (uint32_t i = 0; i < env->results; i++)
		shared += sl_shared_selects(selection, env->result[i].name);
	if (shared)
		return 0;
	sl_error("%s: no stage makes a result that could be followed: add one to stages, for "
		 "example '- correct:', or set results: raw",
		 sink);
	return -EINVAL;
}

/* ---- arrays ---- */

struct sl_share_array *sl_shared_add(struct sl_shared *s, const char *name, enum sl_dtype dtype,
				     struct sl_shared_array from)
{
	struct sl_share_array *array = &s->share[s->arrays];

	if (s->arrays == SL_SHARE_ARRAYS)
		return NULL;
	from.dtype = dtype;
	s->array[s->arrays++] = from;
	*array = (struct sl_share_array){.rank = 1, .dim = {1}};
	snprintf(array->name, sizeof(array->name), "%s", name);
	snprintf(array->type, sizeof(array->type), "%s", type_of(dtype));
	return array;
}

int sl_shared_find(const struct sl_shared *s, const char *name)
{
	for (uint32_t i = 0; i < s->arrays; i++)
		if (!strcmp(s->share[i].name, name))
			return (int)i;
	return -1;
}

static struct sl_share_array *add(struct sl_shared *s, const char *name, enum sl_dtype dtype,
				  struct sl_shared_array from, const char *sink)
{
	struct sl_share_array *array = sl_shared_add(s, name, dtype, from);

	if (!array)
		sl_error("%s: an element has at most %d arrays; select some of the results with "
			 "results: NAME,NAME",
			 sink, SL_SHARE_ARRAYS);
	return array;
}

static const char *unit_of(const struct sl_shape *shape)
{
	if (shape->photons)
		return "photons";
	return shape->image && shape->dtype == SL_F32 ? "keV" : "";
}

/* Whether assembling changes no place: then the modules' own memory is the image. */
static int is_the_same(const struct sl_mosaic *m, uint64_t elements, bool *same)
{
	const struct sl_layout *layout = &m->geometry.layout;
	const uint32_t fill = UINT32_MAX;
	uint32_t *modules, *image;

	*same = (uint64_t)layout->rows * layout->columns == elements;
	if (!*same)
		return 0;
	modules = malloc(elements * sizeof(*modules));
	image = malloc(elements * sizeof(*image));
	for (uint64_t i = 0; modules && image && i < elements; i++)
		modules[i] = (uint32_t)i;
	if (modules && image) {
		sl_layout_assemble(&m->geometry, sizeof(*image), modules, 0, &fill, image);
		*same = !memcmp(modules, image, elements * sizeof(*image));
	}
	*same &= modules && image;
	free(modules);
	free(image);
	return *same || (modules && image) ? 0 : -ENOMEM;
}

static int assemble(struct sl_shared *s, const struct sl_env *env, const struct sl_shape *shape,
		    struct sl_share_array *array, const char *sink)
{
	struct sl_shared_array *a = &s->array[s->arrays - 1];
	bool same;
	int err;

	a->mosaic = malloc(sizeof(*a->mosaic));
	if (!a->mosaic)
		return -ENOMEM;
	err = sl_mosaic_open(a->mosaic, env, shape, sink);
	if (!err)
		err = is_the_same(a->mosaic, sl_shape_elements(shape), &same);
	if (err)
		return err;
	array->rank = 2;
	array->dim[0] = a->mosaic->geometry.layout.rows;
	array->dim[1] = a->mosaic->geometry.layout.columns;
	if (!same)
		a->from = SL_SHARED_ASSEMBLED;
	return 0;
}

static int add_result(struct sl_shared *s, const struct sl_env *env, uint32_t index, bool assembled,
		      const char *sink)
{
	const struct sl_shape *shape = &env->result[index];
	uint64_t pixels = env->geometry->modules * sl_geometry_pixels(env->geometry);
	/* Events are no image, and an image that a stage made smaller has no layout. */
	bool places = (shape->image || !strcmp(shape->name, "raw")) && !env->geometry->items &&
		      sl_shape_elements(shape) == pixels;
	struct sl_share_array *array =
		add(s, shape->name, shape->dtype,
		    (struct sl_shared_array){.from = SL_SHARED_RESULT,
					     .result = index,
					     .result_bytes = sl_shape_bytes(shape)},
		    sink);

	if (!array)
		return -EINVAL;
	array->rank = shape->rank;
	array->ragged = shape->ragged;
	memcpy(array->dim, shape->dim, shape->rank * sizeof(shape->dim[0]));
	snprintf(array->unit, sizeof(array->unit), "%s", unit_of(shape));
	return assembled && places ? assemble(s, env, shape, array, sink) : 0;
}

/* An array that no stage makes; a result of its name goes before. */
static int add_own(struct sl_shared *s, const char *name, enum sl_dtype dtype,
		   enum sl_shared_from from, uint32_t rows, bool ragged, const char *sink)
{
	struct sl_share_array *array;

	if (sl_shared_find(s, name) >= 0)
		return 0;
	array = add(s, name, dtype, (struct sl_shared_array){.from = from}, sink);
	if (!array)
		return -EINVAL;
	array->dim[0] = rows;
	array->ragged = ragged;
	if (from == SL_SHARED_EVENT_NUMBER)
		strcpy(array->type, "<u8");
	return 0;
}

static int add_events(struct sl_shared *s, uint32_t events, const char *sink)
{
	int err;

	s->events = calloc(events, sizeof(uint64_t) + sizeof(float) + sizeof(uint8_t));
	if (!s->events)
		return -ENOMEM;
	err = add_own(s, "event_number", SL_I64, SL_SHARED_EVENT_NUMBER, events, true, sink);
	if (!err)
		err = add_own(s, "event_score", SL_F32, SL_SHARED_EVENT_SCORE, events, true, sink);
	if (!err)
		err = add_own(s, "event_keep", SL_U8, SL_SHARED_EVENT_KEEP, events, true, sink);
	return err;
}

int sl_shared_open(struct sl_shared *s, const struct sl_env *env, const struct sl_shared_wish *wish)
{
	uint32_t events = env->geometry ? sl_geometry_frame_items(env->geometry) : 1;
	const char *selection = wish->selection, *sink = wish->sink;
	int err;

	if (!strcmp(selection, "auto") && sl_shared_auto(env))
		selection = sl_shared_auto(env);
	*s = (struct sl_shared){.modules = env->geometry->modules,
				.geometry = *env->geometry,
				.assembled = wish->assembled && !env->geometry->items};
	sl_layout_resolve(env->geometry, &s->geometry.layout);
	err = check_selection(env, selection, sink);
	for (uint32_t i = 0; i < env->results && !err; i++)
		if (sl_shared_selects(selection, env->result[i].name))
			err = add_result(s, env, i, wish->assembled, sink);
	if (!err && events > 1)
		err = add_events(s, events, sink);
	if (!err)
		err = add_own(s, "outcome", SL_U8, SL_SHARED_OUTCOME, s->modules, false, sink);
	if (!err && wish->facts)
		sl_shared_add_facts(s, env);
	if (err == -ENOMEM)
		sl_error("%s: no memory", sink);
	return err;
}

void sl_shared_close(struct sl_shared *s)
{
	for (uint32_t i = 0; i < s->arrays; i++)
		free(s->array[i].mosaic);
	free(s->events);
	*s = (struct sl_shared){.arrays = 0};
}

uint64_t sl_shared_bytes(const struct sl_shared *s)
{
	uint64_t all = SL_SHARE_NOTE_BYTES;

	for (uint32_t i = 0; i < s->arrays; i++) {
		uint64_t bytes = sl_dtype_bytes(s->array[i].dtype);

		for (uint32_t d = 0; d < s->share[i].rank; d++)
			bytes *= s->share[i].dim[d];
		all += bytes;
	}
	return all;
}

/* ---- a frame ---- */

void sl_shared_note(const struct sl_frame *frame, struct sl_share_note *note)
{
	struct sl_verdict verdict = sl_row_verdict(frame);

	*note = (struct sl_share_note){
		.number = frame->number,
		.timestamp = frame->timestamp,
		.missing = frame->missing,
		.score = verdict.score,
		.keep = sl_row_kept(frame) || sl_row_left_out(frame),
		.reason = verdict.reason,
		.flags = frame->flags,
		.user = {frame->sequence},
	};
}

/* What marks no measurement: the lowest number of a signed type, the highest of an unsigned one,
 * NaN. */
static void fill_with_nothing(enum sl_dtype dtype, void *to, uint64_t bytes)
{
	static const union {
		int16_t i16;
		int32_t i32;
		int64_t i64;
		float f32;
		double f64;
		uint8_t bytes[8];
	} nothing[] = {[SL_I16] = {.i16 = INT16_MIN},
		       [SL_I32] = {.i32 = INT32_MIN},
		       [SL_F32] = {.f32 = NAN},
		       [SL_I64] = {.i64 = INT64_MIN},
		       [SL_F64] = {.f64 = NAN}};
	size_t size = sl_dtype_bytes(dtype);

	if (dtype == SL_U8 || dtype == SL_U16 || dtype == SL_U32) {
		memset(to, 0xff, bytes);
		return;
	}
	for (uint64_t at = 0; at < bytes; at += size)
		memcpy((uint8_t *)to + at, nothing[dtype].bytes, size);
}

static const void *events_of(struct sl_shared *s, const struct sl_frame *frame,
			     enum sl_shared_from from, uint32_t most)
{
	uint64_t *number = s->events;
	float *score = (float *)(number + most);
	uint8_t *keep = (uint8_t *)(score + most);

	for (uint32_t i = 0; i < frame->items && i < most; i++) {
		number[i] = frame->verdict[i].number;
		score[i] = frame->verdict[i].score;
		keep[i] = frame->verdict[i].keep != 0;
	}
	return from == SL_SHARED_EVENT_NUMBER  ? (const void *)number
	       : from == SL_SHARED_EVENT_SCORE ? (const void *)score
					       : keep;
}

/* The result that array i is made of, or NULL: this frame does not have it. */
static const struct sl_array *result_of(const struct sl_shared *s, uint32_t i,
					const struct sl_frame *frame)
{
	const struct sl_shared_array *a = &s->array[i];
	const struct sl_array *result = a->result < frame->results ? &frame->result[a->result]
								   : NULL;

	return result && result->host && sl_frame_goes_on(frame) &&
			       sl_shape_bytes(&result->shape) == a->result_bytes
		       ? result
		       : NULL;
}

static uint32_t at_most(uint32_t rows, uint32_t most)
{
	return rows < most ? rows : most;
}

/* Where the bytes of an array of a result are; NULL: they are in place. */
static const void *fill_result(const struct sl_shared *s, uint32_t i, const struct sl_frame *frame,
			       struct sl_share *share, struct sl_share_note *note)
{
	const struct sl_share_array *array = &sl_share_describe(share)->array[i];
	const struct sl_array *result = result_of(s, i, frame);

	if (!result) {
		note->absent |= UINT64_C(1) << i;
		if (!array->ragged)
			fill_with_nothing(s->array[i].dtype, sl_share_at(share, i), array->bytes);
		return NULL;
	}
	if (array->ragged)
		note->rows[i] = at_most(result->rows, array->dim[0]);
	if (s->array[i].from == SL_SHARED_RESULT)
		return result->host;
	sl_mosaic_assemble(s->array[i].mosaic, result->host, frame->missing, sl_share_at(share, i));
	return NULL;
}

/* Where rows of a list lie in the image. */
static void fill_positions(const struct sl_shared *s, uint32_t i, const struct sl_frame *frame,
			   struct sl_share *share, struct sl_share_note *note)
{
	const struct sl_shared_array *a = &s->array[i];
	const struct sl_array *list = result_of(s, a->list, frame);

	note->rows[i] = note->rows[a->list];
	if (list)
		sl_shared_positions(s, list, note->rows[i], sl_share_at(share, i));
	else
		note->absent |= UINT64_C(1) << i;
}

void sl_shared_fill(struct sl_shared *s, const struct sl_frame *frame, struct sl_share *share,
		    struct sl_share_note *note, const void *from[SL_SHARE_ARRAYS])
{
	sl_share_reserve(share);
	for (uint32_t i = 0; i < s->arrays; i++) {
		enum sl_shared_from kind = s->array[i].from;

		if (kind == SL_SHARED_RESULT || kind == SL_SHARED_ASSEMBLED) {
			from[i] = fill_result(s, i, frame, share, note);
		} else if (kind == SL_SHARED_CONSTANT) {
			from[i] = s->array[i].constant;
		} else if (kind == SL_SHARED_POSITIONS) {
			fill_positions(s, i, frame, share, note);
		} else if (kind == SL_SHARED_OUTCOME) {
			sl_row_outcomes(frame, s->modules, s->outcome, s->cause);
			from[i] = s->outcome;
		} else {
			note->rows[i] = at_most(frame->items, s->share[i].dim[0]);
			from[i] = events_of(s, frame, kind, s->share[i].dim[0]);
		}
	}
}
