/* metrics_parts.c - metrics of the parts of a run: hops, queues, threads, sinks, file systems. */
#include <stdio.h>
#include <string.h>

#include <sluice/status.h>

#include "monitor/metrics_families.h"

#define LABELS(...) \
	((const struct sl_metric_label[]){{"session", session->name}, __VA_ARGS__, {NULL, NULL}})

/* From 1.024 us to 34 s, a factor of 2 each: finer than that a percentile needs not be, and each
 * bound is a series of its own for each hop. */
enum { FIRST_BOUND = 10, LAST_BOUND = 35 };

/* ---- latencies ---- */

static uint64_t bucket_at(const json_t *buckets, size_t i)
{
	uint64_t count;

	sl_metric_count_of(json_array_get(buckets, i), &count);
	return count;
}

/* The count is the sum of all buckets, so that the histogram agrees with itself. */
static void write_hop(struct sl_metrics_text *out, const struct sl_metric_session *session,
		      const char *hop, const json_t *latency)
{
	const json_t *buckets = json_object_get(latency, "buckets");
	size_t n = json_array_size(buckets), i = 0;
	uint64_t sum = 0, count, sum_ns;
	char bound[24];

	for (size_t exponent = FIRST_BOUND; n && exponent <= LAST_BOUND; exponent++) {
		for (; i <= exponent && i < n; i++)
			sum += bucket_at(buckets, i);
		sl_metrics_seconds_text(UINT64_C(1) << exponent, bound, sizeof(bound));
		sl_metrics_count(out, "_bucket", LABELS({"hop", hop}, {"le", bound}), sum);
	}
	for (; i < n; i++)
		sum += bucket_at(buckets, i);
	sl_metric_count_of(json_object_get(latency, "count"), &count);
	sl_metric_count_of(json_object_get(latency, "sum"), &sum_ns);
	count = n ? sum : count;
	sl_metrics_count(out, "_bucket", LABELS({"hop", hop}, {"le", "+Inf"}), count);
	sl_metrics_seconds(out, "_sum", LABELS({"hop", hop}), sum_ns);
	sl_metrics_count(out, "_count", LABELS({"hop", hop}), count);
}

static void write_latency(struct sl_metrics_text *out, const struct sl_metric_family *f,
			  const struct sl_metric_session *session)
{
	json_t *latencies = json_object_get(session->status, "latency_ns"), *latency;
	const char *hop;

	json_object_foreach(latencies, hop, latency)
	{
		if (json_is_object(latency))
			write_hop(out, session, hop, latency);
	}
}

/* ---- queues and threads ---- */

/* path[0]: the member of the gauge. */
static void write_queue(struct sl_metrics_text *out, const struct sl_metric_family *f,
			const struct sl_metric_session *session)
{
	json_t *gauges = json_object_get(session->status, "gauges"), *gauge;
	const char *queue;

	json_object_foreach(gauges, queue, gauge)
		sl_metric_put(out, f, LABELS({"queue", queue}), json_object_get(gauge, f->path[0]));
}

static void write_thread_age(struct sl_metrics_text *out, const struct sl_metric_family *f,
			     const struct sl_metric_session *session)
{
	const json_t *threads = json_object_get(json_object_get(session->status, "threads"),
						"progress"),
		     *thread;
	size_t i;

	json_array_foreach(threads, i, thread)
	{
		const char *name = json_string_value(json_object_get(thread, "name"));

		if (name)
			sl_metric_put(out, f, LABELS({"thread", name}),
				      json_object_get(thread, "age_ns"));
	}
}

/* ---- the unit and the sinks ---- */

/* Calls for each add-on, with its labels: two sinks may have one name, and no two one index. */
static void each_addon(struct sl_metrics_text *out, const struct sl_metric_family *f,
		       const struct sl_metric_session *session,
		       void (*write)(struct sl_metrics_text *out, const struct sl_metric_family *f,
				     const struct sl_metric_label *labels, const json_t *addon))
{
	char number[SL_METRIC_INDEX];
	const json_t *addon;
	size_t i;

	json_array_foreach(json_object_get(session->status, "addons"), i, addon)
	{
		const char *name = json_string_value(json_object_get(addon, "name"));
		const char *kind = json_string_value(json_object_get(addon, "kind"));

		if (name && kind)
			write(out, f,
			      LABELS({"addon", name}, {"kind", kind},
				     {"index", sl_metric_index(i, number)}),
			      addon);
	}
}

static void put_failed(struct sl_metrics_text *out, const struct sl_metric_family *f,
		       const struct sl_metric_label *labels, const json_t *addon)
{
	sl_metrics_count(out, "", labels, json_is_string(json_object_get(addon, "error")));
}

