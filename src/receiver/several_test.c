/* several_test.c - two detectors in one receiver, over UDP: each has its ring, its link and its
 * emulator; the camera has a part of each n-th event. Keys, clocks, losses, dividers and policies
 * are drawn, and outcomes compared one by one with the fault logs of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "emulator/emulator.h"
#include "receiver/private.h"

enum { IMAGE, CAMERA, DETECTORS };
enum { EVENTS = 240, MODULES = 3, DRAWN = 18 };

struct mix {
	enum sl_align_by by;
	uint64_t divider;
	double rate_Hz, drift, drop, skip; /* of the camera's clock; of packets; of blocks */
	enum sl_join_missing missing;
	int64_t offset; /* of its counter: frames; or of its clock: ns */
};

static const struct {
	uint32_t first, modules;
	const char *shape;
} detector[DETECTORS] = {
	[IMAGE] = {0, 2, "rows: 32, columns: 64"},
	[CAMERA] = {2, 1, "rows: 20, columns: 100"},
};

struct several {
	const struct mix *mix;
	struct sl_experiment *here, *there[DETECTORS];
	struct sl_receiver *receiver;
	struct sl_emulator *emulator[DETECTORS];
	char faults[DETECTORS][40], outcomes[40];
};

static unsigned frames_of(unsigned d, const struct mix *mix)
{
	return d == CAMERA ? EVENTS / (unsigned)mix->divider : EVENTS;
}

/* The camera's clock is fast: it says a longer time for the same event. */
static double rate_of(unsigned d, const struct mix *mix)
{
	return d == CAMERA ? mix->rate_Hz / (double)mix->divider / (1 + mix->drift) : mix->rate_Hz;
}

static void write_file(unsigned d, const struct mix *mix, char *path)
{
	FILE *file = fdopen(mkstemp(path), "w");

	assert_non_null(file);
	fprintf(file,
		"detector: {kind: pattern, modules: %u, frames: %u, dark_frames: 0, frame_rate_Hz: "
		"%.9f, %s}\n"
		"link: {kind: udp, pmtu: 256}\n"
		"ring: {slots: 16, poison: true, late_frames: 4, late_timeout_ms: 20000}\n"
		"sinks: ['null']\n"
		"frontend: {drop: %g, skip: %g, fault_seed: %u}\n",
		detector[d].modules, frames_of(d, mix), rate_of(d, mix), detector[d].shape,
		mix->drop, mix->skip, 77 + d);
	fclose(file);
}

static struct sl_experiment *open_one(unsigned d, const struct mix *mix, const char *log)
{
	char path[] = "/tmp/sluice-several-XXXXXX", listen[64], source[64], to[80];
	const char *sets[] = {listen, source, to};
	unsigned pid = (unsigned)getpid();
	struct sl_experiment *e = NULL;

	write_file(d, mix, path);
	snprintf(listen, sizeof(listen), "link.listen=127.%u.%u.%u", 101 + pid / 60000 % 100,
		 1 + pid / 60 % 250, (pid % 60) * 4 + 2 * d + 1);
	snprintf(source, sizeof(source), "link.source=127.%u.%u.%u", 101 + pid / 60000 % 100,
		 1 + pid / 60 % 250, (pid % 60) * 4 + 2 * d + 2);
	snprintf(to, sizeof(to), "frontend.fault_log=%s", log);
	assert_int_equal(sl_experiment_open(path, NULL, sets, log[0] ? 3 : 2, &e), 0);
	unlink(path);
	return e;
}

