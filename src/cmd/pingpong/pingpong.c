/* pingpong.c - sluice pingpong: the other end of ibv_rc_pingpong, ibv_uc_pingpong and
 * ibv_ud_pingpong, in user space. The client sends a message, the server sends it back, and so on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/pingpong/pingpong.h"
#include "cmd/signals.h"

enum {
	FILL = 0x7b,	   /* what all of them fill their messages with */
	MARK_EVERY = 4096, /* and with -c, zero at the beginning of every page */
	WIPED = 0xdd,	   /* nobody sends this */
	SEND = 1,
	RECEIVE = 2, /* what is pending */
	IDLE_POLLS = 200,
	SIZE = 4096,
	SIZE_UD = 1024,
	WAIT_NS = 20000000,
	LINGER_NS = 150000000, /* two time-outs of RC */
	SLOWEST_NS = 100,      /* per byte of a message: 10 MB/s */
};

static const uint8_t transports[] = {SL_ROCE_RC, SL_ROCE_UC, SL_ROCE_UD}; /* by --service */

static const struct sl_option table[] = {
	SL_CHOICE(struct sl_pingpong_options, service, rc, "rc|uc|ud",
		  "which of the ibv_*_pingpong it is"),
	SL_STRING(struct sl_pingpong_options, listen, "127.0.0.1",
		  "server: address to wait on, for clients of other hosts one of this host; empty: "
		  "all"),
	SL_STRING(struct sl_pingpong_options, source, "",
		  "our address for RoCE packets; that of the TCP connection"),
	SL_U32(struct sl_pingpong_options, port, 18515, 1, 65535, "", "TCP port of the server"),
	SL_U32(struct sl_pingpong_options, size, 0, 0, 1073741824, "bytes",
	       "length of a message, as on the other side; 4096, for ud 1024"),
	SL_U32(struct sl_pingpong_options, iters, 1000, 1, 4294967295.0, "", "messages to and fro"),
	SL_U32(struct sl_pingpong_options, mtu, 1024, 256, 4096, "bytes",
	       "path MTU, as on the other side"),
	SL_U32(struct sl_pingpong_options, rx_depth, 500, 1, 1048576, "",
	       "receives that are posted"),
	SL_BOOL(struct sl_pingpong_options, check, false,
		"the other side checks or marks pages (-c)"),
	SL_U32(struct sl_pingpong_options, timeout, 10, 1, 3600, "s",
	       "give up when so long nothing happened"),
	SL_U32(struct sl_pingpong_options, roce_port, 4791, 1, 65535, "", "our UDP port"),
	SL_U32(struct sl_pingpong_options, peer_roce_port, 4791, 1, 65535, "",
	       "the other side's UDP port"),
	SL_OPTION_END,
};

/* ---- messages ---- */

static void fill_pattern(struct sl_pingpong *g, uint8_t *at)
{
	memset(at, FILL, g->o->size);
	for (uint32_t i = 0; g->o->check && i < g->o->size; i += MARK_EVERY)
		at[i] = 0;
}

/* Page marks may be there without our knowing, and pages may be larger at the other side. */
static bool fits(const struct sl_pingpong *g, const uint8_t *message, uint32_t i)
{
	if (message[i] == g->pattern[i])
		return true;
	if (i % MARK_EVERY != 0 || (g->o->check && i == 0))
		return false;
	return message[i] == 0 || message[i] == FILL;
}

static void verify(struct sl_pingpong *g)
{
	const uint8_t *message = g->incoming + g->header;

	if (memcmp(message, g->pattern, g->o->size) == 0)
		return;
	for (uint32_t i = 0; i < g->o->size; i++) {
		if (fits(g, message, i))
			continue;
		if (!g->wrong++)
			g->wrong_at = i;
		return;
	}
}

int sl_pingpong_post_receives(struct sl_pingpong *g)
{
	const struct sl_piece room[SL_QP_PIECES] = {{g->incoming, g->header + g->o->size}};

	while (g->posted < g->o->rx_depth) {
		int err = sl_qp_receive(g->qp, RECEIVE, room);

		if (err)
			return err;
		g->posted++;
	}
	return 0;
}

