#!/usr/bin/python3
"""lima_test.py - the TANGO device server LimaCCDs with a client, as BLISS and scripts use it: runs are prepared, taken and stopped, images are those of
the file, events come, refusals say why, and neither a killed server nor a killed session costs the other more than it must."""
# normal build only

import base64
import importlib.util
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

from harness import ROOT, SLUICE, Program, address, case, check, equal, experiment, main, run, skip, wait_for

SERVER = ROOT / "packaging/tango/LimaCCDs.py"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "python"))
os.environ.update(SLUICE=SLUICE, SLUICE_CLIENT_LIBRARY=str(pathlib.Path(SLUICE).with_name("libsluice-client.so.0")), PYTHONPATH=str(ROOT / "python"),
                  PYTHONDONTWRITEBYTECODE="1")
try:
    import h5py
    import numpy as np
    import tango
    from tango.test_context import DeviceTestContext

    import sluice
    SPEC = importlib.util.spec_from_file_location("LimaCCDs", SERVER)
    LIMA = importlib.util.module_from_spec(SPEC)
    sys.modules["LimaCCDs"] = LIMA
    SPEC.loader.exec_module(LIMA)
except ImportError as why:
    print(f"1..0 # SKIP {why.name} is missing (Debian: python3-tango, python3-cffi, python3-numpy, python3-h5py)")
    sys.exit(0)

HEADER, VIDEO = "<IHHIIHHHHHHHHIIIIIIQQII", "!IHHqiiHHHH"
NUMPY = {0: "<u1", 1: "<u2", 2: "<u4", 4: "<i1", 5: "<i2", 6: "<i4", 8: "<f4"}
SMALL = {"kind": "pattern", "modules": 2, "rows": 32, "columns": 64, "frames": 30, "frame_rate_Hz": 200}
SINKS = [{"share": {"frames": "all", "results": "raw"}}, {"nexus": {"path": "run.nxs", "dataset": "raw"}}, "verify"]


def session(folder, name="cam", **sections):
    """A session in the background; its file is cam.yaml."""
    os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")
    path = experiment(folder, f"{name}.yaml", **{"detector": SMALL, "link": {"kind": "shm"}, "control": {"port": 0}, "sinks": SINKS, **sections})
    program = Program("session", path, "--root", folder / "data", "--name", name, folder=folder)
    wait_for("a socket", lambda: (folder / f"sockets/{name}.json").exists() or not program.running())
    return program


class Camera:
    """The server as a program, as sites start it, with its device and properties in a file; as a context manager it gives a client of it."""

    port = 10120

    def __init__(self, folder, name="cam", **properties):
        os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")
        self.folder, Camera.port = folder, Camera.port + 1
        lines = [f"id00/limaccds/cam->{key}: {value}\n" for key, value in {"Session": name, **properties}.items()]
        (folder / "lima.properties").write_text("".join(['LimaCCDs/demo/DEVICE/LimaCCDs: "id00/limaccds/cam"\n', *lines]))
        self.program = Program(SERVER, "demo", "-file=lima.properties", "-ORBendPoint", f"giop:tcp:{address(3)}:{Camera.port}", folder=folder,
                               program=sys.executable)

    def answers(self):
        check(self.program.running(), f"the server ended: {self.program.out()}{self.program.err()}")
        try:
            return self.proxy.ping() > 0
        except tango.DevFailed:
            return False

    def __enter__(self):
        self.proxy = tango.DeviceProxy(f"tango://{address(3)}:{Camera.port}/id00/limaccds/cam#dbase=no")
        wait_for("the server", self.answers)
        self.proxy.set_timeout_millis(60000)
        return self.proxy

    def __exit__(self, *_):
        self.program.send(signal.SIGTERM)
        self.program.process.wait()

    def kill(self):
        self.program.send(signal.SIGKILL)
        self.program.process.wait()


def finished(camera, seconds=60):
    wait_for("the end of the acquisition", lambda: camera.acq_status == "Ready", seconds)


