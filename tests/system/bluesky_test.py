#!/usr/bin/python3
"""bluesky_test.py - sluice.bluesky.Detector with a stand-in of Bluesky's RunEngine: its methods are those of bluesky.protocols, a scan is one run, each
point has its frames in the run's file, and what goes wrong reaches the plan."""
# normal build only

import asyncio
import csv
import inspect
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import threading
import time
import typing

from harness import ROOT, RUN_DIR, SLUICE, case, check, die_with_parent, equal, experiment, main, wait_for

sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "python"))
os.environ.update(SLUICE=SLUICE, SLUICE_CLIENT_LIBRARY=str(pathlib.Path(SLUICE).with_name("libsluice-client.so.0")), PYTHONPATH=str(ROOT / "python"),
                  PYTHONDONTWRITEBYTECODE="1")
try:
    import cffi  # noqa: F401  (the package needs it)
    import h5py
    import numpy as np
except ImportError as why:
    print(f"1..0 # SKIP {why.name} is missing (Debian: python3-cffi, python3-h5py, python3-numpy)")
    sys.exit(0)
RUN_DIR.mkdir(0o700, exist_ok=True)

import sluice  # noqa: E402  (found through the lines above)
import sluice.bluesky  # noqa: E402

SMALL = {"kind": "pattern", "modules": 2, "rows": 32, "columns": 64, "frame_rate_Hz": 500}


def session(folder, name="scan", **sections):
    """A session; it ends with the block."""
    path = experiment(folder, f"{name}.yaml", **{"detector": SMALL, "link": {"kind": "shm"}, "control": {"port": 0}, "ring": {"slots": 12},
                                                 "sinks": [{"nexus": {"path": "scan.nxs", "dataset": "raw"}}, "verify"], **sections})
    return sluice.Session(path, root=folder / "data", name=name)


# ---- what Bluesky wants ----

# The members of bluesky.protocols, as its documentation has them.
PROTOCOLS = {
    "HasName": ("name",), "HasParent": ("parent",), "HasHints": ("hints",), "Readable": ("name", "read", "describe"),
    "Configurable": ("read_configuration", "describe_configuration"), "Stageable": ("stage", "unstage"), "Triggerable": ("trigger",), "Preparable": ("prepare",),
    "Flyable": ("name", "kickoff", "complete"), "Collectable": ("name", "describe_collect"), "WritesStreamAssets": ("collect_asset_docs", "get_index"),
    "Pausable": ("pause", "resume"), "Stoppable": ("stop",),
}
STATUS = ("add_callback", "exception", "done", "success", "watch", "__await__")


class Motor:
    """A stand-in of a motor: it is there after a while."""

    name, parent = "angle", None

    def __init__(self):
        self.position, self.moves = 0.0, 0

    def set(self, value):
        status = sluice.bluesky.Status("angle.set")

        def move():
            time.sleep(0.002)
            self.position, self.moves = value, self.moves + 1
            status._finish(None)
        threading.Thread(target=move).start()
        return status

    def read(self):
        return {"angle": {"value": self.position, "timestamp": time.time()}}

    def describe(self):
        return {"angle": {"source": "test", "dtype": "number", "shape": []}}


async def maybe(value):
    """What a device's method gives: the RunEngine takes both kinds of function."""
    return await value if inspect.isawaitable(value) else value


