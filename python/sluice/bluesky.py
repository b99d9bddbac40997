"""A session as a detector of Bluesky: one armed session takes a scan, and each point knows its frames.

    detector = sluice.bluesky.Detector(sluice.attach("scan"), frames_per_point=5, positions={"angle_deg": lambda: motor.position})
    RE(bluesky.plans.scan([detector], motor, 0, 30, 31))

Plain Python: neither bluesky nor ophyd-async is imported. The class has the methods of bluesky.protocols: Readable, Configurable, Stageable,
Triggerable, Preparable, Flyable, Collectable, WritesStreamAssets, Pausable, Stoppable, HasHints. docs/how-to/bluesky.md tells how to use it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import pathlib
import threading
import time
import uuid
from typing import Any, AsyncIterator, Callable, Dict, Generator, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import Error, unless_in_time
from ._session import Control

TROUBLE = ("incomplete", "overrun", "unproven", "refused", "unwritten", "lost")
Reading = Dict[str, Any]
Doc = Tuple[str, Dict[str, Any]]


class Status:
    """What a call that takes time returns: done or not, with callbacks, for the RunEngine; `await` works, too, and wait()."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._why: Optional[BaseException] = None
        self._callbacks: List[Callable[["Status"], None]] = []
        self._watchers: List[Callable[..., None]] = []
        self._begun = time.monotonic()

    def add_callback(self, callback: Callable[["Status"], None]) -> None:
        """Call it once this is done, at once if it is; from any thread."""
        with self._lock:
            if not self._over.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def watch(self, watcher: Callable[..., None]) -> None:
        """Call it as the work goes on: name, current, initial, target, unit, precision, time_elapsed."""
        self._watchers.append(watcher)

    def exception(self, timeout: Optional[float] = 0.0) -> Optional[BaseException]:
        """What went wrong; None: nothing, or it is not done within `timeout`."""
        self._over.wait(timeout)
        return self._why

    @property
    def done(self) -> bool:
        """Whether it is."""
        return self._over.is_set()

    @property
    def success(self) -> bool:
        """Done, and nothing went wrong."""
        return self.done and self._why is None

    def wait(self, timeout: Optional[float] = None) -> None:
        """Until it is done. Raises what went wrong."""
        if not self._over.wait(timeout):
            raise unless_in_time(timeout, f"{self.name} is not done")
        if self._why:
            raise self._why

    def __await__(self) -> Generator[Any, None, None]:
        loop = asyncio.get_running_loop()
        over: "asyncio.Future[None]" = loop.create_future()

        def tell() -> None:
            if not over.done():
                over.set_result(None)
        def wake(_: "Status") -> None:
            loop.call_soon_threadsafe(tell)
        self.add_callback(wake)
        yield from over.__await__()
        if self._why:
            raise self._why

    def _finish(self, why: Optional[BaseException]) -> None:
        with self._lock:
            self._why = why
            self._over.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def _tell(self, current: int, initial: int, target: int) -> None:
        for watcher in self._watchers:
            watcher(name=self.name, current=current, initial=initial, target=target, unit="frames", precision=0, fraction=None,
                    time_elapsed=time.monotonic() - self._begun, time_remaining=None)

    def __repr__(self) -> str:
        state = f"failed: {self._why!r}" if self._why else "done" if self.done else "pending"
        return f"<sluice.bluesky.Status {self.name}: {state}>"


