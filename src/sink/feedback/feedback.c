/* feedback.c - decisions go back to the front end: one answer per event, by UDP or RDMA WRITE.
 *
 * Every frame is answered, kept, rejected or broken, so that a front end that holds its events
 * until it hears of them can let each go exactly once. With a fixed latency an answer leaves so
 * long after its event, no sooner: front ends with a pipeline of known depth need no more than
 * that. The sinks' thread sleeps until then.
 *
 * Answers that cannot be sent are counted and make the run fail; the frame is stored all the same,
 * for data is not to be lost with the word about it.
 *
 * By UDP and at once, put() is fit for a data thread: an error is then told at the end.
 *
 * Cost: 24 bytes written per event, a system call per frame; waiting, where there is a latency. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include <sluice/sink.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/log.h"
#include "core/plan.h"
#include "feedback/wire.h"
#include "sink/feedback/out.h"

enum { ANSWERED = 1 << 16 }; /* frames remembered, so that none is answered twice */

struct feedback {
	char address[64], link[16], source[64];
	uint32_t by, port, service, payload, latency_us, spin_us;
	double wait_s;
	uint32_t qpn, rkey, psn, slots, pmtu;
	uint64_t memory, stride;

	const struct sl_env *env;
	struct sl_feedback_out out;
	bool opened, impatient;
	uint32_t per_packet, packets;	   /* answers in one; most packets of a frame */
	uint8_t *bytes;			   /* [packets][payload] */
	struct sl_feedback_packet *packet; /* [packets] */
	uint64_t *answered;		   /* [ANSWERED]: 1 + number of the frame; 0: none */

	uint64_t next_packet;
	uint64_t frames, decision[SL_FEEDBACK_DECISIONS];
	uint64_t repeated, late, untimed;
	struct sl_histogram off; /* ns between due and gone */
};

static const struct sl_option options[] = {
	SL_STRING(struct feedback, address, "127.0.0.1", "where the front end listens: numeric"),
	SL_CHOICE(struct feedback, by, udp, "udp|write",
		  "UDP packets, or RDMA WRITE into a ring of the front end's; as it has it"),
	SL_U32(struct feedback, port, 47920, 1, 65535, "",
	       "UDP port there; write: the TCP port where it gives out plans"),
	SL_U32(struct feedback, payload, 1408, SL_FEEDBACK_HEADER + SL_FEEDBACK_ANSWER,
	       SL_FEEDBACK_PAYLOAD_MAX, "bytes",
	       "most of a packet of answers, without headers; the default fits Ethernet"),
	SL_U32(struct feedback, latency_us, 0, 0, 10000000, "us",
	       "answers leave so long after their event, no sooner; 0: at once"),
	SL_U32(struct feedback, spin_us, 50, 0, 10000, "us",
	       "of a wait, the last so many are spent looking at the clock: less jitter, for a "
	       "busy cpu"),
	SL_STRING(struct feedback, link, "udp", "write: the link to use (udp, shm, verbs)"),
	SL_CHOICE(struct feedback, service, uc, "uc|rc",
		  "write: unreliable or reliable connection; as the front end has it"),
	SL_STRING(struct feedback, source, "",
		  "write: address that packets leave from; empty: that by which the front end is "
		  "reached"),
	SL_F64(struct feedback, wait_s, 2, 0, 1000, "s",
	       "write: how long the first answer waits for a front end that is not there"),
	SL_U32(struct feedback, qpn, 0, 0, 0xffffff, "",
	       "write to a device that gives out no plan: its queue pair, and its other numbers "
	       "below; 0: ask for a plan"),
	SL_U32(struct feedback, rkey, 0, 0, 0xffffffff, "", "its key"),
	SL_U32(struct feedback, psn, 0, 0, 0xffffff, "", "the first packet's number"),
	SL_U64(struct feedback, memory, 0, 0, 9007199254740992., "", "address of its first slot"),
	SL_U32(struct feedback, slots, 64, 1, 1048576, "slots", "that it has"),
	SL_U64(struct feedback, stride, 0, 0, 4294967296., "bytes",
	       "from slot to slot; 0: blocks follow each other"),
	SL_CHOICE(struct feedback, pmtu, 1024, "256|512|1024|2048|4096",
		  "bytes of payload in its packets"),
	SL_OPTION_END};

