/* explain_test.c - each rule on made-up runs: the cause that fits is first, what does not fit is
 * not named, and what is missing or nonsense does no harm. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include <sluice/status.h>

#include "explain/explain.h"

enum { SAMPLES = 20, MODULES = 2 };

struct world {
	json_t *result, *flight;
	const char *result_path, *flight_path;
	struct sl_explanation e;
};

/* ---- a run of 500 frames of two modules, 17 packets each, in 5 s ---- */

static json_t *at(json_t *object, const char *path)
{
	char copy[128], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *key = strtok_r(copy, ".", &save); key; key = strtok_r(NULL, ".", &save)) {
		if (!json_object_get(object, key))
			json_object_set_new(object, key, json_object());
		object = json_object_get(object, key);
	}
	return object;
}

static void set(json_t *object, const char *path, const char *key, json_t *value)
{
	json_object_set_new(at(object, path), key, value);
}

static void set_number(json_t *object, const char *path, const char *key, uint64_t value)
{
	set(object, path, key, json_integer((json_int_t)value));
}

static void set_text(json_t *object, const char *path, const char *key, const char *value)
{
	set(object, path, key, json_string(value));
}

static json_t *series(struct world *w, const char *name)
{
	json_t *array = json_object_get(w->flight, "series"), *one, *values;
	size_t i;

	json_array_foreach(array, i, one)
	{
		if (!strcmp(json_string_value(json_object_get(one, "name")), name))
			return json_object_get(one, "values");
	}
	values = json_array();
	for (i = 0; i < SAMPLES; i++)
		json_array_append_new(values, json_integer(0));
	json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:o}", "name", name, "unit", "",
					       "kind", "counter", "values", values));
	return values;
}

/* So much more in each sample from `from` on, until `to`. */
static void grows(struct world *w, const char *name, uint64_t each, size_t from, size_t to)
{
	json_t *values = series(w, name);
	uint64_t value = 1000;

	for (size_t i = 0; i < SAMPLES; i++) {
		value += i >= from && i < to ? each : 0;
		json_array_set_new(values, i, json_integer((json_int_t)value));
	}
}

/* A thread that runs 5 ms and waits 1 ms of 250, in 100 slices. */
static void add_thread(struct world *w, const char *name)
{
	char text[80];

	snprintf(text, sizeof(text), "thread.%s.run", name);
	grows(w, text, 5000000, 1, SAMPLES);
	snprintf(text, sizeof(text), "thread.%s.wait", name);
	grows(w, text, 1000000, 1, SAMPLES);
	snprintf(text, sizeof(text), "thread.%s.slices", name);
	grows(w, text, 100, 1, SAMPLES);
}

static void add_threads(struct world *w)
{
	add_thread(w, "link-0");
	add_thread(w, "dispatcher");
	add_thread(w, "worker-0");
	add_thread(w, "settler");
	add_thread(w, "control");
	add_thread(w, "flight");
}

static json_t *make_flight(void)
{
	json_t *times = json_array(), *modules = json_array();

	for (uint64_t i = 0; i < SAMPLES; i++)
		json_array_append_new(times, json_integer(1000000000 + (json_int_t)i * 250000000));
	for (int m = 0; m < MODULES; m++)
		json_array_append_new(modules, json_pack("{s:i, s:i, s:i}", "module", m, "sampled",
							 100, "longest_payload", 4124));
	return json_pack("{s:i, s:i, s:I, s:{s:{s:s, s:s, s:i, s:b, s:i, s:i, s:i, s:i}, s:{s:s, "
			 "s:s, s:i}, s:{s:i, s:i}}, s:{s:o}, s:o, s:[]}",
			 "schema", 1, "pid", 4711, "first_loss_ns",
			 (json_int_t)(1000000000 + 10 * 250000000LL), "facts", "link", "kind",
			 "udp", "interface", "eth7", "mtu", 9000, "credits", 0, "pmtu", 4096,
			 "longest_packet", 4140, "block_packets", 17, "block_bytes", 65600, "ring",
			 "overrun", "drop_newest", "align", "sequence", "late_timeout_us", 200000,
			 "cpus", "allowed", 8, "online", 8, "packets", "modules", modules, "at_ns",
			 times, "series");
}

static json_t *make_result(void)
{
	json_t *modules = json_array();

	for (int m = 0; m < MODULES; m++)
		json_array_append_new(
			modules, json_pack("{s:i, s:{}, s:{}}", "sent", 500, "outcomes", "causes"));
	return json_pack("{s:s, s:{s:{s:i, s:i, s:{s:i}, s:{}}, s:o}, s:{s:s, s:i, s:I, s:{}, "
			 "s:i}, s:{s:{s:i, s:i}}, s:{s:f, s:f}, s:{s:i}, s:[]}",
			 "experiment", "e.yaml", "ledger", "total", "sent", 1000, "skipped", 0,
			 "outcomes", "stored", 1000, "causes", "modules", modules, "link", "kind",
			 "udp", "packets", 17000, "bytes", (json_int_t)65600000, "turned_away",
			 "receive_buffer", 4194304, "backlog", "slots", "most", 3, "of", 32,
			 "rates", "seconds", 5.0, "unit_busy", 0.1, "frames", "settled", 500,
			 "sinks");
}

