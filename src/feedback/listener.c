/* listener.c - answers off the network. */
#include "feedback/listener.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "feedback/wire.h"
#include "net/net.h"

enum {
	MESSAGES = 16,	    /* in one call; each of a packet, or of some that came together */
	MOST_BYTES = 65536, /* of a message */
	POLL_MS = 2,	    /* then the sender's notes are taken, at least */
	BUFFER = 16 << 20,
	CALM_NS = 100 * 1000 * 1000, /* all have come: would one come twice? */
	LOOK_NS = 2 * 1000 * 1000,
};

const struct sl_option sl_feedback_options[] = {
	SL_STRING(struct sl_feedback_options, address, "",
		  "where it hears the answers of a feedback sink: numeric; empty: it does not"),
	SL_CHOICE(struct sl_feedback_options, by, udp, "udp|write",
		  "how they come: UDP packets, or RDMA WRITE into a ring here; as the sink has it"),
	SL_U32(struct sl_feedback_options, port, 47920, 1, 65535, "",
	       "UDP port for it; write: the TCP port where the sink asks for a plan"),
	SL_U32(struct sl_feedback_options, deadline_us, 0, 0, 3600000000., "us",
	       "answers that come later than this after their event are counted; 0: none is late"),
	SL_F64(struct sl_feedback_options, wait_s, 2, 0, 1000, "s",
	       "at the end: how long after the last one more answers are waited for; write: at the "
	       "beginning, for the sink"),
	SL_STRING(struct sl_feedback_options, link, "udp",
		  "write: the link that takes them (udp, shm, verbs)"),
	SL_CHOICE(struct sl_feedback_options, service, uc, "uc|rc",
		  "write: unreliable or reliable connection; as the sink has it"),
	SL_CHOICE(struct sl_feedback_options, pmtu, 1024, "256|512|1024|2048|4096",
		  "write: bytes of payload per packet"),
	SL_U32(struct sl_feedback_options, slots, 512, 16, 1000, "slots",
	       "write: packets of answers that the ring holds"),
	SL_U32(struct sl_feedback_options, roce_port, 0, 0, 65535, "",
	       "write, link udp: UDP port that packets come to; 0: the number of `port`. RDMA NICs "
	       "send to 4791"),
	SL_OPTION_END,
};

