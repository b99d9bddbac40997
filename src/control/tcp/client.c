/* client.c - offers out, plans in, counts out. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/tcp/client.h"
#include "control/tcp/proof.h"
#include "net/net.h"

enum { RETRY_NS = 50 * 1000 * 1000, ANSWER_MS = 10000, ATTEMPT_MS = 1000 };

/* A port that nobody listens on may be the one the kernel picks for our side: TCP then connects the
 * socket to itself. */
static bool is_self(int fd, const union sl_net_address *at)
{
	union sl_net_address self;
	uint8_t here[SL_NET_GID_BYTES], there[SL_NET_GID_BYTES];
	socklen_t size = sizeof(self);

	return getsockname(fd, &self.any, &size) == 0 &&
	       sl_net_gid(&self, here) == sl_net_gid(at, there) &&
	       memcmp(here, there, sizeof(here)) == 0;
}

static int try_connect(const union sl_net_address *at, socklen_t bytes, int timeout_ms)
{
	/* Of connect() too: where packets vanish it would take minutes. */
	struct timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
	int fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, &at->any, bytes) == 0) {
		if (!is_self(fd, at))
			return fd;
		errno = ECONNREFUSED;
	}
	err = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
	close(fd);
	return err;
}

/* The time for one attempt: what is left of the wait, within reason. */
static int attempt_ms(double left_s)
{
	double ms = left_s * 1e3;

	return ms > ATTEMPT_MS		 ? ATTEMPT_MS
	       : ms < RETRY_NS / 1000000 ? RETRY_NS / 1000000
					 : (int)ms;
}

static void begin(struct sl_client *client, int fd, const char *peer)
{
	sl_channel_init(&client->channel, fd);
	client->answer_ms = ANSWER_MS;
	client->peer = peer;
	client->purpose = SL_PROOF_PLANS;
	client->quiet = client->more = false;
	client->stop = NULL;
	client->refusal[0] = 0;
}

int sl_client_try(struct sl_client *client, const char *peer, const char *address, uint16_t port,
		  int timeout_ms)
{
	union sl_net_address at;
	socklen_t bytes = sl_net_numeric(address, port, &at);
	int fd = bytes && port ? try_connect(&at, bytes, timeout_ms) : -EINVAL;

	if (fd < 0)
		return fd;
	begin(client, fd, peer);
	return 0;
}

int sl_client_connect(struct sl_client *client, const char *address, uint16_t port, double wait_s,
		      const _Atomic int *stop)
{
	union sl_net_address at;
	socklen_t bytes = sl_net_numeric(address, port, &at);
	uint64_t start = sl_clock_ns();
	double left_s = wait_s;
	bool told = false;
	int fd;

	if (!bytes || !port) {
		sl_error("control: '%s' port %u is no place to find a receiver at", address, port);
		return -EINVAL;
	}
	while ((fd = try_connect(&at, bytes, attempt_ms(left_s))) < 0) {
		uint64_t now = sl_clock_ns();

		left_s = wait_s - (double)(now - start) * 1e-9;
		if (stop && *stop)
			return -EINTR;
		if (left_s <= 0) {
			sl_error("no receiver at %s:%u within %.1f s (%s); start 'sluice run' "
				 "there, or set control.address and "
				 "control.port",
				 address, port, wait_s, strerror(-fd));
			return -ETIMEDOUT;
		}
		if (!told && now - start > 10 * (uint64_t)RETRY_NS) {
			sl_info("waiting for a receiver at %s:%u", address, port);
			told = true;
		}
		sl_clock_sleep_until(now + RETRY_NS);
	}
	begin(client, fd, "the receiver");
	client->stop = stop;
	return 0;
}

void sl_client_close(struct sl_client *client)
{
	sl_channel_close(&client->channel);
}

static int failed(const struct sl_client *client, int err)
{
	if (client->quiet && (err == -EPIPE || err == -ETIMEDOUT || err == 0))
		return err ? err : -ETIMEDOUT;
	if (err == -EPIPE)
		sl_error("%s hung up during the plan exchange", client->peer);
	else if (err == -EPROTONOSUPPORT)
		sl_error("%s speaks another version of the plan protocol; this one is %d",
			 client->peer, SL_WIRE_VERSION);
	else if (err == -EPROTO)
		sl_error("what answers there does not speak the plan protocol");
	else if (err == -ETIMEDOUT || err == 0) {
		sl_error("%s does not answer", client->peer);
		return -ETIMEDOUT;
	}
	return err;
}

