/* rows.h - what the files of `sluice bench codec` share.
 *
 * Model:     a row packs or unpacks the images of one kind with one codec on one core, and what was
 *            unpacked must be the image. The peer is the bitshuffle library: the HDF5 plugin of
 *            Debian's package, or the library that $SLUICE_BENCH_BITSHUFFLE names. */
#ifndef SL_BENCH_CODEC_ROWS_H
#define SL_BENCH_CODEC_ROWS_H

#include "bench/bench.h"
#include "codec/codec.h"

enum sl_bench_content { SL_BENCH_PHOTONS, SL_BENCH_ADU, SL_BENCH_NOISE };

struct sl_bench_images {
	const char *name;
	enum sl_bench_content content;
	uint32_t element; /* bytes of a pixel */
	double mean;	  /* photons of a pixel */
};

struct sl_bench_codec {
	const struct sl_bench_images *images;
	enum sl_codec codec;
	bool unpack, peer;
};

enum { SL_BENCH_IMAGES = 8, SL_BENCH_PIXELS = 1 << 20 /* of an image */ };

/* Image number `index` of a kind: SL_BENCH_PIXELS pixels. */
void sl_bench_draw(const struct sl_bench_images *images, unsigned index, uint8_t *pixels);

/* bitshuffle's functions, as src/bitshuffle.h of github.com/kiyo-masui/bitshuffle declares them:
 * input, output, elements, bytes of an element, elements of a block. Bytes, or a negative error. */
typedef int64_t sl_bench_bitshuffle(const void *in, void *out, size_t elements, size_t element,
				    size_t block);
typedef int64_t sl_bench_bitshuffle_level(const void *in, void *out, size_t elements,
					  size_t element, size_t block, int level);
struct sl_bench_peer {
	sl_bench_bitshuffle *pack_lz4, *unpack_lz4, *unpack_zstd;
	sl_bench_bitshuffle_level *pack_zstd;
};

/* 0, or -ENODEV with the reason on stderr: there is no such library, or it lacks the codec. */
int sl_bench_peer_open(struct sl_bench_peer *peer, enum sl_codec codec);

#endif
