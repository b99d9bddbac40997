/* leaf.h - what the hash tree of a run says about one frame.
 *
 * Model:     a leaf is the row about a frame, as little-endian bytes in a fixed order (leaf.c):
 *            which frame, the verdict, and for each module its place in the source's stream, its
 *            outcome and the checksum of its pixels that the source sent; then checksums of what
 *            the file has about the frame: the image as pixels, and the rows of every other series.
 *            Nothing in it depends on how images are packed or on which file has them, so that a
 *            file that is packed or divided otherwise has the same leaves.
 * Threads:   functions of their arguments.
 * Ownership: arrays are the caller's. */
#ifndef SL_AUDIT_LEAF_H
#define SL_AUDIT_LEAF_H

#include "audit/tree.h"

/* Of the leaf's bytes; a change of them is a new version. */
enum { SL_LEAF_VERSION = 1, SL_LEAF_MODULES = 64, SL_LEAF_SERIES = 256 };

struct sl_leaf {
	uint64_t sequence, number, timestamp, missing;
	float score;
	uint32_t flags;
	uint16_t reason;
	uint8_t keep;
	bool has_image;
	uint32_t image_crc; /* CRC32C of the pixels; 0 without an image */
	uint32_t modules, series;
	uint32_t series_names; /* CRC32C of the paths of all series, each with a newline behind */
	uint64_t source_known; /* a bit per module: source_crc is there */
	const uint64_t *module_sequence; /* [modules]; UINT64_MAX: nothing in this frame */
	const uint8_t *outcome, *cause;	 /* [modules] */
	const uint32_t *source_crc;	 /* [modules]; 0 where it is not known */
	const uint32_t *series_rows,
		*series_crc; /* [series]: rows about this frame, their CRC32C */
};

/* modules and series are at most what is said above. */
struct sl_hash sl_leaf_hash(const struct sl_leaf *leaf);

#endif
