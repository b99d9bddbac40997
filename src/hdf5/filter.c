/* filter.c - bitshuffle, LZ4 and LZF as filters of HDF5's own, so that it undoes them wherever it
 * finds them: in chunks of any shape, behind links and in virtual datasets, and without plugins. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "hdf5/bitshuffle.h"
#include "hdf5/handle.h"

enum { BITSHUFFLE = 32008, LZ4 = 32004, LZF = 32000 };

/* cd_values of bitshuffle: its version (2), element size, block size, how it is packed. */
enum { CD_ELEMENT = 2, CD_BLOCK, CD_PACKING, PACKED_NOT = 0, PACKED_LZ4 = 2 };

/* cd_values of LZF: two versions, bytes of a chunk. */
enum { CD_CHUNK = 2 };

/* What a chunk must have at least when unpacked: HDF5 1.10 copies that much without looking. */
static _Thread_local size_t expected;

void sl_h5_filter_expect(size_t bytes)
{
	expected = bytes;
}

static int unpack_bitshuffle(const unsigned *cd, size_t n, const uint8_t *in, size_t bytes,
			     uint8_t *out)
{
	uint32_t packing = n > CD_PACKING ? cd[CD_PACKING] : PACKED_NOT;
	struct sl_packed packed;
	uint8_t *scratch;
	int err;

	if (packing == PACKED_NOT)
		return sl_bitshuffle_plain(in, bytes, cd[CD_ELEMENT],
					   n > CD_BLOCK ? cd[CD_BLOCK] : 0, out);
	err = sl_packed_look(in, bytes, cd[CD_ELEMENT], &packed);
	if (err)
		return err;
	scratch = malloc(packed.block ? packed.block : 1);
	err = scratch ? sl_bitshuffle_lz4(in, bytes, cd[CD_ELEMENT], out, scratch) : -ENOMEM;
	free(scratch);
	return err;
}

/* Bytes when unpacked; 0: it cannot be. */
static size_t unpacked(int id, const unsigned *cd, size_t n, const uint8_t *in, size_t bytes)
{
	struct sl_packed packed = {.bytes = bytes};

	if (id == LZF) /* a byte of it becomes 132 at most */
		return n > CD_CHUNK && cd[CD_CHUNK] / SL_PACKED_RATIO <= bytes ? cd[CD_CHUNK] : 0;
	if (id == BITSHUFFLE && n <= CD_ELEMENT)
		return 0;
	if (id == BITSHUFFLE && (n <= CD_PACKING || cd[CD_PACKING] == PACKED_NOT))
		return bytes;
	if (id == BITSHUFFLE && cd[CD_PACKING] != PACKED_LZ4)
		return 0;
	return sl_packed_look(in, bytes, id == BITSHUFFLE ? cd[CD_ELEMENT] : 1, &packed)
		       ? 0
		       : packed.bytes;
}

static size_t undo(int id, unsigned flags, size_t n, const unsigned *cd, size_t bytes,
		   size_t *buffer_bytes, void **buffer)
{
	size_t size = flags & H5Z_FLAG_REVERSE ? unpacked(id, cd, n, *buffer, bytes) : 0;
	uint8_t *out;
	int err;

	if (!size || size < expected)
		return 0;
	out = H5allocate_memory(size, false);
	if (!out)
		return 0;
	err = id == BITSHUFFLE ? unpack_bitshuffle(cd, n, *buffer, bytes, out)
	      : id == LZ4      ? sl_lz4_blocks(*buffer, bytes, out)
			       : sl_lzf(*buffer, bytes, out, size);
	if (err) {
		H5free_memory(out);
		return 0;
	}
	H5free_memory(*buffer);
	*buffer = out;
	*buffer_bytes = size;
	return size;
}

static size_t undo_bitshuffle(unsigned flags, size_t n, const unsigned cd[], size_t bytes,
			      size_t *buffer_bytes, void **buffer)
{
	return undo(BITSHUFFLE, flags, n, cd, bytes, buffer_bytes, buffer);
}

static size_t undo_lz4(unsigned flags, size_t n, const unsigned cd[], size_t bytes,
		       size_t *buffer_bytes, void **buffer)
{
	return undo(LZ4, flags, n, cd, bytes, buffer_bytes, buffer);
}

static size_t undo_lzf(unsigned flags, size_t n, const unsigned cd[], size_t bytes,
		       size_t *buffer_bytes, void **buffer)
{
	return undo(LZF, flags, n, cd, bytes, buffer_bytes, buffer);
}

void sl_h5_filters(void)
{
	static const H5Z_class2_t filters[] = {
		{H5Z_CLASS_T_VERS, BITSHUFFLE, 0, 1, "bitshuffle", NULL, NULL, undo_bitshuffle},
		{H5Z_CLASS_T_VERS, LZ4, 0, 1, "lz4", NULL, NULL, undo_lz4},
		{H5Z_CLASS_T_VERS, LZF, 0, 1, "lzf", NULL, NULL, undo_lzf},
	};

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		H5Zregister(&filters[i]); /* once more does no harm */
}

const char *sl_h5_filter_lacks(hid_t properties, char *why, size_t why_bytes)
{
	int filters = H5Pget_nfilters(properties);

	for (int i = 0; i < filters; i++) {
		unsigned flags, cd[8] = {0}, config;
		size_t n = sizeof(cd) / sizeof(cd[0]);
		char name[64] = "";
		H5Z_filter_t id = H5Pget_filter2(properties, (unsigned)i, &flags, &n, cd,
						 sizeof(name), name, &config);

		if (id == BITSHUFFLE && n > CD_PACKING && cd[CD_PACKING] != PACKED_NOT &&
		    cd[CD_PACKING] != PACKED_LZ4)
			snprintf(why, why_bytes,
				 "it is packed by bitshuffle with Zstd, which this "
				 "program cannot undo (with LZ4 it can)");
		else if (id >= 0 && H5Zfilter_avail(id) <= 0)
			snprintf(why, why_bytes,
				 "it is packed by HDF5 filter %d (%s), which is not here: install "
				 "its plugin and set HDF5_PLUGIN_PATH",
				 (int)id, name[0] ? name : "without a name");
		else
			continue;
		return why;
	}
	return NULL;
}
