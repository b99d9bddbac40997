/* graph.c - what OpenCL 1.2 lacks: launches that are kept, and words that queues wait for.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/opencl/device.h"

/* ---- words ---- */

/* The host lets a queue go: its word is one that the host sees. */
int sl_opencl_wait_value(struct sl_device_queue *q, const struct sl_device_memory *word,
			 uint64_t offset, uint32_t value)
{
	struct sl_opencl_device *d = q->device;
	struct sl_opencl_gate *gate = NULL;
	cl_int error = CL_SUCCESS;

	if (!d->is_host || !word->host)
		return -ENOTSUP;
	pthread_mutex_lock(&d->lock);
	for (int i = 0; i < SL_OPENCL_GATES && !gate; i++)
		if (!d->gate[i].event)
			gate = &d->gate[i];
	if (gate) {
		gate->word = (const void *)((const char *)word->host + offset);
		gate->value = value;
		gate->event = d->cl->clCreateUserEvent(d->context, &error);
		if (error != CL_SUCCESS)
			gate->event = NULL;
		else
			error = d->cl->clEnqueueBarrierWithWaitList(q->queue, 1, &gate->event,
								    NULL);
	}
	pthread_mutex_unlock(&d->lock);
	return gate ? sl_opencl_fail(d, "clCreateUserEvent", error) : -EBUSY;
}

void sl_opencl_open_gates(struct sl_opencl_device *d)
{
	if (!d->is_host)
		return;
	pthread_mutex_lock(&d->lock);
	for (int i = 0; i < SL_OPENCL_GATES; i++) {
		struct sl_opencl_gate *gate = &d->gate[i];

		if (!gate->event ||
		    (int32_t)(atomic_load_explicit(gate->word, memory_order_acquire) -
			      gate->value) < 0)
			continue;
		d->cl->clSetUserEventStatus(gate->event, CL_COMPLETE);
		d->cl->clReleaseEvent(gate->event);
		gate->event = NULL;
	}
	pthread_mutex_unlock(&d->lock);
}

/* ---- launches ---- */

/* A launch; without a kernel, memory that is zeroed. Values are copied: whoever launched may have
 * had them on the stack. */
struct step {
	struct sl_device_kernel *kernel;
	struct sl_device_range range;
	struct sl_device_argument argument[SL_DEVICE_ARGUMENTS];
	struct sl_device_memory memory[SL_DEVICE_ARGUMENTS];
	void *value[SL_DEVICE_ARGUMENTS];
	unsigned arguments;
	uint64_t offset, bytes;
};

struct sl_device_graph {
	struct step *step;
	unsigned steps;
	int err; /* the first that went wrong */
};

int sl_opencl_graph_begin(struct sl_device_queue *q)
{
	if (q->capturing)
		return -EBUSY;
	q->capturing = calloc(1, sizeof(*q->capturing));
	return q->capturing ? 0 : -ENOMEM;
}

int sl_opencl_graph_end(struct sl_device_queue *q, struct sl_device_graph **graph)
{
	struct sl_device_graph *r = q->capturing;
	int err = r ? r->err : -EINVAL;

	q->capturing = NULL;
	if (err && r)
		sl_opencl_graph_close(r);
	else if (!err)
		*graph = r;
	return err;
}

/* Kernels of OpenCL 1.2 launch nothing. */
int sl_opencl_graph_end_looped(struct sl_device_queue *q, const struct sl_device_memory *stop,
			       struct sl_device_graph **graph)
{
	struct sl_device_graph *lost = NULL;

	if (!sl_opencl_graph_end(q, &lost))
		sl_opencl_graph_close(lost);
	snprintf(q->device->problem, sizeof(q->device->problem), "OpenCL 1.2 has no such thing");
	return -ENOTSUP;
}

void sl_opencl_graph_close(struct sl_device_graph *r)
{
	for (unsigned i = 0; i < r->steps; i++)
		for (unsigned k = 0; k < r->step[i].arguments; k++)
			free(r->step[i].value[k]);
	free(r->step);
	free(r);
}

static struct step *next_step(struct sl_device_graph *r)
{
	struct step *more = realloc(r->step, (r->steps + 1) * sizeof(*more));

	if (!more) {
		r->err = -ENOMEM;
		return NULL;
	}
	r->step = more;
	more += r->steps++;
	memset(more, 0, sizeof(*more));
	return more;
}

int sl_opencl_graph_launch(struct sl_device_graph *r, struct sl_device_kernel *kernel,
			   const struct sl_device_range *range,
			   const struct sl_device_argument *argument, unsigned arguments)
{
	struct step *s = arguments <= SL_DEVICE_ARGUMENTS ? next_step(r) : NULL;

	if (!s)
		return r->err ? r->err : -EINVAL;
	s->kernel = kernel;
	s->range = *range;
	for (unsigned i = 0; i < arguments && !r->err; i++) {
		s->argument[i] = argument[i];
		s->arguments++;
		if (argument[i].memory) {
			s->memory[i] = *argument[i].memory;
			continue;
		}
		s->value[i] = malloc(argument[i].bytes);
		if (s->value[i])
			memcpy(s->value[i], argument[i].value, argument[i].bytes);
		else
			r->err = -ENOMEM;
	}
	return r->err;
}

int sl_opencl_graph_zero(struct sl_device_graph *r, const struct sl_device_memory *to,
			 uint64_t offset, uint64_t bytes)
{
	struct step *s = next_step(r);

	if (!s)
		return r->err;
	s->memory[0] = *to;
	s->offset = offset;
	s->bytes = bytes;
	return 0;
}

int sl_opencl_play(struct sl_device_queue *q, struct sl_device_graph *r)
{
	int err = 0;

	for (unsigned i = 0; i < r->steps && !err; i++) {
		struct step *s = &r->step[i];

		if (!s->kernel) {
			err = sl_opencl_zero(q, &s->memory[0], s->offset, s->bytes);
			continue;
		}
		/* Steps may have moved since they were kept. */
		for (unsigned k = 0; k < s->arguments; k++) {
			if (s->argument[k].memory)
				s->argument[k].memory = &s->memory[k];
			else
				s->argument[k].value = s->value[k];
		}
		err = sl_opencl_launch(q, s->kernel, &s->range, s->argument, s->arguments);
	}
	return err;
}
