/* thread.c - the threads of this process: how long each ran, and how long it was kept from running
 * by others. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flight/host.h"

enum { MOST = 64 };

struct names {
	unsigned n;
	char name[MOST][SL_FLIGHT_NAME];
};

/* Two threads of one name: the second has its number behind it. */
static const char *name_of(struct sl_flight_host *h, struct names *names, const char *tid)
{
	char *text = sl_flight_file(h, "/proc/self/task/%s/comm", tid), *own;

	own = names->name[names->n];
	if (!text)
		return NULL;
	snprintf(own, SL_FLIGHT_NAME, "%.*s", (int)strcspn(text, "\n"), text);
	for (unsigned i = 0; i < names->n; i++)
		if (!strcmp(names->name[i], own))
			snprintf(own + strlen(own), SL_FLIGHT_NAME - strlen(own), "-%s", tid);
	names->n++;
	return own;
}

/* "run_ns wait_ns slices": the time on a cpu, the time ready to run and without one, and how often
 * it got one. */
static void sample_schedule(struct sl_flight_host *h, const char *tid, const char *name,
			    struct sl_series_ring *ring)
{
	char *line = sl_flight_file(h, "/proc/self/task/%s/schedstat", tid);

	if (!line)
		return;
	sl_series_put(ring, SL_SERIES_COUNTER, "ns", sl_flight_number(&line, 10), "thread.%s.run",
		      name);
	sl_series_put(ring, SL_SERIES_COUNTER, "ns", sl_flight_number(&line, 10), "thread.%s.wait",
		      name);
	sl_series_put(ring, SL_SERIES_COUNTER, "", sl_flight_number(&line, 10), "thread.%s.slices",
		      name);
}

static void sample_switches(struct sl_flight_host *h, const char *tid, const char *name,
			    struct sl_series_ring *ring)
{
	static const char *const key[] = {"voluntary_ctxt_switches:",
					  "nonvoluntary_ctxt_switches:"};
	static const char *const what[] = {"slept", "preempted"};
	char *text = sl_flight_file(h, "/proc/self/task/%s/status", tid), *line;

	while (text && (line = sl_flight_line(&text))) {
		char *word = sl_flight_word(&line);

		for (unsigned i = 0; word && i < 2; i++)
			if (!strcmp(word, key[i]))
				sl_series_put(ring, SL_SERIES_COUNTER, "",
					      sl_flight_number(&line, 10), "thread.%s.%s", name,
					      what[i]);
	}
}

void sl_flight_sample_threads(struct sl_flight_host *h, bool all, struct sl_series_ring *ring)
{
	char path[1100];
	struct names names = {0};
	struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/proc/self/task", h->root);
	folder = opendir(path);
	while (folder && names.n < MOST && (entry = readdir(folder))) {
		const char *name = entry->d_name[0] == '.' ? NULL
							   : name_of(h, &names, entry->d_name);

		if (!name)
			continue;
		sample_schedule(h, entry->d_name, name, ring);
		if (all)
			sample_switches(h, entry->d_name, name, ring);
	}
	if (folder)
		closedir(folder);
}
