/* gpu_loop_test.c - trigger `loop` of the units without a GPU: OpenCL, and a thread that plays
 * what CUDA devices play themselves. That GPUs do is in gpu_test.c. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "gpu/table.h"
#include "lib/capture.h"
#include "lib/gpu_cases.h"

enum { LOOPS = 8, MARKS = 4, BATCHES = 5 };

/* ---- a platform whose graphs are played again ---- */

struct loop {
	struct sl_device_graph *graph; /* NULL: this one is free */
	struct sl_device_queue *queue, *own;
	const _Atomic uint32_t *stop;
	struct sl_device_mark *mark[MARKS]; /* behind it */
	pthread_t thread;
	bool begun;
	_Atomic bool ended;
};

static struct sl_platform looping;
static const struct sl_platform *beneath;
static struct loop loops[LOOPS];
static struct sl_device *at;				    /* the one device */
static _Atomic bool stuck;				    /* it does not end */
static pthread_mutex_t kernels = PTHREAD_MUTEX_INITIALIZER; /* have their arguments in them */
static int rounds;					    /* that are played at most; 0: any */

static struct loop *loop_of(const struct sl_device_graph *graph)
{
	for (int i = 0; i < LOOPS; i++)
		if (loops[i].graph == graph)
			return &loops[i];
	return NULL;
}

static int end_looped(struct sl_device_queue *queue, const struct sl_device_memory *stop,
		      struct sl_device_graph **graph)
{
	struct loop *loop = loop_of(NULL);

	assert_non_null(loop);
	assert_int_equal(beneath->graph_end(queue, graph), 0);
	*loop = (struct loop){.graph = *graph, .queue = queue, .stop = stop->host};
	return 0;
}

/* In a queue of its own: that of the graph stands still meanwhile. */
static void *play_again(void *arg)
{
	struct loop *loop = arg;
	bool is_last = false;

	for (int round = 0; !rounds || round < rounds; round++) {
		pthread_mutex_lock(&kernels);
		assert_int_equal(beneath->play(loop->own, loop->graph), 0);
		pthread_mutex_unlock(&kernels);
		assert_int_equal(sl_device_finish(at, loop->own), 0);
		if (is_last)
			break;
		is_last = atomic_load(loop->stop);
	}
	while (atomic_load(&stuck))
		sched_yield();
	atomic_store(&loop->ended, true);
	return NULL;
}

static int play_loop(struct sl_device_queue *queue, struct sl_device_graph *graph)
{
	struct loop *loop = loop_of(graph);

	assert_non_null(loop);
	assert_ptr_equal(queue, loop->queue);
	assert_int_equal(beneath->queue_open(at, &loop->own), 0);
	assert_int_equal(pthread_create(&loop->thread, NULL, play_again, loop), 0);
	loop->begun = true;
	return 0;
}

static void close_loop(struct sl_device_graph *graph)
{
	struct loop *loop = loop_of(graph);

	if (loop && loop->begun) {
		assert_true(atomic_load(&loop->ended)); /* nobody closes what is played */
		pthread_join(loop->thread, NULL);
		beneath->queue_close(loop->own);
	}
	if (loop)
		loop->graph = NULL;
	beneath->graph_close(graph);
}

static int mark_behind(struct sl_device_queue *queue, struct sl_device_mark *mark)
{
	for (int i = 0; i < LOOPS; i++)
		for (int k = 0; loops[i].begun && loops[i].graph && loops[i].queue == queue; k++) {
			assert_true(k < MARKS);
			if (!loops[i].mark[k]) {
				loops[i].mark[k] = mark;
				return 0;
			}
		}
	return beneath->mark(queue, mark);
}

static int reached_behind(struct sl_device_mark *mark)
{
	for (int i = 0; i < LOOPS; i++)
		for (int k = 0; k < MARKS && loops[i].graph; k++)
			if (loops[i].mark[k] == mark)
				return atomic_load(&loops[i].ended);
	return beneath->reached(mark);
}

static void close_mark(struct sl_device_mark *mark)
{
	for (int i = 0; i < LOOPS; i++)
		for (int k = 0; k < MARKS; k++)
			if (loops[i].mark[k] == mark)
				loops[i].mark[k] = NULL;
	beneath->mark_close(mark);
}

