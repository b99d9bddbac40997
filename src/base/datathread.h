/* datathread.h - data threads never allocate, lock, log or format; this is how that is known.
 *
 * Model:     a thread declares itself a data thread while it works on data. What it must not call
 *            asks sl_data_thread_check() first. In the product the check does nothing; a test build
 *            links guard.c, whose check aborts and which also stands before malloc, free, the
 *            pthread locks and the printf family.
 * Threads:   the mark belongs to the calling thread.
 * Ownership: the name is borrowed until sl_data_thread_end(). */
#ifndef SL_BASE_DATATHREAD_H
#define SL_BASE_DATATHREAD_H

#include <stdbool.h>

void sl_data_thread_begin(const char *name);
void sl_data_thread_end(void);
bool sl_is_data_thread(void);
const char *sl_data_thread_name(void); /* NULL: not a data thread */

/* `what` is about to happen; a data thread must not. */
void sl_data_thread_check(const char *what);

#endif