static int post_send(struct sl_pingpong *g)
{
	struct sl_work work = {
		.id = SEND,
		.kind = SL_ROCE_KIND_SEND,
		.piece = {{g->outgoing, g->o->size}},
		.to = {.port = (uint16_t)g->o->peer_roce_port,
		       .qpn = g->theirs.qpn,
		       .qkey = SL_PINGPONG_QKEY},
	};

	memcpy(work.to.address, g->theirs.gid, sizeof(work.to.address));
	g->pending |= SEND;
	return sl_qp_send(g->qp, &work);
}

/* ---- playing ---- */

/* What the counters tell about a game that stopped. */
static void explain(const struct sl_pingpong *g)
{
	struct sl_endpoint_counters c;

	sl_endpoint_count(g->endpoint, &c);
	if (c.unsent)
		sl_error("%llu packets could not be sent: %s%s", (unsigned long long)c.unsent,
			 strerror(-c.send_error),
			 c.send_error == -EMSGSIZE ? "; the MTU of the interface is too small"
						   : "");
	for (unsigned why = 1; why < SL_ENDPOINT_DROPS; why++) {
		if (c.dropped[why])
			sl_error("%llu packets arrived and were dropped; cause: %s",
				 (unsigned long long)c.dropped[why], sl_endpoint_drop_name(why));
	}
	if (!c.received)
		sl_error("no packet arrived at UDP port %u: a firewall, or a GID index at the "
			 "other side that is not of the network that leads here, or another "
			 "--service there?",
			 g->o->roce_port);
	else if (c.dropped[SL_ROCE_DROP_TRANSPORT])
		sl_error("the other side plays another --service");
	else
		sl_error("both sides need the same --size (-s), --mtu (-m) and --iters (-n): here "
			 "%u, %u and %u%s",
			 g->o->size, g->o->mtu, g->o->iters,
			 g->transport == SL_ROCE_RC ? ""
						    : "; and nobody repeats what is lost over "
						      "uc and ud");
}

static int received(struct sl_pingpong *g, uint32_t bytes)
{
	if (bytes != g->o->size) {
		sl_error("the other side sends messages of %u bytes, --size here is %u: give both "
			 "the same",
			 bytes, g->o->size);
		return -EMSGSIZE;
	}
	verify(g);
	/* What came is sent back. The next message must bring all of its bytes itself. */
	if (g->server)
		memcpy(g->outgoing, g->incoming + g->header, bytes);
	memset(g->incoming, WIPED, g->header + bytes);
	g->received++;
	return --g->posted <= 1 ? sl_pingpong_post_receives(g) : 0;
}

static int completed(struct sl_pingpong *g, const struct sl_completion *done)
{
	int err = 0;

	if (done->status) {
		sl_error("%s failed after %u messages: %s (status %u)",
			 done->id == SEND ? "sending" : "receiving", g->received,
			 sl_status_name(done->status), done->status);
		return -EIO;
	}
	if (done->id == SEND)
		g->sent++;
	else
		err = received(g, done->bytes - g->header);
	if (err)
		return err;
	g->pending &= ~(unsigned)done->id;
	if (g->pending || g->sent >= g->o->iters)
		return 0;
	g->pending = RECEIVE;
	return post_send(g);
}

static bool over(const struct sl_pingpong *g)
{
	return g->sent >= g->o->iters && g->received >= g->o->iters;
}

/* One look at the socket and at what has completed. Above 0: something happened. */
static int step(struct sl_pingpong *g, uint64_t now)
{
	int packets = sl_endpoint_poll(g->endpoint, now, 64), err = 0;
	struct sl_completion done;

	while (!err && !over(g) && sl_endpoint_reap(g->endpoint, g->qp, &done, 1)) {
		g->progress = now;
		err = completed(g, &done);
	}
	return err ? err : packets;
}

static int play(struct sl_pingpong *g)
{
	uint64_t patience = g->o->timeout * UINT64_C(1000000000) +
			    (uint64_t)g->o->size * SLOWEST_NS;
	unsigned idle = 0;

	g->progress = sl_clock_ns();
	while (!over(g)) {
		uint64_t now = sl_clock_ns();
		int n = step(g, now);

		if (n < 0 || sl_signal)
			return n < 0 ? n : -EINTR;
		if (now - g->progress > patience)
			return -ETIMEDOUT;
		idle = n ? 0 : idle + 1;
		if (idle > IDLE_POLLS)
			sl_endpoint_wait(g->endpoint, now, WAIT_NS);
	}
	return 0;
}

