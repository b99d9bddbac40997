/* metrics.c - metrics of sessions and of runs as a whole, and the text made of all. */
#include "monitor/metrics.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sluice/status.h>

#include "monitor/metrics_families.h"
#include "monitor/result.h"

#define LABELS(...) \
	((const struct sl_metric_label[]){{"session", session->name}, __VA_ARGS__, {NULL, NULL}})
#define NO_LABELS ((const struct sl_metric_label[]){{"session", session->name}, {NULL, NULL}})

/* ---- values ---- */

const json_t *sl_metric_at(const json_t *json, const char *const path[3])
{
	for (int i = 0; i < 3 && path[i]; i++)
		json = json_object_get(json, path[i]);
	return json;
}

bool sl_metric_count_of(const json_t *json, uint64_t *value)
{
	json_int_t number = json_integer_value(json);

	*value = number > 0 ? (uint64_t)number : 0;
	return json_is_integer(json);
}

const char *sl_metric_index(size_t index, char text[SL_METRIC_INDEX])
{
	snprintf(text, SL_METRIC_INDEX, "%zu", index);
	return text;
}

void sl_metric_put(struct sl_metrics_text *out, const struct sl_metric_family *f,
		   const struct sl_metric_label *labels, const json_t *value)
{
	uint64_t count;

	if (f->unit == SL_METRIC_TRUE) {
		if (json_is_boolean(value))
			sl_metrics_count(out, "", labels, json_is_true(value));
	} else if (json_is_real(value)) {
		sl_metrics_real(out, "", labels, json_real_value(value));
	} else if (sl_metric_count_of(value, &count)) {
		if (f->unit == SL_METRIC_NS)
			sl_metrics_seconds(out, "", labels, count);
		else
			sl_metrics_count(out, "", labels, count);
	}
}

void sl_metric_number(struct sl_metrics_text *out, const struct sl_metric_family *f,
		      const struct sl_metric_session *session)
{
	sl_metric_put(out, f, NO_LABELS, sl_metric_at(session->status, f->path));
}

/* ---- what is not one number ---- */

static void write_up(struct sl_metrics_text *out, const struct sl_metric_family *f,
		     const struct sl_metric_session *session)
{
	sl_metrics_count(out, "", NO_LABELS, session->alive && session->status);
}

static void write_crashed(struct sl_metrics_text *out, const struct sl_metric_family *f,
			  const struct sl_metric_session *session)
{
	sl_metrics_count(out, "", NO_LABELS, !session->alive);
}

static void write_state(struct sl_metrics_text *out, const struct sl_metric_family *f,
			const struct sl_metric_session *session)
{
	const char *now = json_string_value(json_object_get(session->status, "state"));

	for (unsigned i = 0; now && i < SL_STATES; i++)
		sl_metrics_count(out, "", LABELS({"state", sl_state_name(i)}),
				 !strcmp(now, sl_state_name(i)));
}

/* None before the end of the run: all 0. */
static void write_result(struct sl_metrics_text *out, const struct sl_metric_family *f,
			 const struct sl_metric_session *session)
{
	const char *now = json_string_value(json_object_get(session->status, "result"));

	for (unsigned i = 0; session->status && i <= SL_RESULT_EMPTY; i++)
		sl_metrics_count(out, "", LABELS({"result", sl_result_name(i)}),
				 now && !strcmp(now, sl_result_name(i)));
}

static void write_error(struct sl_metrics_text *out, const struct sl_metric_family *f,
			const struct sl_metric_session *session)
{
	const char *code = json_string_value(
		json_object_get(json_object_get(session->status, "error"), "code"));

	if (code)
		sl_metrics_count(out, "", LABELS({"code", code}), 1);
}

static const char *text_at(const json_t *status, const char *one, const char *two)
{
	const char *text =
		json_string_value(sl_metric_at(status, (const char *const[3]){one, two, NULL}));

	return text ? text : "";
}

static void write_info(struct sl_metrics_text *out, const struct sl_metric_family *f,
		       const struct sl_metric_session *session)
{
	const json_t *s = session->status;

	if (s)
		sl_metrics_count(out, "",
				 LABELS({"experiment", text_at(s, "experiment", NULL)},
					{"transfer", text_at(s, "transfer", NULL)},
					{"link", text_at(s, "link", "kind")},
					{"guard", text_at(s, "link", "guard")},
					{"proof", text_at(s, "link", "proof")}),
				 1);
}

