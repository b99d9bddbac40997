#!/usr/bin/python3
"""redis_test.py - rows and results in a Redis Stream, with a real server: they are those of the NeXus file; a server that is killed, stalled,
locked or absent harms no run, and every row that it missed is counted."""
# normal build only

import shutil
import signal
import time

import h5py
import numpy

import results
from harness import RUN_DIR, Program, acquire, case, check, closes, equal, experiment, intact, main, read_summary, run, run_fails, skip, wait_for
from slow_disk import MB, on_slow_disk

try:
    import redis
except ImportError:
    redis = None

SERVER = shutil.which("redis-server")
STREAM, RUN = "sluice:experiment:frames", "sluice:experiment:run"
SMALL = {"kind": "pattern", "modules": 2, "rows": 32, "columns": 32}


def needs(what, why_not):
    if not what:
        skip(why_not)


def has_sink():
    needs("(not in this program" not in run("list", "redis", folder=RUN_DIR.parent).out(), "this program has no redis sink")


class Server:
    """A redis-server on a Unix socket in a folder; its data are there, too."""

    def __init__(self, folder, name="redis", *arguments, password=None):
        needs(SERVER, "redis-server is not installed")
        needs(redis, "python3-redis is not installed")
        has_sink()
        self.folder, self.path, self.password = folder / name, folder / f"{name}.sock", password
        self.arguments = [*arguments, *(["--requirepass", password] if password else [])]
        self.folder.mkdir(exist_ok=True)
        self.start()

    def start(self):
        self.program = Program("--port", 0, "--unixsocket", self.path, "--dir", self.folder, "--save", "", *self.arguments, folder=self.folder,
                               program=SERVER)
        self.client = redis.Redis(unix_socket_path=str(self.path), password=self.password)
        wait_for("redis-server", self.answers, 20)

    def answers(self):
        try:
            return self.client.ping()
        except (redis.exceptions.ConnectionError, redis.exceptions.BusyLoadingError):
            return False

    def kill(self):
        self.program.send(signal.SIGKILL)
        self.program.process.wait()

    def entries(self):
        return self.client.xrange(STREAM)

    def rows(self):
        """The entries of frames: the last of all says that the run has ended."""
        entries = self.entries()
        check(b"end" in entries[-1][1], f"the last entry: {entries[-1]}")
        return [row for _, row in entries[:-1]]

    def run(self):
        return {key.decode(): value.decode() for key, value in self.client.hgetall(RUN).items()}


def sinks(folder, *servers, **options):
    """A redis sink for each server, or path of a server, and a check."""
    paths = [server.path if isinstance(server, Server) else server for server in servers]
    return [*({"redis": {"address": str(path), **options}} for path in paths), "verify"]


def figures(summary):
    """Of each redis sink."""
    return [sink["figures"] for sink in summary["sinks"] if sink["name"] == "redis"]


def started(folder, frames, rate, sink_list):
    """A run in the background."""
    path = experiment(folder, detector={**SMALL, "frames": frames, "frame_rate_Hz": rate}, link={"kind": "shm"}, stages=[], sinks=sink_list)
    return Program("run", path, "--summary", folder / "summary.json", folder=folder)


def lines(program, text):
    return [line for line in program.err().splitlines() if text in line]


def each_once(server, frames, figure):
    """Each frame has one row, or is counted as missed."""
    sequences = [int(row[b"sequence"]) for row in server.rows()]
    equal(len(set(sequences)), len(sequences), "rows that differ")
    equal(sequences, sorted(sequences), "rows in order")
    equal(len(sequences) + figure["rows_missed"], frames, "rows and those that were missed")
    equal(len(sequences), figure["rows_stored"], "rows stored, as the summary has it")
    equal((server.run()["state"], int(server.run()["rows_missed"])), ("ended", figure["rows_missed"]), "the hash of the run")


# ---- what is in it ----

def outcome_of(file, row):
    """As the stream has it, of the NeXus file."""
    frames = file["entry/sluice/frames"]
    outcomes, causes = [[name.decode() for name in frames[f"{kind}_names"][()]] for kind in ("outcome", "cause")]
    words = [outcomes[o] + (f"/{causes[c]}" if c else "") for o, c in zip(frames["outcome"][row], frames["cause"][row], strict=True)]
    return words[0] if len(set(words)) == 1 else ",".join(words)