class Detector:
    """A session that takes a scan as one run.

    session: of `sluice.attach()` or `sluice.Session(..., root=...)`.
    name: prefix of the keys in events.
    frames_per_point: that a point has, exactly.
    between: what the front end does between points. "pause": it gets credits for the frames of a point and for no more, so that nothing is
        recorded while motors move. "run": it goes on, for sources that cannot wait.
    guard_frames: with "run", how many of the next frames are left out, since they may have been exposed before trigger(), and be on their way;
        where the ring is nearly full, as many more as it has slots.
    positions: functions that say where the motors are, by name: they are asked when a point has its frames, and come into the run's file.
    settings: overrides of the experiment for the scan, {"ring.slots": 8}. A step scan sets detector.frames to 0, without an end, by itself.
    arm: "stage", for step scans; "prepare", for fly scans whose plan says how many frames there are.
    timeout: seconds for the frames of a point, and for each step of arming and ending.
    image_shape, image_type: of an image, for fly scans; not needed where the run has a share or the file says it.
    """

    def __init__(self, session: Control, name: str = "sluice", *, frames_per_point: int = 1, between: str = "pause", guard_frames: int = 1,
                 positions: Optional[Mapping[str, Callable[[], float]]] = None, settings: Optional[Mapping[str, Any]] = None, arm: str = "stage",
                 timeout: float = 60.0, image_shape: Optional[Sequence[int]] = None, image_type: str = "") -> None:
        if frames_per_point < 1:
            raise ValueError("frames_per_point: at least 1")
        if between not in ("pause", "run") or arm not in ("stage", "prepare"):
            raise ValueError('between: "pause" or "run"; arm: "stage" or "prepare"')
        self.session, self.frames_per_point, self.between, self.timeout = session, frames_per_point, between, timeout
        self._name, self._positions, self._settings = name, dict(positions or {}), dict(settings or {})
        self._image_shape, self._image_type = list(image_shape or ()), image_type
        self.guard_frames = guard_frames
        self._work = concurrent.futures.ThreadPoolExecutor(1, f"{name} of bluesky")
        self._stopped = threading.Event()
        self._configured: Optional[Dict[str, Any]] = None
        self._staged, self._target, self._flies = False, 0, arm == "prepare"
        self._points: List[Dict[str, Any]] = []
        self._table: Optional[pathlib.Path] = None
        self._lost_before = 0
        self._resource: Dict[str, Any] = {}
        self._sent = 0

    # ---- what it is ----

    @property
    def name(self) -> str:
        """Prefix of the keys in events."""
        return self._name

    @property
    def parent(self) -> None:
        """It is part of no other device."""
        return None

    @property
    def hints(self) -> Dict[str, Any]:
        """What to plot: module-frames that were lost."""
        return {"fields": [] if self._flies else [f"{self._name}_lost"]}

    @property
    def points(self) -> List[Dict[str, Any]]:
        """The points of this scan so far."""
        return list(self._points)

    # ---- configuration ----

    def _facts(self) -> Dict[str, Tuple[Any, str]]:
        status = self.session.status().as_dict()
        detector = status["detector"] or {}
        return {"experiment": (status["experiment"] or "", "string"), "run": (status["run"] or 0, "integer"), "folder": (status["folder"] or "", "string"),
                "detector": (detector.get("kind", ""), "string"), "frame_rate_Hz": (float(detector.get("rate_Hz", 0.0)), "number"),
                "frames_per_point": (self.frames_per_point, "integer"), "between": (self.between, "string")}

    async def read_configuration(self) -> Dict[str, Reading]:
        """What does not change within a scan."""
        now = time.time()
        return {f"{self._name}_{key}": {"value": value, "timestamp": now} for key, (value, _) in (await self._in_thread(self._facts)).items()}

    async def describe_configuration(self) -> Dict[str, Dict[str, Any]]:
        """Types of these."""
        return {f"{self._name}_{key}": self._key(dtype) for key, (_, dtype) in (await self._in_thread(self._facts)).items()}

    def _key(self, dtype: str, **more: Any) -> Dict[str, Any]:
        return {"source": f"sluice:{self.session.name}", "dtype": dtype, "shape": [], **more}

    # ---- events ----

    async def read(self) -> Dict[str, Reading]:
        """Of the last point: its number, its first frame and how many it has, and how many module-frames were lost or damaged meanwhile.
        Nothing in a fly scan: its frames are in stream documents."""
        if self._flies:
            return {}
        if not self._points:
            raise Error("state", f"{self._name} has no point yet", hint="trigger it first")
        point = self._points[-1]
        return {f"{self._name}_{key}": {"value": point[key], "timestamp": point["time"]} for key in ("point", "first", "frames", "lost")}

    async def describe(self) -> Dict[str, Dict[str, Any]]:
        """Types of these."""
        return {f"{self._name}_{key}": self._key("integer", dtype_numpy="<i8") for key in ("point", "first", "frames", "lost") if not self._flies}

    # ---- staging ----

    def stage(self) -> Status:
        """Ready for a scan: arms, unless prepare() does. A scan is one run."""
        return self._begin("stage", self._stage)

    def _stage(self, _: Status) -> None:
        if self._staged:
            raise Error("state", f"{self._name} is staged already", hint="unstage it first")
        state = self.session.state
        if state in ("running", "paused", "stopping"):
            raise Error("state", f"the session '{self.session.name}' is {state}", hint="a run is under way: stop it, or wait for its end")
        self._stopped.clear()
        self._points, self._target, self._sent, self._resource, self._table = [], 0, 0, {}, None
        self._staged = True
        if not self._flies:
            self._arm({"detector.frames": 0, **self._settings})

    def _arm(self, settings: Dict[str, Any]) -> None:
        state = self.session.state
        if state == "armed" and settings == self._configured:
            return
        if state == "armed":
            self.session.stop("rearm", wait=self.timeout)
        if settings != self._configured or state == "fault":
            self._configured = None
            self.session.configure(settings)
            self._configured = settings
        self.session.arm(wait=self.timeout)

    def unstage(self) -> Status:
        """End the run: what was sent is processed and stored, and its file is closed."""
        return self._begin("unstage", self._unstage)

    def _unstage(self, _: Status) -> None:
        self._staged = False
        if self.session.state in ("armed", "running", "paused", "stopping"):
            self.session.stop("unstage", wait=self.timeout)

    # ---- step scans ----

    def trigger(self) -> Status:
        """Take the frames of one point."""
        return self._begin("trigger", self._trigger)

    def _trigger(self, told: Status) -> None:
        if not self._staged:
            raise Error("state", f"{self._name} is not staged", hint="stage it first")
        if self._flies:
            raise Error("state", f"{self._name} is of fly scans", hint='for a step scan: Detector(..., arm="stage")')
        if self.between == "pause":
            first = self._let_send()
            status = self._until_paused(first + self.frames_per_point, told, first)
        else:
            first = self._let_run()
            status = self._until(first + self.frames_per_point, told, first)
        self._note(first, status)

    def _let_send(self) -> int:
        """Credits for the frames of the point, and no more. The sequence with which it begins."""
        status = self.session.status().as_dict()
        if status["state"] == "armed":
            self.session.start(frames=self.frames_per_point)
            self._begin_table()
            return 0
        if status["state"] not in ("running", "paused"):
            self._fail(status)
        if status["state"] == "running" or not status["drained"]:
            self.session.pause(wait=self.timeout)  # another client let it run: until all that was sent is settled
            status = self.session.status().as_dict()
        self.session.resume(frames=self.frames_per_point)
        return int(status["frames"]["settled"])

    def _until_paused(self, frames: int, told: Status, first: int) -> Dict[str, Any]:
        """Wait until the frames of the point are settled; the status then."""
        end = time.monotonic() + self.timeout
        while True:
            try:
                status = self.session.request("wait", states=["paused"], timeout_ms=100)["status"]
            except Error as why:
                if why.code != "timeout":
                    raise
                status = self.session.status().as_dict()
            settled = int(status["frames"]["settled"])
            told._tell(min(settled, frames), first, frames)  # pylint: disable=protected-access
            if settled >= frames:
                return dict(status)
            if self._stopped.is_set() or status["state"] not in ("armed", "running"):
                self._fail(status)
            if time.monotonic() > end:
                raise unless_in_time(self.timeout, f"{self._name}: {frames - settled} frames of the point did not come")

    def _let_run(self) -> int:
        """The sequence with which the point begins, of a run that goes on."""
        status = self.session.status().as_dict()
        if status["state"] == "armed":
            self.session.start(wait=self.timeout)
            self._begin_table()
            return 0
        if status["state"] not in ("running", "paused"):
            self._fail(status)
        slots = status["gauges"]["slots"]
        behind = int(slots["of"]) if slots["of"] and 4 * slots["now"] > 3 * slots["of"] else 0  # then frames wait in the front end, too
        return max(int(source["reached"]) for source in status["sources"]["modules"]) + self.guard_frames + behind

    def _until(self, frames: int, told: Status, first: int) -> Dict[str, Any]:
        """Wait until so many frames are settled; the status then."""
        end, initial = time.monotonic() + self.timeout, first
        while True:
            status = self.session.status().as_dict()
            settled = int(status["frames"]["settled"])
            told._tell(min(settled, frames), initial, frames)  # pylint: disable=protected-access
            if settled >= frames:
                return status
            if self._stopped.is_set() or status["state"] not in ("running", "paused"):
                self._fail(status)
            if time.monotonic() > end:
                raise unless_in_time(self.timeout, f"{self._name}: {frames - settled} frames of the point did not come")
            rate = (status["detector"] or {}).get("rate_Hz") or 0.0
            time.sleep(min(0.05, max(0.002, 0.5 * (frames - settled) / rate)) if rate > 0 else 0.005)

    def _fail(self, status: Mapping[str, Any]) -> None:
        why = status.get("error") or {}
        if self._stopped.is_set():
            raise Error("stopped", f"{self._name} was stopped")
        raise Error(why.get("code") or "state", why.get("message") or f"the session '{self.session.name}' is {status['state']}: the scan's run is over"
                    f"{' (' + status['early'] + ')' if status.get('early') else ''}", hint=why.get("hint") or "")

    def _note(self, first: int, status: Mapping[str, Any]) -> None:
        """The point into the run, its table and the next event."""
        outcomes = status["ledger"]["total"]["outcomes"]
        lost = sum(int(outcomes.get(name, 0)) for name in TROUBLE)
        values = {name: float(ask()) for name, ask in self._positions.items()}
        number = self.session.add_point(first, self.frames_per_point, {name: value for name, value in values.items() if math.isfinite(value)})
        point = {"point": number, "first": first, "frames": self.frames_per_point, "lost": max(0, lost - self._lost_before), "time": time.time(), **values}
        self._lost_before = lost
        self._points.append(point)
        if self._table:
            with open(self._table, "a", encoding="ascii") as table:
                table.write(",".join(repr(point[key]) for key in self._columns()) + "\n")

    def _columns(self) -> List[str]:
        return ["point", "first", "frames", "time", *self._positions]

    def _begin_table(self) -> None:
        """points.csv in the run's folder has each point as soon as it is taken: the NeXus file has them when it is closed."""
        self._lost_before = 0
        folder = self.session.status().folder
        if not folder:
            return
        self._table = pathlib.Path(folder) / "points.csv"
        try:
            self._table.write_text(",".join(self._columns()) + "\n", encoding="ascii")
        except OSError as why:
            raise Error("output", f"{self._table}: {why.strerror}", hint="the table of points is written where the run's folder is", errno=why.errno or 0) from why

    # ---- fly scans ----

    def prepare(self, value: Any = None) -> Status:
        """A fly scan: how many frames it has. A number, a mapping of settings, or ophyd-async's TriggerInfo; None: as the experiment says."""
        return self._begin("prepare", lambda _: self._prepare(value))

    def _prepare(self, value: Any) -> None:
        if not self._staged:
            raise Error("state", f"{self._name} is not staged", hint="stage it first")
        if not self._flies:
            raise Error("state", f"{self._name} is armed by stage()", hint='for a fly scan: Detector(..., arm="prepare")')
        self._arm({**self._settings, **_frames_of(value)})

    def kickoff(self) -> Status:
        """Let the sources send. Done once they do."""
        return self._begin("kickoff", self._kickoff)

    def _kickoff(self, _: Status) -> None:
        if self.session.state != "armed":
            raise Error("state", f"the session '{self.session.name}' is {self.session.state}", hint="stage and prepare first")
        self.session.start(wait=self.timeout)
        self._target = int(self.session.status().frames.expected or 0)

    def complete(self) -> Status:
        """Done once all frames are there and the file is closed; a run without an end is stopped now."""
        return self._begin("complete", self._complete)

    def _complete(self, told: Status) -> None:
        if self._target == 0:
            self.session.stop("complete", wait=self.timeout)
        last, end = -1, time.monotonic() + self.timeout
        while True:
            status = self.session.status().as_dict()
            settled = int(status["frames"]["settled"])
            told._tell(settled, 0, self._target)  # pylint: disable=protected-access
            if status["state"] == "ended":
                break
            if status["state"] == "fault" or self._stopped.is_set():
                self._fail(status)
            if settled != last:
                last, end = settled, time.monotonic() + self.timeout
            if time.monotonic() > end:
                raise unless_in_time(self.timeout, f"{self._name}: no frame came")
            time.sleep(0.02)
        if self._target and settled < self._target:
            self._fail(status)

    # ---- files, as documents ----

    def _file(self) -> Optional[str]:
        return self.session.sinks().get("nexus")

    def _image(self) -> Tuple[List[int], str]:
        """Shape and type of an image: as was said; of the file."""
        path = self._file()
        if not self._image_shape and path and pathlib.Path(path).exists():
            try:
                from ._files import open as open_run  # pylint: disable=import-outside-toplevel
                with open_run(path) as run:
                    self._image_shape, self._image_type = list(run.images.shape[1:]), run.images.dtype.str
            except (Error, OSError, ImportError, KeyError):
                pass
        if not self._image_shape:
            raise Error("absent", f"{self._name}: the shape of an image is not known", hint="say it: image_shape and image_type of the Detector")
        return self._image_shape, self._image_type or "<u2"

    async def describe_collect(self) -> Dict[str, Dict[str, Any]]:
        """The images of a fly scan."""
        shape, dtype = await self._in_thread(self._image)
        return {f"{self._name}_image": {"source": f"sluice:{self.session.name}", "dtype": "array", "shape": [1, *shape], "dtype_numpy": dtype, "external": "STREAM:"}}

    def _written(self) -> int:
        for addon in self.session.status().as_dict()["addons"]:
            if addon["name"] == "nexus":
                return int(addon["figures"].get("frames", 0))
        return 0

    async def get_index(self) -> int:
        """How many images the file has."""
        return int(await self._in_thread(self._written))

    async def collect_asset_docs(self, index: Optional[int] = None) -> AsyncIterator[Doc]:
        """Of a fly scan: where the images are, and which ones are new. A step scan has the numbers of its frames in its events."""
        if not self._flies or not await self._in_thread(self._file):
            return
        index = await self.get_index() if index is None else index
        if index <= self._sent:
            return
        if not self._resource:
            path = await self._in_thread(self._file)
            shape, _ = await self._in_thread(self._image)
            self._resource = {"uid": str(uuid.uuid4()), "data_key": f"{self._name}_image", "mimetype": "application/x-hdf5",
                              "uri": f"file://localhost{pathlib.Path(str(path)).absolute()}",
                              "parameters": {"dataset": "/entry/data/data", "swmr": False, "multiplier": 1, "chunk_shape": [1, *shape]}}
            yield "stream_resource", dict(self._resource)
        start, self._sent = self._sent, index
        yield "stream_datum", {"uid": f"{self._resource['uid']}/{start}", "stream_resource": self._resource["uid"], "descriptor": "",
                               "indices": {"start": start, "stop": index}, "seq_nums": {"start": 0, "stop": 0}}

    # ---- when the RunEngine pauses or stops ----

    async def pause(self) -> None:
        """No credits for the front end; a run that cannot wait goes on."""
        await self._in_thread(lambda: self._if_running(self.session.pause))

    async def resume(self) -> None:
        """Nothing in a step scan: the next point does it. A fly scan goes on."""
        if self._flies:
            await self._in_thread(lambda: self._if_running(self.session.resume))

    def _if_running(self, call: Callable[[], Any]) -> None:
        if self.session.state in ("running", "paused"):
            try:
                call()
            except Error as why:
                if why.code != "state":
                    raise

    async def stop(self, success: bool = True) -> None:
        """End the run. A point that is being taken fails."""
        self._stopped.set()
        await self._in_thread(lambda: (self.session.stop if success else self.session.abort)("stop"))

    # ---- threads ----

    def _begin(self, name: str, work: Callable[[Status], None]) -> Status:
        """One call after the other, in a thread of the device: the RunEngine's loop never waits for a socket."""
        status = Status(f"{self._name}.{name}")

        def run() -> None:
            try:
                work(status)
            except BaseException as why:  # pylint: disable=broad-exception-caught
                status._finish(why)  # pylint: disable=protected-access
            else:
                status._finish(None)  # pylint: disable=protected-access
        self._work.submit(run)
        return status

    @staticmethod
    async def _in_thread(work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, work)

    def close(self) -> None:
        """End the device's thread. The session stays."""
        self._work.shutdown(wait=True)

    def __repr__(self) -> str:
        return f"<sluice.bluesky.Detector {self._name} of session {self.session.name}>"


def _frames_of(value: Any) -> Dict[str, Union[int, Any]]:
    """Settings for a fly scan."""
    if value is None:
        return {}
    if isinstance(value, int):
        return {"detector.frames": value}
    if isinstance(value, Mapping):
        return dict(value)
    total = getattr(value, "total_number_of_exposures", None)
    if total is None:
        raise TypeError("prepare: a number of frames, a mapping of settings, or a TriggerInfo")
    return {"detector.frames": int(total)}
