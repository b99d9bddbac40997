/* passes_test.c - stages share as few passes over a batch as their inputs allow. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/capture.h"
#include "unit/cpu/passes.h"

static void tile(void *state, void *scratch, const struct sl_batch *batch,
		 const struct sl_tile *tile)
{
}

static void frame(void *state, void *scratch, const struct sl_batch *batch, uint32_t f)
{
}

static void finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
}

static const struct sl_stage tiles = {.name = "tiles", .tile = tile};
static const struct sl_stage frames = {.name = "frames", .frame = frame};
static const struct sl_stage both = {.name = "both", .tile = tile, .frame = frame};
static const struct sl_stage neither = {.name = "neither"};
static const struct sl_stage sums = {.name = "sums", .tile = tile, .finish = finish};
static const struct sl_stage judge = {.name = "judge", .finish = finish};

static const struct sl_geometry geometry = {.modules = 2, .rows = 3, .columns = 5};

/* Reads `input`, and adds `outputs` arrays of one element per pixel; by_tile: its tiles write the
 * first. */
static void add(struct sl_chain *chain, const struct sl_stage *ops, int input, int *results,
		uint32_t outputs, bool by_tile)
{
	struct sl_chain_stage *stage = &chain->stage[chain->stages++];
	struct sl_shape image = {.name = "x", .dtype = SL_U16, .rank = 3, .dim = {2, 3, 5}};

	*stage = (struct sl_chain_stage){.ops = ops,
					 .input = input,
					 .output = by_tile ? *results : SL_CHAIN_NONE,
					 .in = image,
					 .terms = {.result = *results, .outputs = outputs}};
	for (uint32_t i = 0; i < outputs; i++)
		stage->terms.output[i] = image;
	*results += (int)outputs;
}

static void expect(const struct sl_cpu_pass *pass, bool is_frames, const char *stages)
{
	assert_int_equal(pass->frames, is_frames);
	assert_int_equal(pass->stages, strlen(stages));
	for (unsigned i = 0; i < pass->stages; i++)
		assert_int_equal(pass->stage[i], stages[i] - '0');
}

static void what_needs_only_tiles_is_one_pass(void **arg)
{
	struct sl_chain chain = {.geometry = &geometry};
	struct sl_cpu_passes passes;
	int results = 0;

	(void)arg;
	assert_int_equal(sl_cpu_passes_make(&chain, &passes), 0);
	assert_int_equal(passes.n, 1);
	expect(&passes.pass[0], false, "");
	add(&chain, &tiles, SL_CHAIN_RAW, &results, 1, true);
	add(&chain, &tiles, 0, &results, 0, false);
	add(&chain, &tiles, SL_CHAIN_RAW, &results, 1, true);
	assert_int_equal(sl_cpu_passes_make(&chain, &passes), 0);
	assert_int_equal(passes.n, 1);
	expect(&passes.pass[0], false, "012");
}

/* Tiles that do not wait for frames run before them, wherever they are in the chain. */
static void frames_come_after_the_tiles_they_read(void **arg)
{
	struct sl_chain chain = {.geometry = &geometry};
	struct sl_cpu_passes passes;
	int results = 0;

	(void)arg;
	add(&chain, &tiles, SL_CHAIN_RAW, &results, 1, true); /* 0 */
	add(&chain, &frames, 0, &results, 1, false);	      /* 1: in frames */
	add(&chain, &both, 0, &results, 2, true);	      /* 2 by tiles, 3 by frames */
	add(&chain, &frames, 1, &results, 1, false);	      /* the same pass */
	add(&chain, &tiles, 3, &results, 1, true);	      /* must wait */
	add(&chain, &tiles, 2, &results, 0, false);	      /* need not */
	add(&chain, &frames, 5, &results, 0, false);	      /* reads what the second tiles made */
	assert_int_equal(sl_cpu_passes_make(&chain, &passes), 0);
	assert_int_equal(passes.n, 4);
	expect(&passes.pass[0], false, "025");
	expect(&passes.pass[1], true, "123");
	expect(&passes.pass[2], false, "4");
	expect(&passes.pass[3], true, "6");
}

static void expect_finish(const struct sl_cpu_pass *pass, const char *stages)
{
	assert_int_equal(pass->finishes, strlen(stages));
	for (unsigned i = 0; i < pass->finishes; i++)
		assert_int_equal(pass->finish[i], stages[i] - '0');
}

/* A stage is finished as soon as it has seen all; what that makes is there for the next pass. */
static void stages_finish_after_their_last_pass(void **arg)
{
	struct sl_chain chain = {.geometry = &geometry};
	struct sl_cpu_passes passes;
	int results = 0;

	(void)arg;
	add(&chain, &tiles, SL_CHAIN_RAW, &results, 1, true); /* 0 */
	add(&chain, &sums, 0, &results, 1, false);	      /* 1: made by finish() */
	add(&chain, &frames, 0, &results, 1, false);	      /* 2 */
	add(&chain, &tiles, 1, &results, 0, false); /* waits for finish(), and no frames */
	add(&chain, &judge, SL_CHAIN_RAW, &results, 0, false); /* after all of them */
	add(&chain, &sums, SL_CHAIN_RAW, &results, 0, false);
	assert_int_equal(sl_cpu_passes_make(&chain, &passes), 0);
	assert_int_equal(passes.n, 3);
	expect(&passes.pass[0], false, "015");
	expect_finish(&passes.pass[0], "1");
	expect(&passes.pass[1], true, "2");
	expect_finish(&passes.pass[1], "");
	expect(&passes.pass[2], false, "3");
	expect_finish(&passes.pass[2], "45"); /* in the order of the chain */
}

