/* flag_test.c - the word that says how many elements are published, and what waits for it by
 * itself: a thread of the follower's program, and a kernel of an OpenCL device that sees the
 * share's memory. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/sanitized.h"
#include "lib/share_far_rig.h"
#if __has_include(<CL/cl.h>)
#include "gpu/opencl/device.h"
#endif

enum { ELEMENTS = 200, PLACES = 16 };

static uint32_t data[2048];

/* ---- a thread ---- */

struct waiter {
	struct sl_follower *follower;
	const uint64_t *flag;
	_Atomic uint64_t had; /* elements */
	_Atomic bool ends;
};

static bool wait_for_flag(struct waiter *w, uint64_t wanted)
{
	while (__atomic_load_n(w->flag, __ATOMIC_ACQUIRE) < wanted) {
		if (atomic_load(&w->ends))
			return false;
		sched_yield();
	}
	return true;
}

/* Waits for the word, and for nothing else: what was published then is there. */
static void *wait_and_look(void *arg)
{
	struct waiter *w = arg;
	struct sl_follow_element element;
	static uint32_t copy[2048];

	for (uint64_t n = 0; n < ELEMENTS && wait_for_flag(w, n + 1); n++) {
		if (sl_follow_fetch(w->follower, n, 0, 0, copy, &element) || !share_is(&element, n))
			break;
		atomic_store(&w->had, n + 1);
	}
	return NULL;
}

/* One element after the other, each when the one before was had. */
static void push_for(struct sl_share *share, struct waiter *w, int (*meanwhile)(void *), void *arg)
{
	uint64_t end = sl_clock_ns() + UINT64_C(100000000000);

	for (uint64_t n = 0; n < ELEMENTS; n++) {
		share_push(share, n);
		while (atomic_load(&w->had) <= n) {
			if (sl_clock_ns() > end) { /* its thread has met an error */
				atomic_store(&w->ends, true);
				return;
			}
			if (meanwhile)
				meanwhile(arg);
			else
				sched_yield();
		}
	}
}

static void test_a_thread_waits(void **state)
{
	struct sl_share *share = share_open("flag", PLACES);
	struct waiter w = {.follower = follower_open("flag")};
	pthread_t thread;

	w.flag = sl_follow_flag(w.follower);
	assert_int_equal(*w.flag, 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_and_look, &w), 0);
	push_for(share, &w, NULL, NULL);
	pthread_join(thread, NULL);
	assert_int_equal(w.had, ELEMENTS);
	/* It costs the writer nothing: no follower has said that it sleeps. */
	assert_int_equal(share->memory.header->words.wake, 0);
	sl_follow_close(w.follower);
	sl_share_close(share);
}

/* ---- over rdma ---- */

struct far_waiter {
	struct waiter w;
	struct sl_follow_element element;
	uint64_t got;
};

static int follow_a_while(void *arg)
{
	struct far_waiter *far = arg;
	int err = sl_follow_next(far->w.follower, SL_FOLLOW_EVERY, 1, data, sizeof(data),
				 &far->element);

	far->got += !err;
	return err;
}

static void *wait_only(void *arg)
{
	struct waiter *w = arg;

	for (uint64_t n = 0; n < ELEMENTS && wait_for_flag(w, n + 1); n++)
		atomic_store(&w->had, n + 1);
	return NULL;
}

/* Between hosts the word is the follower's: it changes while the follower's own thread waits. */
static void test_a_thread_waits_over_rdma(void **state)
{
	struct sl_share *share = far_open("flag", PLACES);
	struct far_waiter far = {.w.follower = far_follower(share)};
	pthread_t thread;

	far.w.flag = sl_follow_flag(far.w.follower);
	assert_int_equal(pthread_create(&thread, NULL, wait_only, &far.w), 0);
	push_for(share, &far.w, follow_a_while, &far);
	pthread_join(thread, NULL);
	assert_int_equal(far.w.had, ELEMENTS);
	sl_follow_close(far.w.follower);
	sl_share_close(share);
}

/* ---- a kernel ---- */

#if __has_include(<CL/cl.h>)
enum { ROUNDS = 20 };
#define MANY_LOOKS (UINT64_C(1) << 36) /* minutes: a kernel ends also where no element comes */

/* A follower of one element, as docs/reference/share.md has it: wait, look, copy, look again. */
static const char source[] =
	"__kernel void take(__global const ulong *share, __global ulong *out, ulong n,\n"
	"                   ulong place, ulong at, uint words, ulong looks)\n"
	"{\n"
	"	__global const volatile ulong *published = share + 18; /* at byte 144 */\n"
	"	__global const volatile ulong *done = share + place;\n"
	"	__global const volatile ulong *claim = share + place + 1;\n"
	"	__global const volatile uint *image = (__global const volatile uint *)(share + "
	"at);\n"
	"	ulong sum = 0, seen = 0;\n"
	"\n"
	"	for (ulong i = 0; i < looks && seen <= n; i++)\n"
	"		seen = *published;\n"
	"	out[0] = seen;\n"
	"	mem_fence(CLK_GLOBAL_MEM_FENCE);\n"
	"	out[1] = *done;\n"
	"	mem_fence(CLK_GLOBAL_MEM_FENCE);\n"
	"	for (uint i = 0; i < words; i++)\n"
	"		sum += image[i];\n"
	"	mem_fence(CLK_GLOBAL_MEM_FENCE);\n"
	"	out[2] = *claim;\n"
	"	out[3] = sum;\n"
	"}\n";