static int begin(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->result = make_result();
	w->flight = make_flight();
	assert_non_null(w->result);
	assert_non_null(w->flight);
	add_threads(w);
	grows(w, "sent", 50, 1, SAMPLES);
	*state = w;
	return 0;
}

static int end(void **state)
{
	struct world *w = *state;

	json_decref(w->result);
	json_decref(w->flight);
	free(w);
	return 0;
}

static void lose(struct world *w, const char *outcome, const char *cause, uint64_t n)
{
	set_number(w->result, "ledger.total.outcomes", outcome, n);
	set_number(w->result, "ledger.total.causes", cause, n);
	set_number(w->result, "ledger.total.outcomes", "stored", 1000 - n);
}

/* Packets of 100 module-frames are missing. */
static void miss_packets(struct world *w)
{
	lose(w, "incomplete", "damaged", 100);
	set_number(w->result, "link", "packets", 16800);
}

static void throw_away(struct world *w, uint64_t packets)
{
	miss_packets(w);
	set_number(w->result, "link.turned_away", "full", packets);
}

static json_t *add_sink(struct world *w, const char *name, const char *error)
{
	json_t *sink = json_pack("{s:s, s:s, s:b, s:{s:s, s:I, s:i, s:{s:i}, s:i}}", "name", name,
				 "where", "/data/run.nxs", "required", 1, "pace", "on_slow", "wait",
				 "waited_ns", (json_int_t)0, "mark", 30, "waiting", "most", 3,
				 "left_out", 0);

	if (error)
		json_object_set_new(sink, "error", json_string(error));
	json_array_append_new(json_object_get(w->result, "sinks"), sink);
	return sink;
}

/* ---- what is made of it ---- */

static int explain(struct world *w, bool with_result, bool with_flight)
{
	char *result = with_result ? json_dumps(w->result, 0) : NULL;
	char *flight = with_flight ? json_dumps(w->flight, 0) : NULL, why[300] = "";
	struct sl_explain_texts texts = {.result = result,
					 .result_bytes = result ? strlen(result) : 0,
					 .flight = flight,
					 .flight_bytes = flight ? strlen(flight) : 0,
					 .result_path = w->result_path,
					 .flight_path = w->flight_path};
	int err = sl_explain(&texts, &w->e, why, sizeof(why));

	assert_true(!err == !why[0]);
	free(result);
	free(flight);
	return err;
}

static const struct sl_finding *finding(const struct world *w, const char *cause)
{
	for (unsigned i = 0; i < w->e.findings; i++)
		if (!strcmp(w->e.finding[i].cause, cause))
			return &w->e.finding[i];
	return NULL;
}

/* The first cause, whose sentence has these words. */
static void is(struct world *w, const char *cause, const char *words)
{
	const struct sl_finding *f = &w->e.finding[0];

	assert_int_equal(explain(w, true, true), 0);
	if (!w->e.findings)
		fail_msg("no cause; looked at %s", w->e.looked_at);
	assert_string_equal(f->cause, cause);
	if (!strstr(f->sentence, words))
		fail_msg("'%s' is not in: %s", words, f->sentence);
	assert_true(f->score > 0 && f->score <= 1 && f->evidence && f->advice[0]);
	assert_true(f->command[0]);
	assert_true(f->module_frames > 0);
}

static void is_not(const struct world *w, const char *cause)
{
	if (finding(w, cause))
		fail_msg("%s: %s", cause, finding(w, cause)->sentence);
}

/* ---- cases ---- */

static void nothing_lost_has_no_cause(void **state)
{
	struct world *w = *state;

	assert_int_equal(explain(w, true, true), 0);
	assert_int_equal(w->e.lost, 0);
	assert_int_equal(w->e.findings, 0);
	assert_int_equal(w->e.sent, 1000);
}

static void a_buffer_that_holds_less_than_a_block_is_too_small(void **state)
{
	struct world *w = *state;

	throw_away(w, 200);
	set_number(w->result, "link", "receive_buffer", 65536);
	is(w, "small_receive_buffer",
	   "200 receive-queue drops, each of 1 to 16 packets; 200 packets are missing");
	assert_string_equal(w->e.finding[0].command, "sudo sysctl -w net.core.rmem_max=4194304");
	set_number(w->flight, "facts.link", "receive_buffer_wanted", 65536);
	is(w, "small_receive_buffer", "0.07 MB");
	assert_string_equal(w->e.finding[0].command,
			    "sluice run e.yaml --set link.receive_buffer=4194304");
	is_not(w, "starved_core");
	is_not(w, "lossy_cable");
}

