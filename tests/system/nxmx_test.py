#!/usr/bin/python3
"""nxmx_test.py - the file has every path that readers ask for, with its type, unit and attributes.

The lists are ours, written from the definition of NXmx (nexusformat/definitions v2026.01), from dxtbx (FormatNXmx) and from
neggia, the plug-in of XDS. readers_test.py has the programs themselves, as far as they are installed."""
# normal build only

import functools
import pathlib
import re
import tempfile

import h5py
import numpy as np

from harness import RECEIVER, ROOT, SOURCE, acquire, case, check, equal, main, run

TEXT, DATE, FLOAT, INTEGER, LOGICAL = "text", "date and time in UTC", "floating point", "integer", "boolean"
M, S, HZ, ANGSTROM, PIXEL = "m", "s", "Hz", "angstrom", "pixel"
DETECTOR = "entry/instrument/detector"
SPECIFIC = f"{DETECTOR}/detectorSpecific"
BEAM, GROUP = "entry/instrument/beam", "entry/instrument/detector_group"

CLASSES = {  # path: NX_class
    "/": "NXroot", "entry": "NXentry", "entry/data": "NXdata", "entry/instrument": "NXinstrument", DETECTOR: "NXdetector",
    f"{DETECTOR}/transformations": "NXtransformations", BEAM: "NXbeam", "entry/sample": "NXsample",
    "entry/source": "NXsource", SPECIFIC: "NXcollection", GROUP: "NXdetector_group"}

# (path, type, dimensions, unit); None: no unit.
REQUIRED = [
    ("entry/definition", TEXT, 0, None),
    ("entry/start_time", DATE, 0, None),
    ("entry/end_time_estimated", DATE, 0, None),
    ("entry/sample/name", TEXT, 0, None),
    ("entry/sample/depends_on", TEXT, 0, None),
    ("entry/instrument/name", TEXT, 0, None),
    ("entry/source/name", TEXT, 0, None),
    (f"{DETECTOR}/sensor_material", TEXT, 0, None),
    (f"{DETECTOR}/sensor_thickness", FLOAT, 0, M),
    (f"{BEAM}/incident_wavelength", FLOAT, 0, ANGSTROM),
]
# What NXmx recommends and the program knows by itself. METADATA has what it recommends and only the user knows.
RECOMMENDED = [
    ("entry/data/data", INTEGER, 3, None),
    ("entry/instrument/time_zone", TEXT, 0, None),
    (f"{DETECTOR}/data", INTEGER, 3, None),
    (f"{DETECTOR}/description", TEXT, 0, None),
    (f"{DETECTOR}/distance", FLOAT, 0, M),
    (f"{DETECTOR}/distance_derived", LOGICAL, 0, None),
    (f"{DETECTOR}/beam_center_x", FLOAT, 0, PIXEL),
    (f"{DETECTOR}/beam_center_y", FLOAT, 0, PIXEL),
    (f"{DETECTOR}/pixel_mask", INTEGER, None, None),
    (f"{DETECTOR}/bit_depth_readout", INTEGER, 0, None),
    (f"{GROUP}/group_names", TEXT, 1, None),
    (f"{GROUP}/group_index", INTEGER, 1, None),
    (f"{GROUP}/group_parent", INTEGER, 1, None),
]
METADATA = [  # recommended or optional, from the section metadata
    ("entry/title", TEXT, 0, None),
    ("entry/source/type", TEXT, 0, None),
    (f"{DETECTOR}/count_time", FLOAT, 0, S),
    (f"{BEAM}/incident_beam_size", FLOAT, 1, M),
    (f"{BEAM}/profile", TEXT, 0, None),
    (f"{BEAM}/incident_polarization_stokes", FLOAT, 1, None),
    (f"{BEAM}/total_flux", FLOAT, 0, HZ),
    ("entry/instrument/attenuator/attenuator_transmission", FLOAT, 0, None),
]
DXTBX = [
    (f"{DETECTOR}/depends_on", TEXT, 0, None),
    (f"{DETECTOR}/saturation_value", INTEGER, 0, None),
    (f"{DETECTOR}/underload_value", INTEGER, 0, None),
    (f"{DETECTOR}/x_pixel_size", FLOAT, 0, M),
    (f"{DETECTOR}/y_pixel_size", FLOAT, 0, M),
]
XDS = [
    (f"{DETECTOR}/x_pixel_size", FLOAT, 0, M),
    (f"{DETECTOR}/y_pixel_size", FLOAT, 0, M),
    (f"{SPECIFIC}/nimages", INTEGER, 0, None),
    (f"{SPECIFIC}/ntrigger", INTEGER, 0, None),
    (f"{SPECIFIC}/pixel_mask", INTEGER, 2, None),
    ("entry/data/data_000001", INTEGER, 3, None),
]
MODULE = [  # in each NXdetector_module
    ("data_origin", INTEGER, 1, None),
    ("data_size", INTEGER, 1, None),
    ("fast_pixel_direction", FLOAT, 0, M),
    ("slow_pixel_direction", FLOAT, 0, M),
    ("module_offset", FLOAT, 0, M),
]
ISO_8601 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
FILTERS = {(), (32008,), (32004,)}  # of chunks, as neggia reads them: plain, bitshuffle with LZ4, LZ4


