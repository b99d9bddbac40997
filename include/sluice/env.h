/* env.h - what the pipeline hands to stages, units and sinks: the things that they share but do not
 * own.
 *
 * Threads:   read-only once the run has started.
 * Ownership: the pipeline's; valid from an add-on's open to the end of its close. */
#ifndef SLUICE_ENV_H
#define SLUICE_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/detector.h>
#include <sluice/feedback.h>
#include <sluice/frame.h>
#include <sluice/goniometer.h>
#include <sluice/outcome.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a stage knows once for all frames: positions of bins, masks; or of the run as a whole. */
struct sl_constant {
	struct sl_shape shape;
	const void *data;
	int at_end; /* 1: what the data are is known when sinks are closed, and not before */
};

/* A change of metadata during the run. Texts are cut to 127 bytes; "": not set. */
struct sl_env_metadata_change {
	uint64_t unix_ns;
	const char *key, *from, *to;
};

/* Points of a scan, in the order in which a client reported them: which frames belong to which
 * point. Columns of n rows each. */
struct sl_env_points {
	uint64_t n;
	const uint64_t *first, *frames; /* sequence of the first one; how many */
	const uint64_t *unix_ns;	/* when the point was reported */
	uint32_t values;		/* columns of numbers, as motor positions */
	const char *const *name;	/* [values] */
	const double *const *value;	/* [values][n]; NaN: that point has none */
};

/* What users say of a run (sample, proposal): at most 64 keys of 63 characters, with values of
 * 1023 bytes. They may change until a sink closes. */
struct sl_env_metadata {
	void (*each)(void *arg, void (*one)(void *to, const char *key, const char *value),
		     void *to);
	void *arg;
	/* The last 128 changes since the run began, in their order; returns how many before them
	 * are left out. NULL: changes are not kept. */
	uint64_t (*changes)(void *arg,
			    void (*one)(void *to, const struct sl_env_metadata_change *change),
			    void *to);
	/* The points of the scan so far. NULL: points are not kept. */
	void (*points)(void *arg, void (*all)(void *to, const struct sl_env_points *points),
		       void *to);
};

/* A detector whose parts attach to events: its pixels are the result of its name, and the result
 * NAME_frame says which frame of it belongs to the event (-1: none). */
struct sl_env_detector {
	const char *name;
	const struct sl_geometry *geometry;
	uint32_t first_module; /* its views follow those of the detectors before it */
};

struct sl_env {
	const struct sl_geometry *geometry;
	const struct sl_calibration *calibration; /* NULL: the detector has none */
	const struct sl_detector *detector;	  /* this process's own copy, for its truth */
	void *detector_state;
	const struct sl_shape *result; /* [results]: what the chain of stages adds to each frame */
	uint32_t results;
	const struct sl_constant *constant; /* [constants]: of all stages; for sinks */
	uint32_t constants;
	uint32_t batch_frames; /* most frames in a batch */
	uint32_t pool_frames;  /* that can be under way behind the ring; 0: not known */
	const char *link, *guard, *proof;
	const char *experiment; /* the file as it was read, with overrides: stored with the run */
	double frame_rate_Hz;
	/* The hop EMIT is of this host's clock, too. May change when a front end comes: ask
	 * sl_env_same_clock(). NULL: it is not. */
	const bool *same_clock;
	const struct sl_feedback_senders
		*feedback; /* ways back to the front end; NULL: there are none */
	const struct sl_env_metadata *metadata; /* NULL: there are none */
	const struct sl_goniometer *goniometer; /* NULL: the sample does not turn */
	uint64_t frames; /* of the run, after the dark ones that begin it; 0: not known */
	/* Of the experiment file, without folder and ending; ".TRANSFER" follows where it has
	 * transfers. For sinks. NULL: not known. */
	const char *name;
	/* Wall clock when the run began, of one that is written once more out of a recording; 0:
	 * now. */
	uint64_t began_unix_ns;
	const struct sl_env_detector *other; /* [others]: besides the one that defines events */
	uint32_t others;
};

/* Modules of all detectors. */
static inline uint32_t sl_env_modules(const struct sl_env *env)
{
	uint32_t modules = env->geometry->modules;

	for (uint32_t i = 0; i < env->others; i++)
		modules += env->other[i].geometry->modules;
	return modules;
}

static inline bool sl_env_same_clock(const struct sl_env *env)
{
	return env->same_clock && __atomic_load_n(env->same_clock, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif

#endif
