/* recorder_test.c - when the recorder freezes, what it then writes, and that nothing of it fails a
 * run. */
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "flight/recorder.h"

struct world {
	char folder[64];
	int dir;
	_Atomic uint64_t lost, stored;
	struct sl_flight_tap *tap;
	struct sl_recorder *recorder;
	struct sl_recorder_run run;
};

static void status_of(void *arg, struct sl_status *status)
{
	struct world *w = arg;

	memset(status, 0, sizeof(*status));
	status->modules = 1;
	status->column[0].outcome[SL_STORED] = w->stored;
	status->column[0].outcome[SL_LOST] = w->lost;
	status->column[0].cause[SL_CAUSE_NO_ARRIVAL] = w->lost;
	status->column[0].sent = w->stored + w->lost;
	status->disks = 1;
	snprintf(status->disk[0].path, sizeof(status->disk[0].path), "%s", w->folder);
}

static int begin(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	snprintf(w->folder, sizeof(w->folder), "/tmp/flight-XXXXXX");
	assert_non_null(mkdtemp(w->folder));
	w->dir = open(w->folder, O_RDONLY | O_DIRECTORY);
	assert_int_equal(sl_flight_open(2, &w->tap), 0);
	assert_int_equal(sl_recorder_open("", &w->recorder), 0);
	w->run = (struct sl_recorder_run){
		.status = status_of,
		.arg = w,
		.tap = w->tap,
		.taps = 2,
		.facts = {.link = "udp", .listen = "127.0.0.1", .overrun = "pause", .pmtu = 4096},
		.dir = w->dir,
		.json = "flight.json",
		.pcapng = "flight.pcapng",
		.after_s = 0.3,
	};
	*state = w;
	return 0;
}

static int end(void **state)
{
	struct world *w = *state;
	char command[128];

	sl_recorder_close(w->recorder);
	sl_flight_close(w->tap);
	close(w->dir);
	snprintf(command, sizeof(command), "rm -rf %s", w->folder);
	free(w);
	return system(command);
}

static bool is_there(const struct world *w, const char *name)
{
	return !faccessat(w->dir, name, F_OK, 0);
}

static json_t *flight(const struct world *w)
{
	char path[128];
	json_t *json;

	snprintf(path, sizeof(path), "%s/flight.json", w->folder);
	json = json_load_file(path, 0, NULL);
	assert_non_null(json);
	return json;
}

static const json_t *series(const json_t *flight, const char *name)
{
	const json_t *array = json_object_get(flight, "series"), *one;
	size_t i;

	json_array_foreach(
		array, i,
		one) if (!strcmp(json_string_value(json_object_get(one, "name")), name)) return one;
	fail_msg("no series %s", name);
	return NULL;
}

static void sleep_ms(unsigned ms)
{
	sl_clock_sleep_until(sl_clock_ns() + ms * UINT64_C(1000000));
}

static void sample_packet(struct world *w, unsigned tap, uint16_t module, uint32_t bytes)
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
	uint8_t payload[5000] = {4};
	struct sl_flight_packet packet = {.at_ns = sl_clock_ns(),
					  .source_port = 1000,
					  .dest_port = 4791,
					  .module = module,
					  .tos = 2};

	memcpy(packet.source, v4, 16);
	memcpy(packet.dest, v4, 16);
	sl_flight_keep(&packet, payload, sizeof(payload), bytes);
	w->tap[tap].next_ns = 0;
	sl_flight_take(&w->tap[tap], &packet);
}

static void nothing_lost_leaves_nothing(void **state)
{
	struct world *w = *state;

	sl_recorder_begin(w->recorder, &w->run);
	w->stored = 100;
	sleep_ms(50);
	assert_false(sl_recorder_is_frozen(w->recorder));
	assert_false(sl_recorder_end(w->recorder));
	assert_false(is_there(w, "flight.json") || is_there(w, "flight.pcapng"));
	assert_false(sl_recorder_end(w->recorder)); /* once more does no harm */
}

/* However short the run. */
static void what_is_lost_at_the_end_is_frozen_there(void **state)
{
	struct world *w = *state;
	json_t *json;

	sl_recorder_begin(w->recorder, &w->run);
	sample_packet(w, 0, 0, 4200);
	sample_packet(w, 1, 1, 300);
	sample_packet(w, 1, SL_FLIGHT_NO_MODULE, 20);
	w->lost = 3;
	assert_true(sl_recorder_end(w->recorder));
	assert_true(is_there(w, "flight.pcapng"));
	assert_false(is_there(w, "flight.json.part") || is_there(w, "flight.pcapng.part"));
	json = flight(w);
	assert_int_equal(json_integer_value(json_object_get(json, "schema")), 1);
	json_decref(json);
}

