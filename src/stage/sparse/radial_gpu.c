/* radial_gpu.c - the background by bins, and what stands out of it, on an accelerator.
 *
 * Exact: of counts and int16 photons, where norms are 1, all is the CPU's to the last bit. Norms
 * and floats are added in another order, as doubles, which are rounded to floats then: backgrounds
 * are within a bit of the CPU's, and a pixel that is as near to a bound may be on either side. */
#include "stage/sparse/gpu.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "gpu/dialect/kernels.h"
#include "gpu/table.h"
#include "stage/gather.h"

enum { THREADS = SL_SPARSE_RUN_THREADS, RUN = SL_SPARSE_RUN, EIGHT = 8 };
enum { BINS, ABOVE, PICK, KERNELS };

static int open_kernels(struct sl_sparse_radial_gpu *t)
{
	static const char *const bins[SL_DTYPES] = {[SL_U8] = "sparse_bins_u8",
						    [SL_U16] = "sparse_bins_u16",
						    [SL_U32] = "sparse_bins_u32",
						    [SL_I16] = "sparse_bins_i16",
						    [SL_F32] = "sparse_bins_f32"};
	static const char *const pick[SL_DTYPES] = {[SL_U8] = "sparse_pick_u8",
						    [SL_U16] = "sparse_pick_u16",
						    [SL_U32] = "sparse_pick_u32",
						    [SL_I16] = "sparse_pick_i16",
						    [SL_F32] = "sparse_pick_f32"};
	const char *const names[KERNELS] = {bins[t->stage->dtype], "sparse_above",
					    pick[t->stage->dtype]};

	return sl_device_kernels(t->device, &sl_kernels_sparse_radial, names, KERNELS, &t->program,
				 t->kernel);
}

/* Norms in the order of the gathered pixels, and the cutoff for every number of pixels that a bin
 * may have: its logarithm is the CPU's. */
static int send_sorted(struct sl_sparse_radial_gpu *t, struct sl_device_queue *queue,
		       const struct sl_gather *gather, float *sorted, float *cutoff)
{
	const struct sl_radial *r = &t->stage->radial;
	uint32_t used = gather->start[r->bins], largest = 3;
	int err;

	t->unit = 1;
	for (uint32_t i = 0; i < used; i++) {
		sorted[i] = r->norm[gather->index[i]];
		t->unit &= sorted[i] == 1;
	}
	for (uint32_t b = 0; b < r->bins; b++)
		largest = t->stage->pixels_of[b] > largest ? t->stage->pixels_of[b] : largest;
	for (uint32_t n = 0; n <= largest; n++)
		cutoff[n] = sl_sparse_cutoff(t->stage, n);
	err = sl_device_table(t->device, queue, sorted, used * sizeof(*sorted), &t->sorted);
	if (!err)
		err = sl_device_table(t->device, queue, cutoff, (largest + 1ull) * sizeof(*cutoff),
				      &t->cutoff);
	return err;
}

static int send_tables(struct sl_sparse_radial_gpu *t, struct sl_device_queue *queue)
{
	const struct sl_radial *r = &t->stage->radial;
	float *sorted = calloc(r->pixels, sizeof(*sorted));
	float *cutoff = calloc(r->pixels + 4, sizeof(*cutoff));
	struct sl_gather gather = {0};
	int err = sorted && cutoff ? 0 : -ENOMEM, done;

	if (!err)
		err = sl_gather_make(&gather, r->bin, r->pixels, r->bins);
	if (!err)
		err = sl_gather_send(&gather, r->bins, t->device, queue, &t->start, &t->index);
	if (!err)
		err = send_sorted(t, queue, &gather, sorted, cutoff);
	done = sl_device_finish(t->device, queue);
	free(sorted);
	free(cutoff);
	sl_gather_free(&gather);
	return err ? err : done;
}

int sl_sparse_radial_gpu_open(struct sl_sparse_radial_gpu *t, const struct sl_sparse *s,
			      const struct sl_gpu_env *env)
{
	const struct sl_radial *r = &s->radial;
	int err;

	t->device = env->device;
	t->stage = s;
	t->items = env->items;
	err = open_kernels(t);
	if (!err)
		err = send_tables(t, env->queue);
	if (!err)
		err = sl_device_table(t->device, env->queue, r->bin, r->pixels * sizeof(*r->bin),
				      &t->bin);
	if (!err)
		err = sl_device_table(t->device, env->queue, r->norm, r->pixels * sizeof(*r->norm),
				      &t->norm);
	if (!err)
		err = sl_device_table(t->device, env->queue, s->radius,
				      r->pixels * sizeof(*s->radius), &t->radius);
	for (unsigned i = 0; i < env->slots && !err; i++)
		err = t->device->platform->memory_open(
			t->device, (uint64_t)env->batch_frames * r->bins * sizeof(float),
			&t->above[i]);
	return err;
}

