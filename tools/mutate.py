#!/usr/bin/python3
"""mutate.py - change the code in small wrong ways, and count the changes that the tests find.

  tools/mutate.py                              five mutants of each folder of src, drawn by seed 1
  tools/mutate.py core link --seed 7 -n 20     twenty of each of two folders
  tools/mutate.py src/core/ring.c -n 50        of one file; src/core/ring.c:120 and ring.c:120-140: of these lines
  tools/mutate.py core --list                  what would be tried
  tools/mutate.py --piece 2/4 --json 2.json    every fourth folder, from the second on: for hosts that lend little time at once
  tools/mutate.py --merge 1.json 2.json        the report of several runs put together
  tools/mutate.py --check-equivalents          whether the list of equivalent mutants still fits the code

A mutant is built in a copy of the tree (build-mutants/tree; one for each worker, --jobs) and run against the unit tests of its folder:
the suite of the file's own name first, then the quick ones, then those of folders that use it (USERS). A failed case, a crash or a hang is
a find. A mutant that survives is tried again with sanitizers. Exit status 1: fewer found than --least percent.

Not counted, but reported, are mutants that do not compile, those of which the compiler makes the same code, those of
tests/mutants-equivalent.txt, each with its reason, and those whose tests did not end in time. Code that cannot run on this host
(NEEDS) has no mutants; the report says which and why.
"""

import argparse
import contextlib
import ctypes
import fcntl
import functools
import glob
import io
import json
import multiprocessing
import os
import pathlib
import random
import re
import signal
import socket
import sys
import time
import traceback

import mutant_report
import mutants
from mutant_builds import MEMORY_BYTES, SANITIZED, SLOW_SUITE_S, Build, OutOfTime, clone_tree, copy_tree, folder_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Tests of folders whose code has its tests elsewhere: prefixes of their names, "system/NAME" for tests/system/NAME_test.py,
# "system/NAME WORDS" for its cases that have these words in their names.
USERS = {
    "audit": ["sink/nexus", "sink/raw", "system/audit"],
    "base": ["experiment/experiment", "system/bad_yaml"],
    "calibration": ["stage/correct", "sink/calibration", "system/calibrate"],
    "client": ["session/socket", "system/socket"],
    "cmd": [f"system/{name}" for name in ("cli", "bad_yaml", "doctor", "calibrate", "pingpong", "sparse", "transfers", "session", "socket",
                                          "signals", "plugin", "detectors", "frontend", "score", "outputs", "raw")],
    "codec": ["hdf5/images", "system/replay"],
    "control": ["system/frontend", "system/feroce", "system/native"],
    "control/tcp": ["control/conformance", "system/frontend", "system/peers"],
    "convert": ["system/raw_container", "system/raw conversion", "system/raw eiger", "system/raw"],
    "core": ["link/udp", "receiver/flow"],
    "detector": ["stage/conformance", "system/detectors"],
    "emulator": ["receiver/flow", "receiver/outcomes", "receiver/rejoin", "system/cli", "system/fault", "system/fault_kinds"],
    "endpoint": ["system/pingpong"],
    "experiment": ["session", "receiver/flow", "system/cli", "system/site", "system/session"],
    "feedback": ["sink/feedback", "system/feedback", "system/feedback_write"],
    "frontend": ["receiver/flow", "link/native", "system/fault"],
    "geometry": ["detector/replay", "system/recorded", "system/readers"],
    "gpu": ["unit", "receiver/gpu_loop", "receiver/gpu_faults"],
    "hdf5": ["sink/nexus", "detector/replay", "system/sparse", "system/killed"],
    "link": ["receiver/flow", "system/native", "system/packet"],
    "monitor": ["session/socket", "system/cli", "system/socket"],
    "net": ["link/udp", "endpoint", "system/peers"],
    "net/verbs": ["link/verbs", "system/verbs"],
    "net/xdp": ["link/xdp", "link/poller_xdp_race"],
    "plugin": ["experiment/plugins", "system/plugin"],
    "raw": ["sink/raw", "convert", "system/raw_container"],
    "receiver": ["session/session", "system/cli", "system/events", "system/fault", "system/endless"],
    "receiver/assemble": ["receiver/flow", "receiver/outcomes"],
    "roce": ["endpoint", "link/udp"],
    "session": ["system/session", "system/socket", "system/outputs", "system/names"],
    "session/folder": ["session/session_folder", "system/session"],
    "session/points": ["session/socket", "system/bluesky"],
    "share": ["system/share_layout"],
    "sink": ["system/readers", "system/replay", "system/sparse", "system/outputs", "system/stream2"],
    "stage": ["unit", "receiver/gpu_loop"],
    "unit": ["receiver/gpu_loop", "receiver/gpu_faults", "receiver/flow"],
}