def text_of(value):
    if isinstance(value, np.ndarray):
        return " ".join(map(text_of, value.tolist()))
    return value.decode() if isinstance(value, bytes) else value


def is_of(item, kind):
    if kind in (TEXT, DATE):
        known = h5py.check_string_dtype(item.dtype) is not None and text_of(item[()])
        return bool(known) and (kind == TEXT or ISO_8601.fullmatch(known) is not None)
    if kind == LOGICAL:
        return item.dtype.itemsize == 1 and item[()] in (0, 1)
    return item.dtype.kind in ("f" if kind == FLOAT else "iu")


def faults(file, rows, root=""):
    """What is missing or different, in words."""
    found = []
    for path, kind, dimensions, unit in rows:
        path = root + path
        item = file.get(path)
        if item is None:
            found.append(f"{path} is missing")
            continue
        if not is_of(item, kind):
            found.append(f"{path} is not {kind}: {item.dtype}, {item[()] if item.shape == () else ''}")
        if dimensions is not None and item.ndim != dimensions:
            found.append(f"{path} has {item.ndim} dimensions, not {dimensions}")
        if text_of(item.attrs.get("units")) != unit:
            found.append(f"{path} has unit {item.attrs.get('units')!r}, not {unit!r}")
    return found


def chain_faults(file, start):
    """Follow depends_on from a transformation to ".": each step is there, and has what NXtransformations requires."""
    found, path, steps = [], start, 0
    while path != "." and steps < 20:
        steps += 1
        item = file.get(path)
        if item is None:
            return found + [f"{path} is missing, in the chain from {start}"]
        kind = text_of(item.attrs.get("transformation_type"))
        units = {"translation": ("m", "mm"), "rotation": ("deg",)}.get(kind)
        vector, offset = item.attrs.get("vector"), item.attrs.get("offset")
        if units is None or text_of(item.attrs.get("units")) not in units:
            found.append(f"{path}: transformation_type {kind!r} with unit {item.attrs.get('units')!r}")
        if vector is None or vector.shape != (3,) or abs(np.linalg.norm(vector) - 1) > 1e-9:
            found.append(f"{path}: vector {vector} is no direction")
        if offset is None or offset.shape != (3,) or (np.any(offset) and "offset_units" not in item.attrs):
            found.append(f"{path}: offset {offset} is no place")
        path = text_of(item.attrs.get("depends_on", ""))
        path = path if path.startswith(("/", ".")) else f"{item.parent.name}/{path}"
    return found if path == "." else found + [f"the chain from {start} does not end"]


def modules_of(file):
    return [item.name for item in file[DETECTOR].values()
            if isinstance(item, h5py.Group) and text_of(item.attrs.get("NX_class")) == "NXdetector_module"]


