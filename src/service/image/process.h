/* process.h - an image process: answers what viewers of one session ask for, and may crash, stall
 * or be killed without harm to the run or the service.
 *
 * Model:     the main thread moves bytes: requests come on the control socket (wire.h), each with a
 *            stream for its answer. The follower (follow.h) has the newest element, workers
 *            (jobs.h) make payloads of it, the watch (watch.h) asks the session. A request waits
 *            for a look at the share, or with `after` for an element that the viewer does not have.
 *            What is too much is refused: more than SL_IMAGE_VIEWERS requests at a time, too many
 *            jobs or bytes, viewers that do not read.
 * Process:   at nice 10, in the batch class, and the first that the kernel kills when memory runs
 *            out. It ends with the control socket, or without requests for `idle_s`. */
#ifndef SL_SERVICE_IMAGE_PROCESS_H
#define SL_SERVICE_IMAGE_PROCESS_H

#include <stdint.h>

enum { SL_IMAGE_VIEWERS = 96 };

struct sl_image_process_options {
	const char *session; /* its name; NULL: `share` is followed */
	const char *share;   /* "share:NAME" */
	int control;	     /* SOCK_SEQPACKET; -EINVAL: it is none */
	uint32_t idle_s;     /* 0: no limit */
};

/* Until the end. 0, or -errno, logged. */
int sl_image_process(const struct sl_image_process_options *options);

#endif
