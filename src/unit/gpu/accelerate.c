/* accelerate.c - the units `cuda` and `opencl`: their options, and how they are opened and closed.
 *
 * Model: batches go through batch slots of a device, and come back in order (work.c). A device that
 * fails, or does not answer for `timeout_ms`, is given up: its batches are run on the CPU
 * (`fallback: cpu`) or come back as not processed, and so do all after them. Either way every frame
 * has its outcome. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/unit.h"
#include "gpu/dialect/kernels.h"
#include "unit/gpu/engine.h"

enum { PINNED = SL_ENGINE_PINNED, QUEUE = SL_ENGINE_BATCHES };
#define OPENING_NS 60000000000ull	       /* how long tables may take to get there */
enum { KEPT, ANY };			       /* the choices of `order` */
enum { NONE, FALL_BACK };		       /* of `fallback` */
enum { PERSISTENT = SL_BATCH_SLOTS_TRIGGERS }; /* of `trigger`, after those of batch slots */

static const struct sl_option options[] = {
	SL_U32(struct sl_accelerator, device, 0, 0, 255, "", "which of the host's devices"),
	{"batch_slots", SL_OPTION_U32, SL_OPTION_FIELD(struct sl_accelerator, slots), "3", 1,
	 SL_GPU_BATCH_SLOTS, "batches",
	 "batches on the device at once: one is filled, one is worked on, one is emptied", NULL,
	 "lanes"},
	SL_CHOICE(struct sl_accelerator, order, kept, "kept|any",
		  "kept: kernels of one batch after those of another; any: beside each other, for "
		  "stages that learn nothing from frame to frame"),
	SL_CHOICE(struct sl_accelerator, trigger, launch, "launch|graph|wait|loop|persistent",
		  "how kernels of a batch come to run: each is launched; or all are captured once, "
		  "and played; or they are queued ahead, and wait for the batch; or the device "
		  "itself plays them again and again; or one kernel polls until the run ends "
		  "(rings)"),
	SL_U32(struct sl_accelerator, processors, 32, 1, 1024, "",
	       "trigger persistent: so many of the device's processors poll, and share a frame"),
	SL_U32(struct sl_accelerator, backoff_ns, 0, 0, 1000000, "ns",
	       "trigger persistent: a processor rests so long between two looks"),
	SL_U32(struct sl_accelerator, timeout_ms, 30000, 1, 3600000, "ms",
	       "a device that takes longer for a batch is given up"),
	SL_CHOICE(struct sl_accelerator, fallback, none, "none|cpu",
		  "when the device is not there, or given up: end, or refuse all frames from then "
		  "on; or go on with the CPU"),
	SL_U32(struct sl_accelerator, cross_check, 0, 0, 4294967295., "frames",
	       "of so many frames one is also computed by the CPU, with its batch, and compared; "
	       "0: none"),
	SL_OPTION_END};

/* ---- opening ---- */

/* What the host does comes after all that the device does: it must not be needed there before. */
static int check_chain(const struct sl_platform *platform, const struct sl_chain *chain)
{
	const char *by_host[SL_RESULTS] = {NULL}, *judge = NULL, *first;
	unsigned gpu_stages = 0;

	for (unsigned s = 0; s < chain->stages; s++) {
		const struct sl_chain_stage *stage = &chain->stage[s];

		if (!stage->ops->gpu) {
			for (uint32_t i = 0; i < stage->terms.outputs; i++)
				by_host[stage->terms.result + (int)i] = stage->ops->name;
			if (stage->ops->frame || stage->ops->finish)
				judge = stage->ops->name;
			continue;
		}
		gpu_stages++;
		first = judge || stage->input < 0 ? judge : by_host[stage->input];
		if (first) {
			sl_error("%s: stage '%s' runs on the CPU only, and '%s' after it on the "
				 "device; put it behind those that run there",
				 platform->name, first, stage->ops->name);
			return -EINVAL;
		}
	}
	if (!gpu_stages && chain->stages)
		sl_warn("%s: no stage of this experiment runs there; unit: cpu does the same with "
			"less",
			platform->name);
	return 0;
}

static int check_order(const struct sl_platform *platform, const struct sl_chain *chain,
		       const struct sl_accelerator *a)
{
	for (unsigned s = 0; a->order == ANY && s < chain->stages; s++)
		if (chain->stage[s].ops->ordered) {
			sl_error("%s: stage '%s' learns from frame to frame: with it unit.order "
				 "must be kept",
				 platform->name, chain->stage[s].ops->name);
			return -EINVAL;
		}
	return 0;
}

