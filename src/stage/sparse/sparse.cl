/* sparse.cl - the few pixels that matter, as a list; the GPU side of the stage.
 *
 * By threshold: one kernel reads the image once, in loads of 16 bytes, and leaves a bit per pixel and a count per run; a
 * second one adds up counts and writes the lists, in order, from the bits. What must move is the image, an eighth of a
 * byte per pixel twice, and what is picked. Frames that were rejected cost nothing, unless they may be seen. */
#include "gpu/dialect/batch.h"
#include "gpu/dialect/decide.clh"
#include "gpu/dialect/dialect.clh"
#include "gpu/dialect/picked.clh"

/* Group 0: of runs, 1: of frames. `wide`: frames begin where eight pixels may be loaded at once. */
#define COUNT(NAME, TYPE, BYTES, GET, BOUND, PICKED)                                                                        \
	SL_DEVICE sl_u32 eight_##NAME(struct sl_eight all, BOUND bound)                                                     \
	{                                                                                                                   \
		sl_u32 i, bits = 0;                                                                                         \
                                                                                                                            \
		for (i = 0; i < 8; i++) {                                                                                   \
			TYPE v = GET(all, i);                                                                               \
                                                                                                                            \
			bits |= (sl_u32)(PICKED) << i;                                                                      \
		}                                                                                                           \
		return bits;                                                                                                \
	}                                                                                                                   \
	SL_DEVICE sl_u32 some_##NAME(SL_GLOBAL const TYPE *pixel, sl_u64 there, BOUND bound)                                \
	{                                                                                                                   \
		sl_u32 i, bits = 0;                                                                                         \
                                                                                                                            \
		for (i = 0; i < 8 && i < there; i++) {                                                                      \
			TYPE v = pixel[i];                                                                                  \
                                                                                                                            \
			bits |= (sl_u32)(PICKED) << i;                                                                      \
		}                                                                                                           \
		return bits;                                                                                                \
	}                                                                                                                   \
	SL_KERNEL void sparse_count_##NAME(SL_GLOBAL const TYPE *image, SL_GLOBAL const struct sl_kernel_frame *frame,      \
					   SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 items, sl_u64 pixels,  \
					   sl_u32 wide, BOUND bound, SL_GLOBAL sl_u8 *mask, SL_GLOBAL sl_u32 *count)        \
	{                                                                                                                   \
		SL_SHARED sl_u32 shared[SL_GROUP_MOST];                                                                     \
		sl_u32 f = sl_group(1), run = sl_group(0), t = sl_thread(), n = 0, j;                                       \
		sl_u64 at = (sl_u64)run * SL_RUN + 8 * t;                                                                   \
                                                                                                                            \
		if (!sl_kernel_is_seen(&frame[f], &verdict[f * items]))                                                     \
			return;                                                                                             \
		image += f * pixels;                                                                                        \
		mask += ((sl_u64)f * sl_groups(0) + run) * (SL_RUN / 8);                                                    \
		if (wide && ((sl_u64)run + 1) * SL_RUN <= pixels) {                                                         \
			struct sl_eight all[4];                                                                             \
                                                                                                                            \
			for (j = 0; j < 4; j++)                                                                             \
				all[j] = sl_eight_##BYTES(image + at + j * (SL_RUN / 4));                                   \
			for (j = 0; j < 4; j++) {                                                                           \
				sl_u32 bits = eight_##NAME(all[j], bound);                                                  \
                                                                                                                            \
				mask[t + j * SL_RUN_THREADS] = (sl_u8)bits;                                                 \
				n += (sl_u32)sl_popcount(bits);                                                             \
			}                                                                                                   \
		} else {                                                                                                    \
			for (j = 0; j < 4; j++, at += SL_RUN / 4) {                                                         \
				sl_u32 bits = at < pixels ? some_##NAME(image + at, pixels - at, bound) : 0;                \
                                                                                                                            \
				mask[t + j * SL_RUN_THREADS] = (sl_u8)bits;                                                 \
				n += (sl_u32)sl_popcount(bits);                                                             \
			}                                                                                                   \
		}                                                                                                           \
		n = sl_group_sum(shared, n);                                                                                \
		if (t == 0)                                                                                                 \
			count[f * sl_groups(0) + run] = n;                                                                  \
	}

/* Bad pixels are below all thresholds, or excluded; overloads are picked. */
COUNT(u8, sl_u8, 1, SL_EIGHT_U8, sl_u32, v >= bound && v != 0xff)
COUNT(u16, sl_u16, 2, SL_EIGHT_U16, sl_u32, v >= bound && v != 0xffff)
COUNT(i16, sl_i16, 2, SL_EIGHT_I16, sl_i32, v >= bound)
COUNT(u32, sl_u32, 4, SL_EIGHT_U32, sl_u32, v >= bound && v != 0xffffffffu)
COUNT(f32, float, 4, SL_EIGHT_F32, float, v > bound)

