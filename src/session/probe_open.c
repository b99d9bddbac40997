/* probe_open.c - open and close an experiment, in a process that may crash. */
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "experiment/experiment.h"
#include "plugin/plugin.h"
#include "receiver/receiver.h"
#include "session/folder/folder.h"
#include "session/probe.h"

enum { ADD_ONS = 1 + SL_EXPERIMENT_STAGES + SL_EXPERIMENT_SINKS, FRAMES = 64, STACK = 64 << 10 };

/* Where the objects of the plug-ins are mapped, and their names; before anything can crash. */
static struct {
	const void *base;
	char line[1100]; /* "NAME PATH\n" */
} object[ADD_ONS];
static unsigned objects;

static void note(const void *add_on)
{
	const char *path;
	const struct sl_plugin *plugin = sl_plugin_of(add_on, &path);
	Dl_info info;

	if (!plugin || !dladdr(add_on, &info))
		return;
	object[objects].base = info.dli_fbase;
	snprintf(object[objects].line, sizeof(object[0].line), "%s %s\n", plugin->name, path);
	objects++;
}

static void note_all(const struct sl_experiment *e)
{
	note(e->generator);
	for (unsigned i = 0; i < e->stages; i++)
		note(e->stage[i]);
	for (unsigned i = 0; i < e->sinks; i++)
		note(e->sink[i]);
}

/* The innermost function of a plug-in has crashed, or what it called. */
static void name_plugin(void)
{
	void *frame[FRAMES];
	int n = backtrace(frame, FRAMES);

	for (int i = 0; i < n; i++) {
		Dl_info info;

		for (unsigned k = 0; dladdr(frame[i], &info) && k < objects; k++)
			if (object[k].base == info.dli_fbase) {
				ssize_t written = write(STDERR_FILENO, object[k].line,
							strlen(object[k].line));

				(void)written;
				return;
			}
	}
}

/* backtrace() and dladdr() are not safe in a handler; this process ends in any case, and alarm()
 * bounds its end. */
static void handle(int number)
{
	alarm(5);
	name_plugin();
	signal(number, SIG_DFL);
	raise(number);
}

static void catch_crashes(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	static char stack[STACK]; /* the other one may have overflowed */
	const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_NODEFER};
	void *frame[1];

	backtrace(frame, 1); /* loads what it needs */
	sigaltstack(&other, NULL);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

int sl_probe_run(struct sl_experiment *e, const char *folder)
{
	const char *slash = strrchr(folder, '/');
	const struct sl_run_words words = {.run = sl_run_folder_number(slash ? slash + 1 : folder),
					   .unix_ns = sl_clock_unix_ns()};
	struct sl_receiver *receiver;

	note_all(e);
	catch_crashes();
	if (!sl_experiment_place(e, folder, &words) && !sl_receiver_open(e, NULL, &receiver))
		sl_receiver_close(receiver);
	return 0;
}
