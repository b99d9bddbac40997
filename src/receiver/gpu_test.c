/* gpu_test.c - stages on accelerators against the same ones on the CPU. A new GPU side is tested
 * by a line in the table of tests/lib/gpu_cases.h; what a device that fails does, by
 * gpu_faults_test.c. */
#include "lib/gpu_cases.h"

static const struct sl_unit *const accelerators[] = {&unit_opencl, &sl_unit_cuda};

enum { BATCHES = 5, FIELD_PIXELS = 2 * 40 * 70 };

/* Alone on the device, of raw events. */
static bool has_kernel_that_polls(const struct gpu_case *c)
{
	return !strncmp(c->stages, "stages: [rings", 14) && !c->rejects;
}

static void run_case(const struct gpu_case *c, const struct sl_unit *unit, const char *how)
{
	const struct sl_unit *const units[] = {&sl_unit_cpu, unit};
	const char *set[] = {NULL, "unit.cross_check=3", how};
	struct counted counted = {0};
	struct gpu_side side[2];
	char kind[64];
	unsigned kept = 0;
	uint64_t next = 0;

	snprintf(kind, sizeof(kind), "unit.kind=%s", unit->name);
	set[0] = kind;
	assert_int_equal(gpu_try_open(&side[0], c, &sl_unit_cpu, NULL, 0), 0);
	assert_int_equal(gpu_try_open(&side[1], c, unit, set, 3), 0);
	for (int b = 0; b < BATCHES; b++) {
		uint32_t frames = b % 2 ? c->batch : 1 + c->batch / 3; /* full and not */

		kept += gpu_both(c, side, units, next, frames);
		next += frames;
	}
	assert_true(kept > 0); /* else nothing was compared */
	/* By the unit itself, and as well with the bounds that GPU sides state. */
	unit->figures(side[1].experiment->unit_state, count_figures, &counted);
	assert_true(counted.checked > 0 && counted.checked <= next);
	assert_int_equal(counted.unlike, 0);
	if (!strcmp(how, "unit.trigger=persistent")) {
		assert_int_equal(counted.published, next);
		assert_int_equal(counted.good, next);
	} else {
		assert_int_equal(counted.not_launched, strcmp(how, gpu_triggers[0]) ? BATCHES : 0);
	}
	if (!strcmp(how, "unit.trigger=loop"))
		assert_int_equal(counted.looped, unit == &sl_unit_cuda ? BATCHES : 0);
	gpu_compare_learned(c, side, units);
	gpu_close(&side[0], &sl_unit_cpu);
	gpu_close(&side[1], unit);
}

/* tools/check_gpu.sh asks for one unit, and for a share of the cases: "2/6" is 2, 8, 14, ... */
static bool is_asked(const struct sl_unit *unit)
{
	const char *only = getenv("SLUICE_UNIT");

	return !unit->unavailable() && (!only || !strcmp(only, unit->name));
}

static bool is_in_share(size_t number)
{
	const char *share = getenv("SLUICE_SHARE");
	unsigned int one, of;

	return !share || sscanf(share, "%u/%u", &one, &of) != 2 || !of || number % of == one;
}

/* Launched, captured or waiting, in turns; on a GPU, and with tools/check.py --long, each is
 * launched and one of the others. Polled, where that can be; and by the device itself, where it is
 * one that does (gpu_loop_test.c has the rest). Sanitizers are slow: no launches. */
static bool is_due(const struct gpu_case *c, const struct sl_unit *unit, size_t t)
{
	enum { LAUNCH, GRAPH, WAIT, PERSISTENT, LOOP };
	bool has_all = unit == &sl_unit_cuda || opencl_is_this_cpu();
	const char *only = getenv("SLUICE_TRIGGER"); /* tools/check_gpu.sh */

	if ((t == PERSISTENT && !has_kernel_that_polls(c)) || (t >= WAIT && !has_all))
		return false;
	if (only)
		return strstr(gpu_triggers[t], only) != NULL;
	if (t == LOOP)
		return unit == &sl_unit_cuda;
	if (t == PERSISTENT)
		return true;
	if (has_all && getenv("SLUICE_SANITIZER"))
		return t == GRAPH + (size_t)(c - gpu_cases) % 2 &&
		       (getenv("SLUICE_LONG") || (size_t)(c - gpu_cases) / 2 % 2 == 0);
	if (unit == &sl_unit_cuda || !has_all || getenv("SLUICE_LONG"))
		return t == LAUNCH || t == GRAPH + (size_t)(c - gpu_cases) % 2;
	return t == LAUNCH + (size_t)(c - gpu_cases) % 3;
}