def take(camera, **settings):
    """An acquisition, as a scan takes it."""
    for name, value in settings.items():
        camera.write_attribute(name, value)
    camera.prepareAcq()
    camera.startAcq()
    finished(camera)


def array(encoded):
    """(image or stack, number, tag) of DATA_ARRAY."""
    kind, data = encoded
    equal(kind, "DATA_ARRAY", "kind of encoding")
    magic, version, size, category, dtype, big, ndim, *rest = struct.unpack(HEADER, bytes(data[:80]))
    dims, steps, (number, tag, *pad) = rest[:6], rest[6:12], rest[12:]
    equal((magic, version, size, big, pad), (0x44544159, 4, 80, 0, [0, 0]), "magic, version, size, byte order, padding")
    equal((category, dims[ndim:], steps[ndim:]), ({2: 2, 3: 4}[ndim], [0] * (6 - ndim), [0] * (6 - ndim)), "category, and dimensions that are not used")
    image = np.frombuffer(bytes(data[80:]), NUMPY[dtype]).reshape(dims[:ndim][::-1])
    equal(steps[:ndim], list(image.strides[::-1]), "steps in bytes")
    return image, number, tag


def refused(code, call, *says):
    """The call must fail with this code and these words; returns the description."""
    try:
        call()
    except tango.DevFailed as why:
        error = why.args[0]
        equal(error.reason, code, f"reason of '{error.desc}'")
        for text in says:
            check(text in error.desc, f"'{error.desc}' does not say '{text}'")
        check(error.origin.startswith("LimaCCDs."), f"origin: {error.origin}")
        return error.desc
    return check(False, f"not refused: {says}")


# ---- encodings ----

@case("DATA_ARRAY and VIDEO_IMAGE of every type of pixels, of images and of stacks")
def _(_):
    for letters in ("u1", "u2", "u4", "i1", "i2", "i4", "f4", ">u2", ">i4"):
        image = (np.arange(12).reshape(3, 4) * 10 - (50 if letters[-2] in "if" else 0)).astype(letters)
        got, number, tag = array(LIMA.data_array(image, 2**40, 7))
        check(np.array_equal(got, image) and (number, tag) == (2**40, 7), f"{letters}: {got} {number} {tag}")
        stack, number, tag = array(LIMA.data_array(np.stack([image, image + 1]), 5))
        check(np.array_equal(stack, [image, image + 1]) and (number, tag) == (5, 0xFFFFFFFF), f"{letters}: {stack}")
        kind, data = LIMA.video_image(image, 9)
        size = image.itemsize
        equal((kind, struct.unpack(VIDEO, data[:32])), ("VIDEO_IMAGE", (0x5644454F, 1, {1: 0, 2: 1, 4: 2}[size], 9, 4, 3, 0, 32, 0, 0)), letters)
        equal(np.frombuffer(data[32:], f"<u{size}").reshape(3, 4).tolist(), np.clip(image, 0, None).astype(int).tolist(), f"grey values of {letters}")
    odd = np.array([[np.nan, np.inf, -np.inf, 3.5]], "f4")
    equal(np.frombuffer(LIMA.video_image(odd, 0)[1][32:], "<u4").tolist(), [0, 2**32 - 1, 0, 3], "what is no number")
    try:
        LIMA.data_array(np.zeros((2, 2), "c8"), 0)
    except sluice.Error as why:
        equal(why.code, "unsupported", "complex pixels")
    else:
        check(False, "complex pixels are encoded")


# ---- acquisitions ----

def in_test_context(folder):
    """As PyTango's own tests start a device. It forks: so it must be the first, before this process has threads of TANGO's."""
    os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")
    return DeviceTestContext(LIMA.LimaCCDs, device_name="id00/limaccds/cam", properties={"Session": "cam"}, process=True, host=address(3), timeout=60, debug=0)


