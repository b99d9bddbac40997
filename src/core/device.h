/* device.h - an accelerator: its memory, its queues, its kernels. One interface for CUDA and
 * OpenCL.
 *
 * Model:     a platform ("cuda", "opencl") finds its driver when the program runs, and has devices.
 *            What is queued runs in the order of its queue; marks order queues among each other and
 *            tell the host how far one has come. Kernels are compiled with the program (CUDA) or by
 *            the driver when they are first opened (OpenCL); both come of one source, NAME.cl.
 * Threads:   a device and all that is made with it belong to one thread at a time. Two devices, or
 *            the same one opened twice, share nothing here.
 * Ownership: who opens closes, queues and memory before their device. Host memory that a copy reads
 *            or writes must stay as it is until the copy is over.
 * Errors:    0 or -errno: -ENOMEM no memory there, -ENODEV gone, -EINVAL asked for nonsense, -EIO
 *            else. sl_device_problem() has the driver's own words for the last one.
 * Cost:      drivers allocate and lock: none of this is for the thread that takes data. */
#ifndef SL_CORE_DEVICE_H
#define SL_CORE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

struct sl_device;
struct sl_device_queue;
struct sl_device_mark;
struct sl_device_program;
struct sl_device_kernel;
struct sl_device_graph;

enum { SL_DEVICE_TEXT = 256, SL_DEVICE_ARGUMENTS = 24 };
enum { SL_DEVICE_SHARED = 2 << 20 };

struct sl_device_info {
	char name[SL_DEVICE_TEXT], driver[SL_DEVICE_TEXT];
	uint64_t memory_bytes, memory_free_bytes; /* free: 0 when the driver does not say */
	uint64_t largest_bytes;			  /* of one piece of memory */
	unsigned processors;
	unsigned group_threads; /* most threads of a group */
	/* It is this host's CPU: kernels and queues see pinned memory as the host does. */
	int is_host;
	/* Kernels see what the host writes into pinned memory while they run. */
	int polls;
	/* Kernels are compiled when they first run, which may take a minute. */
	int compiles_late;
	/* What other devices write into its memory is seen by kernels that run, in the order in
	 * which it came; 0: that is not promised. */
	int sees_remote_writes;
};

/* Memory of the device, or of the host where the device reaches it quickly. */
struct sl_device_memory {
	uint64_t bytes;
	void *host;	  /* where the CPU sees it; NULL: it does not */
	uint64_t address; /* CUDA: where the device sees it */
	void *handle;	  /* OpenCL: its name */
};

/* One kernel's argument: a memory, or a value. */
struct sl_device_argument {
	const struct sl_device_memory *memory;
	const void *value;
	size_t bytes;
};
#define SL_ARG_MEMORY(m) ((struct sl_device_argument){(m), NULL, 0})
#define SL_ARG(v)	 ((struct sl_device_argument){NULL, &(v), sizeof(v)})

struct sl_device_range {
	uint32_t groups[3]; /* 0 counts as 1 */
	uint32_t threads;   /* of a group, along the first dimension */
};

/* The source of some kernels, in the forms that drivers take; made by tools/embed_kernels.py. */
struct sl_kernels {
	const char *name;
	const char *opencl;
	const void *fatbin; /* NULL: there was no nvcc */
	size_t fatbin_bytes;
	const struct sl_kernel_function *function; /* for platform `threads`; NULL: none */
};

/* A kernel as a function of this program, which does one group; an argument is the address of the
 * memory, or of the value. */
struct sl_kernel_function {
	const char *name; /* NULL: the last was before */
	void (*run)(uint32_t group, uint32_t groups, void *const *argument);
};

struct sl_platform {
	const char *name, *doc;

	/* Why it cannot be used on this host and what to do about it; NULL: it can. */
	const char *(*unavailable)(void);
	unsigned (*devices)(void);
	int (*open)(unsigned index, struct sl_device **device);
	void (*close)(struct sl_device *device);
	void (*describe)(struct sl_device *device, struct sl_device_info *info);
	const char *(*problem)(const struct sl_device *device);

