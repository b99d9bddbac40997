/* keeper.c - the keeper: one handover state, one receiver at a time. */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "control/handover/keeper.h"

enum { CONNECTIONS = 8, SEND_TIMEOUT_S = 5, ANSWER_MS = 5000 };

struct connection {
	int fd; /* -1: free */
	pid_t pid;
};

struct sl_keeper {
	int listener;
	char name[SL_KEEPER_NAME];
	struct connection connection[CONNECTIONS];
	struct connection *receiver; /* the receiver that holds the state now; NULL: none */
	bool holds;
	struct sl_handover_message handover, message;
};

bool sl_keeper_name_valid(const char *name)
{
	size_t n = strlen(name);

	return n && n < SL_KEEPER_NAME &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
		       n;
}

static socklen_t address_of(const char *name, struct sockaddr_un *at)
{
	int n;

	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(at->sun_path + 1, sizeof(at->sun_path) - 1, "sluice/keeper/%u/%s",
		     (unsigned)geteuid(), name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int open_socket(const char *name, struct sockaddr_un *at, socklen_t *bytes)
{
	struct timeval timeout = {SEND_TIMEOUT_S, 0};
	int fd;

	if (!sl_keeper_name_valid(name)) {
		sl_error("'%s' is no name for a keeper: letters, digits, '.', '_' and '-', at most "
			 "%d",
			 name, SL_KEEPER_NAME - 1);
		return -EINVAL;
	}
	*bytes = address_of(name, at);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	return fd;
}

/* Whether the other end is a process of our user, and which. */
static bool is_ours(int fd, pid_t *pid)
{
	struct ucred who;
	socklen_t size = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 || who.uid != geteuid())
		return false;
	*pid = who.pid;
	return true;
}

/* ---- keeper ---- */

int sl_keeper_open(const char *name, struct sl_keeper **out)
{
	struct sockaddr_un at;
	socklen_t bytes;
	int err, fd = open_socket(name, &at, &bytes);
	struct sl_keeper *keeper;

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&at, bytes) < 0 || listen(fd, CONNECTIONS) < 0) {
		err = -errno;
		sl_error("cannot keep '%s': %s", name,
			 err == -EADDRINUSE ? "another keeper has that name" : strerror(-err));
		close(fd);
		return err;
	}
	keeper = calloc(1, sizeof(*keeper));
	if (!keeper) {
		close(fd);
		return -ENOMEM;
	}
	keeper->listener = fd;
	snprintf(keeper->name, sizeof(keeper->name), "%s", name);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		keeper->connection[i].fd = -1;
	*out = keeper;
	return 0;
}

static void hang_up(struct sl_keeper *keeper, struct connection *c)
{
	if (keeper->receiver == c) {
		keeper->receiver = NULL;
		sl_info("the receiver (process %d) is gone; %s", (int)c->pid,
			keeper->holds ? "what it had waits for the next one"
				      : "it left nothing to keep");
	}
	close(c->fd);
	c->fd = -1;
}

static void answer(struct sl_keeper *keeper, struct connection *c,
		   enum sl_handover_message_type type, const char *why)
{
	struct sl_handover_message *m = &keeper->message;

	m->type = type;
	m->fds = 0;
	m->bytes = why ? strlen(why) : 0;
	if (why)
		memcpy(m->body, why, m->bytes);
	if (sl_handover_message_send(c->fd, m))
		hang_up(keeper, c);
}

static void claim(struct sl_keeper *keeper, struct connection *c)
{
	char why[96];

	if (keeper->receiver && keeper->receiver != c) {
		snprintf(why, sizeof(why), "process %d is the receiver now",
			 (int)keeper->receiver->pid);
		answer(keeper, c, SL_HANDOVER_MESSAGE_REFUSED, why);
		return;
	}
	keeper->receiver = c;
	sl_info("process %d is the receiver now%s", (int)c->pid,
		keeper->holds ? ", and gets what the last one left" : "");
	if (!keeper->holds)
		answer(keeper, c, SL_HANDOVER_MESSAGE_NOTHING, NULL);
	else if (sl_handover_message_send(c->fd, &keeper->handover))
		hang_up(keeper, c);
}

static void forget(struct sl_keeper *keeper)
{
	sl_handover_message_close(&keeper->handover);
	keeper->holds = false;
}

static void store(struct sl_keeper *keeper, struct connection *c)
{
	forget(keeper);
	keeper->handover = keeper->message;
	keeper->handover.type = SL_HANDOVER_MESSAGE_STATE;
	keeper->holds = true;
	sl_info("holding %u descriptors for process %d", keeper->handover.fds, (int)c->pid);
	answer(keeper, c, SL_HANDOVER_MESSAGE_DONE, NULL);
}

static void handle(struct sl_keeper *keeper, struct connection *c)
{
	enum sl_handover_message_type type = keeper->message.type;

	if (type == SL_HANDOVER_MESSAGE_STORE && keeper->receiver == c) {
		store(keeper, c);
		return;
	}
	sl_handover_message_close(&keeper->message);
	if (type == SL_HANDOVER_MESSAGE_CLAIM) {
		claim(keeper, c);
	} else if (keeper->receiver != c) {
		answer(keeper, c, SL_HANDOVER_MESSAGE_REFUSED, "claim first");
	} else if (type == SL_HANDOVER_MESSAGE_FORGET) {
		forget(keeper);
		sl_info("nothing is held any more");
		answer(keeper, c, SL_HANDOVER_MESSAGE_DONE, NULL);
	} else {
		answer(keeper, c, SL_HANDOVER_MESSAGE_REFUSED, "that was not expected");
	}
}

