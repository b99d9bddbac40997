/* private.h - a detector side inside, between the files of this folder.
 *
 * Threads:   the control thread owns `stream` and all in it, and the thread of a stream during a
 *            run; except: `lock` guards what the status is made of (marked below), `error` and
 *            `line`. `state` and the flags are atomic. While no run is under way (`busy` is not
 *            set) configure() has the streams. */
#ifndef SL_EMULATOR_SIDE_PRIVATE_H
#define SL_EMULATOR_SIDE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/thread.h"
#include "emulator/exchange.h"
#include "emulator/side/side.h"
#include "experiment/transfers.h"
#include "session/samples.h"
#include "session/socket/socket.h"

enum { SL_SIDE_SETS = 192 };

struct sl_side_stream { /* a transfer on its way to its receiver */
	struct sl_side *side;
	char transfer[SL_TRANSFER_NAME]; /* as it was asked for; "": the file has none */
	bool is_detector;		 /* that is the name of one of several detectors */
	struct sl_experiment *experiment;
	struct sl_emulator *emulator; /* NULL: not opened yet */
	struct sl_exchange exchange;
	struct sl_thread thread;
	int err; /* of its run */

	/* With the side's lock, for the status: */
	enum sl_exchange_phase phase;
	bool begun;    /* it has sent something in this run, or tried to */
	bool finished; /* its part of the run is over */
	bool counting; /* a plan is under way: `emulator` has its counts */
	bool connected;
	uint32_t gone;
	char refusal[256];
	uint32_t modules; /* 0: not opened yet */
	uint32_t first_module;
	uint64_t module_bytes;
	uint64_t expected; /* frames; UINT64_MAX: without end */
	uint64_t *before;  /* [modules] sent by earlier plans of this run */
	uint64_t *first;   /* [modules] first sequence of this plan */
	uint64_t faults_before[SL_FAULT_KINDS], held_before_ns; /* `emulator` had, before it */
};

struct sl_side_view; /* of the socket's thread: calls.c */

struct sl_side {
	struct sl_side_options options; /* its texts are copies */
	char *set[SL_SIDE_SETS];
	unsigned sets, option_sets; /* in use; those of the options */

	struct sl_log_target log; /* notes the first error of a step */
	struct sl_thread thread;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a wish, or the end of a run */
	_Atomic uint32_t state; /* enum sl_state */
	_Atomic int stop, hurry, abort, hold;
	bool busy;   /* with `lock`: a run or configure is under way */
	bool arming; /* with `lock`: a run is */
	bool wanted; /* with `lock`: the control thread is to begin a run */
	bool closing;

	struct sl_side_stream *stream;
	unsigned streams;

	/* With `lock`: */
	uint64_t run; /* counts from 1 */
	uint64_t started_unix_ns, ended_unix_ns;
	int result; /* -1: none yet */
	char reason[16];
	char line[512];
	struct sl_error error;

	struct sl_socket *socket;
	struct sl_side_view *view;
};

/* ---- side.c ---- */
void sl_side_set_state(struct sl_side *side, enum sl_state state);
int sl_side_fail(struct sl_side *side, enum sl_error_code code, int err, const char *message);
void sl_side_forget_line(struct sl_side *side);
/* Whether a call would be refused now. */
bool sl_side_takes(struct sl_side *side, enum sl_request_call call);

/* ---- streams.c ---- */
/* The experiments of all transfers that are sent; the former ones go only if that succeeds. */
int sl_side_read(struct sl_side *side);
void sl_side_free_streams(struct sl_side_stream *stream, unsigned streams);
/* A run begins: its counts are 0. With the side's lock held. */
void sl_side_begin_stream(struct sl_side_stream *stream);
/* Open the detector and make its frames ready; or, where it is open, begin as at first. */
int sl_side_open_stream(struct sl_side_stream *stream);
/* Frames that every module has sent in this run; bytes of pixels of all modules. With the side's
 * lock held. */
uint64_t sl_side_sent(const struct sl_side_stream *stream, uint64_t *pixel_bytes);
uint64_t sl_side_module_sent(const struct sl_side_stream *stream, uint32_t module);

/* ---- run.c ---- */
void *sl_side_main(void *side); /* the control thread */

/* ---- calls.c ---- */
int sl_side_open_socket(struct sl_side *side);
void sl_side_close_socket(struct sl_side *side);

#endif
