/* threads.c - a device that is none: each queue is a thread of this process. It has the memory, the
 * queues and the order of a GPU, so that what is written for one is tested on any host, under any
 * sanitizer. Kernels are functions (struct sl_kernel_function); groups of one go one after the
 * other, except where there are as many threads as groups: those of kernels that wait for words.
 * Device rings use it, and no unit does: so it has no graphs, and no queue of it waits for a word.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "core/device.h"

enum { MOST_BYTES = 16 }; /* of an argument that is a value */

struct device {
	struct sl_device base;
	char problem[SL_DEVICE_TEXT];
};

struct sl_device_program {
	struct device *device;
	const struct sl_kernels *kernels;
};

struct sl_device_kernel {
	const struct sl_kernel_function *function;
};

struct sl_device_mark {
	_Atomic uint64_t asked, reached;
};

enum what { COPY, ZERO, LAUNCH, MARK, WAIT, END };

struct task {
	enum what what;
	char *to;
	const char *from;
	uint64_t bytes, rows, pitch, number;
	struct sl_device_mark *mark;
	const struct sl_device_kernel *kernel;
	uint32_t groups, arguments;
	void *argument[SL_DEVICE_ARGUMENTS]; /* memory; NULL: `value` */
	_Alignas(16) char value[SL_DEVICE_ARGUMENTS][MOST_BYTES];
	struct task *next;
};

struct sl_device_queue {
	struct device *device;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t bell;
	struct task *first, **last;
};

/* ---- what the thread of a queue does ---- */

struct group {
	const struct task *task;
	uint32_t number;
	pthread_t thread;
};

static void run_group(const struct task *t, uint32_t number)
{
	void *argument[SL_DEVICE_ARGUMENTS] = {0};

	for (uint32_t i = 0; i < t->arguments; i++)
		argument[i] = t->argument[i] ? (void *)&t->argument[i] : (void *)t->value[i];
	t->kernel->function->run(number, t->groups, argument);
}

static void *group_thread(void *arg)
{
	struct group *g = arg;

	run_group(g->task, g->number);
	return NULL;
}

/* All at once, as on a device: a group may wait for what another does. */
static void launch_groups(const struct task *t)
{
	struct group *group = calloc(t->groups, sizeof(*group));

	for (uint32_t i = 1; group && i < t->groups; i++) {
		group[i] = (struct group){.task = t, .number = i};
		if (pthread_create(&group[i].thread, NULL, group_thread, &group[i]) != 0)
			abort(); /* a test's host has threads, or no test */
	}
	run_group(t, 0);
	for (uint32_t i = 1; group && i < t->groups; i++)
		pthread_join(group[i].thread, NULL);
	free(group);
}

static void copy(const struct task *t)
{
	for (uint64_t r = 0; r < t->rows; r++)
		memcpy(t->to + r * t->bytes, t->from + r * t->pitch, t->bytes);
}

/* Words that others poll are written whole, the turn last. */
static void copy_words(const struct task *t)
{
	_Atomic uint32_t *to = (void *)t->to;
	const uint32_t *from = (const void *)t->from;

	for (int i = 0; i < 3; i++)
		atomic_store_explicit(&to[i], from[i], memory_order_relaxed);
	atomic_store_explicit(&to[3], from[3], memory_order_release);
}

static void run_task(const struct task *t)
{
	switch (t->what) {
	case COPY:
		if (t->bytes == 16 && t->rows == 1)
			copy_words(t);
		else
			copy(t);
		break;
	case ZERO:
		memset(t->to, 0, t->bytes);
		break;
	case LAUNCH:
		launch_groups(t);
		break;
	case MARK:
		atomic_store_explicit(&t->mark->reached, t->number, memory_order_release);
		break;
	case WAIT:
		while (atomic_load_explicit(&t->mark->reached, memory_order_acquire) < t->number)
			sched_yield();
		break;
	case END:
		break;
	}
}

static void *queue_thread(void *arg)
{
	struct sl_device_queue *q = arg;
	bool goes_on = true;

	while (goes_on) {
		struct task *t;

		pthread_mutex_lock(&q->lock);
		while (!q->first)
			pthread_cond_wait(&q->bell, &q->lock);
		t = q->first;
		q->first = t->next;
		if (!q->first)
			q->last = &q->first;
		pthread_mutex_unlock(&q->lock);
		goes_on = t->what != END;
		run_task(t);
		free(t);
	}
	return NULL;
}

