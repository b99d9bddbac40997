/* prescale_test.c - which of the rejected frames are kept, how they are marked, and that it depends
 * on their order alone. */
#include "lib/stage_rig.h"

extern const struct sl_stage sl_stage_prescale;

enum { FRAMES = 60 };

/* Frames in a fixed disorder: kept, rejected for two reasons, dark. */
static void make(struct rig_frame *f, int i)
{
	int kind = i * 7 % 5;

	rig_frame_init(f, kind == 4);
	f->verdict.keep = kind == 0;
	f->verdict.score = (float)i;
	f->verdict.reason = kind == 4	? SL_REASON_DARK
			    : kind == 1 ? SL_REASON_SPOTS
					: SL_REASON_BRIGHT_PIXELS;
}

static void run(struct rig_frame *frames, const char *every, const char *count, uint32_t batch)
{
	struct rig rig;

	rig_init(&rig, &sl_stage_prescale, SL_U16);
	rig_set(&rig, "every", every);
	rig_set(&rig, "count", count);
	rig_open(&rig);
	for (int i = 0; i < FRAMES; i++)
		make(&frames[i], i);
	rig_run(&rig, frames, FRAMES, batch, 64, 3);
	rig_close(&rig);
}

static void check(struct rig_frame *frames, uint32_t every, bool by_reason)
{
	uint32_t rejected[SL_REASONS] = {0}, sampled = 0;

	for (int i = 0; i < FRAMES; i++) {
		const struct sl_verdict *have = &frames[i].verdict;
		uint16_t from = *(const uint16_t *)frames[i].frame.result[0].host;
		struct rig_frame was;
		bool take;

		make(&was, i);
		take = !was.verdict.keep && !(was.frame.flags & SL_FRAME_DARK) &&
		       ++rejected[by_reason ? was.verdict.reason : 0] % every == 0;
		assert_int_equal(have->keep, was.verdict.keep || take);
		assert_int_equal(have->reason, take ? SL_REASON_PRESCALED : was.verdict.reason);
		assert_true(have->score == (float)i);
		assert_int_equal(from, take ? was.verdict.reason : 0);
		sampled += take;
		rig_frame_fini(&was);
		rig_frame_fini(&frames[i]);
	}
	assert_true(sampled > 0);
}

static void test_every_nth_whatever_the_batches(void **arg)
{
	static const uint32_t batches[] = {1, 2, 7, RIG_BATCH};
	struct rig_frame frames[FRAMES];

	for (int b = 0; b < 4; b++) {
		run(frames, "3", "overall", batches[b]);
		check(frames, 3, false);
		run(frames, "5", "by_reason", batches[b]);
		check(frames, 5, true);
		run(frames, "1", "overall", batches[b]);
		check(frames, 1, false);
	}
}

static void test_later_stages_leave_the_verdict(void **arg)
{
	struct rig_frame frames[FRAMES];

	run(frames, "1", "overall", 8);
	for (int i = 0; i < FRAMES; i++) {
		bool sample = frames[i].verdict.reason == SL_REASON_PRESCALED;
		bool kept = frames[i].verdict.keep;

		sl_frame_decide(&frames[i].frame, 0, 1234, SL_REASON_PEAKS);
		assert_int_equal(frames[i].verdict.keep, sample);
		assert_int_equal(frames[i].verdict.score == 1234, kept && !sample);
		rig_frame_fini(&frames[i]);
	}
}

static void test_events_of_a_block_are_counted_one_by_one(void **arg)
{
	enum { ITEMS = 10 };
	struct sl_verdict verdict[ITEMS] = {{0}};
	struct rig_frame f;
	struct rig rig;

	rig_init(&rig, &sl_stage_prescale, SL_U16);
	rig.geometry.items = ITEMS;
	rig.geometry.items_shared = true;
	rig_set(&rig, "every", "4");
	rig_open(&rig);
	rig_frame_init(&f, false);
	f.frame.items = ITEMS;
	f.frame.verdict = verdict;
	verdict[0].keep = 1;
	rig_batch(&rig, &f, 1, 64, 1);
	for (int i = 0; i < ITEMS; i++) {
		bool sampled = i == 4 || i == 8;

		assert_int_equal(verdict[i].keep, i == 0 || sampled);
		assert_int_equal(verdict[i].reason, sampled ? SL_REASON_PRESCALED : 0);
	}
	rig_check_canaries(&rig, &f);
	rig_frame_fini(&f);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_nth_whatever_the_batches),
		cmocka_unit_test(test_later_stages_leave_the_verdict),
		cmocka_unit_test(test_events_of_a_block_are_counted_one_by_one),
	};

	return cmocka_run_group_tests_name("prescale", tests, NULL, NULL);
}