static void a_thread_that_gets_no_cpu_is_starved(void **state)
{
	struct world *w = *state;

	throw_away(w, 200);
	grows(w, "thread.link-0.wait", 240000000, 9, 13);
	grows(w, "thread.link-0.slices", 1, 1, SAMPLES);
	is(w, "starved_core", "240 ms at a time");
	is_not(w, "small_receive_buffer");
	set_number(w->flight, "facts.cpus", "allowed", 2);
	is(w, "starved_core", "200 receive-queue drops");
	assert_string_equal(w->e.finding[0].command, "taskset -c 0-7 sluice run e.yaml");
	grows(w, "cgroup.throttled_us", 150000, 9, 13);
	is(w, "starved_core", "by its quota");
	/* One long wait and many short ones: their average says nothing. */
	set_number(w->result, "link", "receive_buffer", 1 << 20);
	grows(w, "thread.link-0.wait", 200000000, 10, 11);
	grows(w, "thread.link-0.slices", 100, 1, SAMPLES);
	is(w, "starved_core", "for 200 of 250 ms");
	is_not(w, "small_receive_buffer");
}

/* The buffer is large enough, and the thread that empties it waited for less than it lasts. */
static void a_thread_that_waits_little_is_not_starved(void **state)
{
	struct world *w = *state;

	throw_away(w, 200);
	grows(w, "thread.link-0.wait", 40000000, 9, 13);
	is(w, "overflowed_buffer", "200 receive-queue drops");
	assert_non_null(strstr(w->e.finding[0].sentence, "at most 40 of 250 ms"));
	is_not(w, "starved_core");
	is_not(w, "small_receive_buffer");
	set_number(w->flight, "facts.link", "receive_buffer_wanted", 2097152);
	is(w, "overflowed_buffer", "not too small by itself");
	assert_string_equal(w->e.finding[0].command,
			    "sluice run e.yaml --set link.receive_buffer=4194304");
}

/* It holds more than a block and lasts 18 ms: by the rule it is not too small, and all waits of a
 * sample together are longer. */
static void a_buffer_that_lasts_is_not_blamed(void **state)
{
	struct world *w = *state;

	throw_away(w, 200);
	set_number(w->result, "link", "receive_buffer", 262144);
	grows(w, "thread.link-0.wait", 60000000, 9, 13);
	is(w, "starved_core", "for 60 of 250 ms");
	assert_true(w->e.finding[0].score < 0.5);
	is_not(w, "small_receive_buffer");
	is_not(w, "overflowed_buffer");
}

/* 16 packets fit into a batch: that many times 10 may be missing, and not one more. */
static void what_full_queues_cannot_explain_was_lost_on_the_way(void **state)
{
	struct world *w = *state;

	throw_away(w, 10);
	set_number(w->result, "link", "receive_buffer", 65536);
	set_number(w->result, "link", "packets", 17000 - 160);
	is(w, "small_receive_buffer", "10 receive-queue drops, each of 1 to 16 packets");
	assert_true(w->e.finding[0].at_most);
	is_not(w, "lossy_cable");
	set_number(w->result, "link", "packets", 17000 - 165);
	is(w, "small_receive_buffer", "165 packets are missing");
	assert_non_null(finding(w, "lossy_cable"));
	assert_int_equal(finding(w, "lossy_cable")->module_frames, 5);
	assert_non_null(strstr(finding(w, "lossy_cable")->sentence, "at least 5 of 17000"));
	/* Packets of a module-frame that found no slot are not missing on the way. */
	set_number(w->result, "ledger.total.causes", "no_slot", 1);
	assert_int_equal(explain(w, true, true), 0);
	is_not(w, "lossy_cable");
	assert_non_null(finding(w, "overrun_policy"));
}

/* Module-frames go on to be damaged seconds after the last drop. */
static void what_is_damaged_while_queues_are_empty_was_lost_on_the_way(void **state)
{
	struct world *w = *state;

	throw_away(w, 100);
	set_number(w->result, "link", "receive_buffer", 65536);
	grows(w, "drop.full", 50, 2, 4);
	grows(w, "cause.damaged", 10, 2, 5);
	is(w, "small_receive_buffer", "100 receive-queue drops");
	is_not(w, "lossy_cable");
	grows(w, "cause.damaged", 3, 14, SAMPLES);
	is(w, "small_receive_buffer", "100 receive-queue drops");
	assert_non_null(finding(w, "lossy_cable"));
	assert_int_equal(finding(w, "lossy_cable")->module_frames, 18);
	/* The ring of a NIC that overflows meanwhile is a queue of this host as well. */
	grows(w, "nic.eth7.rx_missed_errors", 1, 2, SAMPLES);
	assert_int_equal(explain(w, true, true), 0);
	is_not(w, "lossy_cable");
}

