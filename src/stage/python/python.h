/* python.h - the stage `python`: frames are judged by a script, in processes of its own.
 *
 * Model:     finish() copies what the script is to see of a frame into a place of shared memory and
 *            orders a process to judge it. It goes through the frames of a batch in this way, as
 *            many at a time as there are processes, and waits for their answers. A supervisor, a
 *            thread of the stage, starts the processes, writes what they print to the log, and
 *            starts again those that end.
 *
 *              place of shared memory   note | array | array ...      read only for the script
 *              process                 DOWN -> IDLE <-> BUSY -> OVERDUE -> IDLE
 *                                                     BROKEN, from BUSY
 *
 *            Each process has a place, and one more is filled with the next frame meanwhile. A
 *            place is not written while a process may be reading it: a process that owes an answer
 *            gets no other frame.
 * Deadline:  a frame's time begins when a process gets it, or, if every process owes an answer
 *            whose time has passed, when its turn comes. When the time is over the frame is kept
 *            without a verdict. A process that owes an answer for twice the deadline is not waited
 *            for any longer. So finish() takes at most the deadline for each frame, and no time for
 *            frames of a batch behind a process that hangs.
 * Owner:     `state` says whose a process is: finish() owns it while it is BUSY, from when it has
 *            taken it out of IDLE or OVERDUE by compare and swap; the supervisor in DOWN and
 *            BROKEN, and it may take it out of IDLE and OVERDUE, too. What is in the structure
 *            belongs to the owner, but for what is atomic or said to be the supervisor's.
 * Trust:     the script's processes can write to nothing of the run's but their socket, and the
 *            pipes of what they print. */
#ifndef SL_STAGE_PYTHON_PYTHON_H
#define SL_STAGE_PYTHON_PYTHON_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include <sluice/stage.h>

#include "base/thread.h"
#include "stage/python/wire.h"

enum { SL_PYTHON_PROCESSES = 64, SL_PYTHON_ARRAYS = 16, SL_PYTHON_NOTE_BYTES = 256 };

/* What the function saw of a frame, in the result NAME_judged. */
enum sl_python_judged { SL_PYTHON_NOT_SHOWN, SL_PYTHON_JUDGED, SL_PYTHON_UNJUDGED };

enum sl_python_look { SL_PYTHON_OF_KEPT, SL_PYTHON_OF_ALL };

struct sl_python_note { /* of a frame, at the beginning of its place */
	uint64_t ticket, number, timestamp, sequence, missing;
	uint32_t flags;
	uint16_t keep, reason; /* the verdict of the stages before; of its first event */
	float score;
	uint32_t rows[SL_PYTHON_ARRAYS]; /* of ragged arrays */
};
_Static_assert(sizeof(struct sl_python_note) <= SL_PYTHON_NOTE_BYTES, "it has room");
_Static_assert(offsetof(struct sl_python_note, rows) == 52, "as python/sluice/stage.py reads it");

struct sl_python_array {
	struct sl_shape shape;
	int result;		/* SL_STAGE_RAW, or an index into sl_frame.result */
	uint64_t offset, bytes; /* in a place */
};

struct sl_python_memory {
	uint8_t *base; /* a description, then places */
	uint64_t bytes, place_at, place_bytes;
	uint32_t places;
	int fd; /* read only; -1: none */
};

enum sl_python_state {
	SL_PYTHON_DOWN,
	SL_PYTHON_IDLE,
	SL_PYTHON_BUSY,	   /* finish() has it */
	SL_PYTHON_OVERDUE, /* its answer was due in an earlier finish() */
	SL_PYTHON_BROKEN,  /* its connection has ended, or it wrote what is no answer */
};

enum sl_python_phase { SL_PYTHON_WAITING, SL_PYTHON_STARTING, SL_PYTHON_RUNNING };

struct sl_python_output { /* what a process prints */
	int fd;		  /* -1: none */
	size_t used;
	char line[1024];
};

struct sl_python_process {
	_Alignas(64) _Atomic uint32_t state; /* enum sl_python_state */
	_Atomic bool ended;		     /* seen by the supervisor while it is another's */
	int socket;			     /* -1: none */
	const char *why;		     /* it is broken; NULL: it ended */

