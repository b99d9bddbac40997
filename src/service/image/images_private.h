/* images_private.h - the service's side of image processes, between its files: images.c has the
 * thread and the calls, spawn.c processes, calls.c what comes from them. */
#ifndef SL_SERVICE_IMAGE_IMAGES_PRIVATE_H
#define SL_SERVICE_IMAGE_IMAGES_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/thread.h"
#include "service/image/images.h"

struct sl_image_child {	  /* an image process */
	char session[64]; /* "": this place is free */
	pid_t pid;	  /* 0: there is none now */
	int control;	  /* -1: closed */
	uint64_t started_ns, answered_ns, not_before_ns;
	unsigned failures; /* starts in a row that answered nothing */
};

enum { SL_IMAGE_SERVICE_DYING = 32 };
struct sl_image_dying {	  /* a process that has ended, or will at once: to be reaped */
	pid_t pid;	  /* 0: none */
	char session[64]; /* for a message */
};

struct sl_image_call {
	struct sl_image_call *next;
	char session[64], query[SL_IMAGE_QUERY_BYTES];
	uint64_t until_ns;
	sl_image_done *done;
	void *arg;
	/* Once it is under way: */
	struct sl_image_child *child;
	uint64_t started_ns; /* of the process that was asked: there may be another by now */
	int fd;		     /* -1: not sent yet */
	unsigned tries;
	struct sl_image_head head;
	size_t got; /* of head and body together */
	uint8_t *body;
};

struct sl_image_service {
	struct sl_image_service_options options;
	char program[1024];
	struct sl_thread thread;
	int bell; /* eventfd */
	pthread_mutex_t lock;
	struct sl_image_call *inbox; /* with `lock` held, newest first */
	unsigned calls;		     /* with `lock` held: in the inbox and under way */
	bool ends;		     /* likewise */
	uint64_t started;	     /* likewise */
	_Atomic uint64_t bytes;	     /* of bodies */
	/* The thread's; `child` is changed with `lock` held. */
	struct sl_image_call *call; /* under way */
	struct sl_image_child child[SL_IMAGE_SERVICE_PROCESSES];
	struct sl_image_dying dying[SL_IMAGE_SERVICE_DYING];
};

/* spawn.c */
struct sl_image_refusal {
	unsigned status;
	const char *why;
};
/* The process of a session, started if need be; or NULL. */
struct sl_image_child *sl_image_child_of(struct sl_image_service *images, const char *session,
					 struct sl_image_refusal *refusal);
/* It has ended, or is to end now: killed if it must. */
void sl_image_child_gone(struct sl_image_service *images, struct sl_image_child *child, bool kills);
/* Reap those that have ended. */
void sl_image_children_reap(struct sl_image_service *images);
void sl_image_children_end(struct sl_image_service *images);

/* calls.c */
/* Send it to its process. 0; or an answer was given, and the call is gone: -1. */
int sl_image_call_begin(struct sl_image_service *images, struct sl_image_call *call);
/* What can be read. As above. */
int sl_image_call_read(struct sl_image_service *images, struct sl_image_call *call);
/* 503: "busy", 404: "not_found". The call is gone. */
void sl_image_call_fail(struct sl_image_service *images, struct sl_image_call *call,
			unsigned status, const char *why);
uint8_t *sl_image_body_make(struct sl_image_service *images, size_t bytes);

#endif
