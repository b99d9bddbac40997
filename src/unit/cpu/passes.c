/* passes.c - which stage runs in which pass. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "unit/cpu/passes.h"

/* Passes over tiles have even numbers here, those over frames odd ones. */
static unsigned tiles_from(unsigned pass)
{
	return (pass + 1) / 2 * 2;
}

static unsigned frames_from(unsigned pass)
{
	return pass | 1;
}

/* Tiles are cut alike through every array, so it must have one element per pixel. */
static bool has_tiles(const struct sl_chain *chain, const struct sl_shape *shape)
{
	return sl_shape_elements(shape) ==
	       sl_geometry_pixels(chain->geometry) * chain->geometry->modules;
}

static int refuse(const struct sl_chain_stage *stage, const char *why)
{
	sl_error("cpu: stage '%s' %s", stage->ops->name, why);
	return -EINVAL;
}

static int check(const struct sl_chain *chain, const struct sl_chain_stage *stage)
{
	if (!stage->ops->tile && !stage->ops->frame && !stage->ops->finish)
		return refuse(stage,
			      "does nothing: it has neither tile() nor frame() nor finish()");
	if (stage->ops->tile &&
	    (!has_tiles(chain, &stage->in) ||
	     (stage->output != SL_CHAIN_NONE && !has_tiles(chain, &stage->terms.output[0]))))
		return refuse(stage, "reads or writes an array that is not one element per pixel");
	if (!stage->ops->frame && !stage->ops->finish &&
	    stage->terms.outputs > (stage->output != SL_CHAIN_NONE))
		return refuse(stage, "adds what only frame() or finish() could write");
	return 0;
}

/* The passes that call a stage. */
struct calls {
	unsigned first; /* of tile() or frame(); UNSET: it has neither */
	unsigned last;	/* of all, finish() included */
};
enum { UNSET = 2 * SL_CHAIN_STAGES };

static void join(struct sl_cpu_pass *pass, unsigned stage)
{
	pass->stage[pass->stages++] = (unsigned char)stage;
}

/* In which pass the outputs of a stage can be read first. What its tiles wrote the next stage finds
 * in the same one; so with frames, but for what waits for finish(). */
static void note_outputs(const struct sl_chain_stage *stage, unsigned tiles, unsigned last,
			 unsigned *ready)
{
	for (uint32_t i = 0; i < stage->terms.outputs; i++) {
		int result = stage->terms.result + (int)i;

		ready[result] = result == stage->output ? tiles
				: stage->ops->finish	? last + 1
							: last;
	}
}

/* Puts the stage into its passes. `latest`: the last of all stages before it, after which finish()
 * speaks. */
static struct calls place(const struct sl_chain_stage *stage, unsigned number, unsigned there,
			  unsigned latest, struct sl_cpu_pass *all)
{
	unsigned tiles = tiles_from(there);
	unsigned frames = frames_from(stage->ops->tile ? tiles : there);
	unsigned last = stage->ops->frame ? frames : stage->ops->tile ? tiles : latest;

	if (stage->ops->tile)
		join(&all[tiles], number);
	if (stage->ops->frame)
		join(&all[frames], number);
	if (stage->ops->finish) {
		last = latest > last ? latest : last;
		all[last].finish[all[last].finishes++] = (unsigned char)number;
	}
	return (struct calls){stage->ops->tile ? tiles : stage->ops->frame ? frames : UNSET, last};
}

/* What a pass must wait for, in numbers of `all`. A finish() needs no rule: they come in order. */
static void order(const struct sl_chain_stage *stage, const struct calls *calls,
		  struct sl_cpu_pass *all)
{
	struct sl_cpu_pass *first = &all[calls->first];

	if (calls->first == UNSET)
		return;
	if (stage->ops->ordered == SL_ORDER_PARTS)
		first->learns |= !first->frames;
	else if (stage->ops->ordered && first->after < (int)calls->last)
		first->after = (int)calls->last;
}

/* Passes with nothing in them are left out, and numbers of passes follow. */
static void close_up(const struct sl_cpu_pass *all, struct sl_cpu_passes *passes)
{
	int number[UNSET];

	memset(passes, 0, sizeof(*passes));
	for (unsigned p = 0; p < UNSET; p++) {
		number[p] = (int)passes->n;
		if (all[p].stages || all[p].finishes)
			passes->pass[passes->n++] = all[p];
	}
	for (unsigned p = 0; p < passes->n; p++)
		if (passes->pass[p].after >= 0)
			passes->pass[p].after = number[passes->pass[p].after];
	if (!passes->n)
		passes->pass[passes->n++].after = -1;
}

int sl_cpu_passes_make(const struct sl_chain *chain, struct sl_cpu_passes *passes)
{
	struct sl_cpu_pass all[UNSET + 1] = {{0}};
	unsigned ready[SL_RESULTS] = {0}, latest = 0;

	for (unsigned p = 0; p < UNSET; p++) {
		all[p].frames = p & 1;
		all[p].after = -1;
	}
	for (unsigned s = 0; s < chain->stages; s++) {
		const struct sl_chain_stage *stage = &chain->stage[s];
		unsigned there = stage->input == SL_CHAIN_RAW ? 0 : ready[stage->input];
		struct calls calls;
		int err = check(chain, stage);

		if (err)
			return err;
		calls = place(stage, s, there, latest, all);
		order(stage, &calls, all);
		note_outputs(stage, tiles_from(there), calls.last, ready);
		latest = calls.last > latest ? calls.last : latest;
	}
	close_up(all, passes);
	return 0;
}
