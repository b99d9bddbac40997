/* client.h - status and control of sessions that run in other processes: libsluice-client.so.
 *
 * Model:     a session with a name has a status socket (docs/reference/status.md). A program lists
 *            the sessions of this user on this host, connects to one by its name, and sends
 *            requests; each is a line of JSON, and so is its reply. The functions below make the
 *            usual requests; sl_remote_request() sends any.
 * Library:   needs libc, libjansson and, for shares of other hosts, libisal and libnettle: no HDF5.
 *            It can live in a process beside another HDF5, as in Python.
 * Threads:   a struct sl_remote is used by one thread at a time. No function logs.
 * Ownership: texts and lists that a function returns are freed with sl_remote_free().
 * Errors:    0 or -errno; `error` (NULL is fine) says more. Its code is a word of
 *            docs/reference/errors.md, where the session itself refused, or one of: "absent" (there
 *            is no such session), "crashed" (it ended without closing), "connection" (it ended, or
 *            hung up), "timeout", "reply" (not understood).
 * Time:      timeout_ms bounds the whole function; -1: no limit. */
#ifndef SLUICE_CLIENT_H
#define SLUICE_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_remote_error {
	char code[32]; /* a word */
	char message[512];
	char where[256]; /* "FILE:LINE"; empty: it comes from no file */
	char hint[256];	 /* what to do; empty: the message says it all */
};

struct sl_remote_info { /* a session or a detector side, without a connection to it */
	char name[64];
	int32_t alive; /* 0: crashed. It is not there any more, and did not close */
	int32_t pid;   /* for people: of a crashed session it may be another process by now */
	uint64_t started_unix_ns;
	uint64_t run; /* number of its run; 0: none yet */
	char experiment[1024];
	char root[1024], folder[1024]; /* of run folders; of its run. Empty: none */
	int32_t detector;	       /* 1: a detector side that stays (sluice emulate --serve) */
	int32_t unused;
	uint64_t reserved[7];
};

struct sl_remote_status { /* in brief */
	uint32_t bytes;	  /* of this structure, as the library knows it */
	int32_t drained;  /* paused, and everything that was sent is settled */
	char session[64], state[16], transfer[64];
	char result[16];		  /* empty: not known before the end */
	uint64_t run;			  /* its number; 0: none */
	uint64_t frames, expected_frames; /* settled; 0: endless or not known */
	uint64_t pixel_bytes;
	double frames_per_s, bytes_per_s; /* over the last second or two; below 0: not known */
	uint64_t lost;			  /* module-frames that did not arrive */
	uint64_t damaged;		  /* incomplete, overrun, unproven, refused, unwritten */
	uint64_t progress_age_ns; /* since a frame or a thread moved on; UINT64_MAX: never yet */
	char folder[1024], experiment[1024];
	char error[32]; /* code of the run's error; empty: none */
	char error_message[512];
	uint64_t reserved[16];
};

struct sl_remote;

/* All sessions of this user (and of /run/sluice), living and crashed, by name. -EPERM: the folder
 * of sockets is refused, since other users could enter it. */
int sl_remote_list(struct sl_remote_info **list, size_t *n);
/* The same as a JSON array, with the status of each that lives: what `sluice ps --json` prints. */
int sl_remote_list_json(int timeout_ms, char **json);
/* Remove what crashed sessions have left in the folder of sockets; returns how many. Their data
 * stay. */
int sl_remote_forget_crashed(void);

int sl_remote_open(const char *name, int timeout_ms, struct sl_remote **remote,
		   struct sl_remote_error *error);
void sl_remote_close(struct sl_remote *remote); /* NULL is fine */

/* json: one object without a line end. A refusal is a reply, too: it is returned, with -EPROTO.
 * reply: NULL: not wanted. After -ETIMEDOUT close the connection: the reply may still come. */
int sl_remote_request(struct sl_remote *remote, const char *json, int timeout_ms, char **reply,
		      struct sl_remote_error *error);
/* The next line without asking: after a "watch". */
int sl_remote_next(struct sl_remote *remote, int timeout_ms, char **line,
		   struct sl_remote_error *error);
void sl_remote_free(void *memory);

/* "arm", "start", "pause", "resume", "stop", "abort", "close". reason: of stop and abort, at most
 * 15 bytes; NULL: none. They return at once; the state follows. state: 16 bytes, gets the state
 * now; NULL: not wanted. */
int sl_remote_call(struct sl_remote *remote, const char *call, const char *reason, int timeout_ms,
		   char *state, struct sl_remote_error *error);
/* set: "path=value", as --set. */
int sl_remote_configure(struct sl_remote *remote, const char *const *set, size_t sets,
			int timeout_ms, struct sl_remote_error *error);
/* Until the state is one of these ("armed", "ended", ...), or the run has ended. state: 16 bytes,
 * gets the state; NULL: not wanted. */
int sl_remote_wait(struct sl_remote *remote, const char *const *states, size_t n, int timeout_ms,
		   char *state, struct sl_remote_error *error);
/* bytes: sizeof(*status) of the caller. */
int sl_remote_status(struct sl_remote *remote, int timeout_ms, struct sl_remote_status *status,
		     size_t bytes, struct sl_remote_error *error);
/* The same out of a line that a request or a watch has returned. */
int sl_remote_status_of(const char *line, struct sl_remote_status *status, size_t bytes);

/* value NULL: remove the key. A change during a run is that run's; between runs it is for the next
 * one and those after it. keep: for these in either case. */
int sl_remote_set_metadata(struct sl_remote *remote, const char *key, const char *value,
			   int timeout_ms, struct sl_remote_error *error);
int sl_remote_keep_metadata(struct sl_remote *remote, const char *key, const char *value,
			    int timeout_ms, struct sl_remote_error *error);
int sl_remote_metadata(struct sl_remote *remote, int timeout_ms,
		       void (*each)(void *arg, const char *key, const char *value), void *arg,
		       struct sl_remote_error *error);

/* The sinks of its run and where they write: a file, an address. */
int sl_remote_sinks(struct sl_remote *remote, int timeout_ms,
		    void (*each)(void *arg, const char *sink, const char *where), void *arg,
		    struct sl_remote_error *error);

#ifdef __cplusplus
}
#endif

#endif