static void listen_to(struct sl_keeper *keeper, struct connection *c)
{
	int got = c->fd < 0 ? 0 : sl_handover_message_receive(c->fd, 0, &keeper->message);

	if (got == -EPROTONOSUPPORT)
		answer(keeper, c, SL_HANDOVER_MESSAGE_REFUSED, "the keeper is of another version");
	if (got > 0)
		handle(keeper, c);
	else if (got < 0 && c->fd >= 0)
		hang_up(keeper, c);
}

static void welcome(struct sl_keeper *keeper)
{
	int fd = accept4(keeper->listener, NULL, NULL, SOCK_CLOEXEC);
	struct timeval timeout = {SEND_TIMEOUT_S, 0};
	struct connection *c = keeper->connection;
	pid_t pid;

	if (fd < 0)
		return;
	while (c < keeper->connection + CONNECTIONS && c->fd >= 0)
		c++;
	if (!is_ours(fd, &pid) || c == keeper->connection + CONNECTIONS) {
		close(fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	*c = (struct connection){.fd = fd, .pid = pid};
}

void sl_keeper_poll(struct sl_keeper *keeper, int timeout_ms)
{
	struct pollfd fds[CONNECTIONS + 1];

	fds[0] = (struct pollfd){.fd = keeper->listener, .events = POLLIN};
	for (unsigned i = 0; i < CONNECTIONS; i++) /* those that are free, -1, are left out */
		fds[1 + i] = (struct pollfd){.fd = keeper->connection[i].fd, .events = POLLIN};
	if (poll(fds, CONNECTIONS + 1, timeout_ms) <= 0)
		return;
	/* Who left first: who comes now may be the next receiver. */
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (fds[1 + i].revents)
			listen_to(keeper, &keeper->connection[i]);
	if (fds[0].revents)
		welcome(keeper);
}

bool sl_keeper_holds(const struct sl_keeper *keeper)
{
	return keeper->holds;
}

void sl_keeper_close(struct sl_keeper *keeper)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (keeper->connection[i].fd >= 0)
			close(keeper->connection[i].fd);
	forget(keeper);
	close(keeper->listener);
	free(keeper);
}

/* ---- receivers ---- */

/* Its answer, of one of two types; anything else is told. */
static int ask(int fd, const struct sl_handover_message *question,
	       enum sl_handover_message_type good, enum sl_handover_message_type also,
	       struct sl_handover_message *reply)
{
	int err = sl_handover_message_send(fd, question), got;

	if (err)
		return err;
	got = sl_handover_message_receive(fd, ANSWER_MS, reply);
	if (got <= 0)
		return got ? got : -ETIMEDOUT;
	if (reply->type == good || reply->type == also)
		return 0;
	sl_handover_message_close(reply);
	if (reply->type != SL_HANDOVER_MESSAGE_REFUSED)
		return -EPROTO;
	sl_error("the keeper says no: %.*s", (int)(reply->bytes < 200 ? reply->bytes : 200),
		 (const char *)reply->body);
	return -EBUSY;
}

int sl_keeper_claim(const char *name, int *out, struct sl_handover_message *handover)
{
	struct sockaddr_un at;
	socklen_t bytes;
	int err, fd = open_socket(name, &at, &bytes);
	pid_t pid;

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&at, bytes) < 0) {
		err = -errno;
		sl_error("no keeper is called '%s' here (%s): sluice keeper %s", name,
			 strerror(errno), name);
		close(fd);
		return err;
	}
	if (!is_ours(fd, &pid)) {
		sl_error("the keeper '%s' is another user's", name);
		close(fd);
		return -EPERM;
	}
	handover->type = SL_HANDOVER_MESSAGE_CLAIM;
	handover->bytes = handover->fds = 0;
	err = ask(fd, handover, SL_HANDOVER_MESSAGE_STATE, SL_HANDOVER_MESSAGE_NOTHING, handover);
	if (err) {
		if (err != -EBUSY)
			sl_error("the keeper '%s' does not answer as one: %s", name,
				 strerror(-err));
		close(fd);
		return err;
	}
	*out = fd;
	return 0;
}

int sl_keeper_store(int socket, struct sl_handover_message *handover)
{
	static struct sl_handover_message nothing;
	struct sl_handover_message *reply = malloc(sizeof(*reply));
	int err;

	if (!reply)
		return -ENOMEM;
	nothing.type = SL_HANDOVER_MESSAGE_FORGET;
	if (handover)
		handover->type = SL_HANDOVER_MESSAGE_STORE;
	err = ask(socket, handover ? handover : &nothing, SL_HANDOVER_MESSAGE_DONE,
		  SL_HANDOVER_MESSAGE_DONE, reply);
	free(reply);
	return err;
}

bool sl_keeper_lost(int socket)
{
	char byte;
	ssize_t n = recv(socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}
