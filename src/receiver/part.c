/* part.c - the pixels of a detector that attaches to events, as a result of its name: they outlive
 * the slot, and every sink and every later stage finds them as it finds any result.
 *
 * Cost: one copy for each event. */
#include <stdio.h>
#include <string.h>

#include "receiver/part.h"

static int open_part(void *state, const struct sl_env *env, const struct sl_shape *in,
		     struct sl_stage_terms *terms)
{
	struct sl_part_stage *p = state;
	const struct sl_geometry *g = p->detector->geometry;

	p->result = terms->result;
	terms->outputs = 2;
	terms->output[0] = (struct sl_shape){
		.dtype = g->dtype,
		.rank = 2,
		.dim = {g->modules * g->rows, g->columns},
		.doc = "pixels of this detector in the event",
	};
	terms->output[1] = (struct sl_shape){
		.dtype = SL_I64,
		.rank = 1,
		.dim = {1},
		.doc = "which frame of this detector belongs to the event; -1: none",
	};
	snprintf(terms->output[0].name, SL_NAME_BYTES, "%s", p->detector->name);
	snprintf(terms->output[1].name, SL_NAME_BYTES, "%s_frame", p->detector->name);
	return 0;
}

static void close_part(void *state)
{
}

/* As the pixels of a module that is missing: what no detector measures. */
static void fill(const struct sl_geometry *g, void *to)
{
	memset(to, SL_FILL_BYTE, g->module_bytes);
	for (uint64_t i = 0; g->dtype == SL_I16 && i < g->module_bytes / 2; i++)
		((int16_t *)to)[i] = INT16_MIN;
}

static void copy(const struct sl_geometry *g, const struct sl_array *from, uint8_t *to)
{
	uint64_t row = g->module_bytes / g->rows;

	if (!from->pitch) {
		memcpy(to, from->host, g->module_bytes);
		return;
	}
	for (uint32_t y = 0; y < g->rows; y++)
		memcpy(to + y * row, (const uint8_t *)from->host + y * from->pitch, row);
}

static void take(void *state, void *scratch, const struct sl_batch *batch, uint32_t f)
{
	const struct sl_part_stage *p = state;
	const struct sl_geometry *g = p->detector->geometry;
	struct sl_frame *frame = batch->frame[f];
	uint8_t *to = frame->result[p->result].host;
	int64_t *number = frame->result[p->result + 1].host;

	*number = -1;
	for (uint32_t i = 0; i < g->modules; i++, to += g->module_bytes) {
		uint32_t m = p->detector->first_module + i;
		const struct sl_view *view = &frame->view[m];

		if (sl_frame_misses(frame, m) || !view->pixels.host) {
			fill(g, to);
			continue;
		}
		copy(g, &view->pixels, to);
		*number = (int64_t)view->record.frame;
	}
}

const struct sl_stage sl_part_stage = {
	.name = "part",
	.doc = "keeps the pixels of another detector as a result",
	.state_bytes = sizeof(struct sl_part_stage),
	.input = "raw",
	.open = open_part,
	.close = close_part,
	.frame = take,
};
