/* calls.c - a detector side behind its status socket: what requests of other programs do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "emulator/side/private.h"
#include "monitor/detector_json.h"

struct sl_side_view {
	struct sl_samples samples;
	struct sl_status status;
	struct sl_detector_module *module;
	uint32_t modules; /* there is room for */
	struct sl_detector_receiver receiver[SL_TRANSFERS];
};

/* ---- status ---- */

static enum sl_state state_of(void *arg)
{
	return sl_side_state(arg);
}

static uint64_t expected_of(const struct sl_side *s)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < s->streams; i++) {
		uint64_t frames = s->stream[i].expected;

		if (frames == UINT64_MAX)
			return 0;
		most = frames > most ? frames : most;
	}
	return most;
}

/* What the experiment asks for, as a session says it. */
static void describe_detector(const struct sl_side *s, struct sl_status *now)
{
	const struct sl_experiment *e = s->streams ? s->stream[0].experiment : NULL;

	if (!e)
		return;
	snprintf(now->detector, sizeof(now->detector), "%s", e->generator->name);
	now->detector_frames = e->run.frames;
	now->detector_dark_frames = e->run.dark_frames;
	now->detector_rate_Hz = e->run.frame_rate_Hz;
}

/* Frames that every module of every transfer has sent. */
static void count_frames(const struct sl_side *s, struct sl_status *now)
{
	uint64_t least = UINT64_MAX;

	now->pixel_bytes = 0;
	for (unsigned i = 0; i < s->streams; i++) {
		uint64_t sent = sl_side_sent(&s->stream[i], &now->pixel_bytes);

		least = sent < least ? sent : least;
	}
	now->frames = s->streams ? least : 0;
}

static void look(void *arg, struct sl_registry_facts *facts)
{
	struct sl_side *s = arg;
	struct sl_side_view *view = s->view;
	struct sl_status *now = &view->status;
	uint64_t before;

	pthread_mutex_lock(&s->lock);
	before = now->run == s->run ? now->pixel_bytes : 0;
	count_frames(s, now);
	describe_detector(s, now);
	now->bytes = sizeof(*now);
	now->state = atomic_load(&s->state);
	now->result = now->state == SL_STATE_ENDED || now->state == SL_STATE_FAULT ? s->result : -1;
	now->taken_ns = sl_clock_ns();
	if (now->run != s->run)
		now->first_ns = now->last_ns = 0;
	now->run = s->run;
	now->started_unix_ns = s->started_unix_ns;
	now->ended_unix_ns = s->ended_unix_ns;
	now->expected_frames = expected_of(s);
	now->one_way = s->streams && s->stream[0].experiment->link->oneway;
	snprintf(now->stopped_by, sizeof(now->stopped_by), "%s", s->reason);
	snprintf(now->transfer, sizeof(now->transfer), "%s", s->options.transfer);
	snprintf(now->link, sizeof(now->link), "%s",
		 s->streams ? s->stream[0].experiment->link->name : "");
	pthread_mutex_unlock(&s->lock);
	snprintf(now->experiment, sizeof(now->experiment), "%s", s->options.path);
	snprintf(now->session, sizeof(now->session), "%s", sl_socket_name(s->socket));
	if (now->pixel_bytes > before)
		now->last_ns = now->taken_ns;
	if (now->last_ns && !now->first_ns)
		now->first_ns = now->taken_ns;
	facts->run = now->run;
}

static void take_sample(void *arg)
{
	struct sl_side_view *view = ((struct sl_side *)arg)->view;

	sl_samples_take(&view->samples, &view->status);
}

static const char *waits_for(const struct sl_side_stream *stream)
{
	static const char *const name[SL_EXCHANGE_PHASES] = {
		[SL_EXCHANGE_CONNECT] = "receiver", [SL_EXCHANGE_AGAIN] = "next_run",
		[SL_EXCHANGE_PLAN] = "plans",	    [SL_EXCHANGE_READY] = "receiver_start",
		[SL_EXCHANGE_HOLD] = "start",	    [SL_EXCHANGE_STORE] = "stored",
	};
	bool held = false;

	if (stream->phase == SL_EXCHANGE_SEND && stream->counting)
		sl_emulator_held_ns(stream->emulator, &held);
	return held ? "credits" : name[stream->phase];
}

static bool make_room(struct sl_side_view *view, uint32_t modules)
{
	struct sl_detector_module *more;

	if (modules <= view->modules)
		return true;
	more = realloc(view->module, modules * sizeof(*more));
	if (!more)
		return false;
	view->module = more;
	view->modules = modules;
	return true;
}

/* With the lock held. */
static void describe_stream(const struct sl_side_stream *stream, struct sl_side_view *view,
			    struct sl_detector_status *d)
{
	const struct sl_control_options *control = &stream->experiment->control;
	const struct sl_emulator *em = stream->emulator;
	bool held = false;

	for (uint32_t m = 0; m < stream->modules; m++)
		view->module[d->modules++] = (struct sl_detector_module){
			stream->transfer, stream->first_module + m, sl_side_module_sent(stream, m)};
	for (unsigned k = 0; em && k < SL_FAULT_KINDS; k++)
		d->fault[k] += atomic_load(&em->faults[k]) - stream->faults_before[k];
	if (em)
		d->held_ns += sl_emulator_held_ns(em, &held) - stream->held_before_ns;
	d->held |= held;
	if (d->one_way)
		return;
	view->receiver[d->receivers++] = (struct sl_detector_receiver){
		.transfer = stream->transfer,
		.address = control->address,
		.port = control->port,
		.waits_for = waits_for(stream),
		.connected = stream->connected,
		.gone = stream->gone,
		.refusal = stream->refusal,
	};
}