static void temporary(char *path, size_t bytes)
{
	int fd;

	snprintf(path, bytes, "/tmp/sluice-several-log-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
}

static void plan(struct several *s, unsigned d)
{
	char why[160];

	assert_int_equal(sl_emulator_open(s->there[d], 0, UINT32_MAX, &s->emulator[d]), 0);
	assert_int_equal(sl_emulator_plan_begin(s->emulator[d]), 0);
	for (uint32_t m = 0; m < detector[d].modules; m++) {
		struct sl_offer offer;
		struct sl_plan plan;

		assert_int_equal(sl_emulator_offer(s->emulator[d], m, &offer), 0);
		assert_int_equal(sl_feed_accept(&s->receiver->feed[d], &offer, true, &plan, why,
						sizeof(why)),
				 0);
		assert_int_equal(sl_emulator_connect(s->emulator[d], &plan), 0);
	}
}

/* The front end of the camera has its counter, or its clock. */
static void set_ahead(struct sl_experiment *camera, const struct mix *mix)
{
	camera->key = (struct sl_key_options){.by = mix->by,
					      .offset = (double)mix->offset,
					      .divider = mix->divider,
					      .wrap_bits = 64};
}

static void open_several(struct several *s, const struct mix *mix)
{
	const struct sl_join_options join = {
		.by = mix->by,
		.offset = mix->offset,
		.divider = mix->divider,
		.drift = mix->drift,
		.window = 1000,
		.missing = mix->missing,
		.wait_ns = UINT64_C(60000000000), /* only the order of parts decides */
	};

	s->mix = mix;
	for (unsigned d = 0; d < DETECTORS; d++) {
		temporary(s->faults[d], sizeof(s->faults[d]));
		s->there[d] = open_one(d, mix, s->faults[d]);
	}
	set_ahead(s->there[CAMERA], mix);
	temporary(s->outcomes, sizeof(s->outcomes));
	unlink(s->outcomes);
	s->here = open_one(IMAGE, mix, "");
	assert_int_equal(sl_experiment_attach(s->here, "camera", open_one(CAMERA, mix, ""), &join),
			 0);
	assert_int_equal(sl_receiver_open(s->here, s->outcomes, &s->receiver), 0);
	for (unsigned d = 0; d < DETECTORS; d++)
		plan(s, d);
	assert_int_equal(sl_receiver_start(s->receiver), 0);
	for (unsigned d = 0; d < DETECTORS; d++)
		assert_int_equal(sl_emulator_start(s->emulator[d]), 0);
}

static void pass_counts(struct several *s, unsigned d, bool final)
{
	for (uint32_t m = 0; m < detector[d].modules; m++) {
		struct sl_emulator_module *module = &s->emulator[d]->module[m];
		uint64_t position = atomic_load(&module->position);
		uint64_t sent = atomic_load(&module->sent), next = atomic_load(&module->next);
		char why[128];

		assert_int_equal(sl_receiver_count(s->receiver, detector[d].first + m, next, sent,
						   position, final, why, sizeof(why)),
				 0);
	}
}

static void run(struct several *s)
{
	bool over[DETECTORS] = {false};

	while (!over[IMAGE] || !over[CAMERA]) {
		for (unsigned d = 0; d < DETECTORS; d++) {
			if (over[d])
				continue;
			sl_emulator_log_faults(s->emulator[d]);
			over[d] = sl_emulator_finished(s->emulator[d]);
			pass_counts(s, d, over[d]);
		}
		sl_clock_sleep_until(sl_clock_ns() + 5000000);
	}
	while (!sl_receiver_done(s->receiver))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
	for (unsigned d = 0; d < DETECTORS; d++)
		assert_int_equal(sl_emulator_plan_end(s->emulator[d]), 0);
	assert_int_equal(sl_receiver_finish(s->receiver), 0);
}

static void close_several(struct several *s)
{
	for (unsigned d = 0; d < DETECTORS; d++)
		sl_emulator_close(s->emulator[d]);
	sl_receiver_close(s->receiver);
	sl_experiment_close(s->here);
	for (unsigned d = 0; d < DETECTORS; d++) {
		sl_experiment_close(s->there[d]);
		unlink(s->faults[d]);
	}
	unlink(s->outcomes);
}

/* ---- what must come out ---- */

struct expected {
	const struct mix *mix;
	unsigned dropped[MODULES][EVENTS]; /* packets of a module-frame that were not sent */
	bool skipped[MODULES][EVENTS];
	unsigned packets[MODULES]; /* of a block */
};

static void read_faults(const struct several *s, struct expected *x)
{
	for (unsigned d = 0; d < DETECTORS; d++) {
		FILE *log = fopen(s->faults[d], "r");
		unsigned module, packet;
		unsigned long long k;
		char kind[32];

		assert_non_null(log);
		while (fscanf(log, "%u %llu %u %31s", &module, &k, &packet, kind) == 4) {
			if (!strcmp(kind, "skip"))
				x->skipped[detector[d].first + module][k] = true;
			else
				x->dropped[detector[d].first + module][k]++;
		}
		fclose(log);
	}
	x->mix = s->mix;
	for (uint32_t m = 0; m < MODULES; m++)
		x->packets[m] = s->receiver->source[m].plan.packets;
}

static bool is_hurt(const struct expected *x, uint32_t m, uint64_t k)
{
	return x->skipped[m][k] || x->dropped[m][k];
}

/* The event has all that it needs. */
static bool is_whole(const struct expected *x, uint64_t event)
{
	bool camera = x->mix->missing == SL_JOIN_REQUIRE && event % x->mix->divider == 0;

	return !is_hurt(x, 0, event) && !is_hurt(x, 1, event) &&
	       (!camera || !is_hurt(x, 2, event / x->mix->divider));
}

/* By time a part finds an event only if a record of that one arrived. */
static bool has_key(const struct expected *x, uint64_t event)
{
	return x->mix->by != SL_ALIGN_TIMESTAMP || !is_hurt(x, 0, event) || !is_hurt(x, 1, event);
}

static const char *cause_of(const struct expected *x, uint32_t m, uint64_t k)
{
	uint64_t event = m == 2 ? k * x->mix->divider : k;

	if (x->skipped[m][k] || x->dropped[m][k] == x->packets[m])
		return "no_arrival";
	if (x->dropped[m][k])
		return "damaged";
	if (m == 2 && !has_key(x, event))
		return "no_event";
	return is_whole(x, event) ? "none" : "partner";
}

/* An event that does not wait for its part may have gone on before that came. */
static bool may_be_late(const struct expected *x, uint32_t m, uint64_t k, const char *cause)
{
	return x->mix->missing == SL_JOIN_OPTIONAL && m == 2 && !is_hurt(x, m, k) &&
	       !strcmp(cause, "late");
}

static void check_outcomes(const struct several *s, const struct expected *x)
{
	FILE *log = fopen(s->outcomes, "r");
	uint64_t lines = 0;
	unsigned module;
	unsigned long long k;
	char outcome[32], cause[32];

	assert_non_null(log);
	while (fscanf(log, "%llu %u %31s %31s", &k, &module, outcome, cause) == 4) {
		if (strcmp(cause, cause_of(x, module, k)) != 0 && !may_be_late(x, module, k, cause))
			fail_msg("by %d divider %llu missing %d: sequence %llu module %u: %s %s "
				 "instead of %s",
				 x->mix->by, (unsigned long long)x->mix->divider, x->mix->missing,
				 k, module, outcome, cause, cause_of(x, module, k));
		if (!strcmp(cause, "none"))
			assert_string_equal(outcome, "stored");
		lines++;
	}
	fclose(log);
	assert_int_equal(lines, 2 * EVENTS + frames_of(CAMERA, x->mix));
}

static void flow(const struct mix *mix)
{
	static struct expected x;
	struct several s = {0};
	struct sl_status status;

	memset(&x, 0, sizeof(x));
	open_several(&s, mix);
	run(&s);
	sl_receiver_status(s.receiver, &status);
	assert_true(sl_status_closed(&status));
	assert_int_equal(status.modules, MODULES);
	read_faults(&s, &x);
	check_outcomes(&s, &x);
	close_several(&s);
}

static const struct mix no_faults = {.by = SL_ALIGN_SEQUENCE, .divider = 2, .rate_Hz = 5000};

static void two_detectors_are_stored_whole(void **state)
{
	struct several s = {0};

	open_several(&s, &no_faults);
	run(&s);
	for (uint32_t m = 0; m < MODULES; m++)
		assert_int_equal(s.receiver->ledger.tally[m].outcome[SL_STORED],
				 m == 2 ? EVENTS / 2 : EVENTS);
	close_several(&s);
}

/* ---- what is drawn ---- */

static uint64_t draw(uint64_t *seed, unsigned of)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*seed >> 33) % of;
}