static const struct sl_stage learner = {
	.name = "learner", .ordered = SL_ORDER_PARTS, .tile = tile, .finish = finish};
static const struct sl_stage strict = {
	.name = "strict", .ordered = SL_ORDER_BATCHES, .tile = tile, .frame = frame};
static const struct sl_stage strict_judge = {
	.name = "strict", .ordered = SL_ORDER_BATCHES, .frame = frame, .finish = finish};

/* Only passes of stages that write to their state wait for the batch before. */
static void stages_that_learn_wait_for_the_batch_before(void **arg)
{
	struct sl_chain chain = {.geometry = &geometry};
	struct sl_cpu_passes passes;
	int results = 0;

	(void)arg;
	add(&chain, &learner, SL_CHAIN_RAW, &results, 1, true); /* 0 */
	add(&chain, &frames, 0, &results, 1, false);		/* 1 */
	add(&chain, &tiles, 1, &results, 0, false);
	assert_int_equal(sl_cpu_passes_make(&chain, &passes), 0);
	assert_int_equal(passes.n, 3);
	for (unsigned p = 0; p < 3; p++) {
		assert_int_equal(passes.pass[p].learns, p == 0);
		assert_int_equal(passes.pass[p].after, -1);
	}
	add(&chain, &strict, 0, &results, 0, false); /* tiles in pass 0, frames in pass 1 */
	assert_int_equal(sl_cpu_passes_make(&chain, &passes), 0);
	assert_int_equal(passes.pass[0].after, 1);
	assert_int_equal(passes.pass[1].after, -1); /* comes behind pass 0 */
	assert_true(passes.pass[0].learns && !passes.pass[1].learns);
}

/* It speaks after all stages before it, which makes its last pass a later one. */
static void a_strict_judge_waits_for_its_own_verdict(void **arg)
{
	struct sl_chain chain = {.geometry = &geometry};
	struct sl_cpu_passes passes;
	int results = 0;

	(void)arg;
	add(&chain, &frames, SL_CHAIN_RAW, &results, 1, false); /* 0 */
	add(&chain, &tiles, 0, &results, 1, true);		/* 1: a pass of its own */
	add(&chain, &strict_judge, SL_CHAIN_RAW, &results, 0, false);
	assert_int_equal(sl_cpu_passes_make(&chain, &passes), 0);
	assert_int_equal(passes.n, 2);
	expect(&passes.pass[0], true, "02");
	expect_finish(&passes.pass[1], "2");
	assert_int_equal(passes.pass[0].after, 1);
	assert_int_equal(passes.pass[1].after, -1);
	assert_false(passes.pass[0].learns || passes.pass[1].learns);
}

static void a_judge_may_be_alone(void **arg)
{
	struct sl_chain chain = {.geometry = &geometry};
	struct sl_cpu_passes passes;
	int results = 0;

	(void)arg;
	add(&chain, &judge, SL_CHAIN_RAW, &results, 0, false);
	add(&chain, &frames, SL_CHAIN_RAW, &results, 0, false);
	assert_int_equal(sl_cpu_passes_make(&chain, &passes), 0);
	assert_int_equal(passes.n, 2);
	expect(&passes.pass[0], false, "");
	expect_finish(&passes.pass[0], "0");
	expect(&passes.pass[1], true, "1");
}

static void what_cannot_be_is_refused(void **arg)
{
	struct sl_cpu_passes passes;

	(void)arg;
	for (int i = 0; i < 3; i++) {
		static const char *const why[] = {"has neither", "only frame() or finish()",
						  "not one element per pixel"};
		struct sl_chain chain = {.geometry = &geometry};
		int results = 0;

		add(&chain, i ? &tiles : &neither, SL_CHAIN_RAW, &results, i == 1, false);
		add(&chain, &tiles, SL_CHAIN_RAW, &results, 0, false);
		if (i == 2)
			chain.stage[1].in.dim[0]--;
		capture_begin();
		assert_int_equal(sl_cpu_passes_make(&chain, &passes), -EINVAL);
		assert_non_null(strstr(capture_end(), why[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_needs_only_tiles_is_one_pass),
		cmocka_unit_test(frames_come_after_the_tiles_they_read),
		cmocka_unit_test(stages_finish_after_their_last_pass),
		cmocka_unit_test(stages_that_learn_wait_for_the_batch_before),
		cmocka_unit_test(a_strict_judge_waits_for_its_own_verdict),
		cmocka_unit_test(a_judge_may_be_alone),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests_name("passes", tests, NULL, NULL);
}
