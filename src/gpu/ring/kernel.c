/* kernel.c - the kernel that polls a ring: the host launches it when it opens the ring, and tells
 * it to end. */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpu/ring/ring.h"
#include "gpu/table.h"

static int launch(struct sl_device_ring *r)
{
	const struct sl_device_ring_terms *t = &r->terms;
	struct sl_device_argument argument[SL_DEVICE_RING_OWN + SL_DEVICE_RING_ARGUMENTS] = {
		SL_ARG_MEMORY(&r->data),   SL_ARG_MEMORY(&r->meta),
		SL_ARG_MEMORY(&r->result), SL_ARG_MEMORY(&r->completion),
		SL_ARG_MEMORY(&r->enable), SL_ARG_MEMORY(&r->stop),
		SL_ARG(t->buffers),	   SL_ARG(r->buffer_bytes),
		SL_ARG(r->slot_bytes),	   SL_ARG(t->backoff_ns),
	};
	const struct sl_device_range range = {{t->groups}, t->threads};
	unsigned n = SL_DEVICE_RING_OWN;

	for (unsigned i = 0; i < r->work.arguments; i++)
		argument[n++] = r->work.argument[i];
	return r->platform->launch(r->run, r->kernel, &range, argument, n);
}

int sl_device_ring_kernel_open(struct sl_device_ring *r)
{
	int err = sl_device_kernels(r->device, r->work.kernels, &r->work.kernel, 1, &r->program,
				    &r->kernel);

	if (!err)
		err = sl_device_finish(r->device, r->run); /* words are as they begin */
	if (!err)
		err = r->platform->mark_open(r->device, &r->ended);
	if (!err)
		err = launch(r);
	if (err)
		return err;
	r->running = true;
	err = r->platform->mark(r->run, r->ended); /* is it still there? */
	return err ? err : r->platform->flush(r->run);
}

int sl_device_ring_kernel_end(struct sl_device_ring *r)
{
	_Atomic uint32_t *stop = r->stop.host;
	struct timespec nap = {0, 20000};
	uint64_t since = sl_clock_ns();
	int err, done = 0;

	if (!r->running)
		return 0;
	/* What is published has arrived before the kernel hears that nothing comes any more. */
	err = r->terms.on_device ? sl_device_finish(r->device, r->in) : 0;
	atomic_store_explicit(stop, 1, memory_order_release);
	if (!err)
		err = r->platform->mark(r->run, r->ended);
	if (!err)
		err = r->platform->flush(r->run);
	while (!err && !(done = r->platform->reached(r->ended))) {
		nanosleep(&nap, NULL);
		if (sl_clock_ns() - since > r->terms.timeout_ns)
			err = -ETIMEDOUT;
	}
	if (done < 0)
		err = done;
	if (err == -ETIMEDOUT)
		sl_error("gpu ring: %s did not end its work within %.1f s", r->platform->name,
			 (double)r->terms.timeout_ns * 1e-9);
	else if (err)
		sl_error("gpu ring: %s: %s", r->platform->name, r->platform->problem(r->device));
	r->running = err; /* what it does then is not known: its memory is left alone */
	return err;
}

void sl_device_ring_kernel_close(struct sl_device_ring *r)
{
	if (r->ended)
		r->platform->mark_close(r->ended);
	sl_device_kernels_close(r->device, r->program, &r->kernel, 1);
}
