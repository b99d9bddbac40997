/* words.c - what the words in the paths of a run's outputs stand for. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/metadata/metadata.h"
#include "session/private.h"

/* Receivers of one run with several transfers share its lock, and so the moment it was made. */
static uint64_t moment_of(const struct sl_session *s)
{
	struct stat st;

	if (!s->folder.number || fstat(s->folder.lock, &st))
		return s->started_unix_ns;
	return (uint64_t)st.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st.st_mtim.tv_nsec;
}

int sl_session_place_outputs(struct sl_session *s)
{
	struct sl_run_words words = {.run = s->folder.number, .unix_ns = moment_of(s)};
	char *sample = malloc(SL_METADATA_VALUE);
	int err;

	if (!sample)
		return -ENOMEM;
	sl_experiment_sample(s->experiment, sample, SL_METADATA_VALUE);
	words.sample = sample;
	err = sl_experiment_place(s->experiment, s->folder.number ? s->folder.path : NULL, &words);
	free(sample);
	return err;
}
