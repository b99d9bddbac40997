/* telegram.h - telegrams: requests to sessions and detector sides as an XML document, and their
 * answers as another.
 *
 * Model:     a document becomes a list of requests (parse.c), which are carried out in order
 *            until one fails (carry.c); the answers become a document (write.c). Parsing and
 *            writing are pure functions. docs/reference/telegram.md describes the documents,
 *            docs/reference/telegram.xsd is their schema. How a request reaches a session is a
 *            table of operations: over the status sockets of this host (local.c), or as the service
 *            does it.
 * Threads:   any; each telegram is one thread's. Carrying out blocks as long as its waits say.
 * Ownership: texts of a request belong to its telegram; answers to their caller
 *            (sl_telegram_answers_free).
 * Bounds:    256 KiB a document, 64 requests, 256 sets and metadata in all; no DOCTYPE, no entities
 *            but the five of XML. */
#ifndef SL_TELEGRAM_TELEGRAM_H
#define SL_TELEGRAM_TELEGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/client.h>

#define SL_TELEGRAM_NAMESPACE "urn:sluice:telegram:1"

enum {
	SL_TELEGRAM_VERSION = 1,
	SL_TELEGRAM_BYTES = 256 << 10,
	SL_TELEGRAM_REQUESTS = 64,
	SL_TELEGRAM_PAIRS = 256,
	SL_TELEGRAM_TEXT = 4000, /* bytes of a set or of a value */
	SL_TELEGRAM_KEY = 256,	 /* of a path */
	SL_TELEGRAM_ID = 64,
	SL_TELEGRAM_REASON = 15,
	SL_TELEGRAM_WAIT_MAX_S = 86400,
};

enum sl_telegram_call {
	SL_TELEGRAM_CAPABILITIES,
	SL_TELEGRAM_STATUS,
	SL_TELEGRAM_CONFIGURE,
	SL_TELEGRAM_ARM,
	SL_TELEGRAM_START,
	SL_TELEGRAM_PAUSE,
	SL_TELEGRAM_RESUME,
	SL_TELEGRAM_STOP,
	SL_TELEGRAM_ABORT,
	SL_TELEGRAM_METADATA,
	SL_TELEGRAM_WAIT,
	SL_TELEGRAM_CLOSE,
	SL_TELEGRAM_CALLS,
};
const char *sl_telegram_call_name(enum sl_telegram_call call);

struct sl_telegram_pair {
	const char *key;   /* of metadata; "path=value" of configure */
	const char *value; /* NULL: remove it; of configure NULL */
};

struct sl_telegram_request {
	enum sl_telegram_call call;
	const char *to;	    /* name of a session or detector side; of capabilities "" */
	const char *reason; /* of stop and abort; NULL: none */
	const char *state;  /* of wait */
	double wait_s;	    /* until it has had its effect; below 0: do not wait */
	bool keep;	    /* of metadata: for later runs, too */
	const struct sl_telegram_pair *pair;
	unsigned pairs;
};

struct sl_telegram {
	char id[SL_TELEGRAM_ID + 1]; /* comes back in the reply; "": none */
	unsigned requests;
	struct sl_telegram_request request[SL_TELEGRAM_REQUESTS];
	struct sl_telegram_pair pair[SL_TELEGRAM_PAIRS];
	char *text; /* of all of them */
};

enum sl_telegram_result { SL_TELEGRAM_SKIPPED, SL_TELEGRAM_DONE, SL_TELEGRAM_FAILED };

struct json_t;
struct sl_telegram_answer {
	enum sl_telegram_result result;
	char state[16]; /* of the session; "": not known */
	struct sl_remote_error error;
	/* NULL: none. As the status socket has them; of capabilities as capabilities.c makes it. */
	struct json_t *status, *metadata, *capabilities;
};

/* ---- parse.c ---- */
/* -EINVAL: `error` says what is wrong, where ("line 3, column 7"). -ENOMEM likewise. */
int sl_telegram_parse(const void *document, size_t bytes, struct sl_telegram **telegram,
		      struct sl_remote_error *error);
void sl_telegram_free(struct sl_telegram *telegram); /* NULL is fine */

/* ---- write.c ---- */
/* The reply (malloc'ed). telegram NULL: it was not understood, and `error` says why. answer: one
 * for each request. NULL: no memory. */
char *sl_telegram_write(const struct sl_telegram *telegram, const struct sl_telegram_answer *answer,
			const struct sl_remote_error *error);

/* ---- carry.c ---- */
struct sl_telegram_ops {
	/* Any call but capabilities, status and wait. 0, or -errno with `error`. state: 16 bytes;
	 * metadata: what the session has, of that call. */
	int (*call)(void *arg, const struct sl_telegram_request *request, char *state,
		    struct json_t **metadata, struct sl_remote_error *error);
	int (*status)(void *arg, const char *name, struct json_t **status,
		      struct sl_remote_error *error);
	/* Waits end early: the program ends. NULL: never. */
	bool (*ends)(void *arg);
};
/* In order, the first failure stops. Returns 0, or -1 where one has failed. */
int sl_telegram_carry_out(const struct sl_telegram *telegram, const struct sl_telegram_ops *ops,
			  void *arg, struct sl_telegram_answer *answer);
void sl_telegram_answers_free(struct sl_telegram_answer *answer, unsigned n);
/* All of it: document to document. NULL: no memory. failed: whether something was. */
char *sl_telegram_serve(const void *document, size_t bytes, const struct sl_telegram_ops *ops,
			void *arg, bool *failed);

/* ---- local.c ---- */
/* Over the status sockets of this user on this host. */
extern const struct sl_telegram_ops sl_telegram_local;

/* ---- capabilities.c ---- */
/* This program: its version, calls and add-ons; this host: its name, sessions and detector
 * sides. */
struct json_t *sl_telegram_capabilities(void);

#endif