# ---- what this host can run ----

def has_cuda():
    return os.path.exists("/dev/nvidiactl")


def has_opencl():
    try:
        return bool(ctypes.CDLL("libOpenCL.so.1") and glob.glob("/etc/OpenCL/vendors/*.icd"))
    except OSError:
        return False


def has_xdp():
    """AF_XDP sockets, and the right to load programs for them."""
    try:
        socket.socket(socket.AF_XDP if hasattr(socket, "AF_XDP") else 44, socket.SOCK_RAW).close()
    except OSError:
        return False
    array_of_one = (ctypes.c_uint32 * 32)(2, 4, 4, 1)  # BPF_MAP_TYPE_ARRAY, bytes of key and value, entries
    fd = ctypes.CDLL(None).syscall(321, 0, array_of_one, 72)  # bpf(BPF_MAP_CREATE)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


# Code that runs only on some hosts: its files, whether this is one, and what is missing otherwise.
NEEDS = [
    (re.compile(r"src/gpu/cuda/"), has_cuda, "no NVIDIA GPU"),
    (re.compile(r"src/gpu/opencl/"), has_opencl, "no OpenCL device"),
    (re.compile(r"src/(unit/gpu/|stage/(.*/)?(gpu|\w+_gpu)\.c|gpu/table\.c)"), lambda: has_cuda() or has_opencl(),
     "neither an NVIDIA GPU nor an OpenCL device"),
    (re.compile(r"src/(net|link)/xdp/"), has_xdp, "no AF_XDP sockets, or no right to load programs for them"),
]


def missing_for(source, checked={}):  # noqa: B006  (the answers, for one run)
    """What this host lacks for the code of a file, or None."""
    for files, here, why in NEEDS:
        if files.match(source):
            if here not in checked:
                checked[here] = here()
            if not checked[here]:
                return why
    return None


# ---- what there is to mutate ----

class Candidate:
    def __init__(self, source, text, mutant):
        self.source, self.text, self.mutant = source, text, mutant
        self.change = mutant.change(text)
        self.line = mutant.line(text)

    def diff(self):
        lines = "".join(f"    - {before}\n    + {after}\n" for before, after in self.change)
        return f"  {self.source}:{self.line}: {self.mutant.operator}\n{lines}"


def folders_of(tree):
    """The folders of src/meson.build, and `cmd`, which it has beside them; all folders with C files where there is no such list."""
    build = tree / "src/meson.build"
    listed = re.search(r"^folders = \[\n(.*?)^\]", build.read_text() if build.exists() else "", re.M | re.S)
    if listed:
        names = re.findall(r"^\s*'([^']+)'", listed[1], re.M)
        return names + [name for name in ("cmd",) if (tree / "src" / name).is_dir()]
    return sorted({path.parent.relative_to(tree / "src").as_posix() for path in (tree / "src").rglob("*.c")} - {"."})


