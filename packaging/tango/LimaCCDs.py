#!/usr/bin/python3
"""LimaCCDs.py - a TANGO device server that shows a Sluice session as a Lima camera: class LimaCCDs, with the commands and attributes that BLISS,
NICOS, Sardana and scripts use of it.

    LimaCCDs.py INSTANCE [-nodb -dlist id00/limaccds/demo] [-ORBendPoint giop:tcp:127.0.0.1:11018]

It speaks to the session's status socket and reads images from its share; it holds nothing that a run needs, so it can be killed and started again
at any time. Images go through CORBA only where a client asks for one. docs/how-to/lima.md tells how to use it. Needs the package `sluice` and
PyTango (Debian: python3-tango).
"""

from __future__ import annotations

import functools
import os
import subprocess
import struct
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

import numpy as np
import sluice

try:
    import tango
    from tango.server import Device, attribute, command, device_property
except ImportError as missing:
    sys.exit(f"LimaCCDs: PyTango is missing ({missing}); on Debian: apt install python3-tango")

READY, RUNNING, FAULT, CONFIGURATION = "Ready", "Running", "Fault", "Configuration"
ACQ_STATUS = {"idle": CONFIGURATION, "configured": READY, "armed": READY, "ended": READY, "running": RUNNING, "paused": RUNNING,
              "stopping": RUNNING, "fault": FAULT}
WITH_RUN = ("armed", "running", "paused", "stopping")
TRIGGER_MODES = ("INTERNAL_TRIGGER", "EXTERNAL_TRIGGER", "EXTERNAL_TRIGGER_MULTI", "EXTERNAL_GATE")
COMPRESSION = {"HDF5": "none", "HDF5BS": "bslz4", "HDF5ZSTD": "bszstd"}
VALUES = {"acq_mode": ("SINGLE",), "acq_trigger_mode": TRIGGER_MODES, "saving_mode": ("MANUAL", "AUTO_FRAME"), "saving_format": tuple(COMPRESSION),
          "saving_managed_mode": ("SOFTWARE",), "saving_overwrite_policy": ("ABORT", "OVERWRITE"), "image_rotation": ("NONE",),
          "image_type": ("Bpp8", "Bpp8S", "Bpp16", "Bpp16S", "Bpp32", "Bpp32S", "Bpp32F"), "video_mode": ("Y8", "Y16", "Y32")}
NO_TAG = 0xFFFFFFFF
LONG_MAX = 2**31 - 1
STATUS_AGE_S = 0.01  # a client that reads ten attributes one after the other asks the session once


# ---- images as Lima sends them ----

#: NumPy's kind and size of a pixel: Lima's image type, its number in DATA_ARRAY, signed.
PIXELS = {"u1": ("Bpp8", 0, 0), "u2": ("Bpp16", 1, 0), "u4": ("Bpp32", 2, 0), "i1": ("Bpp8S", 4, 1), "i2": ("Bpp16S", 5, 1), "i4": ("Bpp32S", 6, 1),
          "f4": ("Bpp32F", 8, 1)}
IMAGE, IMAGE_STACK = 2, 4  # categories of DATA_ARRAY
VIDEO_MODE = {1: 0, 2: 1, 4: 2}  # bytes of a pixel: Y8, Y16, Y32


def pixel_type(dtype: "np.dtype[Any]") -> Tuple[str, int, int]:
    """Lima's name and number of a type of pixels, and whether it is signed."""
    try:
        return PIXELS[f"{dtype.kind}{dtype.itemsize}"]
    except KeyError:
        raise sluice.Error("unsupported", f"Lima has no name for pixels of type {dtype}") from None


def data_array(image: "np.ndarray[Any, Any]", number: int, tag: int = NO_TAG) -> Tuple[str, bytes]:
    """One image, or a stack of them, as DATA_ARRAY of version 4: a header of 80 bytes, then the pixels, little-endian."""
    image = np.ascontiguousarray(image, image.dtype.newbyteorder("<"))
    dims = list(image.shape[::-1])
    steps = [image.itemsize * int(np.prod(dims[:i], dtype=np.int64)) for i in range(len(dims))]
    rest = [0] * (6 - len(dims))
    header = struct.pack("<IHHIIHHHHHHHHIIIIIIQQII", 0x44544159, 4, 80, IMAGE_STACK if image.ndim == 3 else IMAGE, pixel_type(image.dtype)[1], 0,
                         len(dims), *dims, *rest, *steps, *rest, number, tag, 0, 0)
    return "DATA_ARRAY", header + image.tobytes()


