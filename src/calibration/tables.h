/* tables.h - pedestals, noise, gains and bad pixels of a detector, in memory and in files.
 *
 * Model:     per pixel three gains, each with a pedestal (ADU), its noise (RMS, ADU) and a gain
 *            factor (ADU/keV); pedestals and noise also per storage cell. A table that nobody has
 *            filled is NULL; a value that is not known is NaN. The mask has a bit for each reason
 *            not to use a pixel. A file is HDF5:
 *
 *              /pedestal, /rms   float32 [cell][gain][module][row][column], units ADU
 *              /gain             float32 [gain][module][row][column], units ADU/keV
 *              /mask             uint8 [module][row][column], bits as enum sl_mask_bits
 *              /frames           uint64 [gain]: dark frames that the pedestals are the mean of
 *              /                 attributes format, version, detector, modules, rows, columns,
 *                                cells, created, program
 *
 *            each of the datasets may be missing. Gains also come as the Paul Scherrer Institute
 *            gives them out with its modules, gainMaps_M*.bin: float64, [G0, G1, G2][row][column]
 *            (three more for high gain may follow), a file per module; always of the whole
 *            module: of a partial readout (unread_rows) the rows that are read out are taken.
 * Threads:   one; not a data thread.
 * Errors:    0 or -errno, logged here with the file and what is wrong.
 * Ownership: the tables own their memory, until sl_tables_free(). */
#ifndef SL_CALIBRATION_TABLES_H
#define SL_CALIBRATION_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/detector.h>

enum { SL_GAINS = 3 };

enum sl_mask_bits {
	SL_MASK_EMPTY = 1 << 0,	   /* not one sample in this gain */
	SL_MASK_GAIN = 1 << 1,	   /* too many samples in another gain */
	SL_MASK_STUCK = 1 << 2,	   /* always the same value */
	SL_MASK_PEDESTAL = 1 << 3, /* pedestal out of bounds */
	SL_MASK_RMS = 1 << 4,	   /* noise out of bounds */
};

struct sl_tables {
	char detector[SL_NAME_BYTES], created[64];
	uint32_t cells, modules, rows, columns, unread_rows;
	uint64_t pixels;			   /* of all modules */
	float *pedestal[SL_GAINS], *rms[SL_GAINS]; /* [cell][module][pixel] */
	float *gain[SL_GAINS];			   /* [module][pixel] */
	uint8_t *mask;				   /* [module][pixel] */
	uint64_t frames[SL_GAINS];
};

/* No table yet, of that detector's shape. */
void sl_tables_init(struct sl_tables *tables, const struct sl_geometry *geometry);
void sl_tables_free(struct sl_tables *tables);

/* A table of `count` times the pixels, all NaN, where there is none; -ENOMEM is logged. */
int sl_tables_make(struct sl_tables *tables, float **table, uint32_t count);
int sl_tables_make_mask(struct sl_tables *tables);

/* What a file has comes in the place of what the tables have. -EINVAL: of another detector, or
 * shape, or in other units. */
int sl_calibration_read(const char *path, struct sl_tables *tables);
/* Of which detector, and of what shape, a file is. */
int sl_calibration_look(const char *path, struct sl_geometry *geometry);
int sl_calibration_write(const char *path, const struct sl_tables *tables);

/* Gains from such a file, or from raw ones as base/paths.h names them, in the order of modules. */
int sl_gains_read(const char *text, struct sl_tables *tables);

/* What is wrong with the gains of a module, and of which: units, mostly. False: nothing. */
bool sl_gains_problem(const struct sl_tables *tables, char *why, size_t bytes);

/* The value in the middle of those that are finite; NaN when none is. */
float sl_median(const float *value, uint64_t n);

#endif