static void close_device(struct sl_engine *e)
{
	for (unsigned i = 0; i < PINNED; i++)
		if (e->pinned[i])
			e->device->platform->unpin(e->device, e->pinned[i]);
	memset(e->pinned, 0, sizeof(e->pinned));
	sl_cross_check_close(&e->check);
	e->crossing = false;
	sl_poll_close(e->poll);
	e->poll = NULL;
	sl_batch_slots_close(&e->slots);
	if (e->device)
		e->device->platform->close(e->device);
	e->device = NULL;
}

static void close_accelerator(void *state)
{
	struct sl_accelerator *a = state;
	struct sl_engine *e = a->engine;

	if (!e)
		return;
	a->engine = NULL;
	if (e->device && !sl_engine_comes_to_rest(e)) {
		sl_host_close(&e->others);
		sl_host_close(&e->all);
		sl_engine_abandon(e);
		return;
	}
	/* What stages say when they are closed is about what was learned. */
	if (e->device && !e->dead && sl_batch_slots_give_back(&e->slots))
		sl_warn("%s: what the device has learned is not in what stages say at their end: "
			"%s",
			e->device->platform->name, e->device->platform->problem(e->device));
	close_device(e);
	sl_host_close(&e->others);
	sl_host_close(&e->all);
	free(e);
}

/* What stages say of the run as a whole. */
static void settle(void *state)
{
	struct sl_engine *e = ((struct sl_accelerator *)state)->engine;
	bool asked = false;

	for (unsigned s = 0; e && s < e->chain.stages; s++)
		asked |= e->chain.stage[s].ops->conclude != NULL;
	if (asked && e->device && !e->dead && sl_batch_slots_give_back(&e->slots))
		sl_error("%s: what the device has learned could not be read back: results of the "
			 "run as a whole are not right: %s",
			 e->device->platform->name, e->device->platform->problem(e->device));
}

static int open_device(struct sl_engine *e, const struct sl_accelerator *a,
		       const struct sl_platform *platform)
{
	struct sl_device_info info;
	int err = platform->open ? platform->open(a->device, &e->device) : -ENODEV;

	if (!platform->open)
		sl_error("%s: %s", platform->name, platform->unavailable());
	if (err)
		return err;
	e->device->patience_ns = OPENING_NS;
	platform->describe(e->device, &info);
	sl_info("%s: %s (%s)", platform->name, info.name, info.driver);
	e->slots.device = e->device;
	e->slots.chain = &e->chain;
	e->slots.trigger = a->trigger == PERSISTENT ? SL_BATCH_SLOTS_LAUNCH
						    : (enum sl_batch_slots_trigger)a->trigger;
	err = sl_batch_slots_open(&e->slots, a->trigger == PERSISTENT ? 0 : a->slots,
				  a->order == ANY);
	if (!err && a->trigger == PERSISTENT)
		err = sl_poll_open(&e->poll, &e->slots, QUEUE,
				   &(struct sl_poll_options){.groups = a->processors,
							     .backoff_ns = a->backoff_ns,
							     .timeout_ns = e->timeout_ns});
	if (!err)
		err = sl_host_open(&e->others, &e->chain, SL_HOST_OTHERS);
	if (!err && e->every)
		err = sl_cross_check_open(&e->check, &e->slots);
	e->device->patience_ns = a->slots * e->timeout_ns; /* all of them may be full */
	return err;
}

/* Something may have begun there that must end first. What the device is given up for: -ETIMEDOUT,
 * if that does not end. */
static int close_half_open(struct sl_engine *e, int err)
{
	if (!e->device)
		return err;
	e->device->patience_ns = e->timeout_ns;
	if (err != -ETIMEDOUT && sl_engine_comes_to_rest(e)) {
		close_device(e);
		return err;
	}
	sl_poll_stop(e->poll);
	sl_device_loop_stop(&e->slots);
	return -ETIMEDOUT;
}

static int open_engine(struct sl_engine *e, const struct sl_accelerator *a,
		       const struct sl_platform *platform)
{
	int err = check_chain(platform, &e->chain);

	if (!err)
		err = check_order(platform, &e->chain, a);
	if (!err && a->trigger == PERSISTENT)
		err = sl_poll_check(platform, &e->chain);
	if (err)
		return err;
	e->timeout_ns = a->timeout_ms * 1000000ull;
	e->every = a->cross_check;
	e->fall_back = a->fallback == FALL_BACK;
	if (e->fall_back)
		err = sl_host_open(&e->all, &e->chain, SL_HOST_ALL);
	if (err)
		return err;
	err = open_device(e, a, platform);
	if (err && e->fall_back) {
		sl_warn("%s: goes on with the CPU (unit.fallback)", platform->name);
		e->dead = close_half_open(e, err);
		return 0;
	}
	return err;
}