@case("a client takes acquisitions as of a Lima camera: settings have their effect, images are those of the file")
def _(folder):
    session(folder)
    with in_test_context(folder) as camera:
        camera.set_timeout_millis(60000)
        equal((camera.acq_status, str(camera.state()), camera.acq_nb_frames, camera.camera_model, camera.last_image_ready), ("Ready", "STANDBY", 30, "pattern", -1),
              "before the first one")
        check(abs(camera.acq_expo_time - 0.005) < 1e-9, f"exposure {camera.acq_expo_time}")
        take(camera, acq_nb_frames=12, acq_expo_time=0.003, acq_tag=77)
        equal([camera.read_attribute(f"last_image_{what}").value for what in ("acquired", "ready", "saved")], [11] * 3, "counters")
        equal(list(camera.image_sizes), [0, 2, 64, 64], "sizes")
        equal((camera.image_type, camera.image_width, camera.image_height, camera.ready_for_next_acq), ("Bpp16", 64, 64, True), "image")
        status = sluice.attach("cam").status()
        equal((status.detector.frames, status.metadata["exposure_s"], round(status.detector.rate_Hz, 6)), (12, "0.003", 333.333333), "what the session was told")
        with h5py.File(folder / "data/000001/run.nxs", "r") as file:
            truth = file["entry/data/data"][:].reshape(12, 64, 64)
        for number in (0, 5, 11):
            image, got, tag = array(camera.readImage(number))
            check(np.array_equal(image, truth[number]), f"image {number} is not that of the file")
            equal((got, tag), (number, 77), "number and tag")
        equal(array(camera.readImage(-1))[1], 11, "the newest")
        stack, first, _ = array(camera.readImageSeq([3, 7]))
        check(np.array_equal(stack, truth[3:7]) and first == 3, "the stack is not that of the file")
        equal(bytes(camera.getImage(4)), truth[4].tobytes(), "plain bytes")
        equal(array(camera.last_image)[1], 11, "last_image")
        kind, data = camera.video_last_image
        equal((kind, bytes(data[32:])), ("VIDEO_IMAGE", truth[11].tobytes()), "video image")
        refused("empty", lambda: camera.readImage(12), "not available yet", "11")
        refused("empty", lambda: camera.readLastImage(11), "not available yet")
        equal(array(camera.readLastImage(10))[1], 11, "readLastImage")
        refused("request", lambda: camera.readImageSeq([3, 7, 2]), "steps of 2")
        refused("request", lambda: camera.readImageSeq([3, 7, 1, 5]), "Acq. #5 is not available")
        refused("request", lambda: camera.readImageSeq([3]), "start, end")
        # Another one: the same settings need no new configuration, and images are those of the new run.
        camera.prepareAcq()
        equal((camera.acq_status, camera.last_image_ready), ("Ready", -1), "prepared")
        camera.startAcq()
        finished(camera)
        equal((camera.last_image_ready, sluice.attach("cam").status().run), (11, 2), "the second run")
        check(np.array_equal(array(camera.readImage(3))[0], truth[3]), "image of the second run")
        for name in camera.get_attribute_list():
            camera.read_attribute(name)  # none fails