#define COUNTER	    SL_METRIC_COUNTER
#define GAUGE	    SL_METRIC_GAUGE
#define NUMBER(...) .write = sl_metric_number, .path = {__VA_ARGS__}
#define NS(...)	    NUMBER(__VA_ARGS__), .unit = SL_METRIC_NS
#define TRUE(...)   NUMBER(__VA_ARGS__), .unit = SL_METRIC_TRUE

const struct sl_metric_family sl_metric_families[] = {
	{"sluice_session_up", GAUGE, "", "1: the session lives and answers", write_up},
	{"sluice_session_crashed", GAUGE, "", "1: the session has ended without closing",
	 write_crashed},
	{"sluice_status_timestamp_seconds", GAUGE, "",
	 "When the session gave the status behind its metrics", NS("taken_unix_ns")},
	{"sluice_session_state", GAUGE, "state", "1 for the state that the session is in",
	 write_state},
	{"sluice_run_info", GAUGE, "experiment, transfer, link, guard, proof",
	 "What runs: always 1", write_info},
	{"sluice_run_number", GAUGE, "", "Number of the run under way or the last one",
	 NUMBER("run")},
	{"sluice_run_started_timestamp_seconds", GAUGE, "", "When the run began",
	 NS("started_unix_ns")},
	{"sluice_run_ended_timestamp_seconds", GAUGE, "", "When the run ended",
	 NS("ended_unix_ns")},
	{"sluice_run_result", GAUGE, "result", "1 for the result of the run, once it has ended",
	 write_result},
	{"sluice_run_error", GAUGE, "code", "1 while the run has this error", write_error},
	{"sluice_run_drained", GAUGE, "", "1: paused, and everything that was sent is settled",
	 TRUE("drained")},
	{"sluice_run_overrun", GAUGE, "", "1: the run ends because a source found no room",
	 TRUE("overrun")},
	{"sluice_progress_age_seconds", GAUGE, "",
	 "Time since a frame was settled or a thread of the run did something for the data",
	 NS("progress_age_ns")},
	{"sluice_frames_settled_total", COUNTER, "",
	 "Frames of which every module has its outcome, or is pending",
	 NUMBER("frames", "settled")},
	{"sluice_frames_kept_total", COUNTER, "", "Of these, kept", NUMBER("frames", "kept")},
	{"sluice_frames_broken_total", COUNTER, "", "Of these, with a module missing or damaged",
	 NUMBER("frames", "broken")},
	{"sluice_frames_partial_total", COUNTER, "", "Of these, kept although modules are missing",
	 NUMBER("frames", "partial")},
	{"sluice_frames_prescaled_total", COUNTER, "", "Of these, kept as a sample of the rejected",
	 NUMBER("frames", "prescaled")},
	{"sluice_frames_late_total", COUNTER, "", "Verdicts that came after the deadline",
	 NUMBER("frames", "late")},
	{"sluice_frames_asked", GAUGE, "",
	 "Frames that the experiment asks for after the dark ones, where that is limited",
	 NUMBER("detector", "frames")},
	{"sluice_frame_rate_asked_hertz", GAUGE, "",
	 "Frame rate that the experiment asks for; 0: as fast as credits allow",
	 NUMBER("detector", "rate_Hz")},
	{"sluice_frames_expected", GAUGE, "", "Frames that the run will have, where that is known",
	 NUMBER("frames", "expected")},
	{"sluice_pixel_bytes_total", COUNTER, "", "Bytes of pixels in settled frames",
	 NUMBER("frames", "pixel_bytes")},
	{"sluice_frame_rate_hertz", GAUGE, "", "Frames settled, over the last one to two seconds",
	 NUMBER("rates", "frames_per_s")},
	{"sluice_pixel_rate_bytes_per_second", GAUGE, "",
	 "Pixels settled, over the last one to two seconds", NUMBER("rates", "bytes_per_s")},
	{"sluice_watermark_frames", GAUGE, "",
	 "Sequences below it are settled, and safe in every required sink", NUMBER("watermark")},
	{"sluice_ledger_closed", GAUGE, "", "1: the ledger closes", TRUE("ledger", "closed")},
	{"sluice_ledger_unsaved", GAUGE, "", "1: the outcome log is not whole",
	 TRUE("ledger", "unsaved")},
	{"sluice_ledger_misuse_total", COUNTER, "",
	 "Outcomes that were written twice or out of order: a bug of Sluice",
	 NUMBER("ledger", "misuse")},
	{"sluice_sources_alive", GAUGE, "", "Modules whose source is connected",
	 NUMBER("sources", "alive")},
	{"sluice_link_packets_total", COUNTER, "", "Packets that were placed",
	 NUMBER("link", "packets")},
	{"sluice_link_bytes_total", COUNTER, "", "Bytes that were placed", NUMBER("link", "bytes")},
	{"sluice_link_congestion_marked_total", COUNTER, "",
	 "Packets that a switch had marked for congestion", NUMBER("link", "marked")},
	{"sluice_link_congestion_notified_total", COUNTER, "",
	 "Notifications of congestion that were sent to sources", NUMBER("link", "notified")},
	{"sluice_link_receive_buffer_bytes", GAUGE, "",
	 "The smallest receive buffer of the sockets", NUMBER("link", "receive_buffer_bytes")},
	{"sluice_threads_crowded", GAUGE, "", "1: the host has fewer CPUs than data threads",
	 TRUE("threads", "crowded")},
	{"sluice_workers", GAUGE, "", "Worker threads", NUMBER("threads", "workers")},
	{"sluice_workers_busy_seconds_total", COUNTER, "", "Time that all workers computed",
	 NS("threads", "busy_ns")},
	{NULL},
};

