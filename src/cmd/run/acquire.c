/* acquire.c - the loop of a run, from the start of its sources until every frame is settled; a
 * signal or an overrun stops them. */
#include "base/clock.h"
#include "base/log.h"
#include "cmd/run/child.h"
#include "cmd/run/state.h"
#include "cmd/signals.h"

#define STOP_GRACE_NS UINT64_C(30000000000)

static void stop(struct sl_run_state *run)
{
	sl_controls_stop(&run->controls);
	run->stopping_ns = sl_clock_ns();
}

static void reap_child(struct sl_run_state *run)
{
	if (sl_child_alive(&run->child, &run->child_status) || !run->child_status)
		return;
	if (sl_controls_hurry(&run->controls))
		sl_error("the front end failed: nothing more will come");
}

static void draw_progress(struct sl_run_state *run)
{
	if (run->options.quiet || run->options.still || !sl_progress_line_is_due(&run->progress))
		return;
	sl_receiver_status(run->receiver, &run->status);
	sl_progress_line_draw(&run->progress, &run->status);
}

static void check_stop(struct sl_run_state *run)
{
	if (!run->stopping_ns && sl_signal) {
		sl_info("%s: stopping the front ends; once more to give up at once",
			sl_signal_name(sl_signal));
		stop(run);
	} else if (!run->stopping_ns && sl_receiver_overrun(run->receiver)) {
		sl_error(
			"a front end was faster than its slots opened, and what came was turned "
			"away: stopping. Slow it down, give the ring more slots, or choose another "
			"ring.overrun");
		stop(run);
	} else if (run->stopping_ns && sl_clock_ns() - run->stopping_ns > STOP_GRACE_NS) {
		sl_controls_abandon(&run->controls); /* sources that did not stop are left behind */
		run->stopping_ns = sl_clock_ns();
	}
}

void sl_run_acquire(struct sl_run_state *run)
{
	sl_progress_line_begin(&run->progress);
	sl_controls_start(&run->controls);
	while (!sl_receiver_done(run->receiver)) {
		sl_run_poll_sources(run);
		reap_child(run);
		draw_progress(run);
		check_stop(run);
	}
	if (!run->options.quiet && !run->options.still) {
		sl_receiver_status(run->receiver, &run->status);
		sl_progress_line_end(&run->progress, &run->status);
	}
}