def complete(file, label):
    """All lists, over one master file."""
    equal([path for path, name in CLASSES.items() if path not in file or text_of(file[path].attrs.get("NX_class")) != name], [],
          f"{label}: groups of another class")
    equal(faults(file, REQUIRED + RECOMMENDED + DXTBX + XDS), [], f"{label}: fields")
    equal(text_of(file["entry/definition"][()]), "NXmx", f"{label}: definition")
    modules = modules_of(file)
    check(modules, f"{label}: no NXdetector_module")
    chains = [text_of(file[f"{DETECTOR}/depends_on"][()]), text_of(file["entry/sample/depends_on"][()])]
    for module in modules:
        equal(faults(file, MODULE, f"{module}/"), [], f"{label}: a module")
        chains += [f"{module}/fast_pixel_direction", f"{module}/slow_pixel_direction"]
    equal([fault for chain in chains for fault in chain_faults(file, chain)], [], f"{label}: transformations")


def demo(folder, **more):
    settings = {"detector.dark_frames": 8, "detector.frames": 62, "link.listen": RECEIVER, "link.source": SOURCE,
                "control.address": RECEIVER, "sinks.nexus.path": folder / "run.nxs", **more}
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    equal(run("run", ROOT / "examples/jungfrau-laptop.yaml", *sets, folder=folder).process.returncode, 0, "exit status")
    return folder / "run.nxs"


@functools.cache
def rolled():
    """A master with two data files, made once for all cases that only read it."""
    return demo(pathlib.Path(tempfile.mkdtemp(prefix="nxmx-")), **{"sinks.nexus.frames_per_file": 3})


@case("every path that NXmx requires, that it recommends and that dxtbx and XDS read, with type, unit and attributes")
def _(folder):
    for path, label in ((rolled(), "modules"), (demo(folder, **{"sinks.nexus.image": "assembled"}), "assembled")):
        with h5py.File(path, "r") as file:
            complete(file, label)


@case("with a section metadata: exposure, flux, size, profile and polarization of the beam, where NXmx has them, with their values")
def _(folder):
    known = {"title": "salt", "source_type": "synchrotron", "exposure_s": 1e-5, "beam_width_m": 2e-5, "beam_height_m": 1e-5,
             "beam_profile": "Gaussian", "polarization": "horizontal", "polarization_degree": 0.99, "flux_per_s": 2e12, "transmission": 0.5}
    path = demo(folder, **{f"metadata.{key}": value for key, value in known.items()})
    with h5py.File(path, "r") as file:
        complete(file, "with metadata")
        equal(faults(file, METADATA), [], "fields of the section metadata")
        found = {path: file[path][()] for path, kind, *_ in METADATA if kind == FLOAT}
        equal({path: value.tolist() for path, value in found.items()}, {
            f"{DETECTOR}/count_time": 1e-5, f"{BEAM}/incident_beam_size": [2e-5, 1e-5], f"{BEAM}/total_flux": 2e12,
            f"{BEAM}/incident_polarization_stokes": [1, 0.99, 0, 0], "entry/instrument/attenuator/attenuator_transmission": 0.5}, "values")
        equal([text_of(file[path][()]) for path in ("entry/title", f"{BEAM}/profile", "entry/source/type")],
              ["salt", "Gaussian", "Synchrotron X-ray Source"], "texts")
    with h5py.File(rolled(), "r") as file:
        there = [path for path, *_ in METADATA if path in file]
        equal(there, [], "fields that nobody has said a value for")


@case("NXdetector_group: each NXdetector is named once, has a positive number of its own, and a parent that there is, or -1")
def _(folder):
    with h5py.File(rolled(), "r") as file:
        group = file[GROUP]
        names = [text_of(name) for name in group["group_names"][()]]
        index, parent = group["group_index"][()].tolist(), group["group_parent"][()].tolist()
        detectors = [name for name, item in file["entry/instrument"].items() if text_of(item.attrs.get("NX_class", "")) == "NXdetector"]
        equal(sorted(set(names) & set(detectors)), sorted(detectors), "detectors in group_names")
        equal((len(index), len(parent), len(set(index))), (len(names),) * 3, "lengths, different numbers")
        check(all(number > 0 for number in index) and set(parent) <= {-1, *index}, f"group_index {index}, group_parent {parent}")


