/* prescale.c - keeps every Nth frame that was rejected, as a sample of what is thrown away.
 *
 * Only with such a sample can be seen, later, what the stages that reject get wrong. The frame is
 * kept with the reason `prescaled` and the score of the stage that rejected it; the result
 * "prescaled_from" says for which reason that was (0: it was not rejected), as a number of
 * /entry/sluice/frames/reason_names. Stages that come later leave that verdict as it is. Dark
 * frames are not data and stay rejected.
 *
 * Frames are counted in the order of their sequence, whatever the number of workers: the Nth, the
 * 2Nth, ... that was rejected is kept, of all of them or of those with the same reason.
 *
 * Cost: none to speak of. Its place in the chain is behind the stages whose verdicts are to be
 * sampled, and before those that look only at what is kept. */
#include <errno.h>
#include <string.h>

#include <sluice/stage.h>

enum { OVERALL, BY_REASON }; /* the choices of `count` */

struct prescale {
	uint32_t every, count;

	uint64_t rejected[SL_REASONS];
	uint32_t items;
	int result;
};

static const struct sl_option options[] = {
	SL_U32(struct prescale, every, 100, 1, 4294967295., "frames",
	       "one of so many rejected frames is kept"),
	SL_CHOICE(struct prescale, count, overall, "overall|by_reason",
		  "rejected frames together, or those of each reason apart"),
	SL_OPTION_END};

static int open_prescale(void *state, const struct sl_env *env, const struct sl_shape *in,
			 struct sl_stage_terms *terms)
{
	struct prescale *p = state;
	struct sl_shape *from = &terms->output[0];

	memset(p->rejected, 0, sizeof(p->rejected));
	p->items = sl_geometry_frame_items(env->geometry);
	p->result = terms->result;
	*from = (struct sl_shape){.name = "prescaled_from",
				  .doc = "reason for which it was rejected; 0: it was not",
				  .dtype = SL_U16,
				  .rank = p->items > 1,
				  .dim = {p->items}};
	terms->outputs = 1;
	return 0;
}

static void close_prescale(void *state)
{
}

static int again(void *state)
{
	struct prescale *p = state;

	memset(p->rejected, 0, sizeof(p->rejected));
	return 0;
}

static void sample(struct prescale *p, struct sl_verdict *verdict, uint16_t *from)
{
	uint32_t class = p->count == BY_REASON && verdict->reason < SL_REASONS ? verdict->reason
									       : 0;

	if (verdict->keep || ++p->rejected[class] % p->every)
		return;
	*from = verdict->reason;
	verdict->keep = 1;
	verdict->reason = SL_REASON_PRESCALED;
}

static void finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
	struct prescale *p = state;

	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_frame *frame = batch->frame[f];
		uint16_t *from = frame->result[p->result].host;

		memset(from, 0, p->items * sizeof(*from));
		if (frame->flags & SL_FRAME_DARK)
			continue;
		for (uint32_t i = 0; i < frame->items && i < p->items; i++)
			sample(p, &frame->verdict[i], &from[i]);
	}
}

const struct sl_stage sl_stage_prescale = {
	.name = "prescale",
	.doc = "keeps every Nth rejected frame, marked, so that the bias can be measured",
	.state_bytes = sizeof(struct prescale),
	.options = options,
	.input = "raw",
	.ordered = SL_ORDER_PARTS,
	.open = open_prescale,
	.close = close_prescale,
	.finish = finish,
	.again = again,
};
