/* workspace.h - a large buffer per worker, for stages that look at whole frames.
 *
 * Model:     a worker has an entry of scratch for each frame of a batch, one after the other, and
 *            works on one frame at a time. A stage without tiles leaves nothing in them from one
 *            call to the next: so all entries together are one buffer, and what a frame needs is
 *            there once per worker, not once per frame of a batch. */
#ifndef SL_STAGE_WORKSPACE_H
#define SL_STAGE_WORKSPACE_H

#include <sluice/stage.h>

/* Asks for a buffer of so many bytes, which will not be zeroed. */
static inline void sl_workspace_ask(struct sl_stage_terms *terms, const struct sl_env *env,
				    size_t bytes)
{
	size_t frames = env->batch_frames ? env->batch_frames : 1, line = 64;

	terms->scratch_bytes = ((bytes + frames - 1) / frames + line - 1) / line * line;
	terms->stale_bytes = terms->scratch_bytes;
}

/* The buffer, from what frame() was given for frame f. */
static inline void *sl_workspace(void *scratch, size_t scratch_bytes, uint32_t f)
{
	return (char *)scratch - f * scratch_bytes;
}

#endif
