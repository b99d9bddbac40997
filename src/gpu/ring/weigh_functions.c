/* weigh_functions.c - kernels of weigh.cl as functions of the program, for platform `threads`. */
#include "gpu/dialect/kernels.h"
#include "gpu/ring/weigh.cl"

#define ARGUMENT(i, type) (*(type *)a[i])
#define WORDS(i)	  (*(sl_u32x4 **)a[i])
#define NUMBER(i)	  ARGUMENT(i, sl_u32)
#define ARGUMENTS                                                                             \
	WORDS(0), WORDS(1), WORDS(2), WORDS(3), ARGUMENT(4, sl_u32 *), ARGUMENT(5, sl_u32 *), \
		NUMBER(6), NUMBER(7), NUMBER(8), NUMBER(9), NUMBER(10)

#define FUNCTION(NAME, ...)                                                     \
	static void run_##NAME(uint32_t group, uint32_t groups, void *const *a) \
	{                                                                       \
		sl_group_number = group;                                        \
		sl_group_count = groups;                                        \
		NAME(__VA_ARGS__);                                              \
	}

FUNCTION(weigh_forever, ARGUMENTS)
FUNCTION(weigh_tagged_forever, ARGUMENTS)

extern const struct sl_kernel_function sl_functions_weigh[];
const struct sl_kernel_function sl_functions_weigh[] = {
	{"weigh_forever", run_weigh_forever},
	{"weigh_tagged_forever", run_weigh_tagged_forever},
	{NULL, NULL},
};
