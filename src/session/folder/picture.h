/* picture.h - a picture of a run in its folder, for lists of runs: picture.png, of the last kept
 * frame that its share has.
 *
 * Model:     a thread follows the share of the run from when it is armed, without looking at its
 *            elements. When the run has ended, with its result written, the memory of the share is
 *            still mapped: the thread draws the picture then, at nice 10. Pictures of up to
 *            SL_SESSION_PICTURES runs are made at a time; a run that begins then has none.
 * Threads:   begin, end and fini on one thread; none of them waits, but for fini, which waits until
 *            a picture that is being made is written.
 * Errors:    logged as warnings: a run without a picture is a run all the same. */
#ifndef SL_SESSION_FOLDER_PICTURE_H
#define SL_SESSION_FOLDER_PICTURE_H

#include <pthread.h>
#include <stdbool.h>

#include <sluice/status.h>

#include "base/log.h"
#include "base/thread.h"

enum { SL_SESSION_PICTURES = 4 };

struct sl_session_picture { /* of one run; zeroed: nothing is being made */
	struct sl_thread thread;
	struct sl_log_target log;		/* of the thread */
	const struct sl_log_target *log_of_run; /* where its lines go in the end */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool busy;			 /* there is a thread */
	bool ended, done;		 /* with `lock` held: the run; the thread */
	char share[400];		 /* its URL */
	char path[SL_STATUS_PATH + 160]; /* of the picture */
};

struct sl_session_pictures { /* zeroed: none */
	struct sl_session_picture one[SL_SESSION_PICTURES];
	struct sl_session_picture *of_run; /* of the run under way; NULL: it has none */
};

/* share: "share:NAME"; path: of the picture. */
void sl_session_picture_begin(struct sl_session_pictures *pictures, const char *share,
			      const char *path);
void sl_session_picture_end(struct sl_session_pictures *pictures);
void sl_session_picture_fini(struct sl_session_pictures *pictures);

#endif
