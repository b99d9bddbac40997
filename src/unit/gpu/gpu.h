/* gpu.h - between the files of the units for accelerators.
 *
 * Model:     a batch slot has the memory of one batch on the device. A batch goes through it like
 *            this:
 *
 *              uploads    raw pixels, frames, verdicts          queue `in`
 *              kernels    of all GPU sides, in the order of the chain      queue `work`
 *              verdicts   back to the host                      queue `out`, mark `judged`
 *              results    of frames that are kept, or may be    queue `out`, mark `back`
 *              the rest   stages without a GPU side, on the CPU
 *
 *            Marks let a queue wait for another, so that batch slots overlap: while kernels of one
 *            run, another is filled and a third emptied.
 *            A kernel that polls needs none of it: frames go through a ring (poll.c).
 * Threads:   all of it on worker 0, but submit() and reap(). */
#ifndef SL_UNIT_GPU_GPU_H
#define SL_UNIT_GPU_GPU_H

#include <stdbool.h>

#include <sluice/detector.h>

#include "core/gpu.h"

enum { SL_BATCH_SLOT_GRAPHS = 16, SL_BATCH_SLOT_LINE = 64 };

/* How kernels of a batch come to run: triggers.c. */
enum sl_batch_slots_trigger {
	SL_BATCH_SLOTS_LAUNCH,
	SL_BATCH_SLOTS_GRAPH,
	SL_BATCH_SLOTS_WAIT,
	SL_BATCH_SLOTS_LOOP,
	SL_BATCH_SLOTS_TRIGGERS
};

enum sl_batch_slot_state { SL_BATCH_SLOT_FREE, SL_BATCH_SLOT_JUDGING, SL_BATCH_SLOT_RETURNING };

struct sl_batch_slot {
	enum sl_batch_slot_state state;
	struct sl_batch *batch;
	uint64_t since_ns; /* queued, or judged: for the watchdog */
	struct sl_device_memory raw, frame, view, verdict, rows, result[SL_RESULTS];
	struct sl_device_memory up,
		down; /* pinned: frames, views and verdicts; verdicts and rows */
	struct sl_device_mark *filled, *worked, *judged, *back;
	struct sl_device_queue *out; /* a batch slot must not wait for another's kernels */
	/* triggers.c */
	struct {
		uint32_t frames, kind;
		struct sl_device_graph *graph;
	} cached[SL_BATCH_SLOT_GRAPHS];
	unsigned graphs;
	struct sl_device_memory gate; /* a word that kernels wait for */
	uint32_t turn;		      /* that it has */
	uint64_t armed;		      /* Arming order; 0: not armed. */
};

struct sl_device_loop {
	struct sl_device_memory stop, turn, done; /* turn: a word a batch slot; done: a line */
	struct sl_device_program *program;
	struct sl_device_kernel *kernel[2];
	struct sl_device_graph *graph[SL_GPU_BATCH_SLOTS]; /* of each queue */
	struct sl_device_mark *ended[SL_GPU_BATCH_SLOTS];
	unsigned playing;  /* queues */
	unsigned next;	   /* batch slot to be filled */
	uint64_t asked_ns; /* whether it is still played */
	bool is_spoilt;	   /* its last rounds may have learned again from what they had */
};

struct sl_batch_slots {
	struct sl_device *device;
	const struct sl_platform *platform;
	const struct sl_chain *chain;
	uint32_t items, results, modules;
	uint64_t module_bytes, row_bytes, rows;
	struct sl_shape shape[SL_RESULTS];
	bool made[SL_RESULTS], wanted[SL_RESULTS]; /* by a GPU side; on the host */
	/* A stage behind the device, or a sink, looks at what was rejected there. Sinks look at no
	 * images of it, stages do. */
	bool seen, images_seen;
	void *gpu[SL_CHAIN_STAGES]; /* states; NULL: the stage has none */
	struct sl_device_queue *in;
	struct sl_device_queue *work[SL_GPU_BATCH_SLOTS]; /* all the same when order is kept */
	unsigned works;
	struct sl_batch_slot slot[SL_GPU_BATCH_SLOTS];
	unsigned n;
	enum sl_batch_slots_trigger trigger;
	struct sl_device_loop loop;
	uint64_t armed,
		played; /* batch slots, so far; batches that were not launched kernel by kernel */
};

