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

/* Puts the stage into its passes; the last of them. `latest`: that of all stages before it, after
 * which finish() speaks. */
static unsigned place(const struct sl_chain_stage *stage, unsigned number, unsigned there,
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
	return last;
}

int sl_cpu_passes_make(const struct sl_chain *chain, struct sl_cpu_passes *passes)
{
	struct sl_cpu_pass all[2 * SL_CHAIN_STAGES] = {{0}};
	unsigned ready[SL_RESULTS] = {0}, latest = 0;

	for (unsigned s = 0; s < chain->stages; s++) {
		const struct sl_chain_stage *stage = &chain->stage[s];
		unsigned there = stage->input == SL_CHAIN_RAW ? 0 : ready[stage->input], last;
		int err = check(chain, stage);

		if (err)
			return err;
		last = place(stage, s, there, latest, all);
		note_outputs(stage, tiles_from(there), last, ready);
		latest = last > latest ? last : latest;
	}
	memset(passes, 0, sizeof(*passes));
	for (unsigned p = 0; p < 2 * SL_CHAIN_STAGES; p++) {
		all[p].frames = p & 1;
		if (all[p].stages || all[p].finishes)
			passes->pass[passes->n++] = all[p];
	}
	if (!passes->n)
		passes->n = 1;
	return 0;
}
