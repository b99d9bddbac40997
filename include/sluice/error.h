/* error.h - what kept a run from running, in a word that programs can compare.
 *
 * Model:     one table of words serves the API, the exit status, the log and the reference page
 *            (docs/reference/errors.md, which `sluice list errors --markdown` prints). A word
 *            never changes its meaning; new ones are added at the end.
 * Ownership: plain memory of the caller, without pointers. */
#ifndef SLUICE_ERROR_H
#define SLUICE_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sl_error_code {
	SL_ERROR_NONE,
	SL_ERROR_EXPERIMENT, /* the experiment or an override is wrong */
	SL_ERROR_OUTPUT,     /* a file cannot be written, or is in the way of another */
	SL_ERROR_ADDRESS,    /* an address or port is in use, or not of this host */
	SL_ERROR_MEMORY,
	SL_ERROR_SOURCES,   /* not every module was offered in time */
	SL_ERROR_FRONT_END, /* the front end that the run started failed */
	SL_ERROR_KEEPER,    /* what a keeper holds cannot be taken over, or not be stored */
	SL_ERROR_STOPPED,   /* a stop came before the start */
	SL_ERROR_SYSTEM,    /* something else; the message says what */
	SL_ERROR_NAME,	    /* the session's name is taken, or is none */
	SL_ERROR_SOCKET,    /* the status socket cannot be made */
	SL_ERROR_STATE,	    /* the call is not possible in this state */
	SL_ERROR_REQUEST,   /* a request on the socket is wrong */
	SL_ERROR_ACCESS,    /* a client of the socket is not let in */
	SL_ERROR_TIMEOUT,   /* what was waited for did not come in time */
	SL_ERROR_RECEIVER,  /* of a detector side: no receiver, it refuses, or it is gone */
	SL_ERRORS,
};

struct sl_error {
	uint32_t code; /* enum sl_error_code */
	int32_t err;   /* -errno */
	char message[512];
	char where[256]; /* "FILE:LINE"; empty: it comes from no file */
	char hint[256];	 /* what to do; empty: the message says it all */
};

const char *sl_error_name(enum sl_error_code code); /* "experiment", ... */
const char *sl_error_doc(enum sl_error_code code);  /* one sentence */
int sl_error_exit(enum sl_error_code code);	    /* exit status of `sluice` */

#ifdef __cplusplus
}
#endif

#endif