def same_rows(file, rows):
    frames = file["entry/sluice/frames"]
    reasons = [name.decode() for name in frames["reason_names"][()]]
    equal(len(rows), len(frames["sequence"]), "rows")
    for k, row in enumerate(rows):
        for name in ("sequence", "frame_number", "timestamp", "keep"):
            equal(int(row[name.encode()]), int(frames[name][k]), f"{name} of row {k}")
        equal(numpy.float32(row[b"score"]), frames["score"][k], f"score of row {k}")
        equal(row[b"reason"].decode(), reasons[frames["reason"][k]], f"reason of row {k}")
        equal(int(row.get(b"image_index", -1)), frames["image_index"][k], f"image_index of row {k}")
        equal(row[b"outcome"].decode(), outcome_of(file, k), f"outcome of row {k}")


def decoded(value, description):
    """A result, by its description in the hash."""
    dtype, shape, form = description.split()
    shape = [-1 if part == "rows" else int(part) for part in shape.strip("()").split(",") if part]
    numbers = numpy.array(value.split(b","), dtype) if form == "text" else numpy.frombuffer(value, dtype)
    return numbers.reshape(shape)


def same_results(file, rows, about):
    names, group = about["results"].split(","), file["entry/results"]
    indices = file["entry/sluice/frames/result_index"][()]
    profiles = results.profiles(file)
    check(sum(row[b"keep"] == b"1" for row in rows) > 3, "too few frames are kept for a test")
    for name in names:
        data = profiles[name] if name in profiles else results.tables(group, name) if f"{name}_rows" in group else group[name][()]
        equal(len(data), int((indices >= 0).sum()), f"rows of {name}")
        for row, index in zip(rows, indices):
            if index < 0:
                continue
            value = decoded(row[name.encode()], about[f"result:{name}"])
            check(numpy.array_equal(value, data[index], equal_nan=True), f"{name} of row {index}: {value}, not {data[index]}")
    rejected = [row for row in rows if row[b"keep"] == b"0" and row[b"outcome"].startswith(b"vetoed")]
    check(rejected and all(name.encode() in row for row in rejected for name in names), "a rejected frame has no results")


@case("rows and results are those of the NeXus file of the same run, broken frames among them")
def _(folder):
    server = Server(folder)
    done, summary = acquire(
        folder, link={"kind": "shm"}, detector={"kind": "jungfrau", "modules": 2, "rows": None, "columns": None, "dark_frames": 16, "frames": 40,
                                               "pool": 7, "hit_fraction": 0.4},
        frontend={"drop": 0.0005, "fault_seed": 3}, stages=[
            {"correct": {"output": "photons_i16"}}, {"veto": {"threshold": 10, "min_pixels": 20}}, {"integrate": {"bins": 60}},
            {"peaks": {"min_peaks": 0, "max_peaks": 16}}, "reduce"],
        sinks=[{"nexus": {"path": str(folder / "run.nxs")}}, {"redis": {"address": str(server.path), "results":
               "profile,peaks,peaks_found,statistics"}}, "verify"])
    equal(done.process.returncode, 2, "exit status: packets were dropped")
    closes(summary, 112)
    rows, about = server.rows(), server.run()
    with h5py.File(folder / "run.nxs") as file:
        same_rows(file, rows)
        same_results(file, rows, about)
    kept, broken = summary["frames"]["kept"], summary["frames"]["broken"]
    check(broken, "no frame is broken")
    wanted = {"state": "ended", "frames": "56", "kept": str(kept), "rejected": str(56 - kept - broken), "broken": str(broken), "rows_stored": "56",
              "rows_missed": "0", "experiment": "experiment", "modules": "2", "result:peaks_found": "uint32 (1) text",
              "result:profile": "float32 (3,60) bytes", "result:peaks": "float32 (rows,8) bytes"}
    equal({key: about[key] for key in wanted}, wanted, "the hash of the run")
    check(about["started"] < about["ended"], f"times: {about}")
    equal(server.client.xrange(STREAM, about["first_id"], count=1)[0][1][b"sequence"], b"0", "the first row of the run")
    equal(server.entries()[-1][1], {b"end": b"1", b"frames": b"56", b"rows_missed": b"0"}, "the last entry")


