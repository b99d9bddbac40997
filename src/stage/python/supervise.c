/* supervise.c - the thread that keeps the script's processes alive.
 *
 * Model:     each process is WAITING for its start, STARTING until it says READY, or RUNNING. One
 *            that ends by itself, hangs, or writes what is no answer is started again: at once, and
 *            if that does not last 10 s, after a pause that doubles from 0.1 s to 10 s.
 * Threads:   the supervisor. It also is the parent of the processes, which are killed when it ends.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "stage/python/python.h"

#define S_NS UINT64_C(1000000000)

enum {
	LOOK_MS = 100,
	FIRST_PAUSE_MS = 100,
	LAST_PAUSE_S = 10,
	LASTED_S = 10,
	TELL_S = 10,
	GRACE_S = 2, /* to end by itself, when the stage closes */
};

void sl_python_kick(struct sl_python_engine *e)
{
	uint64_t one = 1;

	/* A full counter is a kick, too. */
	if (write(e->kick, &one, sizeof(one)) < 0)
		return;
}

/* ---- what open() and again() wait for ---- */

static void note_ready(struct sl_python_engine *e, int more)
{
	pthread_mutex_lock(&e->lock);
	e->ready = (uint32_t)((int)e->ready + more);
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
}

static void note_failure(struct sl_python_engine *e)
{
	pthread_mutex_lock(&e->lock);
	e->failed = true;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
}

/* Of several processes that open() waits for, one says what is wrong. */
static bool is_told(struct sl_python_engine *e)
{
	bool told;

	pthread_mutex_lock(&e->lock);
	told = e->failed && !e->opened;
	pthread_mutex_unlock(&e->lock);
	return told;
}

static bool was_ready(struct sl_python_process *p)
{
	bool was = p->was_ready;

	p->was_ready = false;
	return was;
}

/* ---- start again ---- */

static void plan_start(struct sl_python_process *p, uint64_t now)
{
	bool lasted = p->ready_ns && now - p->ready_ns >= LASTED_S * S_NS;

	if (lasted)
		p->wait_ns = 0;
	p->phase = SL_PYTHON_WAITING;
	p->start_ns = now + p->wait_ns;
	p->wait_ns = p->wait_ns ? 2 * p->wait_ns : FIRST_PAUSE_MS * UINT64_C(1000000);
	if (p->wait_ns > LAST_PAUSE_S * S_NS)
		p->wait_ns = LAST_PAUSE_S * S_NS;
	p->ready_ns = 0;
}

/* It was running. why: NULL: it ended by itself. */
static void restart(struct sl_python_engine *e, unsigned index, const char *why)
{
	struct sl_python_process *p = &e->process[index];
	char how[128];

	sl_python_bury(e, index, why ? NULL : how, sizeof(how));
	atomic_store_explicit(&p->state, SL_PYTHON_DOWN, memory_order_relaxed);
	atomic_fetch_add_explicit(&e->counts.restarts, 1, memory_order_relaxed);
	if (was_ready(p))
		note_ready(e, -1);
	plan_start(p, sl_clock_ns());
	sl_warn("%s: process %u of %s %s; it is started again, and frames that no process can "
		"judge are kept",
		e->options->name, index, e->options->script, why ? why : how);
}

/* It could not begin: never again at once. */
static void plan_later(struct sl_python_process *p)
{
	if (!p->wait_ns)
		p->wait_ns = FIRST_PAUSE_MS * UINT64_C(1000000);
	plan_start(p, sl_clock_ns());
}

/* It never was ready. */
static void refuse(struct sl_python_engine *e, unsigned index, const char *why)
{
	struct sl_python_process *p = &e->process[index];
	char how[128];

	sl_python_bury(e, index, why ? NULL : how, sizeof(how));
	if (!is_told(e))
		sl_error("%s: %s: %s", e->options->name, e->options->script, why ? why : how);
	plan_later(p);
	note_failure(e);
}

static void begin(struct sl_python_engine *e, unsigned index)
{
	struct sl_python_process *p = &e->process[index];

	if (sl_python_spawn(e, index)) { /* which has told it */
		plan_later(p);
		note_failure(e);
		return;
	}
	p->phase = SL_PYTHON_STARTING;
	p->start_ns = sl_clock_ns() + (uint64_t)(e->options->start_s * 1e9);
}

/* ---- one look at a process ---- */

static void become_ready(struct sl_python_engine *e, struct sl_python_process *p)
{
	p->phase = SL_PYTHON_RUNNING;
	p->ready_ns = sl_clock_ns();
	p->was_ready = true;
	p->ticket = 0;
	/* Pairs with take() of judge.c. */
	atomic_store_explicit(&p->state, SL_PYTHON_IDLE, memory_order_release);
	note_ready(e, 1);
}