/* Every key and policy comes up; the rest is drawn. SLUICE_SEED: another draw. */
static void outcomes_are_those_of_the_fault_logs(void **state)
{
	static const double drops[] = {0, 0.002, 0.01, 0.05};
	const char *given = getenv("SLUICE_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : 1;

	for (unsigned i = 0; i < DRAWN; i++) {
		struct mix mix = {
			.by = (enum sl_align_by)(i % 3),
			.missing = (enum sl_join_missing)(i / 3 % 3),
			.divider = (uint64_t)1 << draw(&seed, 4),
			.rate_Hz = 5000,
			.drift = (double)draw(&seed, 5) * 20e-6,
			.drop = drops[draw(&seed, 4)],
			.skip = draw(&seed, 3) ? 0 : 0.03,
		};

		/* Sequences begin at 0, whatever a counter says. */
		if (mix.by != SL_ALIGN_SEQUENCE)
			mix.offset = (int64_t)draw(&seed, 2000000) - 1000000;

		flow(&mix);
	}
}

static void what_does_not_fit_is_refused(void **state)
{
	struct sl_experiment *here = open_one(IMAGE, &no_faults, ""),
			     *other = open_one(CAMERA, &no_faults, "");
	struct sl_join_options join = {.by = SL_ALIGN_SEQUENCE};

	other->ring.align = SL_ALIGN_FRAME;
	assert_int_equal(sl_experiment_attach(here, "camera", other, &join), -EINVAL);
	other->ring.align = SL_ALIGN_SEQUENCE;
	other->run.modules = 63;
	assert_int_equal(sl_experiment_attach(here, "camera", other, &join), -EINVAL);
	other->run.modules = 62;
	assert_int_equal(sl_experiment_attach(here, "camera", other, &join), 0);
	assert_int_equal(sl_experiment_modules(here), 64);
	sl_experiment_close(here);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_detectors_are_stored_whole),
		cmocka_unit_test(outcomes_are_those_of_the_fault_logs),
		cmocka_unit_test(what_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests_name("several", tests, NULL, NULL);
}
