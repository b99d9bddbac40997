/* signals.c - one flag, set by a handler. */
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "cmd/signals.h"

volatile int sl_signal;

static void handle(int number)
{
	if (sl_signal)
		_exit(130);
	sl_signal = number;
}

void sl_signals_catch(void)
{
	/* No SA_RESTART: a wait in progress returns and its loop looks at the flag. */
	struct sigaction action = {.sa_handler = handle};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

const char *sl_signal_name(int number)
{
	return number == SIGINT ? "SIGINT" : number == SIGTERM ? "SIGTERM" : NULL;
}