static void write_failed(struct sl_metrics_text *out, const struct sl_metric_family *f,
			 const struct sl_metric_session *session)
{
	each_addon(out, f, session, put_failed);
}

static void put_figures(struct sl_metrics_text *out, const struct sl_metric_family *f,
			const struct sl_metric_label *labels, const json_t *addon)
{
	json_t *figures = json_object_get(addon, "figures"), *value;
	const char *name;

	json_object_foreach(figures, name, value) sl_metric_put(
		out, f,
		(const struct sl_metric_label[]){
			labels[0], labels[1], labels[2], labels[3], {"figure", name}, {NULL, NULL}},
		value);
}

static void write_figures(struct sl_metrics_text *out, const struct sl_metric_family *f,
			  const struct sl_metric_session *session)
{
	each_addon(out, f, session, put_figures);
}

/* Sinks with a thread of their own have a pace. */
static void put_pace(struct sl_metrics_text *out, const struct sl_metric_family *f,
		     const struct sl_metric_label *labels, const json_t *addon)
{
	sl_metric_put(out, f, labels, sl_metric_at(json_object_get(addon, "pace"), f->path));
}

static void write_pace(struct sl_metrics_text *out, const struct sl_metric_family *f,
		       const struct sl_metric_session *session)
{
	each_addon(out, f, session, put_pace);
}

/* ---- file systems ---- */

static void write_disk(struct sl_metrics_text *out, const struct sl_metric_family *f,
		       const struct sl_metric_session *session)
{
	const json_t *disk;
	size_t i;

	json_array_foreach(json_object_get(session->status, "forecast"), i, disk)
	{
		const char *path = json_string_value(json_object_get(disk, "path"));

		if (path)
			sl_metric_put(out, f, LABELS({"path", path}),
				      json_object_get(disk, f->path[0]));
	}
}

/* ---- the table ---- */

#define COUNTER SL_METRIC_COUNTER
#define GAUGE	SL_METRIC_GAUGE
#define ADDON	"addon, kind, index"

const struct sl_metric_family sl_metric_parts_families[] = {
	{"sluice_latency_seconds", SL_METRIC_HISTOGRAM, "hop", "Time of a frame between two hops",
	 write_latency},
	{"sluice_queue_frames",
	 GAUGE,
	 "queue",
	 "Frames in the slots of the ring, at the unit, at the sinks",
	 write_queue,
	 {"now"}},
	{"sluice_queue_frames_most",
	 GAUGE,
	 "queue",
	 "The most there were in this run",
	 write_queue,
	 {"most"}},
	{"sluice_queue_room_frames",
	 GAUGE,
	 "queue",
	 "The room there is, where it is limited",
	 write_queue,
	 {"of"}},
	{"sluice_thread_age_seconds",
	 GAUGE,
	 "thread",
	 "Time since the thread did something for the data; one without work is as old as its last",
	 write_thread_age,
	 {NULL},
	 SL_METRIC_NS},
	{"sluice_addon_failed", GAUGE, ADDON, "1: the unit or the sink has failed", write_failed},
	{"sluice_addon_figure", GAUGE, ADDON ", figure",
	 "What the unit or the sink counts by itself, in the unit that is in the name of the "
	 "figure",
	 write_figures},
	{"sluice_sink_waiting_frames",
	 GAUGE,
	 ADDON,
	 "Frames of the pool that wait for the sink",
	 write_pace,
	 {"waiting", "now"}},
	{"sluice_sink_waiting_mark_frames",
	 GAUGE,
	 ADDON,
	 "The number of them from which on the sink counts as slow",
	 write_pace,
	 {"mark"}},
	{"sluice_sink_waited_seconds_total",
	 COUNTER,
	 ADDON,
	 "Time that data waited while the sink held most frames",
	 write_pace,
	 {"waited_ns"},
	 SL_METRIC_NS},
	{"sluice_sink_left_out_frames_total",
	 COUNTER,
	 ADDON,
	 "Frames that the sink was not given, since it was slow",
	 write_pace,
	 {"left_out"}},
	{"sluice_sink_prescale",
	 GAUGE,
	 ADDON,
	 "Of so many kept frames the sink is given one now",
	 write_pace,
	 {"factor"}},
	{"sluice_disk_free_bytes",
	 GAUGE,
	 "path",
	 "Free space of a file system that sinks write to, when the run was armed",
	 write_disk,
	 {"free_bytes"}},
	{"sluice_disk_needed_bytes",
	 GAUGE,
	 "path",
	 "What the run needs there if every frame is kept",
	 write_disk,
	 {"needed_bytes"}},
	{"sluice_disk_fits", GAUGE, "path", "1: it fits", write_disk, {"fits"}, SL_METRIC_TRUE},
	{NULL},
};
