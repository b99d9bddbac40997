/* integrate_test.c - profiles and cakes equal those of the plainest loop in double precision,
 * whatever the type of pixels, batches, tiles, workers and vectors; integers to the last bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/integrate_rig.h"

static void results_are_those_of_the_plain_loop(void **arg)
{
	static const uint32_t tiles[] = {1, 7, 64, 300, RIG_MODULE_PIXELS};
	static const uint32_t batches[] = {20, 8, 3, 1, 17};

	(void)arg;
	for (unsigned n = 0; n < 16 * 5; n++) {
		struct oracle o = oracle_for(n % 16);
		struct stack stack;
		struct rig rig;

		rig_for(&rig, types[n / 16], &o);
		rig_set(&rig, "vectors", vectors[n % 4]);
		rig_open(&rig);
		assert_string_equal(rig.out.name, o.sectors ? "cake" : "profile");
		stack_init(&stack, types[n / 16]);
		rig_run(&rig, stack.frame, FRAMES, batches[n % 5], tiles[n / 5 % 5], 1 + n % 3);
		check_stack(&rig, &o, &stack, n);
		stack_fini(&stack);
		rig_close(&rig);
	}
}

/* Counts of up to 16 bits: not a bit depends on how they were added up. Of 32 bits that holds for
 * pixels that are not split. */
static void integers_are_the_same_in_any_order(void **arg)
{
	(void)arg;
	for (unsigned n = 0; n < 4 * 4; n++) {
		struct oracle o = oracle_for(n / 4 | 4);
		struct stack stack[2];

		if (types[n % 4] == SL_U32 && o.boxes)
			continue;
		for (unsigned way = 0; way < 5; way++) {
			struct stack *one = &stack[way > 0];
			struct rig rig;

			rig_for(&rig, types[n % 4], &o);
			rig_set(&rig, "vectors", vectors[way % 4]);
			rig_open(&rig);
			stack_init(one, types[n % 4]);
			rig_run(&rig, one->frame, FRAMES, 1 + 5 * way, 50 + 100 * way, 1 + way);
			for (int f = 0; f < FRAMES && way; f++)
				assert_memory_equal(one->result[f][0], stack[0].result[f][0],
						    3 * BINS * SECTORS * sizeof(float));
			if (way)
				stack_fini(one);
			rig_close(&rig);
		}
		stack_fini(&stack[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_are_those_of_the_plain_loop),
		cmocka_unit_test(integers_are_the_same_in_any_order),
	};

	return cmocka_run_group_tests_name("integrate", tests, NULL, NULL);
}