class Choice:
    """What the command line names: folders of src, files, folders of files, lines of files. Nothing: everything."""

    def __init__(self, names):
        self.names, self.lines = [], {}
        for name in names:
            lines = re.fullmatch(r"(.+\.[ch]):(\d+)(?:-(\d+))?", name)
            if lines:
                self.lines.setdefault(lines[1], set()).update(range(int(lines[2]), int(lines[3] or lines[2]) + 1))
            else:
                self.names.append(name.rstrip("/"))

    def has_file(self, source, folder):
        return not (self.names or self.lines) or source in self.lines or folder in self.names or any(
            source == name or source.startswith(f"{name}/") for name in self.names)

    def has(self, candidate):
        return candidate.source not in self.lines or candidate.line in self.lines[candidate.source]


def candidates(build, folders, choice):
    """{folder: [Candidate]} of product files that this machine builds, and {why: {file: mutants}} of those that cannot run on it."""
    found, left_out = {folder: [] for folder in folders}, {}
    for path in sorted((build.tree / "src").rglob("*.[ch]")):
        source = path.relative_to(build.tree).as_posix()
        folder = folder_of(source.removeprefix("src/"), folders)
        built = source in build.objects or path.suffix == ".h"
        if not folder or not built or mutant_report.NOT_PRODUCT.search(source) or not choice.has_file(source, folder):
            continue
        text = path.read_text()
        of_file = [candidate for candidate in (Candidate(source, text, mutant) for mutant in mutants.mutants_of(text)) if choice.has(candidate)]
        why = missing_for(source)
        if why:
            left_out.setdefault(why, {})[source] = len(of_file)
        else:
            found[folder] += of_file
    return {folder: list_of for folder, list_of in found.items() if list_of}, left_out


def draw(pool, seed, folder):
    """All candidates in an order by seed: operators take turns, so that the many constants do not crowd out the others."""
    chance = random.Random(f"{seed}/{folder}")
    piles = {operator: [c for c in pool if c.mutant.operator == operator] for operator in mutants.OPERATORS}
    for pile in piles.values():
        chance.shuffle(pile)
    while any(piles.values()):
        turn = [operator for operator in mutants.OPERATORS if piles[operator]]
        chance.shuffle(turn)
        for operator in turn:
            yield piles[operator].pop()


class Equivalents:
    """Entries separated by empty lines: a path, lines "- before" and "+ after" as a report shows them, then the reason."""

    def __init__(self, path):
        self.reasons, self.path = {}, path
        text = path.read_text() if path.exists() else ""
        for entry in re.split(r"\n\s*\n", text):
            lines = [line.strip() for line in entry.splitlines() if line.strip() and not line.startswith("#")]
            if lines:
                self.add(lines)

    def add(self, lines):
        before = [line[1:].strip() for line in lines[1:] if re.match(r"-( |$)", line)]
        after = [line[1:].strip() for line in lines[1:] if re.match(r"\+( |$)", line)]
        reason = " ".join(line for line in lines[1:] if not re.match(r"[-+]( |$)", line))
        if not before or len(before) != len(after) or not reason:
            sys.exit(f"error: {self.path}: the entry of {lines[0]} needs lines '- before', as many '+ after', and a reason")
        self.reasons[(lines[0], tuple(zip(before, after)))] = reason

    def has(self, candidate):
        return (candidate.source, candidate.change) in self.reasons

    def stale(self, source):
        """Entries that name no mutant of the code."""
        known = {}
        problems = []
        for name, change in self.reasons:
            if name not in known:
                path = source / name
                text = path.read_text() if path.is_file() else ""
                known[name] = {mutant.change(text) for mutant in mutants.mutants_of(text)}
            if change not in known[name]:
                problems.append(f"{name}: no such mutant: {change[0][0]}")
        return problems


# ---- the trial ----

class Result:
    """A mutant that was tried: found (by which case), survived, or undecided (why); or one that does not count, and why."""

    def __init__(self, candidate, outcome, by="", seconds=0.0):
        self.candidate, self.outcome, self.by, self.seconds = candidate, outcome, by, seconds

    def data(self):
        c = self.candidate
        return {"file": c.source, "line": c.line, "operator": c.mutant.operator, "change": [list(pair) for pair in c.change],
                "outcome": self.outcome, "by": self.by, "seconds": round(self.seconds, 1)}


