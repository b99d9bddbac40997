/* sparse.c - the few pixels that matter, as a list: where they are and what they count.
 *
 * threshold: pixels with at least `threshold` photons (counts of an unsigned image; keV of as many
 * photons in a float one). Bad pixels, and the largest number of an unsigned image, never are;
 * overloads always are. radial: see radial.c.
 *
 * Adds, for each frame: "sparse_index" (uint32: the pixel's number in [modules][rows][columns],
 * rising) and "sparse_value" (as in the image), ragged; "sparse_found", how many there were. More
 * than `max_pixels`: the first by index are kept, and found is higher than the rows. With
 * row_pointers "sparse_row_pointer" [rows of all modules + 1], which makes it a matrix in CSR form.
 * With radial "sparse_background" and "sparse_deviation" [bins]. Dark frames have empty lists; so
 * have, with radial, frames that were rejected before.
 *
 * Cost: by threshold one pass over the tile, which is in cache when `correct` just wrote it; no
 * image need go to memory for it.
 * Threads: every worker has lists of its own, in scratch; finish() merges them. */
#include "stage/sparse/sparse.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "stage/vectors.h"

enum { BLOCK = SL_OUTSIDE_BLOCK, MASKS = 64 };

static const struct sl_option options[] = {
	SL_CHOICE(struct sl_sparse, method, threshold, "threshold|radial",
		  "pixels over a threshold, or over the background at their distance from the "
		  "beam"),
	SL_U32(struct sl_sparse, threshold, 10, 1, 4294967294., "photons",
	       "threshold: a pixel is picked when it has at least as many (or counts)"),
	SL_U32(struct sl_sparse, max_pixels, 100000, 1, 16777216, "pixels",
	       "most of a frame that are kept; more are counted"),
	SL_BOOL(struct sl_sparse, row_pointers, false,
		"also where each row of the image begins in the lists"),
	SL_U32(struct sl_sparse, bins, 800, 1, 65535, "bins", "radial: of the background"),
	SL_CHOICE(struct sl_sparse, unit, r_mm, "q_nm|tth_deg|r_mm|r_pixels",
		  "radial: what bins are equally wide in: q in 1/nm, 2 theta in degrees, the "
		  "distance from the beam in mm or pixels"),
	SL_F64(struct sl_sparse, low, 0, 0, 1e6, "", "radial: where the first bin begins"),
	SL_F64(struct sl_sparse, high, 0, 0, 1e6, "",
	       "radial: where the last one ends; 0: at the farthest pixel"),
	SL_BOOL(struct sl_sparse, solid_angle, false,
		"radial: pixels far out see less of the sample: divide by what they see"),
	SL_F64(struct sl_sparse, polarisation, 0, -1, 1, "",
	       "radial: of the beam, to divide by; 0: none, 0.99: a synchrotron's"),
	SL_U32(struct sl_sparse, cycle, 5, 0, SL_SPARSE_CYCLES, "rounds",
	       "radial: of clipping what stands out, at most"),
	SL_F64(struct sl_sparse, cutoff_clip, 0, 0, 1000, "sigma",
	       "radial: to clip at; at least what Chauvenet's criterion says"),
	SL_F64(struct sl_sparse, cutoff_pick, 3, 0, 1000, "sigma",
	       "radial: a pixel is picked when it is above the background by so much"),
	SL_F64(struct sl_sparse, noise, 1, 0, 1e6, "photons",
	       "radial: of the detector, added to the deviation; the least to be picked"),
	SL_BOOL(struct sl_sparse, rejected, false,
		"radial: look at frames, too, that an earlier stage rejected"),
	SL_VECTORS_OPTION(struct sl_sparse),
	SL_OPTION_END};

/* Of one frame, by one worker; index and value follow, and are not zeroed. */
struct head {
	uint64_t found;
	uint32_t count;
	uint32_t merged; /* by finish() */
};

