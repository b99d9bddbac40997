/* peer.c - the bitshuffle library, where it is installed. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/codec/rows.h"

/* Debian's bitshuffle: an HDF5 plugin that exports the library's functions. */
#define PLUGIN "/usr/lib/x86_64-linux-gnu/hdf5/serial/plugins/libh5bshuf.so"

int sl_bench_peer_open(struct sl_bench_peer *peer, enum sl_codec codec)
{
	const char *path = getenv("SLUICE_BENCH_BITSHUFFLE");
	/* A library that brings an LZ4 of its own uses that, not ours. */
	void *library = dlopen(path ? path : PLUGIN, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);

	if (!library && path) {
		fprintf(stderr, "skipped: SLUICE_BENCH_BITSHUFFLE: %s\n", dlerror());
		return -ENODEV;
	}
	if (!library) {
		fprintf(stderr, "skipped: the bitshuffle library is not installed (Debian: "
				"bitshuffle)\n");
		return -ENODEV;
	}
	*(void **)&peer->pack_lz4 = dlsym(library, "bshuf_compress_lz4");
	*(void **)&peer->unpack_lz4 = dlsym(library, "bshuf_decompress_lz4");
	*(void **)&peer->pack_zstd = dlsym(library, "bshuf_compress_zstd");
	*(void **)&peer->unpack_zstd = dlsym(library, "bshuf_decompress_zstd");
	if (codec == SL_CODEC_BSLZ4 ? peer->pack_lz4 && peer->unpack_lz4
				    : peer->pack_zstd && peer->unpack_zstd)
		return 0;
	fprintf(stderr, "skipped: the bitshuffle library here has no Zstandard (from 0.4 on)\n");
	return -ENODEV;
}