@case("the same of a replayed file with a goniometer: the sample hangs on its axes")
def _(folder):
    done, _ = acquire(folder, detector={"kind": "replay", "rows": None, "columns": None, "frames": None, "file": str(rolled())},
                      goniometer=[{"omega": {"start_deg": 12.5, "increment_deg": 0.25}}, {"chi": {"x": 0, "z": 1, "start_deg": 30}}])
    equal(done.process.returncode, 0, "exit status")
    with h5py.File(folder / "run.nxs", "r") as file:
        complete(file, "replay")
        check(text_of(file["entry/sample/depends_on"][()]) != ".", "the sample hangs on nothing")


@case("neggia: links are numbered without a gap, a chunk is a frame, its filter is known, and the mask is not chunked")
def _(folder):
    with h5py.File(rolled(), "r") as file:
        links = sorted(name for name in file["entry/data"] if name.startswith("data_"))
        equal(links, [f"data_{i + 1:06}" for i in range(len(links))], "links")
        equal(sum(len(file[f"entry/data/{name}"]) for name in links), int(file[f"{SPECIFIC}/nimages"][()]), "images behind the links")
        check(len(links) > 1, "one file is no row of files")
        for name in links:
            data = file[f"entry/data/{name}"]
            equal(data.chunks, (1, *data.shape[1:]), f"chunks of {name}")
            plan = data.id.get_create_plist()
            check(tuple(plan.get_filter(i)[0] for i in range(plan.get_nfilters())) in FILTERS, f"filters of {name}")
        mask = file[f"{SPECIFIC}/pixel_mask"]
        equal((mask.chunks, str(mask.dtype), mask.shape), (None, "uint32", data.shape[1:]), "the mask")


@case("dxtbx: a known material, pixels of a type that it takes, and limits that enclose every good pixel")
def _(folder):
    with h5py.File(rolled(), "r") as file:
        check(text_of(file[f"{DETECTOR}/sensor_material"][()]) in ("Si", "Silicon", "CdTe", "GaAs"), "sensor_material")
        data, least, most = (file[path] for path in ("entry/data/data", f"{DETECTOR}/underload_value", f"{DETECTOR}/saturation_value"))
        check(data.dtype.itemsize <= (4 if data.dtype.kind == "i" else 2), f"pixels are {data.dtype}")
        good = data[()][:, file[f"{SPECIFIC}/pixel_mask"][()] == 0]
        check(least[()] < most[()] <= np.iinfo(data.dtype).max, "limits")
        check((good >= least[()]).mean() > 0.99, "good pixels lie below underload_value")


@case("the lists find what is wrong: a path that is gone, another type, unit or direction, a chain that leads nowhere")
def _(folder):
    path = rolled()
    wrong = path.with_name("wrong.nxs")  # beside its data files

    def after(change):
        wrong.write_bytes(path.read_bytes())
        with h5py.File(wrong, "r+") as file:
            change(file)
            rows = faults(file, REQUIRED + RECOMMENDED + DXTBX + XDS) + faults(file, MODULE, f"{modules_of(file)[0]}/")
            return rows + chain_faults(file, f"{modules_of(file)[0]}/fast_pixel_direction")

    def retype(file):
        del file["entry/start_time"]
        file["entry/start_time"] = "yesterday"

    equal(after(lambda file: None), [], "of the file as it is")
    for change, words in (
            (lambda file: file.__delitem__("entry/source/name"), "entry/source/name is missing"),
            (retype, "entry/start_time is not date"),
            (lambda file: file[f"{DETECTOR}/distance"].attrs.modify("units", "mm"), "distance has unit"),
            (lambda file: file[f"{modules_of(file)[0]}/fast_pixel_direction"].attrs.modify("vector", [1.0, 1.0, 0.0]), "no direction"),
            (lambda file: file[f"{DETECTOR}/transformations"].__delitem__("translation"), "in the chain from")):
        found = after(change)
        check(any(words in fault for fault in found), f"{words}: {found}")


main()