static bool is_printed(const struct sl_explanation *e, const char *words)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	bool is;

	sl_explain_print(out, e);
	fclose(out);
	is = strstr(text, words) != NULL;
	if (!is)
		print_message("'%s' is not in: %s\n", words, text);
	free(text);
	return is;
}

/* Packets that arrive damaged, packets that find no room, and what the experiment asks for: the
 * largest first, the others under "Also", each with its number and its command. */
static void several_ways_to_lose_packets_are_all_named(void **state)
{
	struct world *w = *state;

	throw_away(w, 200);
	set_number(w->result, "link", "receive_buffer", 65536);
	set_number(w->result, "link.turned_away", "icrc", 7);
	grows(w, "nic.eth7.rx_missed_errors", 20, 9, 11);
	is(w, "small_receive_buffer", "200 receive-queue drops");
	assert_int_equal(finding(w, "lossy_cable")->module_frames, 7);
	assert_int_equal(finding(w, "nic_ring")->module_frames, 40);
	assert_true(is_printed(&w->e, "\nAlso:\n  nic_ring (at most 40 module-frames): eth7"));
	assert_true(is_printed(&w->e, "\n  lossy_cable (at most 7 module-frames): Packets of"));
	assert_true(is_printed(&w->e, "7 arrived damaged (ICRC)"));
	assert_true(is_printed(&w->e, "    To mend it: sudo ethtool -G eth7"));
	set_number(w->result, "link.turned_away", "icrc", 0);
	set(w->flight, "facts.frontend", "drop", json_real(0.0005));
	is(w, "small_receive_buffer", "200 receive-queue drops");
	assert_true(is_printed(&w->e, "leaves out about 8 packets (frontend.drop: 0.0005)"));
	assert_true(is_printed(&w->e, "sluice run e.yaml --set frontend.drop=0\n"));
}

/* Waiting a little, and often, is no starvation. */
static void a_busy_host_alone_is_not_the_cause(void **state)
{
	struct world *w = *state;

	miss_packets(w);
	grows(w, "thread.link-0.wait", 120000000, 1, SAMPLES);
	is(w, "lossy_cable", "200 of 17000");
	is_not(w, "starved_core");
}

static void stop_for(struct world *w, uint64_t ns)
{
	json_t *times = json_object_get(w->flight, "at_ns");

	for (size_t i = 9; i < SAMPLES; i++)
		json_array_set_new(times, i,
				   json_integer(json_integer_value(json_array_get(times, i)) +
						(json_int_t)ns));
	set_number(w->flight, "", "first_loss_ns",
		   (uint64_t)json_integer_value(json_array_get(times, 10)));
}

static void a_process_that_stood_still_was_stopped(void **state)
{
	struct world *w = *state;

	throw_away(w, 200);
	stop_for(w, 1200000000);
	is(w, "stopped_receiver", "1.20 s");
	assert_non_null(strstr(w->e.finding[0].command, "sluice ctl NAME pause"));
	assert_null(strstr(w->e.finding[0].command, "4711"));
	is_not(w, "starved_core");
	/* The same gap while threads waited for a cpu is something else. */
	grows(w, "thread.link-0.wait", 1300000000, 9, 10);
	grows(w, "thread.link-0.slices", 1, 1, SAMPLES);
	is(w, "starved_core", "ms at a time");
	is_not(w, "stopped_receiver");
}

static void one_thread_may_be_too_slow(void **state)
{
	struct world *w = *state;

	throw_away(w, 200);
	grows(w, "thread.link-0.run", 245000000, 5, SAMPLES);
	is(w, "busy_link_thread", "98 %");
	assert_string_equal(w->e.finding[0].command, "sluice run e.yaml --set link.pollers=2");
}

static void counters_below_the_sockets_are_named(void **state)
{
	struct world *w = *state;

	miss_packets(w);
	grows(w, "nic.eth7.rx_missed_errors", 50, 9, 13);
	is(w, "nic_ring", "200 packets");
	grows(w, "nic.eth7.rx_missed_errors", 1, 9, 13); /* too few to explain it */
	grows(w, "softnet.dropped", 60, 9, 13);
	is(w, "kernel_backlog", "240 packets");
	is_not(w, "nic_ring");
}

static void long_packets_that_never_come_are_an_mtu(void **state)
{
	struct world *w = *state;
	json_t *modules = json_object_get(json_object_get(w->flight, "packets"), "modules");

	miss_packets(w);
	for (size_t m = 0; m < MODULES; m++)
		json_object_set_new(json_array_get(modules, m), "longest_payload",
				    json_integer(100));
	is(w, "wrong_mtu", "longest that arrived has 128");
	assert_string_equal(w->e.finding[0].command, "sluice run e.yaml --set link.pmtu=1024");
	set_number(w->flight, "facts.link", "mtu", 1500);
	is(w, "wrong_mtu", "4140 bytes");
	assert_string_equal(w->e.finding[0].command, "sudo ip link set eth7 mtu 9000");
	/* Not one came, and the interface could not have taken it. */
	json_array_clear(modules);
	set_number(w->result, "link", "packets", 0);
	is(w, "wrong_mtu", "takes at most 1500");
}