static int reads(const void *state, const char *image)
{
	return 0;
}

static enum sl_feedback_by feedback_of(const void *state, struct sl_feedback_sender_options *to)
{
	const struct feedback *f = state;

	*to = (struct sl_feedback_sender_options){
		.link = f->link,
		.address = f->address,
		.source = f->source,
		.port = (uint16_t)f->port,
		.service = f->service ? SL_SERVICE_RC : SL_SERVICE_UC,
		.bytes = f->payload,
		.wait_s = f->wait_s,
		.device = {.qpn = f->qpn,
			   .rkey = f->rkey,
			   .psn = f->psn,
			   .slots = f->slots,
			   .memory = f->memory,
			   .stride = f->stride,
			   .pmtu = (uint16_t)(256u << f->pmtu)},
	};
	return (enum sl_feedback_by)f->by;
}

/* Writes share a lock with the thread that connects; and a fixed latency is waited for. */
static int prompt(const void *state)
{
	const struct feedback *f = state;

	return f->by == SL_FEEDBACK_BY_UDP && !f->latency_us;
}

static int open_out(struct feedback *f, uint32_t items)
{
	uint64_t whole = SL_FEEDBACK_HEADER + (uint64_t)items * SL_FEEDBACK_ANSWER;
	struct sl_feedback_sender_options to;

	feedback_of(f, &to);
	if (whole < to.bytes)
		to.bytes = (uint32_t)whole;
	return sl_feedback_out_open(&f->out, f->by, &to, f->env->feedback, f->packets);
}

/* Frames wait in the pool until their answers are due. */
static void check_latency(const struct feedback *f)
{
	double waiting = f->latency_us * 1e-6 * f->env->frame_rate_Hz;

	if (!f->env->pool_frames || waiting <= f->env->pool_frames)
		return;
	sl_warn("feedback: in latency_us (%u) %.0f frames come at %g Hz, and %u can wait: the ring "
		"will fill up, and answers will be late; raise unit.batch",
		f->latency_us, waiting, f->env->frame_rate_Hz, f->env->pool_frames);
}

static int open_feedback(void *state, const struct sl_env *env)
{
	struct feedback *f = state;
	uint32_t items = sl_geometry_frame_items(env->geometry);

	f->opened = true;
	f->out.fd = -1;
	f->env = env;
	check_latency(f);
	f->per_packet = (f->payload - SL_FEEDBACK_HEADER) / SL_FEEDBACK_ANSWER;
	if (f->per_packet > UINT16_MAX)
		f->per_packet = UINT16_MAX;
	f->packets = (items + f->per_packet - 1) / f->per_packet;
	f->bytes = malloc((size_t)f->packets * f->payload);
	f->packet = calloc(f->packets, sizeof(*f->packet));
	f->answered = calloc(ANSWERED, sizeof(*f->answered));
	if (!f->bytes || !f->packet || !f->answered)
		return -ENOMEM;
	return open_out(f, items);
}

/* ---- what is said ---- */

static enum sl_feedback_decision decision_of(const struct feedback *f, const struct sl_frame *frame,
					     uint32_t item)
{
	const struct sl_geometry *g = f->env->geometry;

	if (!sl_frame_goes_on(frame))
		return SL_FEEDBACK_NO_DATA;
	/* Where each module has events of its own, those of a missing one were not seen. */
	if (g->items && !g->items_shared && sl_frame_misses(frame, item / g->items))
		return SL_FEEDBACK_NO_DATA;
	return frame->verdict[item].keep ? SL_FEEDBACK_KEEP : SL_FEEDBACK_REJECT;
}

