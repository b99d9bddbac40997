/* transfer_test.c - every frame of a transfer has one place in one block, and counting agrees with
 * walking. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frontend/transfer.h"

enum { FRAMES = 400 };

static const struct sl_transfer whole = {
	.every = 1,
	.stack = 1,
	.part = SL_PART_PIXELS | SL_PART_RECORD,
	.rectangle = {.lines = 4, .line_bytes = 16},
};

/* Walk the run frame by frame, as somebody would who cannot divide. */
static void check_walk(const struct sl_transfer *t)
{
	uint64_t kept = 0, sequence, k;
	uint32_t turn = 0, index;

	for (uint64_t f = 0; f < FRAMES; f++) {
		bool mine = turn == t->phase;

		turn = turn + 1 == t->every ? 0 : turn + 1;
		assert_int_equal(sl_transfer_sequences(t, f), kept / t->stack);
		assert_int_equal(sl_transfer_takes(t, f, &sequence, &index), mine);
		if (!mine)
			continue;
		assert_int_equal(sequence, kept / t->stack);
		assert_int_equal(index, kept % t->stack);
		assert_int_equal(sl_transfer_frame(t, sequence, index), f);
		kept++;
		if (index == t->stack - 1) /* this frame completed a block */
			assert_int_equal(sl_transfer_frames(t, sequence + 1), f + 1);
	}
	k = sl_transfer_sequences(t, FRAMES);
	assert_int_equal(k, kept / t->stack);
	assert_int_equal(sl_transfer_sequences(t, sl_transfer_frames(t, k)), k);
}

static void every_phase_and_stack_agree_with_walking(void **state)
{
	for (uint32_t every = 1; every <= 11; every++)
		for (uint32_t phase = 0; phase < every; phase++)
			for (uint32_t stack = 1; stack <= 7; stack++) {
				struct sl_transfer t = whole;

				t.every = every;
				t.phase = phase;
				t.stack = stack;
				assert_true(sl_transfer_valid(&t));
				check_walk(&t);
			}
}

/* Frames round-robin over receivers: each frame goes to exactly one. */
static void shares_of_a_round_robin_cover_the_run_once(void **state)
{
	enum { RECEIVERS = 5 };

	for (uint64_t f = 0; f < FRAMES; f++) {
		unsigned takers = 0;

		for (uint32_t r = 0; r < RECEIVERS; r++) {
			struct sl_transfer t = whole;
			uint64_t sequence;
			uint32_t index;

			t.every = RECEIVERS;
			t.phase = r;
			takers += sl_transfer_takes(&t, f, &sequence, &index);
		}
		assert_int_equal(takers, 1);
	}
}

static void long_runs_do_not_overflow(void **state)
{
	struct sl_transfer t = whole;
	uint64_t sequence, frame = (UINT64_C(1) << 60) + 3;
	uint32_t index;

	t.every = 10;
	t.phase = frame % 10;
	t.stack = 3;
	assert_true(sl_transfer_takes(&t, frame, &sequence, &index));
	assert_int_equal(sl_transfer_frame(&t, sequence, index), frame);
	assert_int_equal(sl_transfer_sequences(&t, UINT64_MAX), ((UINT64_MAX - 5) / 10 + 1) / 3);
}

static void a_rectangle_lies_in_its_frame(void **state)
{
	struct sl_rectangle r = sl_rectangle_of(3, 5, 7, 11, 64, 2);

	assert_int_equal(r.first, 3 * 128 + 10);
	assert_int_equal(r.pitch, 128);
	assert_int_equal(r.lines, 7);
	assert_int_equal(r.line_bytes, 22);
	assert_int_equal(sl_rectangle_end(&r), 9 * 128 + 32); /* row 9, column 15, one more */
	r = sl_rectangle_of(0, 0, 64, 64, 64, 2);
	assert_int_equal(sl_rectangle_end(&r), 64 * 128);
	r.pitch = 0; /* line after line */
	assert_int_equal(sl_rectangle_end(&r), 64 * 128);
}

static void a_block_is_its_parts(void **state)
{
	struct sl_transfer t = whole;

	t.stack = 3;
	assert_int_equal(sl_transfer_pixel_bytes(&t), 192);
	assert_int_equal(sl_transfer_block_bytes(&t), 192 + 64);
	t.part = SL_PART_PIXELS;
	assert_int_equal(sl_transfer_block_bytes(&t), 192);
	t.part = SL_PART_RECORD;
	assert_int_equal(sl_transfer_pixel_bytes(&t), 0);
	assert_int_equal(sl_transfer_block_bytes(&t), 64);
}