/* With the lock held. */
static void describe(const struct sl_side *s, struct sl_detector_status *d)
{
	uint32_t modules = 0;

	for (unsigned i = 0; i < s->streams; i++)
		modules += s->stream[i].modules;
	*d = (struct sl_detector_status){
		.one_way = s->view->status.one_way,
		.rate_Hz = s->streams ? s->stream[0].experiment->run.frame_rate_Hz : 0,
		.set = (const char *const *)s->set + s->option_sets,
		.sets = s->sets - s->option_sets,
	};
	for (unsigned i = 0; make_room(s->view, modules) && i < s->streams; i++)
		describe_stream(&s->stream[i], s->view, d);
	d->module = s->view->module;
	d->receiver = s->view->receiver;
}

static char *status_line(void *arg, const char *call)
{
	struct sl_side *s = arg;
	struct sl_side_view *view = s->view;
	struct sl_detector_status detector;
	struct sl_error error;
	struct sl_status_document document = {
		.status = &view->status, .error = &error, .detector = &detector};
	char *line;

	document.rates = sl_samples_rates(&view->samples, &view->status);
	document.taken_unix_ns = sl_clock_unix_ns();
	/* Texts of the experiments are read until the line is made: no configure() may come
	 * between. */
	pthread_mutex_lock(&s->lock);
	error = s->error;
	describe(s, &detector);
	line = sl_reply_status(call, &document);
	pthread_mutex_unlock(&s->lock);
	return line;
}

/* ---- calls ---- */

static int not_now(struct sl_side *s, const char *name, struct sl_error *error)
{
	return sl_socket_refuse(error, SL_ERROR_STATE,
				"sluice list states shows what is possible when",
				"%s: not possible while the detector side is %s", name,
				sl_state_name(sl_side_state(s)));
}

static int check(void *arg, const struct sl_request *r, struct sl_error *error)
{
	struct sl_side *s = arg;

	if (r->call == SL_REQUEST_PAUSE || r->call == SL_REQUEST_RESUME)
		return sl_socket_refuse(error, SL_ERROR_STATE,
					"pause and resume the session that receives",
					"%s: a detector side is paced by the credits of its "
					"receiver",
					r->name);
	if (r->call == SL_REQUEST_START && r->frames)
		return sl_socket_refuse(error, SL_ERROR_REQUEST, "tell the session that receives",
					"start: a detector side is paced by the credits of its "
					"receiver, and takes no 'frames'");
	return sl_side_takes(s, r->call) ? 0 : not_now(s, r->name, error);
}

static int change(void *arg, const struct sl_request *r, struct sl_error *error)
{
	struct sl_side *s = arg;
	int err = 0;

	switch (r->call) {
	case SL_REQUEST_ARM:
		err = sl_side_arm(s);
		break;
	case SL_REQUEST_START:
		err = sl_side_start(s);
		break;
	case SL_REQUEST_STOP:
		sl_side_stop(s, r->reason);
		break;
	case SL_REQUEST_ABORT:
		sl_side_abort(s, r->reason);
		break;
	case SL_REQUEST_CLOSE:
		sl_socket_ask_to_close(s->socket);
		sl_side_stop(s, "close");
		break;
	default:
		err = -EPROTO;
	}
	return err ? not_now(s, r->name, error) : 0;
}

static int configure(void *arg, const struct sl_request *r, struct sl_error *error)
{
	struct sl_side *s = arg;
	int err = sl_side_configure(s, r->set, r->sets);

	if (!err)
		return 0;
	if (err == -EPROTO && !sl_side_takes(s, SL_REQUEST_CONFIGURE))
		return not_now(s, r->name, error);
	sl_side_error(s, error);
	return err;
}

static char *metadata(void *arg, const struct sl_request *r, struct sl_error *error)
{
	sl_socket_refuse(error, SL_ERROR_REQUEST, "give them to the session that receives",
			 "a detector side has no metadata");
	return NULL;
}

/* ---- open and close ---- */

int sl_side_open_socket(struct sl_side *s)
{
	static const struct sl_socket_ops ops = {
		.noun = "detector side",
		.kind = "detector",
		.state = state_of,
		.look = look,
		.sample = take_sample,
		.status = status_line,
		.check = check,
		.change = change,
		.configure = configure,
		.metadata = metadata,
	};
	const struct sl_socket_options options = {
		.name = s->options.name,
		.experiment = s->options.path,
		.any_name = s->options.any_name,
		.ops = &ops,
		.arg = s,
	};
	char why[SL_REGISTRY_PATH + 200] = "no memory for the status socket";
	int err;

	s->view = calloc(1, sizeof(*s->view));
	err = s->view ? sl_socket_open(&options, &s->socket, why, sizeof(why)) : -ENOMEM;
	if (err)
		sl_error("%s", why);
	return err;
}

void sl_side_close_socket(struct sl_side *s)
{
	sl_socket_close(s->socket);
	if (s->view)
		free(s->view->module);
	free(s->view);
}
