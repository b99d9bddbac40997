/* answers_thread.h - a socket and a thread that hear answers for a front end.
 *
 * Model:     open before anything is sent; finish when all is: it waits for what is still to come,
 *            says what came, and whether each event had its one answer.
 * Threads:   open, finish and close on the control thread; sl_answers_sent() on the sender. */
#ifndef SL_PIPELINE_ANSWERS_THREAD_H
#define SL_PIPELINE_ANSWERS_THREAD_H

#include <sluice/detector.h>
#include <sluice/option.h>

#include "pipeline/answers.h"
#include "pipeline/thread.h"

struct sl_answers_options {
	char address[64]; /* empty: nobody listens */
	uint32_t port, deadline_us;
	double wait_s;
};
extern const struct sl_option sl_answers_options[];

struct sl_answers_thread {
	struct sl_answers answers;
	struct sl_answers_options options;
	int fd;
	_Atomic uint32_t stop;
	struct sl_thread thread;
};

/* For a front end that sends such frames; part: others send some of the modules. */
int sl_answers_open(const struct sl_answers_options *options, const struct sl_geometry *geometry,
		    bool part, struct sl_answers_thread **thread);

/* 0, or -EBADMSG: some events have no answer, or several, or others came. `name` begins the lines
 * that it logs. quiet: only what is wrong. */
int sl_answers_finish(struct sl_answers_thread *thread, const char *name, bool quiet);
void sl_answers_close(struct sl_answers_thread *thread);

#endif