@case("saving_ attributes say where the file is; ABORT keeps an old one; metadata are in it")
def _(folder):
    session(folder)
    with Camera(folder) as camera:
        settings = {"saving_mode": "AUTO_FRAME", "saving_directory": str(folder / "files"), "saving_prefix": "lyso_", "saving_suffix": ".h5", "saving_next_number": 7,
                    "saving_format": "HDF5", "saving_frame_per_file": 5, "saving_common_header": ["sample = lysozyme", "title=a = b"], "acq_nb_frames": 12}
        take(camera, **settings)
        equal(camera.saving_next_number, 8, "next number")
        equal(sorted(path.name for path in (folder / "files").iterdir()),
              ["lyso_0007.h5", *(f"lyso_0007_data_00000{n}.h5" for n in (1, 2, 3))], "files")
        with h5py.File(folder / "files/lyso_0007.h5", "r") as file:
            equal((len(file["entry/data/data"]), file["entry/sample/name"][()], file["entry/title"][()]), (12, b"lysozyme", b"a = b"), "what is in it")
        speed, ratio, _, _ = camera.saving_statistics
        check(speed > 0 and ratio > 0.5, f"statistics: {speed}, {ratio}")
        camera.saving_next_number = 7
        refused("system", camera.prepareAcq, "lyso_0007.h5", "overwrite")
        equal(camera.acq_status, "Fault", "status")
        check("lyso_0007.h5" in camera.acq_status_fault_error and camera.state() == tango.DevState.FAULT, camera.acq_status_fault_error)
        take(camera, saving_overwrite_policy="OVERWRITE", acq_nb_frames=4)
        with h5py.File(folder / "files/lyso_0007.h5", "r") as file:
            equal(len(file["entry/data/data"]), 4, "images of the new file")
        camera.resetCommonHeader()
        camera.reset()
        equal((camera.saving_mode, camera.acq_nb_frames, camera.acq_status, sluice.attach("cam").metadata()), ("MANUAL", 30, "Ready", {}), "after a reset")
        take(camera, acq_nb_frames=3)
        check((folder / "data" / f"{sluice.attach('cam').status().run:06}" / "run.nxs").exists(), "MANUAL: the file is where the experiment says")


@case("an acquisition without an end is stopped or aborted; what is not possible then is refused with the reason")
def _(folder):
    session(folder)
    with Camera(folder) as camera:
        refused("state", camera.startAcq, "while the session is configured", "prepareAcq first")
        camera.acq_nb_frames = 0
        for end in (camera.stopAcq, camera.abortAcq):
            camera.prepareAcq()
            camera.startAcq()
            equal((camera.acq_status, camera.ready_for_next_acq, camera.state()), ("Running", False, tango.DevState.RUNNING), "running")
            wait_for("images", lambda: camera.last_image_ready > 10)
            refused("state", camera.startAcq, "while the session is running")
            refused("state", camera.prepareAcq, "not possible while the session is running")
            end()
            finished(camera)
            check(camera.last_image_saved == camera.last_image_ready > 10, "images that are safe")
        stopAcq_again = camera.stopAcq  # no run is under way: no effect
        stopAcq_again()
        equal(camera.acq_status, "Ready", "status")
    result = sluice.attach("cam").status()
    equal(result.stopped_by, "abortAcq", "the last run")


@case("values that are not possible are refused with what is possible; a wrong experiment says what is wrong in it")
def _(folder):
    session(folder)
    with Camera(folder) as camera:
        for name, value, code, says in (
                ("saving_format", "EDF", "request", "HDF5BS"), ("saving_mode", "AUTO_HEADER", "request", "MANUAL, AUTO_FRAME"), ("acq_nb_frames", -1, "request", "less than 0"),
                ("acq_expo_time", -1.0, "request", "less than 0"), ("saving_index_format", "%s%s", "request", "%04d"), ("image_rotation", "90", "unsupported", "NONE"),
                ("image_bin", [2, 2], "unsupported", "[1, 1]"), ("acq_mode", "ACCUMULATION", "unsupported", "SINGLE"), ("image_events_max_rate", 1000.0, "request", "25"),
                ("acq_trigger_mode", "EXTERNAL_GATE", "unsupported", "INTERNAL_TRIGGER"), ("saving_common_header", ["nonsense"], "request", "KEY=VALUE")):
            refused(code, lambda name=name, value=value: camera.write_attribute(name, value), says)
        for name, value in (("acq_mode", "Single"), ("image_rotation", "NONE"), ("image_bin", [1, 1]), ("image_flip", [False, False]), ("image_roi", [0, 0, 0, 0]),
                            ("saving_managed_mode", "SOFTWARE"), ("saving_format", "hdf5bs")):
            camera.write_attribute(name, value)
        equal(list(camera.getAttrStringValueList("saving_format")), ["HDF5", "HDF5BS", "HDF5ZSTD"], "values of an attribute")
        refused("absent", lambda: camera.image_width, "before the first prepareAcq", "ImageSizes")
        refused("absent", lambda: camera.readImage(0), "no run of 'cam' has a share")
        refused("unsupported", lambda: camera.setImageHeader(["0;a=b"]), "saving_common_header")
        camera.saving_mode, camera.saving_directory = "AUTO_FRAME", "/x" * 1000
        refused("experiment", camera.prepareAcq, "nexus.path", "is too long")
        equal(camera.acq_status, "Fault", "status")
        camera.saving_directory = str(folder)
        take(camera, acq_nb_frames=2)
    with Camera(folder, ImageSizes="1, 4, 1030, 514") as camera:  # no run is under way: there is no share
        equal((camera.image_type, list(camera.image_sizes)), ("Bpp32S", [1, 4, 1030, 514]), "sizes by the property")


