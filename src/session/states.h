/* states.h - which calls a session takes in which state: the one table for code and docs. */
#ifndef SL_SESSION_STATES_H
#define SL_SESSION_STATES_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/sluice.h>

enum sl_session_call {
	SL_CALL_CONFIGURE,
	SL_CALL_ARM,
	SL_CALL_START,
	SL_CALL_PAUSE,
	SL_CALL_RESUME,
	SL_CALL_STOP,
	SL_CALL_ABORT,
	SL_CALLS,
};

struct sl_session_rule {
	const char *name, *doc;
	uint32_t from; /* states in which it is possible: bits */
	enum sl_state to;
};

extern const struct sl_session_rule sl_session_rules[SL_CALLS];

bool sl_session_allows(enum sl_session_call call, enum sl_state state);
const char *sl_state_doc(enum sl_state state); /* one sentence */

#endif