def video_image(image: "np.ndarray[Any, Any]", number: int) -> Tuple[str, bytes]:
    """An image as VIDEO_IMAGE: a header of 32 bytes, big-endian, then grey values, little-endian. What is below 0 becomes 0."""
    size = image.dtype.itemsize
    if image.dtype.kind == "f":
        image = np.nan_to_num(image.astype("f8"), nan=0.0, posinf=2.0**32)
    grey = (image if image.dtype.kind == "u" else np.clip(image, 0, 2**(8 * size) - 1)).astype(f"<u{size}")
    return "VIDEO_IMAGE", struct.pack("!IHHqiiHHHH", 0x5644454F, 1, VIDEO_MODE[size], number, image.shape[1], image.shape[0], 0, 32, 0, 0) + grey.tobytes()


# ---- the session as a camera ----

class Settings:
    """What clients have set since the server began. None: as the experiment says."""

    def __init__(self) -> None:
        self.frames: Optional[int] = None
        self.exposure: Optional[float] = None
        self.latency: Optional[float] = None
        self.mode, self.directory, self.prefix, self.suffix = "MANUAL", "", "", ".h5"
        self.number, self.index_format = 0, "%04d"
        self.format, self.policy, self.per_file = "HDF5BS", "ABORT", 0

    def path(self) -> str:
        """The next file."""
        return os.path.join(self.directory, f"{self.prefix}{self.index_format % self.number}{self.suffix}")

    def overrides(self, sink: str) -> Dict[str, Any]:
        """The same as overrides of the experiment."""
        found: Dict[str, Any] = {}
        if self.frames is not None:
            found["detector.frames"] = self.frames
        if self.exposure is not None or self.latency is not None:
            period = (self.exposure or 0.0) + (self.latency or 0.0)
            found["detector.frame_rate_Hz"] = f"{1 / period:.12g}" if period > 0 else 0
        if self.exposure:
            found["metadata.exposure_s"] = f"{self.exposure:.12g}"
        if self.mode == "AUTO_FRAME":
            found[f"sinks.{sink}.path"] = self.path()
            found[f"sinks.{sink}.overwrite"] = self.policy == "OVERWRITE"
            found[f"sinks.{sink}.compression"] = COMPRESSION[self.format]
            if self.per_file:
                found[f"sinks.{sink}.frames_per_file"] = self.per_file
        return found


class Camera:
    """A session, and the share of its run. Every method may raise sluice.Error. Threads take turns."""

    def __init__(self, name: str, share: str, array: str) -> None:
        self.name, self._share_url, self._array = name, share, array
        self.control = sluice.Control(name)
        self._lock = threading.RLock()
        self._status: Optional[Dict[str, Any]] = None
        self._status_at = 0.0
        self._follower: Optional[sluice.Follower] = None
        self._run: Any = None  # whose share it is
        self.shape: Tuple[int, ...] = ()
        self.dtype: Optional["np.dtype[Any]"] = None

    def status(self, fresh: bool = False) -> Dict[str, Any]:
        """As the session says it; at most 10 ms old."""
        with self._lock:
            now = time.monotonic()
            if self._status is None or fresh or now - self._status_at > STATUS_AGE_S:
                self._status, self._status_at = None, now
                self._status = self.control.status().as_dict()
            return self._status

    def forget(self) -> None:
        """The next status is a new one."""
        with self._lock:
            self._status = None

    def follow(self) -> None:
        """Attach to the share of the run under way, where it has one. What it held when the run ended stays readable."""
        with self._lock:
            status = self.status()
            if status["state"] not in WITH_RUN or status["started_unix_ns"] == self._run:
                return
            url = self._share_url or next((addon["where"] for addon in status["addons"] if addon["name"] == "share" and addon["where"]), "")
            if not url:
                self._drop()
                return
            try:
                follower = sluice.follow(url)
            except sluice.Error as why:
                if why.code in ("absent", "connection"):
                    return  # between two runs: the next look finds it
                raise
            self._drop()
            self._follower, self._run = follower, status["started_unix_ns"]
            place = follower.describe().arrays.get(self.array_name())
            if place:
                self.shape, self.dtype = flat(place.shape), place.dtype

    def _drop(self) -> None:
        if self._follower:
            self._follower.close()
        self._follower, self._run = None, None

    def array_name(self) -> str:
        """Of the array that is the image: the one that was asked for, `image`, `raw`, or the first with rows and columns."""
        assert self._follower
        arrays = self._follower.describe().arrays
        wanted = [self._array] if self._array else ["image", "raw", *(name for name, array in arrays.items() if len(array.shape) > 1)]
        return next((name for name in wanted if name in arrays), "")

    def follower(self) -> sluice.Follower:
        """The share of the run under way, or of the last one."""
        try:
            self.follow()
        except sluice.Error:
            if not self._follower:  # else: of a session that was killed, what it had published is still here
                raise
        if not self._follower:
            raise sluice.Error("absent", f"no run of '{self.name}' has a share here",
                               hint="add the sink share to the experiment, with frames: all for every image")
        return self._follower

    def places(self) -> int:
        """How many images the share holds at most."""
        return self._follower.describe().count if self._follower else 0

    def element(self, number: int) -> sluice.Frame:
        """The element of the share whose frame has this sequence; -1: the newest."""
        with self._lock:
            follower = self.follower()
            end = follower.published
            low, high = max(0, end - follower.describe().count), end - 1
            if not end:
                raise sluice.Error("empty", "Frame(s) not available yet")
            newest = follower.fetch(high)
            last = newest.user[0]
            if number in (-1, last):
                return newest
            if number > last:
                raise sluice.Error("empty", f"Frame(s) not available yet: {number}; the newest is {last}")
            guess = high - (last - number)  # where every frame is published
            while low <= high:
                at = guess if low <= guess <= high else (low + high) // 2
                guess = -1
                try:
                    found = follower.fetch(at)
                except sluice.Overtaken:
                    low = at + 1
                    continue
                if found.user[0] == number:
                    return found
                low, high = (at + 1, high) if found.user[0] < number else (low, at - 1)
            raise sluice.Error("overtaken", f"frame {number} is not in the share", hint="it was overtaken, or not published: options count and frames of "
                               "the sink share say how many frames it holds, and which")

    def image(self, number: int) -> Tuple["np.ndarray[Any, Any]", int]:
        """An image with its modules one below the other, and its number; -1: the newest."""
        with self._lock:
            frame = self.element(number)
            name = self.array_name()
            if name not in frame:
                raise sluice.Error("absent", f"frame {frame.user[0]} has no image", hint="it was not complete, or a stage rejected it")
            image = frame[name]
            return image.reshape(flat(image.shape)), int(frame.user[0])

    def close(self) -> None:
        """Let go of the share and hang up."""
        with self._lock:
            self._drop()
            self.control.close()


