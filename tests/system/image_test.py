#!/usr/bin/python3
"""image_test.py - images of live runs out of a process of their own: its pixels are those of the share, whatever region and bin; it says how
old they are; it may be killed, stopped and asked nonsense, and the run does not notice. Sessions with --live have a share and pictures."""
# with sanitizers in check-long

import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import threading
import time

import numpy

from harness import (ROOT, Program, case, check, equal, experiment, fewer, intact, main, read_summary, run, skip, wait_for)
from image_client import ImageProcess, Pending, slim

PAGE = ROOT / "docs/reference/live-image.md"

JUNGFRAU = {"kind": "jungfrau", "modules": 2, "rows": None, "columns": None, "dark_frames": 16, "frames": 100000, "frame_rate_Hz": 20,
            "hit_fraction": 0.5, "photon_energy_keV": 12.4}
STAGES = [{"correct": {"output": "photons_i16"}}, "peaks", {"integrate": {"bins": 100}}]
SMALL = {"kind": "pattern", "modules": 2, "rows": 32, "columns": 32}


def session(folder, *arguments, name="live", program=None, **sections):
    """A session that takes runs when it is asked to; `sluice ctl` works from here on."""
    path = experiment(folder, link={"kind": "shm"}, control={"port": 0}, **sections)
    started = Program("session", path, "--root", folder / "data", "--name", name, *arguments, folder=folder, program=program)
    wait_for("the session", lambda: "is ready" in started.err() or not started.running())
    check(started.running(), "the session ended at once")
    return started


def ctl(folder, name, *words):
    return run("ctl", name, *words, folder=folder).ends(0)


def close(folder, started, name="live"):
    ctl(folder, name, "close")
    started.ends(0)


@contextlib.contextmanager
def images(folder, *arguments, **options):
    process = ImageProcess(folder, *arguments, **options)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.process.send_signal(signal.SIGCONT)
            process.close()


def shares(folder):
    return json.loads(run("share", "--json", folder=folder).ends(0).out())


def seen(process, text="image?bin=8", least=0):
    """The header of an image, once there is one with at least this number."""
    def look():
        answer = process.ask(text)
        return answer.status == 200 and answer.slim()[0]["n"] >= least and answer
    return wait_for("an image", look)


# ---- pixels ----

