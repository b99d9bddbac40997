/* serve.c - the process that has a share, and commits what the row asks for. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/share/share.h"

enum {
	READY = 1,
	LOOK_US = 1000, /* how often it is looked whether the other process has said something */
	PATIENCE_MS = 100,
	FIRST = 100, /* that are not timed */
};
#define PATTERN UINT64_C(0x9e3779b97f4a7c15)

void sl_bench_share_fill(uint8_t *data, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i += 8) {
		uint64_t word = (i / 8 + 1) * PATTERN;

		memcpy(data + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

bool sl_bench_share_is(const uint8_t *data, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i += 8) {
		uint64_t word = (i / 8 + 1) * PATTERN;

		if (memcmp(data + i, &word, bytes - i < 8 ? bytes - i : 8) != 0)
			return false;
	}
	return true;
}

void *sl_bench_share_memory(uint64_t bytes, int flags)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, bytes, MADV_HUGEPAGE);
	memset(memory, 0, bytes);
	return memory;
}

int sl_bench_share_open(const struct sl_bench_share *what, const struct sl_bench_share_way *way,
			const char *stem, uint64_t places, struct sl_share **share)
{
	struct sl_share_array array = {.name = "bytes", .type = "|u1", .rank = 2};
	struct sl_share_options options = {.bytes = sizeof(options),
					   .arrays = 1,
					   .array = &array,
					   .count = places,
					   .listen = way->listen,
					   .device = way->device,
					   .secret_file = way->secret};
	struct sl_remote_error error;
	char name[40];
	int err;

	array.dim[1] = what->bytes < 1 << 20 ? (uint32_t)what->bytes : 1 << 20;
	array.dim[0] = (uint32_t)(what->bytes / array.dim[1]);
	snprintf(name, sizeof(name), "bench-%s-%d", stem, (int)getpid());
	err = sl_share_open(name, &options, share, &error);
	if (err)
		fprintf(stderr, "%s\n", error.message);
	return err == -EOPNOTSUPP ? -ENODEV : err;
}

static bool stopped(const struct sl_bench_serving *serving)
{
	return atomic_load_explicit(&serving->stop, memory_order_acquire);
}

/* One element, and the share's thread does the rest. */
static void stand(struct sl_share *share, struct sl_bench_serving *serving)
{
	while (!stopped(serving))
		usleep(LOOK_US);
}

static void echo(struct sl_share *share, struct sl_bench_serving *serving)
{
	struct sl_share_message message;

	while (!stopped(serving)) {
		if (sl_share_receive(share, PATIENCE_MS, &message))
			continue;
		sl_share_send(share, message.peer, message.kind, message.data, message.bytes);
		sl_remote_free(message.data);
	}
}

/* As fast as the follower takes them: half of the ring is what it has not had. */
static void feed(struct sl_share *share, struct sl_bench_serving *serving, const void *frame)
{
	uint64_t n = sl_share_push(share, NULL, &frame);

	while (!stopped(serving))
		if (n - atomic_load_explicit(&serving->taken, memory_order_acquire) <
		    SL_BENCH_PLACES / 2)
			n = sl_share_push(share, NULL, &frame);
}

static void pace(struct sl_share *share, struct sl_bench_serving *serving, const void *frame)
{
	for (uint64_t due = sl_clock_ns(); !stopped(serving); due += SL_BENCH_PERIOD_NS) {
		sl_clock_sleep_until(due);
		sl_share_push(share, NULL, &frame);
	}
}

/* One frame, then the answer to it; the next one when a camera would have it. */
static void ask(struct sl_share *share, struct sl_bench_serving *serving, const void *frame)
{
	uint32_t asked = 0;

	while (!stopped(serving)) {
		uint64_t begun = sl_clock_ns(), n = sl_share_push(share, NULL, &frame), committed;
		struct sl_share_message message = {0};

		committed = sl_clock_ns();
		while (!stopped(serving) && message.kind != 1 + (uint32_t)n)
			if (!sl_share_receive(share, PATIENCE_MS, &message))
				sl_remote_free(message.data);
		if (message.kind == 1 + (uint32_t)n && asked++ >= FIRST &&
		    serving->times < SL_BENCH_SHARE_TIMES)
			serving->ns[serving->times++] = (uint32_t)(sl_clock_ns() - committed);
		sl_clock_sleep_until(begun + SL_BENCH_PERIOD_NS);
	}
}