static void run_triggers(const struct gpu_case *c, const struct sl_unit *unit)
{
	if (!is_in_share((size_t)(c - gpu_cases)))
		return;
	for (size_t t = 0; t < gpu_trigger_count; t++)
		if (is_due(c, unit, t))
			run_case(c, unit, gpu_triggers[t]);
}

/* Files that stages read, in a folder of their own, where we are from now on. */
static void write_fields(char *folder)
{
	static const char *const name[] = {"dark.raw", "flat.raw"};
	uint64_t seed = 3;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	for (int i = 0; i < 2; i++) {
		FILE *file = fopen(name[i], "wb");

		assert_non_null(file);
		for (int k = 0; k < FIELD_PIXELS; k++) {
			uint32_t bits = gpu_random(&seed);
			float value = i ? 0.8f + (float)(bits % 97) * 0.003f
					: (float)(bits % 1000) * 0.123f;

			if (bits % 61 == 0)
				value = i ? 0 : NAN;
			assert_int_equal(fwrite(&value, sizeof(value), 1, file), 1);
		}
		fclose(file);
	}
}

static void remove_fields(const char *folder)
{
	unlink("dark.raw");
	unlink("flat.raw");
	assert_int_equal(chdir("/"), 0);
	rmdir(folder);
}

static void test_results_are_those_of_the_cpu(void **arg)
{
	char folder[] = "/tmp/sluice-gpu-XXXXXX";
	bool any = false;

	write_fields(folder);
	for (size_t u = 0; u < sizeof(accelerators) / sizeof(accelerators[0]); u++) {
		if (!is_asked(accelerators[u]))
			continue;
		any = true;
		for (size_t i = 0; i < gpu_case_count; i++)
			run_triggers(&gpu_cases[i], accelerators[u]);
	}
	remove_fields(folder);
	if (!any) {
		print_message("# skip: %s\n", sl_unit_opencl.unavailable());
		skip();
	}
}

/* ---- images of few pixels, or of none that count ---- */

/* snr is not 1: of two pixels the greater one is exactly one deviation above their mean. */
#define READERS                                                                                   \
	"veto: {threshold: 2, min_pixels: 0}, integrate: {bins: 3}, reduce: {bin: 2, window: 2, " \
	"roi: '0,0,1,1'}, peaks: {snr: 0.9, threshold: 1, min_pixels: 1, min_peaks: 0}, spots: "  \
	"{sigmas: 0, threshold: 1, box: 2, min_pixels: 1, min_spots: 0}, sparse: "

static const struct {
	const char *stages;
	enum sl_dtype dtype;
	double bound;
} readers[] = {
	{"stages: [correct, " READERS "{threshold: 1, row_pointers: true}]", SL_U16, 0},
	{"stages: [correct, " READERS "{method: radial, unit: r_pixels, bins: 3}]", SL_U16, 0},
	{"stages: [correct: {output: kev_f32}, " READERS "{threshold: 1, row_pointers: true}]",
	 SL_U16, 1e-5},
	{"stages: [correct: {output: kev_f32}, " READERS
	 "{method: radial, unit: r_pixels, bins: 3}]",
	 SL_U16, 1e-5},
	{"stages: [" READERS "{threshold: 1, row_pointers: true}]", SL_U8, 0},
	{"stages: [" READERS "{method: radial, unit: r_pixels, bins: 3}]", SL_U16, 0},
	{"stages: [" READERS "{threshold: 1, row_pointers: true}]", SL_U32, 0},
	{"stages: [" READERS "{method: radial, unit: r_pixels, bins: 3}]", SL_U32, 0},
	{"stages: [veto: {threshold: 2, min_pixels: 0}, integrate: {bins: 3}, reduce: {bin: 2}, "
	 "spots: {sigmas: 0, threshold: 1, box: 2, min_pixels: 1, min_spots: 0}, sparse: "
	 "{threshold: 1, row_pointers: true}]",
	 SL_F32, 1e-5},
};