class Score:
    """Of a folder."""

    def __init__(self, pool):
        self.results, self.not_counted = [], []
        self.files = {candidate.source for candidate in pool}
        self.left_out = {}  # suite: why it is of no use here
        self.whole = True  # False: the time was over before all were tried

    def data(self):
        return mutant_report.folder_data([result.data() for result in self.results + self.not_counted], self.files, self.left_out)


def chosen_suites(build, folder, folders, arguments):
    """Suites of the folder itself, and those of its users."""
    own, users = build.suites_of(folder, folders, USERS)
    return own, [] if own and arguments.own else users


class Trial:
    def __init__(self, builds, arguments):
        self.builds, self.arguments = builds, arguments

    def suites_for(self, build, folder, folders, source):
        """Usable suites in the order of trial: of the file's name, of the folder that it lies in, the other quick ones, those of users."""
        own, users = chosen_suites(build, folder, folders, self.arguments)
        if not own:
            own, users = users, []
        stem = source.removeprefix("src/").rsplit(".", 1)[0]
        beside = stem.rpartition("/")[0] + "/"  # may lie within the folder: stage/tracks/
        for suite in own + users:
            build.measure(suite)
        named = [suite for suite in own if suite.name == stem]
        quick = sorted((suite for suite in own if suite not in named and not suite.broken and suite.seconds < SLOW_SUITE_S),
                       key=lambda suite: (not suite.name.startswith(beside), suite.seconds))
        return [suite for suite in named if not suite.broken] + quick + [
            suite for suite in users if not suite.broken and suite.seconds < SLOW_SUITE_S]

    def try_in(self, build, folder, folders, candidate):
        """(outcome, by) in one build: outcome is found, survived, same code or not compiled."""
        path = build.tree / candidate.source
        build.configure()
        suites = self.suites_for(build, folder, folders, candidate.source)
        # Of a header, which has no object of its own, the test programs.
        made = build.objects.get(candidate.source, [])[:1] or sorted({name for suite in suites for name in suite.programs(build.folder)})
        if build.ninja(made, 3600):
            sys.exit(f"error: {candidate.source} does not build without a mutant")
        before = build.hashes_of(made)
        deadline = time.monotonic() + self.arguments.mutant_seconds
        path.write_text(candidate.mutant.apply(candidate.text))
        try:
            if build.ninja(made, 600, deadline):
                return "not compiled", ""
            if build.hashes_of(made) == before:
                return "same code", ""
            for suite in suites:
                if build.ninja(suite.programs(build.folder), 300, deadline):
                    return "not compiled", ""
                failed = build.finds(suite, deadline)
                if failed:
                    return "found", f"{suite.name}: {failed}"
            return "survived", "" if suites else "no test"
        finally:
            path.write_text(candidate.text)

    def test(self, folder, folders, candidate):
        outcome, by = "survived", ""
        for build in self.builds:
            try:
                outcome, by = self.try_in(build, folder, folders, candidate)
            except OutOfTime as why:
                if time.monotonic() >= Build.end:
                    raise
                return "undecided", f"more than {self.arguments.mutant_seconds:g} s, {why}"
            if outcome != "survived":
                return outcome, by + (" (sanitized)" if build is not self.builds[0] else "")
        return outcome, by

    def folder(self, folder, folders, pool, equivalents):
        score = Score(pool)
        for candidate in draw(pool, self.arguments.seed, folder):
            if len(score.results) >= self.arguments.number:
                break
            if equivalents.has(candidate):
                score.not_counted.append(Result(candidate, "equivalent"))
                continue
            start = time.monotonic()
            try:
                outcome, by = self.test(folder, folders, candidate)
            except OutOfTime:
                score.whole = False
                break
            if outcome in ("same code", "not compiled"):
                score.not_counted.append(Result(candidate, outcome))
                continue
            score.results.append(Result(candidate, outcome, by, time.monotonic() - start))
            print(f"  {outcome:10}{candidate.source}:{candidate.line} {candidate.mutant.operator}"
                  f"{': ' + by if by else ''} ({time.monotonic() - start:.1f} s)", flush=True)
            if outcome != "found":
                print("".join(f"      - {before}\n      + {after}\n" for before, after in candidate.change), end="", flush=True)
        score.left_out = {suite.name: suite.broken for build in self.builds for suite in build.suites if suite.broken}
        return score


