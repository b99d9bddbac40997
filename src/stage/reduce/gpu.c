/* gpu.c - `reduce` on an accelerator; windows are kept there.
 *
 * Exact: statistics, windows and bins of up to SL_REDUCE_ALONE pixels in a row are the CPU's to the
 * last bit. Larger bins of floats are doubles that are added in another order, and rounded to
 * floats: they may differ in the last bit, and windows of them likewise. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "core/gpu.h"
#include "gpu/dialect/kernels.h"
#include "gpu/table.h"
#include "stage/reduce/kernel.h"
#include "stage/reduce/reduce.h"

enum { STATISTICS, CONCLUDE, BINS, WINDOW, ROWS, KERNELS };

struct gpu {
	struct sl_reduce *stage;
	struct sl_device *device;
	struct sl_device_program *program;
	struct sl_device_kernel *kernel[KERNELS];
	uint32_t items, is_float, batch_frames;
	struct sl_kernel_reduce about;
	struct sl_kernel_bins bins;
	struct sl_device_memory part, list, first;		/* of all regions */
	struct sl_device_memory window_sum, window_most, count; /* uint32_t [1]: frames in it */
	struct sl_device_memory sums[SL_GPU_BATCH_SLOTS];
};

static void close_gpu(void *state)
{
	struct gpu *t = state;
	struct sl_device_memory *table[] = {&t->part,	    &t->list,	     &t->first,
					    &t->window_sum, &t->window_most, &t->count};

	if (!t->device)
		return;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		t->device->platform->memory_close(t->device, table[i]);
	for (unsigned i = 0; i < SL_GPU_BATCH_SLOTS; i++)
		t->device->platform->memory_close(t->device, &t->sums[i]);
	sl_device_kernels_close(t->device, t->program, t->kernel, KERNELS);
}

/* ---- regions ---- */

struct drafts {
	struct sl_kernel_eight *eight;
	struct sl_kernel_part *part;
	uint32_t first[SL_REDUCE_REGIONS + 1]; /* parts of each region */
	uint64_t eights;
	uint32_t parts;
};

/* Runs come by rising number: one that goes on where the last ended may share its eight. */
static uint64_t list_region(const struct sl_reduce_region *region, struct sl_kernel_eight *list)
{
	uint64_t n = 0;

	for (uint32_t r = 0; r < region->spans; r++)
		for (uint64_t i = 0; i < region->span[r].count; i++) {
			uint64_t pixel = region->span[r].first + i;
			uint32_t number = (uint32_t)(pixel / 8), bit = 1u << pixel % 8;

			if (n && list[n - 1].number == number)
				list[n - 1].mask |= bit;
			else
				list[n++] = (struct sl_kernel_eight){number, bit};
		}
	return n;
}

static uint64_t most_eights(const struct sl_reduce *r)
{
	uint64_t n = 0;

	for (uint32_t k = 1; k < r->regions; k++)
		for (uint32_t i = 0; i < r->region[k].spans; i++)
			n += r->region[k].span[i].count / 8 + 2;
	return n;
}

static int draft(const struct sl_reduce *r, struct drafts *d)
{
	uint64_t all = (r->modules * r->module_pixels + 7) / 8, most = most_eights(r);

	*d = (struct drafts){
		.eight = malloc((most + 1) * sizeof(*d->eight)),
		.part = malloc(((all + most) / SL_REDUCE_EIGHTS + r->regions + 1) *
			       sizeof(*d->part)),
	};
	if (!d->eight || !d->part)
		return -ENOMEM;
	for (uint32_t k = 0; k < r->regions; k++) {
		uint64_t from = k ? d->eights : 0;
		uint64_t n = k ? list_region(&r->region[k], d->eight + d->eights) : all;

		d->eights += k ? n : 0;
		for (uint64_t at = 0; at < n; at += SL_REDUCE_EIGHTS)
			d->part[d->parts++] = (struct sl_kernel_part){
				.first = from + at,
				.eights = (uint32_t)(n - at < SL_REDUCE_EIGHTS ? n - at
									       : SL_REDUCE_EIGHTS),
				.region = k};
		d->first[k + 1] = d->parts;
	}
	return 0;
}

/* ---- opening ---- */

static int send_tables(struct gpu *t, struct sl_device_queue *queue, const struct drafts *d)
{
	const struct sl_reduce *r = t->stage;
	uint64_t window = r->window ? r->bins * 8 : 0;
	const struct {
		const void *from;
		uint64_t bytes;
		struct sl_device_memory *to;
	} table[] = {
		{d->part, d->parts * sizeof(*d->part), &t->part},
		{d->eight, d->eights * sizeof(*d->eight), &t->list},
		{d->first, sizeof(d->first), &t->first},
		{r->window_sum, window, &t->window_sum},
		{r->window_most, window, &t->window_most},
		{&r->window_frames, sizeof(r->window_frames), &t->count},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]) && !err; i++)
		err = sl_device_table(t->device, queue, table[i].from, table[i].bytes, table[i].to);
	return err;
}