def binned(image, bin, how):
    """Maxima or means of what is not masked, by the plainest loops."""
    rows, columns = -(-image.shape[0] // bin), -(-image.shape[1] // bin)
    masked = numpy.where(image == -32768, numpy.nan, image.astype("f8"))
    made = numpy.full((rows, columns), numpy.nan)
    for r in range(rows):
        for c in range(columns):
            block = masked[r * bin:(r + 1) * bin, c * bin:(c + 1) * bin]
            if not numpy.isnan(block).all():
                made[r, c] = numpy.nanmax(block) if how == "max" else numpy.nanmean(block)
    return made


def same_view(header, pixels, whole, expected, x, y, width, height, bin, how):
    equal((header["x"], header["y"], header["bin"], header["how"]), (x, y, bin, how), "what the header says")
    equal((header["full_rows"], header["full_columns"]), whole.shape, "the whole array")
    got = pixels.astype("f8")
    if header["invalid"] is not None:
        got[got == header["invalid"]] = numpy.nan
    equal(got.shape, expected.shape, f"shape of {width} x {height} by {bin}")
    check(numpy.allclose(got, expected, rtol=1e-6, equal_nan=True), f"pixels of {width} x {height} at {x}, {y} by {bin}, {how}")


def fetched(folder, share, header, name):
    """The same element of the share, by another way."""
    run("fetch", share, "--n", header["n"], "--array", name, "--npy", "one.npy", folder=folder).ends(0)
    return numpy.load(folder / "one.npy")


@case("pixels, peaks, beam, rings and results are those of the share; masked pixels count in no bin; regions, packed or not; the age grows while the run is paused")
def same_pixels(folder):
    started = session(folder, detector={**JUNGFRAU, "frame_rate_Hz": 50}, stages=STAGES, sinks=[{"share": {"count": 50}}, "verify"])
    ctl(folder, "live", "start")
    with images(folder, "--session", "live") as process:
        seen(process, least=2)
        ctl(folder, "live", "pause")
        wait_for("all that was sent", lambda: json.loads(ctl(folder, "live", "status", "--json").out())["status"]["drained"])
        time.sleep(0.2)  # the share has a thread of its own
        wait_for("the last frame", lambda: process.ask("image?bin=64").slim()[0]["n"] == shares(folder)[0]["published"] - 1)
        wait_for("the word for it", lambda: process.ask("image?bin=64").slim()[0]["state"] == "paused")
        answer = process.ask("image")
        header, pixels = answer.slim()
        on_the_page = {}
        exec(PAGE.read_text().split("```python\n")[1].split("```")[0], on_the_page)  # pylint: disable=exec-used
        check((on_the_page["slim"](answer.body)[1] == pixels).all(), "what the function of the page reads")
        check(all(f"`{member}`" in PAGE.read_text() for member in header), f"the page does not name all of {sorted(header)}")
        image = fetched(folder, "experiment", header, "image")
        check((pixels == image).all(), "the whole image")
        equal((header["type"], header["unit"], header["verdict"], header["bin"], header["over"]), ("<i2", "photons", "kept", 1, False), "the header")
        check((image == -32768).any() and (image > 10).any(), "the image has gaps and light")
        for x, y, width, height, bin, how in ((0, 0, 1030, 1064, 16, "max"), (0, 0, 1030, 1064, 16, "mean"), (500, 500, 37, 53, 5, "max"),
                                              (500, 500, 37, 53, 5, "mean"), (1029, 1063, 1, 1, 2, "max"), (3, 400, 700, 200, 1, "max"),
                                              (0, 512, 256, 40, 256, "max")):
            expected = binned(image[y:y + height, x:x + width], bin, how)
            for encoding in ("identity", "deflate"):
                answer = process.ask(f"image?x={x}&y={y}&width={width}&height={height}&bin={bin}&how={how}&encoding={encoding}")
                same_view(*answer.slim(), image, expected, x, y, width, height, bin, how)
        packed = process.ask("image?encoding=deflate")
        check(not packed.deflated or len(packed.body) < image.nbytes, "packed pixels are fewer bytes")
        same_facts(folder, header, process)
        first, _ = process.ask("image?bin=64").slim()
        time.sleep(0.3)
        second, _ = process.ask("image?bin=64").slim()
        equal(first["element"], second["element"], "the element while the run is paused")
        check(second["age_ns"] >= first["age_ns"] + 250_000_000, f"ages: {first['age_ns']}, {second['age_ns']}")
        equal(process.ask(f"image?bin=64&after={second['element']}&wait_ms=200").status, 204, "no newer element")
        too_many(process, second["element"])
        ctl(folder, "live", "resume")
        third, _ = process.ask(f"image?bin=64&after={second['element']}&wait_ms=30000").slim()
        check(third["element"] > second["element"] and third["number"] > second["number"], "the next element")
        ctl(folder, "live", "stop", "--wait")
        check(wait_for("the end", lambda: process.ask("image?bin=64").slim()[0]["over"]), "the share is over")
        close(folder, started)
        wait_for("the word of its end", lambda: process.ask("image?bin=64").slim()[0]["state"] is None)
        check(process.ask("image?bin=64").slim()[0]["over"], "what is left of a session that has ended")


def too_many(process, element):
    """More viewers than there are places wait for the next element."""
    waiting = [process.begin(f"image?bin=64&after={element}&wait_ms=30000") for _ in range(96 + 20)]
    refused = [pending.answer() for pending in waiting[96:]]
    equal({answer.status for answer in refused}, {503}, "statuses of those that came last")
    equal(refused[0].error()["code"], "busy", "the word for it")
    for pending in waiting:
        pending.stream.close()
    wait_for("places that are free again", lambda: process.ask("image?bin=64").status == 200)


def same_facts(folder, header, process):
    peaks = fetched(folder, "experiment", header, "peaks")
    listed = numpy.array([(row, column, intensity) for row, column, intensity in header["peaks"]])
    equal(len(listed), len(peaks), "peaks")
    image = fetched(folder, "experiment", header, "image")
    for (row, column, intensity), peak in zip(listed, peaks):
        check(abs(intensity - peak[3]) < 1e-3 * peak[3], "intensity of a peak")
        around = image[max(int(row) - 2, 0):int(row) + 3, max(int(column) - 2, 0):int(column) + 3]
        check(around.max() >= peak[6] - 0.5, f"there is no light at {row}, {column}")  # its brightest pixel
    equal((header["beam"]["row"], header["beam"]["column"]), (532, 515), "beam")
    wavelength = 12.398419843320026 / 12.4
    check(abs(header["wavelength_A"] - wavelength) < 1e-5 and header["rings"], f"rings: {header['rings']}")
    for ring in header["rings"]:
        angle = 2 * numpy.arcsin(wavelength / 2 / ring["d_A"])
        check(abs(ring["radius_pixels"] - numpy.tan(angle) * header["distance_m"] / header["pixel_size_m"]) < 0.1, f"the ring at {ring['d_A']} A")
    results = process.ask("results").json()
    equal((results["element"], results["number"]), (header["element"], header["number"]), "whose results these are")
    for name in ("peaks", "profile", "peaks_found"):
        array = fetched(folder, "experiment", header, name)
        equal(results["arrays"][name]["shape"], list(array.shape), f"shape of {name}")
        check(numpy.allclose(numpy.array(results["arrays"][name]["data"], dtype="f8").reshape(array.shape), array, equal_nan=True), name)
    equal(results["arrays"]["profile_q"]["unit"], "1/nm", "unit of the profile's axis")
    check("image" not in results["arrays"], "results have an image")
    picture = process.ask("image.png?size=300&peaks=1&rings=1")
    if picture.status != 404:
        equal(int.from_bytes(picture.body[20:24], "big"), 266, "rows of the picture")


# ---- a process that may fail ----

@case("the image process is killed, stopped and asked nonsense in mid-run: the run is intact, and another process answers")
def hard_life(folder):
    frames = fewer(400, 120)
    path = experiment(folder, detector={**SMALL, "frames": frames, "frame_rate_Hz": 40}, link={"kind": "shm"}, control={"port": 0},
                      sinks=[{"share": {"results": "raw", "latest_Hz": 10}}, "verify"])
    running = Program("run", path, "--quiet", "--name", "hard", "--summary", folder / "summary.json", folder=folder)
    wait_for("the run", lambda: shares(folder) or not running.running())
    for _ in range(3):
        process = ImageProcess(folder, "--session", "hard")
        seen(process, "image?array=raw")
        process.process.kill()
        process.process.wait()
    with images(folder, "--session", "hard") as stopped, images(folder, "--session", "hard") as process:
        seen(stopped)
        stopped.process.send_signal(signal.SIGSTOP)
        pending = stopped.begin("image")
        seen(process, least=5)
        nonsense(process)
        seen(process)
        stopped.process.send_signal(signal.SIGCONT)
        equal(pending.answer().status, 200, "an answer after a pause")
        intact(running.ends(0), read_summary(folder), frames)
        check(process.ask("image").slim()[0]["over"], "the share is over")


def nonsense(process):
    """Requests of random bytes, without a stream, with several, and viewers that go away or do not read."""
    some = random.Random(7)
    for _ in range(fewer(300, 60)):
        text = bytes(some.randrange(256) for _ in range(some.choice((0, 1, 5, 40, 900))))
        text = text if some.random() < 0.5 else b"image?;" + text
        stream = process.send(text)[0]
        if some.random() < 0.8:
            equal(Pending(stream).answer().status, 400, f"status of {text!r}")
        else:
            stream.close()
    for request in ("image?bin=1&x=99999", "image?array=none", "image?array=outcome"):
        check(process.ask(request).error()["message"], f"why {request} is refused")
    process.send("image", streams=0)
    first, second = process.send("image?bin=2", streams=2)
    equal(Pending(first).answer().status, 200, "with two streams")
    equal(second.recv(1), b"", "of the second stream")
    equal(process.ask(b"image?" + b"&" * 5000).status, 400, "too long")
    stalled = [process.send("image?bin=1")[0] for _ in range(30)]  # that never read
    waiting = [process.begin("image?after=999999999&wait_ms=30000") for _ in range(10)]
    equal(process.ask("image?bin=2").status, 200, "beside viewers that do not read")
    for stream in [*stalled, *(pending.stream for pending in waiting)]:
        stream.close()


@case("twenty viewers of different regions and a hundred that wait: the run loses nothing, and what is too much is told to come again")
def many_viewers(folder):
    frames = fewer(300, 100)
    path = experiment(folder, detector={"kind": "pattern", "modules": 2, "rows": 256, "columns": 256, "frames": frames, "frame_rate_Hz": 50},
                      link={"kind": "shm"}, control={"port": 0}, sinks=[{"share": {"results": "raw", "latest_Hz": 10}}, "verify"])
    running = Program("run", path, "--quiet", "--name", "many", "--summary", folder / "summary.json", folder=folder)
    wait_for("the run", lambda: shares(folder) or not running.running())
    statuses, ends = [], threading.Event()

    def view(process, number):
        while not ends.is_set():
            answer = process.ask(f"image?x={number}&y={2 * number}&width=200&height={300 + number}&bin={1 + number % 5}&how={('max', 'mean')[number % 2]}")
            if answer.status == 200:
                header, pixels = answer.slim()
                equal(pixels.shape, (-(-(300 + number) // (1 + number % 5)), -(-200 // (1 + number % 5))), "shape")
            statuses.append(answer.status)

    with images(folder, "--session", "many") as process:
        seen(process)
        viewers = [threading.Thread(target=view, args=(process, number)) for number in range(20)]
        for viewer in viewers:
            viewer.start()
        waiting = [process.begin("image?bin=2&after=999999999999&wait_ms=100") for _ in range(100)]
        more = {pending.answer().status for pending in waiting}
        check(more <= {200, 503}, f"statuses: {more}")
        running.wait()
        ends.set()
        for viewer in viewers:
            viewer.join()
    intact(running, read_summary(folder), frames)
    check(set(statuses) <= {200, 503} and statuses.count(200) >= 20, f"answers: {len(statuses)}, {set(statuses)}")


@case("without requests the process ends by itself; without a control socket it does not begin; of a session that is not there it says so")
def ends(folder):
    process = ImageProcess(folder, "--session", "nobody", idle_s=1)
    error = process.ask("image").error()
    equal((error["code"], error["message"]), ("not_found", "there is no such session any more"), "the answer")
    process.ends(0)
    with images(folder, "--share", "nothing") as waiting:
        equal(waiting.ask("image?wait_ms=50").status, 404, "a share that is not there")
    equal(run("image-server", "--session", "x", "--fd", 0, folder=folder).process.returncode, 1, "exit status")
    equal(run("image-server", "--fd", 0, folder=folder).process.returncode, 1, "exit status")
    check("image-server" not in run("--help", folder=folder).out(), "it is not for users")


# ---- sessions with --live ----

@case("session --live: a share for viewers, ids that rise from run to run, a picture of each run in its folder")
def live(folder):
    started = session(folder, "--live", detector=JUNGFRAU, stages=STAGES, sinks=["verify"])
    elements = []
    with images(folder, "--session", "live") as process:
        equal(process.ask("image").status, 404, "before the first run")
        for number in (1, 2, 3):
            ctl(folder, "live", "start")
            header = wait_for("an image of this run", lambda: (answer := process.ask("image?bin=16&wait_ms=1000")).status == 200 and
                              (now := answer.slim()[0])["run"] == number and not now["over"] and now)
            elements.append(header["element"])
            ctl(folder, "live", "stop", "--wait")
            result = json.loads((folder / f"data/00000{number}/result.json").read_text())
            equal(result["result"], "intact", "result")
            resolved = (folder / f"data/00000{number}/experiment.yaml").read_text()
            check("latest_Hz: 10 " in resolved and "# this program" in resolved, "what the run's experiment says")
    equal(elements, sorted(set(elements)), "elements of three runs")
    close(folder, started)
    if "libpng" in run("show", "experiment.yaml", "--output", "x.png", folder=folder).err():
        skip("this program has no libpng")
    for number in (1, 2, 3):
        picture = (folder / f"data/00000{number}/picture.png").read_bytes()
        equal((picture[:8], picture[16:24]), (b"\x89PNG\r\n\x1a\n", (515).to_bytes(4, "big") + (532).to_bytes(4, "big")), "the picture")


@case("--live leaves a share of the file alone, takes another name where its own is taken, and lets a run go on that has nothing to show")
def live_or_not(folder):
    own = experiment(folder, name="own.yaml", detector={**SMALL, "frames": 5}, link={"kind": "shm"}, control={"port": 0},
                     sinks=[{"share": {"name": "mine", "results": "raw"}}, "verify"])
    run("run", own, "--quiet", "--live", "--summary", folder / "summary.json", folder=folder).ends(0)
    equal([one["where"] for one in read_summary(folder)["sinks"] if one["name"] == "share"], ["share:mine"], "shares")
    first = session(folder, "--live", detector={**SMALL, "frames": 100000, "frame_rate_Hz": 20}, sinks=["verify"])
    ctl(folder, "live", "start")
    wait_for("its share", lambda: shares(folder))
    plain = experiment(folder, detector={**SMALL, "frames": 5}, link={"kind": "shm"}, control={"port": 0}, sinks=["verify"])
    run("run", plain, "--quiet", "--live", "--summary", folder / "summary.json", folder=folder).ends(0)
    equal([one["where"] for one in read_summary(folder)["sinks"] if one["name"] == "share"], ["share:experiment-2"], "shares")
    equal([one["name"] for one in shares(folder)], ["experiment"], "shares")
    ctl(folder, "live", "stop", "--wait")
    close(folder, first)
    nothing = experiment(folder, detector={**SMALL, "frames": 5}, link={"kind": "shm"}, control={"port": 0}, stages=[], sinks=["null"])
    done = run("run", nothing, "--live", "--root", folder / "nothing", folder=folder).ends(0)
    check("this run cannot be followed" in done.err(), "a warning")
    equal(sorted(path.name for path in (folder / "nothing/000001").iterdir()), ["experiment.yaml", "lock", "result.json", "run.log"], "files")


# ---- the service ----

class Service:
    def __init__(self, folder):
        self.program = Program("serve", "--listen", "127.0.0.1:0", "--root", folder / "data", "--experiments", folder, "--port_file", folder / "port", folder=folder)
        wait_for("the service", lambda: (folder / "port").exists() and (folder / "port").read_text() or not self.program.running())
        if "libmicrohttpd" in self.program.err():
            skip("this program has no libmicrohttpd")
        check(self.program.running(), "the service ended at once")
        self.port = int((folder / "port").read_text())

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/api/v1" + path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, answer.headers, body


def image_processes(service):
    found = []
    for pid in service.program.children():
        with contextlib.suppress(OSError):
            if b"image-server" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


@case("over HTTP: images, pictures, results; the image process is niced, and killed or stopped it is replaced; pictures of runs")
def over_http(folder):
    (folder / "data").mkdir()
    service = Service(folder)
    equal(service.get("/sessions/live/image")[0], 404, "of a session that is not there")
    equal(image_processes(service), [], "processes for nobody")
    started = session(folder, "--live", detector=JUNGFRAU, stages=STAGES, sinks=["verify"])
    ctl(folder, "live", "start")
    status, headers, body = wait_for("an image", lambda: (got := service.get("/sessions/live/image?bin=4&wait_ms=1000"))[0] == 200 and got)
    header, pixels = slim(body)
    equal((headers["Content-Type"], header["bin"], pixels.shape), ("application/octet-stream", 4, (266, 258)), "the image")
    after, _ = slim(service.get(f"/sessions/live/image?bin=4&after={header['element']}&wait_ms=20000")[2])
    check(after["element"] > header["element"], "the next element")
    status, headers, body = service.get("/sessions/live/results")
    equal((status, headers["Content-Type"]), (200, "application/json"), "results")
    check("profile" in json.loads(body)["arrays"], "a profile")
    status, headers, body = service.get("/sessions/live/image.png?size=200&peaks=true&low=2")
    check((status, headers["Content-Type"]) in ((200, "image/png"), (404, "application/json")), f"the picture: {status}")
    for path, wanted in (("image?bin=0", 400), ("image?array=n%C3%A4", 404), ("image?nothing=1", 400), ("image.png?low=x", 400), ("results?bin=1", 400)):
        status, _, body = service.get(f"/sessions/live/{path}")
        equal((status, sorted(json.loads(body)["error"])), (wanted, ["code", "hint", "message", "where"]), path)
    replaced(service)
    ctl(folder, "live", "stop", "--wait")
    close(folder, started)
    check(slim(service.get("/sessions/live/image?bin=64")[2])[0]["over"], "the last image stays while it is looked at")
    if status_of_picture := service.get("/runs/1/picture.png")[0] == 200:
        equal(service.get("/runs/1/picture.png")[2], (folder / "data/000001/picture.png").read_bytes(), "the picture of the run")
    check(status_of_picture or "libpng" in run("show", "experiment.yaml", "--output", "x.png", folder=folder).err(), "there is no picture")
    equal(service.get("/runs/99/picture.png")[0], 404, "of a run that is not there")
    service.program.send(signal.SIGTERM)
    service.program.ends(0)


def replaced(service):
    pid, = image_processes(service)
    equal(os.getpriority(os.PRIO_PROCESS, pid), 10, "nice")
    os.kill(pid, signal.SIGKILL)
    wait_for("an image of another process", lambda: service.get("/sessions/live/image?bin=64")[0] == 200)
    other, = wait_for("one process", lambda: len(now := image_processes(service)) == 1 and now)
    check(other != pid, "the same process")
    os.kill(other, signal.SIGSTOP)
    status, _, body = service.get("/sessions/live/image?bin=64")
    equal((status, json.loads(body)["error"]["code"]), (503, "busy"), "of a process that is stopped")
    wait_for("an image of a third process", lambda: service.get("/sessions/live/image?bin=64")[0] == 200)
    check(other not in image_processes(service), "the stopped process is still there")


if __name__ == "__main__":
    main()
