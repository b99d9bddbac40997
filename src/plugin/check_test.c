/* check_test.c - plug-ins of another ABI, with other sizes, or with descriptors that lack something
 * are refused, each with a message that names what is wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/plugin.h"

struct state {
	uint32_t depth;
	char path[16];
};

static int open_detector(void *state, const struct sl_detector_options *run, struct sl_geometry *g)
{
	return 0;
}

static void close_it(void *state)
{
}

static int render(void *state, uint64_t frame, uint32_t module, uint32_t flags, void *buffer,
		  const void **pixels)
{
	return 0;
}

static void truth(void *state, uint64_t frame, uint32_t flags, struct sl_truth *t)
{
}

static uint32_t truth_rows(void *state, uint64_t frame, uint32_t flags, double *table,
			   uint32_t most)
{
	return 0;
}

static uint64_t timestamp(void *state, uint64_t frame)
{
	return 0;
}

static int open_stage(void *state, const struct sl_env *env, const struct sl_shape *in,
		      struct sl_stage_terms *terms)
{
	return 0;
}

static void finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
}

static int open_sink(void *state, const struct sl_env *env)
{
	return 0;
}

static int put(void *state, struct sl_frame *frame)
{
	return 0;
}

static int close_sink(void *state, const struct sl_status *status)
{
	return 0;
}

/* A good plug-in, which each case breaks in one place. */
static struct sl_option option[2];
static struct sl_truth_column columns[SL_TRUTH_COLUMNS + 2];
static struct sl_detector detector;
static struct sl_stage stage;
static struct sl_sink sink;
static const struct sl_detector *detectors[3];
static const struct sl_stage *stages[3];
static const struct sl_sink *sinks[3];
static struct sl_plugin plugin;
static char why[SL_PLUGIN_WHY];

static int make_good(void **arg)
{
	option[0] = (struct sl_option)SL_U32(struct state, depth, 3, 1, 9, "", "a number");
	option[1] = (struct sl_option)SL_OPTION_END;
	memset(columns, 0, sizeof(columns));
	columns[0] = (struct sl_truth_column){"x", ""};
	detector = (struct sl_detector){.name = "new_detector",
					.doc = "one",
					.state_bytes = sizeof(struct state),
					.options = option,
					.truth_columns = columns,
					.open = open_detector,
					.close = close_it,
					.render = render,
					.truth = truth,
					.truth_rows = truth_rows,
					.timestamp = timestamp};
	stage = (struct sl_stage){.name = "new_stage",
				  .doc = "one",
				  .state_bytes = sizeof(struct state),
				  .options = option,
				  .input = "raw",
				  .open = open_stage,
				  .close = close_it,
				  .finish = finish};
	sink = (struct sl_sink){.name = "new_sink",
				.doc = "one",
				.state_bytes = sizeof(struct state),
				.options = option,
				.open = open_sink,
				.put = put,
				.close = close_sink};
	detectors[0] = &detector;
	stages[0] = &stage;
	sinks[0] = &sink;
	detectors[1] = NULL;
	stages[1] = NULL;
	sinks[1] = NULL;
	plugin = (struct sl_plugin){
		SL_PLUGIN_HEAD,		.name = "good",	  .doc = "nothing is wrong",
		.detectors = detectors, .stages = stages, .sinks = sinks};
	return 0;
}

static void expect(int err, const char *words)
{
	why[0] = 0;
	assert_int_equal(sl_plugin_check(&plugin, why, sizeof(why)), err);
	if (!strstr(why, words))
		fail_msg("'%s' is not in: %s", words, why);
	make_good(NULL);
}

static void test_a_good_plug_in_passes(void **arg)
{
	expect(0, "");
	plugin.detectors = NULL;
	plugin.sinks = NULL;
	expect(0, "");
}

static void test_another_abi_is_refused_before_anything_else(void **arg)
{
	plugin.abi++;
	plugin.bytes = 0;
	plugin.name = NULL;
	expect(-EPROTONOSUPPORT, "built for plug-in ABI 2");
	plugin.abi = 0;
	expect(-EPROTONOSUPPORT, "ABI 0");
}

static void test_another_size_is_refused_by_the_name_of_the_structure(void **arg)
{
	plugin.bytes -= 8;
	expect(-EPROTONOSUPPORT, "its sl_plugin has ");
	plugin.frame_bytes += 8;
	expect(-EPROTONOSUPPORT, "its struct sl_frame has ");
	plugin.sink_bytes += 8;
	expect(-EPROTONOSUPPORT, "its struct sl_sink has ");
	/* Every size is compared: a plug-in may have any of these structures. */
	for (size_t at = offsetof(struct sl_plugin, option_bytes);
	     at < offsetof(struct sl_plugin, name); at += sizeof(uint32_t)) {
		++*(uint32_t *)((char *)&plugin + at);
		expect(-EPROTONOSUPPORT, "build it again with the headers of sluice");
	}
}