static int open_tables(struct gpu *t, const struct sl_gpu_env *env)
{
	const struct sl_platform *p = t->device->platform;
	struct drafts d;
	int done, err = draft(t->stage, &d);

	t->about.parts = d.parts;
	if (err)
		sl_error("reduce: no memory for regions");
	else
		err = send_tables(t, env->queue, &d);
	done = sl_device_finish(t->device, env->queue); /* they are freed below, in any case */
	err = err ? err : done;
	for (unsigned i = 0; i < env->slots && !err; i++) {
		err = p->memory_open(t->device,
				     (uint64_t)env->batch_frames * d.parts *
					     sizeof(struct sl_kernel_sum),
				     &t->sums[i]);
		if (err)
			sl_error("%s: reduce: no memory on the device for sums: %s", p->name,
				 p->problem(t->device));
	}
	free(d.eight);
	free(d.part);
	return err;
}

static void fill_in(struct gpu *t, const struct sl_gpu_env *env)
{
	const struct sl_reduce *r = t->stage;

	t->about = (struct sl_kernel_reduce){
		.module_pixels = r->module_pixels,
		.modules = r->modules,
		.rows = r->rows,
		.columns = r->columns,
		.raw = r->input == SL_STAGE_RAW,
		.aligned = r->module_pixels % 8 == 0,
		.regions = r->regions,
	};
	t->bins = (struct sl_kernel_bins){
		.bins = r->bins,
		.bin = r->bin,
		.rows = r->bin_rows,
		.columns = r->bin_columns,
		.kind = r->bin_dtype == SL_I32	      ? SL_BINNED_I32
			: r->bin_dtype == SL_I64      ? SL_BINNED_I64
			: r->binned == SL_REDUCE_MEAN ? SL_BINNED_MEAN_F32
						      : SL_BINNED_SUM_F32,
	};
	t->items = env->items;
	t->batch_frames = env->batch_frames;
	t->is_float = r->dtype == SL_F32;
}

static int open_gpu(void *state, const struct sl_gpu_env *env, const struct sl_chain_stage *stage)
{
	static const struct {
		const char *statistics, *alone, *many;
	} names[SL_DTYPES] = {
		[SL_U8] = {"reduce_u8", "reduce_bins_u8_alone", "reduce_bins_u8_many"},
		[SL_U16] = {"reduce_u16", "reduce_bins_u16_alone", "reduce_bins_u16_many"},
		[SL_U32] = {"reduce_u32", "reduce_bins_u32_alone", "reduce_bins_u32_many"},
		[SL_I16] = {"reduce_i16", "reduce_bins_i16_alone", "reduce_bins_i16_many"},
		[SL_F32] = {"reduce_f32", "reduce_bins_f32_alone", "reduce_bins_f32_many"}};
	struct gpu *t = state;
	const char *name[KERNELS];
	int err;

	t->device = env->device;
	t->stage = stage->state;
	fill_in(t, env);
	name[STATISTICS] = names[t->stage->dtype].statistics;
	name[CONCLUDE] = "reduce_conclude";
	name[BINS] = t->stage->bin <= SL_REDUCE_ALONE ? names[t->stage->dtype].alone
						      : names[t->stage->dtype].many;
	name[WINDOW] = t->stage->bin_dtype == SL_F32 ? "reduce_window_real" : "reduce_window_whole";
	name[ROWS] = "reduce_window_rows";
	err = sl_device_kernels(t->device, &sl_kernels_reduce, name, KERNELS, &t->program,
				t->kernel);
	return err ? err : open_tables(t, env);
}

/* ---- a batch ---- */

static const struct sl_device_memory *image_of(const struct gpu *t, const struct sl_gpu_batch *b)
{
	return t->about.raw ? b->raw : &b->result[t->stage->input];
}

