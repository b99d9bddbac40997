/* npy.h - the header of a NumPy file (.npy): what precedes an array's bytes.
 *
 * Model:     versions 1 to 3 are read: a dictionary with the type, the order and the shape. Types
 *            are those of shares, in this host's byte order; arrays in C order.
 * Threads:   functions of their arguments. */
#ifndef SL_CMD_SHARE_NPY_H
#define SL_CMD_SHARE_NPY_H

#include <stddef.h>
#include <stdint.h>

enum { SL_NPY_RANK = 7, SL_NPY_HEADER = 320, SL_NPY_MOST = 65536 };

struct sl_npy {
	char type[8]; /* "<u2", ... */
	uint32_t rank;
	uint64_t dim[SL_NPY_RANK];
	uint64_t data; /* parsed: where the array's bytes begin */
};

/* Bytes of the header, at most SL_NPY_HEADER; a multiple of 64. */
size_t sl_npy_write(const struct sl_npy *npy, char header[SL_NPY_HEADER]);

/* begin: the first bytes of a file, all or SL_NPY_MOST of them. -EINVAL: `why` says what is wrong.
 * Nothing is said of how many bytes the array has. */
int sl_npy_parse(const void *begin, size_t bytes, struct sl_npy *npy, char *why, size_t why_bytes);

#endif
