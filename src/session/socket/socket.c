/* socket.c - the status socket: a name is taken, a thread serves it. */
#include "session/socket/socket.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "session/socket/private.h"

enum { NICE = 10, NAMES = 99 };

#define REQUEST_NS  UINT64_C(5000000)	/* 200 requests a second */
#define BURST_NS    UINT64_C(500000000) /* 100 of them at once */
#define STALLED_NS  UINT64_C(10000000000)
#define FAREWELL_NS UINT64_C(500000000)

/* ---- the loop ---- */

static bool has_work(const struct sl_socket_client *c)
{
	return c->fd >= 0 && !c->out && !c->states && !c->configures && !c->cut &&
	       sl_socket_line(c) >= 0;
}

static void serve_line(struct sl_socket *s, struct sl_socket_client *c, uint64_t now_ns)
{
	size_t length = (size_t)sl_socket_line(c);

	memcpy(s->line, c->in, length);
	sl_socket_take_line(c, length);
	if (length)
		sl_socket_serve_line(s, c, s->line, length, now_ns);
}

/* One line of each client in turn, while requests are free. */
static void serve_lines(struct sl_socket *s, uint64_t now_ns)
{
	for (unsigned i = 0; i < SL_SOCKET_CLIENTS; i++) {
		struct sl_socket_client *c = &s->client[(s->turn + i) % SL_SOCKET_CLIENTS];

		if (!has_work(c))
			continue;
		if (s->paid_ns > now_ns + BURST_NS)
			return;
		s->paid_ns = (s->paid_ns > now_ns ? s->paid_ns : now_ns) + REQUEST_NS;
		s->turn = (unsigned)(c - s->client + 1) % SL_SOCKET_CLIENTS;
		serve_line(s, c, now_ns);
	}
}

static void serve_watchers(struct sl_socket *s, uint64_t now_ns)
{
	for (unsigned i = 0; i < SL_SOCKET_CLIENTS; i++) {
		struct sl_socket_client *c = &s->client[i];

		if (c->fd < 0 || !c->every_ns || now_ns < c->next_ns)
			continue;
		c->next_ns = now_ns + c->every_ns;
		if (!c->out && !c->states && !c->configures) /* otherwise it misses this line */
			sl_socket_reply(c, sl_socket_status_line(s, "watch"), now_ns);
	}
}

/* Clients that are through, stalled, or sent a line that is too long. */
static void tidy(struct sl_socket *s, uint64_t now_ns)
{
	for (unsigned i = 0; i < SL_SOCKET_CLIENTS; i++) {
		struct sl_socket_client *c = &s->client[i];
		bool through;

		if (c->fd < 0)
			continue;
		if (!c->out && c->in_bytes == sizeof(c->in) && sl_socket_line(c) < 0) {
			c->in_bytes = 0;
			c->cut = true;
			sl_socket_reply_error(c, SL_ERROR_REQUEST,
					      "a request has at most 65536 bytes", "", now_ns);
		}
		through = c->cut || (c->ended && !c->states && !c->configures && !c->every_ns &&
				     sl_socket_line(c) < 0);
		if ((!c->out && through) || (c->out && now_ns - c->moved_ns > STALLED_NS))
			sl_socket_drop(s, c);
	}
}

/* What to wait for. fd -1: not at all; its next line waits for its turn. */
static struct pollfd interest(const struct sl_socket_client *c)
{
	struct pollfd p = {.fd = c->fd};

	if (c->fd < 0)
		return p;
	if (c->out)
		p.events = POLLOUT;
	else if (has_work(c))
		p.fd = -1;
	else if (!c->states && !c->configures && !c->ended)
		p.events = POLLIN;
	return p;
}

