/* watch.c - seats for FEROCE front ends: asking those that wait to be asked, how far each has come,
 * and when it is over. */
#include "base/log.h"
#include "control/feroce/host.h"

#define MS UINT64_C(1000000)

enum {
	ASK_MS = 1000, /* between OPEN requests: a core gives each a queue pair of its own */
	CLOSE_MS = 200,
	CLOSE_TRIES = 3,
	TELL_MS = 10000,  /* without a packet: worth a word, as a trigger may still come */
	GRACE_MS = 10000, /* for a CLOSE after a failed connection, without a limit of silence */
};

/* Tell a front end that its queue pair is no longer needed. */
static void let_go(struct sl_feroce_host *host, struct sl_feroce_seat *seat, uint64_t now_ns)
{
	sl_feroce_host_say(host, seat, SL_FEROCE_CLOSE, SL_FEROCE_ACK_NONE);
	seat->tries++;
	seat->asked_ns = now_ns;
}

static bool awaits_close(const struct sl_feroce_seat *seat)
{
	return seat->phase == SL_FEROCE_SEAT_OVER && !seat->closed && seat->tries < CLOSE_TRIES;
}

static void lose(struct sl_feroce_host *host, struct sl_feroce_seat *seat)
{
	seat->phase = SL_FEROCE_SEAT_OVER;
	host->ops->source_lost(host->arg, sl_feroce_host_module(host, seat));
}

/* The user learns which option ended it. */
static void lose_silent(struct sl_feroce_host *host, struct sl_feroce_seat *seat)
{
	uint32_t module = sl_feroce_host_module(host, seat);

	if (seat->seen.failed)
		sl_warn("the front end of module %u is lost: its reliable connection failed",
			module);
	else if (seat->seen.reached > seat->seen.first)
		sl_warn("the front end of module %u fell silent: nothing came for %g s "
			"(feroce.silence_s)",
			module, host->options.silence_ms * 1e-3);
	else
		sl_warn("the front end of module %u at %u.%u.%u.%u is given up: nothing came of it "
			"within %g s (feroce.first_s); its frames are missing",
			module, seat->ip >> 24, seat->ip >> 16 & 255, seat->ip >> 8 & 255,
			seat->ip & 255, host->options.first_ms * 1e-3);
	lose(host, seat);
}

void sl_feroce_host_end(struct sl_feroce_host *host, struct sl_feroce_seat *seat)
{
	uint32_t module = sl_feroce_host_module(host, seat);

	seat->phase = SL_FEROCE_SEAT_OVER;
	host->ops->progress(host->arg, module, &seat->seen);
	if (seat->seen.reached < host->options.frames && !host->stopping)
		sl_warn("module %u ends after %llu of the %llu frames of this run", module,
			(unsigned long long)seat->seen.reached,
			(unsigned long long)host->options.frames);
	host->ops->end(host->arg, module);
}

static void finish(struct sl_feroce_host *host, struct sl_feroce_seat *seat, uint64_t next)
{
	char why[160] = "the count is not taken";

	seat->phase = SL_FEROCE_SEAT_OVER;
	if (host->ops->count(host->arg, sl_feroce_host_module(host, seat), next, next, 0, true, why,
			     sizeof(why))) {
		sl_warn("the front end of module %u is lost: %s", sl_feroce_host_module(host, seat),
			why);
		lose(host, seat);
	}
}

/* A front end may wait for its trigger for as long as it likes, unless there is a limit for that,
 * too. */
static enum sl_watch_says look(struct sl_feroce_host *host, struct sl_feroce_seat *seat,
			       uint64_t now_ns)
{
	const struct sl_watch_limits limits = {.first_ns = host->options.first_ms * MS,
					       .silence_ns = host->options.silence_ms * MS};

	host->ops->progress(host->arg, sl_feroce_host_module(host, seat), &seat->seen);
	return sl_watch_module(&seat->watch, &limits, &seat->seen, now_ns);
}

/* A front end may wait for its trigger for hours, but a stray OPEN looks the same. */
static void wonder(struct sl_feroce_host *host, struct sl_feroce_seat *seat, uint64_t now_ns)
{
	if (seat->told || seat->seen.reached || now_ns - seat->watch.quiet_since_ns <= TELL_MS * MS)
		return;
	seat->told = true;
	sl_warn("module %u: its front end at %u.%u.%u.%u has a plan and has sent nothing for %d "
		"s%s",
		sl_feroce_host_module(host, seat), seat->ip >> 24, seat->ip >> 16 & 255,
		seat->ip >> 8 & 255, seat->ip & 255, TELL_MS / 1000,
		host->options.first_ms ? ""
				       : "; the run waits for it without a limit "
					 "(feroce.first_s)");
}

