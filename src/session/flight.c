/* flight.c - the flight recorder of a session's runs: what it is told of a run, and where its files
 * go. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sysfile.h"
#include "flight/recorder.h"
#include "net/interface.h"
#include "net/net.h"
#include "session/outputs.h"
#include "session/private.h"

/* ---- where its files go ---- */

/* Of the program that started this one, where that has the summary. */
static const char *summary_of(const struct sl_session *s)
{
	return s->hooks.flight ? s->hooks.flight : s->summary;
}

/* In the run's folder; otherwise beside the summary, with its name: "summary.flight.json" beside
 * "summary.json". False: there is neither. */
static bool name_files(const struct sl_session *s, struct sl_recorder_run *run)
{
	const char *summary = summary_of(s), *slash = strrchr(summary, '/');
	const char *name = slash ? slash + 1 : summary;
	size_t length = strlen(name);

	if (s->folder.number) {
		sl_run_folder_name(&s->folder, "flight", "json", run->json, sizeof(run->json));
		sl_run_folder_name(&s->folder, "flight", "pcapng", run->pcapng,
				   sizeof(run->pcapng));
		return true;
	}
	if (length > 5 && !strcmp(name + length - 5, ".json"))
		length -= 5;
	if (!length || length + sizeof(".flight.pcapng.part") > sizeof(run->json))
		return false;
	snprintf(run->json, sizeof(run->json), "%.*s.flight.json", (int)length, name);
	snprintf(run->pcapng, sizeof(run->pcapng), "%.*s.flight.pcapng", (int)length, name);
	return true;
}

static void folder_of(const struct sl_session *s, char *folder, size_t bytes)
{
	const char *summary = summary_of(s), *slash = strrchr(summary, '/');

	if (s->folder.number)
		snprintf(folder, bytes, "%s", s->folder.path);
	else if (slash)
		snprintf(folder, bytes, "%.*s", slash == summary ? 1 : (int)(slash - summary),
			 summary);
	else
		snprintf(folder, bytes, ".");
}

/* What an earlier run with the same summary has left there says nothing of this one. */
static void forget(int dir, const struct sl_recorder_run *run)
{
	unlinkat(dir, run->json, 0);
	unlinkat(dir, run->pcapng, 0);
}

static int open_folder(struct sl_session *s, const struct sl_recorder_run *run)
{
	char folder[SL_STATUS_PATH];
	int dir;

	folder_of(s, folder, sizeof(folder));
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	if (!s->folder.number)
		forget(dir, run);
	pthread_mutex_lock(&s->lock);
	snprintf(s->flight_path, sizeof(s->flight_path), "%s/%s", folder, run->json);
	pthread_mutex_unlock(&s->lock);
	return dir;
}

/* ---- facts ---- */

static void describe_packets(const struct sl_plan *plan, struct sl_flight_facts *f)
{
	enum { UDP = 8, BTH = 12, ICRC = 4, IPV4 = 20, IPV6 = 40 };
	uint64_t payload = sl_plan_cuts(plan) ? plan->line_bytes : plan->block_bytes;
	union sl_net_address dest;

	f->pmtu = plan->pmtu;
	f->block_packets = plan->packets;
	f->block_bytes = plan->block_bytes;
	if (payload > plan->pmtu)
		payload = plan->pmtu;
	sl_net_address(plan->dest.ip, 0, &dest);
	/* At least: RoCEv2 packets that begin or end a message have more headers. */
	f->longest_packet = (uint32_t)payload + UDP +
			    (dest.any.sa_family == AF_INET ? IPV4 : IPV6) +
			    (f->one_way ? 0 : BTH + ICRC);
}

static void describe_interface(struct sl_flight_facts *f)
{
	char first[256], name[IF_NAMESIZE];
	long long mtu;

	snprintf(first, sizeof(first), "%.*s", (int)strcspn(f->listen, ", "), f->listen);
	if (!sl_net_interface(first, name))
		return;
	snprintf(f->interface, sizeof(f->interface), "%s", name);
	if (sl_sysfile_number("", &mtu, "/sys/class/net/%s/mtu", name) && mtu > 0)
		f->mtu = (uint32_t)mtu;
}