static const struct gpu_case edges[] = {
	{.name = "one pixel", SMALL(1, 1, 1)},
	{.name = "one pixel of each module", SMALL(2, 1, 1), .missing = true},
	{.name = "one row", SMALL(1, 1, 33), .pitch = true},
	{.name = "one column", SMALL(1, 33, 1)},
	{.name = "frames without a valid pixel", SMALL(2, 5, 8), .blank = true},
	{.name = "the beam beside the image", SMALL(2, 5, 7), .aside = true},
};

/* For those that do not refuse to begin with it: `integrate`, and `sparse` by radius. */
static const struct gpu_case masked[] = {
	{"all pixels masked",
	 "stages: [correct, veto: {threshold: 2, min_pixels: 0}, reduce: {bin: 2, window: 2}, "
	 "spots: {min_spots: 0}, sparse: {threshold: 1, row_pointers: true}]",
	 NULL, SMALL(2, 5, 8), .batch = 6, .dtype = SL_U16, .masked = true},
	{"all pixels masked, keV",
	 "stages: [correct: {output: kev_f32}, veto: {threshold: 2, min_pixels: 0}, reduce: {bin: "
	 "2, window: 2}, spots: {min_spots: 0}, sparse: {threshold: 1, row_pointers: true}]",
	 NULL, SMALL(2, 5, 7), .batch = 6, .dtype = SL_U16, .masked = true},
};

/* On the CPU most of the time goes into compiling kernels: a third of the chains for each edge,
 * another third for the next one. */
static void run_edges(const struct sl_unit *unit)
{
	bool all = unit == &sl_unit_cuda || !opencl_is_this_cpu() || getenv("SLUICE_LONG");

	for (size_t e = 0; e < sizeof(edges) / sizeof(edges[0]); e++)
		for (size_t r = 0; r < sizeof(readers) / sizeof(readers[0]); r++) {
			struct gpu_case c = edges[e];
			char name[128];

			if (!all && (e + r) % 3)
				continue;
			snprintf(name, sizeof(name), "%s, stages %zu", edges[e].name, r);
			c.name = name;
			c.stages = readers[r].stages;
			c.dtype = readers[r].dtype;
			c.bound = readers[r].bound;
			c.batch = 6;
			run_case(&c, unit, gpu_triggers[0]);
		}
}

static void test_edges_of_images_are_those_of_the_cpu(void **arg)
{
	NEEDS_OPENCL();
	for (size_t u = 0; u < sizeof(accelerators) / sizeof(accelerators[0]); u++)
		if (is_asked(accelerators[u])) {
			run_edges(accelerators[u]);
			run_case(&masked[0], accelerators[u], gpu_triggers[0]);
			run_case(&masked[1], accelerators[u], gpu_triggers[0]);
		}
}

/* Batches beside each other in loops, which others are not (gpu_faults_test.c). */
static void test_batches_overlap_in_a_loop(void **arg)
{
	const char *const kept[] = {"unit.kind=cuda", "unit.trigger=loop", "unit.batch_slots=3"};
	const char *const many[] = {"unit.kind=cuda", "unit.trigger=loop", "unit.batch_slots=8"};
	const char *const any[] = {"unit.kind=cuda", "unit.trigger=loop", "unit.batch_slots=8",
				   "unit.order=any"};

	if (!is_asked(&sl_unit_cuda)) {
		print_message("# skip: %s\n", sl_unit_cuda.unavailable());
		skip();
	}
	for (int again = 0; again < 5; again++) {
		gpu_overlap(case_of("photons, eight at a time"), &sl_unit_cuda, kept, 3);
		gpu_overlap(case_of("photons, eight at a time"), &sl_unit_cuda, many, 3);
		gpu_overlap(case_of("counts of 32 bits"), &sl_unit_cuda, any, 4);
		gpu_overlap(case_of("rings"), &sl_unit_cuda, any, 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results_are_those_of_the_cpu),
		cmocka_unit_test(test_edges_of_images_are_those_of_the_cpu),
		cmocka_unit_test(test_batches_overlap_in_a_loop),
	};

	return gpu_main() ? 0 : cmocka_run_group_tests_name("gpu", tests, gpu_begin, gpu_end);
}