	/* finish(): the frame that it has, and since when. */
	uint64_t ticket, since_ns;
	uint32_t frame, place;
	bool waits;   /* for that frame: it is not overdue */
	bool engaged; /* BUSY, and this finish() has it */

	/* The supervisor's. */
	enum sl_python_phase phase;
	pid_t pid;
	int pidfd; /* -1: none, or the kernel has no such thing */
	struct sl_python_output out, err;
	uint64_t start_ns;	    /* not before; while it starts: when it has to be ready */
	uint64_t ready_ns, wait_ns; /* since when it was ready; how long it waits to be started */
	bool was_ready;
};

struct sl_python_counts {
	_Atomic uint64_t judged, unjudged, late, errors, restarts;
};

enum { SL_PYTHON_FIGURES = 5 };

struct sl_python_engine {
	const struct sl_python *options;
	struct sl_python_memory memory;
	struct sl_python_array array[SL_PYTHON_ARRAYS];
	uint32_t arrays, processes, numbers;
	int result; /* of the first output */
	uint32_t rows;
	size_t row_bytes; /* of raw pixels: rows of a module */
	uint64_t deadline_ns, stuck_ns;
	char figure[SL_PYTHON_FIGURES][64];
	struct sl_python_counts counts;
	struct sl_python_process process[SL_PYTHON_PROCESSES];

	/* finish() */
	uint64_t ticket;
	uint32_t spare; /* the place that no process has */

	/* The supervisor. */
	struct sl_thread thread;
	int kick; /* an eventfd */
	int code; /* a descriptor with the program of a process */
	_Atomic bool ends;
	uint64_t told_ns, told; /* of frames without a verdict */
	pthread_mutex_t lock;	/* of what follows */
	pthread_cond_t changed;
	uint32_t ready;
	bool failed, opened; /* a process could not begin; all have begun, once */
	bool renews; /* another run begins, and the supervisor has not told the processes yet */
};

struct sl_python { /* the options; `engine` is there while the stage is open */
	char script[PATH_MAX], function[64], inputs[1024], python[PATH_MAX], name[16];
	double deadline_ms, stuck_s, start_s;
	uint32_t processes, numbers, look;

	struct sl_python_engine *engine;
};

/* memory.c */
/* Where the arrays lie in a place; then memory for all places, with the description in it. -errno,
 * logged. */
int sl_python_memory_open(struct sl_python_engine *engine, const struct sl_env *env);
void sl_python_memory_close(struct sl_python_memory *memory);
/* What the script is to see of a frame goes into a place. */
void sl_python_fill(const struct sl_python_engine *engine, uint32_t place, uint64_t ticket,
		    const struct sl_frame *frame);
/* The description as text (JSON), which the caller frees; NULL: no memory. */
char *sl_python_describe(const struct sl_python_engine *engine, const struct sl_env *env);
/* A descriptor of a file in memory with these bytes, that nobody can change. -errno. */
int sl_python_text_file(const char *name, const void *bytes, size_t n);

/* judge.c: all frames of a batch. */
void sl_python_judge(struct sl_python_engine *engine, struct sl_batch *batch);

/* supervise.c */
/* Start the processes, and wait until all are ready. -errno, logged. */
int sl_python_start(struct sl_python_engine *engine);
/* Another run begins. */
int sl_python_renew(struct sl_python_engine *engine);
void sl_python_stop(struct sl_python_engine *engine);
void sl_python_kick(struct sl_python_engine *engine); /* any thread */

/* process.c: the supervisor's. */
int sl_python_spawn(struct sl_python_engine *engine, unsigned index); /* -errno, logged */
/* Whether it has ended; it stays in the table of processes. */
bool sl_python_has_ended(const struct sl_python_process *process);
/* Kill it and its children, log its last lines, close what it had. How it ended by itself goes to
 * `how`; NULL: it is not given the time to. */
void sl_python_bury(struct sl_python_engine *engine, unsigned index, char *how, size_t bytes);
/* Log what it has printed. */
void sl_python_read_output(struct sl_python_engine *engine, unsigned index);

/* The program of a process: python/sluice/stage.py. */
extern const char sl_python_code[];
extern const size_t sl_python_code_bytes;

#endif
