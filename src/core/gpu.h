/* gpu.h - a stage on an accelerator: the same results by other means.
 *
 * Model:     a stage that has a GPU side is opened as on the CPU: it checks its options and makes
 *            its tables. The GPU side then takes these to the device, and queues kernels for each
 *            batch. All arrays of a batch are on the device: raw pixels, results, verdicts. A
 *            verdict that a kernel gives is seen by the kernels after it, and comes back to the
 *            host before the results do, so that only those of frames that are kept need to. Where
 *            a stage of the CPU, behind the device, may keep a frame all the same (`prescale`),
 *            results of all frames come back, and must be what the CPU's would be (SL_KERNEL_SEEN).
 * Results:   result i is [frames][elements of its shape]. A ragged one's number of rows goes to
 *            `rows`, [SL_RESULTS][batch_frames]; that of a frame that nobody looked at must be 0:
 *            the unit zeroes it before the first kernel. Nothing else is zeroed.
 * Exact:     integers are the CPU's to the last bit. Floats are within what the GPU side states.
 * Threads:   open and close as a stage's; the others on the one worker that has the device.
 * Ownership: state is zeroed memory of state_bytes; close() runs even when open() failed. */
#ifndef SL_CORE_GPU_H
#define SL_CORE_GPU_H

#include "core/device.h"
#include "core/unit.h"

enum { SL_GPU_BATCH_SLOTS = 8 }; /* batches on a device at once, at most */

struct sl_gpu;

struct sl_gpu_env {
	struct sl_device *device;
	struct sl_device_queue *queue; /* to send tables by; open() need not wait for them */
	const struct sl_geometry *geometry;
	uint32_t batch_frames;
	uint32_t items; /* of a frame: 1, or events */
	/* Who makes the stage's input on the device; NULL: it is raw. */
	const struct sl_gpu *maker;
	void *maker_state;
	unsigned slots; /* batches that may be on the device at once: what a GPU side needs for the
			   work on one, it needs as often */
};

/* A batch on the device. */
struct sl_gpu_batch {
	struct sl_device_queue *queue;
	/* On the host; its verdicts are not up to date. NULL: it is not there yet. */
	const struct sl_batch *batch;
	uint32_t frames;
	unsigned slot;
	/* Where views say; unless other devices write it, also [frames][modules][pixels]. */
	struct sl_device_memory *raw;
	struct sl_device_memory *frame;	  /* struct sl_kernel_frame [frames] */
	struct sl_device_memory *view;	  /* struct sl_kernel_view [frames][modules] */
	struct sl_device_memory *verdict; /* struct sl_kernel_verdict [frames][items] */
	struct sl_device_memory *rows;
	struct sl_device_memory *result; /* [SL_RESULTS] */
};

enum { SL_GPU_ARGUMENTS = 12, SL_GPU_POLL = 4 /* results of a kernel that polls */ };

/* A kernel that takes frames out of a ring and never ends (docs/reference/device-rings.md): for a
 * stage that is the only one on the device. A frame is struct sl_kernel_frame, then the pixels of
 * its modules; an answer is a struct sl_kernel_verdict for each item, rows of ragged results,
 * results. */
struct sl_gpu_poll {
	struct sl_device_queue *queue;	 /* given: to send tables by */
	uint32_t buffers;		 /* given: of the ring */
	uint32_t groups;		 /* of the kernel: given, at most; fewer, if so many are */
	uint32_t answer_bytes;		 /* given: of an answer */
	uint32_t rows_at;		 /* given: bytes from the beginning of an answer to */
	uint32_t result_at[SL_GPU_POLL]; /* uint32_t [SL_GPU_POLL]; to results */
	const struct sl_kernels *kernels;
	const char *kernel;
	uint32_t threads; /* of a group */
	/* After those of the ring; they stay where they are until the GPU side is closed. */
	struct sl_device_argument argument[SL_GPU_ARGUMENTS];
	unsigned arguments;
};

struct sl_gpu {
	size_t state_bytes;
	double float_bound; /* relative: how far floats of its results may be from the CPU's */

	/* The stage is open already; `stage` says where its input and outputs are. */
	int (*open)(void *state, const struct sl_gpu_env *env, const struct sl_chain_stage *stage);
	void (*close)(void *state);

	/* On the host, before anything of the batch is on the device: verdicts that need no pixels.
	 * NULL: there are none. */
	void (*prepare)(void *state, struct sl_batch *batch);

	/* Queue what makes the stage's results and verdicts. 0 or -errno. */
	int (*enqueue)(void *state, const struct sl_gpu_batch *batch);

	/* What enqueue() queues for a batch may be kept, and done again for others of as many
	 * frames and of the same kind, 0 or 1. Without a batch, it queues what is right for both.
	 * NULL: there is one kind. */
	int (*kind)(void *state, const struct sl_batch *batch);

	/* The same by a kernel that polls; after open(). NULL: it has none. */
	int (*poll)(void *state, struct sl_gpu_poll *poll);

	/* While it makes its image, add up the pixels of each frame that have at least as many
	 * photons (or counts): in uint32_t [frames], of each batch slot, which whoever asks has
	 * zeroed and, for every batch, zeroes again. So that it need not read the image. -ENOTSUP:
	 * not this image, or it counts for somebody else. NULL: it never does. */
	int (*count)(void *state, uint32_t threshold, const struct sl_device_memory *slot);

	/* What the device has learned by now goes into the stage's own state, so that the CPU can
	 * go on with it; waits for the queue. NULL: it learns nothing. */
	int (*give_back)(void *state, struct sl_device_queue *queue);
};

#endif