class RunEngine:
    """What Bluesky's does with the messages of a plan, as far as these tests need it; it collects documents."""

    def __init__(self):
        self.documents, self.staged, self.times = [], [], []

    def __call__(self, plan):
        asyncio.run(self.run(plan))
        return self.documents

    async def run(self, plan):
        try:
            for message, *arguments in plan:
                await getattr(self, message)(*arguments)
        finally:
            for device in reversed(self.staged):
                await device.unstage()

    async def status(self, status):
        """By callback, as the RunEngine waits; from a thread of the device."""
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        status.add_callback(lambda _: loop.call_soon_threadsafe(over.set))
        await asyncio.wait_for(over.wait(), 90)
        if not status.success:
            raise status.exception()

    async def stage(self, device):
        await self.status(device.stage())
        self.staged.append(device)

    async def unstage(self, device):
        self.staged.remove(device)
        await self.status(device.unstage())

    async def set(self, motor, value):
        await self.status(motor.set(value))

    async def prepare(self, device, value):
        await self.status(device.prepare(value))

    async def trigger(self, device):
        begun = time.monotonic()
        await self.status(device.trigger())
        self.times.append(time.monotonic() - begun)

    async def read(self, *devices):
        """create, read and save: an event, and before the first one its descriptor."""
        readings, keys, configuration = {}, {}, {}
        for device in devices:
            readings.update(await maybe(device.read()))
            keys.update(await maybe(device.describe()))
            if hasattr(device, "read_configuration"):
                configuration[device.name] = await maybe(device.read_configuration())
                equal(sorted(configuration[device.name]), sorted(await maybe(device.describe_configuration())), "keys of the configuration")
        equal(sorted(readings), sorted(keys), "keys of an event, and of its descriptor")
        for key, described in keys.items():
            check(isinstance(readings[key]["value"], {"integer": int, "number": float, "string": str}[described["dtype"]]), f"type of {key}")
        if not any(kind == "descriptor" for kind, _ in self.documents):
            self.documents.append(("descriptor", {"data_keys": keys, "configuration": configuration}))
        self.documents.append(("event", {key: reading["value"] for key, reading in readings.items()}))
        for device in devices:
            await self.collect(device, None)

    async def collect(self, device, index):
        if hasattr(device, "collect_asset_docs"):
            async for document in device.collect_asset_docs(index):
                self.documents.append(document)

    async def fly(self, device):
        """kickoff, complete, and collect meanwhile."""
        self.documents.append(("descriptor", await maybe(device.describe_collect())))
        await self.status(device.kickoff())
        over, seen = device.complete(), []
        over.watch(lambda **told: seen.append((told["current"], told["target"])))
        while not over.done:
            await self.collect(device, await maybe(device.get_index()))
            await asyncio.sleep(0.05)
        await self.status(over)
        await self.collect(device, await maybe(device.get_index()))
        equal(seen[-1][0], seen[-1][1], f"progress: {seen[-3:]}")

    def of(self, kind):
        return [document for name, document in self.documents if name == kind]


def scan(detector, motor, angles):
    """bluesky.plans.scan in messages."""
    yield "stage", detector
    for angle in angles:
        yield "set", motor, angle
        yield "trigger", detector
        yield "read", detector, motor
    yield "unstage", detector


@case("the detector and its status have the methods of bluesky.protocols, and ophyd-async's ways: async readings, statuses that are awaited")
def _(folder):
    with session(folder) as control:
        detector = sluice.bluesky.Detector(control, "det")
        for protocol, members in PROTOCOLS.items():
            shape = typing.runtime_checkable(type(protocol, (typing.Protocol,), {"__module__": __name__, **{member: None for member in members}}))
            check(isinstance(detector, shape), f"it is not {protocol}: {members}")
        for name in ("read", "describe", "read_configuration", "describe_configuration", "get_index", "describe_collect", "pause", "resume", "stop"):
            check(inspect.iscoroutinefunction(getattr(detector, name)), f"{name} is not async")
        status = detector.stage()
        equal([name for name in STATUS if not hasattr(status, name)], [], "members of a status")

        async def wait():
            await status
            await status  # a second time is fine
        asyncio.run(wait())
        check(status.done and status.success and status.exception() is None, f"{status}")
        called = []
        status.add_callback(called.append)  # done by now: at once
        equal(called, [status], "callback of a status that is done")
        equal(detector.parent, None, "parent")
        detector.unstage().wait(60)
        equal(control.state, "ended", "state")
        detector.close()


# ---- step scans ----