	int (*memory_open)(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m);
	/* In the host, and such that copies from and to it go at full speed. */
	int (*pinned_open)(struct sl_device *device, uint64_t bytes, struct sl_device_memory *m);
	void (*memory_close)(struct sl_device *device, struct sl_device_memory *m);
	/* Memory of the process from now on as good as pinned; -ENOTSUP: it stays as it is, and
	 * copies from it are slower. */
	int (*pin)(struct sl_device *device, void *host, uint64_t bytes);
	void (*unpin)(struct sl_device *device, void *host);

	int (*queue_open)(struct sl_device *device, struct sl_device_queue **queue);
	void (*queue_close)(struct sl_device_queue *queue);
	/* rows of row_bytes, each `pitch` after the one before, become rows that follow each other.
	 */
	int (*write)(struct sl_device_queue *queue, const struct sl_device_memory *to,
		     uint64_t offset, const void *from, uint64_t row_bytes, uint64_t rows,
		     uint64_t pitch);
	int (*read)(struct sl_device_queue *queue, void *to, const struct sl_device_memory *from,
		    uint64_t offset, uint64_t bytes);
	int (*zero)(struct sl_device_queue *queue, const struct sl_device_memory *to,
		    uint64_t offset, uint64_t bytes);
	/* What is queued goes to the device now. */
	int (*flush)(struct sl_device_queue *queue);

	int (*mark_open)(struct sl_device *device, struct sl_device_mark **mark);
	void (*mark_close)(struct sl_device_mark *mark);
	int (*mark)(struct sl_device_queue *queue, struct sl_device_mark *mark);
	int (*wait)(struct sl_device_queue *queue, struct sl_device_mark *mark);
	/* 1: all before it is done, 0: not yet, or what went wrong. Never marked: 1. */
	int (*reached)(struct sl_device_mark *mark);

	int (*program_open)(struct sl_device *device, const struct sl_kernels *kernels,
			    struct sl_device_program **program);
	void (*program_close)(struct sl_device_program *program);
	int (*kernel_open)(struct sl_device_program *program, const char *name,
			   struct sl_device_kernel **kernel);
	void (*kernel_close)(struct sl_device_kernel *kernel);
	int (*launch)(struct sl_device_queue *queue, struct sl_device_kernel *kernel,
		      const struct sl_device_range *range,
		      const struct sl_device_argument *argument, unsigned arguments);

	/* The queue stands still until the word is `value`, or beyond it: words count up, and wrap.
	 * In pinned memory, or in the device's. -ENOTSUP here and below: the platform cannot. This
	 * and graphs are for units: NULL on `threads`, which is none. */
	int (*wait_value)(struct sl_device_queue *queue, const struct sl_device_memory *word,
			  uint64_t offset, uint32_t value);

	/* What is queued from here on is not done but kept, to be done by one call, often. */
	int (*graph_begin)(struct sl_device_queue *queue);
	int (*graph_end)(struct sl_device_queue *queue, struct sl_device_graph **graph);
	/* The same, and who plays it once has it played for ever, by the device alone: whenever it
	 * is through it looks at the word, and begins again; when that is not 0, for the last time.
	 * So all that was there before the word was written is met by a whole round. -ENOTSUP: this
	 * device cannot; the graph is lost, as it is on any error. */
	int (*graph_end_looped)(struct sl_device_queue *queue, const struct sl_device_memory *stop,
				struct sl_device_graph **graph);
	int (*play)(struct sl_device_queue *queue, struct sl_device_graph *graph);
	void (*graph_close)(struct sl_device_graph *graph);

	/* The device's memory for others to write: *fd is a dma-buf, the caller's to close, valid
	 * as long as the memory is open. Memory in multiples of SL_DEVICE_SHARED bytes. -ENOTSUP:
	 * this device's cannot be shared. */
	int (*share)(struct sl_device *device, const struct sl_device_memory *m, int *fd);
};

/* What every device begins with. */
struct sl_device {
	const struct sl_platform *platform;
	uint64_t patience_ns;	/* whoever waits for it gives up after that; 0: never */
	uint64_t held_bytes;	/* memory that is open, pinned memory too */
	uint64_t refused_bytes; /* asked for by the last memory_open() or pinned_open(), and not
				   there; 0: it was */
};

extern const struct sl_platform sl_platform_cuda, sl_platform_opencl, sl_platform_threads;

#endif