static int statistics(struct gpu *t, const struct sl_gpu_batch *b)
{
	const struct sl_platform *p = t->device->platform;
	const struct sl_device_argument add[] = {
		SL_ARG(t->about),
		SL_ARG_MEMORY(image_of(t, b)),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->view),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),
		SL_ARG_MEMORY(&t->part),
		SL_ARG_MEMORY(&t->list),
		SL_ARG_MEMORY(&t->sums[b->slot]),
	};
	const struct sl_device_argument conclude[] = {
		SL_ARG(t->about),	   SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->verdict), SL_ARG(t->items),
		SL_ARG_MEMORY(&t->first),  SL_ARG_MEMORY(&t->sums[b->slot]),
		SL_ARG(t->is_float),	   SL_ARG_MEMORY(&b->result[t->stage->result]),
	};
	struct sl_device_range parts = {{t->about.parts, b->frames}, SL_REDUCE_THREADS};
	struct sl_device_range regions = {{t->about.regions, b->frames}, SL_REDUCE_THREADS};
	int err = p->launch(b->queue, t->kernel[STATISTICS], &parts, add,
			    sizeof(add) / sizeof(add[0]));

	return err ? err
		   : p->launch(b->queue, t->kernel[CONCLUDE], &regions, conclude,
			       sizeof(conclude) / sizeof(conclude[0]));
}

static int bins(struct gpu *t, const struct sl_gpu_batch *b)
{
	bool alone = t->bins.bin <= SL_REDUCE_ALONE;
	const struct sl_device_argument argument[] = {
		SL_ARG(t->about),
		SL_ARG(t->bins),
		SL_ARG_MEMORY(image_of(t, b)),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->view),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),
		SL_ARG_MEMORY(&b->result[t->stage->result + 1]),
	};
	struct sl_device_range range = {
		{alone ? sl_device_groups(t->bins.bins, SL_REDUCE_MANY) : (uint32_t)t->bins.bins,
		 b->frames},
		SL_REDUCE_MANY};

	return t->device->platform->launch(b->queue, t->kernel[BINS], &range, argument,
					   sizeof(argument) / sizeof(argument[0]));
}

static int windows(struct gpu *t, const struct sl_gpu_batch *b)
{
	const struct sl_platform *p = t->device->platform;
	struct sl_device_memory *result = &b->result[t->stage->result];
	uint32_t sum_at = (uint32_t)(t->stage->result + 2) * t->batch_frames;
	uint32_t most_at = sum_at + t->batch_frames;
	const struct sl_device_argument widen[] = {
		SL_ARG(t->bins),
		SL_ARG_MEMORY(b->frame),
		SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),
		SL_ARG(b->frames),
		SL_ARG(t->stage->window),
		SL_ARG_MEMORY(&t->count),
		SL_ARG_MEMORY(&result[1]),
		SL_ARG_MEMORY(&t->window_sum),
		SL_ARG_MEMORY(&t->window_most),
		SL_ARG_MEMORY(&result[2]),
		SL_ARG_MEMORY(&result[3]),
	};
	const struct sl_device_argument rows[] = {
		SL_ARG_MEMORY(b->frame),  SL_ARG_MEMORY(b->verdict),
		SL_ARG(t->items),	  SL_ARG(b->frames),
		SL_ARG(t->stage->window), SL_ARG_MEMORY(&t->count),
		SL_ARG_MEMORY(b->rows),	  SL_ARG(sum_at),
		SL_ARG(most_at),
	};
	struct sl_device_range all = {{sl_device_groups(t->bins.bins, SL_REDUCE_THREADS)},
				      SL_REDUCE_THREADS};
	struct sl_device_range one = {{1}, 32};
	int err = p->launch(b->queue, t->kernel[WINDOW], &all, widen,
			    sizeof(widen) / sizeof(widen[0]));

	return err ? err
		   : p->launch(b->queue, t->kernel[ROWS], &one, rows,
			       sizeof(rows) / sizeof(rows[0]));
}

static int enqueue(void *state, const struct sl_gpu_batch *b)
{
	struct gpu *t = state;
	int err = statistics(t, b);

	if (!err && t->stage->bin)
		err = bins(t, b);
	if (!err && t->stage->window)
		err = windows(t, b);
	return err;
}

static int give_back(void *state, struct sl_device_queue *queue)
{
	struct gpu *t = state;
	struct sl_reduce *r = t->stage;
	const struct sl_platform *p = t->device->platform;
	int err;

	if (!r->window)
		return 0;
	err = p->read(queue, r->window_sum, &t->window_sum, 0, t->window_sum.bytes);
	if (!err)
		err = p->read(queue, r->window_most, &t->window_most, 0, t->window_most.bytes);
	if (!err)
		err = p->read(queue, &r->window_frames, &t->count, 0, sizeof(r->window_frames));
	return err ? err : sl_device_finish(t->device, queue);
}

const struct sl_gpu sl_gpu_reduce = {
	.state_bytes = sizeof(struct gpu),
	.float_bound = 1e-6,
	.open = open_gpu,
	.close = close_gpu,
	.enqueue = enqueue,
	.give_back = give_back,
};