void sl_sparse_radial_gpu_close(struct sl_sparse_radial_gpu *t)
{
	struct sl_device_memory *table[] = {&t->start, &t->index, &t->cutoff, &t->sorted,
					    &t->bin,   &t->norm,  &t->radius};

	if (!t->device)
		return;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		t->device->platform->memory_close(t->device, table[i]);
	for (unsigned i = 0; i < SL_GPU_BATCH_SLOTS; i++)
		t->device->platform->memory_close(t->device, &t->above[i]);
	sl_device_kernels_close(t->device, t->program, t->kernel, KERNELS);
}

#define LAUNCH(KERNEL, RANGE, ARGUMENT)                                                \
	t->device->platform->launch(b->queue, t->kernel[KERNEL], &(RANGE), (ARGUMENT), \
				    sizeof(ARGUMENT) / sizeof((ARGUMENT)[0]))

static int make_backgrounds(struct sl_sparse_radial_gpu *t, const struct sl_gpu_batch *b,
			    const struct sl_device_memory *image, float noise, float cutoff)
{
	const struct sl_sparse *s = t->stage;
	const struct sl_device_memory *background = &b->result[s->result + s->background];
	const uint32_t rejected = s->rejected;
	const struct sl_device_argument make[] = {
		SL_ARG_MEMORY(image),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),
		SL_ARG(rejected),
		SL_ARG(s->radial.pixels),
		SL_ARG_MEMORY(&t->start),
		SL_ARG_MEMORY(&t->index),
		SL_ARG_MEMORY(&t->sorted),
		SL_ARG(t->unit),
		SL_ARG_MEMORY(&t->cutoff),
		SL_ARG(s->cycle),
		SL_ARG(s->photon),
		SL_ARG_MEMORY(&background[0]),
		SL_ARG_MEMORY(&background[1]),
	};
	const struct sl_device_argument above[] = {
		SL_ARG_MEMORY(&background[0]),
		SL_ARG_MEMORY(&background[1]),
		SL_ARG(s->radial.bins),
		SL_ARG(noise),
		SL_ARG(cutoff),
		SL_ARG_MEMORY(&t->above[b->slot]),
	};
	const struct sl_device_range bins = {{s->radial.bins, b->frames}, THREADS};
	const struct sl_device_range some = {{sl_device_groups(s->radial.bins, THREADS), b->frames},
					     THREADS};
	int err = LAUNCH(BINS, bins, make);

	return err ? err : LAUNCH(ABOVE, some, above);
}

int sl_sparse_radial_gpu_pick(struct sl_sparse_radial_gpu *t, const struct sl_gpu_batch *b,
			      const struct sl_device_memory *image,
			      const struct sl_device_memory *mask,
			      const struct sl_device_memory *counts)
{
	const struct sl_sparse *s = t->stage;
	const struct sl_device_memory *background = &b->result[s->result + s->background];
	const uint32_t rejected = s->rejected, wide = s->radial.pixels % EIGHT == 0;
	const float noise = s->photon * (float)s->noise, cutoff = (float)s->cutoff_pick;
	const struct sl_device_argument argument[] = {
		SL_ARG_MEMORY(image),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),
		SL_ARG(rejected),
		SL_ARG(s->radial.pixels),
		SL_ARG(wide),
		SL_ARG_MEMORY(&t->bin),
		SL_ARG_MEMORY(&t->norm),
		SL_ARG(t->unit),
		SL_ARG_MEMORY(&t->radius),
		SL_ARG_MEMORY(&background[0]),
		SL_ARG_MEMORY(&background[1]),
		SL_ARG_MEMORY(&t->above[b->slot]),
		SL_ARG(s->radial.bins),
		SL_ARG(s->middle[0]),
		SL_ARG(s->step),
		SL_ARG(noise),
		SL_ARG(cutoff),
		SL_ARG_MEMORY(mask),
		SL_ARG_MEMORY(counts),
	};
	const struct sl_device_range runs = {{sl_device_groups(s->radial.pixels, RUN), b->frames},
					     THREADS};
	int err = make_backgrounds(t, b, image, noise, cutoff);

	return err ? err : LAUNCH(PICK, runs, argument);
}
