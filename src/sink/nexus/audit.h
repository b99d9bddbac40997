/* audit.h - /entry/sluice/audit: the hash tree of the run, while its rows are written.
 *
 * Model:     every row about a frame becomes a leaf (audit/leaf.h), with checksums of the image, of
 *            the source's pixels and of the rows of every other series. Leaves and checksums are
 *            series of their own, so that a killed run has them as far as it has rows; the root of
 *            the whole and of each data file is written in the end.
 * Threads:   those of the file. The image's checksum is made by the workers (images.h).
 * Ownership: the series are the file's.
 * Cost:      some SHA-256 blocks per frame, whatever the image's size; memory grows by 64 bytes per
 *            data file. */
#ifndef SL_SINK_NEXUS_AUDIT_H
#define SL_SINK_NEXUS_AUDIT_H

#include <sluice/env.h>
#include <sluice/frame.h>

#include "audit/layout.h"
#include "audit/leaf.h"
#include "hdf5/file.h"
#include "sink/nexus/account.h"

struct sl_nexus_audit_part { /* a data file */
	uint64_t rows, first_sequence, first_image;
	struct sl_hash root;
};

struct sl_nexus_audit {
	char run_id[SL_AUDIT_RUN_ID_TEXT];
	struct sl_h5 *file;
	struct sl_h5_series *leaf, *image, *source, *known, *module_sequence, *rows, *crc;
	uint32_t modules, series;
	uint32_t series_names;
	struct sl_h5_series *watched[SL_LEAF_SERIES]; /* [series], in the order of their paths */
	struct sl_tree tree;
	struct sl_tree part; /* of the data file at hand */
	uint64_t images;
	uint64_t first_sequence, first_image; /* of the data file at hand */
	uint32_t parts;			      /* data files that have ended */
	struct sl_nexus_audit_part *ended;    /* [parts + 1] */
};

/* After all other series were opened. stored: the result that is the image; images: how it lies:
 * "modules", "assembled", "none". Close even when it failed; zeroed memory may be closed. 0,
 * -ENOMEM or -E2BIG (logged); the file's status tells whether it went well. */
int sl_nexus_audit_open(struct sl_nexus_audit *audit, struct sl_h5 *file, const struct sl_env *env,
			const char *stored, const char *images);
void sl_nexus_audit_close(struct sl_nexus_audit *audit);

/* After all other rows about the frame; account has its outcomes. image_crc: NULL: it has none. */
int sl_nexus_audit_add(struct sl_nexus_audit *audit, const struct sl_frame *frame,
		       const struct sl_account *account, const uint32_t *image_crc);

/* What a row about a frame takes; 0 where there is no audit. */
uint64_t sl_nexus_audit_frame_bytes(const struct sl_nexus_audit *audit);

/* A data file has begun. -ENOMEM */
int sl_nexus_audit_roll(struct sl_nexus_audit *audit);

/* The roots, in the master; path is its. */
int sl_nexus_audit_end(struct sl_nexus_audit *audit, const char *path);

/* The same of a master that is made again out of its data files: of what they have. */
int sl_nexus_audit_recover(struct sl_h5 *file, const char *path, uint32_t files);

/* The root of all rows so far, as text. */
const char *sl_nexus_audit_root(const struct sl_nexus_audit *audit, char text[SL_HASH_TEXT]);

#endif
