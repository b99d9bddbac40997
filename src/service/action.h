/* action.h - what clients can have done, whatever they speak: an action takes JSON and gives JSON.
 *
 * Model:     routes fill in an action, run it, and send its answer; so can other front ends of the
 *            service (XML documents). The action checks what it is given, and the role.
 * Threads:   workers: actions may block for half a minute.
 * Ownership: `answer` is the caller's reference. */
#ifndef SL_SERVICE_ACTION_H
#define SL_SERVICE_ACTION_H

#include <jansson.h>

#include <sluice/client.h>

#include "service/http/http.h"

struct sl_service;

struct sl_action {
	struct sl_service *service;
	enum sl_role role;
	const char *name;   /* of the session or experiment */
	const json_t *body; /* an object */
	/* Of the action: */
	unsigned status;	  /* of HTTP */
	json_t *answer;		  /* NULL: none, or no memory where status is 0 */
	char code[32], note[200]; /* of an error; for the audit log */
};

/* The answer becomes an error; -1. also: consumed, members beside "error"; NULL: none. */
int sl_action_fail(struct sl_action *action, unsigned status, const char *code, const char *where,
		   const char *hint, json_t *also, const char *format, ...)
	__attribute__((format(printf, 7, 8)));
int sl_action_fail_remote(struct sl_action *action, const struct sl_remote_error *error);
/* 422 with the errors of a check. */
int sl_action_fail_check(struct sl_action *action, json_t *errors);
/* consumed */
int sl_action_done(struct sl_action *action, unsigned status, json_t *answer);
/* 0: the body has no other members than these (NULL-terminated); -1: the error is set. */
int sl_action_only(struct sl_action *action, const char *const *members);
/* A text of the body; "": it has none. -1: it is no text, or longer than a name may be. */
int sl_action_text(struct sl_action *action, const char *member, const char **text);

/* ---- sessions ---- */
/* {experiment, name?, transfer?, parameters?, set?, outcomes?} */
void sl_action_start_session(struct sl_action *action);
void sl_action_configure_session(struct sl_action *action); /* {parameters?, set?} */
void sl_action_close_session(struct sl_action *action);
/* call: "arm", "start", "pause", "resume", "stop", "abort"; {reason?} */
void sl_action_call_session(struct sl_action *action, const char *call);
void sl_action_metadata(struct sl_action *action); /* {set?, keep?} */

/* Run an action for a request, and send its answer. */
void sl_action_answer(struct sl_http_request *request, struct sl_service *service,
		      void (*run)(struct sl_action *action));

#endif