static void hear_of_start(struct sl_python_engine *e, unsigned index)
{
	struct sl_python_process *p = &e->process[index];
	struct sl_python_answer answer, raw;
	ssize_t n = recv(p->socket, &raw, sizeof(raw), MSG_DONTWAIT | MSG_TRUNC);
	char late[96];

	if (n > 0 && sl_python_answer_check(&raw, (size_t)n, e->numbers, &answer)) {
		refuse(e, index, "it wrote what is no answer to the socket of the stage");
	} else if (n > 0 && answer.type == SL_PYTHON_READY) {
		become_ready(e, p);
	} else if (n > 0 && answer.type == SL_PYTHON_REFUSED) {
		refuse(e, index, answer.text);
	} else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
		   sl_python_has_ended(p)) {
		refuse(e, index, NULL);
	} else if (sl_clock_ns() >= p->start_ns) {
		snprintf(late, sizeof(late), "it was not ready after %g s (option start_s)",
			 e->options->start_s);
		refuse(e, index, late);
	}
}

static bool take(struct sl_python_process *p, uint32_t from)
{
	return atomic_compare_exchange_strong_explicit(&p->state, &from, SL_PYTHON_DOWN,
						       memory_order_acquire, memory_order_relaxed);
}

/* An answer that is late leaves nothing to do; finish() would read it at its next frame. */
static bool is_stuck(const struct sl_python_engine *e, const struct sl_python_process *p)
{
	struct pollfd socket = {.fd = p->socket, .events = POLLIN};

	return sl_clock_ns() - p->since_ns >= e->stuck_ns && poll(&socket, 1, 0) == 0;
}

static void look_at_running(struct sl_python_engine *e, unsigned index)
{
	struct sl_python_process *p = &e->process[index];
	uint32_t state = atomic_load_explicit(&p->state, memory_order_acquire);

	if (state == SL_PYTHON_BROKEN) {
		restart(e, index, p->why);
		return;
	}
	if (sl_python_has_ended(p)) {
		atomic_store_explicit(&p->ended, true, memory_order_relaxed);
		if (state != SL_PYTHON_BUSY && take(p, state))
			restart(e, index, NULL);
		return;
	}
	if (state != SL_PYTHON_OVERDUE || !take(p, state))
		return;
	if (is_stuck(e, p))
		restart(e, index, "did not answer for the time of stuck_s");
	else
		atomic_store_explicit(&p->state, SL_PYTHON_OVERDUE, memory_order_release);
}

static void look_at(struct sl_python_engine *e, unsigned index)
{
	struct sl_python_process *p = &e->process[index];

	sl_python_read_output(e, index);
	if (p->phase == SL_PYTHON_STARTING)
		hear_of_start(e, index);
	else if (p->phase == SL_PYTHON_RUNNING)
		look_at_running(e, index);
	if (p->phase == SL_PYTHON_WAITING && sl_clock_ns() >= p->start_ns)
		begin(e, index);
}

/* ---- another run ---- */

