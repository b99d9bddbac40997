/* watch.h - what the session says of its run: which share it has, how many frames it keeps.
 *
 * Model:     a thread asks the session's status socket twice a second while viewers are there. It
 *            tells the follower the name of the share. Rates of hits are of the frames between two
 *            of its samples.
 * Threads:   any thread reads; the thread writes to `bell` when it has learned something.
 * Ownership: the caller's struct; stop joins the thread. */
#ifndef SL_SERVICE_IMAGE_WATCH_H
#define SL_SERVICE_IMAGE_WATCH_H

#include <jansson.h>

#include <sluice/client.h>

#include "service/image/follow.h"

enum { SL_IMAGE_SAMPLES = 64, SL_IMAGE_HIT_FRAMES = 1000 };

struct sl_image_sample {
	uint64_t frames, kept; /* settled; kept for what they are, and not as samples */
};

struct sl_image_news {
	bool known;	   /* it was asked */
	bool there;	   /* it answers */
	bool has_share;	   /* its run has one, or had */
	char state[16];	   /* "running", ... */
	uint64_t run;	   /* its number; 0: none */
	uint64_t asked_ns; /* when it was asked for this */
	/* Of the last frames, SL_IMAGE_HIT_FRAMES or more if there are as many. */
	uint64_t hit_frames, hits;
};

struct sl_image_watch {
	struct sl_thread thread;
	int bell;
	struct sl_image_follow *follow;
	char session[64];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ends;
	uint64_t until_ns; /* viewers are there */
	struct sl_image_news news;
	/* The thread's own: */
	struct sl_remote *remote;
	struct sl_image_sample sample[SL_IMAGE_SAMPLES];
	unsigned samples;
};

int sl_image_watch_start(struct sl_image_watch *watch, const char *session,
			 struct sl_image_follow *follow, int bell);
void sl_image_watch_stop(struct sl_image_watch *watch);
void sl_image_watch_look(struct sl_image_watch *watch, uint64_t until_ns);
void sl_image_watch_news(struct sl_image_watch *watch, struct sl_image_news *news);

/* ---- between the files ---- */

/* What a status says: news but for hits, a sample, and the share's URL on this host; "": none.
 * False: it is no status. */
bool sl_image_status_read(const json_t *status, struct sl_image_news *news,
			  struct sl_image_sample *sample, char url[SL_IMAGE_URL]);
/* Add a sample, and count hits over the last frames. */
void sl_image_count_hits(struct sl_image_watch *watch, const struct sl_image_sample *sample,
			 struct sl_image_news *news);

#endif