# ---- events ----

LISTEN = """
import base64, json, sys, time
import tango

def hear(event):
    value = str(event.errors) if event.err else event.attr_value.value
    if not event.err and isinstance(value, tuple):  # of DevEncoded
        value = [value[0], base64.b64encode(bytes(value[1])).decode()]
    print(json.dumps([event.attr_name.split("/")[-1].split("#")[0].lower(), value]), flush=True)

camera = tango.DeviceProxy(sys.argv[1])
ids = [camera.subscribe_event(name, tango.EventType.CHANGE_EVENT, hear) for name in sys.argv[2:]]
print("[]", flush=True)
time.sleep(600)
"""


class Events:
    """What a client hears of attributes. A process of its own: of devices without a database TANGO 9.3's client misses heartbeats, after 12 s it gives events
    up, and then it crashes. Where this machine is slower than that, nothing can be said."""

    def __init__(self, folder, *names):
        self.program = Program("-c", LISTEN, f"tango://{address(3)}:{Camera.port}/id00/limaccds/cam#dbase=no", *names, folder=folder, program=sys.executable)
        wait_for("a subscription", lambda: "[]" in self.lines())

    def lines(self):
        text = self.program.out()
        if "API_EventTimeout" in text or not self.program.running():
            skip("this machine is too slow for events without a TANGO database, which end after 12 s")
        return text.splitlines()

    def of(self, name):
        """All values of an attribute so far; the last line may be one that is just being written."""
        heard = [json.loads(line) for line in self.lines() if line.endswith("]")]
        return [one[1] for one in heard if one and one[0] == name]


@case("change events: acq_status and counters as they change, images only where a client asks for them")
def _(folder):
    session(folder)
    with Camera(folder) as camera:
        events = Events(folder, "acq_status", "last_image_ready", "last_image_saved")
        camera.image_events_max_rate = 25
        camera.acq_nb_frames = 0
        camera.prepareAcq()
        camera.startAcq()
        wait_for("events", lambda: len(set(events.of("last_image_ready"))) > 4)
        camera.stopAcq()
        finished(camera)
        last = camera.last_image_ready
        wait_for("the last event", lambda: events.of("last_image_ready")[-1] == last and events.of("last_image_saved")[-1] == last)
        wait_for("the status", lambda: events.of("acq_status")[-1] == "Ready")
        states = [state for i, state in enumerate(events.of("acq_status")) if i == 0 or events.of("acq_status")[i - 1] != state]
        check(states[0] == "Ready" and states[-2:] == ["Running", "Ready"], f"states: {states}")
        ready = events.of("last_image_ready")
        equal(ready[1:], sorted(ready[1:]), "counters that rise")
        events.program.stop()
        images = Events(folder, "last_image")
        quiet = len(images.of("last_image"))  # what is there at the beginning
        take(camera, acq_nb_frames=20)
        equal(len(images.of("last_image")), quiet, "images that no client has asked for")
        camera.image_events_push_data = True
        take(camera)
        wait_for("images", lambda: len(images.of("last_image")) > quiet)
        got = images.of("last_image")[-1]
        check(isinstance(got, list), f"an error in the place of an image: {got}")
        image, number, _ = array((got[0], base64.b64decode(got[1])))
        check(image.shape == (64, 64) and 0 <= number < 20, f"image {number} of shape {image.shape}")


