/* states.c - the table of calls and states. */
#include "session/states.h"

#define IN(name) (1u << SL_STATE_##name)

enum { ANY = (1 << SL_STATES) - 1 };

const struct sl_session_rule sl_session_rules[SL_CALLS] = {
	[SL_CALL_CONFIGURE] = {"configure", "read the experiment again, with other overrides",
			       IN(CONFIGURED) | IN(ENDED) | IN(FAULT), SL_STATE_CONFIGURED},
	[SL_CALL_ARM] = {"arm", "open outputs, memory and link, and plan the sources",
			 IN(CONFIGURED) | IN(ENDED), SL_STATE_ARMED},
	[SL_CALL_START] = {"start", "let the sources send; arms first where that is due",
			   IN(CONFIGURED) | IN(ARMED) | IN(ENDED), SL_STATE_RUNNING},
	[SL_CALL_PAUSE] = {"pause", "give no more credits from the next frame on",
			   IN(RUNNING) | IN(PAUSED), SL_STATE_PAUSED},
	[SL_CALL_RESUME] = {"resume", "give credits again", IN(RUNNING) | IN(PAUSED),
			    SL_STATE_RUNNING},
	/* A stop that comes too late or too early is no mistake. */
	[SL_CALL_STOP] =
		{"stop",
		 "ask the sources to end; what they sent is processed and stored. No effect "
		 "when no run is under way",
		 ANY, SL_STATE_ENDED},
	[SL_CALL_ABORT] = {"abort", "as stop, without waiting for the sources", ANY,
			   SL_STATE_ENDED},
};

bool sl_session_allows(enum sl_session_call call, enum sl_state state)
{
	return sl_session_rules[call].from >> state & 1;
}

const char *sl_state_doc(enum sl_state state)
{
	static const char *const doc[SL_STATES] = {
		[SL_STATE_IDLE] = "there is no experiment",
		[SL_STATE_CONFIGURED] =
			"the experiment is read and checked; while it is being armed, "
			"sources are planned",
		[SL_STATE_ARMED] = "outputs and memory are there, every source has a plan",
		[SL_STATE_RUNNING] = "sources send",
		[SL_STATE_PAUSED] = "sources get no credits; `drained` says when all that was sent "
				    "is settled",
		[SL_STATE_STOPPING] =
			"sources were asked to end; what they sent is still processed",
		[SL_STATE_ENDED] = "files are closed and the ledger is final; the session can be "
				   "armed again",
		[SL_STATE_FAULT] = "the run could not begin, or a configure was refused; the error "
				   "says why",
	};

	return state < SL_STATES ? doc[state] : "";
}