static int open_way(const struct sl_bench *bench, const struct sl_bench_share *what,
		    struct sl_bench_serving *serving, uint64_t places, struct sl_share **share)
{
	struct sl_bench_share_way way = {.listen = what->remote ? "127.0.0.1:0" : NULL};
	struct sl_bench_share_nic nic;
	const char *why = what->nic ? sl_bench_share_nic(bench, &nic) : NULL;

	if (why)
		fprintf(stderr, "%s\n", why);
	if (why)
		return -ENODEV;
	if (what->nic) {
		way = (struct sl_bench_share_way){nic.listen, nic.device, serving->secret};
		snprintf(serving->device, sizeof(serving->device), "%s", nic.device);
	}
	return sl_bench_share_open(what, &way, "share", places, share);
}

static int serve(const struct sl_bench *bench, const struct sl_bench_share *what,
		 struct sl_bench_serving *serving)
{
	bool ring = what->what >= SL_BENCH_VIEW || what->what == SL_BENCH_FOLLOW;
	struct sl_share *share;
	void *frame = sl_bench_share_memory(what->bytes, MAP_PRIVATE);
	int err = frame ? open_way(bench, what, serving, ring ? SL_BENCH_PLACES : 1, &share)
			: -ENOMEM;

	if (err)
		return err;
	if (ring) {
		sl_bench_share_fill(frame, what->bytes);
	} else {
		munmap(frame, what->bytes); /* nothing else is in the caches, nor in memory */
		sl_share_reserve(share);
		sl_bench_share_fill(sl_share_at(share, 0), what->bytes);
		sl_share_commit(share);
	}
	snprintf(serving->url, sizeof(serving->url), "%s", sl_share_url(share));
	atomic_store_explicit(&serving->ready, READY, memory_order_release);
	switch (what->what) {
	case SL_BENCH_MESSAGE:
		echo(share, serving);
		break;
	case SL_BENCH_FOLLOW:
		feed(share, serving, frame);
		break;
	case SL_BENCH_VIEW:
		pace(share, serving, frame);
		break;
	case SL_BENCH_ANSWER:
		ask(share, serving, frame);
		break;
	default:
		stand(share, serving);
		break;
	}
	sl_share_close(share);
	return 0;
}

int sl_bench_server_start(const struct sl_bench *bench, const struct sl_bench_row *row,
			  struct sl_bench_server *server)
{
	struct sl_bench_serving *serving = sl_bench_share_memory(sizeof(*serving), MAP_SHARED);
	int status;

	if (!serving)
		return -ENOMEM;
	if (row->share->nic && !sl_bench_share_make_secret(serving->secret))
		return -EIO;
	*server = (struct sl_bench_server){.serving = serving, .pid = fork()};
	if (server->pid < 0)
		return -errno;
	if (!server->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sl_bench_take_side(bench, row, 1);
		_exit(-serve(bench, row->share, serving));
	}
	while (!atomic_load_explicit(&serving->ready, memory_order_acquire)) {
		if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
			unlink(serving->secret);
			return WIFEXITED(status) && WEXITSTATUS(status) ? -WEXITSTATUS(status)
									: -EIO;
		}
		usleep(LOOK_US);
	}
	return 0;
}

int sl_bench_server_stop(struct sl_bench_server *server)
{
	int status;

	atomic_store_explicit(&server->serving->stop, 1, memory_order_release);
	return waitpid(server->pid, &status, 0) == server->pid && !status ? 0 : -EIO;
}
