/* viewers.h - requests that are under way in an image process, from their arrival to the last byte
 * of their answer.
 *
 * Threads:   the main thread's. */
#ifndef SL_SERVICE_IMAGE_VIEWERS_H
#define SL_SERVICE_IMAGE_VIEWERS_H

#include "service/image/jobs.h"
#include "service/image/process.h"
#include "service/image/watch.h"

struct sl_image_viewer {
	int fd; /* -1: none */
	enum { SL_VIEWER_WAITS, SL_VIEWER_DRAWS, SL_VIEWER_SENDS } state;
	struct sl_image_request request;
	uint64_t ticket;		  /* of the look that it waits for */
	uint64_t came_ns, until_ns;	  /* until_ns: it waits for a new element */
	uint64_t moved_ns;		  /* when it took bytes last */
	struct sl_image_job *job;	  /* of DRAWS */
	struct sl_image_payload *payload; /* of SENDS */
	struct sl_image_parts parts;
	size_t sent; /* of head, prefix, payload and suffix together */
};

struct sl_image_viewers {
	struct sl_image_follow *follow;
	struct sl_image_watch *watch; /* NULL: there is no session */
	struct sl_image_jobs *jobs;
	struct sl_image_viewer viewer[SL_IMAGE_VIEWERS];
	unsigned n; /* in use */
};

void sl_image_viewers_init(struct sl_image_viewers *viewers);
void sl_image_viewers_fini(struct sl_image_viewers *viewers);

/* A request has come; the descriptor is taken. */
void sl_image_viewers_add(struct sl_image_viewers *viewers, const char *text, size_t bytes, int fd);
/* A step of each that can take one. When something is due that no descriptor announces;
 * UINT64_MAX: nothing is. */
uint64_t sl_image_viewers_step(struct sl_image_viewers *viewers);
/* What to wait for of a viewer; and what happened. */
short sl_image_viewer_events(const struct sl_image_viewer *viewer);
void sl_image_viewer_handle(struct sl_image_viewers *viewers, struct sl_image_viewer *viewer,
			    short events);

#endif
