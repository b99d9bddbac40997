/* conformance_test.c - what every control driver must do, with sources that speak as each
 * expects. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "control/controls.h"
#include "control/feroce/wire.h"
#include "control/tcp/channel.h"
#include "lib/control_conformance.h"

enum { PATIENCE_MS = 5000, FEROCE_PORT = 17190, QPN = 300 };

#define COMMON "detector: {kind: pattern, modules: 2, frames: 20, dark_frames: 0}\n"

/* ---- tcp ---- */

struct front_end {
	struct sl_channel channel; /* fd 0: not connected */
	uint16_t transfer;
	bool bye;
};

static struct front_end *front_end_of(struct control_world *w, uint32_t module)
{
	return &((struct front_end *)w->sources)[module];
}

static int connect_to(struct control_world *w)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd > 0);
	at.sin_port = htons(w->rig->driver->port(w->state));
	assert_int_equal(inet_pton(AF_INET, w->address, &at.sin_addr), 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* The next message of the receiver, while it works; its type, or 0 when it hung up. */
static unsigned hear(struct control_world *w, struct front_end *f, struct sl_wire_message *message)
{
	for (unsigned ms = 0; ms < PATIENCE_MS; ms++) {
		int got = sl_channel_receive(&f->channel, 1, message);

		if (got)
			return got > 0 ? message->type : 0;
		w->rig->driver->poll(w->state, w->now_ns);
	}
	fail_msg("the receiver says nothing");
	return 0;
}

static void say(struct front_end *f, const struct sl_wire_message *message)
{
	assert_int_equal(sl_channel_send(&f->channel, message), 0);
}

static void offer_module(struct control_world *w, uint32_t module)
{
	struct sl_wire_message hello = {.type = SL_WIRE_HELLO, .hello = {.modules = 1}};
	struct sl_wire_message offer = {
		.type = SL_WIRE_OFFER,
		.offer = {.module = (uint16_t)module, .frames = RECORDER_FRAMES}};
	struct front_end *f = front_end_of(w, module);

	snprintf(hello.hello.link, sizeof(hello.hello.link), "%s", w->experiment->link->wire);
	snprintf(hello.hello.detector, sizeof(hello.hello.detector), "%s",
		 w->experiment->detector->name);
	if (f->channel.fd)
		sl_channel_close(&f->channel);
	sl_channel_init(&f->channel, connect_to(w));
	say(f, &hello);
	say(f, &offer);
}

static void come_tcp(struct control_world *w, uint32_t module)
{
	const struct sl_wire_message ready = {.type = SL_WIRE_READY};
	struct front_end *f = front_end_of(w, module);
	struct sl_wire_message plan;

	offer_module(w, module);
	assert_int_equal(hear(w, f, &plan), SL_WIRE_PLAN);
	f->transfer = plan.plan.transfer;
	say(f, &ready);
	control_pass(w, 10);
}

/* DONE: everything that it offered, or PART of it after a stop. */
static void done(struct control_world *w, uint32_t module)
{
	struct front_end *f = front_end_of(w, module);
	uint64_t next = w->recorder.module[module].progress.reached;
	const struct sl_wire_message message = {
		.type = SL_WIRE_DONE,
		.count = {.transfer = f->transfer, .next = next, .sent = next}};

	say(f, &message);
	control_pass(w, 10);
}

static void obey_tcp(struct control_world *w, uint32_t module)
{
	struct sl_wire_message message;
	unsigned type;

	do
		type = hear(w, front_end_of(w, module), &message);
	while (type == SL_WIRE_START);
	assert_int_equal(type, SL_WIRE_STOP);
	done(w, module);
}

static void leave_tcp(struct control_world *w, uint32_t module)
{
	struct front_end *f = front_end_of(w, module);

	sl_channel_close(&f->channel);
	f->channel.fd = 0;
}

static void stranger_tcp(struct control_world *w)
{
	static const char *const lines[] = {"GET / HTTP/1.0\r\n\r\n", "\xff\xff\xff\xff\xff\xff",
					    ""};

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		int fd = connect_to(w);

		if (lines[i][0])
			assert_true(send(fd, lines[i], strlen(lines[i]), 0) > 0);
		control_pass(w, 10);
		close(fd);
		control_pass(w, 10);
	}
}

static bool heard_bye_tcp(struct control_world *w, uint32_t module)
{
	struct front_end *f = front_end_of(w, module);
	struct sl_wire_message message;

	while (sl_channel_receive(&f->channel, 1, &message) > 0)
		f->bye |= message.type == SL_WIRE_BYE;
	return f->bye;
}

static void quit_tcp(struct control_world *w)
{
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		if (front_end_of(w, m)->channel.fd)
			sl_channel_close(&front_end_of(w, m)->channel);
}

/* ---- feroce ---- */

struct core {
	int fd; /* 0: not open */
	uint32_t qpn, remote_qpn;
	bool closed;
};

static struct core *core_of(struct control_world *w, uint32_t module)
{
	return &((struct core *)w->sources)[module];
}

static struct sockaddr_in in_world(const struct control_world *w, uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};

	assert_int_equal(inet_pton(AF_INET, w->address, &at.sin_addr), 1);
	return at;
}

