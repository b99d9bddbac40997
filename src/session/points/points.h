/* points.h - the points of a scan: which frames of the run belong to which one.
 *
 * Model:     a client of the status socket moves a motor, waits for frames and reports them as a
 *            point: the sequence of the first frame, how many there are, and where the motors were.
 *            Points are of the run under way; they are forgotten when the next one begins. The
 *            first point of a run says which values there are; a later point may leave some out.
 *            Sinks that write a file get all points when it closes.
 * Threads:   any; `lock` is a lock of its own, and no other is taken while it is held.
 * Bounds:    65536 points, 16 values each: 10 MB at most, taken as points come. */
#ifndef SL_SESSION_POINTS_POINTS_H
#define SL_SESSION_POINTS_POINTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/request.h"

struct sl_env_points;

enum { SL_POINTS_MOST = 65536 };

struct sl_points {
	pthread_mutex_t lock;
	bool in_run;
	uint32_t values;
	char name[SL_REQUEST_VALUES][SL_REQUEST_NAME + 1];
	uint64_t n, room;
	uint64_t *first, *frames, *unix_ns;
	double *value[SL_REQUEST_VALUES];
};

void sl_points_init(struct sl_points *points);
void sl_points_fini(struct sl_points *points);

/* From here to the end clients may report points of the run. */
void sl_points_begin(struct sl_points *points);
void sl_points_end(struct sl_points *points);

/* Report one; *number counts from 0. -EPROTO: no run is under way; -EINVAL, -E2BIG, -ENOMEM: `why`
 * says what is wrong. */
int sl_points_add(struct sl_points *points, const struct sl_request *request, uint64_t *number,
		  char *why, size_t why_bytes);

/* A copy of all of them for a function, which may take its time. */
void sl_points_all(struct sl_points *points,
		   void (*all)(void *to, const struct sl_env_points *points), void *to);

#endif