static void marked_packets_are_congestion(void **state)
{
	struct world *w = *state;

	miss_packets(w);
	set_number(w->result, "link", "marked", 300);
	set_number(w->result, "link", "notified", 7);
	is(w, "congested_port", "marked 300 of 16800");
	assert_non_null(strstr(w->e.finding[0].command, "link.rate_limit="));
}

static void packets_gone_on_the_way_are_the_cable(void **state)
{
	struct world *w = *state;
	json_t *module =
		json_array_get(json_object_get(json_object_get(w->result, "ledger"), "modules"), 1);

	miss_packets(w);
	set_number(module, "causes", "damaged", 100);
	is(w, "lossy_cable", "Packets of module 1 were lost");
	assert_true(w->e.finding[0].score < 0.8);
	set_number(w->result, "link.turned_away", "icrc", 30);
	is(w, "lossy_cable", "30 arrived damaged (ICRC); 170 of 17000 did not arrive");
	assert_true(w->e.finding[0].score > 0.8);
	assert_non_null(strstr(w->e.finding[0].command, "ip -s -s link show dev eth7; ethtool"));
	/* All that are missing arrived damaged: they are counted once. */
	set_number(w->result, "link.turned_away", "icrc", 200);
	is(w, "lossy_cable", "; 200 arrived damaged (ICRC).");
	/* There is no cable, and no NIC to ask. */
	set_text(w->flight, "facts.link", "interface", "lo");
	is(w, "lossy_cable", "200 arrived damaged");
	assert_string_equal(w->e.finding[0].command,
			    "ip -s -s link show dev lo; tc -s qdisc show dev lo");
}

static void a_module_that_comes_late_is_named(void **state)
{
	struct world *w = *state;
	json_t *module =
		json_array_get(json_object_get(json_object_get(w->result, "ledger"), "modules"), 1);

	lose(w, "incomplete", "late", 40);
	set_number(module, "causes", "late", 40);
	is(w, "late_front_end", "40 module-frames of module 1");
	lose(w, "incomplete", "late", 0);
	miss_packets(w);
	set_number(w->result, "link.turned_away", "late", 190);
	is(w, "late_front_end", "190 packets");
	assert_string_equal(w->e.finding[0].command,
			    "sluice run e.yaml --set ring.late_timeout_ms=5000");
}

static void packets_of_others_are_told_from_missing_ones(void **state)
{
	struct world *w = *state;

	miss_packets(w);
	set_number(w->result, "link.turned_away", "key", 180);
	is(w, "foreign_packets", "(key)");
	assert_string_equal(w->e.finding[0].command, "sudo tcpdump -ni eth7 -c 20 -X udp");
	w->flight_path = "my runs/000001/flight.json";
	set_text(w->flight, "packets", "file", "flight.pcapng");
	is(w, "foreign_packets", "180 packets");
	assert_string_equal(w->e.finding[0].command,
			    "tshark -r 'my runs/000001/flight.pcapng' -c 20 -V");
	set_text(w->flight, "packets", "file", "../../etc/passwd"); /* beside it, or nowhere */
	is(w, "foreign_packets", "180 packets");
	assert_non_null(strstr(w->e.finding[0].command, "tcpdump"));
}

static void silence_is_told_from_loss(void **state)
{
	struct world *w = *state;

	lose(w, "lost", "no_arrival", 1000);
	set_number(w->result, "link", "packets", 0);
	is(w, "nothing_arrives", "1000 module-frames");
}

static void a_full_ring_has_a_policy(void **state)
{
	struct world *w = *state;

	lose(w, "overrun", "oldest", 60);
	set_text(w->flight, "facts.ring", "overrun", "drop_oldest");
	set(w->result, "rates", "unit_busy", json_real(0.95));
	is(w, "overrun_policy", "95 %");
	assert_non_null(strstr(w->e.finding[0].sentence, "given back"));
	lose(w, "overrun", "oldest", 0);
	lose(w, "overrun", "no_slot", 60);
	is(w, "overrun_policy", "turned away");
	assert_string_equal(w->e.finding[0].command, "sluice run e.yaml --set ring.slots=128");
	set(w->flight, "facts.link", "credits", json_true());
	is(w, "overrun_policy", "60 module-frames");
	assert_string_equal(w->e.finding[0].command, "sluice run e.yaml --set ring.overrun=pause");
}

