#!/usr/bin/python3
"""peaks_reference.py - Bragg peaks that were planted are found where they are, by `peaks` and by pyFAI's peakfinder8.

pyFAI's is another algorithm of the same kind: it clips with Chauvenet's criterion, interpolates the background between
rings and looks at patches of 5 x 5 pixels, not at blobs. So both must find everything that was planted, in the same
places; of what only one of them finds, a line tells.
"""

import warnings

import numpy as np

from reference import case, check, each_fails, equal, main, note, process, skip

ROWS, COLUMNS, PEAKS = 1034, 1082, 150
PIXEL_M, DISTANCE_M, ENERGY_KEV = 75e-6, 0.1, 12.4
WITHIN = 0.2  # pixels


def scene(rng, width):
    """Mean photons of every pixel, and the peaks in it, [n][row, column, photons]: far enough from each other and from
    the beam, where rings are small."""
    rows, columns = np.indices((ROWS, COLUMNS)) + 0.5
    mean = 0.3 + 6 * np.exp(-np.hypot(rows - ROWS / 2, columns - COLUMNS / 2) / 300)
    peaks = []
    while len(peaks) < PEAKS:
        row, column = rng.uniform(12, ROWS - 12), rng.uniform(12, COLUMNS - 12)
        if np.hypot(row - ROWS / 2, column - COLUMNS / 2) < 60 or any(np.hypot(row - r, column - c) < 16 for r, c, _ in peaks):
            continue
        peaks.append((row, column, rng.uniform(500, 4000)))
        part = np.s_[int(row) - 8:int(row) + 9, int(column) - 8:int(column) + 9]
        square = (rows[part] - row) ** 2 + (columns[part] - column) ** 2
        mean[part] += peaks[-1][2] * np.exp(-square / (2 * width**2)) / (2 * np.pi * width**2)
    return mean, np.array(peaks)


def find_with_pyfai(image):
    """[n][row, column, intensity]; the middle of the first pixel is at a half."""
    try:
        from pyFAI.azimuthalIntegrator import AzimuthalIntegrator
        from pyFAI.opencl.peak_finder import OCL_PeakFinder
        from pyFAI.units import to_unit
    except ImportError as error:
        skip(f"no pyFAI with OpenCL here: {error}")
    ai = AzimuthalIntegrator(DISTANCE_M, ROWS / 2 * PIXEL_M, COLUMNS / 2 * PIXEL_M, pixel1=PIXEL_M, pixel2=PIXEL_M,
                             wavelength=12.398419843320026e-10 / ENERGY_KEV)
    unit = to_unit("r_m")
    csr = ai.setup_CSR(image.shape, 600, unit=unit, split="no", scale=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pyopencl, about what its compiler says
        finder = OCL_PeakFinder(csr.lut, image_size=image.size, bin_centers=csr.bin_centers, unit=unit,
                                radius=ai.center_array(image.shape, unit=unit, scale=False))
        found = finder.peakfinder8(image.astype(np.float32), error_model="poisson", cutoff_clip=5, cycle=5, noise=4,
                                   cutoff_pick=5, patch_size=5, connected=2)
    return np.stack([found["pos0"] + 0.5, found["pos1"] + 0.5, found["intensity"]], axis=1)


def nearest(points, others):
    """Of each point, how far the nearest of the others is, and which."""
    far = np.hypot(points[:, None, 0] - others[None, :, 0], points[:, None, 1] - others[None, :, 1])
    return far.min(axis=1), far.argmin(axis=1)


def compare(name, ours, theirs, planted):
    """Everything planted was found, by both, within WITHIN of where it is or of where the other says."""
    truth_ours, at = nearest(planted, ours)
    truth_theirs, other = nearest(planted, theirs)
    equal(int((truth_theirs < 1.5).sum()), len(planted), f"{name}: peaks that pyFAI found of those planted")
    equal(int((truth_ours < 1.5).sum()), len(planted), f"{name}: peaks that were found of those planted")
    between = np.hypot(*(ours[at, :2] - theirs[other, :2]).T)
    off = np.minimum(truth_ours, between)
    check(off.max() < WITHIN, f"{name}: a peak is {off.max():.2f} pixels off, at {planted[off.argmax()].tolist()}")
    return truth_ours, truth_theirs, between


def report(name, ours, theirs, planted, distances):
    alone = int((nearest(ours, theirs)[0] > 2).sum()), int((nearest(theirs, ours)[0] > 2).sum())
    invented = int((nearest(ours, planted)[0] > 2).sum()), int((nearest(theirs, planted)[0] > 2).sum())
    truth_ours, truth_theirs, between = distances
    note(f"{name}: {len(planted)} planted, found {len(ours)} and by pyFAI {len(theirs)}; only here {alone[0]}, only there "
         f"{alone[1]}; not planted {invented[0]} and {invented[1]}; off by {truth_ours.mean():.3f} (at most "
         f"{truth_ours.max():.3f}) and {truth_theirs.mean():.3f} ({truth_theirs.max():.3f}) pixels, {between.mean():.3f} "
         "from each other")
    check(invented[0] <= len(planted) // 20, f"{name}: {invented[0]} peaks were found that nobody planted")


def find(folder, images, **options):
    """[frames][n][row, column, intensity]"""
    file = process(folder, images, ["copy", {"peaks": {"min_peaks": 0, **options}}], distance_m=DISTANCE_M,
                   photon_energy_keV=ENERGY_KEV, pixel_size_m=PIXEL_M)
    counts = file.result("peaks_rows").astype(int)
    equal(file.result("peaks_found").ravel().tolist(), counts.tolist(), "peaks found, beside those in the file")
    return [peaks[:, 1:4] for peaks in np.split(file.result("peaks"), np.cumsum(counts)[:-1])]


@case("counts: all planted peaks are found by both, in the same places")
def _(folder):
    rng = np.random.default_rng(11)
    scenes = [scene(rng, width) for width in (0.7, 0.9, 1.2)]
    images = np.stack([rng.poisson(mean).astype(np.uint16) for mean, _ in scenes])
    for k, ours in enumerate(find(folder, images)):
        theirs, planted = find_with_pyfai(images[k]), scenes[k][1]
        report(f"image {k}", ours, theirs, planted, compare(f"image {k}", ours, theirs, planted))


@case("keV as floats: the same")
def _(folder):
    rng = np.random.default_rng(12)
    mean, planted = scene(rng, 0.9)
    image = (rng.poisson(mean) * ENERGY_KEV + rng.normal(0, 0.6, mean.shape)).astype(np.float32)
    ours = find(folder, image[None])[0]
    theirs = find_with_pyfai(image / ENERGY_KEV)
    report("keV", ours, theirs, planted, compare("keV", ours, theirs, planted))


@case("a peak that is missing, or half a pixel off, would be noticed")
def _(folder):
    rng = np.random.default_rng(13)
    mean, planted = scene(rng, 0.9)
    image = rng.poisson(mean).astype(np.uint16)
    ours, theirs = find(folder, image[None])[0], find_with_pyfai(image)
    compare("as it is", ours, theirs, planted)
    true = nearest(planted, ours)[1]
    moved = ours.copy()
    moved[true[7], 0] += 0.5
    each_fails(lambda changed: compare("changed", changed, theirs, planted),
               {"one is missing": np.delete(ours, true[3], axis=0), "one is off": moved})


main()
