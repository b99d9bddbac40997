/* signals.c - one flag, set by a handler. */
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "cmd/signals.h"

enum { TOGETHER_MS = 300 };

_Atomic int sl_signal, sl_signal_again, sl_front_end_ended;

static volatile int takes_two; /* before the end */
static struct timespec last;

/* timeout(1) sends its signal to the process and again to its group: twice at once is one wish. */
static int just_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now); /* safe in a handler */
	return (now.tv_sec - last.tv_sec) * 1000 + (now.tv_nsec - last.tv_nsec) / 1000000 <
	       TOGETHER_MS;
}

static void handle(int number)
{
	if (!sl_signal) {
		clock_gettime(CLOCK_MONOTONIC, &last);
		sl_signal = number;
	} else if (just_now()) {
		return;
	} else if (takes_two && !sl_signal_again) {
		clock_gettime(CLOCK_MONOTONIC, &last);
		sl_signal_again = number;
	} else {
		_exit(130);
	}
}

static void note_end(int number)
{
	sl_front_end_ended = number;
}

void sl_signals_catch(void)
{
	/* No SA_RESTART: a wait in progress returns and its loop looks at the flag. */
	struct sigaction action = {.sa_handler = handle},
			 end = {.sa_handler = note_end, .sa_flags = SA_RESTART};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGUSR1, &end, NULL);
}

void sl_signals_catch_twice(void)
{
	takes_two = 1;
	sl_signals_catch();
}

const char *sl_signal_name(int number)
{
	return number == SIGINT ? "SIGINT" : number == SIGTERM ? "SIGTERM" : NULL;
}