static void describe_ring(const struct sl_experiment *e, struct sl_flight_facts *f)
{
	static const char *const overrun[] = {[SL_OVERRUN_STOP] = "stop",
					      [SL_OVERRUN_DROP_NEWEST] = "drop_newest",
					      [SL_OVERRUN_DROP_OLDEST] = "drop_oldest",
					      [SL_OVERRUN_PAUSE] = "pause"};
	static const char *const align[] = {[SL_ALIGN_SEQUENCE] = "sequence",
					    [SL_ALIGN_FRAME] = "frame",
					    [SL_ALIGN_TIMESTAMP] = "timestamp"};

	f->slots = e->ring.slots;
	f->overrun = overrun[e->ring.overrun];
	f->incomplete = e->ring.incomplete == SL_INCOMPLETE_KEEP ? "keep" : "drop";
	f->align = align[e->ring.align];
	f->late_frames = e->ring.late_frames;
	f->late_timeout_us = e->ring.late_timeout_ms * UINT64_C(1000) + e->ring.late_timeout_us;
}

static void describe(struct sl_session *s, struct sl_flight_facts *f)
{
	const struct sl_experiment *e = s->experiment;
	struct sl_link_facts link;
	struct sl_plan plan;
	cpu_set_t set;

	sl_link_facts(e->link, e->link_state, &link);
	snprintf(f->experiment, sizeof(f->experiment), "%s", s->name);
	snprintf(f->transfer, sizeof(f->transfer), "%s", e->transfer);
	f->run = s->folder.number;
	f->inject_drop = e->faults.drop;
	f->inject_corrupt = e->faults.corrupt;
	f->inject_skip = e->faults.skip;
	snprintf(f->link, sizeof(f->link), "%s", e->link->name);
	snprintf(f->listen, sizeof(f->listen), "%s", link.listen);
	f->credits = link.credits;
	f->one_way = e->link->oneway;
	f->modules = sl_experiment_modules(e);
	f->receive_buffer_wanted = link.receive_buffer;
	f->frame_rate_Hz = e->run.frame_rate_Hz;
	describe_ring(e, f);
	describe_interface(f);
	if (sl_receiver_plan(s->receiver, 0, &plan))
		describe_packets(&plan, f);
	f->cpus_online = (int)sysconf(_SC_NPROCESSORS_ONLN);
	f->cpus_allowed = sched_getaffinity(0, sizeof(set), &set) ? f->cpus_online
								  : CPU_COUNT(&set);
}

/* ---- a run ---- */

static void take_status(void *receiver, struct sl_status *status)
{
	sl_receiver_status(receiver, status);
}

static void begin(struct sl_session *s, struct sl_recorder_run *run)
{
	run->dir = open_folder(s, run);
	if (run->dir < 0)
		return;
	s->flight_dir = run->dir;
	run->status = take_status;
	run->arg = s->receiver;
	run->tap = sl_receiver_taps(s->receiver, &run->taps);
	run->after_s = s->experiment->flight.after_s;
	describe(s, &run->facts);
	sl_recorder_begin(s->recorder, run);
}

void sl_session_begin_flight(struct sl_session *s)
{
	struct sl_recorder_run run = {.dir = -1};
	struct sl_recorder *recorder = s->recorder;
	int err = 0;

	if (!s->experiment->flight.record || !name_files(s, &run))
		return;
	if (!recorder)
		err = sl_recorder_open("", &recorder);
	if (err) {
		sl_warn("no flight recorder: %s", strerror(-err));
		return;
	}
	pthread_mutex_lock(&s->lock);
	s->recorder = recorder;
	pthread_mutex_unlock(&s->lock);
	begin(s, &run);
}

void sl_session_end_flight(struct sl_session *s)
{
	bool frozen;

	if (s->flight_dir < 0)
		return;
	frozen = sl_recorder_end(s->recorder);
	pthread_mutex_lock(&s->lock);
	if (!frozen)
		s->flight_path[0] = '\0';
	pthread_mutex_unlock(&s->lock);
	close(s->flight_dir);
	s->flight_dir = -1;
}
