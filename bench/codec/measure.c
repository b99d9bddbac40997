/* measure.c - one row of `sluice bench codec`: images are packed or unpacked in turn, and compared
 * with what they were after the clock has stopped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/codec/rows.h"
#include "codec/pack.h"
#include "codec/unpack.h"

enum { ZSTD_LEVEL = 1 /* that of our packer */ };

struct subject {
	const struct sl_bench_codec *what;
	struct sl_packer packer;
	struct sl_unpacker unpacker;
	struct sl_bench_peer peer;
	size_t bytes, room; /* of an image; of a packed image, at most */
	uint8_t *image, *packed, *back;
	size_t size[SL_BENCH_IMAGES]; /* packed */
};

static int64_t peer_pack(struct subject *s, const uint8_t *image, uint8_t *packed)
{
	uint32_t element = s->what->images->element;
	size_t block = SL_PACK_SHUFFLED_BYTES / element;
	uint8_t *body = packed + SL_PACKED_HEADER;
	int64_t size;

	/* The header is the HDF5 filter's work, and the same in all images. */
	memset(packed, 0, SL_PACKED_HEADER);
	for (unsigned i = 0; i < 4; i++)
		packed[4 + i] = (uint8_t)(s->bytes >> (24 - 8 * i));
	packed[10] = SL_PACK_SHUFFLED_BYTES >> 8;
	size = s->what->codec == SL_CODEC_BSLZ4
		       ? s->peer.pack_lz4(image, body, SL_BENCH_PIXELS, element, block)
		       : s->peer.pack_zstd(image, body, SL_BENCH_PIXELS, element, block,
					   ZSTD_LEVEL);
	return size < 0 ? -EIO : size + SL_PACKED_HEADER;
}

static int pack(struct subject *s, unsigned i, bool peer)
{
	const uint8_t *image = s->image + i * s->bytes;
	uint8_t *packed = s->packed + i * s->room;
	int64_t size = peer ? peer_pack(s, image, packed)
			    : sl_pack(&s->packer, s->what->codec, image, s->bytes,
				      s->what->images->element, packed, s->room);

	if (size < 0)
		return (int)size;
	s->size[i] = (size_t)size;
	return 0;
}

static int unpack(struct subject *s, unsigned i, bool peer)
{
	const uint8_t *packed = s->packed + i * s->room;
	uint32_t element = s->what->images->element;
	sl_bench_bitshuffle *by_peer = s->what->codec == SL_CODEC_BSLZ4 ? s->peer.unpack_lz4
									: s->peer.unpack_zstd;

	if (!peer)
		return sl_unpack(&s->unpacker, s->what->codec, packed, s->size[i], element, s->back,
				 s->bytes);
	return by_peer(packed + SL_PACKED_HEADER, s->back, SL_BENCH_PIXELS, element,
		       SL_PACK_SHUFFLED_BYTES / element) < 0
		       ? -EIO
		       : 0;
}

static int open_subject(struct subject *s, const struct sl_bench_codec *what)
{
	int err = what->peer ? sl_bench_peer_open(&s->peer, what->codec) : 0;

	s->what = what;
	s->bytes = (size_t)SL_BENCH_PIXELS * what->images->element;
	s->room = sl_pack_bound(what->codec, s->bytes, what->images->element);
	s->image = malloc(SL_BENCH_IMAGES * s->bytes);
	s->packed = malloc(SL_BENCH_IMAGES * s->room);
	s->back = malloc(s->bytes);
	sl_unpacker_init(&s->unpacker, SL_VECTORS_AUTO);
	if (!err && (!s->image || !s->packed || !s->back))
		err = -ENOMEM;
	if (!err)
		err = sl_packer_init(&s->packer, SL_VECTORS_AUTO);
	for (unsigned i = 0; !err && i < SL_BENCH_IMAGES; i++)
		sl_bench_draw(what->images, i, s->image + i * s->bytes);
	for (unsigned i = 0; !err && i < SL_BENCH_IMAGES; i++) /* pages are there, too */
		err = pack(s, i, what->peer && !what->unpack);
	return err;
}

static void close_subject(struct subject *s)
{
	sl_packer_fini(&s->packer);
	sl_unpacker_fini(&s->unpacker);
	free(s->image);
	free(s->packed);
	free(s->back);
}

/* All images come back from either packer, by both decoders where there are two. */
static int verify(struct subject *s, struct sl_bench_sample *sample)
{
	for (unsigned i = 0; i < SL_BENCH_IMAGES; i++)
		for (int peer = 0; peer <= (int)s->what->peer; peer++) {
			memset(s->back, 0x5a, s->bytes);
			if (unpack(s, i, peer) ||
			    memcmp(s->back, s->image + i * s->bytes, s->bytes) != 0) {
				sample->wrong = true;
				fprintf(stderr, "image %u came back otherwise\n", i);
				return -EIO;
			}
		}
	return 0;
}

/* Processor time: a core's speed is asked for, not how much of a core a busy machine leaves. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

int sl_bench_codec(const struct sl_bench *bench, const struct sl_bench_row *row,
		   struct sl_bench_sample *sample)
{
	const struct sl_bench_codec *what = row->codec;
	struct subject s = {0};
	uint64_t start, now, images = 0;
	int err;

	sl_bench_take_side(bench, row, 0);
	err = open_subject(&s, what);
	start = now = cpu_ns();
	for (; !err && (double)(now - start) < 1e9 * bench->o.seconds; now = cpu_ns())
		for (unsigned i = 0; i < SL_BENCH_IMAGES && !err; i++, images++)
			err = what->unpack ? unpack(&s, i, what->peer) : pack(&s, i, what->peer);
	sample->bytes = images * s.bytes;
	sample->GB_per_s = (double)sample->bytes / (double)(now > start ? now - start : 1);
	for (unsigned i = 0; i < SL_BENCH_IMAGES; i++)
		sample->packed += (double)s.size[i] / SL_BENCH_IMAGES / (double)s.bytes;
	if (!err)
		err = verify(&s, sample);
	close_subject(&s);
	return err;
}