static void it_goes_on_a_little_and_freezes_once(void **state)
{
	struct world *w = *state;
	const json_t *lost, *values;
	struct stat before, after;
	json_t *json;

	sl_recorder_begin(w->recorder, &w->run);
	w->stored = 10;
	sleep_ms(400);
	w->lost = 5;
	for (unsigned i = 0; i < 1000 && !sl_recorder_is_frozen(w->recorder); i++)
		sleep_ms(20);
	assert_true(sl_recorder_is_frozen(w->recorder));
	json = flight(w);
	assert_true(json_integer_value(json_object_get(json, "frozen_ns")) >=
		    json_integer_value(json_object_get(json, "first_loss_ns")) + 300000000);
	lost = series(json, "cause.no_arrival");
	values = json_object_get(lost, "values");
	assert_string_equal(json_string_value(json_object_get(lost, "kind")), "counter");
	assert_int_equal(json_array_size(values), json_array_size(json_object_get(json, "at_ns")));
	assert_int_equal(json_integer_value(json_array_get(values, 0)), 0);
	assert_int_equal(json_integer_value(json_array_get(values, json_array_size(values) - 1)),
			 5);
	assert_non_null(series(json, "thread.flight.run"));
	assert_non_null(series(json, "space.0"));
	json_decref(json);
	assert_int_equal(fstatat(w->dir, "flight.json", &before, 0), 0);
	w->lost = 9;
	sleep_ms(50);
	assert_true(sl_recorder_end(w->recorder));
	assert_int_equal(fstatat(w->dir, "flight.json", &after, 0), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

static void a_run_after_another_has_its_own(void **state)
{
	struct world *w = *state;

	sl_recorder_begin(w->recorder, &w->run);
	w->lost = 1;
	assert_true(sl_recorder_end(w->recorder));
	w->lost = 0;
	snprintf(w->run.json, sizeof(w->run.json), "second.json");
	sl_recorder_begin(w->recorder, &w->run);
	assert_false(sl_recorder_is_frozen(w->recorder));
	assert_false(sl_recorder_end(w->recorder));
	assert_false(is_there(w, "second.json"));
}

static void ignore_line(void *arg, enum sl_log_level level, const char *line)
{
	++*(unsigned *)arg;
}

static void files_that_cannot_be_written_fail_nothing(void **state)
{
	struct world *w = *state;
	unsigned lines = 0;
	const struct sl_log_target quiet = {ignore_line, &lines}, *was = sl_log_target();

	snprintf(w->run.json, sizeof(w->run.json), "no/such/folder.json");
	sl_recorder_begin(w->recorder, &w->run);
	w->lost = 1;
	sl_log_set_target(&quiet);
	assert_false(sl_recorder_end(w->recorder));
	sl_log_set_target(was);
	assert_int_equal(lines, 1);
	assert_false(sl_recorder_is_frozen(w->recorder));
}

static void packets_are_told_in_brief_by_module(void **state)
{
	struct world *w = *state;
	const json_t *modules, *one;
	json_t *json;

	sl_recorder_begin(w->recorder, &w->run);
	for (unsigned i = 0; i < 20; i++)
		sample_packet(w, 0, 7, 100 + i);
	w->lost = 1;
	assert_true(sl_recorder_end(w->recorder));
	json = flight(w);
	modules = json_object_get(json_object_get(json, "packets"), "modules");
	assert_int_equal(json_array_size(modules), 1);
	one = json_array_get(modules, 0);
	assert_int_equal(json_integer_value(json_object_get(one, "module")), 7);
	assert_int_equal(json_integer_value(json_object_get(one, "sampled")), 20);
	assert_int_equal(json_integer_value(json_object_get(one, "shortest_payload")), 100);
	assert_int_equal(json_integer_value(json_object_get(one, "longest_payload")), 119);
	assert_int_equal(json_integer_value(json_object_get(one, "marked")), 0);
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_lost_leaves_nothing, begin, end),
		cmocka_unit_test_setup_teardown(what_is_lost_at_the_end_is_frozen_there, begin,
						end),
		cmocka_unit_test_setup_teardown(it_goes_on_a_little_and_freezes_once, begin, end),
		cmocka_unit_test_setup_teardown(a_run_after_another_has_its_own, begin, end),
		cmocka_unit_test_setup_teardown(files_that_cannot_be_written_fail_nothing, begin,
						end),
		cmocka_unit_test_setup_teardown(packets_are_told_in_brief_by_module, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