/* Kernels are queued before their batch is there: they are for a full one. */
static inline bool sl_device_is_ahead(const struct sl_batch_slots *slots)
{
	return slots->trigger == SL_BATCH_SLOTS_WAIT || slots->trigger == SL_BATCH_SLOTS_LOOP;
}

/* Its results come back: it is kept, or may still be. */
static inline bool sl_device_returns(const struct sl_batch_slots *slots,
				     const struct sl_frame *frame)
{
	return (slots->seen && !(frame->flags & SL_FRAME_DARK)) || sl_frame_is_kept(frame);
}

/* Of such a frame: result i comes back, too. */
static inline bool sl_device_returns_result(const struct sl_batch_slots *slots,
					    const struct sl_frame *frame, unsigned i)
{
	return slots->made[i] && slots->wanted[i] &&
	       (!slots->shape[i].image || slots->images_seen || sl_frame_is_kept(frame));
}

/* What open() of a unit does with its platform. */
int sl_accelerator_open(void *state, const struct sl_platform *platform,
			const struct sl_chain *chain, struct sl_bell *todo, struct sl_bell *done,
			unsigned *workers);

/* GPU sides and memory for `n` batch slots; logged. slots->chain and device are set. close()
 * in any case. */
int sl_batch_slots_open(struct sl_batch_slots *slots, unsigned n, bool any_order);
void sl_batch_slots_close(struct sl_batch_slots *slots);

/* What the device has learned goes into the stages' own state. */
int sl_batch_slots_give_back(struct sl_batch_slots *slots);

/* Queue all of a batch up to its verdicts. */
int sl_batch_slot_begin(struct sl_batch_slots *slots, unsigned slot, struct sl_batch *batch);

/* Frames, views and verdicts of a batch on their way; all frames that it could have but has not are
 * missing and rejected. */
int sl_batch_slot_describe(struct sl_batch_slots *slots, unsigned slot,
			   const struct sl_batch *batch);

/* Pinned, for the word that opens the gate. */
uint32_t *sl_batch_slot_word(const struct sl_batch_slots *slots, struct sl_batch_slot *slot);

/* Why something could not be opened: memory, most of the time. `whose`: batch slots, or a stage. */
void sl_batch_slots_log(const struct sl_batch_slots *slots, const char *whose, int err);

/* Queue the kernels for the batch; NULL: for whatever will come. */
int sl_batch_slot_run(struct sl_batch_slots *slots, unsigned slot, struct sl_device_queue *queue,
		      const struct sl_batch *batch);

/* Queue the kernels of the batch that is in the batch slot once more: for measurements. */
int sl_batch_slot_again(struct sl_batch_slots *slots, unsigned slot);

/* Are the verdicts here? 1, 0, or what is wrong. */
int sl_batch_slot_reached(struct sl_batch_slots *slots, unsigned slot);

/* The verdicts are here: give them to the frames, and queue the way back of what is kept. */
int sl_batch_slot_judged(struct sl_batch_slots *slots, unsigned slot);

/* ---- triggers.c ---- */

int sl_device_triggers_open(struct sl_batch_slots *slots);
void sl_device_triggers_close(struct sl_batch_slots *slots, struct sl_batch_slot *slot);

/* Uploads of the batch slot's batch are queued: have its kernels run, and the batch slot's
 * `worked` marked. */
int sl_device_trigger(struct sl_batch_slots *slots, unsigned slot);
/* The kernels of the batch slot are through. */
int sl_device_trigger_again(struct sl_batch_slots *slots, unsigned slot);
/* The batch slot that the next batch goes into; -1: not now. */
int sl_batch_slots_next(const struct sl_batch_slots *slots);
/* Kernels that were queued ahead end with nothing. -ETIMEDOUT: they do not. */
int sl_device_let_go(struct sl_batch_slots *slots);

