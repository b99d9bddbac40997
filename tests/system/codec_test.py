#!/usr/bin/python3
"""codec_test.py - packed images are read by programs of others: the bitshuffle package, h5py with its plugins, liblz4, libzstd.

The packers are called in libsluice.so, as sluice-bench does. Packages that are missing are named and their cases skipped.
"""

import ctypes
import ctypes.util
import pathlib

import h5py
import numpy as np

from harness import SLOW, SLUICE, case, check, equal, main, skip

NONE, LZ4, BSLZ4, BSZSTD = range(4)
FILTER = {LZ4: (32004, ()), BSLZ4: (32008, (0, 2)), BSZSTD: (32008, (0, 3))}
TYPES = ("u1", "u2", "u4", "u8")
BLOCK = 8192


def library():
    if SLOW:
        skip("a library with sanitizers cannot be loaded into Python")
    lib = ctypes.CDLL(pathlib.Path(SLUICE).parent / "libsluice.so.0")
    lib.sl_pack.restype = ctypes.c_int64
    lib.sl_pack.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t]
    lib.sl_pack_bound.restype = ctypes.c_size_t
    lib.sl_pack_bound.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint32]
    return lib


class Packer:
    def __init__(self):
        self.lib = library()
        self.state = ctypes.create_string_buffer(1024)  # more than struct sl_packer has
        equal(self.lib.sl_packer_init(self.state, 0), 0, "sl_packer_init")

    def pack(self, codec, image):
        image = np.ascontiguousarray(image)
        room = self.lib.sl_pack_bound(codec, image.nbytes, image.itemsize)
        out = np.empty(room + 1, np.uint8)
        size = self.lib.sl_pack(self.state, codec, image.ctypes.data, image.nbytes, image.itemsize, out.ctypes.data, room)
        check(0 <= size <= room, f"sl_pack returned {size} of at most {room}")
        return out[:size].tobytes()


def reference():
    try:
        import bitshuffle
    except ImportError:
        skip("the package bitshuffle is not installed (Debian: bitshuffle)")
    return bitshuffle


def images(rng, dtype, count):
    """Photons of several means, noise, a ramp, nothing, random bits in random places: what packers find easy and hard."""
    most = np.iinfo(dtype).max
    for mean in (0.01, 0.1, 1, 10):
        yield rng.poisson(mean, count).astype(dtype)
    yield rng.integers(0, most, count, dtype, endpoint=True)
    yield (rng.normal(2500, 20, count) % (most + 1 if most < 2**16 else 2**16)).astype(np.uint64).astype(dtype)
    yield np.arange(count).astype(dtype)
    yield np.zeros(count, dtype)
    yield np.full(count, most, dtype)
    yield np.where(rng.random(count) < 0.02, rng.integers(0, most, count, dtype), 0).astype(dtype)
    yield np.repeat(rng.integers(0, most, count // 50 + 1, dtype), 50)[:count]
    sparse = np.zeros(count, dtype)
    for _ in range(3):
        at, long, bit = rng.integers(0, count + 1), rng.integers(0, 2000), rng.integers(0, 8 * sparse.itemsize)
        sparse[at:at + long] |= dtype.type(1) << dtype.type(bit)
    yield sparse


def counts(rng):
    """Of elements: all up to 33, those around blocks, and others up to 20000."""
    some = {*range(34), *(n + d for n in (1024, 2048, 4096, 8192) for d in (-1, 0, 8))}
    return sorted(some | set(rng.integers(0, 20001, 12).tolist()))


def each(seed):
    rng = np.random.default_rng(seed)
    for name in TYPES:
        dtype = np.dtype(name)
        for count in counts(rng):
            for image in images(rng, dtype, count):
                yield image


@case("bslz4: the bitshuffle package reads every type and number of elements")
def _(_folder):
    bitshuffle, packer = reference(), Packer()
    for image in each(1):
        if not image.size:
            continue  # the package refuses arrays without elements
        packed = packer.pack(BSLZ4, image)
        equal((int.from_bytes(packed[:8], "big"), int.from_bytes(packed[8:12], "big")), (image.nbytes, BLOCK), "header")
        body = np.frombuffer(packed, np.uint8)[12:]
        got = bitshuffle.decompress_lz4(body, image.shape, image.dtype, BLOCK // image.itemsize)
        check(np.array_equal(got, image), f"{image.size} elements of {image.dtype} came back otherwise")


@case("blocks before packing are those that the bitshuffle package makes")
def _(_folder):
    bitshuffle, packer = reference(), Packer()
    lz4 = ctypes.CDLL(ctypes.util.find_library("lz4"))
    zstd = ctypes.CDLL(ctypes.util.find_library("zstd"))
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    for image in each(2):
        block = BLOCK // image.itemsize
        expected = bitshuffle.bitshuffle(image, block).tobytes() if image.size else b""
        for codec in (BSLZ4, BSZSTD):
            packed, got = packer.pack(codec, image)[12:], b""
            while image.nbytes - len(got) >= 8 * image.itemsize:
                length, step = int.from_bytes(packed[:4], "big"), min(BLOCK, (image.nbytes - len(got)) // (8 * image.itemsize) * 8 * image.itemsize)
                out = ctypes.create_string_buffer(BLOCK)
                done = (lz4.LZ4_decompress_safe(packed[4:4 + length], out, length, step) if codec == BSLZ4 else
                        zstd.ZSTD_decompress(out, step, packed[4:4 + length], length))
                equal(done, step, "bytes of a block")
                got, packed = got + out.raw[:step], packed[4 + length:]
            check(got + packed == expected, f"{image.size} elements of {image.dtype}: codec {codec} shuffles otherwise")


def chunks_by_h5py(folder, codec, why):
    number, options = FILTER[codec]
    if not h5py.h5z.filter_avail(number):
        skip(why)
    packer, rng = Packer(), np.random.default_rng(3)
    for name in TYPES:
        with h5py.File(folder / f"{name}.h5", "w") as file:
            for i, image in enumerate(images(rng, np.dtype(name), 130 * 103)):
                dataset = file.create_dataset(str(i), (1, 130, 103), image.dtype, chunks=(1, 130, 103), compression=number,
                                              compression_opts=options)
                dataset.id.write_direct_chunk((0, 0, 0), packer.pack(codec, image))
                check(np.array_equal(dataset[0].ravel(), image), f"image {i} of {name} came back otherwise")


@case("bslz4: h5py reads chunks of filter 32008")
def _(folder):
    chunks_by_h5py(folder, BSLZ4, "no HDF5 plugin for bitshuffle (Debian: bitshuffle)")


@case("lz4: h5py reads chunks of filter 32004")
def _(folder):
    chunks_by_h5py(folder, LZ4, "no HDF5 plugin for LZ4 (Debian: hdf5-filter-plugin)")


main()
