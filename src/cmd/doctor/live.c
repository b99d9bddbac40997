/* live.c - sluice doctor --live: one short run, and what is measured of it. */
#include "cmd/doctor/live.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/run/scratch.h"
#include "core/plan.h"
#include "experiment/experiment.h"
#include "explain/load.h"
#include "net/net.h"
#include "session/child.h"
#include "session/session.h"

enum { LIMIT_MS = 60000, ROWS = 256, COLUMNS = 256, MODULES = 2, WIDEST = 4096 };

/* ---- where ---- */

/* The first address of an interface that packets can be sent to. */
static bool address_of(const char *interface, char *text, size_t bytes)
{
	struct ifaddrs *all, *i;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (i = all; i && !found; i = i->ifa_next) {
		union sl_net_address address;
		char named[SL_NET_TEXT_BYTES];
		uint8_t gid[SL_NET_GID_BYTES];

		if (strcmp(i->ifa_name, interface) || !i->ifa_addr ||
		    i->ifa_addr->sa_family != AF_INET)
			continue;
		memcpy(&address, i->ifa_addr, sizeof(address.v4));
		sl_net_gid(&address, gid);
		sl_net_format(gid, named);
		found = snprintf(text, bytes, "%s", named) < (int)bytes;
	}
	freeifaddrs(all);
	return found;
}

static int choose_address(const struct sl_live_options *o, const struct sl_experiment *e,
			  struct sl_live *live)
{
	struct sl_link_facts facts = {.listen = ""};
	union sl_net_address numeric;

	if (e)
		sl_link_facts(e->link, e->link_state, &facts);
	snprintf(live->address, sizeof(live->address), "%.*s",
		 (int)strcspn(o->address[0] ? o->address : facts.listen, ", "),
		 o->address[0] ? o->address : facts.listen);
	if (!live->address[0])
		snprintf(live->address, sizeof(live->address), "127.0.0.1");
	if (sl_net_numeric(live->address, 0, &numeric) ||
	    address_of(live->address, live->address, sizeof(live->address)))
		return 0;
	snprintf(live->error, sizeof(live->error),
		 "'%s' is no numeric address, and no interface with an IPv4 address; see: ip "
		 "-brief address",
		 o->address);
	return -EINVAL;
}

