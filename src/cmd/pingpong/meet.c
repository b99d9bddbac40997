/* meet.c - both sides learn each other's queue pair and connect. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/secret.h"
#include "cmd/pingpong/pingpong.h"
#include "roce/psn.h"

static void print_greeting(const char *whose, const struct sl_greeting *greeting)
{
	char text[SL_NET_TEXT_BYTES];

	sl_net_format(greeting->gid, text);
	printf("  %s  queue pair 0x%06x, PSN 0x%06x, address %s\n", whose, greeting->qpn,
	       greeting->psn, text);
	fflush(stdout);
}

static int open_endpoint(struct sl_pingpong *g)
{
	struct sl_endpoint_options options = {
		.port = (uint16_t)g->o->roce_port, .keys = 1, .qps = 1};
	const struct sl_qp_options qp = {
		.transport = g->transport, .sends = 1, .receives = g->o->rx_depth};
	int err;

	memcpy(options.address, g->ours.gid, sizeof(options.address));
	err = sl_endpoint_open(&options, &g->endpoint);
	if (!err)
		err = sl_qp_create(g->endpoint, &qp, &g->qp);
	if (!err)
		err = sl_qp_modify(g->qp, SL_ROCE_INIT, NULL);
	if (!err)
		err = sl_pingpong_post_receives(g);
	if (err)
		return err;
	g->ours.qpn = sl_qp_number(g->qp);
	g->ours.psn = sl_secret_u32() & SL_ROCE_PSN_MASK;
	print_greeting("here ", &g->ours);
	return 0;
}

static int check_peer(const struct sl_pingpong *g)
{
	static const uint8_t none[8], mapped[12] = {[10] = 0xff, 0xff};
	const uint8_t *gid = g->theirs.gid;

	if (memcmp(gid + 8, none, 8) == 0) {
		sl_error("the other side told no GID: run it with -g INDEX, the index of its RoCE "
			 "v2 address (ibv_devinfo -v lists them)");
		return -EINVAL;
	}
	if (gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80) {
		sl_error("the other side told a link-local GID: run it with -g INDEX of its IPv4 "
			 "address or a routable IPv6 address (ibv_devinfo -v lists them)");
		return -EINVAL;
	}
	if (!memcmp(gid, mapped, 12) != !memcmp(g->ours.gid, mapped, 12)) {
		sl_error("one side has an IPv4 GID and the other an IPv6 one: choose another -g "
			 "INDEX there, or another --source here");
		return -EINVAL;
	}
	return 0;
}

static int connect_qp(struct sl_pingpong *g)
{
	struct sl_qp_attributes a;
	int err = check_peer(g);

	if (err)
		return err;
	print_greeting("there", &g->theirs);
	sl_qp_attributes_init(&a);
	memcpy(a.peer, g->theirs.gid, sizeof(a.peer));
	a.peer_port = (uint16_t)g->o->peer_roce_port;
	a.peer_qpn = g->theirs.qpn;
	a.receive_psn = g->theirs.psn;
	a.send_psn = g->ours.psn;
	a.qkey = SL_PINGPONG_QKEY;
	a.pmtu = g->transport == SL_ROCE_UD ? SL_ROCE_PMTU_MAX : g->o->mtu;
	a.reads = 1;
	err = sl_qp_connect(g->qp, &a);
	if (err)
		sl_error("cannot connect the queue pair: %s", strerror(-err));
	return err;
}

/* Who sends first must find the other side ready: so the server connects before it answers. */
int sl_pingpong_exchange(struct sl_pingpong *g, int fd)
{
	int err = 0;

	if (g->o->source[0])
		err = sl_net_parse("--source", g->o->source, g->ours.gid);
	else
		err = sl_pingpong_local(fd, g->ours.gid);
	if (err || (err = open_endpoint(g)))
		return err;
	if (!g->server)
		err = sl_pingpong_send(fd, &g->ours);
	if (!err)
		err = sl_pingpong_receive(fd, &g->theirs);
	if (!err)
		err = connect_qp(g);
	if (!err && g->server)
		err = sl_pingpong_send(fd, &g->ours);
	if (err)
		return err;
	return g->server ? sl_pingpong_receive_done(fd) : sl_pingpong_send_done(fd);
}
