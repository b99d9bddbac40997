/* follow.h - the newest element of a share, from run to run, copied when somebody wants to look.
 *
 * Model:     a thread follows the share of a name that may change. It copies nothing unless it is
 *            asked to look: sl_image_follow_look() says until when new elements are wanted, and
 *            returns a ticket; once `answered` has reached it, what `current` returns was the
 *            newest element at the time of that call, or later. A share that has ended stays the
 *            one whose newest element is shown until there is another one of its name.
 * Ids:       an element's id rises from run to run. It is its number in the share as long as this
 *            rises by itself.
 * Threads:   any thread asks. The thread writes to `bell` (an eventfd) when there is something new.
 * Ownership: the caller's struct; stop joins the thread.
 * Cost:      a copy of the arrays that are wanted, at most 50 times a second. The run's writer
 *            notices nothing of it. */
#ifndef SL_SERVICE_IMAGE_FOLLOW_H
#define SL_SERVICE_IMAGE_FOLLOW_H

#include <pthread.h>

#include "base/thread.h"
#include "service/image/element.h"

enum { SL_IMAGE_URL = 400 };

struct sl_image_facts {		  /* of the share, as it was looked at last */
	bool known;		  /* a name was given, and it was looked for */
	bool over;		  /* it has ended, or its writer has crashed */
	uint64_t share, since_ns; /* its number, from 1; when it was found */
	uint64_t published;
	double rate_Hz; /* of elements; below 0: not known */
};

struct sl_image_follow {
	struct sl_thread thread;
	int bell;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* With `lock` held: */
	char name[SL_IMAGE_URL];
	bool named, ends;
	uint64_t asked, answered;	     /* tickets */
	uint64_t until_ns;		     /* new elements are wanted */
	uint64_t wanted_ns[SL_SHARE_ARRAYS]; /* when an array was */
	struct sl_image_element *current;    /* NULL: none yet */
	struct sl_image_facts facts;
	int error; /* why an element was not copied: -EFBIG, -ENOMEM; 0 */

	/* The thread's own: */
	struct sl_image_pool pool;
	struct sl_follower *follower; /* NULL: none yet */
	bool over;
	char attached[SL_IMAGE_URL]; /* the name that the follower has */
	uint64_t share;		     /* its number */
	uint64_t base, next_id;	     /* id of its element 0; of the next element, at least */
	uint64_t tried_ns, looked_ns, sampled_ns, sample;
	struct sl_follow_element newest; /* that was seen */
	bool has_newest;
};

int sl_image_follow_start(struct sl_image_follow *follow, int bell);
void sl_image_follow_stop(struct sl_image_follow *follow);

/* Follow this share from now on: "share:NAME". */
void sl_image_follow_name(struct sl_image_follow *follow, const char *name);

uint64_t sl_image_follow_look(struct sl_image_follow *follow, uint64_t until_ns);
/* `array` of the element's description is wanted, too, for the next ten seconds. */
void sl_image_follow_want(struct sl_image_follow *follow, unsigned array);

struct sl_image_view {			  /* one moment */
	struct sl_image_element *element; /* a reference of the caller's; NULL: none yet */
	uint64_t answered;
	struct sl_image_facts facts;
	int error;
};
void sl_image_follow_view(struct sl_image_follow *follow, struct sl_image_view *view);

#endif