static void write_answers(struct feedback *f, const struct sl_frame *frame, uint32_t first,
			  uint32_t count, uint8_t *bytes)
{
	for (uint32_t i = first; i < first + count; i++) {
		const struct sl_verdict *verdict = &frame->verdict[i];
		struct sl_feedback_answer answer = {.number = frame->number * frame->items + i,
						    .timestamp = frame->timestamp,
						    .decision = decision_of(f, frame, i)};

		/* A frame that no unit has had still has the verdict of one before it. */
		if (answer.decision != SL_FEEDBACK_NO_DATA) {
			answer.timestamp = verdict->timestamp;
			answer.score = verdict->score;
			answer.reason = verdict->reason;
		}
		f->decision[answer.decision]++;
		sl_feedback_write_answer(&answer, bytes + (size_t)(i - first) * SL_FEEDBACK_ANSWER);
	}
}

static uint16_t flags_of(const struct sl_frame *frame)
{
	return (uint16_t)((frame->flags & SL_FRAME_DARK ? SL_FEEDBACK_DARK : 0) |
			  (frame->flags & SL_FRAME_PARTIAL ? SL_FEEDBACK_PARTIAL : 0) |
			  (sl_frame_goes_on(frame) ? 0 : SL_FEEDBACK_BROKEN));
}

/* How many packets there are to send. */
static uint32_t write_packets(struct feedback *f, const struct sl_frame *frame, bool late)
{
	struct sl_feedback_header header = {
		.timestamp = frame->timestamp,
		.items = frame->items,
	};
	uint32_t n = 0;

	for (uint32_t first = 0; first < frame->items && n < f->packets; n++) {
		uint8_t *bytes = f->bytes + (size_t)n * f->payload;
		uint32_t left = frame->items - first;

		header.count = (uint16_t)(left < f->per_packet ? left : f->per_packet);
		header.first = frame->number * frame->items + first;
		header.packet = f->next_packet++;
		header.flags = (uint16_t)(flags_of(frame) | (late ? SL_FEEDBACK_LATE : 0) |
					  (left == header.count ? SL_FEEDBACK_LAST : 0));
		sl_feedback_write_header(&header, bytes);
		write_answers(f, frame, first, header.count, bytes + SL_FEEDBACK_HEADER);
		f->packet[n] = (struct sl_feedback_packet){
			.data = bytes,
			.bytes = SL_FEEDBACK_HEADER + (uint32_t)header.count * SL_FEEDBACK_ANSWER,
			.items = header.count,
			.number = header.packet,
			.timestamp = header.timestamp,
		};
		first += header.count;
	}
	return n;
}

/* ---- when ---- */

/* 0: at once. */
static uint64_t due_of(const struct feedback *f, const struct sl_frame *frame, uint64_t now)
{
	uint64_t emitted = sl_env_same_clock(f->env) ? frame->hop_ns[SL_HOP_EMIT] : 0;
	uint64_t from = emitted ? emitted : frame->hop_ns[SL_HOP_EVENT];

	if (!f->latency_us || !from)
		return 0;
	/* The front end's word for it: no event is in the future. */
	return (from < now ? from : now) + f->latency_us * UINT64_C(1000);
}

static void wait_until(struct feedback *f, uint64_t due)
{
	uint64_t spin = f->spin_us * UINT64_C(1000), now;

	if (!f->impatient) /* else the kernel may add 50 us, to wake others at the same time */
		prctl(PR_SET_TIMERSLACK, 1);
	f->impatient = true;
	while ((now = sl_clock_ns()) < due)
		if (now + spin < due)
			sl_clock_sleep_until(due - spin);
}

/* ---- sending ---- */

/* A module that comes after its frame was given out makes a frame of that number again; and what
 * nobody sent needs no answer. */
