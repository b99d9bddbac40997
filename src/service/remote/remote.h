/* remote.h - the API of a service on this or another host, for `sluice ctl --host`. The one place
 * with <curl/curl.h> is call.c.
 *
 * Model:     a host is a URL and a token. A call is a request with its answer, whatever its status;
 *            an event stream calls a function for each event until that, or the service, ends it.
 *            Certificates are verified.
 * Threads:   a struct sl_api is used by one thread at a time.
 * Ownership: an answer is the caller's, sl_api_free().
 * Errors:    0, or -errno where there was no answer: sl_api_problem() says why. Nothing is logged.
 */
#ifndef SL_SERVICE_REMOTE_H
#define SL_SERVICE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct sl_api;

struct sl_api_options {
	const char *url;    /* "http://127.0.0.1:8765" */
	const char *token;  /* NULL: none */
	const char *ca;	    /* file of certificates that are trusted; NULL: those of the system */
	unsigned timeout_s; /* 0: 60 */
};

struct sl_api_answer {
	unsigned status;
	char type[64];
	char *body; /* with a final zero */
	size_t bytes;
};

/* -ENOTSUP: there is no libcurl in this program; -EINVAL: the URL is none. */
int sl_api_open(const struct sl_api_options *options, struct sl_api **host, char *why,
		size_t why_bytes);
void sl_api_close(struct sl_api *host); /* NULL is fine */
/* Any thread: the call that runs ends within a second, with an error, and so does every later
 * one. */
void sl_api_stop(struct sl_api *host);

/* path: "/api/v1/sessions". type: of the body; NULL: there is none. */
int sl_api_call(struct sl_api *host, const char *method, const char *path, const char *type,
		const char *body, size_t bytes, struct sl_api_answer *answer);
void sl_api_free(struct sl_api_answer *answer);

/* Until `each` returns false (0), or the stream ends (-ECONNRESET). An answer that is no stream:
 * -EPROTO, and it is in `answer`. */
int sl_api_events(struct sl_api *host, const char *path,
		  bool (*each)(void *arg, const char *name, const char *data), void *arg,
		  struct sl_api_answer *answer);

const char *sl_api_problem(const struct sl_api *host);

/* ---- answers for people: print.c ---- */

/* "message; hint", and the list of mistakes, of an error. */
void sl_api_print_error(FILE *out, const struct sl_api_answer *answer);
/* What a GET of that path is about, as a table or a few lines; false: it has no such form. */
bool sl_api_print(FILE *out, const char *path, const struct sl_api_answer *answer);
/* A text at "a.b" of a JSON answer; "": it has none. */
void sl_api_text(const struct sl_api_answer *answer, const char *key, char *text, size_t bytes);

/* ---- bodies ---- */

/* {"experiment": ..., "name": ..., "parameters": {...}, "set": [...]}: words "NAME=VALUE" become
 * parameters, with the type that their values look like. malloc'ed; NULL: a word is not of that
 * form (its index in *wrong), or no memory. experiment, name: NULL: without. */
char *sl_api_start_body(const char *experiment, const char *name, const char *const *word,
			size_t words, const char *const *set, size_t sets, size_t *wrong);
/* {"set": {KEY: VALUE or null}, "keep": true} */
char *sl_api_metadata_body(const char *const *word, size_t words, bool keep, size_t *wrong);
/* {"reason": ...}; NULL or "": {} */
char *sl_api_reason_body(const char *reason);

#endif
