#!/usr/bin/python3
"""correct_reference.py - photons and keV are what numpy makes of the same raw frames in double precision.

A float has 24 bits; `correct` rounds three times (the factor, the difference, the product), so a result is within
3 / 2^24 of the true one. Photons are then the same whole numbers, but where the true value is so near to a half that
either side of it would do.
"""

import h5py
import numpy as np

from reference import case, check, each_fails, equal, exact, main, near, process

ENERGY_KEV = 12.4
BOUND = 3 / 2**24
MODULES, ROWS, COLUMNS = 2, 256, 256  # a module has every raw value there is once
SHAPE = (MODULES, ROWS, COLUMNS)
BAD, OVERLOAD = -32768, 32767


def calibration(folder, rng):
    """Pedestals, gains and a mask with all that can be wrong with them; written to a file of ours, and given back."""
    pedestal = np.stack([rng.normal(mean, spread, SHAPE) for mean, spread in ((2446, 300), (13584, 150), (14100, 150))])
    gain = np.stack([mean * rng.normal(1, 0.02, SHAPE) for mean in (41.0, -1.439, -0.1145)])
    mask = (rng.random(SHAPE) < 0.01).astype(np.uint8) * 4
    for g in range(3):
        pedestal[g][rng.random(SHAPE) < 0.003] = 16384
        pedestal[g][rng.random(SHAPE) < 0.003] = np.nan
        gain[g][rng.random(SHAPE) < 0.003] = 0
        gain[g][rng.random(SHAPE) < 0.003] = np.nan
    pedestal, gain = pedestal.astype(np.float32), gain.astype(np.float32)
    path = folder / "calibration.h5"
    with h5py.File(path, "w") as file:
        file.attrs.update({"format": "sluice-calibration", "version": np.uint32(1), "detector": "jungfrau"})
        file.attrs.update({name: np.uint32(n) for name, n in
                           (("modules", MODULES), ("rows", ROWS), ("columns", COLUMNS), ("cells", 1))})
        file["pedestal"], file["gain"], file["mask"] = pedestal[None], gain, mask
        file["pedestal"].attrs["units"], file["gain"].attrs["units"] = "ADU", "ADU/keV"
    return {"file": str(path)}, pedestal.astype(np.float64), gain.astype(np.float64), mask