/* ---- of this process ---- */

static void self_gauge(struct sl_metrics_text *out, const char *name, const char *help,
		       double value)
{
	sl_metrics_family(out, name, GAUGE, help);
	sl_metrics_real(out, "", NULL, value);
}

void sl_metrics_build(struct sl_metrics_text *out)
{
	sl_metrics_family(out, "sluice_build_info", GAUGE, "The program that answers: always 1");
	sl_metrics_count(out, "", (const struct sl_metric_label[]){{"version", SL_VERSION}, {NULL}},
			 1);
}

/* Seconds since 1970. */
static double booted_at(void)
{
	struct timespec now, up;

	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	return (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) * 1e-9;
}

static uint64_t open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n > 3 ? n - 3 : 0; /* ".", "..", and the folder itself */
}

void sl_metrics_process(struct sl_metrics_text *out)
{
	double ticks = (double)sysconf(_SC_CLK_TCK), pages = (double)sysconf(_SC_PAGESIZE);
	unsigned long long user, system, started;
	char line[1024], *fields;
	FILE *file = fopen("/proc/self/stat", "re");
	long memory;

	fields = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	if (file)
		fclose(file);
	/* proc(5): user and system time are fields 14 and 15, start 22, resident pages 24. */
	if (fields &&
	    sscanf(fields,
		   ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d "
		   "%*d %*d %llu %*u %ld",
		   &user, &system, &started, &memory) == 4) {
		sl_metrics_family(out, "process_cpu_seconds_total", COUNTER,
				  "CPU time of this program, user and system");
		sl_metrics_real(out, "", NULL, (double)(user + system) / ticks);
		self_gauge(out, "process_resident_memory_bytes", "Resident memory of this program",
			   (double)memory * pages);
		self_gauge(out, "process_start_time_seconds", "When this program began",
			   booted_at() + (double)started / ticks);
	}
	self_gauge(out, "process_open_fds", "Open file descriptors of this program",
		   (double)open_files());
}

/* ---- the text ---- */

/* Of two sessions of one name, in the folders of this user and of /run/sluice, one counts: samples
 * with the same labels are an error. */
static bool is_shadowed(const json_t *array, size_t one, const char *name, bool alive)
{
	const json_t *other;
	size_t i;

	json_array_foreach(array, i, other)
	{
		const char *its = json_string_value(json_object_get(other, "name"));
		bool lives = !json_is_true(json_object_get(other, "crashed"));

		if (i != one && its && !strcmp(its, name) && (lives != alive ? lives : i < one))
			return true;
	}
	return false;
}