static void who_filled_the_ring_is_named(void **state)
{
	struct world *w = *state;
	json_t *sink = add_sink(w, "nexus", NULL);

	lose(w, "overrun", "no_slot", 60);
	set_number(sink, "pace", "waited_ns", 3000000000);
	is(w, "slow_disk", "waited 3.00 s for it, which writes /data/run.nxs");
	set_number(sink, "pace", "waited_ns", 1000000); /* that is nothing */
	grows(w, "thread.worker-0.wait", 200000000, 8, 14);
	grows(w, "thread.worker-0.slices", 4, 1, SAMPLES);
	is(w, "starved_core", "50 ms at a time");
	/* With all the time in the world it could not have done three times as much. */
	grows(w, "sent", 50, 0, SAMPLES);
	grows(w, "cause.no_slot", 40, 0, SAMPLES);
	is(w, "overrun_policy", "turned away");
	grows(w, "cause.no_slot", 10, 0, SAMPLES);
	is(w, "starved_core", "50 ms at a time");
	/* A quota: one long wait in each sample, and many short ones. */
	grows(w, "thread.worker-0.slices", 100, 1, SAMPLES);
	grows(w, "cgroup.throttled_us", 200000, 8, 14);
	is(w, "starved_core", "by its quota");
	stop_for(w, 1500000000);
	grows(w, "thread.worker-0.wait", 1000000, 1, SAMPLES);
	is(w, "stopped_receiver", "1.50 s");
}

static void each_error_of_a_disk_has_its_cause(void **state)
{
	static const struct {
		int error;
		const char *cause;
	} errors[] = {{ENOSPC, "full_disk"},
		      {EDQUOT, "disk_quota"},
		      {EFBIG, "file_size_limit"},
		      {EIO, "failed_sink"}};
	struct world *w = *state;
	json_t *sink = add_sink(w, "nexus", "");

	lose(w, "unwritten", "sink", 50);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		json_object_set_new(sink, "error", json_string(strerror(errors[i].error)));
		is(w, errors[i].cause, strerror(errors[i].error));
		assert_int_equal(w->e.findings, 1);
	}
	json_object_set_new(sink, "error", json_null());
	is(w, "failed_sink", "without an error of its own");
}

static void a_sink_that_leaves_frames_out_is_slow(void **state)
{
	struct world *w = *state;
	json_t *sink = add_sink(w, "nexus", NULL);

	lose(w, "unwritten", "slow", 80);
	set_number(sink, "pace", "left_out", 40);
	is(w, "slow_disk", "left out 40 kept frames");
}

static void other_causes_of_the_ledger_have_theirs(void **state)
{
	static const struct {
		const char *outcome, *cause, *is;
	} kinds[] = {{"incomplete", "checksum", "spoilt_memory"},
		     {"incomplete", "record", "wrong_record"},
		     {"overrun", "overwritten", "overwritten"},
		     {"refused", "unit", "failed_unit"}};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		lose(w, kinds[i].outcome, kinds[i].cause, 33);
		is(w, kinds[i].is, "33 module-frames");
		assert_int_equal(w->e.findings, 1);
		lose(w, kinds[i].outcome, kinds[i].cause, 0);
	}
}

static void what_sources_did_is_no_loss_on_the_way(void **state)
{
	struct world *w = *state;
	json_t *module =
		json_array_get(json_object_get(json_object_get(w->result, "ledger"), "modules"), 0);

	lose(w, "lost", "no_arrival", 25);
	set_number(w->result, "ledger.total", "skipped", 25);
	w->result_path = "it's/result.json";
	is(w, "skipped_frames", "25 module-frames");
	is_not(w, "lossy_cable");
	assert_string_equal(w->e.finding[0].command,
			    "grep -E '\"(module|skipped)\":' 'it'\\''s/result.json'");
	set(w->flight, "facts.frontend", "skip", json_real(0.05));
	is(w, "skipped_frames", "25 module-frames");
	assert_string_equal(w->e.finding[0].command, "sluice run e.yaml --set frontend.skip=0");
	set_number(w->result, "ledger.total", "skipped", 0);
	lose(w, "lost", "no_arrival", 0);
	lose(w, "incomplete", "partner", 70);
	set_text(module, "", "source", "vanished");
	is(w, "vanished_front_end", "module 0 vanished");
}

/* Whatever was known to be sent has arrived: that is not all. */
static void a_run_that_is_unclosed_has_lost_what_is_not_counted(void **state)
{
	struct world *w = *state;
	json_t *module =
		json_array_get(json_object_get(json_object_get(w->result, "ledger"), "modules"), 0);

	set_text(module, "", "source", "vanished");
	set_number(module, "", "offered", 800);
	assert_int_equal(explain(w, true, true), 0);
	assert_true(w->e.is_unclosed);
	assert_int_equal(w->e.lost, 0);
	assert_int_equal(w->e.findings, 1);
	assert_string_equal(w->e.finding[0].cause, "vanished_front_end");
	assert_true(is_printed(&w->e, "offered 300 module-frames more than it sent"));
	assert_true(is_printed(&w->e, "the run is unclosed: of 1000 module-frames"));
	set_text(module, "", "source", "done");
	set(w->result, "ledger", "closed", json_false());
	set_number(w->result, "ledger", "misuse", 3);
	assert_int_equal(explain(w, true, true), 0);
	assert_true(w->e.is_unclosed);
	assert_int_equal(w->e.findings, 0);
	assert_true(is_printed(&w->e, "outcomes written twice 3"));
	/* While it goes on, its ledger is open. */
	json_object_set_new(w->result, "gauges", json_object());
	json_object_set_new(w->result, "state", json_string("running"));
	assert_int_equal(explain(w, true, true), 0);
	assert_false(w->e.is_unclosed);
}