/* A UDP port that is free now: 4791 may be another receiver's. */
static unsigned free_port(const char *address)
{
	union sl_net_address at;
	socklen_t bytes = sl_net_numeric(address, 0, &at);
	int fd = socket(at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned port = 4791;

	if (fd >= 0 && !bind(fd, &at.any, bytes))
		port = sl_net_port(fd);
	if (fd >= 0)
		close(fd);
	return port;
}

/* ---- what is run ---- */

static uint32_t at_most(uint64_t value, uint32_t limit)
{
	return value < limit ? (uint32_t)value : limit;
}

/* What the experiment says of frames and link, as far as a host alone can do it. */
struct plan {
	uint32_t rows, columns, pmtu;
	bool rc, crc, credits;
	uint64_t receive_buffer; /* 0: as large as the host allows */
	double rate;
};

/* Blocks of about the same size: a detector that makes pixels as fast as possible stands in for
 * the experiment's. Links of one way know their own detectors alone, and verbs needs a NIC. */
static void follow(struct sl_experiment *e, struct plan *p, struct sl_live *live)
{
	struct sl_link_facts facts;
	struct sl_geometry g = {0};

	sl_link_facts(e->link, e->link_state, &facts);
	live->modules = e->run.modules;
	p->rate = e->run.frame_rate_Hz;
	if (!e->link->oneway && strcmp(e->link->name, "verbs") != 0) {
		snprintf(live->link, sizeof(live->link), "%s", e->link->name);
		p->pmtu = sl_experiment_pmtu(e);
		p->rc = sl_experiment_service(e) == SL_SERVICE_RC;
		p->crc = sl_experiment_crc(e);
		p->credits = facts.credits;
		p->receive_buffer = facts.sockets ? facts.receive_buffer : 0;
	}
	if (!sl_experiment_open_detector(e, &g)) {
		p->columns = g.columns < WIDEST ? g.columns : WIDEST;
		p->rows = at_most(g.module_bytes / 2 / (p->columns ? p->columns : 1), WIDEST);
	}
	e->detector->close(e->detector_state);
}

static void write_link(const struct plan *p, const struct sl_live *live, FILE *out)
{
	fprintf(out, "link: {kind: %s%s%s", live->link, p->rc ? ", service: rc" : "",
		p->crc ? ", crc: true" : "");
	if (strcmp(live->link, "shm"))
		fprintf(out, ", listen: '%s', source: '%s', port: %u, pmtu: %u%s", live->address,
			live->address, free_port(live->address), p->pmtu,
			p->credits ? "" : ", credits: false");
	if (p->receive_buffer)
		fprintf(out, ", receive_buffer: %llu", (unsigned long long)p->receive_buffer);
	fprintf(out, "}\n");
}

/* As an experiment file; NULL: no memory. */
static char *describe(const struct sl_live_options *o, struct sl_experiment *e,
		      struct sl_live *live)
{
	struct plan p = {.rows = ROWS, .columns = COLUMNS, .pmtu = 4096, .credits = true};
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	live->modules = MODULES;
	snprintf(live->link, sizeof(live->link), "udp");
	if (e)
		follow(e, &p, live);
	fprintf(out,
		"detector: {kind: pattern, modules: %u, rows: %u, columns: %u, frames: %u, "
		"frame_rate_Hz: %.17g}\n",
		live->modules, p.rows ? p.rows : 1, p.columns ? p.columns : 1, o->frames, p.rate);
	write_link(&p, live, out);
	fprintf(out,
		"control: {port: 0, wait_s: 20}\nring: {late_timeout_ms: 10000%s}\n"
		"stages: [copy]\nsinks: [verify]\nemulate: local\n",
		p.credits ? "" : ", overrun: drop_newest");
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

/* The log of the run is not the doctor's; its first error is. */
static void take_line(void *arg, enum sl_log_level level, const char *line)
{
	struct sl_live *live = arg;

	if (level == SL_LOG_ERROR && !live->error[0])
		snprintf(live->error, sizeof(live->error), "%s", line);
}

/* ---- what came of it ---- */

static uint64_t wrong_frames(const struct sl_status *s)
{
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < s->figures; i++)
		if (!strcmp(s->figure[i].name, "frames_mismatched") ||
		    !strcmp(s->figure[i].name, "frames_with_wrong_records"))
			wrong += s->figure[i].value;
	return wrong;
}

static void measure(const struct sl_status *s, uint64_t started_ns, struct sl_live *live)
{
	const struct sl_status_latency *wire = &s->latency[SL_LATENCY_WIRE];

	live->sent = sl_status_sent(s);
	live->whole = sl_status_total(s, SL_STORED);
	live->split = sl_status_total(s, SL_INCOMPLETE);
	live->lost = sl_status_total(s, SL_LOST);
	live->other = sl_status_total(s, SL_OVERRUN) + sl_status_total(s, SL_UNPROVEN) +
		      sl_status_total(s, SL_REFUSED) + sl_status_total(s, SL_UNWRITTEN);
	live->wrong = wrong_frames(s);
	live->first_frame_ms = s->first_ns > started_ns ? (double)(s->first_ns - started_ns) * 1e-6
							: 0;
	live->seconds = (double)(s->last_ns - s->first_ns) * 1e-9;
	if (live->seconds > 0) {
		live->frames_per_s = (double)s->frames / live->seconds;
		live->bytes_per_s = (double)s->pixel_bytes / live->seconds;
	}
	live->wire_p50_us = (double)wire->p50_ns * 1e-3;
	live->wire_p99_us = (double)wire->p99_ns * 1e-3;
	live->total_p99_us = (double)s->latency[SL_LATENCY_TOTAL].p99_ns * 1e-3;
}

static void explain(const char *summary, struct sl_live *live)
{
	struct sl_explanation *list = NULL;
	char why[300];
	size_t n = 0;

	if (!sl_explain_path(summary, &list, &n, why, sizeof(why)) && n == 1) {
		live->explanation = list[0];
		live->explanation.run[0] = '\0'; /* its files are removed */
		live->explained = true;
	}
	free(list);
}

static void fail(struct sl_session *session, const char *what, struct sl_live *live)
{
	struct sl_error error = {.message = ""};

	sl_session_error(session, &error);
	if (!live->error[0])
		snprintf(live->error, sizeof(live->error), "%s: %s", what, error.message);
}

/* Armed first, so that the time to the first frame is that of the frames alone. */
static void acquire(struct sl_session *session, const char *summary, struct sl_live *live)
{
	static struct sl_status status; /* too large for a stack */
	uint64_t started_ns;
	int state;

	if (sl_session_arm(session) ||
	    sl_session_wait(session, 1 << SL_STATE_ARMED, LIMIT_MS) != SL_STATE_ARMED) {
		fail(session, "the run could not begin", live);
		return;
	}
	started_ns = sl_clock_ns();
	sl_session_start(session);
	state = sl_session_wait(session, 1 << SL_STATE_ENDED, LIMIT_MS);
	if (state != SL_STATE_ENDED) {
		sl_session_abort(session, "too slow");
		sl_session_wait(session, 1 << SL_STATE_ENDED, LIMIT_MS);
		fail(session, "the run did not end", live);
		return;
	}
	sl_session_status(session, &status, sizeof(status));
	live->error[0] = '\0'; /* what was lost is in the ledger */
	measure(&status, started_ns, live);
	if (!sl_live_is_good(live))
		explain(summary, live);
}

static void run(char *text, const struct sl_scratch *scratch, struct sl_live *live)
{
	const struct sl_session_hooks hooks = {.single = true, .still = true, .quiet = true};
	char summary[sizeof(scratch->path) + 16];
	struct sl_session *session = NULL;
	struct sl_error error = {.message = ""};
	const struct sl_session_options options = {.bytes = sizeof(options),
						   .text = text,
						   .summary = summary,
						   .program = sl_child_self(),
						   .log = take_line,
						   .log_arg = live};

	snprintf(summary, sizeof(summary), "%s/summary.json", scratch->path);
	if (sl_session_open_with(&options, &hooks, &session, &error)) {
		if (!live->error[0])
			snprintf(live->error, sizeof(live->error), "%s", error.message);
		return;
	}
	acquire(session, summary, live);
	sl_session_close(session);
}

void sl_live_run(const struct sl_live_options *o, struct sl_experiment *e, struct sl_live *live)
{
	struct sl_scratch scratch;
	char *text;

	memset(live, 0, sizeof(*live));
	if (choose_address(o, e, live))
		return;
	text = describe(o, e, live);
	if (!text || sl_scratch_make(&scratch)) {
		snprintf(live->error, sizeof(live->error), "no memory, or no folder in /tmp");
	} else {
		run(text, &scratch, live);
		sl_scratch_remove(&scratch);
	}
	free(text);
}

bool sl_live_is_good(const struct sl_live *live)
{
	return !live->error[0] && live->sent && live->whole == live->sent && !live->wrong;
}