def has_points(folder, run, events, frames, angles):
    """The run's file says which frames belong to which point, as the events and the table beside it do."""
    with h5py.File(folder / f"data/{run:06}/scan.nxs", "r") as file:
        table = file["entry/sluice/points"]
        first, count, angle, times = (table[key][:] for key in ("first_sequence", "frames", "values/angle_deg", "time"))
        stored = file["entry/data/sequence"][:] if "entry/data/sequence" in file else np.arange(len(file["entry/data/data"]))
    equal((first.tolist(), count.tolist(), angle.tolist()), ([event["det_first"] for event in events], [frames] * len(events), angles), "points in the file")
    equal([event["det_point"] for event in events], list(range(len(angles))), "numbers of points")
    equal([event["angle"] for event in events], angles, "angles in the events")
    check((np.diff(first.astype(int)) >= frames).all(), f"points share frames: {first}")
    check((np.diff(times) >= 0).all() and abs(times[-1] - time.time()) < 600, f"times: {times}")
    for begin in first:
        check(np.isin(np.arange(begin, begin + frames), stored).all(), f"frames from {begin} on are not all in the file")
    with open(folder / f"data/{run:06}/points.csv", newline="", encoding="ascii") as table:
        rows = list(csv.DictReader(table))
    equal([(int(row["first"]), int(row["frames"]), float(row["angle_deg"])) for row in rows], list(zip(first.tolist(), count.tolist(), angle.tolist())),
          "points.csv")
    return first


@case("a step scan is one run, and each point has its own frames, exactly: in events, in points.csv, and in the NeXus file; with a pause between points")
def _(folder):
    motor, angles, engine = Motor(), [1.5 * i for i in range(12)], RunEngine()
    with session(folder) as control:
        detector = sluice.bluesky.Detector(control, "det", frames_per_point=3, positions={"angle_deg": lambda: motor.position})
        engine(scan(detector, motor, angles))
        equal((control.status().run, control.status().result, motor.moves), (1, "intact", 12), "run, result, moves")
        first = has_points(folder, 1, engine.of("event"), 3, angles)
        equal(first.tolist(), list(range(0, 36, 3)), "first frames: none is recorded between points")
        equal({event["det_lost"] for event in engine.of("event")}, {0}, "lost")
        equal(engine.of("descriptor")[0]["configuration"]["det"]["det_frames_per_point"]["value"], 3, "configuration in the descriptor")
        engine = RunEngine()  # another scan of the same detector is another run
        engine(scan(detector, motor, angles[:4]))
        has_points(folder, 2, engine.of("event"), 3, angles[:4])
        equal(len(detector.points), 4, "points of the second scan")
        detector.stage().wait(60)
        detector.trigger().wait(60)
        frames = control.status().frames.settled
        time.sleep(0.2)
        equal((control.state, control.status().frames.settled, frames), ("paused", 3, 3), "frames while motors move")
        detector.trigger().wait(60)
        equal(detector.points[-1]["first"], 3, "first frame of the next point")
        control.resume(wait=60)  # another program lets it run
        wait_for("frames of no point", lambda: control.status().frames.settled > 10)
        detector.trigger().wait(60)
        check(detector.points[-1]["first"] > 10, f"the point begins with {detector.points[-1]['first']}")
        equal((control.state, control.status().frames.settled), ("paused", detector.points[-1]["first"] + 3), "frames behind the point")
        detector.unstage().wait(60)
        detector.close()


@case("a step scan of a source that goes on between points: frames of a point come after its trigger")
def _(folder):
    motor, angles, engine = Motor(), [float(i) for i in range(12)], RunEngine()
    with session(folder) as control:
        detector = sluice.bluesky.Detector(control, "det", frames_per_point=3, between="run", positions={"angle_deg": lambda: motor.position})
        reached = []
        begin = detector._let_run

        def noted():
            first = begin()
            reached.append((first, control.status().frames.settled))
            return first
        detector._let_run = noted
        engine(scan(detector, motor, angles))
        equal(control.status().result, "intact", "result")
        first = has_points(folder, 1, engine.of("event"), 3, angles)
        check((np.diff(first.astype(int)) > 3).all(), f"no frame came while the motor moved: {first}")
        equal([one for one, _ in reached], first.tolist(), "first frames")
        detector.close()


