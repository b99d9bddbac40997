/* ingest_test.c - five sources through a unit: what they write is what is worked on, and
 * whatever goes wrong is found, and leaves a closed ledger. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/gpu/ingest.h"

enum { ROWS = 40, COLUMNS = 64, PIXELS = ROWS * COLUMNS, FRAMES = 4, BUFFERS = 32, STACK = 4 };
enum { PEDESTAL = 1000, GAIN = 41 };

/* Of what PoCL allocates some is left. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libpocl\n";
}

/* ---- a small scene ---- */

static float pedestal[PIXELS], gain[PIXELS];
static uint8_t mask[PIXELS];
static uint16_t raw[FRAMES * PIXELS];
static int16_t image[FRAMES * PIXELS];

static void fill_scene(struct sl_bench_scene *s)
{
	*s = (struct sl_bench_scene){
		.geometry = {.detector = "jungfrau",
			     .modules = 1,
			     .rows = ROWS,
			     .columns = COLUMNS,
			     .dtype = SL_U16,
			     .bit_depth = 16,
			     .pixel_size_m = 75e-6,
			     .distance_m = 0.1,
			     .photon_energy_keV = 12.4,
			     .sensor_material = "Si",
			     .sensor_thickness_m = 320e-6},
		.calibration = {.mask = mask, .measured = true},
		.pixels = PIXELS,
		.frames = FRAMES,
		.mask = mask,
		.raw = raw,
		.image = image,
		.memory = {.fd = -1},
	};
	for (int g = 0; g < 3; g++) {
		s->calibration.pedestal[g] = pedestal;
		s->calibration.gain[g] = gain;
	}
	for (uint32_t i = 0; i < PIXELS; i++) {
		pedestal[i] = PEDESTAL;
		gain[i] = GAIN;
	}
	/* Frame f has pixels with 12 photons, fewer the higher f is. */
	for (uint32_t i = 0; i < FRAMES * PIXELS; i++) {
		image[i] = i % PIXELS % (3 + 10 * (i / PIXELS)) == 1 ? 12 : 1;
		raw[i] = (uint16_t)(PEDESTAL + image[i] * GAIN * 12.4 + 0.5);
	}
}

/* ---- a run ---- */

struct rig {
	struct sl_bench_scene scene;
	struct sl_bench_work work;
	struct sl_bench_gpu gpu;
	struct sl_bench_row row;
	struct sl_device *device;
	struct sl_ingest g;
	struct sl_ingest_result result;
};

static const struct sl_ingest_terms usual = {
	.buffers = BUFFERS, .warm = 8, .run_ns = 20000000, .timeout_ns = 300000000};

static struct rig *rig_open(const struct sl_ingest_terms *terms, const char *chain,
			    const struct sl_platform *platform)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	fill_scene(&r->scene);
	r->work = (struct sl_bench_work){.name = "ingest", .chain = chain, .unread = true};
	r->gpu.work = r->work;
	r->row = (struct sl_bench_row){.work = &r->work,
				       .stack = STACK,
				       .cores = 1,
				       .platform = platform,
				       .gpu = platform ? &r->gpu : NULL};
	if (platform)
		assert_int_equal(platform->open(0, &r->device), 0);
	assert_int_equal(sl_ingest_open(&r->g, terms, &r->row, &r->scene, r->device), 0);
	return r;
}

static void rig_close(struct rig *r)
{
	sl_ingest_close(&r->g);
	if (r->device)
		r->device->platform->close(r->device);
	free(r->result.ns);
	free(r);
}

static const char *const keeps_all =
	"checksum correct:output=photons_i16 veto:threshold=10,min_pixels=1 "
	"sparse:method=threshold,threshold=10";

static void check_closed(const struct sl_ingest_result *r)
{
	assert_true(r->closed);
	assert_int_equal(r->published, r->good + r->wrong + r->unanswered);
}

static void check_all_is_good(const struct sl_platform *platform, bool written)
{
	struct sl_ingest_terms terms = usual;
	struct rig *r;

	terms.written = written;
	terms.timeout_ns = 60000000000u;
	r = rig_open(&terms, keeps_all, platform);
	assert_int_equal(sl_ingest_run(&r->g, &r->result), 0);
	assert_string_equal(r->result.why, "");
	check_closed(&r->result);
	assert_true(r->result.events >= terms.warm + BUFFERS);
	assert_int_equal(r->result.good, SL_INGEST_SOURCES * r->result.events);
	assert_int_equal(r->result.unanswered, 0);
	assert_int_equal(r->result.kept, r->result.events);
	assert_int_equal(r->result.times, r->result.timed);
	assert_int_equal(r->result.bytes_in, r->result.timed * PIXELS * sizeof(uint16_t));
	assert_true(r->result.bytes_out > r->result.timed * 8);
	assert_true(r->result.took_ns > 0);
	rig_close(r);
}

static void test_all_that_is_resident_comes_back(void **arg)
{
	check_all_is_good(NULL, false);
}

static void test_all_that_is_written_comes_back(void **arg)
{
	check_all_is_good(NULL, true);
}

static void check_rejected(const struct sl_platform *platform)
{
	struct sl_ingest_terms terms = usual;
	struct rig *r;

	terms.timeout_ns = 60000000000u;
	/* Of four frames three have fewer bright pixels. */
	r = rig_open(&terms,
		     "checksum correct:output=photons_i16 "
		     "veto:threshold=10,min_pixels=500 "
		     "sparse:method=threshold,threshold=10",
		     platform);

	assert_int_equal(sl_ingest_run(&r->g, &r->result), 0);
	check_closed(&r->result);
	assert_true(r->result.kept > 0 && r->result.kept < r->result.events);
	assert_int_equal(r->result.good, SL_INGEST_SOURCES * r->result.events);
	rig_close(r);
}