static int put(struct sl_device_queue *q, const struct task *task)
{
	struct task *t = malloc(sizeof(*t));

	if (!t)
		return -ENOMEM;
	*t = *task;
	t->next = NULL;
	pthread_mutex_lock(&q->lock);
	*q->last = t;
	q->last = &t->next;
	pthread_cond_signal(&q->bell);
	pthread_mutex_unlock(&q->lock);
	return 0;
}

/* ---- the platform ---- */

static const char *unavailable(void)
{
	return NULL;
}

static unsigned devices(void)
{
	return 1;
}

static int open_device(unsigned index, struct sl_device **device)
{
	struct device *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->base.platform = &sl_platform_threads;
	*device = &d->base;
	return 0;
}

static void close_device(struct sl_device *device)
{
	free(device);
}

static void describe(struct sl_device *device, struct sl_device_info *info)
{
	*info = (struct sl_device_info){.name = "threads of this process",
					.driver = "none",
					.memory_bytes = UINT64_MAX,
					.largest_bytes = UINT64_MAX,
					.processors = 64, /* threads that may run */
					.group_threads = 1,
					.is_host = 1,
					.polls = 1,
					.sees_remote_writes = 1};
}

static const char *problem(const struct sl_device *device)
{
	return ((const struct device *)device)->problem;
}

/* In a file that has no name, so that others can be given it. */
static int memory_open(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	uint64_t size = bytes ? (bytes + 4095) / 4096 * 4096 : 4096;
	int fd = memfd_create("sluice device", MFD_CLOEXEC);
	void *memory = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		snprintf(((struct device *)device)->problem, SL_DEVICE_TEXT,
			 "this host has no %llu bytes", (unsigned long long)bytes);
		device->refused_bytes = bytes;
		return -ENOMEM;
	}
	device->held_bytes += bytes;
	*m = (struct sl_device_memory){.bytes = bytes,
				       .address = (uint64_t)(uintptr_t)memory,
				       .handle = (void *)(intptr_t)(fd + 1)};
	return 0;
}

static int pinned_open(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m)
{
	int err = memory_open(device, bytes, m);

	if (!err)
		m->host = (void *)(uintptr_t)m->address;
	return err;
}

static void memory_close(struct sl_device *device, struct sl_device_memory *m)
{
	if (m->handle) {
		device->held_bytes -= m->bytes;
		munmap((void *)(uintptr_t)m->address,
		       m->bytes ? (m->bytes + 4095) / 4096 * 4096 : 4096);
		close((int)(intptr_t)m->handle - 1);
	}
	*m = (struct sl_device_memory){0};
}

static int share(struct sl_device *device, const struct sl_device_memory *m, int *fd)
{
	*fd = m->handle ? fcntl((int)(intptr_t)m->handle - 1, F_DUPFD_CLOEXEC, 0) : -1;
	return *fd < 0 ? -EINVAL : 0;
}

static int pin(struct sl_device *device, void *host, uint64_t bytes)
{
	return 0;
}

static void unpin(struct sl_device *device, void *host)
{
}

static int queue_open(struct sl_device *device, struct sl_device_queue **queue)
{
	struct sl_device_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->device = (struct device *)device;
	q->last = &q->first;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->bell, NULL);
	if (pthread_create(&q->thread, NULL, queue_thread, q) != 0) {
		free(q);
		return -EAGAIN;
	}
	*queue = q;
	return 0;
}

/* When all that is queued is done. */
static void queue_close(struct sl_device_queue *q)
{
	if (put(q, &(struct task){.what = END}) != 0)
		return;
	pthread_join(q->thread, NULL);
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->bell);
	free(q);
}

static char *at(const struct sl_device_memory *m, uint64_t offset)
{
	return (char *)(uintptr_t)m->address + offset;
}

static int write_memory(struct sl_device_queue *q, const struct sl_device_memory *to,
			uint64_t offset, const void *from, uint64_t row_bytes, uint64_t rows,
			uint64_t pitch)
{
	return put(q, &(struct task){.what = COPY,
				     .to = at(to, offset),
				     .from = from,
				     .bytes = row_bytes,
				     .rows = rows,
				     .pitch = pitch});
}

static int read_memory(struct sl_device_queue *q, void *to, const struct sl_device_memory *from,
		       uint64_t offset, uint64_t bytes)
{
	return put(q, &(struct task){.what = COPY,
				     .to = to,
				     .from = at(from, offset),
				     .bytes = bytes,
				     .rows = 1});
}

