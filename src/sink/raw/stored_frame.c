/* stored_frame.c - frames as bytes. */
#include "sink/raw/stored_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 8, IMAGE_ALIGN = 64, HOPS = 8 };

/* As it lies in the file; records and verdicts are stored as they lie in memory, too. */
struct head {
	uint64_t sequence, number, timestamp, missing;
	uint64_t hop_ns[HOPS];
	uint32_t flags, views, items, results;
};

struct stored_view {
	struct sl_record record;
	uint64_t sequence;
	uint16_t module;
	uint8_t outcome, cause;
	uint32_t packets_arrived;
};

struct stored_result {
	uint32_t stored, rows; /* rows: of a ragged one */
	uint64_t bytes;
};

_Static_assert(sizeof(struct head) == 112 && sizeof(struct stored_view) == 80 &&
		       sizeof(struct stored_result) == 16 && sizeof(struct sl_verdict) == 24,
	       "no padding in the file");
_Static_assert((int)SL_HOPS <= (int)HOPS, "hops fit");

static size_t head_bytes(uint32_t views, uint32_t items, uint32_t results)
{
	return sizeof(struct head) + views * sizeof(struct stored_view) +
	       (size_t)items * sizeof(struct sl_verdict) + results * sizeof(struct stored_result);
}

static uint64_t aligned(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) / to * to;
}

int sl_frame_room_open(struct sl_frame_room *room, const struct sl_env *env)
{
	*room = (struct sl_frame_room){.views = env->geometry->modules,
				       .items = sl_geometry_frame_items(env->geometry)};
	room->head_bytes = head_bytes(room->views, room->items, env->results);
	room->head = malloc(room->head_bytes);
	room->view = calloc(room->views, sizeof(*room->view));
	room->verdict = calloc(room->items, sizeof(*room->verdict));
	return room->head && room->view && room->verdict ? 0 : -ENOMEM;
}

void sl_frame_room_close(struct sl_frame_room *room)
{
	free(room->head);
	free(room->view);
	free(room->verdict);
	*room = (struct sl_frame_room){.head = NULL};
}

uint64_t sl_stored_frame_most(const struct sl_env *env, const struct sl_stored_choice *choice)
{
	uint64_t bytes = head_bytes(env->geometry->modules, sl_geometry_frame_items(env->geometry),
				    env->results);

	for (uint32_t i = 0; i < env->results; i++)
		if (!env->result[i].image || (int32_t)i == choice->image)
			bytes = aligned(bytes, IMAGE_ALIGN) + sl_shape_bytes(&env->result[i]);
	return bytes;
}

/* ---- writing ---- */

static uint64_t bytes_of(const struct sl_array *array)
{
	const struct sl_shape *shape = &array->shape;
	uint64_t bytes = sl_shape_bytes(shape);
	uint32_t rows = shape->rank && array->rows < shape->dim[0] ? array->rows : shape->dim[0];

	return shape->ragged && shape->dim[0] ? bytes / shape->dim[0] * rows : bytes;
}

static uint8_t *write_views(const struct sl_frame *frame, uint32_t views, uint8_t *at)
{
	for (uint32_t i = 0; i < views; i++) {
		const struct sl_view *view = &frame->view[i];
		const struct stored_view stored = {.record = view->record,
						   .sequence = view->sequence,
						   .module = view->module,
						   .outcome = view->outcome,
						   .cause = view->cause,
						   .packets_arrived = view->packets_arrived};

		memcpy(at, &stored, sizeof(stored));
		at += sizeof(stored);
	}
	return at;
}

struct parts {
	struct iovec *part;
	unsigned n;
	uint64_t bytes;
};