/* Two losses of different kinds: the larger first, both told. */
static void several_causes_are_ranked(void **state)
{
	struct world *w = *state;

	add_sink(w, "nexus", strerror(ENOSPC));
	miss_packets(w);
	set_number(w->result, "ledger.total.outcomes", "unwritten", 400);
	set_number(w->result, "ledger.total.causes", "sink", 400);
	is(w, "full_disk", "400 module-frames");
	assert_non_null(finding(w, "lossy_cable"));
	set_number(w->result, "ledger.total.outcomes", "unwritten", 4);
	set_number(w->result, "ledger.total.causes", "sink", 4);
	is(w, "lossy_cable", "200 of 17000");
	assert_non_null(finding(w, "full_disk"));
	assert_int_equal(w->e.lost, 104);
}

static void a_cause_that_no_rule_knows_is_not_known(void **state)
{
	struct world *w = *state;
	char *text = NULL;
	size_t bytes = 0;
	FILE *out;

	lose(w, "incomplete", "partner", 10);
	assert_int_equal(explain(w, true, true), 0);
	assert_int_equal(w->e.lost, 10);
	assert_int_equal(w->e.findings, 0);
	assert_non_null(strstr(w->e.looked_at, "partner 10"));
	out = open_memstream(&text, &bytes);
	sl_explain_print(out, &w->e);
	fclose(out);
	assert_non_null(strstr(text, "The cause is not known. Looked at: "));
	free(text);
}

/* ---- what is missing ---- */

static void the_ledger_alone_says_what_it_can(void **state)
{
	struct world *w = *state;

	throw_away(w, 200);
	assert_int_equal(explain(w, true, false), 0);
	assert_false(w->e.has_flight);
	assert_string_equal(w->e.finding[0].cause, "overflowed_buffer");
	assert_true(w->e.finding[0].score <= 0.5);
	assert_non_null(strstr(w->e.finding[0].sentence, "without a flight record"));
	set_number(w->result, "link.turned_away", "full", 0);
	assert_int_equal(explain(w, true, false), 0);
	assert_string_equal(w->e.finding[0].cause, "lossy_cable");
}

/* A run that was killed left its record. */
static void the_record_alone_has_a_ledger(void **state)
{
	struct world *w = *state;

	set_number(w->flight, "facts.link", "modules", MODULES);
	grows(w, "outcome.incomplete", 20, 10, SAMPLES);
	grows(w, "cause.damaged", 20, 10, SAMPLES);
	grows(w, "link.packets", 800, 1, SAMPLES);
	grows(w, "module.0.sent", 25, 1, SAMPLES);
	grows(w, "module.1.sent", 25, 1, SAMPLES);
	assert_int_equal(explain(w, false, true), 0);
	assert_false(w->e.has_result);
	assert_int_equal(w->e.lost, 1200);
	assert_string_equal(w->e.finding[0].cause, "lossy_cable");
}

/* The status of a session has other names for the same. */
static void a_live_session_is_explained(void **state)
{
	struct world *w = *state;
	json_t *link = json_object_get(w->result, "link");
	json_t *backlog = json_object_get(w->result, "backlog"), *reply;

	miss_packets(w);
	set_number(link, "turned_away", "icrc", 30);
	json_object_set(link, "dropped", json_object_get(link, "turned_away"));
	json_object_del(link, "turned_away");
	json_object_set(w->result, "gauges", backlog);
	json_object_del(w->result, "backlog");
	json_object_set_new(w->result, "state", json_string("running"));
	reply = json_pack("{s:b, s:o}", "ok", 1, "status", w->result);
	w->result = reply;
	is(w, "lossy_cable", "30 arrived damaged");
	assert_true(w->e.is_live);
	/* More has arrived than front ends have said to have sent so far. */
	set_number(json_object_get(w->result, "status"), "link", "packets", 17100);
	set_number(json_object_get(w->result, "status"), "link.dropped", "icrc", 0);
	is(w, "lossy_cable", "100 of 17200 did not arrive");
}

static void refused(const char *result, const char *flight, const char *says)
{
	struct sl_explanation e;
	char why[300] = "";

	struct sl_explain_texts texts = {.result = result,
					 .result_bytes = result ? strlen(result) : 0,
					 .flight = flight,
					 .flight_bytes = flight ? strlen(flight) : 0};

	assert_int_equal(sl_explain(&texts, &e, why, sizeof(why)), -EINVAL);
	if (!strstr(why, says))
		fail_msg("'%s' is not in: %s", says, why);
}