/* By radius frames that are kept, or all; by threshold all that may be seen. */
enum { LOOK_KEPT, LOOK_ALL, LOOK_SEEN };

SL_DEVICE sl_u32 sl_sparse_looks_at(SL_GLOBAL const struct sl_kernel_frame *frame,
				    SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 look)
{
	if (look == LOOK_SEEN)
		return (sl_u32)sl_kernel_is_seen(frame, verdict);
	return look == LOOK_ALL ? !(frame->flags & SL_KERNEL_DARK) : (sl_u32)sl_kernel_has_image(frame, verdict);
}

/* The lists, out of bits and counts, whoever made these; frames that nobody looks at have empty ones. columns 0: no row
 * pointers. rows_at: of the first list's number of rows; the second's is rows_step behind. */
#define WRITE(NAME, TYPE)                                                                                                   \
	SL_KERNEL void sparse_write_##NAME(SL_GLOBAL const TYPE *image, SL_GLOBAL const struct sl_kernel_frame *frame,      \
					   SL_GLOBAL const struct sl_kernel_verdict *verdict, sl_u32 items,                 \
					   sl_u32 look, sl_u64 pixels, SL_GLOBAL const sl_u32 *mask,                        \
					   SL_GLOBAL const sl_u32 *count, sl_u32 room, SL_GLOBAL sl_u32 *index,             \
					   SL_GLOBAL TYPE *value, SL_GLOBAL sl_u32 *found, SL_GLOBAL sl_u32 *rows,          \
					   sl_u32 rows_at, sl_u32 rows_step, SL_GLOBAL sl_u32 *pointer, sl_u32 columns)     \
	{                                                                                                                   \
		SL_SHARED sl_u32 shared[SL_GROUP_MOST];                                                                     \
		sl_u32 f = sl_group(1), run = sl_group(0), runs = sl_groups(0), bits = 0, before = 0, total, at, first;     \
		sl_u32 looks = sl_sparse_looks_at(&frame[f], &verdict[f * items], look);                                    \
                                                                                                                            \
		if (!looks && !(frame[f].flags & (SL_KERNEL_DARK | SL_KERNEL_SEEN)))                                        \
			return;                                                                                             \
		if (looks) {                                                                                                \
			bits = mask[(sl_u64)(f * runs + run) * SL_RUN_WORDS + sl_thread()];                                 \
			before = sl_picked_before(shared, count + f * runs, run);                                           \
		}                                                                                                           \
		at = before + sl_group_prefix(shared, (sl_u32)sl_popcount(bits), &total);                                   \
		first = run * SL_RUN + 32 * sl_thread();                                                                    \
		if (columns)                                                                                                \
			point(pointer + (sl_u64)f * (pixels / columns + 1), bits, at, first, columns, pixels, room);        \
		for (; bits && at < room; bits &= bits - 1, at++) {                                                         \
			sl_u32 pixel = first + 31 - (sl_u32)sl_clz((sl_i32)(bits & -bits));                                 \
                                                                                                                            \
			index[(sl_u64)f * room + at] = pixel;                                                               \
			value[(sl_u64)f * room + at] = image[f * pixels + pixel];                                           \
		}                                                                                                           \
		total += before;                                                                                            \
		if (run + 1 == runs && sl_thread() == 0) {                                                                  \
			found[f] = total;                                                                                   \
			total = total < room ? total : room;                                                                \
			rows[rows_at + f] = rows[rows_at + rows_step + f] = total;                                          \
			if (columns)                                                                                        \
				pointer[(sl_u64)f * (pixels / columns + 1) + pixels / columns] = total;                     \
		}                                                                                                           \
		sl_end();                                                                                                   \
	}

/* Of rows that begin with one of 32 pixels: how many were picked before, as far as the list goes. */
SL_DEVICE void point(SL_GLOBAL sl_u32 *pointer, sl_u32 bits, sl_u32 before, sl_u32 first, sl_u32 columns, sl_u64 pixels,
		     sl_u32 room)
{
	sl_u64 row = ((sl_u64)first + columns - 1) / columns, pixel;

	for (pixel = row * columns; pixel < (sl_u64)first + 32 && pixel < pixels; pixel += columns, row++) {
		sl_u32 n = before + (sl_u32)sl_popcount(bits & ((1u << (pixel - first)) - 1));

		pointer[row] = n < room ? n : room;
	}
}

WRITE(1, sl_u8)
WRITE(2, sl_u16)
WRITE(4, sl_u32)
