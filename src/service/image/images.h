/* images.h - images of live runs for the service: processes of their own that make them.
 *
 * Model:     a session that is looked at has an image process (process.h), which is started with
 *            the first request and ends a minute after the last one. A request is a text
 *            (request.h); its answer comes later, by a function, exactly once: from the process, or
 *            "busy" (503) when that has crashed twice, does not answer in time, or there is too
 *            much to do. A process that is asked and has answered nothing for `stalled_ms` is
 *            killed; the next request starts another.
 * Threads:   any thread asks, and never waits. One thread of its own talks to the processes and
 *            calls `done`, which must not block.
 * Ownership: a body belongs to the owner of `done`: sl_image_body_free(), from any thread, before
 *            sl_image_service_close().
 * Sessions:  no process is started for a session that does not live: 404. One that has ended keeps
 *            its process, and the last image, until no viewer asks for it any longer.
 * Bounds:    SL_IMAGE_SERVICE_PROCESSES sessions, SL_IMAGE_SERVICE_CALLS requests,
 *            SL_IMAGE_SERVICE_BYTES of bodies that are not freed yet; what is more is answered by
 *            "busy". */
#ifndef SL_SERVICE_IMAGE_IMAGES_H
#define SL_SERVICE_IMAGE_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/image/wire.h"

enum { SL_IMAGE_SERVICE_PROCESSES = 16, SL_IMAGE_SERVICE_CALLS = 160 };
#define SL_IMAGE_SERVICE_BYTES (UINT64_C(512) << 20)

struct sl_image_service;

struct sl_image_service_options {
	const char *program; /* that has the command image-server: this one */
	uint32_t idle_s;     /* after which a process ends; 0: 60 */
	uint32_t stalled_ms; /* without an answer: a process is killed; 0: 5000 */
};

int sl_image_service_open(const struct sl_image_service_options *options,
			  struct sl_image_service **images);
/* Answer what is under way by "busy", refuse what comes, end the processes, a second at most for
 * all of them. NULL is fine. */
void sl_image_service_end(struct sl_image_service *images);
/* The same, and free it. NULL is fine. */
void sl_image_service_close(struct sl_image_service *images);

struct sl_image_answer {
	unsigned status; /* as of HTTP */
	enum sl_image_type type;
	bool deflated;
	void *body; /* NULL: none */
	size_t bytes;
};

typedef void sl_image_done(void *arg, const struct sl_image_answer *answer);

/* 0: done() will be called, after timeout_ms at the latest, perhaps before this returns. -EBUSY,
 * -ENOMEM, -EINVAL (no name of a session, or a text that is too long): it will not. */
int sl_image_service_ask(struct sl_image_service *images, const char *session, const char *query,
			 uint32_t timeout_ms, sl_image_done *done, void *arg);

void sl_image_body_free(void *body); /* NULL is fine */

/* For tests and people: the process of a session, 0: none; how many were started. */
int sl_image_service_process_of(struct sl_image_service *images, const char *session);
uint64_t sl_image_service_started(struct sl_image_service *images);

#endif
