#!/usr/bin/python3
"""share_test.py - frames of a live run in a share, and the commands that look at shares: followers get what the file of the run has, however
they end the run goes on, names that are taken are refused, arrays become files for NumPy and pictures, messages go both ways."""

import json
import signal
import struct

import numpy

from harness import (GUARDED, SLUICE, Program, both_ways, case, check, equal, experiment, fewer, intact, main, read_summary, run, run_fails,
                     sink, skip, wait_for)

try:
    import h5py
except ImportError:
    h5py = None

SMALL = {"kind": "pattern", "modules": 2, "rows": 32, "columns": 32}
# Elements enough that no follower of a test is overtaken, however busy this machine is.
ROOMY = {"count": 2000, "on_slow": "wait"}


def elements(program):
    """Of `sluice follow --json`."""
    return [json.loads(line) for line in program.out().splitlines()]


def follow(folder, name, *arguments):
    return Program("follow", name, "--wait_s", "60", *arguments, folder=folder)


def shares(folder):
    return json.loads(run("share", "--json", folder=folder).ends(0).out())


def start(folder, share, program=None, **sections):
    """A run in the background, once its share can be followed."""
    path = experiment(folder, **{"link": {"kind": "shm"}, "control": {"port": 0}, **sections,
                                 "sinks": [{"share": share}, *sections.get("sinks", ["verify"])]})
    started = Program("run", path, "--quiet", "--summary", folder / "summary.json", folder=folder, program=program)
    wait_for("the share of the run", lambda: any(s["alive"] for s in shares(folder)) or not started.running())
    check(started.running(), "the run ended at once")
    return started


def serve(folder, name, *arguments):
    """A share of a file, once it can be followed."""
    program = Program("share", "serve", name, *arguments, folder=folder)
    wait_for("the share", lambda: program.out() or not program.running())
    check(program.running(), "serve ended at once")
    return program


# ---- what followers get ----

def same_images(folder, got):
    with h5py.File(folder / "run.nxs") as file:
        stored = file["entry/data/data"]
        numbers = list(file["entry/data/frame_number"][()])
        for one in got:
            image = numpy.load(folder / f"images/raw-{one['n']:06}.npy")
            check((image == stored[numbers.index(one["number"])]).all(), f"the image of frame {one['number']}")