@case("the hash of the run has its metadata, as they are now")
def _(folder):
    server = Server(folder)
    path = experiment(folder, detector={**SMALL, "frames": 0, "frame_rate_Hz": 100}, link={"kind": "shm"}, stages=[], sinks=sinks(folder, server),
                      metadata={"sample": "salt", "keys": {"current": "200 mA", "comment": "x"}})
    program = Program("run", path, folder=folder)
    run("ctl", "experiment", "wait", "running", "--timeout_s", "60", folder=folder)

    def fields():
        return {key: value for key, value in server.run().items() if key.startswith("metadata:")}

    equal(fields(), {"metadata:sample": "salt", "metadata:current": "200 mA", "metadata:comment": "x"}, "metadata of the beginning")
    run("ctl", "experiment", "metadata", "sample=sugar", "comment=", "title=y", folder=folder)
    wanted = {"metadata:sample": "sugar", "metadata:current": "200 mA", "metadata:title": "y"}
    wait_for("changes in the hash", lambda: fields() == wanted)
    run("ctl", "experiment", "stop", "--wait", folder=folder)
    program.ends(0)
    equal(fields(), wanted, "metadata of the end")


@case("the stream is cut to about max_rows; a second run goes on in the same stream, and the first id says where")
def _(folder):
    server = Server(folder)
    for _ in range(2):
        done, summary = acquire(folder, detector={**SMALL, "frames": 1500}, link={"kind": "shm"}, stages=[],
                                sinks=sinks(folder, server, max_rows=400))
        intact(done, summary, 1500)
    length = server.client.xlen(STREAM)
    check(400 <= length <= 500, f"{length} entries")
    rows = server.rows()
    equal([int(row[b"sequence"]) for row in rows], list(range(1501 - length, 1500)), "rows that are left")
    check(server.run()["first_id"] < server.entries()[0][0].decode(), "the first id is not of this run")
    equal(figures(summary)[0]["rows_stored"], 1500, "rows stored")


# ---- a server that fails ----

@case("servers that are killed and started again in mid-run: the run is intact, and what they missed is counted, with one message each")
def _(folder):
    durable = Server(folder, "a", "--appendonly", "yes", "--appendfsync", "always")
    forgetful = Server(folder, "b")
    program = started(folder, 1200, 500, sinks(folder, durable, forgetful, queue=50))
    wait_for("rows", lambda: forgetful.client.xlen(STREAM) > 200)
    durable.kill()
    forgetful.kill()
    time.sleep(0.5)
    durable.start()
    forgetful.start()
    program.ends(0)
    summary = read_summary(folder)
    intact(program, summary, 1200)
    for server, figure in zip((durable, forgetful), figures(summary), strict=True):
        each_once(server, 1200, figure)
        equal(figure["reconnections"], 1, "reconnections")
        for text in ("rows wait for it", "is connected again"):
            equal(len(lines(program, f"{server.path}: " if "wait" in text else f"{server.path} {text}")), 1, f"lines '{text}'")
    missed = [figure["rows_missed"] for figure in figures(summary)]
    check(0 < missed[0] < 900 and missed[1] > 200, f"missed: {missed}")
    check(lines(program, "rows that it had stored"), "it does not say that rows were lost")


@case("beside a nexus that leaves frames out, image_index is that of the file, and absent where the file has no image; nexus required or not")
def _(folder):
    server = Server(folder)
    for required in (True, False):
        server.client.flushall()
        nexus = {"path": str(folder / "run.nxs"), "dataset": "raw", "compression": "none", "on_slow": "prescale", "required": required}
        path = experiment(folder, detector={"kind": "pattern", "modules": 2, "rows": 256, "columns": 256, "frames": 300, "frame_rate_Hz": 400}, link={"kind": "shm"},
                          sinks=[{"nexus": nexus}, *sinks(folder, server)])
        Program("run", path, "--summary", folder / "summary.json", folder=folder, wrapper=on_slow_disk(10 * MB)).ends(2 if required else 0)
        rows = server.rows()
        with h5py.File(folder / "run.nxs") as file:
            index = file["entry/sluice/frames/image_index"][()].tolist()
            check(0 < index.count(-1) < len(index), f"{index.count(-1)} of {len(index)} frames were left out")
            equal([int(row.get(b"image_index", -1)) for row in rows], index, "image_index of the stream, beside the file")
            equal({int(row[b"keep"]) for row in rows}, {1}, "keep")
        equal(int(server.run()["kept"]), len(rows), "kept, says the hash")


