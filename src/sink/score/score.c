/* score.c - compares what a trigger has found and decided with the truth, which this process
 * computes itself.
 *
 * The truth is that of this process's own copy of the detector. It is the truth of what came only
 * if that is what the emulator sends: so every frame's bytes are held against it first, and a frame
 * that is another is not scored, and makes the run fail. The condition that events are kept by is
 * the stage's own (its constant): it is applied to the truth, and cannot differ from what the
 * stage was told. Nothing is refused: other sinks get their frames whatever the score.
 *
 * Cost: a rendering at the start, then a comparison of bytes and a fraction of a microsecond per
 * event or track; for demonstrations and tests. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sink/score/score.h"

static const struct sl_score_kind *const kinds[] = {&sl_score_rings, &sl_score_tracks};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

struct score {
	const struct sl_env *env;
	const struct sl_score_kind *kind;
	struct sl_score score;
	uint8_t *bytes; /* [module_bytes]: for detectors that render into a buffer */
	double *truth;	/* [room][columns] */
	uint32_t room;

	uint64_t frames, events, dark, partial, foreign, unscored, unlisted;
	/* Events that are to be kept, and were; of these, that can be found; and the others. */
	uint64_t wanted, kept, findable, findable_kept, others, rejected;
};

static const struct sl_option options[] = {SL_OPTION_END};

static int reads(const void *state, const char *image)
{
	return !strcmp(image, "raw");
}

const char *sl_score_share(char text[16], uint64_t part, uint64_t whole)
{
	if (whole)
		snprintf(text, 16, "%.1f %%", 100. * (double)part / (double)whole);
	else
		snprintf(text, 16, "-");
	return text;
}

/* ---- open ---- */

static const struct sl_shape *find_result(const struct sl_env *env, const char *name)
{
	for (uint32_t i = 0; i < env->results; i++)
		if (!strcmp(env->result[i].name, name))
			return &env->result[i];
	return NULL;
}

/* The kind of trigger that there is, with its condition. */
static const struct sl_score_kind *find_kind(const struct sl_env *env, struct sl_score *score)
{
	for (uint32_t i = 0; i < env->constants; i++)
		for (int k = 0; k < KINDS; k++) {
			const struct sl_constant *c = &env->constant[i];

			if (strcmp(c->shape.name, kinds[k]->wanted) ||
			    sl_shape_bytes(&c->shape) != kinds[k]->wanted_bytes)
				continue;
			memcpy(&score->wanted, c->data, kinds[k]->wanted_bytes);
			return kinds[k];
		}
	return NULL;
}

static int find_columns(struct score *s, const struct sl_truth_column *column)
{
	for (s->score.columns = 0; column[s->score.columns].name;)
		s->score.columns++;
	for (int i = 0; i < SL_SCORE_COLUMNS && s->kind->column[i]; i++) {
		uint32_t at = 0;

		while (at < s->score.columns && strcmp(column[at].name, s->kind->column[i]))
			at++;
		if (at == s->score.columns) {
			sl_error("score: detector '%s' does not say the %s of what it makes, which "
				 "'%s' are compared by",
				 s->env->detector->name, s->kind->column[i], s->kind->result);
			return -ENOTSUP;
		}
		s->score.at[i] = (uint8_t)at;
	}
	return 0;
}

static int check(struct score *s, const struct sl_env *env)
{
	const struct sl_geometry *g = env->geometry;
	const struct sl_shape *raw = find_result(env, "raw"), *found;

	if (!env->detector || !env->detector->truth_rows || !env->detector->render) {
		sl_error("score: detector '%s' does not know what is in its frames: there is no "
			 "truth to compare with. Emulated ones do: 'rich' for the stage rings, "
			 "'tracker' for tracks",
			 g->detector);
		return -ENOTSUP;
	}
	s->kind = find_kind(env, &s->score);
	if (!s->kind) {
		sl_error("score: nothing to compare with the truth: neither the stage rings nor "
			 "tracks is in this experiment");
		return -EINVAL;
	}
	found = find_result(env, s->kind->result);
	if (!found || found->dtype != SL_F32 || found->dim[1] != s->kind->result_columns ||
	    (s->kind->list && !find_result(env, s->kind->list)) || !g->items || !raw ||
	    sl_shape_bytes(raw) != g->modules * g->module_bytes) {
		sl_error("score: there are no %s and raw bytes of all modules to compare",
			 s->kind->result);
		return -EINVAL;
	}
	return find_columns(s, env->detector->truth_columns);
}

