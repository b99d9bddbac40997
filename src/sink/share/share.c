/* share.c - frames of a live run as elements of a share, for programs that look at it while it
 * goes on: viewers, Python, `sluice follow`.
 *
 * No follower can delay the run: what it does not take in time is overtaken. When this sink itself
 * cannot keep pace, frames are left out of the share, or the run waits for it (on_slow).
 *
 * Threads:   the sink's own, the share's, which serves followers, and one that times their answers.
 * Cost:      a copy of what is selected for each frame that is published; nothing for others. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/sink.h>

#include "base/clock.h"
#include "base/host/room.h"
#include "base/log.h"
#include "sink/share/answers.h"
#include "sink/share/arrays.h"

enum { MODULES, ASSEMBLED }; /* the choices of `image` */
enum { KEPT, ALL };	     /* of `frames` */
enum { AUTO, DROP, WAIT };   /* of `on_slow` */
enum {
	LEAST_PLACES = 4,
	LATEST_PLACES = 8,
	MOST_PLACES = 1000,
	NAME_BYTES = 64,
	PATH_BYTES = 1024,
	URL_BYTES = 400,
	MOST_NAMES = 99
};
#define LOOK_NS UINT64_C(100000000) /* from one look at messages to the next */

struct share {
	char name[NAME_BYTES], results[512], listen[128], secret_file[PATH_BYTES], device[64];
	uint32_t image, frames, every, on_slow;
	uint64_t count, memory_bytes;
	double latest_Hz;
	bool answers, facts, may_lack;

	struct sl_shared shared;
	struct sl_share *share; /* NULL: closed */
	char where[URL_BYTES];
	uint64_t given, published_ns, looked_ns;
	uint64_t published, skipped, bytes, messages;
	struct sl_share_counts last; /* once it is closed */
	struct sl_answers answering; /* with `answers` */
};

static const struct sl_option options[] = {
	SL_STRING(struct share, name, "",
		  "followers find it as share:NAME; empty: that of the experiment file, with the "
		  "transfer's"),
	SL_STRING(struct share, results, "",
		  "results of each frame, with commas between them; raw: pixels as the detector "
		  "sent them; empty: all that stages make; auto: the same, and where they make no "
		  "image, raw pixels if another sink has them copied anyway"),
	SL_CHOICE(struct share, image, assembled, "modules|assembled",
		  "modules one below the other as they were read, or one image with the "
		  "detector's gaps"),
	SL_CHOICE(struct share, frames, kept, "kept|all",
		  "kept frames; or rejected, dark and incomplete ones, too"),
	SL_U32(struct share, every, 1, 1, 4294967295., "frames",
	       "of so many of these frames one is published"),
	SL_F64(struct share, latest_Hz, 0, 0, 1e6, "Hz",
	       "for viewers: at most this many frames a second, each the latest there is; 0: no "
	       "limit"),
	SL_U64(struct share, count, 0, 0, 1000000, "places",
	       "frames that lie in the share, for followers that are late; 0: what fits into "
	       "memory_bytes, 4 to 1000, with latest_Hz at most 8"),
	SL_U64(struct share, memory_bytes, 128Mi, 4096, 1e15, "bytes",
	       "of the share, where count is 0"),
	SL_CHOICE(struct share, on_slow, auto, "auto|drop|wait",
		  "when copying cannot keep pace with the run: leave frames out of the share, or "
		  "the run waits. auto: drop, and with latest_Hz, whose copies are few, wait"),
	SL_STRING(struct share, listen, "",
		  "HOST:PORT for followers on other hosts, as rdma://HOST:PORT/NAME; port 0: any; "
		  "empty: this host alone"),
	SL_STRING(struct share, secret_file, "",
		  "file with the secret that followers on other hosts must know; required where "
		  "listen is no loopback address"),
	SL_STRING(struct share, device, "", "of listen: an RDMA NIC; empty: a UDP socket"),
	SL_BOOL(struct share, answers, false,
		"followers answer to frames: their messages of kind 1 begin with the number of an "
		"element, and are timed from its commit on"),
	SL_BOOL(struct share, facts, true,
		"arrays that tell what others mean, too: axes of profiles, image_plane, "
		"photon_energy, peaks_in_image"),
	SL_BOOL(struct share, may_lack, false,
		"where the share cannot be made, go on without it: there is nothing to publish, or "
		"no "
		"memory; a name that is taken gets a number"),
	SL_OPTION_END};

/* ---- open and close ---- */

