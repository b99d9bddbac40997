/* cpu.c - cpus, interrupts, pressure, and what a cgroup withholds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host/cgroup.h"
#include "flight/host.h"

static void counter(struct sl_series_ring *ring, const char *unit, uint64_t value, const char *name)
{
	sl_series_put(ring, SL_SERIES_COUNTER, unit, value, "%s", name);
}

/* "cpu  user nice system idle iowait irq softirq steal ...", in ticks of 10 ms. */
static void sample_stat(struct sl_flight_host *h, struct sl_series_ring *ring)
{
	static const char *const names[] = {"cpu.user",	  "cpu.nice", "cpu.system",  "cpu.idle",
					    "cpu.iowait", "cpu.irq",  "cpu.softirq", "cpu.steal"};
	char *text = sl_flight_file(h, "/proc/stat"), *line;

	while (text && (line = sl_flight_line(&text))) {
		char *word = sl_flight_word(&line);

		if (!word)
			continue;
		for (unsigned i = 0; !strcmp(word, "cpu") && i < 8; i++)
			counter(ring, "ms", sl_flight_number(&line, 10) * 10, names[i]);
		if (!strcmp(word, "intr"))
			counter(ring, "", sl_flight_number(&line, 10), "interrupts");
		if (!strcmp(word, "ctxt"))
			counter(ring, "", sl_flight_number(&line, 10), "context_switches");
	}
}

/* "NET_RX: n n n ...", a column for each cpu. */
static void sample_softirqs(struct sl_flight_host *h, struct sl_series_ring *ring)
{
	char *text = sl_flight_file(h, "/proc/softirqs"), *line;

	while (text && (line = sl_flight_line(&text))) {
		char *name = sl_flight_word(&line), *word;
		uint64_t sum = 0;

		if (!name || name[strlen(name) - 1] != ':')
			continue;
		name[strlen(name) - 1] = '\0';
		while ((word = sl_flight_word(&line)))
			sum += strtoull(word, NULL, 10);
		sl_series_put(ring, SL_SERIES_COUNTER, "", sum, "softirq.%s", name);
	}
}

/* A line for each cpu: processed, dropped, squeezed, ..., hexadecimal. */
static void sample_softnet(struct sl_flight_host *h, struct sl_series_ring *ring)
{
	char *text = sl_flight_file(h, "/proc/net/softnet_stat"), *line;
	uint64_t sum[3] = {0};

	if (!text)
		return;
	while ((line = sl_flight_line(&text)))
		for (unsigned i = 0; i < 3; i++)
			sum[i] += sl_flight_number(&line, 16);
	counter(ring, "", sum[0], "softnet.processed");
	counter(ring, "", sum[1], "softnet.dropped");
	counter(ring, "", sum[2], "softnet.squeezed");
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", in microseconds. */
static void sample_pressure(struct sl_flight_host *h, struct sl_series_ring *ring)
{
	static const char *const what[] = {"cpu", "io", "memory"};

	for (unsigned i = 0; i < 3; i++) {
		char *text = sl_flight_file(h, "/proc/pressure/%s", what[i]), *line;

		while (text && (line = sl_flight_line(&text))) {
			char *total = strstr(line, "total="), *word = sl_flight_word(&line);

			if (total && word)
				sl_series_put(ring, SL_SERIES_COUNTER, "us",
					      strtoull(total + 6, NULL, 10), "pressure.%s.%s",
					      what[i], word);
		}
	}
}

struct throttled {
	uint64_t times, us;
	bool known;
};

static void add_throttled(struct sl_flight_host *h, const char *mount, const char *group,
			  struct throttled *sum)
{
	char *text = sl_flight_file(h, "%s%s/cpu.stat", mount, strcmp(group, "/") ? group : "");
	char *line;

	while (text && (line = sl_flight_line(&text))) {
		char *key = sl_flight_word(&line);

		if (!key || (strcmp(key, "nr_throttled") && strcmp(key, "throttled_usec") &&
			     strcmp(key, "throttled_time")))
			continue;
		sum->known = true;
		if (key[0] == 'n')
			sum->times += sl_flight_number(&line, 10);
		else if (!strcmp(key, "throttled_usec"))
			sum->us += sl_flight_number(&line, 10);
		else
			sum->us += sl_flight_number(&line, 10) / 1000;
	}
}

/* Its cgroup and all above it: each may have a quota. */
static void sample_cgroup(struct sl_flight_host *h, struct sl_series_ring *ring)
{
	static const char *const mount[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/cpu"};
	struct throttled sum = {0};

	for (unsigned i = 0; i < 2; i++) {
		char group[SL_CGROUP_PATH];

		snprintf(group, sizeof(group), "%s", h->cgroup[i]);
		while (group[0]) {
			add_throttled(h, mount[i], group, &sum);
			if (!strcmp(group, "/"))
				break;
			sl_cgroup_go_up(group);
		}
	}
	if (!sum.known)
		return;
	counter(ring, "", sum.times, "cgroup.throttled");
	counter(ring, "us", sum.us, "cgroup.throttled_us");
}

void sl_flight_sample_cpus(struct sl_flight_host *h, bool all, struct sl_series_ring *ring)
{
	sample_softnet(h, ring);
	sample_pressure(h, ring);
	sample_cgroup(h, ring);
	if (!all)
		return;
	sample_stat(h, ring);
	sample_softirqs(h, ring);
}
