/* filter.c - the decoders of src/codec as filters of HDF5's own, so that HDF5 unpacks chunks
 * wherever it finds them: of any shape, behind links and in virtual datasets, without plugins. */
#include <errno.h>
#include <stdio.h>

#include "codec/unpack.h"
#include "hdf5/handle.h"

enum { BITSHUFFLE = 32008, LZ4 = 32004, LZF = 32000 };

/* cd_values of bitshuffle: its version (2), element size, block size, how it is packed. */
enum { CD_ELEMENT = 2, CD_BLOCK, CD_PACKING, PACKED_NOT = 0, PACKED_LZ4 = 2, PACKED_ZSTD = 3 };

/* cd_values of LZF: two versions, bytes of a chunk. A byte of it becomes 132 at most. */
enum { CD_CHUNK = 2, LZF_RATIO = 132 };

/* What a chunk must have at least when unpacked: HDF5 1.10 copies that much without looking. */
static _Thread_local size_t expected;

void sl_h5_filter_expect(size_t bytes)
{
	expected = bytes;
}

/* The codec of a chunk of BITSHUFFLE or LZ4; NONE: bitshuffle alone. */
static enum sl_codec codec_of(int id, const unsigned *cd, size_t n)
{
	uint32_t packing = n > CD_PACKING ? cd[CD_PACKING] : PACKED_NOT;

	return id == LZ4		? SL_CODEC_LZ4
	       : packing == PACKED_LZ4	? SL_CODEC_BSLZ4
	       : packing == PACKED_ZSTD ? SL_CODEC_BSZSTD
					: SL_CODEC_NONE;
}

static bool known_packing(const unsigned *cd, size_t n)
{
	return n <= CD_PACKING || cd[CD_PACKING] == PACKED_NOT || cd[CD_PACKING] == PACKED_LZ4 ||
	       cd[CD_PACKING] == PACKED_ZSTD;
}

static int unpack(int id, const unsigned *cd, size_t n, const uint8_t *in, size_t bytes,
		  uint8_t *out, size_t out_bytes)
{
	enum sl_codec codec = codec_of(id, cd, n);
	struct sl_unpacker unpacker;
	int err;

	if (id == LZF)
		return sl_unpack_lzf(in, bytes, out, out_bytes);
	sl_unpacker_init(&unpacker, SL_VECTORS_AUTO);
	err = codec == SL_CODEC_NONE ? sl_unpack_shuffled(&unpacker, in, bytes, cd[CD_ELEMENT],
							  n > CD_BLOCK ? cd[CD_BLOCK] : 0, out)
				     : sl_unpack(&unpacker, codec, in, bytes,
						 id == LZ4 ? 1 : cd[CD_ELEMENT], out, out_bytes);
	sl_unpacker_fini(&unpacker);
	return err;
}

/* Bytes when unpacked; 0: it cannot be. */
static size_t unpacked(int id, const unsigned *cd, size_t n, const uint8_t *in, size_t bytes)
{
	struct sl_packed packed;

	if (id == LZF)
		return n > CD_CHUNK && cd[CD_CHUNK] / LZF_RATIO <= bytes ? cd[CD_CHUNK] : 0;
	if (id == BITSHUFFLE && (n <= CD_ELEMENT || !known_packing(cd, n)))
		return 0;
	return sl_packed_look(codec_of(id, cd, n), in, bytes, id == LZ4 ? 1 : cd[CD_ELEMENT],
			      &packed)
		       ? 0
		       : packed.bytes;
}

static size_t undo(int id, unsigned flags, size_t n, const unsigned *cd, size_t bytes,
		   size_t *buffer_bytes, void **buffer)
{
	size_t size = flags & H5Z_FLAG_REVERSE ? unpacked(id, cd, n, *buffer, bytes) : 0;
	uint8_t *out;

	if (!size || size < expected)
		return 0;
	out = H5allocate_memory(size, false);
	if (!out)
		return 0;
	if (unpack(id, cd, n, *buffer, bytes, out, size)) {
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
		/* Encoders: chunks come packed, but a dataset is only made with a filter that has
		 * one. */
		{H5Z_CLASS_T_VERS, BITSHUFFLE, 1, 1, "bitshuffle", NULL, NULL, undo_bitshuffle},
		{H5Z_CLASS_T_VERS, LZ4, 1, 1, "lz4", NULL, NULL, undo_lz4},
		{H5Z_CLASS_T_VERS, LZF, 0, 1, "lzf", NULL, NULL, undo_lzf},
	};

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		H5Zregister(&filters[i]); /* once more does no harm */
}

int sl_h5_filter_set(hid_t properties, enum sl_codec codec, size_t element)
{
	/* As the bitshuffle filter 0.3.5 writes them; block size 0: its own choice, 8 KiB. */
	const unsigned shuffled[] = {0, 4, (unsigned)element, 0,
				     codec == SL_CODEC_BSZSTD ? PACKED_ZSTD : PACKED_LZ4};
	const unsigned lz4[] = {SL_PACK_LZ4_BYTES};

	if (codec == SL_CODEC_NONE)
		return 0;
	sl_h5_filters();
	return codec == SL_CODEC_LZ4
		       ? H5Pset_filter(properties, LZ4, 0, 1, lz4)
		       : H5Pset_filter(properties, BITSHUFFLE, 0,
				       sizeof(shuffled) / sizeof(shuffled[0]), shuffled);
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

		if (id == BITSHUFFLE && !known_packing(cd, n))
			snprintf(why, why_bytes,
				 "it is packed by bitshuffle with compression %u, which this "
				 "program cannot unpack (only 0: none, 2: LZ4, 3: Zstandard)",
				 cd[CD_PACKING]);
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