@case("time between points, beside the time of their frames")
def _(folder):
    rate, frames, points = 500, 2, 30
    for between, slots in (("pause", 32), ("pause", 8), ("run", 32)):
        with session(folder, f"{between}{slots}", detector={**SMALL, "frame_rate_Hz": rate}, ring={"slots": slots, "late_frames": 4}) as control:
            detector = sluice.bluesky.Detector(control, "det", frames_per_point=frames, between=between)
            engine = RunEngine()
            engine(scan(detector, Motor(), [0.0] * points))
            equal(len(engine.of("event")), points, "points")
            overhead = sorted(1e3 * (seconds - frames / rate) for seconds in engine.times[1:])
            print(f"# note: between points ({between}, {slots} slots, {rate} Hz, {frames} frames): median {statistics.median(overhead):.1f} ms, "
                  f"90 % {overhead[int(0.9 * len(overhead))]:.1f} ms, max {overhead[-1]:.1f} ms")
            detector.close()


# ---- fly scans ----

@case("a fly scan: frames as the plan says, and documents that say where its images are")
def _(folder):
    class TriggerInfo:  # of ophyd-async, as far as it is looked at
        total_number_of_exposures = 40

    def fly(detector, value):
        yield "stage", detector
        yield "prepare", detector, value
        yield "fly", detector
        yield "unstage", detector
    with session(folder, detector={**SMALL, "frame_rate_Hz": 200}) as control:
        for run, value in ((1, 40), (2, TriggerInfo()), (3, {"detector.frames": 40, "ring.slots": 16})):
            detector = sluice.bluesky.Detector(control, "det", arm="prepare", image_shape=[64, 64], image_type="<u2")
            engine = RunEngine()
            engine(fly(detector, value))
            equal((control.status().run, control.status().frames.settled, control.status().result), (run, 40, "intact"), "run, frames, result")
            resource, = engine.of("stream_resource")
            equal(engine.of("descriptor")[0]["det_image"]["shape"], [1, 64, 64], "shape")
            data = engine.of("stream_datum")
            equal([datum["stream_resource"] for datum in data], [resource["uid"]] * len(data), "resource of the data")
            ranges = [(datum["indices"]["start"], datum["indices"]["stop"]) for datum in data]
            equal([start for start, _ in ranges], [0, *(stop for _, stop in ranges[:-1])], f"indices: {ranges}")
            equal(ranges[-1][1], 40, "the last index")
            with h5py.File(resource["uri"].removeprefix("file://localhost"), "r") as file:
                equal(file[resource["parameters"]["dataset"]].shape, (40, 64, 64), "images")
            detector.close()
        detector = sluice.bluesky.Detector(control, "det", arm="prepare")
        engine = RunEngine()
        asyncio.run(engine.run(iter([("stage", detector), ("prepare", detector, {"detector.frames": 0})])))
        fails("state", detector.kickoff, "ended")  # the engine has unstaged it
        detector.close()


# ---- what can go wrong ----

def fails(code, call, *says):
    """The status of this call must fail so."""
    status = call()
    try:
        status.wait(60)
    except sluice.Error as why:
        equal(why.code, code, f"code of '{why}'")
        for text in says:
            check(text in str(why), f"'{why}' does not say '{text}'")
        check(not status.success and status.done and status.exception() is why, f"{status}")
        return
    check(False, f"{status} does not fail")


@case("what is not possible is refused; a session that others use is left alone")
def _(folder):
    with session(folder) as control:
        detector = sluice.bluesky.Detector(control, "det")
        fails("state", detector.trigger, "not staged")
        fails("state", detector.prepare, "not staged")
        fails("state", detector.kickoff, "configured")
        detector.stage().wait(60)
        fails("state", detector.stage, "staged already")
        fails("state", lambda: detector.prepare(5), 'arm="prepare"')
        detector.unstage().wait(60)
        control.configure({"detector.frames": 0})
        control.start(wait=60)
        fails("state", detector.stage, "is running", "under way")
        equal(control.state, "running", "the run of another program")
        control.stop(wait=60)
        detector.close()
        fly = sluice.bluesky.Detector(control, "det", arm="prepare", settings={"detector.frames": "many"})
        fly.stage().wait(60)
        fails("state", fly.trigger, "fly scans")
        fails("experiment", fly.prepare, "detector.frames")
        fly.close()
        for wrong in ({"frames_per_point": 0}, {"between": "sleep"}, {"arm": "never"}):
            try:
                sluice.bluesky.Detector(control, **wrong)
            except ValueError:
                continue
            check(False, f"{wrong} is taken")
        try:
            control.add_point(0, 1)
        except sluice.Error as why:
            equal(why.code, "state", "a point without a run")
        else:
            check(False, "a point without a run is taken")