static void what_is_no_result_is_refused(void **state)
{
	refused("", NULL, "no JSON object");
	refused("[1, 2]", NULL, "no JSON object");
	refused("{\"a\": ", NULL, "no JSON object");
	refused("{\"result\": \"error\"}", NULL, "no ledger");
	refused(NULL, "{}", "schema 1");
	refused(NULL, "{\"schema\": 2}", "schema 1");
	refused("{\"ledger\": {}}", "x", "flight.json");
}

/* Values of other types, below zero, and lists that are too short. */
static void nonsense_counts_as_absent(void **state)
{
	struct world *w = *state;
	json_t *array;

	throw_away(w, 200);
	set_text(w->result, "link", "receive_buffer", "many");
	set(w->result, "ledger.total", "skipped", json_integer(-5));
	set(w->result, "", "sinks", json_integer(3));
	set(w->flight, "facts", "link", json_array());
	array = series(w, "thread.link-0.wait");
	json_array_clear(array);
	json_array_append_new(array, json_string("?"));
	array = json_object_get(w->flight, "series");
	json_array_append_new(array, json_null());
	json_array_append_new(array, json_pack("{s:i}", "name", 4));
	json_array_append_new(json_object_get(w->flight, "at_ns"), json_integer(5));
	assert_int_equal(explain(w, true, true), 0);
	assert_int_equal(w->e.lost, 100);
}

/* ---- what is printed ---- */

static void json_has_what_the_text_has(void **state)
{
	struct world *w = *state;
	char *text, *people = NULL;
	size_t bytes = 0;
	json_t *json, *first;
	FILE *out;

	miss_packets(w);
	assert_int_equal(explain(w, true, true), 0);
	snprintf(w->e.run, sizeof(w->e.run), "runs/000001");
	text = sl_explain_json(&w->e, 1);
	json = json_loads(text, 0, NULL);
	first = json_array_get(json_object_get(json, "causes"), 0);
	assert_string_equal(json_string_value(json_object_get(json, "cause")), "lossy_cable");
	assert_int_equal(json_integer_value(json_object_get(json, "lost")), 100);
	out = open_memstream(&people, &bytes);
	sl_explain_print(out, &w->e);
	fclose(out);
	assert_non_null(strstr(people, json_string_value(json_object_get(first, "sentence"))));
	assert_non_null(strstr(people, json_string_value(json_object_get(first, "command"))));
	json_decref(json);
	free(people);
	free(text);
	text = sl_explain_json(&w->e, 0);
	assert_non_null(strstr(text, "transfers"));
	free(text);
}

/* Every cause that a rule names is in the list. */
static void every_cause_has_a_line(void **state)
{
	unsigned n = 0;

	for (const struct sl_cause_word *c = sl_explain_causes; c->name; c++, n++)
		assert_true(c->doc[0] && strlen(c->name) < 22);
	assert_int_equal(n, 25);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_lost_has_no_cause),
		CASE(a_buffer_that_holds_less_than_a_block_is_too_small),
		CASE(a_thread_that_gets_no_cpu_is_starved),
		CASE(a_thread_that_waits_little_is_not_starved),
		CASE(a_buffer_that_lasts_is_not_blamed),
		CASE(what_full_queues_cannot_explain_was_lost_on_the_way),
		CASE(what_is_damaged_while_queues_are_empty_was_lost_on_the_way),
		CASE(several_ways_to_lose_packets_are_all_named),
		CASE(a_busy_host_alone_is_not_the_cause),
		CASE(a_process_that_stood_still_was_stopped),
		CASE(one_thread_may_be_too_slow),
		CASE(counters_below_the_sockets_are_named),
		CASE(long_packets_that_never_come_are_an_mtu),
		CASE(marked_packets_are_congestion),
		CASE(packets_gone_on_the_way_are_the_cable),
		CASE(a_module_that_comes_late_is_named),
		CASE(packets_of_others_are_told_from_missing_ones),
		CASE(silence_is_told_from_loss),
		CASE(a_full_ring_has_a_policy),
		CASE(who_filled_the_ring_is_named),
		CASE(each_error_of_a_disk_has_its_cause),
		CASE(a_sink_that_leaves_frames_out_is_slow),
		CASE(other_causes_of_the_ledger_have_theirs),
		CASE(what_sources_did_is_no_loss_on_the_way),
		CASE(a_run_that_is_unclosed_has_lost_what_is_not_counted),
		CASE(several_causes_are_ranked),
		CASE(a_cause_that_no_rule_knows_is_not_known),
		CASE(the_ledger_alone_says_what_it_can),
		CASE(the_record_alone_has_a_ledger),
		CASE(a_live_session_is_explained),
		cmocka_unit_test(what_is_no_result_is_refused),
		CASE(nonsense_counts_as_absent),
		CASE(json_has_what_the_text_has),
		cmocka_unit_test(every_cause_has_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