static void test_rejected_frames_have_checksums_too(void **arg)
{
	check_rejected(NULL);
}

/* ---- what goes wrong ---- */

static void test_a_source_that_vanishes_is_named(void **arg)
{
	struct sl_ingest_terms terms = usual;
	struct rig *r;

	terms.run_ns = 60000000000u;
	terms.vanish = (struct sl_ingest_fault){.on = true, .source = 3, .event = 37};
	r = rig_open(&terms, keeps_all, NULL);
	assert_int_equal(sl_ingest_run(&r->g, &r->result), -ETIMEDOUT);
	assert_non_null(strstr(r->result.why, "source 3 has not written event 37"));
	check_closed(&r->result);
	/* All that was whole came back; the others wrote what they might. */
	assert_int_equal(r->result.events, 37);
	assert_int_equal(r->result.good, SL_INGEST_SOURCES * 37);
	assert_int_equal(r->result.wrong, 0);
	assert_int_equal(r->result.unanswered, (SL_INGEST_SOURCES - 1) * BUFFERS);
	rig_close(r);
}

static void check_spoiled(const struct sl_platform *platform, bool written)
{
	struct sl_ingest_terms terms = usual;
	struct rig *r;

	terms.written = written;
	terms.timeout_ns = 60000000000u;
	terms.spoil = (struct sl_ingest_fault){.on = true, .source = 2, .event = 21};
	r = rig_open(&terms, keeps_all, platform);
	assert_int_equal(sl_ingest_run(&r->g, &r->result), -EBADMSG);
	assert_non_null(strstr(r->result.why, "event 21, module 2: "));
	check_closed(&r->result);
	/* A resident pixel stays as it is, and is wrong again when the buffer comes again. */
	assert_true(written ? r->result.wrong == 1 : r->result.wrong >= 1);
	assert_int_equal(r->result.unanswered, 0);
	rig_close(r);
}

static void test_a_bit_that_changed_is_found(void **arg)
{
	check_spoiled(NULL, true);
	check_spoiled(NULL, false);
}

/* A unit that fails, or hangs, from some batch on; else it is the cpu unit. */
static const struct sl_unit *real;
static unsigned reaped, fails_at;
static _Atomic bool hangs;

static int reap_and_fail(void *state, struct sl_batch **batch)
{
	int got = real->reap(state, batch);

	if (got && ++reaped > fails_at)
		(*batch)->status = -EIO;
	return got;
}

static int work_or_hang(void *state, unsigned worker)
{
	return atomic_load(&hangs) ? 0 : real->work(state, worker);
}

static void test_a_unit_that_fails_closes_the_ledger(void **arg)
{
	struct rig *r = rig_open(&usual, keeps_all, NULL);
	struct sl_unit fake = *r->g.s.unit;

	real = r->g.s.unit;
	reaped = 0;
	fails_at = 3;
	fake.reap = reap_and_fail;
	r->g.s.unit = &fake;
	assert_int_equal(sl_ingest_run(&r->g, &r->result), -EIO);
	assert_non_null(strstr(r->result.why, "the unit did not work on event"));
	check_closed(&r->result);
	assert_in_range(r->result.events, 3, 3 * STACK);
	assert_true(r->result.unanswered > 0);
	r->g.s.unit = real;
	rig_close(r);
}

static void test_a_unit_that_hangs_is_given_up(void **arg)
{
	struct rig *r = rig_open(&usual, keeps_all, NULL);
	struct sl_unit fake = *r->g.s.unit;

	real = r->g.s.unit;
	fake.work = work_or_hang;
	r->g.s.unit = &fake;
	atomic_store(&hangs, true);
	assert_int_equal(sl_ingest_run(&r->g, &r->result), -ETIMEDOUT);
	atomic_store(&hangs, false);
	assert_non_null(strstr(r->result.why, "the unit has not given back event 0"));
	check_closed(&r->result);
	assert_int_equal(r->result.unanswered, SL_INGEST_SOURCES * BUFFERS);
	r->g.s.unit = real;
	rig_close(r);
}

/* ---- on a device ---- */

static void test_the_same_on_a_device(void **arg)
{
	const char *why = sl_platform_opencl.unavailable();

	if (!why && getenv("SLUICE_SANITIZER") && !strcmp(getenv("SLUICE_SANITIZER"), "tsan"))
		why = "drivers of devices do not say what their threads do";
	if (why) {
		print_message("# skip: no OpenCL device: %s\n", why);
		skip();
	}
	check_rejected(&sl_platform_opencl);
	check_spoiled(&sl_platform_opencl, true);
}

static void test_checksums_add_up(void **arg)
{
	uint32_t words[64];
	uint32_t all;

	for (uint32_t i = 0; i < 64; i++)
		words[i] = i * i;
	all = sl_ingest_checksum(words, 0, 64);
	assert_int_equal(all,
			 sl_ingest_checksum(words, 0, 5) + sl_ingest_checksum(words + 5, 5, 59));
	words[7] = 64;
	words[8] = 49;
	assert_true(all != sl_ingest_checksum(words, 0, 64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checksums_add_up),
		cmocka_unit_test(test_all_that_is_resident_comes_back),
		cmocka_unit_test(test_all_that_is_written_comes_back),
		cmocka_unit_test(test_rejected_frames_have_checksums_too),
		cmocka_unit_test(test_a_source_that_vanishes_is_named),
		cmocka_unit_test(test_a_bit_that_changed_is_found),
		cmocka_unit_test(test_a_unit_that_fails_closes_the_ledger),
		cmocka_unit_test(test_a_unit_that_hangs_is_given_up),
		cmocka_unit_test(test_the_same_on_a_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