static bool is_to_be_answered(struct feedback *f, const struct sl_frame *frame)
{
	uint64_t *answered = &f->answered[frame->number % ANSWERED];
	bool sent = sl_frame_goes_on(frame);

	for (uint32_t v = 0; v < frame->views && !sent; v++)
		sent = frame->view[v].outcome != SL_NO_OUTCOME;
	if (!sent)
		return false;
	if (*answered == frame->number + 1) {
		f->repeated++;
		return false;
	}
	*answered = frame->number + 1;
	return true;
}

static int put(void *state, struct sl_frame *frame)
{
	struct feedback *f = state;
	uint64_t now, due;
	uint32_t n;
	bool late;

	if (!is_to_be_answered(f, frame))
		return 0;
	now = sl_clock_ns();
	due = due_of(f, frame, now);
	late = due && now > due;
	n = write_packets(f, frame, late);
	f->frames++;
	f->late += late;
	if (f->latency_us && !due)
		f->untimed++;
	if (due)
		wait_until(f, due);
	sl_feedback_out_send(&f->out, f->packet, n);
	if (due) /* behind a wait for credit, too: that is when they are gone */
		sl_histogram_add(&f->off, sl_clock_ns() - due);
	return 0;
}

static double us(uint64_t ns)
{
	return (double)ns * 1e-3;
}

static int close_feedback(void *state, const struct sl_status *status)
{
	struct feedback *f = state;

	if (f->opened)
		sl_feedback_out_close(&f->out);
	if (status && sl_histogram_count(&f->off))
		sl_info("feedback: answers left after they were due by (us): p50 %.1f, p99 %.1f, "
			"max %.1f; %" PRIu64 " of %" PRIu64 " frames were late already",
			us(sl_histogram_percentile(&f->off, 0.5)),
			us(sl_histogram_percentile(&f->off, 0.99)), us(sl_histogram_max(&f->off)),
			f->late, f->frames);
	if (f->out.refused)
		sl_warn("feedback: nobody listened at %s, port %u: %" PRIu64
			" packets came back as refused",
			f->address, f->port, f->out.refused);
	free(f->bytes);
	free(f->packet);
	free(f->answered);
	f->bytes = NULL;
	f->packet = NULL;
	f->answered = NULL;
	return 0;
}

static void figures(const void *state, sl_sink_figure *figure, void *arg)
{
	const struct feedback *f = state;

	figure(arg, "frames", f->frames, 0);
	figure(arg, "events_kept", f->decision[SL_FEEDBACK_KEEP], 0);
	figure(arg, "events_rejected", f->decision[SL_FEEDBACK_REJECT], 0);
	figure(arg, "events_without_data", f->decision[SL_FEEDBACK_NO_DATA], 0);
	figure(arg, "packets", f->next_packet, 0);
	figure(arg, "packets_refused", f->out.refused, 1);
	figure(arg, "frames_answered_before", f->repeated, 0);
	if (f->latency_us) {
		figure(arg, "frames_late", f->late, 0);
		figure(arg, "frames_without_a_time", f->untimed, 0);
		figure(arg, "off_p50_ns", sl_histogram_percentile(&f->off, 0.5), 0);
		figure(arg, "off_p99_ns", sl_histogram_percentile(&f->off, 0.99), 0);
		figure(arg, "off_max_ns", sl_histogram_max(&f->off), 0);
	}
	figure(arg, "feedback_unsent", f->out.unsent, 1);
}

const struct sl_sink sl_sink_feedback = {
	.name = "feedback",
	.doc = "tells the front end what was decided about each event",
	.state_bytes = sizeof(struct feedback),
	.options = options,
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_BROKEN,
	.reads = reads,
	.prompt = prompt,
	.open = open_feedback,
	.put = put,
	.close = close_feedback,
	.figures = figures,
	.feedback = feedback_of,
};