static int open_score(void *state, const struct sl_env *env)
{
	struct score *s = state;
	int err;

	s->env = env;
	err = check(s, env);
	if (err)
		return err;
	s->score.sectors = env->geometry->rows / env->geometry->items;
	s->bytes = malloc(env->geometry->module_bytes);
	if (!s->bytes)
		return -ENOMEM;
	/* Now, and not while events wait for their answers. */
	return env->detector->prepare ? env->detector->prepare(env->detector_state) : 0;
}

/* ---- a frame ---- */

/* 1: the frame is the emulator's, 0: it is not. */
static int is_ours(struct score *s, const struct sl_frame *frame, const struct sl_array *raw)
{
	const struct sl_env *env = s->env;
	uint64_t bytes = env->geometry->module_bytes;

	for (uint32_t m = 0; m < env->geometry->modules; m++) {
		const void *truth;
		int r;

		if (sl_frame_misses(frame, m))
			continue;
		r = env->detector->render(env->detector_state, frame->number, m, 0, s->bytes,
					  &truth);
		if (r)
			return r;
		if (memcmp((const uint8_t *)raw->host + m * bytes, truth, bytes))
			return 0;
	}
	return 1;
}

/* How many rows of truth there are. */
static int fetch_truth(struct score *s, uint64_t number, uint32_t *rows)
{
	const struct sl_env *env = s->env;

	for (;;) {
		double *truth;
		void *scratch;
		uint32_t n = env->detector->truth_rows(env->detector_state, number, 0, s->truth,
						       s->room);

		*rows = n;
		if (n <= s->room)
			return 0;
		truth = realloc(s->truth, (size_t)n * s->score.columns * sizeof(*truth));
		if (!truth)
			return -ENOMEM;
		s->truth = truth;
		scratch = realloc(s->score.scratch, n * s->kind->scratch_bytes + 1);
		if (!scratch)
			return -ENOMEM;
		s->score.scratch = scratch;
		s->room = n;
	}
}

/* A frame's tables while its events are looked at one by one: all are in their order. */
struct cursor {
	const double *known;
	const float *found;
	const uint16_t *stub;
	uint32_t knowns, founds; /* left */
};

static void take_event(const struct score *s, struct cursor *at, struct sl_score_event *event)
{
	uint32_t width = s->kind->result_columns, n = 0, stubs = 0;

	event->known = at->known;
	while (n < at->knowns && at->known[n * s->score.columns + s->score.at[0]] <= event->number)
		n++;
	event->knowns = n;
	if (n) /* where nothing is known there is no table either */
		at->known += n * s->score.columns;
	at->knowns -= n;
	event->found = at->found;
	event->stub = at->stub;
	for (n = 0; n < at->founds && at->found[n * width] <= (float)event->number; n++)
		stubs += s->kind->list ? (uint32_t)at->found[n * width + s->kind->listed] : 0;
	event->founds = n;
	at->found += n * width;
	at->founds -= n;
	if (at->stub)
		at->stub += stubs;
}

static void judge(struct score *s, const struct sl_verdict *verdict, int should)
{
	/* One that is kept as a sample of the rejected was rejected. */
	bool keep = verdict->keep && verdict->reason != SL_REASON_PRESCALED;

	if (should == SL_SCORE_REJECT) {
		s->others++;
		s->rejected += !keep;
		return;
	}
	s->wanted++;
	s->kept += keep;
	s->findable += should == SL_SCORE_KEEP_FINDABLE;
	s->findable_kept += should == SL_SCORE_KEEP_FINDABLE && keep;
}

static void score_events(struct score *s, struct sl_frame *frame, const struct sl_array *raw,
			 uint32_t knowns)
{
	const struct sl_geometry *g = s->env->geometry;
	const struct sl_array *found = sl_frame_result(frame, s->kind->result);
	const struct sl_array *list = s->kind->list ? sl_frame_result(frame, s->kind->list) : NULL;
	struct cursor at = {.known = s->truth,
			    .knowns = knowns,
			    .found = found->host,
			    .founds = found->rows,
			    .stub = list ? list->host : NULL};
	struct sl_score_event event = {.raw = raw->host, .module_bytes = g->module_bytes};

	for (event.number = 0; event.number < frame->items; event.number++) {
		int should;

		take_event(s, &at, &event);
		/* Where modules have events of their own, those of a missing one did not come. */
		if (!g->items_shared && sl_frame_misses(frame, event.number / g->items))
			continue;
		should = s->kind->event(&s->score, &event);
		s->events++;
		if (s->kind->decides(&s->score))
			judge(s, &frame->verdict[event.number], should);
	}
}