static int datagram_socket(struct control_world *w, uint16_t *port)
{
	struct sockaddr_in at = in_world(w, 0);
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd > 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

static void request(struct control_world *w, struct core *core, enum sl_feroce_request request)
{
	struct sockaddr_in to = in_world(w, FEROCE_PORT), from;
	struct sl_feroce_message m = {.info = true, .request = (uint8_t)request};
	socklen_t size = sizeof(from);
	uint8_t bytes[SL_FEROCE_BYTES];

	assert_int_equal(getsockname(core->fd, (struct sockaddr *)&from, &size), 0);
	m.local = (struct sl_feroce_queue){.qpn = core->qpn, .ip = ntohl(from.sin_addr.s_addr)};
	m.remote.qpn = core->remote_qpn;
	m.port = ntohs(from.sin_port);
	sl_feroce_encode(&m, bytes);
	assert_int_equal(
		sendto(core->fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&to, sizeof(to)),
		sizeof(bytes));
	control_pass(w, 10);
}

static void hear_core(struct core *core)
{
	uint8_t bytes[SL_FEROCE_BYTES];
	struct sl_feroce_message m;

	while (core->fd && recv(core->fd, bytes, sizeof(bytes), MSG_DONTWAIT) == sizeof(bytes)) {
		assert_int_equal(sl_feroce_decode(bytes, sizeof(bytes), &m), 0);
		if (m.request == SL_FEROCE_OPEN && m.ack == SL_FEROCE_ACK)
			core->remote_qpn = m.local.qpn;
		core->closed |= m.request == SL_FEROCE_CLOSE && !m.answer;
	}
}

static void open_core(struct control_world *w, uint32_t module)
{
	struct core *core = core_of(w, module);
	uint16_t port;

	if (!core->fd)
		core->fd = datagram_socket(w, &port);
	core->qpn = core->qpn ? core->qpn + 2 : QPN + module;
	request(w, core, SL_FEROCE_OPEN);
	hear_core(core);
}

static void leave_feroce(struct control_world *w, uint32_t module)
{
	struct core *core = core_of(w, module);

	/* The answer of the last one that came is held back until the start: its number is
	 * known. */
	hear_core(core);
	if (!core->remote_qpn)
		core->remote_qpn = 5000u + 10 * w->recorder.module[module].accepts + module;
	request(w, core, SL_FEROCE_CLOSE);
	core->remote_qpn = 0;
}

static void stranger_feroce(struct control_world *w)
{
	struct core liar = {.qpn = 1}; /* of management */
	struct sockaddr_in to = in_world(w, FEROCE_PORT);
	uint8_t garbage[200] = {0xab};
	uint16_t port;

	liar.fd = datagram_socket(w, &port);
	for (size_t n = 0; n <= sizeof(garbage); n += 50)
		sendto(liar.fd, garbage, n, 0, (struct sockaddr *)&to, sizeof(to));
	request(w, &liar, SL_FEROCE_OPEN);
	request(w, &liar, SL_FEROCE_CLOSE);
	request(w, &liar, SL_FEROCE_RTS);
	close(liar.fd);
}

static bool heard_close(struct control_world *w, uint32_t module)
{
	hear_core(core_of(w, module));
	return core_of(w, module)->closed;
}

static void quit_feroce(struct control_world *w)
{
	for (uint32_t m = 0; m < RECORDER_MODULES; m++)
		if (core_of(w, m)->fd)
			close(core_of(w, m)->fd);
}

/* ---- all ---- */

static const struct control_rig rigs[] = {
	{
		.driver = &sl_control_tcp,
		.experiment = COMMON "link: {kind: udp}\nring: {align: frame}\n"
				     "control: {address: %s, silence_s: 3}\n",
		.bad_override = "control.address=nowhere",
		.emulated = true,
		.source_bytes = RECORDER_MODULES * sizeof(struct front_end),
		.come = come_tcp,
		.ask = offer_module,
		.finish = done,
		.obey = obey_tcp,
		.leave = leave_tcp,
		.stranger = stranger_tcp,
		.heard_bye = heard_bye_tcp,
		.returns = true,
		.quit = quit_tcp,
	},
	{
		.driver = &sl_control_feroce,
		.experiment = COMMON
		"link: {kind: udp, service: rc}\n"
		"feroce: {enable: true, address: %s, port: 17190, silence_s: 3}\n",
		.bad_override = "feroce.address=nowhere",
		.limits = true,
		.holds = true,
		.source_bytes = RECORDER_MODULES * sizeof(struct core),
		.come = open_core,
		.ask = open_core,
		.leave = leave_feroce,
		.stranger = stranger_feroce,
		.heard_bye = heard_close,
		.quit = quit_feroce,
	},
	{
		.driver = &sl_control_one_way,
		.experiment = "detector: {kind: jungfrau, modules: 2, frames: 20, dark_frames: 0}\n"
			      "link: {kind: sls, listen: %s}\n"
			      "control: {silence_s: 3, wait_s: 5}\nring: {overrun: drop_newest}\n",
		.offers_itself = true,
		.limits = true,
		.looks = true,
	},
	{
		.driver = &sl_control_resumed,
		.experiment = COMMON "link: {kind: udp, listen: %s}\ncontrol: {silence_s: 3}\n",
		.resumed = true,
		.holds = true,
	},
};

int main(void)
{
	return control_conform(rigs, sizeof(rigs) / sizeof(rigs[0]));
}