static void what_cannot_be_done_is_not_valid(void **state)
{
	const struct sl_transfer bad[] = {
		{.every = 0, .stack = 1, .part = 1, .rectangle = whole.rectangle},
		{.every = 2, .phase = 2, .stack = 1, .part = 1, .rectangle = whole.rectangle},
		{.every = 1, .stack = 0, .part = 1, .rectangle = whole.rectangle},
		{.every = 1, .stack = 1, .part = 0, .rectangle = whole.rectangle},
		{.every = 1, .stack = 1, .part = 4, .rectangle = whole.rectangle},
		{.every = 1, .stack = 1, .part = 1, .rectangle = {.lines = 1}},
		{.every = 1, .stack = 1, .part = 1, .rectangle = {.line_bytes = 1}},
		{.every = 1,
		 .stack = 1,
		 .part = 1,
		 .rectangle = {.lines = 2, .line_bytes = 16, .pitch = 15}},
		{.every = 1,
		 .stack = 1,
		 .part = 1,
		 .rectangle = {.lines = 1 << 16, .line_bytes = 1 << 15}},
		{.every = 1,
		 .stack = UINT32_MAX,
		 .part = 1,
		 .rectangle = {.lines = UINT32_MAX, .line_bytes = UINT32_MAX}},
		{.every = 1,
		 .stack = 1 << 11,
		 .part = 3,
		 .rectangle = {.lines = 1 << 10, .line_bytes = 1 << 10}},
	};
	struct sl_transfer records = {.every = 1, .stack = 4, .part = SL_PART_RECORD};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(sl_transfer_valid(&bad[i]));
	assert_true(sl_transfer_valid(&whole));
	assert_true(sl_transfer_valid(&records)); /* needs no rectangle */
}

static void agrees_when_but_for(bool agrees, uint16_t *field, uint16_t value, struct sl_plan *plan)
{
	uint16_t before = *field;

	*field = value;
	assert_int_equal(sl_transfer_agrees(&whole, plan), agrees);
	*field = before;
}

/* Plans are outside input. */
static void what_no_receiver_could_mean_is_no_plan(void **state)
{
	struct sl_plan plan = {.version = SL_PLAN_VERSION,
			       .service = SL_SERVICE_UC,
			       .operation = SL_OPERATION_WRITE,
			       .message = SL_MESSAGE_PACKET,
			       .pmtu = 1024,
			       .slots = 4,
			       .block_bytes = 4 * 16 + 64};

	(void)state;
	plan.packets = sl_plan_packets(&plan);
	assert_true(sl_transfer_agrees(&whole, &plan));
	agrees_when_but_for(false, &plan.version, SL_PLAN_VERSION + 1, &plan);
	agrees_when_but_for(true, &plan.service, SL_SERVICE_RC, &plan);
	agrees_when_but_for(false, &plan.service, SL_SERVICE_RC | SL_SERVICE_UC, &plan);
	agrees_when_but_for(false, &plan.operation, SL_OPERATION_SEND, &plan);
	agrees_when_but_for(false, &plan.message, 0, &plan);
	agrees_when_but_for(false, &plan.message, 8, &plan);
	agrees_when_but_for(false, &plan.pmtu, 255, &plan);
	agrees_when_but_for(false, &plan.pmtu, 4097, &plan);
	agrees_when_but_for(false, &plan.bare, 1, &plan);
	plan.first_sequence = UINT64_C(1) << 40;
	assert_false(sl_transfer_agrees(&whole, &plan));
	plan.first_sequence = 0;
	plan.slots = 0;
	assert_false(sl_transfer_agrees(&whole, &plan));
	plan.slots = 4;
	plan.block_bytes++;
	assert_false(sl_transfer_agrees(&whole, &plan));
}

/* Lines of a plan are those of the front end, or left out. Both sizes may be wrong in a way that
 * the block's bytes do not show: without room for a record. */
static void lines_of_a_plan_are_those_of_the_front_end(void **state)
{
	static const struct {
		uint32_t lines, line_bytes;
		bool agrees;
	} cases[] = {{0, 0, true}, {4, 16, true}, {4, 32, false}, {8, 16, false}, {8, 8, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sl_plan plan = {.version = SL_PLAN_VERSION,
				       .service = SL_SERVICE_UC,
				       .operation = SL_OPERATION_WRITE,
				       .message = SL_MESSAGE_PACKET,
				       .pmtu = 1024,
				       .slots = 4,
				       .block_bytes = 4 * 16 + 64,
				       .lines = cases[i].lines,
				       .line_bytes = cases[i].line_bytes};

		plan.packets = sl_plan_packets(&plan);
		assert_true(sl_plan_lines_fit(&plan));
		assert_int_equal(sl_transfer_agrees(&whole, &plan), cases[i].agrees);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_phase_and_stack_agree_with_walking),
		cmocka_unit_test(shares_of_a_round_robin_cover_the_run_once),
		cmocka_unit_test(long_runs_do_not_overflow),
		cmocka_unit_test(a_rectangle_lies_in_its_frame),
		cmocka_unit_test(a_block_is_its_parts),
		cmocka_unit_test(what_cannot_be_done_is_not_valid),
		cmocka_unit_test(what_no_receiver_could_mean_is_no_plan),
		cmocka_unit_test(lines_of_a_plan_are_those_of_the_front_end),
	};

	return cmocka_run_group_tests_name("transfer", tests, NULL, NULL);
}