bool sl_sparse_is_bad(enum sl_dtype dtype, const void *pixels, uint64_t i)
{
	switch (dtype) {
	case SL_U8:
		return ((const uint8_t *)pixels)[i] == UINT8_MAX;
	case SL_U16:
		return ((const uint16_t *)pixels)[i] == UINT16_MAX;
	case SL_U32:
		return ((const uint32_t *)pixels)[i] == UINT32_MAX;
	case SL_I16:
		return ((const int16_t *)pixels)[i] == INT16_MIN;
	default:
		return !(((const float *)pixels)[i] >= -FLT_MAX); /* NaN, -infinity */
	}
}

bool sl_sparse_is_overload(enum sl_dtype dtype, const void *pixels, uint64_t i)
{
	if (dtype == SL_F32)
		return ((const float *)pixels)[i] > FLT_MAX;
	return dtype == SL_I16 && ((const int16_t *)pixels)[i] == INT16_MAX;
}

static void copy_value(size_t bytes, void *to, uint64_t at, const void *from, uint64_t i)
{
	switch (bytes) {
	case 1:
		((uint8_t *)to)[at] = ((const uint8_t *)from)[i];
		break;
	case 2:
		((uint16_t *)to)[at] = ((const uint16_t *)from)[i];
		break;
	default:
		((uint32_t *)to)[at] = ((const uint32_t *)from)[i];
	}
}

void sl_sparse_pick(struct sl_sparse_list *list, enum sl_dtype dtype, uint32_t index,
		    const void *pixels, uint64_t i)
{
	list->found++;
	if (list->count == list->room)
		return;
	list->index[list->count] = index;
	copy_value(sl_dtype_bytes(dtype), list->value, list->count, pixels, i);
	list->count++;
}

/* ---- by threshold ---- */

static struct sl_sparse_list list_of(const struct sl_sparse *s, struct head *head)
{
	uint32_t *index = (uint32_t *)(head + 1);

	return (struct sl_sparse_list){.index = index,
				       .value = index + s->room,
				       .room = s->room,
				       .count = head->count,
				       .found = head->found};
}

static void pick_bits(const struct sl_sparse *s, struct sl_sparse_list *list, uint64_t mask,
		      const void *pixels, uint32_t i, uint32_t index)
{
	for (; mask; mask &= mask - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(mask);

		if (!sl_sparse_is_bad(s->dtype, pixels, i + bit))
			sl_sparse_pick(list, s->dtype, index + bit, pixels, i + bit);
	}
}

static void select_run(const struct sl_sparse *s, struct sl_sparse_list *list, const void *pixels,
		       uint32_t count, uint32_t index)
{
	size_t bytes = sl_dtype_bytes(s->dtype);
	uint64_t mask[MASKS];
	uint32_t i = 0;

	while (count - i >= BLOCK) {
		uint32_t blocks = (count - i) / BLOCK < MASKS ? (count - i) / BLOCK : MASKS;

		s->outside((const char *)pixels + i * bytes, blocks, &s->bounds, 0, mask);
		for (uint32_t b = 0; b < blocks; b++, i += BLOCK)
			pick_bits(s, list, mask[b], pixels, i, index + i);
	}
	if (i < count)
		pick_bits(s, list,
			  sl_outside_part(s->dtype, (const char *)pixels + i * bytes, count - i,
					  &s->bounds),
			  pixels, i, index + i);
}

static size_t entry_bytes(const struct sl_sparse *s)
{
	size_t bytes = sizeof(struct head) +
		       s->room * (sizeof(uint32_t) + sl_dtype_bytes(s->dtype));

	return (bytes + 63) / 64 * 64;
}

static void tile(void *state, void *scratch, const struct sl_batch *batch,
		 const struct sl_tile *tile)
{
	const struct sl_sparse *s = state;
	uint32_t index = (uint32_t)(tile->module * s->module_pixels + tile->first);

	for (uint32_t f = 0; f < batch->frames; f++) {
		struct head *head = (void *)((char *)scratch + f * entry_bytes(s));
		struct sl_sparse_list list = list_of(s, head);

		if (batch->frame[f]->flags & SL_FRAME_DARK)
			continue; /* has no image */
		select_run(s, &list, tile->in[f], tile->count, index);
		head->count = list.count;
		head->found = list.found;
	}
}