def builds_of(arguments, worker, bring):
    """The builds of a worker, in a copy of the tree of its own; bring: copy what has changed in the source."""
    tree = arguments.work / (f"tree-{worker}" if worker else "tree")
    if bring:
        copy_tree(arguments.source, tree)
    builds = [Build(tree, "build", [], {}, MEMORY_BYTES, 1)]
    if not arguments.plain:
        builds.append(Build(tree, "build-asan", SANITIZED, {
            "CC": "clang", "SLUICE_SANITIZER": "asan", "ASAN_OPTIONS": "detect_stack_use_after_return=1:hard_rss_limit_mb=4096",
            "UBSAN_OPTIONS": "halt_on_error=1"}, 0, 4))
    return builds


def measured(build, suite):
    build.measure(suite, built=True)
    return suite.name, (suite.seconds, suite.broken)


class Campaign:
    """All folders, one after the other, or shared out among workers. The mutants of a folder are drawn from its seed and tried in order by
    one worker, so that the number of workers changes nothing but the time."""

    def __init__(self, arguments, folders, pools, equivalents, tell):
        self.arguments, self.folders, self.pools, self.equivalents, self.tell = arguments, folders, pools, equivalents, tell
        self.measured = {}  # suite: (seconds, why it is broken), of the plain build, for all workers

    def score(self, trial, folder):
        """None: out of time."""
        if time.monotonic() > Build.end:
            return None
        print(f"{folder}: {len(self.pools[folder])} mutants to draw from", flush=True)
        return trial.folder(folder, self.folders, self.pools[folder], self.equivalents)

    def alone(self, builds):
        trial, scores = Trial(builds, self.arguments), {}
        for folder in self.pools:
            score = self.score(trial, folder)
            if score:
                scores[folder] = score
                self.tell(scores)
        return scores

    def suites(self, build, folder):
        return sum(chosen_suites(build, folder, self.folders, self.arguments), [])

    def build_all(self, build):
        """What tests need, by all processors at once, before workers get copies of it."""
        programs = {name for folder in self.pools for suite in self.suites(build, folder) for name in suite.programs(build.folder)}
        problem = build.ninja(sorted(programs), 3600)
        if problem:
            sys.exit(f"error: it does not build without a mutant:\n{problem[-3000:]}")

    def measure_all(self, build, count):
        """Run every suite once without a mutant, `count` at a time: each worker alone would do that for its folders, one by one."""
        suites = {suite.name: suite for folder in self.pools for suite in self.suites(build, folder)}
        pool = multiprocessing.Pool(count)
        self.measured = dict(pool.map(functools.partial(measured, build), suites.values(), chunksize=1))
        pool.close()
        pool.join()

    def work(self, worker, todo, done):
        """A worker, in a process of its own: (folder, score, what it printed) of each folder that it takes; (None, why, "") at its end."""
        problem = None
        try:
            builds = builds_of(self.arguments, worker, False)
            builds[0].configure()
            for suite in builds[0].suites:
                suite.seconds, suite.broken = self.measured.get(suite.name, (None, None))
            trial = Trial(builds, self.arguments)
            while (folder := todo.get()) is not None:
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    score = self.score(trial, folder)
                done.put((folder, score, printed.getvalue()))
        except OutOfTime:
            pass
        except KeyboardInterrupt:
            problem = "interrupted"
        except SystemExit as why:
            problem = str(why)
        except Exception:  # noqa: BLE001  (shown by the parent, which ends)
            problem = traceback.format_exc()
        done.put((None, problem, ""))

    def longest_first(self, build):
        """A folder that a worker takes last should not be one that many suites test."""
        return sorted(self.pools, key=lambda folder: -len(self.suites(build, folder)))

    def with_workers(self, count, build):
        """What a worker prints about a folder is shown when the folder is done."""
        self.build_all(build)
        self.measure_all(build, count)
        copies = [clone_tree(build.tree, build.tree.with_name(f"tree-{i}")) for i in range(1, count)]
        if any([copy.wait() for copy in copies]):
            sys.exit(f"error: {build.tree} cannot be copied for {count} workers")
        Build.processes = max(2, (os.cpu_count() or 1) // count)
        todo, done, scores = multiprocessing.Queue(), multiprocessing.Queue(), {}
        for folder in [*self.longest_first(build), *[None] * count]:
            todo.put(folder)
        workers = [multiprocessing.Process(target=self.work, args=(i, todo, done)) for i in range(count)]
        for worker in workers:
            worker.start()
        try:
            while count:
                folder, score, printed = done.get()
                if folder is None and score:
                    sys.exit(score)
                count -= folder is None
                print(printed, end="", flush=True)
                if score:
                    scores[folder] = score
                    self.tell(scores)
        finally:
            for worker in workers if count else []:
                worker.terminate()  # it puts the source back and ends its test
            for worker in workers:
                worker.join()
        return scores


# ---- the report ----

class Report:
    """What the scores of folders are as a document (mutant_report.py)."""

    def __init__(self, arguments, pools, left_out):
        self.arguments, self.pools, self.left_out = arguments, pools, left_out
        self.product = mutant_report.fingerprint(arguments.source)

    def data(self, scores):
        run = {"seed": self.arguments.seed, "piece": list(self.arguments.piece), "only": self.arguments.only, "number": self.arguments.number,
               "sanitizers": not self.arguments.plain, "cores": len(os.sched_getaffinity(0)),
               "whole": [folder for folder in self.pools if folder in scores and scores[folder].whole],
               "out_of_time": [folder for folder in self.pools if folder not in scores or not scores[folder].whole]}
        return mutant_report.document(self.product, [run], {folder: scores[folder].data() for folder in self.pools if folder in scores},
                                      self.left_out)

    def write(self, scores):
        """The file of --json, after each folder: also what a run had found that was killed."""
        if self.arguments.json:
            write_json(self.arguments.json, self.data(scores))

    def show(self, scores):
        return mutant_report.show(self.data(scores), self.arguments.least)


def write_json(path, data):
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(data, indent=1) + "\n")
    new.replace(path)