/* Names of files may have characters that those of shares have not. */
static void choose_name(const struct share *s, const struct sl_env *env, char name[NAME_BYTES])
{
	const char *from = s->name[0] ? s->name : env->name && env->name[0] ? env->name : "run";

	snprintf(name, NAME_BYTES, "%s", from);
	if (s->name[0])
		return; /* one that is wrong is refused */
	for (char *c = name; *c; c++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
			    *c) &&
		    (*c != '.' || c == name))
			*c = '-';
}

static uint64_t places(const struct share *s, uint64_t frame_bytes)
{
	uint64_t fit = s->memory_bytes / frame_bytes;
	uint64_t most = s->latest_Hz > 0 ? LATEST_PLACES : MOST_PLACES;

	if (s->count)
		return s->count;
	return fit < LEAST_PLACES ? LEAST_PLACES : fit > most ? most : fit;
}

static const char *text_or_null(const char *text)
{
	return text[0] ? text : NULL;
}

static int lack(const char *why)
{
	sl_warn("share: this run cannot be followed: %s", why);
	return 0;
}

/* NAME, or with may_lack the first of NAME-2, NAME-3 ... that is free. */
static int open_named(struct share *s, const struct sl_share_options *o, const struct sl_env *env,
		      struct sl_remote_error *error)
{
	char first[NAME_BYTES], name[NAME_BYTES];
	int err;

	choose_name(s, env, first);
	snprintf(name, sizeof(name), "%s", first);
	for (int i = 2;; i++) {
		err = sl_share_open(name, o, &s->share, error);
		if (err != -EEXIST || !s->may_lack || i > MOST_NAMES)
			return err;
		snprintf(name, sizeof(name), "%.*s-%d", NAME_BYTES - 5, first, i);
	}
}

static int open_it(struct share *s, const struct sl_env *env)
{
	uint64_t frame_bytes = sl_shared_bytes(&s->shared), count = places(s, frame_bytes);
	const struct sl_share_options o = {
		.bytes = sizeof(o),
		.arrays = s->shared.arrays,
		.array = s->shared.share,
		.count = count,
		.run = env->name && env->name[0] ? env->name : "run",
		.listen = text_or_null(s->listen),
		.secret_file = text_or_null(s->secret_file),
		.device = text_or_null(s->device),
	};
	struct sl_remote_error error;
	struct sl_room room;
	int err;

	sl_room_read("", count * frame_bytes, &room);
	if (s->may_lack && count * frame_bytes > room.bytes / 4)
		return lack("it would take more than a quarter of the memory that is free");
	if (!sl_room_for("the share of a run", count * frame_bytes,
			 "set count or memory_bytes of the sink share, or select fewer results"))
		return -ENOMEM;
	err = open_named(s, &o, env, &error);
	if (err && s->may_lack)
		return lack(error.message);
	if (err) {
		sl_error("share: %s", error.message);
		return err;
	}
	snprintf(s->where, sizeof(s->where), "%s", sl_share_url(s->share));
	err = s->answers ? sl_answers_start(&s->answering, s->share) : 0;
	if (err)
		sl_error("share: no thread for answers: %s", strerror(-err));
	return err;
}

static int open_share(void *state, const struct sl_env *env)
{
	struct share *s = state;
	const struct sl_shared_wish wish = {.selection = s->results,
					    .assembled = s->image == ASSEMBLED,
					    .facts = s->facts,
					    .sink = "share"};
	int err;

	s->given = s->published = s->skipped = s->bytes = s->messages = 0;
	s->published_ns = s->looked_ns = 0;
	memset(&s->answering, 0, sizeof(s->answering));
	s->last = (struct sl_share_counts){.published = 0};
	s->where[0] = 0;
	if (s->may_lack && !strcmp(s->results, "auto") && !sl_shared_auto(env))
		return lack("no stage makes a result, and no sink has raw pixels copied");
	err = sl_shared_open(&s->shared, env, &wish);
	return err ? err : open_it(s, env);
}

static int close_share(void *state, const struct sl_status *status)
{
	struct share *s = state;

	sl_answers_stop(&s->answering);
	if (s->share)
		sl_share_count(s->share, &s->last);
	sl_share_close(s->share);
	s->share = NULL;
	sl_shared_close(&s->shared);
	return 0;
}

/* ---- frames ---- */

/* What followers say has no meaning here: it is taken, so that it does not fill memory. */
static void take_messages(struct share *s, uint64_t now_ns)
{
	struct sl_share_message message;

	if (s->answers || now_ns - s->looked_ns < LOOK_NS)
		return;
	s->looked_ns = now_ns;
	while (!sl_share_receive(s->share, 0, &message)) {
		s->messages++;
		sl_remote_free(message.data);
	}
}

static bool is_due(struct share *s, uint64_t now_ns)
{
	if (s->given++ % s->every)
		return false;
	return !(s->latest_Hz > 0) || !s->published_ns ||
	       (double)(now_ns - s->published_ns) * s->latest_Hz >= 1e9;
}