# ---- what can go wrong ----

@case("a session that is absent, or was killed: acq_status is Fault and says so; a new one of that name is used at once")
def _(folder):
    os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")
    with Camera(folder) as camera:
        equal((camera.acq_status, camera.state()), ("Fault", tango.DevState.FAULT), "without a session")
        check("no session is called 'cam'" in camera.acq_status_fault_error, camera.acq_status_fault_error)
        refused("absent", camera.prepareAcq, "no session is called 'cam'")
        program = session(folder)
        wait_for("the session", lambda: camera.acq_status == "Ready")
        camera.acq_nb_frames = 0
        camera.prepareAcq()
        camera.startAcq()
        wait_for("images", lambda: camera.last_image_ready > 3)
        program.send(signal.SIGKILL)
        program.process.wait()
        wait_for("the fault", lambda: camera.acq_status == "Fault")
        check("'cam'" in camera.acq_status_fault_error, camera.acq_status_fault_error)
        image, _, _ = array(camera.readImage(3))  # what it had published is still here
        equal(image.shape, (64, 64), "image of a killed run")
        session(folder)
        wait_for("the new session", lambda: camera.acq_status == "Ready")
        take(camera, acq_nb_frames=5)
        equal(camera.last_image_saved, 4, "images of the new session")


@case("the server starts a session, is killed in mid-run, and is there again: the run does not notice")
def _(folder):
    os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")
    path = experiment(folder, "cam.yaml", detector={**SMALL, "frames": 0}, link={"kind": "shm"}, control={"port": 0}, sinks=SINKS)
    mine = {"Experiment": path, "Root": folder / "data"}
    try:
        first = Camera(folder, **mine)
        camera = first.__enter__()
        equal(camera.acq_status, "Ready", "the session that it started")
        camera.prepareAcq()
        camera.startAcq()
        wait_for("images", lambda: camera.last_image_ready > 10)
        first.kill()
        frames = sluice.attach("cam").status().frames.settled
        with Camera(folder, **mine) as camera:
            equal(camera.acq_status, "Running", "the run that it finds")
            wait_for("new images", lambda: camera.last_image_ready > frames + 10)
            equal(array(camera.readImage(-1))[0].shape, (64, 64), "an image")
            camera.stopAcq()
            finished(camera)
        equal(sluice.attach("cam").status().result, "intact", "result of the run")
    finally:
        if any(info.alive for info in sluice.sessions()):
            run("ctl", "cam", "close", "--wait", folder=folder)
    with Camera(folder, Session="other", Experiment=folder / "no.yaml", Root=folder / "data") as camera:
        check("did not begin" in camera.acq_status_fault_error and "other.log says why" in camera.status(), camera.acq_status_fault_error)
    check("no.yaml" in (folder / "data/other.log").read_text(), "the log of a session that did not begin")


@case("without PyTango the server says what to install")
def _(folder):
    (folder / "tango.py").write_text("raise ImportError('not here')\n")
    done = subprocess.run([sys.executable, SERVER, "demo"], cwd=folder, env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT / 'python'}"}, capture_output=True,
                          text=True, check=False)
    equal((done.returncode, done.stderr.count("apt install python3-tango")), (1, 1), f"{done.stderr}")


@case("what an image costs by CORBA")
def _(folder):
    session(folder, detector={**SMALL, "rows": 512, "columns": 1024, "frame_rate_Hz": 50})
    with Camera(folder) as camera:
        take(camera, acq_nb_frames=10)
        begun = time.monotonic()
        for number in range(10):
            size = len(camera.readImage(number)[1])
        print(f"# note: readImage of {size / 1e6:.1f} MB: {(time.monotonic() - begun) * 100:.1f} ms")


if __name__ == "__main__":
    main()