def merge(arguments):
    try:
        data = mutant_report.merge(arguments.merge)
    except mutant_report.Unusable as why:
        sys.exit(f"error: {why}")
    if arguments.json:
        write_json(arguments.json, data)
    return mutant_report.show(data, arguments.least)


def piece(text):
    """I/N: the I-th of N pieces."""
    number, _, of = text.partition("/")
    if not (number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"'{text}' is no piece: give I/N with I from 1 to N, as in 2/4")
    return int(number), int(of)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("only", nargs="*",
                        help="folders of src (core, link), files (src/core/ring.c) or lines of files (src/core/ring.c:120-140); none: all")
    parser.add_argument("-s", "--seed", default="1", help="which mutants are drawn")
    parser.add_argument("-n", "--number", type=int, default=5, help="mutants for each folder that compile and are not equivalent")
    parser.add_argument("--seconds", type=float, default=3600, help="for everything; folders that are not reached, or not all of, fail the run")
    parser.add_argument("--mutant-seconds", type=float, default=180, help="for one mutant in one build; one that takes longer is undecided")
    parser.add_argument("--patience", type=float, default=Build.patience,
                        help="a suite hangs when it takes six times as long as without a mutant, and this many seconds more")
    parser.add_argument("--least", type=float, default=95, help="percent that must be found")
    parser.add_argument("-j", "--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="folders at a time, each with a copy of the tree")
    parser.add_argument("--own", action="store_true", help="only tests of the mutant's own folder, where it has some; not those of its users")
    parser.add_argument("--plain", action="store_true", help="no second trial with sanitizers")
    parser.add_argument("--json", type=pathlib.Path, help="write all results to this file, too")
    parser.add_argument("--source", type=pathlib.Path, default=ROOT, help="the tree to take")
    parser.add_argument("--work", type=pathlib.Path, help="where to copy and build it (SOURCE/build-mutants)")
    parser.add_argument("--equivalents", type=pathlib.Path, help="SOURCE/tests/mutants-equivalent.txt")
    parser.add_argument("--check-equivalents", action="store_true", help="look for entries that fit no line any more; build nothing")
    parser.add_argument("--piece", type=piece, default=(1, 1), metavar="I/N", help="every N-th folder, beginning with the I-th")
    parser.add_argument("--merge", nargs="+", type=pathlib.Path, metavar="FILE", help="put together what --json has written; test nothing")
    parser.add_argument("--list", action="store_true", help="show the mutants that are drawn; test nothing")
    arguments = parser.parse_args()
    arguments.source = arguments.source.resolve()
    arguments.work = (arguments.work or arguments.source / "build-mutants").resolve()
    arguments.equivalents = arguments.equivalents or arguments.source / "tests/mutants-equivalent.txt"
    return arguments


def locked(work):
    """One run at a time has the copy."""
    work.mkdir(parents=True, exist_ok=True)
    lock = open(work / "lock", "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(f"error: another run has {work}: wait for it, or name another folder with --work")
    return lock


def main():
    arguments = parse_arguments()
    if arguments.merge:
        return merge(arguments)
    equivalents = Equivalents(arguments.equivalents)
    if arguments.check_equivalents:
        problems = equivalents.stale(arguments.source)
        print("\n".join(problems) or f"{len(equivalents.reasons)} entries fit the code")
        return 1 if problems else 0
    Build.parts = sorted({name for names in USERS.values() for name in names if " " in name})
    Build.patience, Build.end = arguments.patience, time.monotonic() + arguments.seconds
    lock = locked(arguments.work)
    builds = builds_of(arguments, 0, True)
    builds[0].configure()
    folders = folders_of(builds[0].tree)
    pools, left_out = candidates(builds[0], folders, Choice(arguments.only))
    pools = piece_of(arguments, pools)
    for why, files in left_out.items():
        print(f"not tried, {why}: {', '.join(files)}")
    if not pools:
        sys.exit(f"error: no mutants of {' '.join(arguments.only) or 'src'}: name folders of src, files or lines of them")
    if arguments.list:
        show_drawn(arguments, pools)
        return 0
    workers, report = min(arguments.jobs, len(pools)), Report(arguments, pools, left_out)
    campaign = Campaign(arguments, folders, pools, equivalents, report.write)
    try:
        scores = campaign.alone(builds) if workers == 1 else campaign.with_workers(workers, builds[0])
    except OutOfTime as why:
        sys.exit(f"error: {arguments.seconds:g} s were not enough to begin: {why}")
    lock.close()
    return report.show(scores)


def piece_of(arguments, pools):
    """The folders of --piece."""
    number, of = arguments.piece
    if pools and of > len(pools):
        sys.exit(f"error: --piece {number}/{of}: there are mutants of {len(pools)} folders alone: take no more pieces than that")
    return {folder: pools[folder] for folder in list(pools)[number - 1::of]}


def show_drawn(arguments, pools):
    for folder, pool in pools.items():
        print(f"{folder}: {len(pool)} mutants to draw from", flush=True)
        for _, candidate in zip(range(arguments.number), draw(pool, arguments.seed, folder)):
            print(candidate.diff(), end="")


def interrupt(_number, _frame):
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGINT, interrupt)  # also where a shell has told us to ignore it
    signal.signal(signal.SIGTERM, interrupt)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