/* The last acknowledgement may get lost: then the other side asks again. */
static void linger(struct sl_pingpong *g)
{
	uint64_t last = sl_clock_ns(), now = last;

	while (now - last < LINGER_NS && !sl_signal) {
		if (step(g, now) > 0)
			last = now;
		sl_endpoint_wait(g->endpoint, now, WAIT_NS);
		now = sl_clock_ns();
	}
}

static void print_result(const struct sl_pingpong *g, uint64_t ns)
{
	double s = (double)ns * 1e-9;
	double bytes = 2.0 * g->o->size * g->o->iters;

	printf("%.0f bytes in %.2f s = %.2f Mbit/s\n", bytes, s, bytes * 8e-6 / s);
	printf("%u messages to and fro in %.2f s = %.2f us each\n", g->o->iters, s,
	       s * 1e6 / g->o->iters);
}

static int run_game(struct sl_pingpong *g)
{
	uint64_t start = sl_clock_ns(), ns;
	int err = 0;

	g->pending = RECEIVE;
	fill_pattern(g, g->pattern);
	if (!g->server) {
		fill_pattern(g, g->outgoing);
		err = post_send(g);
	}
	if (!err)
		err = play(g);
	ns = sl_clock_ns() - start;
	if (err == -ETIMEDOUT)
		sl_error("nothing happened for %u s, after %u of %u messages", g->o->timeout,
			 g->received, g->o->iters);
	if (err == -ETIMEDOUT || err == -EIO)
		explain(g);
	if (err)
		return err;
	print_result(g, ns);
	if (g->transport == SL_ROCE_RC)
		linger(g);
	if (!g->wrong) {
		printf("every byte as it should be\n");
		return 0;
	}
	sl_error("%llu of %u messages were not as they should be, the first from byte %u on",
		 (unsigned long long)g->wrong, g->received, g->wrong_at);
	return -EBADMSG;
}

static int check_options(struct sl_pingpong_options *o)
{
	bool ud = transports[o->service] == SL_ROCE_UD;

	if (!o->size)
		o->size = ud ? SIZE_UD : SIZE;
	if (!sl_roce_pmtu_valid(o->mtu)) {
		sl_error("--mtu: takes 256, 512, 1024, 2048 or 4096");
		return -EINVAL;
	}
	if (ud && o->size > SL_ROCE_PMTU_MAX) {
		sl_error("--size: a datagram (ud) has at most %d bytes", SL_ROCE_PMTU_MAX);
		return -EINVAL;
	}
	return 0;
}

static int meet_and_play(struct sl_pingpong *g, const char *peer)
{
	const struct sl_pingpong_options *o = g->o;
	int fd, err;

	g->incoming = calloc(1, g->header + o->size);
	g->outgoing = calloc(1, o->size);
	g->pattern = malloc(o->size);
	if (!g->incoming || !g->outgoing || !g->pattern) {
		sl_error("no memory for messages of %u bytes", o->size);
		return -ENOMEM;
	}
	if (peer)
		fd = sl_pingpong_connect(peer, (uint16_t)o->port, o->source[0] ? o->source : NULL);
	else
		fd = sl_pingpong_accept(o->listen[0] ? o->listen : NULL, (uint16_t)o->port);
	if (fd < 0)
		return fd;
	err = sl_pingpong_exchange(g, fd);
	close(fd);
	return err ? err : run_game(g);
}

int sl_cmd_pingpong(const struct sl_command *command, int argc, char **argv)
{
	struct sl_pingpong_options o;
	struct sl_pingpong g = {.o = &o};
	struct sl_args args;
	int err = sl_args_read(command, table, &o, argc, argv, &args);

	if (err)
		return err > 0 ? 0 : 1;
	if (args.plains > 1) {
		sl_error("one other side at most; usage: sluice %s", command->usage);
		return 1;
	}
	if (check_options(&o))
		return 1;
	sl_signals_catch();
	g.server = args.plains == 0;
	g.transport = transports[o.service];
	g.header = g.transport == SL_ROCE_UD ? SL_ROCE_UD_HEADER_BYTES : 0;
	err = meet_and_play(&g, g.server ? NULL : args.plain[0]);
	sl_endpoint_close(g.endpoint);
	free(g.incoming);
	free(g.outgoing);
	free(g.pattern);
	if (err == -EINTR)
		return 130;
	return err == -EBADMSG ? 2 : err != 0;
}