/* ---- lists of all workers become one ---- */

static void swap_values(size_t bytes, void *values, uint32_t a, uint32_t b)
{
	uint32_t kept = 0;

	copy_value(bytes, &kept, 0, values, a);
	copy_value(bytes, values, a, values, b);
	copy_value(bytes, values, b, &kept, 0);
}

/* A worker takes tiles by rising number, so that its list is in order. Should a unit hand them out
 * otherwise, it is put in order (Shell's sort). */
static void sort(struct sl_sparse_list *list, size_t bytes)
{
	uint32_t gap = 1, i = 1;

	while (i < list->count && list->index[i - 1] < list->index[i])
		i++;
	if (i >= list->count)
		return;
	while (gap < list->count / 3)
		gap = 3 * gap + 1;
	for (; gap; gap /= 3)
		for (i = gap; i < list->count; i++)
			for (uint32_t k = i; k >= gap && list->index[k - gap] > list->index[k];
			     k -= gap) {
				uint32_t kept = list->index[k];

				list->index[k] = list->index[k - gap];
				list->index[k - gap] = kept;
				swap_values(bytes, list->value, k, k - gap);
			}
}

/* How many of the list, from `first` on, come before that index. */
static uint32_t run_of(const struct sl_sparse_list *list, uint32_t first, uint32_t before)
{
	uint32_t low = first, high = list->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (list->index[middle] < before)
			low = middle + 1;
		else
			high = middle;
	}
	return low - first;
}

static void append(struct sl_sparse_list *to, const struct sl_sparse_list *from, uint32_t first,
		   uint32_t count, size_t bytes)
{
	uint32_t room = to->room - to->count;

	count = count < room ? count : room;
	memcpy(to->index + to->count, from->index + first, count * sizeof(*to->index));
	memcpy((char *)to->value + to->count * bytes, (char *)from->value + first * bytes,
	       count * bytes);
	to->count += count;
}

/* The worker whose next index is lowest, and the next index of all others; -1: all is merged. */
static int lowest(const struct sl_sparse *s, void *const *scratch, unsigned workers, size_t offset,
		  uint32_t *before)
{
	uint32_t least = UINT32_MAX;
	int found = -1;

	*before = UINT32_MAX;
	for (unsigned w = 0; w < workers; w++) {
		struct head *head = (void *)((char *)scratch[w] + offset);
		struct sl_sparse_list list = list_of(s, head);

		if (head->merged == list.count)
			continue;
		if (found < 0 || list.index[head->merged] < least) {
			*before = found < 0 ? *before : least;
			least = list.index[head->merged];
			found = (int)w;
		} else if (list.index[head->merged] < *before) {
			*before = list.index[head->merged];
		}
	}
	return found;
}

static void merge(const struct sl_sparse *s, void *const *scratch, unsigned workers, size_t offset,
		  struct sl_sparse_list *to)
{
	size_t bytes = sl_dtype_bytes(s->dtype);
	uint32_t before;
	int next;

	for (unsigned w = 0; w < workers; w++) {
		struct sl_sparse_list list = list_of(s, (void *)((char *)scratch[w] + offset));

		sort(&list, bytes);
		to->found += list.found;
	}
	while ((next = lowest(s, scratch, workers, offset, &before)) >= 0) {
		struct head *head = (void *)((char *)scratch[next] + offset);
		struct sl_sparse_list list = list_of(s, head);
		uint32_t count = run_of(&list, head->merged, before);

		append(to, &list, head->merged, count, bytes);
		head->merged += count;
	}
}

/* ---- results ---- */

static struct sl_sparse_list result_of(const struct sl_sparse *s, struct sl_frame *frame)
{
	return (struct sl_sparse_list){.index = frame->result[s->result].host,
				       .value = frame->result[s->result + 1].host,
				       .room = s->room};
}

