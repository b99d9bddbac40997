/* acquire.c - the loop of a run, from the start of its sources until every frame is settled; a wish
 * an overrun or a sink that is too slow stops them, and a wish pauses them. */
#include "base/clock.h"
#include "session/child.h"
#include "session/private.h"

#define STOP_GRACE_NS	 UINT64_C(30000000000)
#define ABANDON_GRACE_NS UINT64_C(5000000000)

static void stop(struct sl_session *s)
{
	sl_receiver_pause(s->receiver, false);
	s->paused = false;
	sl_controls_stop(&s->controls);
	s->stopping_ns = sl_clock_ns();
	sl_session_set_state(s, SL_STATE_STOPPING);
}

static void reap_child(struct sl_session *s)
{
	if (sl_child_alive(&s->child, &s->child_status) || !s->child_status)
		return;
	if (sl_controls_hurry(&s->controls))
		sl_error("the front end failed: nothing more will come");
}

static void check_stop(struct sl_session *s)
{
	if (!s->stopping_ns && sl_session_wants(s, SL_WISH_STOP | SL_WISH_ABORT | SL_WISH_CLOSE)) {
		stop(s);
	} else if (!s->stopping_ns && sl_receiver_overrun(s->receiver)) {
		sl_error(
			"a front end was faster than its slots opened, and what came was turned "
			"away: stopping. Slow it down, give the ring more slots, or choose another "
			"ring.overrun");
		stop(s);
	} else if (!s->stopping_ns && sl_receiver_too_slow(s->receiver)) {
		stop(s);
	}
	if (s->stopping_ns && (sl_session_wishes(s, SL_WISH_ABORT) ||
			       sl_clock_ns() - s->stopping_ns > STOP_GRACE_NS)) {
		sl_controls_abandon(&s->controls); /* sources that did not stop are left behind */
		s->abandoned_ns = s->stopping_ns = sl_clock_ns();
	}
	/* The last bound: no driver can keep a run from its end. */
	if (s->abandoned_ns && sl_clock_ns() - s->abandoned_ns > ABANDON_GRACE_NS)
		sl_receiver_abandon(s->receiver);
}

/* It was started, or resumed, for some frames: they have come. */
static void check_enough(struct sl_session *s)
{
	uint64_t next;

	if (atomic_load(&s->state) == SL_STATE_RUNNING &&
	    sl_receiver_is_drained(s->receiver, &next))
		sl_session_set_state(s, SL_STATE_PAUSED);
}

static void check_pause(struct sl_session *s)
{
	bool wanted = sl_session_wants(s, SL_WISH_PAUSE);

	if (s->stopping_ns)
		return;
	if (wanted && s->paused)
		check_enough(s);
	if (wanted == s->paused)
		return;
	s->paused = wanted;
	sl_receiver_pause(s->receiver, wanted);
	sl_session_set_state(s, wanted ? SL_STATE_PAUSED : SL_STATE_RUNNING);
}

void sl_session_acquire(struct sl_session *s)
{
	s->stopping_ns = s->abandoned_ns = 0;
	s->paused = sl_session_wants(s, SL_WISH_PAUSE); /* for some frames only */
	sl_controls_start(&s->controls);
	sl_session_set_state(s, SL_STATE_RUNNING);
	while (!sl_receiver_done(s->receiver)) {
		sl_session_poll_sources(s);
		reap_child(s);
		check_stop(s);
		check_pause(s);
	}
}