/* ---- loop.c ---- */

/* Batch slots have their gates. -ENOTSUP: this device launches nothing itself. */
int sl_device_loop_open(struct sl_batch_slots *slots);
void sl_device_loop_close(struct sl_batch_slots *slots);
/* Is the batch slot's batch done? 1, 0, or what is wrong. */
int sl_device_loop_reached(struct sl_batch_slots *slots, unsigned slot, uint64_t since_ns);
/* Waits until no batch slot has anything to do, or nobody plays any more. */
int sl_device_loop_rest(struct sl_batch_slots *slots);
/* The device is to stop playing, whatever is in its batch slots; it is not waited for. */
void sl_device_loop_stop(struct sl_batch_slots *slots);
/* The device stops playing. -ETIMEDOUT: it does not. */
int sl_device_loop_end(struct sl_batch_slots *slots);

/* ---- poll.c: instead of batch slots ---- */

struct sl_poll;

struct sl_poll_options {
	uint32_t groups, backoff_ns;
	uint64_t timeout_ns;
};

/* GPU sides are open; room for as many batches. close() in any case, after end(). */
int sl_poll_open(struct sl_poll **poll, const struct sl_batch_slots *slots, unsigned batches,
		 const struct sl_poll_options *options);
/* Can the chain be polled? 0, or -EINVAL, logged: before anything is open. */
int sl_poll_check(const struct sl_platform *platform, const struct sl_chain *chain);
/* Its kernel is to leave the device; it is not waited for. */
void sl_poll_stop(struct sl_poll *poll);
/* -ETIMEDOUT: the kernel does not end; then nothing may be closed. */
int sl_poll_end(struct sl_poll *poll, uint64_t timeout_ns);
void sl_poll_close(struct sl_poll *poll);

bool sl_poll_has_room(const struct sl_poll *poll, uint32_t frames);
int sl_poll_begin(struct sl_poll *poll, const struct sl_batch *batch);
/* The oldest batch that is under way. 1: all of it is here; 0: not yet. */
int sl_poll_take(struct sl_poll *poll, struct sl_batch *batch);
void sl_poll_figures(const struct sl_poll *poll, sl_unit_figure *figure, void *arg);

/* ---- host.c: stages on the CPU, on the unit's own thread ---- */

struct sl_host {
	struct sl_chain chain;
	void *state; /* of the cpu unit; NULL: there is nothing to do */
	struct sl_bell *bell;
};

enum sl_host_part { SL_HOST_ALL, SL_HOST_GPU_STAGES, SL_HOST_OTHERS };

/* Those stages of the chain. */
int sl_host_open(struct sl_host *host, const struct sl_chain *chain, enum sl_host_part part);
void sl_host_close(struct sl_host *host);
int sl_host_run(struct sl_host *host, struct sl_batch *batch);

/* ---- cross_check.c: the same by the CPU, and compared ---- */

struct sl_cross_check {
	struct sl_host host; /* the stages that have GPU sides */
	struct sl_batch batch;
	struct sl_frame *frame; /* [batch_frames]: share pixels with the real ones */
	struct sl_verdict *verdict;
	void *results;
	uint64_t frames, mismatches; /* compared; different */
	/* Of these, the first that differed: a result, or the verdict. */
	uint64_t unlike[SL_RESULTS], unlike_verdicts;
};

int sl_cross_check_open(struct sl_cross_check *check, const struct sl_batch_slots *slots);
void sl_cross_check_close(struct sl_cross_check *check);

/* How many frames differed in what; those that never did are left out. */
void sl_cross_check_figures(const struct sl_cross_check *check, sl_unit_figure *figure, void *arg);

/* The batch as the CPU has it, which goes on from what stages know now: before the device gets it.
 */
int sl_cross_check_begin(struct sl_cross_check *check, const struct sl_batch_slots *slots,
			 const struct sl_batch *batch);

/* That batch is back from the device, and no other stage has seen it. */
void sl_cross_check_compare(struct sl_cross_check *check, const struct sl_batch_slots *slots,
			    const struct sl_batch *batch);

#endif