static int zero(struct sl_device_queue *q, const struct sl_device_memory *to, uint64_t offset,
		uint64_t bytes)
{
	return put(q, &(struct task){.what = ZERO, .to = at(to, offset), .bytes = bytes});
}

static int flush(struct sl_device_queue *q)
{
	return 0;
}

static int mark_open(struct sl_device *device, struct sl_device_mark **mark)
{
	*mark = calloc(1, sizeof(**mark));
	return *mark ? 0 : -ENOMEM;
}

/* A queue that stands still has it yet: then it is left to that. */
static void mark_close(struct sl_device_mark *m)
{
	if (atomic_load_explicit(&m->reached, memory_order_acquire) == atomic_load(&m->asked))
		free(m);
}

static int mark(struct sl_device_queue *q, struct sl_device_mark *m)
{
	uint64_t number = atomic_fetch_add(&m->asked, 1) + 1;

	return put(q, &(struct task){.what = MARK, .mark = m, .number = number});
}

static int wait(struct sl_device_queue *q, struct sl_device_mark *m)
{
	return put(q, &(struct task){.what = WAIT, .mark = m, .number = atomic_load(&m->asked)});
}

static int reached(struct sl_device_mark *m)
{
	return atomic_load_explicit(&m->reached, memory_order_acquire) == atomic_load(&m->asked);
}

static int program_open(struct sl_device *device, const struct sl_kernels *kernels,
			struct sl_device_program **program)
{
	struct device *d = (struct device *)device;

	if (!kernels->function) {
		snprintf(d->problem, sizeof(d->problem), "the kernels of '%s' are not functions",
			 kernels->name);
		return -ENOTSUP;
	}
	*program = calloc(1, sizeof(**program));
	if (!*program)
		return -ENOMEM;
	(*program)->device = d;
	(*program)->kernels = kernels;
	return 0;
}

static void program_close(struct sl_device_program *p)
{
	free(p);
}

static int kernel_open(struct sl_device_program *p, const char *name,
		       struct sl_device_kernel **kernel)
{
	for (const struct sl_kernel_function *f = p->kernels->function; f->name; f++)
		if (!strcmp(f->name, name)) {
			*kernel = calloc(1, sizeof(**kernel));
			if (*kernel)
				(*kernel)->function = f;
			return *kernel ? 0 : -ENOMEM;
		}
	snprintf(p->device->problem, sizeof(p->device->problem), "there is no kernel '%s'", name);
	return -EINVAL;
}

static void kernel_close(struct sl_device_kernel *k)
{
	free(k);
}

static int launch(struct sl_device_queue *q, struct sl_device_kernel *k,
		  const struct sl_device_range *range, const struct sl_device_argument *argument,
		  unsigned arguments)
{
	struct task t = {.what = LAUNCH,
			 .kernel = k,
			 .groups = range->groups[0] ? range->groups[0] : 1,
			 .arguments = arguments};

	if (arguments > SL_DEVICE_ARGUMENTS)
		return -EINVAL;
	for (unsigned i = 0; i < arguments; i++) {
		if (argument[i].memory)
			t.argument[i] = (void *)(uintptr_t)argument[i].memory->address;
		else if (argument[i].bytes <= MOST_BYTES)
			memcpy(t.value[i], argument[i].value, argument[i].bytes);
		else
			return -EINVAL;
	}
	return put(q, &t);
}

const struct sl_platform sl_platform_threads = {
	.name = "threads",
	.doc = "threads of this process in place of a device, for tests",
	.unavailable = unavailable,
	.devices = devices,
	.open = open_device,
	.close = close_device,
	.describe = describe,
	.problem = problem,
	.memory_open = memory_open,
	.pinned_open = pinned_open,
	.memory_close = memory_close,
	.pin = pin,
	.unpin = unpin,
	.queue_open = queue_open,
	.queue_close = queue_close,
	.write = write_memory,
	.read = read_memory,
	.zero = zero,
	.flush = flush,
	.mark_open = mark_open,
	.mark_close = mark_close,
	.mark = mark,
	.wait = wait,
	.reached = reached,
	.program_open = program_open,
	.program_close = program_close,
	.kernel_open = kernel_open,
	.kernel_close = kernel_close,
	.launch = launch,
	.share = share,
};
