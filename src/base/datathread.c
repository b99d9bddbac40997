/* datathread.c - the mark of a data thread, and the check that does nothing. */
#include "base/datathread.h"

#include <stddef.h>

static _Thread_local const char *data_thread;

void sl_data_thread_begin(const char *name)
{
	data_thread = name;
}

void sl_data_thread_end(void)
{
	data_thread = NULL;
}

bool sl_is_data_thread(void)
{
	return data_thread != NULL;
}

const char *sl_data_thread_name(void)
{
	return data_thread;
}

/* Weak: guard.c has the strong one. */
__attribute__((weak)) void sl_data_thread_check(const char *what)
{
	(void)what;
}
