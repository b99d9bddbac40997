/* files.c - the files that the add-ons of an experiment read and write. */
#include "experiment/experiment.h"
#include "geometry/mask.h"

void sl_experiment_files(const struct sl_experiment *e, sl_file_each *each, void *arg)
{
	char mask[sizeof(e->geometry.mask)];

	sl_mask_path(e->geometry.mask, mask, sizeof(mask));
	if (e->geometry.file[0])
		each(arg, SL_FILE_READ, e->geometry.file);
	if (mask[0])
		each(arg, SL_FILE_READ, mask);
	if (e->generator->files)
		e->generator->files(e->generator_state, each, arg);
	for (unsigned i = 0; i < e->stages; i++)
		if (e->stage[i]->files)
			e->stage[i]->files(e->stage_state[i], each, arg);
	for (unsigned i = 0; i < e->sinks; i++)
		if (e->sink[i]->files)
			e->sink[i]->files(e->sink_state[i], each, arg);
	for (unsigned i = 0; i < e->others; i++)
		sl_experiment_files(e->other[i].experiment, each, arg);
}
