/* answers_thread.c - answers off the network. */
#include "pipeline/answers_thread.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/net.h"
#include "sink/feedback_wire.h"

enum {
	PACKETS = 32, /* in one call */
	POLL_MS = 2,  /* then the sender's notes are taken, at least */
	BUFFER = 16 << 20,
	CALM_NS = 100 * 1000 * 1000, /* all have come: would one come twice? */
	LOOK_NS = 2 * 1000 * 1000,
};

const struct sl_option sl_answers_options[] = {
	SL_STRING(struct sl_answers_options, address, "",
		  "where it hears the answers of a feedback sink: numeric; empty: it does not"),
	SL_U32(struct sl_answers_options, port, 47920, 1, 65535, "", "UDP port for it"),
	SL_U32(struct sl_answers_options, deadline_us, 0, 0, 3600000000., "us",
	       "answers that come later than this after their event are counted; 0: none is late"),
	SL_F64(struct sl_answers_options, wait_s, 2, 0, 1000, "s",
	       "at the end: how long after the last one more answers are waited for"),
	SL_OPTION_END,
};

static int open_socket(struct sl_answers_thread *t)
{
	const struct sl_answers_options *o = &t->options;
	union sl_net_address at;
	socklen_t bytes = sl_net_numeric(o->address, (uint16_t)o->port, &at);
	int size = BUFFER, err;

	if (!bytes) {
		sl_error("answers.address: '%s' is no numeric IPv4 or IPv6 address", o->address);
		return -EINVAL;
	}
	t->fd = socket(at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->fd >= 0 && bind(t->fd, &at.any, bytes) == 0) {
		if (setsockopt(t->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
			setsockopt(t->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
		return 0;
	}
	err = -errno;
	sl_error("cannot listen for answers at %s, port %u (answers.address, answers.port): %s",
		 o->address, o->port, strerror(-err));
	return err;
}

/* How many packets there were. */
static int take(struct sl_answers_thread *t, uint8_t (*buffer)[SL_FEEDBACK_PAYLOAD_MAX + 1])
{
	struct mmsghdr message[PACKETS];
	struct iovec iov[PACKETS];
	uint64_t now;
	int n;

	memset(message, 0, sizeof(message));
	for (unsigned i = 0; i < PACKETS; i++) {
		iov[i] = (struct iovec){buffer[i], sizeof(buffer[i])};
		message[i].msg_hdr.msg_iov = &iov[i];
		message[i].msg_hdr.msg_iovlen = 1;
	}
	n = recvmmsg(t->fd, message, PACKETS, MSG_DONTWAIT, NULL);
	now = sl_clock_ns();
	sl_answers_absorb(&t->answers);
	for (int i = 0; i < n; i++)
		sl_answers_packet(&t->answers, buffer[i], message[i].msg_len, now);
	return n;
}

static void *hear(void *arg)
{
	struct sl_answers_thread *t = arg;
	uint8_t(*buffer)[SL_FEEDBACK_PAYLOAD_MAX + 1] = malloc(PACKETS * sizeof(*buffer));

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

int sl_answers_open(const struct sl_answers_options *options, const struct sl_geometry *geometry,
		    bool part, struct sl_answers_thread **thread)
{
	struct sl_answers_thread *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->options = *options;
	t->fd = -1;
	err = sl_answers_init(&t->answers, sl_geometry_frame_items(geometry), geometry->frame_step,
			      0, part, options->deadline_us * UINT64_C(1000));
	if (!err)
		err = open_socket(t);
	if (!err)
		err = sl_thread_start(&t->thread, "answers", NULL, hear, t);
	if (err) {
		sl_answers_close(t);
		return err;
	}
	*thread = t;
	return 0;
}

static void stop(struct sl_answers_thread *t)
{
	atomic_store(&t->stop, 1);
	sl_thread_join(&t->thread);
}

void sl_answers_close(struct sl_answers_thread *t)
{
	stop(t);
	if (t->fd >= 0)
		close(t->fd);
	sl_answers_fini(&t->answers);
	free(t);
}

/* Until all have come and a while has passed, or none has come for too long. */
static void wait_for_the_rest(struct sl_answers_thread *t)
{
	uint64_t start = sl_clock_ns(), patience = (uint64_t)(t->options.wait_s * 1e9);

	for (;;) {
		uint64_t heard = atomic_load(&t->answers.heard_ns), now = sl_clock_ns();
		uint64_t quiet = now - (heard > start ? heard : start);
		bool all = !atomic_load(&t->answers.outstanding) &&
			   atomic_load(&t->answers.tail) == atomic_load(&t->answers.head);

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

static void tell(const struct sl_answers_thread *t, const char *name)
{
	const struct sl_answers_count *c = &t->answers.count;
	const struct sl_histogram *delay = &t->answers.delay;

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

int sl_answers_finish(struct sl_answers_thread *t, const char *name, bool quiet)
{
	const struct sl_answers_count *c = &t->answers.count;

	wait_for_the_rest(t);
	stop(t);
	sl_answers_end(&t->answers);
	if (!quiet)
		tell(t, name);
	if (sl_answers_agree(&t->answers))
		return 0;
	sl_error("%snot every event has exactly one answer: %" PRIu64 " of %" PRIu64
		 " have none, %" PRIu64 " answers came again, %" PRIu64
		 " are to events that were not sent, %" PRIu64 " packets make no sense, %" PRIu64
		 " were lost or overtaken",
		 name, c->missing, c->events, c->duplicate, c->unknown, c->malformed,
		 c->packets_lost);
	return -EBADMSG;
}