static int open_looping(unsigned index, struct sl_device **device)
{
	int err = beneath->open(index, device);

	if (err)
		return err;
	at = *device;
	at->platform = &looping;
	return 0;
}

static int open_unit(void *state, const struct sl_chain *chain, struct sl_bell *todo,
		     struct sl_bell *done, unsigned *workers)
{
	return sl_accelerator_open(state, &looping, chain, todo, done, workers);
}

/* One that is never heard of again keeps what it has: that must be its own. */
static struct sl_unit looping_unit(const struct sl_platform *platform)
{
	struct sl_unit unit = sl_unit_opencl;

	beneath = platform;
	looping = *platform;
	looping.open = open_looping;
	looping.graph_end_looped = end_looped;
	looping.play = play_loop;
	looping.graph_close = close_loop;
	looping.mark = mark_behind;
	looping.reached = reached_behind;
	looping.mark_close = close_mark;
	unit.open = open_unit;
	rounds = 0;
	return unit;
}

#define NEEDS_HOST()                                                                      \
	NEEDS_OPENCL();                                                                   \
	if (!opencl_is_this_cpu()) {                                                      \
		print_message("# skip: OpenCL's device does not see the host's words\n"); \
		skip();                                                                   \
	}

/* ---- all is well ---- */

static void test_results_are_those_of_the_cpu(void **arg)
{
	static const char *const name[] = {"photons", "photons, eight at a time", "rings",
					   "tracks, fits", "lists by radius"};
	const char *const set[] = {"unit.trigger=loop", "unit.kind=opencl", "unit.cross_check=3",
				   "unit.batch_slots=2"};
	struct sl_unit unit = looping_unit(&gpu_platform);
	const struct sl_unit *const units[] = {&sl_unit_cpu, &unit};

	NEEDS_HOST();
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		const struct gpu_case *c = case_of(name[i]);
		struct counted counted = {0};
		struct gpu_side side[2];
		unsigned kept = 0;
		uint64_t next = 0;

		assert_int_equal(gpu_try_open(&side[0], c, &sl_unit_cpu, NULL, 0), 0);
		assert_int_equal(gpu_try_open(&side[1], c, &unit, set, 4), 0);
		for (int b = 0; b < BATCHES; b++) {
			uint32_t frames = b % 2 ? c->batch : 1 + c->batch / 3; /* full and not */

			kept += gpu_both(c, side, units, next, frames);
			next += frames;
		}
		assert_true(kept > 0);
		unit.figures(side[1].experiment->unit_state, count_figures, &counted);
		assert_true(counted.checked > 0);
		assert_int_equal(counted.unlike, 0);
		assert_int_equal(counted.looped, BATCHES);
		assert_true((gpu_compare_learned(c, side, units) > 0) == (i != 2 && i != 3));
		gpu_close(&side[0], &sl_unit_cpu);
		gpu_close(&side[1], &unit);
	}
}

static void test_batches_overlap_and_come_back_in_order(void **arg)
{
	const char *const kept[] = {"unit.trigger=loop", "unit.kind=opencl", "unit.batch_slots=3"};
	const char *const any[] = {"unit.trigger=loop", "unit.kind=opencl", "unit.batch_slots=3",
				   "unit.order=any"};
	struct sl_unit unit = looping_unit(&gpu_platform);

	NEEDS_HOST();
	for (int again = 0; again < 5; again++) /* in whichever order they are seen to be back */
		gpu_overlap(case_of("photons, eight at a time"), &unit, kept, 3);
	gpu_overlap(case_of("counts of 32 bits"), &unit, any, 4);
	gpu_overlap(case_of("rings"), &unit, any, 4);
}

static void test_where_the_device_cannot_the_host_plays(void **arg)
{
	const char *const set[] = {"unit.trigger=loop", "unit.kind=opencl", "unit.batch_slots=3"};

	NEEDS_HOST();
	capture_begin();
	gpu_overlap(case_of("photons, eight at a time"), &unit_opencl, set, 3);
	assert_non_null(strstr(capture_end(), "the host plays kernels, as for graph"));
}