/* No finish() runs: every process is the supervisor's to take. */
static void renew_one(struct sl_python_engine *e, unsigned index)
{
	const struct sl_python_order order = {.magic = SL_PYTHON_MAGIC, .type = SL_PYTHON_SETUP};
	struct sl_python_process *p = &e->process[index];

	if (p->phase == SL_PYTHON_RUNNING && take(p, SL_PYTHON_IDLE) &&
	    send(p->socket, &order, sizeof(order), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
		p->phase = SL_PYTHON_STARTING;
		p->start_ns = sl_clock_ns() + (uint64_t)(e->options->start_s * 1e9);
		p->was_ready = false;
		return;
	}
	if (p->phase != SL_PYTHON_WAITING)
		sl_python_bury(e, index, NULL, 0);
	atomic_store_explicit(&p->state, SL_PYTHON_DOWN, memory_order_relaxed);
	p->was_ready = false;
	p->wait_ns = p->ready_ns = 0;
	begin(e, index);
}

static bool is_to_renew(struct sl_python_engine *e)
{
	bool renews;

	pthread_mutex_lock(&e->lock);
	renews = e->renews;
	if (renews) {
		e->ready = 0;
		e->failed = false;
	}
	pthread_mutex_unlock(&e->lock);
	return renews;
}

/* What was ready, or failed, before this does not count. */
static void renew(struct sl_python_engine *e)
{
	if (!is_to_renew(e))
		return;
	e->told = e->told_ns = 0;
	for (uint32_t i = 0; i < e->processes; i++)
		renew_one(e, i);
	pthread_mutex_lock(&e->lock);
	e->renews = false;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
}

/* ---- the thread ---- */

static void tell(struct sl_python_engine *e)
{
	uint64_t unjudged = atomic_load_explicit(&e->counts.unjudged, memory_order_relaxed);
	uint64_t late = atomic_load_explicit(&e->counts.late, memory_order_relaxed);
	uint64_t errors = atomic_load_explicit(&e->counts.errors, memory_order_relaxed);
	uint64_t now = sl_clock_ns();

	if (unjudged <= e->told || now < e->told_ns)
		return;
	e->told = unjudged;
	e->told_ns = now + TELL_S * S_NS;
	sl_warn("%s: %llu frames are kept without a verdict so far: %llu after deadline_ms (%g), "
		"%llu with an exception, the others while no process could judge",
		e->options->name, (unsigned long long)unjudged, (unsigned long long)late,
		e->options->deadline_ms, (unsigned long long)errors);
}

static void add(struct pollfd *poll_fd, nfds_t *n, int fd)
{
	if (fd >= 0)
		poll_fd[(*n)++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void wait_for_news(struct sl_python_engine *e)
{
	struct pollfd poll_fd[1 + 4 * SL_PYTHON_PROCESSES];
	uint64_t now = sl_clock_ns(), kicks;
	int timeout_ms = LOOK_MS;
	nfds_t n = 0;

	add(poll_fd, &n, e->kick);
	for (uint32_t i = 0; i < e->processes; i++) {
		const struct sl_python_process *p = &e->process[i];
		bool ended = atomic_load_explicit(&p->ended, memory_order_relaxed);

		add(poll_fd, &n, p->out.fd);
		add(poll_fd, &n, p->err.fd);
		add(poll_fd, &n, ended ? -1 : p->pidfd); /* it would be ready for ever */
		if (p->phase == SL_PYTHON_STARTING)
			add(poll_fd, &n, p->socket);
		if (p->phase == SL_PYTHON_WAITING && p->start_ns < now + LOOK_MS * 1000000)
			timeout_ms = p->start_ns > now ? (int)((p->start_ns - now) / 1000000) + 1
						       : 0;
	}
	if (poll(poll_fd, n, timeout_ms) > 0 && poll_fd[0].revents &&
	    read(e->kick, &kicks, sizeof(kicks)) < 0)
		return;
}

/* A process whose socket is closed ends by itself, and what it does at its exit is done. */
static void end_all(struct sl_python_engine *e)
{
	uint64_t until = sl_clock_ns() + GRACE_S * S_NS;
	bool alive = true;

	for (uint32_t i = 0; i < e->processes; i++) {
		struct sl_python_process *p = &e->process[i];

		if (p->phase != SL_PYTHON_RUNNING) {
			sl_python_bury(e, i, NULL, 0);
		} else if (p->socket >= 0) {
			close(p->socket);
			p->socket = -1;
		}
	}
	while (alive && sl_clock_ns() < until) {
		alive = false;
		for (uint32_t i = 0; i < e->processes; i++) {
			sl_python_read_output(e, i);
			alive |= !sl_python_has_ended(&e->process[i]);
		}
		if (alive)
			sl_clock_sleep_until(sl_clock_ns() + 2000000);
	}
	for (uint32_t i = 0; i < e->processes; i++)
		sl_python_bury(e, i, NULL, 0);
}

static void *supervise(void *arg)
{
	struct sl_python_engine *e = arg;

	while (!atomic_load(&e->ends)) {
		renew(e);
		for (uint32_t i = 0; i < e->processes; i++)
			look_at(e, i);
		tell(e);
		wait_for_news(e);
	}
	end_all(e);
	return NULL;
}

/* ---- open(), again(), close() ---- */

static int wait_until_ready(struct sl_python_engine *e)
{
	int err;

	pthread_mutex_lock(&e->lock);
	while (e->renews || (e->ready < e->processes && !e->failed))
		pthread_cond_wait(&e->changed, &e->lock);
	err = e->failed ? -EINVAL : 0;
	e->opened = !err;
	pthread_mutex_unlock(&e->lock);
	return err;
}

int sl_python_start(struct sl_python_engine *e)
{
	int err;

	e->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->code = sl_python_text_file("sluice-stage.py", sl_python_code, sl_python_code_bytes);
	err = e->kick < 0 ? -errno : e->code < 0 ? e->code : 0;
	if (!err)
		err = sl_thread_start(&e->thread, "python", NULL, supervise, e);
	if (err) {
		sl_error("%s: cannot start the thread that keeps processes: %s", e->options->name,
			 strerror(-err));
		return err;
	}
	return wait_until_ready(e);
}

int sl_python_renew(struct sl_python_engine *e)
{
	pthread_mutex_lock(&e->lock);
	e->renews = true;
	e->failed = false;
	pthread_mutex_unlock(&e->lock);
	sl_python_kick(e);
	return wait_until_ready(e);
}

void sl_python_stop(struct sl_python_engine *e)
{
	atomic_store(&e->ends, true);
	if (e->kick >= 0)
		sl_python_kick(e);
	sl_thread_join(&e->thread);
	if (e->kick >= 0)
		close(e->kick);
	if (e->code >= 0)
		close(e->code);
	e->kick = e->code = -1;
}