struct card {
	const struct sl_platform *p;
	struct sl_device *device;
	struct sl_device_queue *queue;
	struct sl_device_mark *mark;
	struct sl_device_program *program;
	struct sl_device_kernel *kernel;
	struct sl_device_memory share, out;
};

/* The share's memory where the host has it: the follower's mapping. NULL: this device copies it. */
static bool open_card(struct card *c, const struct sl_follower *f)
{
	const struct sl_kernels kernels = {.name = "flag", .opencl = source};
	const struct sl_opencl_device *d;
	struct sl_device_info info;
	cl_int error;

	*c = (struct card){.p = &sl_platform_opencl};
	if (c->p->open(0, &c->device))
		return false;
	c->p->describe(c->device, &info);
	d = (const struct sl_opencl_device *)c->device;
	c->share = (struct sl_device_memory){.bytes = f->memory.bytes};
	if (info.is_host && info.polls)
		c->share.handle = d->cl->clCreateBuffer(d->context,
							CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR,
							f->memory.bytes, f->memory.header, &error);
	if (!c->share.handle) {
		c->p->close(c->device);
		return false;
	}
	assert_int_equal(c->p->pinned_open(c->device, 64, &c->out), 0);
	assert_int_equal(c->p->queue_open(c->device, &c->queue), 0);
	assert_int_equal(c->p->mark_open(c->device, &c->mark), 0);
	assert_int_equal(c->p->program_open(c->device, &kernels, &c->program), 0);
	assert_int_equal(c->p->kernel_open(c->program, "take", &c->kernel), 0);
	return true;
}

static void close_card(struct card *c)
{
	const struct sl_opencl_device *d = (const struct sl_opencl_device *)c->device;

	c->p->kernel_close(c->kernel);
	c->p->program_close(c->program);
	c->p->mark_close(c->mark);
	c->p->queue_close(c->queue);
	c->p->memory_close(c->device, &c->out);
	d->cl->clReleaseMemObject(c->share.handle);
	c->p->close(c->device);
}

static void begin_to_wait(struct card *c, const struct sl_follower *f, uint64_t n, uint64_t looks)
{
	const uint8_t *base = (const uint8_t *)f->memory.header;
	uint64_t place = (uint64_t)((uint8_t *)sl_share_place_of(&f->memory, n) - base) / 8;
	uint64_t at = (uint64_t)(sl_share_data_of(&f->memory, n) - base) / 8;
	uint32_t words = SHARE_IMAGE;
	const struct sl_device_argument argument[] = {SL_ARG_MEMORY(&c->share),
						      SL_ARG_MEMORY(&c->out),
						      SL_ARG(n),
						      SL_ARG(place),
						      SL_ARG(at),
						      SL_ARG(words),
						      SL_ARG(looks)};
	const struct sl_device_range one = {.groups = {1}, .threads = 1};

	memset(c->out.host, 0xff, 64);
	assert_int_equal(c->p->launch(c->queue, c->kernel, &one, argument,
				      sizeof(argument) / sizeof(argument[0])),
			 0);
	assert_int_equal(c->p->mark(c->queue, c->mark), 0);
	assert_int_equal(c->p->flush(c->queue), 0);
}

static void wait_for_kernel(struct card *c)
{
	uint64_t end = sl_clock_ns() + UINT64_C(300000000000);
	int reached;

	while (!(reached = c->p->reached(c->mark)) && sl_clock_ns() < end)
		usleep(1000);
	assert_int_equal(reached, 1);
}

/* A kernel waits for an element that is not there yet, and takes it: the host only commits. */
static void test_a_kernel_waits(void **state)
{
	const char *why = sl_platform_opencl.unavailable();
	struct sl_share *share;
	struct sl_follower *f;
	struct card c;

	if (why) {
		print_message("# skip: %s\n", why);
		skip();
	}
	share = share_open("kernel", PLACES);
	f = follower_open("kernel");
	if (!open_card(&c, f)) {
		sl_follow_close(f);
		sl_share_close(share);
		print_message("# skip: this OpenCL device does not see memory of the host while a "
			      "kernel runs\n");
		skip();
	}
	begin_to_wait(&c, f, 0, 1); /* it looks once, and is compiled */
	wait_for_kernel(&c);
	assert_int_equal(((const uint64_t *)c.out.host)[0], 0);
	for (uint64_t n = 0; n < ROUNDS; n++) {
		const uint64_t *out = c.out.host;

		begin_to_wait(&c, f, n, MANY_LOOKS);
		usleep(n % 4 * 1000);
		share_push(share, n);
		wait_for_kernel(&c);
		assert_int_equal(out[0], n + 1);
		assert_int_equal(out[1], n + 1);
		assert_int_equal(out[2], n + 1);
		assert_int_equal(out[3], n * SHARE_IMAGE);
	}
	close_card(&c);
	sl_follow_close(f);
	sl_share_close(share);
}
#else
static void test_a_kernel_waits(void **state)
{
	print_message("# skip: built without OpenCL's headers\n");
	skip();
}
#endif

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, share_setup, share_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_thread_waits),
		TEST(test_a_thread_waits_over_rdma),
		TEST(test_a_kernel_waits),
	};

	return cmocka_run_group_tests_name("share_flag", tests, NULL, NULL);
}