/* ---- it ends ---- */

static void test_a_unit_is_closed_while_batches_are_there(void **arg)
{
	const char *const set[] = {"unit.trigger=loop", "unit.kind=opencl"};
	struct sl_unit unit = looping_unit(&gpu_platform);

	NEEDS_HOST();
	for (int steps = 0; steps < 6; steps++)
		gpu_close_after(&unit, set, 2, steps);
}

/* A device that plays no more, though nobody told it to stop: every frame is refused, or done by
 * the CPU, and it is said. */
static void end_too_soon(const char *fallback, int status)
{
	const char *const set[] = {"unit.trigger=loop", "unit.kind=opencl", "unit.batch_slots=1",
				   fallback};
	struct sl_unit unit = looping_unit(&gpu_platform);
	struct gpu_side side;

	rounds = 2;
	assert_int_equal(gpu_try_open(&side, &gpu_cases[0], &unit, set, 4), 0);
	capture_begin();
	for (uint64_t b = 0; b < 4; b++) {
		char *memory;
		struct sl_batch *batch =
			one_batch(&side, &gpu_cases[0], &memory, b * gpu_cases[0].batch);

		assert_int_equal(gpu_batch(&side, &unit, batch), b < 2 ? 0 : status);
		free_batch(&side, batch, memory);
	}
	assert_non_null(strstr(capture_end(), "the device was given up"));
	gpu_close(&side, &unit);
}

static void test_a_loop_that_ends_too_soon_is_told(void **arg)
{
	NEEDS_HOST();
	end_too_soon("unit.fallback=none", -EIO);
	end_too_soon("unit.fallback=cpu", 0);
}

/* One of two queues begins, the other does not: the first is stopped before anything is closed. */
static int plays;

static int play_one(struct sl_device_queue *queue, struct sl_device_graph *graph)
{
	return plays++ ? -EIO : play_loop(queue, graph);
}

static void open_half(const struct sl_platform *platform, const char *fallback, int err)
{
	const char *const set[] = {"unit.trigger=loop", "unit.kind=opencl",   "unit.batch_slots=2",
				   "unit.order=any",	"unit.timeout_ms=50", fallback};
	struct sl_unit unit = looping_unit(platform);
	const struct gpu_case *c = case_of("counts of 32 bits");
	struct gpu_side side;

	looping.play = play_one;
	plays = 0;
	capture_begin();
	assert_int_equal(gpu_try_open(&side, c, &unit, set, 6), err);
	assert_non_null(strstr(capture_end(), "kernels that wait"));
	assert_int_equal(plays, 2);
	if (!err) {
		char *memory;
		struct sl_batch *batch = one_batch(&side, c, &memory, 0);

		assert_int_equal(gpu_batch(&side, &unit, batch), 0);
		free_batch(&side, batch, memory);
	}
	side.unit_open = !err;
	gpu_close(&side, &unit);
}

static void test_a_unit_that_opens_half_is_closed(void **arg)
{
	int left = 0;

	NEEDS_HOST();
	open_half(&gpu_platform, "unit.fallback=none", -EIO);
	open_half(&gpu_platform, "unit.fallback=cpu", 0);
	/* Where the first does not end, it keeps its device, and the CPU goes on. */
	atomic_store(&stuck, true);
	open_half(&sl_platform_opencl, "unit.fallback=cpu", 0);
	atomic_store(&stuck, false);
	for (int i = 0; i < LOOPS; i++)
		if (loops[i].graph && loops[i].begun) {
			pthread_join(loops[i].thread, NULL);
			left++;
		}
	assert_int_equal(left, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results_are_those_of_the_cpu),
		cmocka_unit_test(test_batches_overlap_and_come_back_in_order),
		cmocka_unit_test(test_where_the_device_cannot_the_host_plays),
		cmocka_unit_test(test_a_unit_is_closed_while_batches_are_there),
		cmocka_unit_test(test_a_loop_that_ends_too_soon_is_told),
		cmocka_unit_test(test_a_unit_that_opens_half_is_closed),
	};

	return gpu_main() ? 0 : cmocka_run_group_tests_name("gpu_loop", tests, gpu_begin, gpu_end);
}