static void add_part(struct parts *p, const void *data, uint64_t bytes, uint64_t align)
{
	static const uint8_t zeros[IMAGE_ALIGN];
	uint64_t gap = aligned(p->bytes, align) - p->bytes;

	if (gap)
		p->part[p->n++] =
			(struct iovec){.iov_base = (void *)(uintptr_t)zeros, .iov_len = gap};
	if (bytes)
		p->part[p->n++] =
			(struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
	p->bytes += gap + bytes;
}

/* Whether result i of a frame that went on is stored in this pass: small ones, or the image. */
static bool is_stored(const struct sl_frame *frame, const struct sl_stored_choice *choice,
		      uint32_t i, bool image)
{
	const struct sl_array *array = &frame->result[i];

	return array->host && (image ? (int32_t)i == choice->image : !array->shape.image);
}

static void add_results(const struct sl_frame *frame, const struct sl_stored_choice *choice,
			uint32_t results, bool image, struct stored_result *table,
			struct parts *parts)
{
	for (uint32_t i = 0; i < results; i++) {
		const struct sl_array *array = &frame->result[i];

		if (!is_stored(frame, choice, i, image))
			continue;
		table[i] = (struct stored_result){
			.stored = 1, .rows = array->rows, .bytes = bytes_of(array)};
		if (array->shape.ragged && array->rows > array->shape.dim[0])
			table[i].rows = array->shape.dim[0];
		add_part(parts, array->host, table[i].bytes, image ? IMAGE_ALIGN : ALIGN);
	}
}

unsigned sl_stored_frame_write(const struct sl_env *env, const struct sl_stored_choice *choice,
			       const struct sl_frame *frame, bool image, struct sl_frame_room *room,
			       struct iovec *part)
{
	uint32_t views = frame->views < room->views ? frame->views : room->views;
	uint32_t items = frame->items < room->items ? frame->items : room->items;
	bool has = sl_frame_goes_on(frame);
	uint32_t results = has && frame->results == env->results ? frame->results : 0;
	struct head head = {.sequence = frame->sequence,
			    .number = frame->number,
			    .timestamp = frame->timestamp,
			    .missing = frame->missing,
			    .flags = frame->flags,
			    .views = views,
			    .items = items,
			    .results = results};
	struct stored_result table[SL_RESULTS] = {{0}};
	struct parts parts = {.part = part};
	uint8_t *at = room->head;

	memcpy(head.hop_ns, frame->hop_ns, sizeof(frame->hop_ns));
	memcpy(at, &head, sizeof(head));
	at = write_views(frame, views, at + sizeof(head));
	memcpy(at, frame->verdict, items * sizeof(*frame->verdict));
	at += items * sizeof(*frame->verdict);
	add_part(&parts, room->head, head_bytes(views, items, results), 1);
	add_results(frame, choice, results, false, table, &parts);
	if (image)
		add_results(frame, choice, results, true, table, &parts);
	memcpy(at, table, results * sizeof(*table));
	return parts.n;
}

/* ---- back ---- */

static bool read_views(struct sl_bytes_reader *r, struct sl_frame_room *room)
{
	for (uint32_t i = 0; i < room->frame.views; i++) {
		const void *at = sl_bytes_get(r, sizeof(struct stored_view));
		struct stored_view stored;

		if (!at)
			return false;
		memcpy(&stored, at, sizeof(stored));
		if (stored.module >= room->views || stored.outcome >= SL_OUTCOMES ||
		    stored.cause >= SL_CAUSES)
			return false;
		room->view[i] = (struct sl_view){.record = stored.record,
						 .sequence = stored.sequence,
						 .module = stored.module,
						 .outcome = stored.outcome,
						 .cause = stored.cause,
						 .packets_arrived = stored.packets_arrived};
	}
	return true;
}

static bool read_verdicts(struct sl_bytes_reader *r, struct sl_frame_room *room)
{
	size_t bytes = room->frame.items * sizeof(*room->verdict);
	const void *at = sl_bytes_get(r, bytes);

	if (!at)
		return false;
	if (bytes)
		memcpy(room->verdict, at, bytes);
	for (uint32_t i = 0; i < room->frame.items; i++)
		if (room->verdict[i].reason >= SL_REASONS)
			return false;
	return true;
}

/* `begin`: of the frame's bytes, which results are aligned to. */
static bool read_data(struct sl_bytes_reader *r, const uint8_t *begin, uint64_t align,
		      const struct stored_result *stored, struct sl_array *array)
{
	uint64_t at = (uint64_t)(r->at - begin);

	array->rows = stored->rows;
	if (stored->bytes != bytes_of(array) ||
	    (array->shape.ragged && stored->rows > array->shape.dim[0]))
		return false;
	sl_bytes_get(r, aligned(at, align) - at);
	array->host = (void *)(uintptr_t)sl_bytes_get(r, stored->bytes);
	return array->host != NULL;
}

static bool read_results(struct sl_bytes_reader *r, const uint8_t *begin, const struct sl_env *env,
			 const struct sl_stored_choice *choice, struct sl_frame *frame)
{
	struct stored_result table[SL_RESULTS];
	const void *at = sl_bytes_get(r, frame->results * sizeof(*table));
	bool whole = at != NULL;

	if (at)
		memcpy(table, at, frame->results * sizeof(*table));
	for (uint32_t i = 0; i < frame->results && whole; i++) {
		frame->result[i] = (struct sl_array){.shape = env->result[i]};
		/* Sinks count on every small one. */
		if (!env->result[i].image)
			whole = table[i].stored &&
				read_data(r, begin, ALIGN, &table[i], &frame->result[i]);
	}
	for (uint32_t i = 0; i < frame->results && whole; i++)
		if (table[i].stored && env->result[i].image)
			whole = (int32_t)i == choice->image &&
				read_data(r, begin, IMAGE_ALIGN, &table[i], &frame->result[i]);
	return whole && !r->left;
}

/* Earlier versions stored no image of a frame that another sink had left out, but its small
 * results: it is as if it had been left out here. */
static void forget_half(const struct sl_stored_choice *choice, struct sl_frame *frame)
{
	bool whole = choice->image < 0 || !frame->results || frame->result[choice->image].host;

	for (uint32_t i = 0; i < frame->views && !whole; i++)
		if (frame->view[i].cause == SL_CAUSE_SLOW)
			frame->results = 0;
}

int sl_stored_frame_read(const struct sl_env *env, const struct sl_stored_choice *choice,
			 const void *data, size_t bytes, struct sl_frame_room *room)
{
	struct sl_bytes_reader r = {.at = data, .left = bytes};
	struct sl_frame *frame = &room->frame;
	const void *at = sl_bytes_get(&r, sizeof(struct head));
	struct head head;

	if (!at)
		return -EBADMSG;
	memcpy(&head, at, sizeof(head));
	*frame = (struct sl_frame){.sequence = head.sequence,
				   .number = head.number,
				   .timestamp = head.timestamp,
				   .missing = head.missing,
				   .flags = head.flags,
				   .views = head.views,
				   .items = head.items,
				   .results = head.results,
				   .view = room->view,
				   .verdict = room->verdict};
	memcpy(frame->hop_ns, head.hop_ns, sizeof(frame->hop_ns));
	if (head.views > room->views || head.items > room->items ||
	    /* Frames that on_slow left out have none. */
	    (head.results && (head.results != env->results || !sl_frame_goes_on(frame))) ||
	    !read_views(&r, room) || !read_verdicts(&r, room) ||
	    !read_results(&r, data, env, choice, frame))
		return -EBADMSG;
	forget_half(choice, frame);
	return 0;
}