static int open_socket(struct sl_feedback_listener *t)
{
	const struct sl_feedback_options *o = &t->options;
	union sl_net_address at;
	socklen_t bytes = sl_net_numeric(o->address, (uint16_t)o->port, &at);
	int size = BUFFER, err;

	if (!bytes) {
		sl_error("feedback.address: '%s' is no numeric IPv4 or IPv6 address", o->address);
		return -EINVAL;
	}
	t->fd = socket(at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->fd >= 0 && bind(t->fd, &at.any, bytes) == 0) {
		if (setsockopt(t->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
			setsockopt(t->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
		sl_net_merge(t->fd);
		return 0;
	}
	err = -errno;
	sl_error("cannot listen for answers at %s, port %u (feedback.address, feedback.port): %s",
		 o->address, o->port, strerror(-err));
	return err;
}

typedef uint8_t message_bytes[MOST_BYTES];

/* Packets of a length that the kernel has left together, but for the last; or one. */
static void note_message(struct sl_feedback_listener *t, const struct mmsghdr *m,
			 const uint8_t *bytes, uint64_t now)
{
	uint32_t each = sl_net_segment_bytes(&m->msg_hdr), left;

	each = each ? each : m->msg_len;
	for (left = m->msg_len; left > each; left -= each, bytes += each)
		sl_feedback_account_packet(&t->account, bytes, each, now);
	sl_feedback_account_packet(&t->account, bytes, left, now);
}

/* How many messages there were. */
static int take(struct sl_feedback_listener *t, message_bytes *buffer)
{
	_Alignas(struct cmsghdr) uint8_t control[MESSAGES][SL_NET_CONTROL_BYTES];
	struct mmsghdr message[MESSAGES];
	struct iovec iov[MESSAGES];
	uint64_t now;
	int n;

	memset(message, 0, sizeof(message));
	for (unsigned i = 0; i < MESSAGES; i++) {
		iov[i] = (struct iovec){buffer[i], sizeof(buffer[i])};
		message[i].msg_hdr.msg_iov = &iov[i];
		message[i].msg_hdr.msg_iovlen = 1;
		message[i].msg_hdr.msg_control = control[i];
		message[i].msg_hdr.msg_controllen = sizeof(control[i]);
	}
	n = recvmmsg(t->fd, message, MESSAGES, MSG_DONTWAIT, NULL);
	now = sl_clock_ns();
	sl_feedback_account_absorb(&t->account);
	for (int i = 0; i < n; i++)
		note_message(t, &message[i], buffer[i], now);
	return n;
}

static void *hear_udp(void *arg)
{
	struct sl_feedback_listener *t = arg;
	message_bytes *buffer = malloc(MESSAGES * sizeof(*buffer));

	/* Stopped, it still takes what has come. */
	for (int n = 0; buffer && (n > 0 || !atomic_load(&t->stop));) {
		struct pollfd ready = {.fd = t->fd, .events = POLLIN};

		if (n <= 0)
			poll(&ready, 1, POLL_MS);
		n = take(t, buffer);
	}
	free(buffer);
	return NULL;
}

/* ---- by write ---- */

static void note_packet(void *arg, const uint8_t *bytes, size_t n)
{
	struct sl_feedback_listener *t = arg;

	sl_feedback_account_absorb(&t->account);
	sl_feedback_account_packet(&t->account, bytes, n, sl_clock_ns());
}

static void note_lost(void *arg, uint64_t packets)
{
	struct sl_feedback_listener *t = arg;

	t->account.count.packets_lost += packets;
}

static void *hear_writes(void *arg)
{
	struct sl_feedback_listener *t = arg;

	for (int n = 0; n > 0 || !atomic_load(&t->stop);) {
		n = sl_feedback_inbox_poll(&t->write);
		sl_feedback_account_absorb(&t->account);
	}
	return NULL;
}

static int open_ring(struct sl_feedback_listener *t, const struct sl_feedback_account_terms *terms)
{
	const struct sl_feedback_options *o = &t->options;

	t->write.packet = note_packet;
	t->write.lost = note_lost;
	t->write.arg = t;
	return sl_feedback_inbox_open(&t->write,
				      &(struct sl_feedback_inbox_options){
					      .link = o->link,
					      .address = o->address,
					      .token = terms->token,
					      .port = (uint16_t)o->port,
					      .roce_port = (uint16_t)o->roce_port,
					      .service = o->service ? SL_SERVICE_RC : SL_SERVICE_UC,
					      .pmtu = (uint16_t)(256u << o->pmtu),
					      .slots = o->slots,
					      .experiment = terms->experiment,
				      });
}

int sl_feedback_listener_wait(struct sl_feedback_listener *t)
{
	uint64_t end = sl_clock_ns() + (uint64_t)(t->options.wait_s * 1e9);

	while (t->options.by == SL_FEEDBACK_BY_WRITE && !atomic_load(&t->write.connected)) {
		if (sl_clock_ns() > end) {
			sl_error("nobody came to %s, port %u, to write answers within %g s "
				 "(feedback.wait_s): the receiver needs a sink feedback: {by: "
				 "write} with this address and port",
				 t->options.address, t->options.port, t->options.wait_s);
			return -ETIMEDOUT;
		}
		sl_clock_sleep_until(sl_clock_ns() + LOOK_NS);
	}
	return 0;
}

/* ---- both ---- */

static int open_feedback(struct sl_feedback_listener *t,
			 const struct sl_feedback_account_terms *terms)
{
	const struct sl_geometry *g = terms->geometry;
	uint32_t modules = terms->end_module - terms->first_module;
	int err = sl_feedback_account_init(&t->account, sl_geometry_frame_items(g), g->frame_step,
					   0, modules < g->modules,
					   t->options.deadline_us * UINT64_C(1000));

	if (!err && terms->senders > 1)
		err = sl_feedback_account_senders(&t->account, terms->senders);
	/* Else each event is in all modules. */
	if (!err && g->items && !g->items_shared)
		sl_feedback_account_own(&t->account, terms->first_module * g->items,
					modules * g->items);
	return err;
}

int sl_feedback_listener_open(const struct sl_feedback_options *options,
			      const struct sl_feedback_account_terms *terms,
			      struct sl_feedback_listener **thread)
{
	bool write = options->by == SL_FEEDBACK_BY_WRITE;
	struct sl_feedback_listener *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->options = *options;
	t->fd = t->write.wake.fd = -1;
	err = open_feedback(t, terms);
	if (!err)
		err = write ? open_ring(t, terms) : open_socket(t);
	if (!err)
		err = sl_thread_start(&t->thread, "feedback-in", NULL,
				      write ? hear_writes : hear_udp, t);
	if (err) {
		sl_feedback_listener_close(t);
		return err;
	}
	*thread = t;
	return 0;
}

static void stop(struct sl_feedback_listener *t)
{
	atomic_store(&t->stop, 1);
	sl_thread_join(&t->thread);
}

void sl_feedback_listener_close(struct sl_feedback_listener *t)
{
	stop(t);
	if (t->fd >= 0)
		close(t->fd);
	sl_feedback_inbox_close(&t->write);
	sl_feedback_account_fini(&t->account);
	free(t);
}

/* Until all have come and a while has passed, or none has come for too long. */
static void wait_for_the_rest(struct sl_feedback_listener *t)
{
	uint64_t start = sl_clock_ns(), patience = (uint64_t)(t->options.wait_s * 1e9);

	for (;;) {
		uint64_t heard = atomic_load(&t->account.heard_ns), now = sl_clock_ns();
		uint64_t quiet = now - (heard > start ? heard : start);
		bool all = !atomic_load(&t->account.outstanding) &&
			   sl_feedback_account_absorbed(&t->account);

		if (heard > now)
			quiet = 0;
		if (quiet > patience || (all && quiet > CALM_NS))
			return;
		sl_clock_sleep_until(now + LOOK_NS);
	}
}

static double us(uint64_t ns)
{
	return (double)ns * 1e-3;
}

static void tell(const struct sl_feedback_listener *t, const char *name)
{
	const struct sl_feedback_account_count *c = &t->account.count;
	const struct sl_histogram *delay = &t->account.delay;

	sl_info("%sanswers to %" PRIu64 " of %" PRIu64 " events in %" PRIu64 " packets: %" PRIu64
		" keep, %" PRIu64 " reject, %" PRIu64 " no data",
		name, c->kept + c->rejected + c->no_data, c->events, c->packets, c->kept,
		c->rejected, c->no_data);
	if (c->not_sent)
		sl_info("%sanswers to %" PRIu64 " events that were not sent from here", name,
			c->not_sent);
	if (sl_histogram_count(delay))
		sl_info("%sanswers came after their event by (us): p50 %.1f, p99 %.1f, p99.9 %.1f, "
			"max %.1f",
			name, us(sl_histogram_percentile(delay, 0.5)),
			us(sl_histogram_percentile(delay, 0.99)),
			us(sl_histogram_percentile(delay, 0.999)), us(sl_histogram_max(delay)));
	if (t->options.deadline_us)
		sl_info("%sanswers due after %u us: %" PRIu64 " came late", name,
			t->options.deadline_us, c->late);
}

int sl_feedback_listener_finish(struct sl_feedback_listener *t, const char *name, bool quiet)
{
	const struct sl_feedback_account_count *c = &t->account.count;

	wait_for_the_rest(t);
	stop(t);
	sl_feedback_account_end(&t->account);
	if (!quiet)
		tell(t, name);
	if (sl_feedback_account_agree(&t->account))
		return 0;
	sl_error("%snot every event has exactly one answer: %" PRIu64 " of %" PRIu64
		 " have none, %" PRIu64 " answers came again, %" PRIu64
		 " are to events that were not sent, %" PRIu64 " packets make no sense, %" PRIu64
		 " were lost or overtaken",
		 name, c->missing, c->events, c->duplicate, c->unknown, c->malformed,
		 c->packets_lost);
	return -EBADMSG;
}