static void handle(struct sl_socket *s, struct sl_socket_client *c, short revents, uint64_t now_ns)
{
	if (c->fd < 0 || !revents)
		return;
	if (c->out)
		sl_socket_write(s, c, now_ns);
	else if (c->states || c->configures || c->ended)
		sl_socket_drop(s, c); /* it has gone: nothing else was asked for */
	else
		sl_socket_read(s, c);
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* When something is due that no descriptor announces. */
static uint64_t next_due(const struct sl_socket *s, uint64_t now_ns)
{
	uint64_t due = s->sample_next_ns;

	if (s->accept_after_ns > now_ns)
		due = min(due, s->accept_after_ns);
	for (unsigned i = 0; i < SL_SOCKET_CLIENTS; i++) {
		const struct sl_socket_client *c = &s->client[i];

		if (c->fd < 0)
			continue;
		if (c->out)
			due = min(due, c->moved_ns + STALLED_NS + 1);
		if (c->states)
			due = min(due, c->until_ns);
		if (c->every_ns)
			due = min(due, c->next_ns);
		if (has_work(c))
			due = min(due,
				  s->paid_ns > now_ns + BURST_NS ? s->paid_ns - BURST_NS : now_ns);
	}
	return due;
}

static void wait_and_move(struct sl_socket *s, uint64_t until_ns)
{
	struct pollfd fd[SL_SOCKET_CLIENTS + 2];
	uint64_t now_ns = sl_clock_ns(), count;
	/* Rounded up: a wait that ends too early would be repeated without sleep. */
	int ms = until_ns > now_ns ? (int)((until_ns - now_ns + 999999) / 1000000) : 0;

	fd[0] = (struct pollfd){.fd = s->wake, .events = POLLIN};
	fd[1] = (struct pollfd){.fd = s->accept_after_ns > now_ns ? -1 : s->listener,
				.events = POLLIN};
	for (unsigned i = 0; i < SL_SOCKET_CLIENTS; i++)
		fd[i + 2] = interest(&s->client[i]);
	if (poll(fd, SL_SOCKET_CLIENTS + 2, ms) <= 0)
		return;
	now_ns = sl_clock_ns();
	if (fd[0].revents && read(s->wake, &count, sizeof(count)) > 0)
		sl_socket_look(s);
	for (unsigned i = 0; i < SL_SOCKET_CLIENTS; i++)
		handle(s, &s->client[i], fd[i + 2].revents, now_ns);
	if (fd[1].revents)
		sl_socket_accept(s, now_ns);
}

/* A step towards the end of a connection. True: something is still to be sent. */
static bool part_from(struct sl_socket *s, struct sl_socket_client *c)
{
	uint64_t now_ns = sl_clock_ns();

	if (c->fd >= 0 && !c->out && c->follows)
		sl_socket_read(s, c);
	if (has_work(c))
		serve_line(s, c, now_ns);
	sl_socket_serve_waiting(s, now_ns, true);
	if (c->fd >= 0 && !c->out && c->every_ns) {
		sl_socket_reply(c, sl_socket_status_line(s, "watch"), now_ns);
		c->every_ns = 0;
	}
	if (c->fd >= 0 && c->out)
		sl_socket_write(s, c, now_ns);
	return c->fd >= 0 && (c->out || c->every_ns || (c->follows && !c->ended));
}

/* It closes: a last status to every client that waits or watches, and to one that has just
 * stopped the run and will ask what became of it; with a time limit. */
static void say_farewell(struct sl_socket *s)
{
	uint64_t end_ns = sl_clock_ns() + FAREWELL_NS;
	bool pending = true;

	sl_socket_end_configure(s, sl_clock_ns());
	close(s->listener);
	s->listener = -1;
	while (pending && sl_clock_ns() < end_ns) {
		pending = false;
		for (unsigned i = 0; i < SL_SOCKET_CLIENTS; i++)
			pending |= part_from(s, &s->client[i]);
		if (pending)
			sl_clock_sleep_until(sl_clock_ns() + 1000000);
	}
}

static void *serve(void *arg)
{
	struct sl_socket *s = arg;

	/* Best effort: data threads go first where cpus are scarce. */
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
	while (!atomic_load(&s->stop)) {
		uint64_t now_ns = sl_clock_ns();

		if (now_ns >= s->sample_next_ns)
			sl_socket_sample(s, now_ns);
		sl_socket_end_configure(s, now_ns);
		serve_lines(s, now_ns);
		sl_socket_serve_waiting(s, now_ns, false); /* also those that have just asked */
		serve_watchers(s, now_ns);
		tidy(s, now_ns);
		wait_and_move(s, next_due(s, now_ns));
	}
	say_farewell(s);
	return NULL;
}

/* ---- open and close ---- */

/* What a process of that name left behind. */
static void tell_of_crash(const struct sl_socket *s)
{
	const struct sl_registry_facts *left = &s->claim.left;
	char started[64], result[SL_REGISTRY_PATH + 16];

	if (!s->claim.crashed)
		return;
	sl_clock_iso8601(left->started_unix_ns, started, sizeof(started));
	snprintf(result, sizeof(result), "%s/result.json", left->folder);
	if (left->folder[0] && access(result, F_OK))
		sl_warn("the %s '%s' before this one (started %s, process %lld) was killed or "
			"crashed; its run folder %s has no result.json: what it holds is what was "
			"written until then",
			s->ops->noun, s->claim.name, started, (long long)left->pid, left->folder);
	else
		sl_warn("the %s '%s' before this one (started %s, process %lld) was killed or "
			"crashed%s",
			s->ops->noun, s->claim.name, started, (long long)left->pid,
			left->folder[0] ? "; its last run was complete" : "");
}

static int claim_name(struct sl_socket *s, int folder, const struct sl_socket_options *o, char *why,
		      size_t bytes)
{
	int err = sl_registry_claim(folder, o->name, &s->claim, why, bytes);

	for (unsigned i = 2; err == -EEXIST && o->any_name && i <= NAMES; i++) {
		char other[SL_REGISTRY_NAME];

		snprintf(other, sizeof(other), "%.*s-%u", SL_REGISTRY_NAME - 5, o->name, i);
		err = sl_registry_claim(folder, other, &s->claim, why, bytes);
	}
	return err;
}

static int register_name(struct sl_socket *s, const struct sl_socket_options *o, char *why,
			 size_t bytes)
{
	int folder, err = sl_registry_open(true, &folder, why, bytes);

	if (err)
		return err;
	err = claim_name(s, folder, o, why, bytes);
	close(folder);
	if (err)
		return err;
	tell_of_crash(s);
	s->facts =
		(struct sl_registry_facts){.pid = getpid(), .started_unix_ns = sl_clock_unix_ns()};
	snprintf(s->facts.name, sizeof(s->facts.name), "%s", s->claim.name);
	snprintf(s->facts.kind, sizeof(s->facts.kind), "%s", s->ops->kind);
	snprintf(s->facts.experiment, sizeof(s->facts.experiment), "%s", o->experiment);
	snprintf(s->facts.root, sizeof(s->facts.root), "%s", o->root ? o->root : "");
	s->listener = sl_registry_listen(&s->claim);
	err = s->listener < 0 ? s->listener : sl_registry_publish(&s->claim, &s->facts);
	if (err)
		snprintf(why, bytes, "cannot make the socket of %s '%s': %s", s->ops->noun,
			 s->claim.name, strerror(-err));
	return err;
}

static void free_socket(struct sl_socket *s)
{
	for (unsigned i = 0; i < SL_SOCKET_CLIENTS; i++)
		if (s->client[i].fd >= 0)
			sl_socket_drop(s, &s->client[i]);
	if (s->listener >= 0)
		close(s->listener);
	if (s->wake >= 0)
		close(s->wake);
	if (s->claim.lock >= 0)
		sl_registry_release(&s->claim);
	pthread_mutex_destroy(&s->gate);
	free(s);
}

static struct sl_socket *make(const struct sl_socket_options *options)
{
	struct sl_socket *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ops = options->ops;
	s->arg = options->arg;
	s->listener = s->claim.lock = -1;
	for (unsigned i = 0; i < SL_SOCKET_CLIENTS; i++)
		s->client[i].fd = -1;
	pthread_mutex_init(&s->gate, NULL);
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return s;
}

int sl_socket_open(const struct sl_socket_options *options, struct sl_socket **socket, char *why,
		   size_t bytes)
{
	struct sl_socket *s = make(options);
	int err;

	snprintf(why, bytes, "no memory for the status socket");
	err = s ? register_name(s, options, why, bytes) : -ENOMEM;
	if (!err) {
		*socket = s;
		err = sl_thread_start(&s->thread, "socket", NULL, serve, s);
		if (err)
			snprintf(why, bytes, "no thread for the status socket: %s", strerror(-err));
	}
	if (err) {
		*socket = NULL;
		if (s)
			free_socket(s);
	}
	return err;
}

void sl_socket_quiesce(struct sl_socket *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->gate);
	s->quiet = true;
	pthread_mutex_unlock(&s->gate);
	while (atomic_load(&s->configuring))
		sl_clock_sleep_until(sl_clock_ns() + 1000000);
}

void sl_socket_close(struct sl_socket *s)
{
	if (!s)
		return;
	atomic_store(&s->stop, true);
	sl_socket_wake(s);
	sl_thread_join(&s->thread);
	free_socket(s);
}

void sl_socket_wake(struct sl_socket *s)
{
	const uint64_t one = 1;

	while (s && write(s->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

const char *sl_socket_name(const struct sl_socket *s)
{
	return s ? s->claim.name : "";
}

void sl_socket_ask_to_close(struct sl_socket *s)
{
	atomic_store(&s->close_asked, true);
}

bool sl_socket_asked_to_close(const struct sl_socket *s)
{
	return s && atomic_load(&s->close_asked);
}