/* Wait for a message of that type; a refusal is logged in the receiver's words. */
static int expect(struct sl_client *client, enum sl_wire_type type, struct sl_wire_message *message)
{
	uint64_t end = sl_clock_ns() + client->answer_ms * UINT64_C(1000000);
	int got = 0;

	while (got == 0 && sl_clock_ns() < end) {
		got = sl_channel_receive(&client->channel, 200, message);
		if (got == 0 && client->stop && *client->stop)
			return -EINTR;
	}
	if (got <= 0)
		return failed(client, got);
	if (message->type == SL_WIRE_ERROR) {
		if (!client->quiet)
			sl_error("%s refuses: %s", client->peer, message->error.text);
		snprintf(client->refusal, sizeof(client->refusal), "%s", message->error.text);
		return -ECONNREFUSED;
	}
	return message->type == type ? 0 : failed(client, -EPROTO);
}

/* The receiver at this address may be another program that took the port first. */
static int refuse_receiver(struct sl_client *client)
{
	snprintf(client->refusal, sizeof(client->refusal), "it does not know control.token");
	if (!client->quiet)
		sl_error("%s could not prove that it knows control.token: another program may "
			 "listen there in its place; nothing was offered to it",
			 client->peer);
	return -ECONNREFUSED;
}

static int prove(struct sl_client *client, const struct sl_wire_hello *hello, const char *token)
{
	struct sl_wire_message answer, mine = {.type = SL_WIRE_PROOF};
	struct sl_proof_terms terms = {.purpose = client->purpose, .hello = *hello};
	int err = expect(client, SL_WIRE_CHALLENGE, &answer);

	if (err)
		return err;
	terms.challenge = answer.challenge;
	err = sl_proof_set_listener(&terms, SL_PROOF_CONNECTS, client->channel.fd);
	if (err)
		return failed(client, -EPIPE);
	sl_proof_make(SL_PROOF_CONNECTS, token, &terms, &mine.proof);
	err = sl_channel_send(&client->channel, &mine);
	if (err)
		return failed(client, err);
	err = expect(client, SL_WIRE_PROOF, &answer);
	if (err)
		return err;
	if (!sl_proof_is_right(SL_PROOF_LISTENS, token, &terms, &answer.proof))
		return refuse_receiver(client);
	return 0;
}

int sl_client_hello(struct sl_client *client, const struct sl_wire_hello *hello, const char *token)
{
	struct sl_wire_message message = {.type = SL_WIRE_HELLO, .hello = *hello};
	int err;

	if (token[0])
		sl_secret_fill(message.hello.nonce, sizeof(message.hello.nonce));
	err = sl_channel_send(&client->channel, &message);
	if (err)
		return failed(client, err);
	return token[0] ? prove(client, &message.hello, token) : 0;
}

int sl_client_offer(struct sl_client *client, const struct sl_offer *offer, struct sl_plan *plan)
{
	struct sl_wire_message message = {.type = SL_WIRE_OFFER, .offer = *offer};
	int err = sl_channel_send(&client->channel, &message);

	/* A refused HELLO is answered and closed at once: the reason may be waiting even if
	 * sending failed. */
	if (err && err != -EPIPE)
		return failed(client, err);
	err = expect(client, SL_WIRE_PLAN, &message);
	if (err)
		return err;
	*plan = message.plan;
	return 0;
}

int sl_client_ready(struct sl_client *client)
{
	return sl_channel_send(&client->channel, &(struct sl_wire_message){.type = SL_WIRE_READY});
}

int sl_client_count(struct sl_client *client, const struct sl_wire_count *count, bool final)
{
	struct sl_wire_message message = {.type = final ? SL_WIRE_DONE : SL_WIRE_COUNT,
					  .count = *count};

	return sl_channel_send(&client->channel, &message);
}

int sl_client_listen(struct sl_client *client, int timeout_ms)
{
	struct sl_wire_message message;
	int got = sl_channel_receive(&client->channel, timeout_ms, &message);

	if (got <= 0)
		return got;
	if (message.type == SL_WIRE_ERROR)
		sl_error("%s says: %s", client->peer, message.error.text);
	if (message.type == SL_WIRE_BYE)
		client->more = message.bye.more;
	return (int)message.type;
}
