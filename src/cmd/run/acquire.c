/* acquire.c - the loop of a run, from the start of its sources until every frame is settled; a
 * signal or an overrun stops them. */
#include "base/clock.h"
#include "base/log.h"
#include "cmd/run/child.h"
#include "cmd/run/state.h"
#include "cmd/signals.h"

enum { STOP_GRACE_S = 30 };

static void stop(struct sl_run_state *run)
{
	if (run->server)
		sl_server_stop(run->server);
	else
		sl_one_way_stop(&run->oneway);
	if (run->feroce)
		sl_front_ends_stop(run->receiver, run->feroce);
	sl_run_handover_stop(&run->handover);
	run->stopping = true;
}

/* That it vanished shows on its connection, where there is one. */
static void reap_child(struct sl_run_state *run)
{
	if (sl_child_alive(&run->child, &run->child_status) || !run->child_status || run->server)
		return;
	sl_error("the front end failed: nothing more will come");
	sl_one_way_hasten(&run->oneway);
}

void sl_run_acquire(struct sl_run_state *run)
{
	uint64_t stop_ns = 0;

	sl_progress_begin(&run->progress);
	if (run->server)
		sl_server_start(run->server);
	else
		sl_one_way_start(&run->oneway, sl_clock_ns());
	if (run->feroce)
		sl_feroce_server_start(run->feroce);
	while (!sl_receiver_done(run->receiver)) {
		sl_run_poll_front_ends(run);
		reap_child(run);
		if (!run->options.quiet && !run->options.still &&
		    sl_progress_is_due(&run->progress)) {
			sl_receiver_status(run->receiver, &run->status);
			sl_progress_draw(&run->progress, &run->status);
		}
		if (sl_signal && !run->stopping) {
			sl_info("%s: stopping the front ends; once more to give up at once",
				sl_signal_name(sl_signal));
			stop(run);
			stop_ns = sl_clock_ns();
		} else if (!run->stopping && sl_receiver_overrun(run->receiver)) {
			sl_error(
				"a front end was faster than its slots opened, and what came was "
				"turned away: stopping. Slow it down, give the ring more slots, or "
				"choose another ring.overrun");
			stop(run);
			stop_ns = sl_clock_ns();
		}
		if (run->stopping &&
		    sl_clock_ns() - stop_ns > STOP_GRACE_S * UINT64_C(1000000000)) {
			if (run->server) /* who does not stop is left behind */
				sl_server_abandon(run->server);
			if (run->feroce)
				sl_feroce_server_abandon(run->feroce);
			sl_run_handover_abandon(&run->handover);
			stop_ns = sl_clock_ns();
		}
	}
	if (run->server)
		sl_server_bye(run->server);
	if (!run->options.quiet && !run->options.still) {
		sl_receiver_status(run->receiver, &run->status);
		sl_progress_end(&run->progress, &run->status);
	}
}