/* 0 when it has been counted, whatever the score. */
static int score_frame(struct score *s, struct sl_frame *frame)
{
	const struct sl_array *raw = sl_frame_result(frame, "raw");
	uint32_t knowns;
	int r = raw && raw->host && sl_frame_result(frame, s->kind->result) ? 0 : -EINVAL;

	if (!r)
		r = is_ours(s, frame, raw);
	if (r == 0) {
		if (!s->foreign++)
			sl_error("score: frame %" PRIu64
				 " is not what the emulator makes of this detector's options: "
				 "there is no truth of it. Is it another front end's, or are its "
				 "options others?",
				 frame->number);
		return 0;
	}
	if (r > 0)
		r = fetch_truth(s, frame->number, &knowns);
	if (r)
		return r;
	score_events(s, frame, raw, knowns);
	s->unlisted += s->kind->unlisted(frame);
	s->frames++;
	return 0;
}

static int put(void *state, struct sl_frame *frame)
{
	struct score *s = state;
	int r;

	if (!sl_frame_goes_on(frame))
		return 0;
	if (frame->flags & SL_FRAME_DARK) {
		s->dark++;
		return 0;
	}
	/* Events that lack a part cannot be held against it that the part is not found. */
	if (frame->missing && s->env->geometry->items_shared) {
		s->partial++;
		return 0;
	}
	r = score_frame(s, frame);
	if (r && !s->unscored++)
		sl_error("score: frame %" PRIu64 " cannot be compared: %s", frame->number,
			 strerror(-r));
	return 0;
}

/* ---- the end ---- */

static void tell(const struct score *s)
{
	char kept[16], findable[16], rejected[16];

	s->kind->tell(&s->score);
	if (s->kind->decides(&s->score))
		sl_info("score: trigger: kept %s of %" PRIu64
			" events that truth would keep (%s of %" PRIu64
			" that can be found), rejected %s of %" PRIu64 " others",
			sl_score_share(kept, s->kept, s->wanted), s->wanted,
			sl_score_share(findable, s->findable_kept, s->findable), s->findable,
			sl_score_share(rejected, s->rejected, s->others), s->others);
	if (s->unlisted)
		sl_warn("score: %" PRIu64 " of the %s that were found had no room in the table, "
			"and count for not found",
			s->unlisted, s->kind->result);
}

static int close_score(void *state, const struct sl_status *status)
{
	struct score *s = state;

	if (status && s->kind && s->frames)
		tell(s);
	free(s->bytes);
	free(s->truth);
	free(s->score.scratch);
	s->bytes = NULL;
	s->truth = NULL;
	s->score.scratch = NULL;
	s->room = 0;
	return 0;
}

static void figures(const void *state, sl_sink_figure *figure, void *arg)
{
	const struct score *s = state;

	figure(arg, "frames", s->frames, 0);
	figure(arg, "events", s->events, 0);
	figure(arg, "frames_dark", s->dark, 0);
	figure(arg, "frames_partial", s->partial, 0);
	if (s->kind)
		s->kind->figures(&s->score, figure, arg);
	if (s->kind && s->kind->decides(&s->score)) {
		figure(arg, "wanted", s->wanted, 0);
		figure(arg, "wanted_kept", s->kept, 0);
		figure(arg, "findable", s->findable, 0);
		figure(arg, "findable_kept", s->findable_kept, 0);
		figure(arg, "others", s->others, 0);
		figure(arg, "others_rejected", s->rejected, 0);
	}
	figure(arg, "unlisted", s->unlisted, 0);
	figure(arg, "frames_without_truth", s->foreign, 1);
	figure(arg, "frames_unscored", s->unscored, 1);
}

const struct sl_sink sl_sink_score = {
	.name = "score",
	.doc = "compares rings or tracks, and the trigger's decisions, with the emulator's truth",
	.state_bytes = sizeof(struct score),
	.options = options,
	.wants = SL_WANT_KEPT | SL_WANT_REJECTED | SL_WANT_RAW | SL_WANT_REJECTED_RESULTS,
	.reads = reads,
	.open = open_score,
	.put = put,
	.close = close_score,
	.figures = figures,
};