@case("a point that is stopped, a front end that vanishes, frames that do not come: the plan hears of it, and what was taken is safe")
def _(folder):
    with session(folder) as control:
        detector = sluice.bluesky.Detector(control, "det", frames_per_point=100000)
        detector.stage().wait(60)
        taken = detector.trigger()
        wait_for("frames", lambda: control.status().frames.settled > 5)
        asyncio.run(detector.stop())
        fails("stopped", lambda: taken, "was stopped")
        detector.unstage().wait(60)
        equal((control.state, control.status().result), ("ended", "intact"), "state and result")
        detector.close()
        detector = sluice.bluesky.Detector(control, "det", frames_per_point=5, timeout=20)
        detector.stage().wait(60)
        detector.trigger().wait(60)
        emulators = [int(pid) for task in pathlib.Path(f"/proc/{control.pid}/task").glob("*/children") for pid in task.read_text().split()]
        os.kill(emulators[0], signal.SIGKILL)
        wait_for("its end", lambda: control.status().sources.gone or control.state == "ended")
        status = detector.trigger()
        check(isinstance(status.exception(90), sluice.Error), f"{status}")
        detector.unstage().wait(60)
        with h5py.File(folder / f"data/{control.status().run:06}/scan.nxs", "r") as file:
            equal(file["entry/sluice/points/frames"][:].tolist(), [5], "points in the file")
        detector.close()


@case("a plan that fails unstages the detector; the RunEngine pauses and resumes")
def _(folder):
    with session(folder) as control:
        detector = sluice.bluesky.Detector(control, "det", frames_per_point=2)

        def plan():
            yield "stage", detector
            yield "trigger", detector
            yield "read", detector
            raise RuntimeError("the plan is wrong")
        engine = RunEngine()
        try:
            engine(plan())
        except RuntimeError:
            pass
        equal((control.state, len(engine.of("event"))), ("ended", 1), "state, events")

        async def interrupted():
            await detector.stage()
            await detector.trigger()
            await detector.pause()  # as the RunEngine does when a user pauses the plan
            await detector.resume()
            await detector.trigger()
            await detector.unstage()
        asyncio.run(interrupted())
        equal([point["point"] for point in detector.points], [0, 1], "points")
        detector.close()


SCAN = """
import sys, sluice, sluice.bluesky
detector = sluice.bluesky.Detector(sluice.attach("scan"), "det", frames_per_point=2, positions={"angle_deg": lambda: float(len(detector.points))})
detector.stage().wait(60)
while True:
    detector.trigger().wait(60)
    print(len(detector.points), flush=True)
"""


@case("a program that is killed in mid-scan leaves its points: in the table, and in the file of the run that goes on")
def _(folder):
    with session(folder) as control:
        program = subprocess.Popen([sys.executable, "-c", SCAN], stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        for line in program.stdout:
            if int(line) == 5:
                break
        program.kill()
        program.wait()
        program.stdout.close()
        check(control.state in ("running", "paused"), "the run is over")
        control.stop("test", wait=60)
        place = folder / f"data/{control.status().run:06}"
        with h5py.File(place / "scan.nxs", "r") as file:
            points = len(file["entry/sluice/points/frames"])
        rows = (place / "points.csv").read_text().splitlines()[1:]
        check(points >= 5 and points - len(rows) in (0, 1), f"{points} points in the file, {len(rows)} in the table")


if __name__ == "__main__":
    main()
