/* kernel.h - tables of the kernels of `integrate`, for those who make them and those who read
 * them.
 *
 * Model:     a tile is SL_TILE_ROWS x SL_TILE_COLUMNS pixels of a module; one group has it, of
 *            several frames, in its own memory: words of 4 bytes, each with a pixel of one, two or
 *            four frames, SL_TILE_WORDS words deep. In a tile, entries (a pixel's share of a cell)
 *            are sorted by cell; up to SL_PIECE_MOST entries of one cell are a piece, which one
 *            thread adds up, in order, for one word of frames. Sums of pieces go to memory, those
 *            of a cell one behind the other (rank), and are added up by another kernel.
 * Exact:     each sum has one thread and one order: nothing is atomic, and results are the same
 *            whenever they are made. */
#ifndef SL_STAGE_INTEGRATE_KERNEL_H
#define SL_STAGE_INTEGRATE_KERNEL_H

#include "gpu/dialect/language.h"

enum {
	SL_TILE_ROWS = 32,
	SL_TILE_COLUMNS = 64,
	SL_TILE_PIXELS = SL_TILE_ROWS * SL_TILE_COLUMNS,
	SL_TILE_THREADS = SL_TILE_PIXELS / 8, /* each brings eight pixels of every frame */
	SL_TILE_WORDS = 4,		      /* 32 KiB in all: what every device has */
	SL_PIECE_MOST = 32,
	SL_STACK_MOST = 16, /* frames whose sums are in memory at once */
	SL_CONCLUDE_THREADS = 256
};

struct sl_kernel_tile {
	sl_u32 module, row, column; /* its first pixel */
	sl_u32 first, pieces;
};

/* In order of their lengths, so that threads beside each other have as much to do. */
struct sl_kernel_piece {
	sl_u32 first; /* entry, in eights */
	sl_u32 count, rank;
};

/* What stays the same, and which frames of those that are looked at. */
struct sl_kernel_integrate {
	sl_u64 module_pixels;
	sl_u32 modules, rows, columns;
	sl_u32 raw;	    /* the image is where views say; else frames follow each other */
	sl_u32 grain;	    /* bytes that may be loaded at once: 16, 8, 4; 0: a pixel */
	sl_u32 first, most; /* frames; room for sums of so many */
	sl_u32 two;	    /* variances have sums of their own */
	sl_u32 has_dark;
	sl_i32 bits, least;
	float least_f32;
};

/* How sums become results. */
struct sl_kernel_conclude {
	sl_u32 first, most, two, has_dark;
	sl_u32 cells, bins, sectors; /* sectors 0: a profile */
	sl_u32 slices;		     /* threads that share a cell's sums: a power of two */
	sl_u32 radius_stride, stride, intensity_at, sigma_at; /* of a frame's results */
	sl_i32 bits;
};

/* Where a pixel of a tile is in the group's memory. Threads that write eight pixels each, and those
 * that gather pixels of neighbouring rings, meet in different banks. */
SL_FN sl_u32 sl_tile_place(sl_u32 row, sl_u32 column)
{
	sl_u32 eight = row * (SL_TILE_COLUMNS / 8) + column / 8;

	return eight * 8 + ((column % 8) ^ (eight >> 2 & 7));
}

/* The same pixel in another word. */
SL_FN sl_u32 sl_tile_word(sl_u32 place, sl_u32 word)
{
	return place ^ (word * (SL_TILE_PIXELS | 8));
}

#endif