static void point_at_rows(const struct sl_sparse *s, const struct sl_sparse_list *list,
			  uint32_t *pointer)
{
	uint32_t rows = s->modules * s->rows, row = 0;

	for (uint32_t i = 0; i < list->count; i++)
		while (row <= list->index[i] / s->columns)
			pointer[row++] = i;
	while (row <= rows)
		pointer[row++] = list->count;
}

static void set_results(const struct sl_sparse *s, struct sl_frame *frame,
			const struct sl_sparse_list *list)
{
	frame->result[s->result].rows = list->count;
	frame->result[s->result + 1].rows = list->count;
	*(uint32_t *)frame->result[s->result + 2].host = (uint32_t)list->found;
	if (s->pointers)
		point_at_rows(s, list, frame->result[s->result + s->pointers].host);
}

static void finish(void *state, void *const *scratch, unsigned workers, struct sl_batch *batch)
{
	const struct sl_sparse *s = state;

	for (uint32_t f = 0; f < batch->frames; f++) {
		struct sl_sparse_list list = result_of(s, batch->frame[f]);

		if (!(batch->frame[f]->flags & SL_FRAME_DARK))
			merge(s, scratch, workers, f * entry_bytes(s), &list);
		set_results(s, batch->frame[f], &list);
	}
}

static void frame(void *state, void *scratch, const struct sl_batch *batch, uint32_t f)
{
	const struct sl_sparse *s = state;
	struct sl_frame *frame = batch->frame[f];
	struct sl_sparse_list list = result_of(s, frame);
	float *average = frame->result[s->result + s->background].host;
	float *deviation = frame->result[s->result + s->background + 1].host;

	if (!(frame->flags & SL_FRAME_DARK) && (s->rejected || sl_frame_is_kept(frame))) {
		sl_sparse_radial_frame(s, scratch, frame, &list, average, deviation);
	} else {
		memset(average, 0, s->radial.bins * sizeof(*average));
		memset(deviation, 0, s->radial.bins * sizeof(*deviation));
	}
	set_results(s, frame, &list);
}

/* ---- open ---- */

static int check(const struct sl_sparse *s, const struct sl_env *env, double photon)
{
	static const uint32_t most[SL_DTYPES] = {[SL_U8] = UINT8_MAX - 1,
						 [SL_U16] = UINT16_MAX - 1,
						 [SL_U32] = UINT32_MAX - 1,
						 [SL_I16] = INT16_MAX - 1,
						 [SL_F32] = UINT32_MAX - 1};

	if (!most[s->dtype]) {
		sl_error("sparse reads counts (uint8, uint16, uint32), int16 photons or float32 "
			 "keV, not %s",
			 sl_dtype_name(s->dtype));
		return -EINVAL;
	}
	if (s->method == SL_SPARSE_THRESHOLD && s->threshold > most[s->dtype]) {
		sl_error("sparse: no pixel of %s can count %u; threshold may be %u at most",
			 sl_dtype_name(s->dtype), s->threshold, most[s->dtype]);
		return -EINVAL;
	}
	if (s->method == SL_SPARSE_THRESHOLD && !(photon > 0)) {
		sl_error("sparse: a threshold in photons needs a photon energy; detector '%s' has "
			 "none",
			 env->geometry->detector);
		return -EINVAL;
	}
	if (s->modules * s->module_pixels > UINT32_MAX) {
		sl_error("sparse: an index has 32 bits, and the detector has more pixels");
		return -EINVAL;
	}
	return 0;
}

static int add_output(struct sl_stage_terms *terms, const char *name, enum sl_dtype dtype,
		      uint32_t rank, uint32_t dim)
{
	struct sl_shape *shape = &terms->output[terms->outputs];

	*shape = (struct sl_shape){.dtype = dtype, .rank = rank, .dim = {dim}};
	strcpy(shape->name, name);
	return (int)terms->outputs++;
}