static size_t read_sessions(const json_t *array, struct sl_metric_session *session)
{
	const json_t *item;
	size_t i, n = 0;

	json_array_foreach(array, i, item)
	{
		const json_t *status = json_object_get(item, "status");
		const char *name = json_string_value(json_object_get(item, "name"));
		bool alive = !json_is_true(json_object_get(item, "crashed"));

		if (name && !is_shadowed(array, i, name, alive))
			session[n++] = (struct sl_metric_session){
				name, alive, json_is_object(status) ? status : NULL};
	}
	return n;
}

static void write_families(struct sl_metrics_text *out, const struct sl_metric_family *family,
			   const struct sl_metric_session *session, size_t n)
{
	for (; family->name; family++) {
		sl_metrics_family(out, family->name, family->type, family->help);
		for (size_t i = 0; i < n; i++)
			family->write(out, family, &session[i]);
	}
}

int sl_metrics_sessions(struct sl_metrics_text *out, const json_t *sessions)
{
	struct sl_metric_session *session = calloc(json_array_size(sessions) + 1, sizeof(*session));
	int err = !json_is_array(sessions) ? -EINVAL : session ? 0 : -ENOMEM;

	if (!err) {
		size_t n = read_sessions(sessions, session);

		write_families(out, sl_metric_families, session, n);
		write_families(out, sl_metric_ledger_families, session, n);
		write_families(out, sl_metric_parts_families, session, n);
	}
	free(session);
	return err;
}

int sl_metrics_text_of(const char *sessions, size_t bytes, uint64_t collect_ns, char **text)
{
	json_t *array = json_loadb(sessions, bytes, 0, NULL);
	struct sl_metrics_text out;
	int err = sl_metrics_text_begin(&out);

	*text = NULL;
	if (!err) {
		sl_metrics_build(&out);
		sl_metrics_family(&out, "sluice_collect_seconds", GAUGE,
				  "How long it took to ask all sessions for their status");
		sl_metrics_seconds(&out, "", NULL, collect_ns);
		err = sl_metrics_sessions(&out, array);
		*text = sl_metrics_text_end(&out);
	}
	json_decref(array);
	if (!err && !*text)
		err = -ENOMEM;
	if (err) {
		free(*text);
		*text = NULL;
	}
	return err;
}

/* ---- the page ---- */

static void print_table(const char *title, const struct sl_metric_family *family)
{
	printf("\n## %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", title);
	for (; family->name; family++)
		printf("| `%s` | %s | %s%s%s | %s |\n", family->name,
		       sl_metric_type_name(family->type), *family->labels ? "`" : "",
		       family->labels, *family->labels ? "`" : "", family->help);
}

void sl_metrics_print_reference(void)
{
	puts("# Metrics\n\nWritten by `sluice list metrics`: do not edit. "
	     "[prometheus.md](../how-to/prometheus.md) is how to use them.\n\n"
	     "Every metric below has the label `session`. Counters are of the run, and begin again "
	     "with the next one. Times are in\nseconds, sizes in bytes. What is not known yet "
	     "is left out. Fields of the status that they come from: "
	     "[status.md](status.md#fields-of-the-status).");
	print_table("Sessions and runs", sl_metric_families);
	print_table("The ledger, sources, the link", sl_metric_ledger_families);
	print_table("Latency, queues, threads, sinks, file systems", sl_metric_parts_families);
	puts("\n## Without a session\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n"
	     "| `sluice_build_info` | gauge | `version` | The program that answers: always 1 |\n"
	     "| `sluice_collect_seconds` | gauge |  | How long it took to ask all sessions for "
	     "their status (`sluice ps --metrics`) |\n"
	     "| `sluice_service_viewers` | gauge |  | Clients that follow events (`sluice serve`) "
	     "|\n"
	     "| `sluice_service_events_missed_total` | counter |  | Events that viewers missed "
	     "since they "
	     "read too slowly (`sluice serve`) |\n"
	     "| `process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_open_fds`, "
	     "`process_start_time_seconds` | | | Of `sluice serve` |");
}