@case("a stalled server slows nothing: neither the run, nor for long its end; rows that wait are stored when it goes on")
def _(folder):
    back, gone = Server(folder, "a"), Server(folder, "b")
    program = started(folder, 1000, 500, sinks(folder, back, gone, timeout_s=0.3))
    wait_for("rows", lambda: gone.client.xlen(STREAM) > 100 and back.client.xlen(STREAM) > 100)
    for server in (back, gone):
        server.program.send(signal.SIGSTOP)
    time.sleep(0.8)
    back.program.send(signal.SIGCONT)
    program.ends(0)
    gone.program.send(signal.SIGCONT)
    summary = read_summary(folder)
    intact(program, summary, 1000)
    each_once(back, 1000, figures(summary)[0])
    equal(figures(summary)[0]["rows_missed"], 0, "rows missed")
    check(summary["rates"]["seconds"] < 3 * 1000 / 500, f"the run took {summary['rates']['seconds']} s")
    for figure in figures(summary):
        equal(figure["stalls"], 0, f"puts of more than a second: {figure}")
    check(figures(summary)[1]["rows_missed"] > 300, f"of a server that is gone: {figures(summary)[1]}")
    equal(len(lines(program, "no answer for 0.3 s")), 2, "lines about it")


@case("a password from a file; a wrong one, and none: the run is intact, its rows are counted as missed, and the password is in no message")
def _(folder):
    server = Server(folder, password="Ae4Kq0ZtVw")
    for name, text, stored, says in (("right", "Ae4Kq0ZtVw", 50, None), ("wrong", "Xu7Yb3NmPq", 0, "WRONGPASS"), (None, None, 0, "set password_file")):
        option = {}
        if name:
            file = folder / name
            file.write_text(text + "\n")
            file.chmod(0o600)
            option["password_file"] = str(file)
        done, summary = acquire(folder, detector={**SMALL, "frames": 50}, link={"kind": "shm"}, stages=[], sinks=sinks(folder, server, **option))
        intact(done, summary, 50)
        figure = figures(summary)[0]
        equal((figure["rows_stored"], figure["rows_missed"]), (stored, 50 - stored), f"rows with the {name} password")
        equal(len(lines(done, says or "redis:")), 1 if says else 0, f"messages with the {name} password")
        for word in filter(None, (text, server.password)):
            check(word not in done.err() + done.out() + (folder / "summary.json").read_text(), "the password is told")


@case("no server: the run is intact, and its rows are counted as missed; a run that requires one does not begin")
def _(folder):
    has_sink()
    detector = {**SMALL, "frames": 100}
    done, summary = acquire(folder, detector=detector, link={"kind": "shm"}, stages=[], sinks=sinks(folder, folder / "none.sock"))
    intact(done, summary, 100)
    equal(figures(summary)[0]["rows_missed"], 100, "rows missed")
    equal(len(lines(done, "none.sock: No such file or directory; up to 10000 rows wait for it")), 1, "messages")
    path = experiment(folder, detector=detector, link={"kind": "shm"}, stages=[], sinks=sinks(folder, folder / "none.sock", required=True))
    run_fails("run", path, folder=folder, says=["none.sock: No such file or directory; start the server, or set required: false"])
    path = experiment(folder, detector=detector, link={"kind": "shm"}, stages=[], sinks=sinks(folder, folder / "none.sock", results="peaks"))
    run_fails("run", path, folder=folder, says=["results: no stage makes a small result 'peaks'"])


@case("required: frames whose rows a server did not acknowledge are unwritten, and all others are in the stream")
def _(folder):
    server = Server(folder, "a", "--appendonly", "yes", "--appendfsync", "always")
    program = started(folder, 500, 400, sinks(folder, server, required=True, timeout_s=0.3))
    wait_for("rows", lambda: server.client.xlen(STREAM) > 50)
    server.kill()
    time.sleep(0.2)
    server.start()
    program.ends(2)
    summary, figure = read_summary(folder), figures(read_summary(folder))[0]
    closes(summary, 1000)
    check(0 < figure["rows_missed"] < 500, f"missed: {figure}")
    equal(summary["ledger"]["total"]["outcomes"]["unwritten"], 2 * figure["rows_missed"], "module-frames unwritten")
    check(lines(program, "frames are refused until it is back"), "it does not say so")
    rows = len(server.rows())
    check(rows + figure["rows_missed"] in (500, 501), f"{rows} rows, and {figure}")  # the one under way may be there


main()