static void add_outputs(struct sl_sparse *s, struct sl_stage_terms *terms)
{
	add_output(terms, "sparse_index", SL_U32, 1, s->room);
	add_output(terms, "sparse_value", s->dtype, 1, s->room);
	terms->output[0].ragged = terms->output[1].ragged = 1;
	add_output(terms, "sparse_found", SL_U32, 0, 0);
	s->background = s->pointers = 0;
	if (s->method == SL_SPARSE_RADIAL) {
		s->background = add_output(terms, "sparse_background", SL_F32, 1, s->radial.bins);
		add_output(terms, "sparse_deviation", SL_F32, 1, s->radial.bins);
	}
	if (s->row_pointers)
		s->pointers = add_output(terms, "sparse_row_pointer", SL_U32, 1,
					 s->modules * s->rows + 1);
}

static void add_constants(const struct sl_sparse *s, struct sl_stage_terms *terms)
{
	const struct sl_shape image = {
		.dtype = SL_F32, .rank = 2, .dim = {s->modules * s->rows, s->columns}};
	struct sl_constant *c = terms->constant;

	c[0] = (struct sl_constant){image, s->radius};
	strcpy(c[0].shape.name, "sparse_mask");
	c[1] = (struct sl_constant){{"sparse_radius", SL_F32, 1, {s->radial.bins}, 0}, s->middle};
	c[2] = (struct sl_constant){image, s->radial.norm};
	strcpy(c[2].shape.name, "sparse_normalization");
	terms->constants = 3;
}

static const struct sl_stage by_threshold, by_radius;

static int open_sparse(void *state, const struct sl_env *env, const struct sl_shape *in,
		       struct sl_stage_terms *terms)
{
	struct sl_sparse *s = state;
	const struct sl_geometry *g = env->geometry;
	double photon = sl_shape_photon(in, g->photon_energy_keV);
	bool radial = s->method == SL_SPARSE_RADIAL;
	int err;

	s->dtype = in->dtype;
	s->modules = g->modules;
	s->rows = g->rows;
	s->columns = g->columns;
	s->module_pixels = sl_geometry_pixels(g);
	s->input = terms->input;
	s->result = terms->result;
	s->photon = photon > 0 ? (float)photon : 1;
	err = check(s, env, photon);
	if (!err && radial)
		err = sl_sparse_radial_open(s, env);
	if (err)
		return err;
	s->room = s->modules * s->module_pixels < s->max_pixels
			  ? (uint32_t)(s->modules * s->module_pixels)
			  : s->max_pixels;
	s->outside = sl_outside_choose(s->dtype, s->vectors);
	s->bounds = (struct sl_outside_bounds){
		.low = s->dtype == SL_I16 ? INT16_MIN : 0,
		.high = (int64_t)s->threshold - 1,
		.real_low = -INFINITY,
		.real_high = nextafterf((float)(s->threshold * photon), -INFINITY)};
	add_outputs(s, terms);
	if (radial)
		add_constants(s, terms);
	terms->as = radial ? &by_radius : &by_threshold;
	terms->scratch_bytes = radial ? sl_sparse_radial_scratch(s) : entry_bytes(s);
	terms->stale_bytes = terms->scratch_bytes - (radial ? 0 : sizeof(struct head));
	return 0;
}

static void close_sparse(void *state)
{
	sl_sparse_radial_close(state);
}

#define SPARSE                                                                                \
	.name = "sparse",                                                                     \
	.doc = "lists the pixels over a threshold, or over the background at their distance " \
	       "from the beam",                                                               \
	.state_bytes = sizeof(struct sl_sparse), .options = options, .input = "image",        \
	.twin = &sl_twin_sparse, .open = open_sparse, .close = close_sparse

static const struct sl_stage by_threshold = {SPARSE, .tile = tile, .finish = finish};
static const struct sl_stage by_radius = {SPARSE, .frame = frame};

/* Which of the two it is, the option decides. */
const struct sl_stage sl_stage_sparse = {SPARSE, .tile = tile, .frame = frame, .finish = finish};