def flat(shape: Sequence[int]) -> Tuple[int, ...]:
    """Modules one below the other."""
    return (int(np.prod(shape[:-1])), shape[-1]) if len(shape) > 1 else (1, *shape)


# ---- the device ----

F = TypeVar("F", bound=Callable[..., Any])


def speaks(method: F) -> F:
    """What goes wrong becomes a DevFailed: our code is its reason, message and hint its description."""
    @functools.wraps(method)
    def speaking(self: Any, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except sluice.Error as why:
            where = f"{why.where}: " if why.where else ""
            hint = f"\n{why.hint}" if why.hint else ""
            name = method.__name__ if method.__name__.isidentifier() else "read"
            tango.Except.throw_exception(why.code, f"{where}{why.message}{hint}", f"LimaCCDs.{name}")
    return speaking  # type: ignore[return-value]


def read_only(dtype: Any, get: Callable[[Any], Any], doc: str, **more: Any) -> Any:
    """An attribute."""
    return attribute(dtype=dtype, fget=speaks(get), doc=doc, **more)


def read_write(dtype: Any, get: Callable[[Any], Any], put: Callable[[Any, Any], None], doc: str, **more: Any) -> Any:
    """An attribute that can be set."""
    return attribute(dtype=dtype, fget=speaks(get), doc=doc, **more).write(speaks(put))


def named(function: F, name: str) -> F:
    """For messages: which attribute it was."""
    function.__name__ = f"write_{name}"
    return function


def setting(name: str, attribute_name: str, dtype: Any, doc: str, check: Optional[Callable[[Any], Any]] = None) -> Any:
    """An attribute that is a member of the settings."""
    def get(self: Any) -> Any:
        return getattr(self.settings, name)

    def put(self: Any, value: Any) -> None:
        setattr(self.settings, name, check(value) if check else value)
    return read_write(dtype, get, named(put, attribute_name), doc)


def one_of(name: str) -> Callable[[str], str]:
    """A check of a word against the list of what is possible."""
    def check(value: str) -> str:
        word = value.upper()
        if word not in VALUES[name]:
            raise sluice.Error("request", f"{name}: '{value}' is not possible", hint=f"possible: {', '.join(VALUES[name])}")
        return word
    return check


def fixed(name: str, dtype: Any, value: Any, doc: str, **more: Any) -> Any:
    """An attribute of Lima that has one value here."""
    def put(_: Any, wanted: Any) -> None:
        same = wanted.upper() == value if isinstance(value, str) else list(wanted) == list(value) if isinstance(value, list) else wanted == value
        if not same:
            raise sluice.Error("unsupported", f"{name}: only {value} is possible", hint="the experiment file describes the image")
    return read_write(dtype, lambda self: value, named(put, name), doc, **more)


def at_least(least: float, name: str) -> Callable[[Any], Any]:
    """A check of a number."""
    def check(value: Any) -> Any:
        if not value >= least:
            raise sluice.Error("request", f"{name}: {value} is less than {least:g}")
        return value
    return check


def index_format(value: str) -> str:
    """A check of the format of a file's number."""
    try:
        if value % 1 != value % 2:
            return value
    except (TypeError, ValueError):
        pass
    raise sluice.Error("request", f"saving_index_format: '{value}' is no format of a number", hint="as in %04d")


class LimaCCDs(Device):
    """A Sluice session as a Lima camera."""

    Session = device_property(dtype=str, default_value="", doc="name of the session; empty: the name of this server's instance")
    Experiment = device_property(dtype=str, default_value="", doc="experiment file: a session that is not there is started with it")
    Root = device_property(dtype=str, default_value="runs", doc="of run folders, for a session that is started here")
    Share = device_property(dtype=str, default_value="", doc="URL of the share with the images; empty: that of the run's sink share")
    Array = device_property(dtype=str, default_value="", doc="which array of the share is the image; empty: image, raw, or the first")
    SavingSink = device_property(dtype=str, default_value="nexus", doc="the sink that the saving_ attributes set")
    ImageSizes = device_property(dtype=(int,), default_value=[], doc="signed, bytes, width, height: image_sizes before the first run")
    PixelSize = device_property(dtype=(float,), default_value=[0.0, 0.0], doc="camera_pixelsize in metres, x and y")
    PrepareTimeout = device_property(dtype=float, default_value=30.0, doc="seconds for prepareAcq")

    EVENTS = ("acq_status", "last_image_acquired", "last_base_image_ready", "last_image_ready", "last_image_saved", "last_counter_ready",
              "ready_for_next_acq", "video_last_image_counter")

    def init_device(self) -> None:
        """The session need not be there yet."""
        super().init_device()
        self.settings, self.tag, self.last_tag = Settings(), NO_TAG, NO_TAG
        self.applied: Dict[str, Any] = {}
        self.preparing, self.push_images, self.event_rate, self.video = False, False, 10.0, False
        self.header: List[str] = []
        self.pushed: Dict[str, Any] = {}
        self.detector_name = ""
        name = self.Session or tango.Util.instance().get_ds_inst_name()
        self.camera = Camera(name, self.Share, self.Array)
        for name in (*self.EVENTS, "last_image"):
            self.set_change_event(name, True, False)
        self.not_started = ""
        try:
            self.start_session()
        except (sluice.Error, OSError) as why:
            self.not_started = str(why)
        self.closing = threading.Event()
        self.watcher = threading.Thread(target=self.watch, name="watcher", daemon=True)
        self.watcher.start()

    def delete_device(self) -> None:
        """The session goes on."""
        self.closing.set()
        self.watcher.join(5)
        self.camera.close()

    def start_session(self) -> None:
        """A process of its own, which outlives this server. One of that name that lives is used as it is."""
        name = self.camera.name
        if not self.Experiment or any(info.name == name and info.alive for info in sluice.sessions()):
            return
        os.makedirs(self.Root, exist_ok=True)
        with open(os.path.join(self.Root, f"{name}.log"), "ab") as log:
            started = subprocess.Popen([sluice.program_path(), "session", self.Experiment, "--root", self.Root, "--name", name], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, start_new_session=True)
        end = time.monotonic() + 30
        while not any(info.name == name and info.alive for info in sluice.sessions()):
            if started.poll() is not None or time.monotonic() > end:
                raise sluice.Error("program", f"the session '{name}' of {self.Experiment} did not begin", hint=f"{self.Root}/{name}.log says why")
            time.sleep(0.02)

    # ---- events ----

    def watch(self) -> None:
        """Look at the session a few times a second; attributes that differ are pushed."""
        with tango.EnsureOmniThread():
            while not self.closing.wait(1 / self.event_rate):
                try:
                    self.camera.follow()
                except sluice.Error:
                    pass  # acq_status says it
                try:
                    # Before push() takes any other lock: commands have this one, and push events, too.
                    with tango.AutoTangoMonitor(self):
                        self.push_changes()
                except tango.DevFailed as why:  # a command takes long, or the server is being shut down
                    self.debug_stream(f"events: {why.args[0].desc}")

    def push_changes(self) -> None:
        """Events for what differs from the last ones."""
        for name in self.EVENTS:
            try:
                value = getattr(self, f"now_{name}")()
            except sluice.Error:
                continue
            if self.push(name, value) and name == "last_image_ready" and value >= 0 and self.push_images:
                self.push_image()

    def push(self, name: str, value: Any) -> bool:
        """An event, if the value differs from that of the last one. The caller has the device's monitor."""
        if value == self.pushed.get(name):
            return False
        self.pushed[name] = value
        self.push_change_event(name, value)
        return True

    def push_image(self) -> None:
        """Only where a client has asked for it."""
        try:
            image, number = self.camera.image(-1)
        except sluice.Error:
            return
        self.push_change_event("last_image", *data_array(image, number, self.last_tag))

    # ---- what is now ----

    def now_acq_status(self) -> str:
        """Lima's word for the state of the session."""
        if self.preparing:
            return CONFIGURATION
        try:
            return ACQ_STATUS.get(self.camera.status()["state"], FAULT)
        except sluice.Error:
            return FAULT

    def why(self) -> str:
        """What is wrong, in words; empty: nothing."""
        try:
            error = self.camera.status()["error"]
        except sluice.Error as why:
            return self.not_started or str(why)
        return f"{error['message']}{' (' + error['hint'] + ')' if error['hint'] else ''}" if error else ""

    def now_last_image_acquired(self) -> int:
        """The highest sequence of which something has arrived."""
        return min(LONG_MAX, max((source["reached"] for source in self.camera.status()["sources"]["modules"]), default=0) - 1)

    def now_last_image_ready(self) -> int:
        """The last frame that went through the stages and sinks."""
        return min(LONG_MAX, int(self.camera.status()["frames"]["settled"]) - 1)

    now_last_base_image_ready = now_last_counter_ready = now_last_image_ready

    def now_last_image_saved(self) -> int:
        """The last frame below which all is safe on disk."""
        return min(LONG_MAX, int(self.camera.status()["watermark"]) - 1)

    def now_ready_for_next_acq(self) -> bool:
        """No run is under way."""
        return self.now_acq_status() == READY

    def now_video_last_image_counter(self) -> int:
        """-1: no client looks at the video."""
        return self.now_last_image_ready() if self.video else -1

    def asked(self, name: str) -> Any:
        """What the experiment asks of the detector."""
        return (self.camera.status()["detector"] or {}).get(name)

    def exposure(self) -> float:
        """As a client has set it; as the metadata say; or the time from frame to frame."""
        if self.settings.exposure is not None:
            return self.settings.exposure
        rate = self.asked("rate_Hz") or 0.0
        return float(self.camera.status()["metadata"].get("exposure_s") or (1 / rate if rate else 0.0))

    def latency(self) -> float:
        """The rest of the time from frame to frame."""
        if self.settings.latency is not None:
            return self.settings.latency
        rate = self.asked("rate_Hz") or 0.0
        return max(0.0, 1 / rate - self.exposure()) if rate else 0.0

    def sizes(self) -> List[int]:
        """Signed, bytes of a pixel, width, height."""
        try:
            self.camera.follow()
        except sluice.Error:
            pass
        if self.camera.dtype is not None:
            return [pixel_type(self.camera.dtype)[2], self.camera.dtype.itemsize, self.camera.shape[1], self.camera.shape[0]]
        if len(self.ImageSizes) == 4:
            return list(self.ImageSizes)
        raise sluice.Error("absent", "the image's size is not known before the first prepareAcq", hint="set the device's property ImageSizes; the experiment "
                           "needs the sink share")

    def type_name(self) -> str:
        """Bpp16S, for instance."""
        signed, size = self.sizes()[:2]
        if self.camera.dtype is not None:
            return pixel_type(self.camera.dtype)[0]
        return f"Bpp{8 * size}{'S' if signed else ''}"

    def statistics(self) -> List[float]:
        """Bytes a second to the file, compression ratio, 0 (not measured), bytes a second that come in."""
        status = self.camera.status()
        figures = next((addon["figures"] for addon in status["addons"] if addon["name"] == self.SavingSink), {})
        begun, ended = status["started_unix_ns"], status["ended_unix_ns"] or status["taken_unix_ns"]
        seconds = max(1e-3, (ended - begun) * 1e-9) if begun else 1.0
        stored = float(figures.get("bytes_stored", 0))
        return [stored / seconds, figures.get("bytes", 0) / stored if stored else 0.0, 0.0, float((status["rates"] or {}).get("bytes_per_s", 0.0))]

    def set_exposure(self, value: float) -> None:
        """Seconds; with the latency the time from frame to frame."""
        latency = self.latency()
        self.settings.exposure, self.settings.latency = at_least(0, "acq_expo_time")(value), latency if self.settings.latency is not None else 0.0

    def set_latency(self, value: float) -> None:
        """Seconds."""
        exposure = self.exposure()
        self.settings.exposure, self.settings.latency = exposure, at_least(0, "latency_time")(value)

    def set_event_rate(self, value: float) -> None:
        """Events a second at most."""
        if not 0.1 <= value <= 25:
            raise sluice.Error("request", f"image_events_max_rate: {value:g} is not between 0.1 and 25")
        self.event_rate = value

    def set_push_images(self, value: bool) -> None:
        """Whether last_image is pushed."""
        self.push_images = value

    def set_video_active(self, value: bool) -> None:
        """Whether its counter is pushed."""
        self.video = value

    def set_tag(self, value: int) -> None:
        """Of the next acquisition."""
        self.tag = value

    def set_detector_name(self, value: str) -> None:
        """For clients alone."""
        self.detector_name = value

    def set_instrument(self, value: str) -> None:
        """A key of the metadata."""
        self.camera.control.set_metadata(instrument=value or None, keep=True)

    def set_header(self, lines: Sequence[str]) -> None:
        """KEY=VALUE lines become metadata, for this run and later ones."""
        pairs = [line.partition("=") for line in lines]
        bad = [line for line, (key, equals, _) in zip(lines, pairs) if not key.strip() or not equals]
        if bad:
            raise sluice.Error("request", f"saving_common_header: '{bad[0]}' is not KEY=VALUE")
        if pairs:
            self.camera.control.set_metadata(keep=True, **{key.strip(): value.strip() for key, _, value in pairs})
        self.header = list(lines)

    def dev_state(self) -> Any:
        """TANGO's word for it."""
        return {READY: tango.DevState.STANDBY, RUNNING: tango.DevState.RUNNING, CONFIGURATION: tango.DevState.INIT}.get(self.now_acq_status(), tango.DevState.FAULT)

    def dev_status(self) -> str:
        """The state in words."""
        why = self.why()
        return f"The session '{self.camera.name}' is {self.now_acq_status()}{': ' + why if why else ''}"

    # ---- attributes ----

    lima_version = read_only(str, lambda self: f"Sluice {sluice.__version__}", "version of Sluice")
    lima_type = read_only(str, lambda self: "Sluice", "always Sluice")
    camera_type = read_only(str, lambda self: "SLUICE", "always SLUICE")
    camera_model = read_only(str, lambda self: str(self.asked("kind") or ""), "kind of the experiment's detector")
    camera_pixelsize = read_only((float,), lambda self: list(self.PixelSize), "m", max_dim_x=2)
    user_detector_name = read_write(str, lambda self: self.detector_name, set_detector_name, "a name of the user's")
    user_instrument_name = read_write(str, lambda self: str(self.camera.status()["metadata"].get("instrument", "")), set_instrument, "metadata: instrument")
    acq_status = read_only(str, now_acq_status, "Ready, Running, Fault or Configuration")
    acq_status_fault_error = read_only(str, why, "what is wrong")
    acq_tag = read_write("DevULong64", lambda self: self.tag, set_tag, "number of the user's for an acquisition")
    acq_mode = fixed("acq_mode", str, "SINGLE", "always SINGLE")
    acq_nb_frames = read_write("DevLong", lambda self: self.settings.frames if self.settings.frames is not None else self.asked("frames") or 0,
                               named(lambda self, value: setattr(self.settings, "frames", int(at_least(0, "acq_nb_frames")(value))), "acq_nb_frames"),
                               "frames of the next acquisition; 0: until stopAcq")
    acq_expo_time = read_write(float, exposure, set_exposure, "s")
    latency_time = read_write(float, latency, set_latency, "s")
    valid_ranges = read_only((float,), lambda self: [0.0, 1e6, 0.0, 1e6], "s", max_dim_x=4)
    acq_trigger_mode = fixed("acq_trigger_mode", str, "INTERNAL_TRIGGER", "front ends are triggered as the experiment says")
    image_type = read_only(str, type_name, "Bpp16S, for instance")
    image_width = read_only("DevULong", lambda self: self.sizes()[2], "pixels")
    image_height = read_only("DevULong", lambda self: self.sizes()[3], "pixels")
    image_sizes = read_only(("DevULong",), sizes, "signed, bytes of a pixel, width, height", max_dim_x=4)
    image_max_dim = read_only(("DevULong",), lambda self: self.sizes()[2:], "width, height", max_dim_x=2)
    image_roi = read_write(("DevLong",), lambda self: [0, 0, *self.sizes()[2:]],
                           named(lambda self, value: self.refuse_roi(value), "image_roi"), "all of the image", max_dim_x=4)
    image_bin = fixed("image_bin", ("DevULong",), [1, 1], "no binning", max_dim_x=2)
    image_flip = fixed("image_flip", (bool,), [False, False], "no flip", max_dim_x=2)
    image_rotation = fixed("image_rotation", str, "NONE", "no rotation")
    last_image_acquired = read_only("DevLong", now_last_image_acquired, "-1: none")
    last_base_image_ready = read_only("DevLong", now_last_base_image_ready, "-1: none")
    last_image_ready = read_only("DevLong", now_last_image_ready, "-1: none")
    last_counter_ready = read_only("DevLong", now_last_counter_ready, "-1: none")
    last_image_saved = read_only("DevLong", now_last_image_saved, "-1: none; all images up to it are safe on disk")
    ready_for_next_image = read_only(bool, lambda self: self.now_acq_status() == RUNNING, "the run takes frames")
    ready_for_next_acq = read_only(bool, now_ready_for_next_acq, "no run is under way")
    image_events_push_data = read_write(bool, lambda self: self.push_images, set_push_images, "push last_image, too")
    image_events_max_rate = read_write("DevFloat", lambda self: self.event_rate, set_event_rate, "events a second at most")
    saving_mode = setting("mode", "saving_mode", str, "AUTO_FRAME: files as the saving_ attributes say; MANUAL: as the experiment says", one_of("saving_mode"))
    saving_directory = setting("directory", "saving_directory", str, "relative: in the folder of the run")
    saving_prefix = setting("prefix", "saving_prefix", str, "before the number")
    saving_suffix = setting("suffix", "saving_suffix", str, "behind it")
    saving_next_number = setting("number", "saving_next_number", "DevLong", "one more after each run", at_least(0, "saving_next_number"))
    saving_index_format = setting("index_format", "saving_index_format", str, "of the number", index_format)
    saving_format = setting("format", "saving_format", str, "HDF5 (not packed), HDF5BS (bitshuffle and LZ4), HDF5ZSTD", one_of("saving_format"))
    saving_overwrite_policy = setting("policy", "saving_overwrite_policy", str, "ABORT or OVERWRITE", one_of("saving_overwrite_policy"))
    saving_frame_per_file = setting("per_file", "saving_frame_per_file", "DevLong", "of each data file; 0: as the experiment says",
                                    at_least(0, "saving_frame_per_file"))
    saving_managed_mode = fixed("saving_managed_mode", str, "SOFTWARE", "always SOFTWARE")
    saving_common_header = read_write((str,), lambda self: self.header, set_header, "KEY=VALUE lines: metadata", max_dim_x=64)
    saving_statistics = read_only((float,), statistics, "bytes a second stored, ratio, 0, bytes a second that come in", max_dim_x=4)
    video_live = fixed("video_live", bool, False, "there is no video without an acquisition")
    video_active = read_write(bool, lambda self: self.video, set_video_active, "push video_last_image_counter")
    video_mode = fixed("video_mode", str, "Y16", "VIDEO_IMAGE says it of each image")
    video_last_image_counter = read_only("DevLong64", now_video_last_image_counter, "-1: video_active is false")
    buffer_max_number = read_only("DevLong", lambda self: self.camera.places(), "images that readImage can find: places of the share")
    shared_memory_active = fixed("shared_memory_active", bool, False, "the share is Sluice's own")
    plugin_list = read_only((str,), lambda self: [], "none", max_dim_x=256)
    plugin_type_list = read_only((str,), lambda self: [], "none", max_dim_x=256)

    @attribute(dtype="DevEncoded", doc="the newest image as VIDEO_IMAGE: made when it is read")
    @speaks
    def video_last_image(self) -> Tuple[str, bytes]:
        """The newest image for a viewer."""
        return video_image(*self.camera.image(-1))

    @attribute(dtype="DevEncoded", doc="the newest image as DATA_ARRAY: made when it is read")
    @speaks
    def last_image(self) -> Tuple[str, bytes]:
        """The newest image."""
        return data_array(*self.camera.image(-1), self.last_tag)

    def refuse_roi(self, value: Sequence[int]) -> None:
        """Lima has [0, 0, 0, 0] for all of the image."""
        if list(value) != [0, 0, 0, 0] and list(value) != [0, 0, *self.sizes()[2:]]:
            raise sluice.Error("unsupported", "image_roi: only all of the image is possible", hint="a transfer of the experiment can be a part of it")

    # ---- commands ----

    @command
    @speaks
    def prepareAcq(self) -> None:
        """Apply what was set, and arm: outputs, memory and link are open, and the sources have their plans."""
        control, wanted = self.camera.control, self.settings.overrides(self.SavingSink)
        self.preparing = True
        try:
            state = self.camera.status(fresh=True)["state"]
            if state == "armed" and wanted == self.applied:
                return
            if state == "armed":
                control.stop("prepareAcq", wait=self.PrepareTimeout)
            if wanted != self.applied or state == "fault":
                self.applied = {}
                control.configure(wanted)
                self.applied = wanted
            control.arm(wait=self.PrepareTimeout)
        finally:
            self.preparing = False
            self.camera.forget()
        self.last_tag = self.tag
        self.camera.follow()
        self.push_changes()  # counters are -1 now; a short run could hide that from the watcher

    @command
    @speaks
    def startAcq(self) -> None:
        """Let the sources send. Needs prepareAcq."""
        status = self.camera.status(fresh=True)
        if status["state"] != "armed":
            raise sluice.Error("state", f"startAcq: not possible while the session is {status['state']}", hint="prepareAcq first")
        self.camera.follow()
        try:
            self.camera.control.start(wait=self.PrepareTimeout)  # until it runs: before that acq_status would still be Ready
        finally:
            self.camera.forget()
        self.push("acq_status", RUNNING)  # also where the run is over by now
        if self.settings.mode == "AUTO_FRAME":
            self.settings.number += 1

    @command
    @speaks
    def stopAcq(self) -> None:
        """End the run: what was sent is processed and stored. Returns when that is done, or after 2 s: acq_status tells."""
        self.end(self.camera.control.stop, "stopAcq")

    @command
    @speaks
    def abortAcq(self) -> None:
        """As stopAcq, without waiting for the sources."""
        self.end(self.camera.control.abort, "abortAcq")

    def end(self, call: Callable[..., str], reason: str) -> None:
        """A CORBA client waits for 3 s."""
        try:
            call(reason, wait=2.0)
        except sluice.Timeout:
            pass
        finally:
            self.camera.forget()

    @command
    @speaks
    def reset(self) -> None:
        """Abort what is under way, forget what clients have set, and read the experiment again."""
        control = self.camera.control
        control.abort("reset", wait=self.PrepareTimeout)
        self.settings, self.applied = Settings(), {}
        control.configure()
        self.camera.forget()

    @command(dtype_in=str, dtype_out=(str,))
    def getAttrStringValueList(self, name: str) -> List[str]:
        """What an attribute can be set to."""
        return list(VALUES.get(name.lower(), ()) if name.lower() != "acq_trigger_mode" else ("INTERNAL_TRIGGER",))

    @command(dtype_in="DevLong", dtype_out="DevEncoded")
    @speaks
    def readImage(self, number: int) -> Tuple[str, bytes]:
        """The image of a frame; -1: the newest."""
        return data_array(*self.camera.image(number), self.last_tag)

    @command(dtype_in="DevLong", dtype_out="DevEncoded")
    @speaks
    def readLastImage(self, seen: int) -> Tuple[str, bytes]:
        """The newest image, if it is newer than this one."""
        image, number = self.camera.image(-1)
        if number <= seen:
            raise sluice.Error("empty", f"Frame(s) not available yet: the newest is {number}")
        return data_array(image, number, self.last_tag)

    @command(dtype_in=("DevLong64",), dtype_out="DevEncoded", doc_in="start, end[, step[, acq_tag]]")
    @speaks
    def readImageSeq(self, numbers: Sequence[int]) -> Tuple[str, bytes]:
        """Images from start to end - 1 as one stack."""
        if not 2 <= len(numbers) <= 4:
            raise sluice.Error("request", "readImageSeq: start, end[, step[, acq_tag]]")
        start, end, step, tag = (int(n) for n in (*numbers, *(1, NO_TAG)[len(numbers) - 2:]))
        if step != 1 or start < 0 or end <= start:
            raise sluice.Error("request", f"readImageSeq: from {start} to {end} in steps of {step}", hint="start is 0 or more, end is larger, step is 1")
        if tag != NO_TAG and tag != self.last_tag:
            raise sluice.Error("request", f"Acq. #{tag} is not available", hint=f"the last one has the tag {self.last_tag}")
        if end - start > max(1, self.camera.places()):
            raise sluice.Error("range", f"readImageSeq: {end - start} images; the share has {self.camera.places()} places")
        return data_array(np.stack([self.camera.image(n)[0] for n in range(start, end)]), start, self.last_tag)

    @command(dtype_in="DevLong", dtype_out="DevVarCharArray")
    @speaks
    def getImage(self, number: int) -> bytes:
        """The pixels alone."""
        return self.camera.image(number)[0].tobytes()

    @command
    @speaks
    def resetCommonHeader(self) -> None:
        """Remove the metadata of saving_common_header."""
        keys = {line.partition("=")[0].strip(): None for line in self.header}
        if keys:
            self.camera.control.set_metadata(keep=True, **keys)
        self.header = []

    @command(dtype_in=(str,))
    @speaks
    def setImageHeader(self, _: Sequence[str]) -> None:
        """Not possible: frames have records of their own."""
        raise sluice.Error("unsupported", "setImageHeader: a frame has no header of users", hint="saving_common_header is of the run")

    @command(dtype_in=str, dtype_out=str)
    def getPluginDeviceNameFromType(self, _: str) -> str:
        """There are no plug-in devices."""
        return ""


if __name__ == "__main__":
    LimaCCDs.run_server(args=sys.argv[1:])