def truth(raw, pedestal, gain, mask):
    """keV in double: NaN is bad, infinity an overload. A pedestal of G1 or G2 that is none is a wrong gain there."""
    code, adu = raw >> 14, (raw & 0x3fff).astype(np.float64)
    energy = np.full(raw.shape, np.nan)
    for g, bits in ((0, 0), (1, 1), (2, 3)):
        good = (pedestal[g] <= 16383) & np.isfinite(gain[g]) & (gain[g] != 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = np.where(good, (adu - pedestal[g]) / gain[g], np.nan)
        energy = np.where(code == bits, value, energy)
    energy[(raw == 0xffff) | (raw == 0x4000)] = np.nan
    energy[raw == 0xc000] = np.inf
    energy[np.broadcast_to(mask != 0, raw.shape)] = np.nan
    return energy


def raw_frames(rng, n):
    """Every raw value in every module of every frame, each time elsewhere."""
    return np.stack([[rng.permutation(65536).astype(np.uint16).reshape(ROWS, COLUMNS) for _ in range(MODULES)]
                     for _ in range(n)])


def compare_photons(found, photons, what):
    """Whole numbers: the nearest, halves away from zero, within the range; bad and overload as they are."""
    equal(found.dtype, np.int16, "type")
    special = np.where(np.isnan(photons), BAD, OVERLOAD)
    finite = np.isfinite(photons)
    exact(found[~finite], special[~finite].astype(np.int16), f"{what}: what is no measurement")
    value, slack = photons[finite], BOUND * np.abs(photons[finite])

    def rounded(x):
        return np.clip(np.sign(x) * np.floor(np.abs(x) + 0.5), -32767, 32766).astype(np.int16)

    tie = rounded(value - slack) != rounded(value + slack)
    exact(found[finite][~tie], rounded(value)[~tie], f"{what}: photons")
    check(tie.mean() < 1e-3, f"{what}: {tie.sum()} of {tie.size} are so near to a half that nothing is shown")
    off = np.abs(found[finite][tie].astype(int) - value[tie])
    check((off <= 0.5 + slack[tie]).all(), f"{what}: a value near a half is neither of its neighbours")


def run(folder, raw, output, files, **detector):
    stage = {"correct": {"output": output, **detector.pop("options", {})}}
    modules = process(folder, raw, [stage], "image", {"calibration": files}, origin="jungfrau",
                      photon_energy_keV=ENERGY_KEV, **detector).images
    return modules.reshape(-1, *SHAPE)


@case("photons: every raw value, all gains, special values, masks, pedestals and gains that are none")
def _(folder):
    rng = np.random.default_rng(1)
    files, pedestal, gain, mask = calibration(folder, rng)
    raw = raw_frames(rng, 5)
    photons = truth(raw, pedestal, gain, mask) / ENERGY_KEV
    for vectors in ("auto", "baseline"):
        found = run(folder, raw, "photons_i16", files, options={"vectors": vectors})
        compare_photons(found, photons, vectors)
    valid = np.argwhere(np.isfinite(photons) & (np.abs(photons) < 1000))
    one_off, unmasked, lost = found.copy(), found.copy(), found.copy()
    one_off[tuple(valid[len(valid) // 2])] += 1
    unmasked[(slice(None), *np.argwhere(mask)[0])] = 0
    lost[raw == 0xc000] = BAD
    each_fails(lambda result: compare_photons(result, photons, "changed"),
               {"one photon more in one pixel": one_off, "a masked pixel": unmasked, "overloads taken for bad": lost})


@case("keV: within three roundings of a float")
def _(folder):
    rng = np.random.default_rng(2)
    files, pedestal, gain, mask = calibration(folder, rng)
    raw = raw_frames(rng, 5)
    energy = truth(raw, pedestal, gain, mask)
    found = run(folder, raw, "kev_f32", files)
    equal(found.dtype, np.float32, "type")
    # A difference of almost nothing is as exact as its operands are: half of the last bit of 16383.
    near(found, energy, BOUND, "energy", absolute=1e-30)
    off = found.copy()
    off[np.isfinite(off)] *= np.float32(1 + 1e-6)
    each_fails(lambda result: near(result, energy, BOUND, "energy", absolute=1e-30), {"a millionth more": off})


def darks(rng, n):
    """Dark frames, one sample in a hundred in another gain, and a pixel that has no others."""
    raw = rng.normal(2446, 30, (n, *SHAPE)).round().astype(np.uint16)
    wrong = rng.random(raw.shape) < 0.01
    wrong[:, 0, 3, 5] = True
    raw[wrong] |= 0x4000
    return raw


def tracked(raw, window):
    """The pedestal after all of them: the mean of the first `window` samples in G0, then a running mean."""
    total, n = np.zeros(SHAPE), np.zeros(SHAPE)
    for frame in raw.astype(np.float64):
        good = frame < 0x4000
        full = n >= window
        total += np.where(good, frame - np.where(full, total / window, 0), 0)
        n += good & ~full
    with np.errstate(invalid="ignore"):
        return total / n


@case("pedestals from dark frames: the mean of the first, then a running mean; other gains left out")
def _(folder):
    rng = np.random.default_rng(3)
    files, pedestal, gain, mask = calibration(folder, rng)
    bright = raw_frames(rng, 2)
    for window, n, slack in ((64, 40, 0), (16, 200, 2e-3)):
        dark = darks(rng, n)
        measured = pedestal.copy()
        measured[0] = tracked(dark, window)
        energy = truth(bright, measured, gain, mask)
        found = run(folder, np.concatenate([dark, bright]), "kev_f32", files, options={"darks": window}, dark_frames=n)
        # The pedestal itself is a float near 2446 (half of its last bit: 0.00012 ADU). A running mean adds a rounding
        # of its sum, 16 times that, with every frame, and forgets it as fast as it forgets the frames.
        smallest = 0.00013 / 39
        near(found, energy, BOUND, f"{n} dark frames", absolute=smallest + slack / 39)
        check(np.isnan(found[:, 0, 3, 5][bright[:, 0, 3, 5] < 0x4000]).all(), "a pixel without a sample is not bad")


main()