@both_ways("a follower of every frame gets the images of the file, in order, and is told the end")
def every_frame(folder):
    if not h5py:
        skip("python3-h5py is not installed")
    frames = fewer(200, 60)
    path = experiment(folder, detector={**SMALL, "frames": frames, "frame_rate_Hz": 200}, link={"kind": "shm"},
                      sinks=[{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw"}}, {"share": {"results": "raw", **ROOMY}}, "verify"])
    seen = follow(folder, "experiment", "--every", "--npy", "images", "--json")
    done = run("run", path, "--summary", folder / "summary.json", folder=folder)
    got = elements(seen.ends(0))
    intact(done, read_summary(folder), frames)
    equal([one["n"] for one in got], list(range(got[0]["n"], frames)), "elements")  # it may have come after the first ones
    equal([one["missed"] for one in got], [0] * len(got), "missed")
    equal({(one["verdict"], one["reason"]) for one in got}, {("kept", "unjudged")}, "verdicts")
    same_images(folder, got)
    figures = sink(read_summary(folder), "share")
    equal((figures["published"], figures["skipped"], figures["followers_refused"]), (frames, 0, 0), "figures")
    check(figures["followers_ever"] >= 1 and figures["bytes"] > frames * 2 * 32 * 32 * 2, f"figures: {figures}")
    equal(shares(folder), [], "shares that are left")


@case("frames of every kind: dark, rejected and kept ones, as the rows of the file have them")
def all_frames(folder):
    if not h5py:
        skip("python3-h5py is not installed")
    path = experiment(folder, detector={"kind": "jungfrau", "modules": 1, "rows": None, "columns": None, "dark_frames": 16, "frames": 30,
                                        "hit_fraction": 0.5, "photon_energy_keV": 12.4, "frame_rate_Hz": 40},
                      link={"kind": "shm"}, stages=[{"correct": {"output": "photons_i16"}}, {"veto": {"threshold": 10, "min_pixels": 20}}, "peaks"],
                      sinks=[{"nexus": {"path": str(folder / "run.nxs")}}, {"share": {"frames": "all", "results": "peaks", "name": "all", **ROOMY}}])
    seen = follow(folder, "share:all", "--every", "--npy", "lists", "--json")
    done = run("run", path, "--summary", folder / "summary.json", folder=folder)
    equal(done.process.returncode, 0, "exit status")
    got = elements(seen.ends(0))
    with h5py.File(folder / "run.nxs") as file:
        rows = file["entry/sluice/frames"]
        numbers = list(rows["frame_number"][()])
        kept = {int(n): bool(k) for n, k in zip(numbers, rows["keep"][()])}
        score = {int(n): s for n, s in zip(numbers, rows["score"][()])}
    equal(len(numbers), 46, "rows of the file")
    equal([one["n"] for one in got], list(range(got[0]["n"], 46)), "elements")
    for one in got:
        equal(one["keep"], kept[one["number"]], f"keep of frame {one['number']}")
        equal(numpy.float32(one["score"]), score[one["number"]], f"score of frame {one['number']}")
        if one["verdict"] == "kept":
            peaks = numpy.load(folder / f"lists/peaks-{one['n']:06}.npy")
            equal((len(peaks), peaks.dtype), (one["rows"]["peaks"], numpy.float32), f"peaks of frame {one['number']}")
    verdicts = [one["verdict"] for one in got]
    equal(verdicts.count("kept"), sum(kept[one["number"]] for one in got), "frames kept")
    check(verdicts.count("rejected") > 3 and verdicts.count("kept") > 3, f"too few of a kind: {verdicts}")


@case("viewers: the latest frame now and then, every third frame, one that is guarded")
def some_frames(folder):
    path = experiment(folder, detector={**SMALL, "frames": 60, "frame_rate_Hz": 200}, link={"kind": "shm"},
                      sinks=[{"share": {"results": "raw", "every": 3, "name": "third", **ROOMY}},
                             {"share": {"results": "raw", "latest_Hz": 0.001, "name": "latest", **ROOMY}}, "verify"])
    done = run("run", path, "--summary", folder / "summary.json", folder=folder, program=GUARDED)
    intact(done, read_summary(folder), 60)
    figures = [one["figures"] for one in read_summary(folder)["sinks"] if one["name"] == "share"]
    equal([(one["published"], one["skipped"]) for one in figures], [(20, 40), (1, 59)], "published, skipped")


@case("a session: a follower goes on from run to run, and ends when it is asked to")
def session(folder):
    path = experiment(folder, detector={**SMALL, "frames": 20, "frame_rate_Hz": 200}, link={"kind": "shm"}, control={"port": 0},
                      sinks=[{"share": {"results": "raw", "name": "again", **ROOMY}}, "verify"])
    seen = follow(folder, "again", "--every", "--again", "--json")
    equal(run("session", path, "--root", folder / "data", "--runs", 2, folder=folder).process.returncode, 0, "exit status")
    wait_for("the last frame of the second run", lambda: [one["n"] for one in elements(seen)].count(19) == 2)
    seen.send(signal.SIGINT)
    seen.ends(0)


# ---- followers that are no help ----

@case("followers that stop, are killed or are too many cost the run nothing")
def bad_followers(folder):
    frames = fewer(100, 60)
    running = start(folder, {"results": "raw", "count": 4, "on_slow": "wait"}, detector={**SMALL, "frames": frames, "frame_rate_Hz": 50})
    stopped, killed = (follow(folder, "experiment", "--every") for _ in range(2))
    wait_for("followers", lambda: stopped.out() and killed.out())
    stopped.send(signal.SIGSTOP)
    killed.send(signal.SIGKILL)
    run("message", "experiment", "--text", "how are you", folder=folder).ends(0)
    intact(running.ends(0), read_summary(folder), frames)
    figures = sink(read_summary(folder), "share")
    equal((figures["published"], figures["messages"]), (frames, 1), "published, messages")
    check(figures["followers_ever"] >= 3, f"figures: {figures}")
    stopped.send(signal.SIGCONT)
    stopped.ends(0)
    check("passed over or missed" in stopped.out(), "the last line")


@case("a run that is killed: its followers say so, and its name is free at once")
def killed_run(folder):
    running = start(folder, {"results": "raw", "name": "mine"}, detector={**SMALL, "frames": 100000, "frame_rate_Hz": 100})
    seen = follow(folder, "mine")
    wait_for("a frame", seen.out)
    running.send(signal.SIGKILL)
    seen.ends(1)
    check("has ended without closing it" in seen.err(), "what it says")
    run_fails("follow", "mine", folder=folder, says=["no share is called 'mine'"])
    serve(folder, "mine", "--size", 10)


# ---- names ----

@case("a name that is taken is refused, and the share that has it goes on")
def taken(folder):
    (folder / "text").write_text("forty-two")
    serve(folder, "experiment", "--raw", "text")
    path = experiment(folder, link={"kind": "shm"}, sinks=[{"share": {"results": "raw"}}, "verify"])
    run_fails("run", path, folder=folder, says=["a share 'experiment' exists already", "choose another name"])
    run_fails("share", "serve", "experiment", "--size", 1, folder=folder, says=["a share 'experiment' exists already"])
    equal(run("fetch", "share:experiment", "--out", "-", folder=folder).ends(0).out(), "forty-two", "what is served")


@case("wrong options of the sink are refused before the run begins, with what would be right")
def wrong_options(folder):
    for options, says in (({"results": "imgae"}, ["no stage makes 'imgae'", "raw"]),
                          ({"results": "raw", "name": "a b"}, ["'a b' is no name of a share"]),
                          ({"every": 0}, ["every", "1..4294967295"]), ({"on_slow": "stop"}, ["auto, drop or wait"])):
        path = experiment(folder, link={"kind": "shm"}, sinks=[{"share": options}])
        run_fails("run", path, folder=folder, says=says)


# ---- the commands ----

def wrong_files(folder):
    whole = (folder / "stack.npy").read_bytes()
    (folder / "cut.npy").write_bytes(whole[:-1])
    (folder / "text.npy").write_text("no array at all")
    numpy.save(folder / "fortran.npy", numpy.asfortranarray(numpy.zeros((3, 4))))
    numpy.save(folder / "words.npy", numpy.array(["a", "bc"]))
    return (("cut.npy", "bytes of data"), ("text.npy", "is no NumPy file"), ("fortran.npy", "Fortran order"), ("words.npy", "its type"),
            ("absent.npy", "No such file"))


@case("sluice share serve: NumPy arrays, raw bytes and zeros; wrong files are refused")
def served(folder):
    stack = numpy.arange(5 * 6 * 7, dtype="<i4").reshape(5, 6, 7)
    numpy.save(folder / "stack.npy", stack)
    serve(folder, "whole", "--npy", "stack.npy", "--array", "stack")
    ring = serve(folder, "ring", "--npy", "stack.npy", "--ring", "--rate_Hz", 200)
    (folder / "bytes").write_bytes(stack.tobytes())
    serve(folder, "raw", "--raw", "bytes", "--type", "<i4", "--shape", "30,7")
    listed = {one["name"]: one for one in shares(folder)}
    equal(sorted(listed), ["raw", "ring", "whole"], "shares")
    equal([one["arrays"][0]["shape"] for one in (listed["whole"], listed["ring"], listed["raw"])], [[5, 6, 7], [6, 7], [30, 7]], "shapes")
    equal((listed["whole"]["published"], listed["ring"]["places"], listed["raw"]["followers"]), (1, 32, 0), "of whole, ring and raw")
    run("fetch", "raw", "--array", "data", "--npy", "raw.npy", folder=folder).ends(0)
    equal(numpy.load(folder / "raw.npy").tolist(), stack.reshape(30, 7).tolist(), "the array")
    wait_for("an element of each", lambda: {one["n"] % 5 for one in elements(run("follow", "ring", "--every", "--count", 20, "--npy", "ring",
                                                                                 "--json", folder=folder).ends(0))} == set(range(5)))
    for path in (folder / "ring").iterdir():
        check((numpy.load(path) == stack[int(path.stem.split("-")[1]) % 5]).all(), f"the array of {path.name}")
    described = run("share", "whole", folder=folder).ends(0).out()
    check("stack" in described and "5 x 6 x 7 <i4" in described, described)
    for name, says in wrong_files(folder):
        run_fails("share", "serve", "wrong", "--npy", name, folder=folder, says=[says])
    run_fails("share", "serve", "wrong", "--raw", "bytes", "--shape", "1,x", folder=folder, says=["--shape"])
    run_fails("share", "serve", "wrong", folder=folder, says=["one of --npy FILE, --raw FILE and --size BYTES"])
    ring.send(signal.SIGINT)
    ring.ends(0)


def read_png(path):
    data = path.read_bytes()
    equal(data[:8], b"\x89PNG\r\n\x1a\n", f"how {path.name} begins")
    return struct.unpack(">II", data[16:24])


@case("sluice fetch: the whole element, an array, a part of it, NumPy, a picture; what is not there is refused")
def fetched(folder):
    image = numpy.random.default_rng(1).integers(0, 1000, (48, 64)).astype("<u2")
    numpy.save(folder / "image.npy", image)
    serve(folder, "one", "--npy", "image.npy", "--array", "image")
    run("fetch", "one", "--npy", "copy.npy", folder=folder).ends(0)
    check((numpy.load(folder / "copy.npy") == image).all(), "the copy")
    run("fetch", "share:one", "--n", 0, "--out", "all", folder=folder).ends(0)
    equal((folder / "all").read_bytes(), image.tobytes(), "the element")
    run("fetch", "one", "--array", "image", "--offset", 128, "--bytes", 256, "--out", "part", folder=folder).ends(0)
    equal((folder / "part").read_bytes(), image.tobytes()[128:384], "the part")
    drawn = run("fetch", "one", "--png", "image.png", "--bin", 2, folder=folder)
    if "libpng" not in drawn.err():
        drawn.ends(0)
        equal(read_png(folder / "image.png"), (32, 24), "size of the picture")
    for arguments, says in ((["--n", 7], "element 7 is not published yet"), (["--array", "spots", "--npy", "x.npy"], "it has: image"),
                            (["--offset", image.nbytes, "--out", "x"], f"the element has {image.nbytes} bytes"), (["--n", "first"], "takes a number"),
                            (["--npy", "x.npy", "--bytes", 4], "take a whole array"), (["--npy", "image.npy/x"], "image.npy/x")):
        run_fails("fetch", "one", "--timeout_s", 0.1, *arguments, folder=folder, says=[says])
    for name in ("two", "share:two", "a/b", ""):
        run_fails("fetch", name, folder=folder, says=["share"])
    check(not (folder / "x.npy").exists() and not (folder / "x").exists(), "a file was left")


@case("sluice follow: pictures, one file that is replaced or one for each element; counts and times out")
def followed(folder):
    numpy.save(folder / "stack.npy", numpy.arange(4 * 20 * 30, dtype="<f4").reshape(4, 20, 30))
    serve(folder, "stack", "--npy", "stack.npy", "--ring", "--rate_Hz", 100)
    seen = run("follow", "stack", "--count", 3, "--interval_s", 0.05, "--png", "pictures/", folder=folder)
    if "libpng" in seen.err():
        skip("this program has no libpng")
    seen.ends(0)
    lines = seen.out().splitlines()
    equal(len(lines), 3, "lines")
    check(all("age" in line for line in lines), "what lines say")
    equal([read_png(path) for path in (folder / "pictures").iterdir()], [(30, 20)] * 3, "pictures")
    equal([path.name for path in sorted((folder / "pictures").iterdir())], [f"data-{int(line.split()[0]):06}.png" for line in lines], "their names")
    run("follow", "stack", "--count", 3, "--interval_s", 0.01, "--png", "now.png", folder=folder).ends(0)
    equal(read_png(folder / "now.png"), (30, 20), "the picture")
    serve(folder, "still", "--size", 10, "--array", "../up")
    run("follow", "still", "--count", 1, "--npy", "here", folder=folder).ends(0)
    equal([path.name for path in (folder / "here").iterdir()], [".._up-000000.npy"], "files of an array with a path for a name")
    run_fails("follow", "still", "--timeout_s", 0.3, folder=folder, says=["no element has come for 0.3 s"])
    run_fails("follow", "still", "--png", "x.png", folder=folder, says=["no image to draw"])
    run_fails("follow", "stack", "--every", "--newest", folder=folder, says=["exclude each other"])
    run_fails("follow", "nothing", folder=folder, says=["no share is called 'nothing'; sluice share lists"])


@case("sluice message: text and files there and back; a writer that does not answer")
def messages(folder):
    (folder / "blob").write_bytes(bytes(range(256)) * 5000)
    serving = serve(folder, "echo", "--size", 10, "--echo")
    said = run("message", "echo", "--kind", 7, "--text", "beam moved", "--listen_s", 30, folder=folder).ends(0)
    equal(said.out(), "kind 7, 10 bytes: beam moved\n", "the answer")
    run("message", "echo", "--file", "blob", "--listen_s", 30, "--out", "back", folder=folder).ends(0)
    equal((folder / "back").read_bytes(), (folder / "blob").read_bytes(), "the file that came back")
    check("message of follower" in serving.out() and "beam moved" in serving.out(), "what serve prints")
    serve(folder, "silent", "--size", 10)
    run_fails("message", "silent", "--text", "x", "--listen_s", 0.2, folder=folder, says=["no message has come within 0.2 s"])
    run_fails("message", "silent", folder=folder, says=["nothing to do"])
    run_fails("message", "silent", "--text", "x", "--file", "blob", folder=folder, says=["exclude each other"])
    run_fails("message", "silent", "--file", folder, folder=folder, says=["it is no plain file"])
    with open(folder / "large", "wb") as file:
        file.truncate(65 << 20)
    run_fails("message", "silent", "--file", "large", folder=folder, says=["the message has 68157440 bytes, more than the queue"])


@case("sluice share: rows with rate and followers, nothing where there is none")
def listing(folder):
    equal(len(run("share", folder=folder).ends(0).out().splitlines()), 1, "lines without a share")
    serve(folder, "ring", "--size", 1000, "--ring", "--rate_Hz", 100)
    seen = follow(folder, "ring", "--json")
    wait_for("an element", seen.out)
    row = run("share", folder=folder).ends(0).out().splitlines()[1].split()
    equal((row[0], row[1:3], row[3]), ("ring", ["1", "B"], "32"), "name, element, places")
    wait_for("a rate and a follower", lambda: any(one["rate"] > 1 and one["followers"] == 1 for one in shares(folder)))
    seen.send(signal.SIGTERM)
    seen.ends(0)
    piped = Program("-c", f"{SLUICE} follow ring --interval_s 0 | head -n 1", folder=folder, program="/bin/sh").ends(0)
    check("age" in piped.out(), "what a pipe gets")
    wait_for("the follower to end with its pipe", lambda: shares(folder)[0]["followers"] == 0)


if __name__ == "__main__":
    main()