/* Its connection has failed. It may still close in good order, for as long as it may be silent. */
static bool has_failed(const struct sl_feroce_host *host, struct sl_feroce_seat *seat,
		       uint64_t now_ns)
{
	uint64_t grace_ms = host->options.silence_ms ? host->options.silence_ms : GRACE_MS;

	if (!seat->seen.failed)
		return false;
	if (!seat->failed_ns)
		seat->failed_ns = now_ns;
	return now_ns - seat->failed_ns > grace_ms * MS;
}

static void watch(struct sl_feroce_host *host, struct sl_feroce_seat *seat, uint64_t now_ns)
{
	const struct sl_feroce_options *o = &host->options;
	enum sl_watch_says says = look(host, seat, now_ns);

	wonder(host, seat, now_ns);
	if (o->frames && seat->seen.reached >= o->frames && sl_progress_between_blocks(&seat->seen))
		finish(host, seat, o->frames);
	else if (says == SL_WATCH_SILENT || has_failed(host, seat, now_ns))
		lose_silent(host, seat);
}

/* A front end that cannot go on, or does not, is let go; a block under way may be finished. */
static void wind_up(struct sl_feroce_host *host, struct sl_feroce_seat *seat, uint64_t now_ns)
{
	if (look(host, seat, now_ns) != SL_WATCH_ALIVE || seat->seen.failed)
		sl_feroce_host_end(host, seat);
}

static void ask(struct sl_feroce_host *host, struct sl_feroce_seat *seat, uint64_t now_ns)
{
	char why[160] = "the link does not take it";

	if (seat->asked_ns && now_ns - seat->asked_ns < ASK_MS * MS)
		return;
	seat->asked_ns = now_ns;
	if (!seat->plan.version && sl_feroce_host_plan(host, seat, why, sizeof(why))) {
		seat->plan.version = 0;
		sl_feroce_host_turn_away(host, seat->ip, why);
		return;
	}
	sl_feroce_host_say(host, seat, SL_FEROCE_OPEN, SL_FEROCE_ACK_NONE);
}

void sl_feroce_host_tick(struct sl_feroce_host *host, uint64_t now_ns)
{
	for (uint32_t i = 0; i < host->options.modules; i++) {
		struct sl_feroce_seat *seat = &host->seat[i];

		if (seat->phase == SL_FEROCE_SEAT_ASKED)
			ask(host, seat, now_ns);
		if (seat->phase == SL_FEROCE_SEAT_RUNNING)
			watch(host, seat, now_ns);
		if (seat->phase == SL_FEROCE_SEAT_STOPPING)
			wind_up(host, seat, now_ns);
		if (host->safe && awaits_close(seat) &&
		    (!seat->tries || now_ns - seat->asked_ns > CLOSE_MS * MS))
			let_go(host, seat, now_ns);
	}
}

void sl_feroce_host_start(struct sl_feroce_host *host)
{
	host->started = true;
	for (uint32_t i = 0; i < host->options.modules; i++) {
		struct sl_feroce_seat *seat = &host->seat[i];

		if (seat->phase != SL_FEROCE_SEAT_OPEN)
			continue;
		seat->phase = SL_FEROCE_SEAT_RUNNING;
		if (seat->held)
			sl_feroce_host_say(host, seat, SL_FEROCE_OPEN, SL_FEROCE_ACK);
		seat->held = false;
	}
}

void sl_feroce_host_stop(struct sl_feroce_host *host)
{
	struct sl_progress progress;

	if (host->stopping)
		return;
	host->stopping = true;
	host->ops->progress(host->arg, 0, &progress);
	host->ops->limit(host->arg, progress.opened);
	for (uint32_t i = 0; i < host->options.modules; i++)
		if (host->seat[i].phase == SL_FEROCE_SEAT_RUNNING)
			host->seat[i].phase = SL_FEROCE_SEAT_STOPPING;
}

void sl_feroce_host_abandon(struct sl_feroce_host *host)
{
	for (uint32_t i = 0; i < host->options.modules; i++)
		if (host->seat[i].phase == SL_FEROCE_SEAT_RUNNING ||
		    host->seat[i].phase == SL_FEROCE_SEAT_STOPPING) {
			sl_warn("the front end of module %u is left behind: it did not come to "
				"rest",
				i);
			lose(host, &host->seat[i]);
		}
}

void sl_feroce_host_bye(struct sl_feroce_host *host)
{
	host->safe = true;
}

bool sl_feroce_host_leaving(const struct sl_feroce_host *host)
{
	for (uint32_t i = 0; i < host->options.modules; i++)
		if (awaits_close(&host->seat[i]))
			return true;
	return false;
}

void sl_feroce_host_dismiss(struct sl_feroce_host *host)
{
	for (uint32_t i = 0; i < host->options.modules; i++)
		if (host->seat[i].phase >= SL_FEROCE_SEAT_OPEN && !host->seat[i].closed)
			sl_feroce_host_say(host, &host->seat[i], SL_FEROCE_CLOSE,
					   SL_FEROCE_ACK_NONE);
}
