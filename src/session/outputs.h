/* outputs.h - the files that a run was told to write: checked before it begins, so that none takes
 * another's place and none fails only at the end. */
#ifndef SL_SESSION_OUTPUTS_H
#define SL_SESSION_OUTPUTS_H

#include <stddef.h>

struct sl_experiment;

/* No two of the n paths (NULL and "" are skipped) may be the same place. All must be writable, and
 * ordinary files if they are there; folders that are missing will be made for all but the first
 * `ours`. Logs and returns -errno. */
int sl_outputs_check(const char *const *path, size_t n, size_t ours);

/* Remove what an earlier run left there, after the check: if this run is killed, its result must
 * not be mistaken for this one's. Logs and returns -errno. */
int sl_outputs_forget(const char *path);

/* Nor may one of them be a file that is read: `input` as base/paths.h has it, or "". */
int sl_outputs_spare(const char *input, const char *const *path, size_t n);

/* All that a run of this experiment file reads and writes, before anything is opened: its own n
 * outputs, and the files of its detector, stages and sinks. */
int sl_outputs_check_run(const struct sl_experiment *experiment, const char *file,
			 const char *const *ours, size_t n);

/* None of the run's outputs may be one of these paths. */
int sl_outputs_spare_paths(const struct sl_experiment *experiment, const char *const *ours,
			   size_t n, const char *const *path, size_t paths);

#endif