/* The time of the commit is known before a follower can answer, and then as it is. */
static void publish(struct share *s, const struct sl_share_note *note, const void *const *from)
{
	if (s->answers)
		sl_answers_committed(&s->answering, s->published, sl_clock_ns());
	s->published = 1 + sl_share_push(s->share, note, from);
	if (s->answers)
		sl_answers_committed(&s->answering, s->published - 1, sl_clock_ns());
}

static int put(void *state, struct sl_frame *frame)
{
	const void *from[SL_SHARE_ARRAYS] = {NULL};
	struct share *s = state;
	uint64_t now_ns = sl_clock_ns();
	struct sl_share_note note;

	if (!s->share)
		return 0; /* may_lack */
	take_messages(s, now_ns);
	if (!is_due(s, now_ns)) {
		s->skipped++;
		return 0;
	}
	sl_shared_note(frame, &note);
	sl_shared_fill(&s->shared, frame, s->share, &note, from);
	now_ns = sl_clock_ns();
	if (frame->hop_ns[SL_HOP_EVENT])
		note.user[1] = now_ns - frame->hop_ns[SL_HOP_EVENT];
	publish(s, &note, from);
	s->published_ns = now_ns;
	s->bytes += sl_share_describe(s->share)->data_bytes;
	return 0;
}

static void idle(void *state)
{
	struct share *s = state;

	if (s->share)
		take_messages(s, sl_clock_ns());
}

/* ---- what the pipeline asks ---- */

static uint32_t wants_more(const void *state)
{
	const struct share *s = state;
	bool by_name = s->results[0] && strcmp(s->results, "auto") != 0;
	uint32_t wants = by_name && sl_shared_selects(s->results, "raw") ? SL_WANT_RAW : 0;

	if (s->frames == ALL)
		wants |= SL_WANT_REJECTED | SL_WANT_BROKEN | SL_WANT_REJECTED_RESULTS |
			 SL_WANT_REJECTED_IMAGES;
	return wants;
}

static int reads(const void *state, const char *image)
{
	return sl_shared_selects(((const struct share *)state)->results, image);
}

static int own_thread(const void *state)
{
	return 1;
}

/* Frames that wait to be dropped need memory, which is not worth it where few are copied. */
static enum sl_on_slow on_slow(const void *state)
{
	const struct share *s = state;
	bool drops = s->on_slow == AUTO ? !(s->latest_Hz > 0) : s->on_slow == DROP;

	return drops ? SL_ON_SLOW_DROP : SL_ON_SLOW_WAIT;
}

/* What is in a share is stored nowhere. */
static int required(const void *state)
{
	return 0;
}

static const char *where(const void *state)
{
	return ((const struct share *)state)->where;
}

static void figures(const void *state, sl_sink_figure *figure, void *arg)
{
	const struct share *s = state;
	const struct sl_histogram *ns = &s->answering.ns;
	struct sl_share_counts counts = s->last;

	if (s->share)
		sl_share_count(s->share, &counts);
	figure(arg, "published", counts.published, 0);
	figure(arg, "skipped", s->skipped, 0);
	figure(arg, "bytes", s->bytes, 0);
	figure(arg, "followers", counts.peers, 0);
	figure(arg, "followers_ever", counts.peers_ever, 0);
	figure(arg, "followers_refused", counts.refused, 0);
	if (!s->answers) {
		figure(arg, "messages", s->messages, 0);
		return;
	}
	figure(arg, "messages", atomic_load(&s->answering.messages), 0);
	figure(arg, "answers", sl_histogram_count(ns), 0);
	figure(arg, "answer_us_p50", sl_histogram_percentile(ns, 0.5) / 1000, 0);
	figure(arg, "answer_us_p99", sl_histogram_percentile(ns, 0.99) / 1000, 0);
	figure(arg, "answer_us_max", sl_histogram_max(ns) / 1000, 0);
}

static void files(const void *state, sl_file_each *each, void *arg)
{
	const struct share *s = state;

	if (s->secret_file[0])
		each(arg, SL_FILE_READ, s->secret_file);
}

const struct sl_sink sl_sink_share = {
	.name = "share",
	.doc = "frames in memory that other programs follow while the run goes on",
	.state_bytes = sizeof(struct share),
	.options = options,
	.wants = SL_WANT_KEPT,
	.wants_more = wants_more,
	.reads = reads,
	.own_thread = own_thread,
	.idle = idle,
	.open = open_share,
	.put = put,
	.close = close_share,
	.where = where,
	.figures = figures,
	.files = files,
	.on_slow = on_slow,
	.required = required,
};