int sl_accelerator_open(void *state, const struct sl_platform *platform,
			const struct sl_chain *chain, struct sl_bell *todo, struct sl_bell *done,
			unsigned *workers)
{
	struct sl_accelerator *a = state;
	struct sl_engine *e = aligned_alloc(64, (sizeof(*e) + 63) / 64 * 64);
	int err;

	if (!e)
		return -ENOMEM;
	memset(e, 0, sizeof(*e));
	a->engine = e;
	e->chain = *chain;
	e->todo = todo;
	e->done = done;
	err = open_engine(e, a, platform);
	if (err) {
		e->dead = err; /* what is half open has learned nothing */
		close_accelerator(state);
		return err;
	}
	*workers = 1;
	return 0;
}

static unsigned batches(const void *state, uint32_t batch_frames)
{
	const struct sl_accelerator *a = state;

	return a->trigger == PERSISTENT ? QUEUE : a->slots;
}

static void know(void *state, void *memory, uint64_t bytes)
{
	struct sl_engine *e = ((struct sl_accelerator *)state)->engine;
	unsigned i = 0;

	while (i < PINNED && e->pinned[i])
		i++;
	/* A device that was given up is asked for nothing. */
	if (e->device && !e->dead && i < PINNED &&
	    !e->device->platform->pin(e->device, memory, bytes))
		e->pinned[i] = memory;
}

static void figures(const void *state, sl_unit_figure *figure, void *arg)
{
	const struct sl_accelerator *a = state;
	const struct sl_engine *e = a->engine;

	if (!e)
		return;
	if (e->every) {
		figure(arg, "frames_cross_checked", e->check.frames, 0);
		figure(arg, "frames_unlike_the_cpu", e->check.mismatches, 1);
		sl_cross_check_figures(&e->check, figure, arg);
	}
	if (e->poll)
		sl_poll_figures(e->poll, figure, arg);
	if (e->slots.trigger != SL_BATCH_SLOTS_LAUNCH)
		figure(arg, "batches_not_launched", e->slots.played, 0);
	if (a->trigger == SL_BATCH_SLOTS_LOOP) /* by the device itself, that is */
		figure(arg, "batches_looped",
		       e->slots.trigger == SL_BATCH_SLOTS_LOOP ? e->slots.played : 0, 0);
	figure(arg, "frames_fallen_back", e->fallen_back, 0);
	figure(arg, "frames_with_older_pedestals", e->unlearned, 1);
	figure(arg, "dark_frames_counted_twice", e->twice, 1);
}

static const char *unavailable(const struct sl_platform *platform)
{
	const char *why = platform->unavailable();

	if (!why && platform == &sl_platform_cuda && !sl_kernels_correct.fatbin)
		why = "this program was built without nvcc, and so without kernels for it; install "
		      "the CUDA toolkit and build again";
	return why;
}

#define UNIT(NAME, DOC)                                                                         \
	static int open_##NAME(void *state, const struct sl_chain *chain, struct sl_bell *todo, \
			       struct sl_bell *done, unsigned *workers)                         \
	{                                                                                       \
		return sl_accelerator_open(state, &sl_platform_##NAME, chain, todo, done,       \
					   workers);                                            \
	}                                                                                       \
                                                                                                \
	static const char *unavailable_##NAME(void)                                             \
	{                                                                                       \
		return unavailable(&sl_platform_##NAME);                                        \
	}                                                                                       \
                                                                                                \
	const struct sl_unit sl_unit_##NAME = {                                                 \
		.name = #NAME,                                                                  \
		.doc = DOC,                                                                     \
		.state_bytes = sizeof(struct sl_accelerator),                                   \
		.options = options,                                                             \
		.drives = 1,                                                                    \
		.unavailable = unavailable_##NAME,                                              \
		.open = open_##NAME,                                                            \
		.close = close_accelerator,                                                     \
		.batches = batches,                                                             \
		.know = know,                                                                   \
		.submit = sl_accelerator_submit,                                                \
		.reap = sl_accelerator_reap,                                                    \
		.work = sl_accelerator_work,                                                    \
		.settle = settle,                                                               \
		.figures = figures,                                                             \
	}

UNIT(cuda, "stages on a GPU of NVIDIA, and on the CPU those that it does not have");
UNIT(opencl, "stages on a device with OpenCL 1.2, and on the CPU those that it does not have");