static void test_names_are_valid_and_new(void **arg)
{
	static const char *const bad[] = {
		"",    "Blank", "my-stage", "a b",
		"1st", "9th",	"é",	    "a_name_that_has_more_than_31_bytes"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		stage.name = bad[i];
		expect(-EINVAL, "names have lower-case letters, digits and _");
	}
	stage.name = NULL;
	expect(-EINVAL, "a stage is called ''");
	stage.name = "copy";
	expect(-EEXIST, "there is a built-in stage 'copy' already");
	detector.name = "pattern";
	expect(-EEXIST, "there is a built-in detector 'pattern' already");
	sink.name = "verify";
	expect(-EEXIST, "there is a built-in sink 'verify' already");
	sink.name = "copy"; /* kinds have names of their own */
	expect(0, "");
	stages[1] = &stage;
	stages[2] = NULL;
	expect(-EEXIST, "it has two of the stage 'new_stage'");
	plugin.name = "Not_good";
	expect(-EINVAL, "sl_plugin needs a name");
}

static void test_descriptors_have_what_their_kind_requires(void **arg)
{
	static const struct sl_option no_rows[] = {SL_OPTION_END};

#define WITHOUT(member, words)                        \
	do {                                          \
		memset(&(member), 0, sizeof(member)); \
		expect(-EINVAL, words);               \
	} while (0)
	WITHOUT(stage.doc, "stage 'new_stage' has no doc");
	WITHOUT(stage.options, "has no table of options");
	WITHOUT(stage.input, "has no input");
	WITHOUT(stage.open, "has no open() or close()");
	WITHOUT(stage.close, "has no open() or close()");
	WITHOUT(stage.finish, "has no tile(), frame() or finish()");
	WITHOUT(sink.put, "sink 'new_sink' has no open(), put() or close()");
	WITHOUT(sink.close, "sink 'new_sink' has no open(), put() or close()");
	WITHOUT(detector.open, "detector 'new_detector' has no open() or close()");
	WITHOUT(detector.render, "has no render(), truth() or timestamp()");
	WITHOUT(detector.truth, "has no render(), truth() or timestamp()");
	WITHOUT(detector.timestamp, "has no render(), truth() or timestamp()");
	WITHOUT(detector.truth_rows, "has no truth_rows()");
	WITHOUT(detector.truth_columns, "has no truth_columns");
	WITHOUT(columns[0].unit, "has no unit for a column");
	WITHOUT(plugin.doc, "sl_plugin needs a name");
#undef WITHOUT
	for (int i = 0; i <= SL_TRUTH_COLUMNS; i++)
		columns[i] = columns[0];
	expect(-EINVAL, "more than 16 columns");
	stage.gpu = (const struct sl_gpu *)&stage;
	expect(-EINVAL, "sets gpu, which is not open to plug-ins");
	plugin.detectors = NULL;
	plugin.stages = NULL;
	sinks[0] = NULL;
	expect(-EINVAL, "it has no detector, stage or sink");
	stage.options = no_rows;
	expect(0, "");
}

static void test_tables_of_options_fit_the_state(void **arg)
{
	option[0].offset = sizeof(struct state);
	expect(-EINVAL, "option 'depth': its field does not have the row's type");
	option[0].offset = SIZE_MAX;
	expect(-EINVAL, "its field does not have");
	option[0].size = 8;
	expect(-EINVAL, "its field does not have");
	option[0].def = "many";
	expect(-EINVAL, "option 'depth': default 'many'");
	option[0].def = "10";
	expect(-EINVAL, "default '10': it takes 1..9");
	option[0].doc = NULL;
	expect(-EINVAL, "option 'depth': type, default, unit, doc or choices");
	option[0].type = SL_OPTION_CHOICE;
	expect(-EINVAL, "option 'depth': type, default, unit, doc or choices");
	option[0].type = (enum sl_option_type)99;
	expect(-EINVAL, "option 'depth': type, default, unit, doc or choices");
	option[0] = (struct sl_option)SL_STRING(struct state, path, "", "a text");
	expect(0, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_good_plug_in_passes, make_good),
		cmocka_unit_test_setup(test_another_abi_is_refused_before_anything_else, make_good),
		cmocka_unit_test_setup(test_another_size_is_refused_by_the_name_of_the_structure,
				       make_good),
		cmocka_unit_test_setup(test_names_are_valid_and_new, make_good),
		cmocka_unit_test_setup(test_descriptors_have_what_their_kind_requires, make_good),
		cmocka_unit_test_setup(test_tables_of_options_fit_the_state, make_good),
	};

	return cmocka_run_group_tests_name("plugin/check", tests, NULL, NULL);
}
