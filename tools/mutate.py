#!/usr/bin/python3
"""mutate.py - change the code in small wrong ways, and count the changes that the tests find.

  tools/mutate.py                              five mutants of each folder of src, drawn by seed 1
  tools/mutate.py core link --seed 7 -n 20     twenty of each of two folders
  tools/mutate.py src/core/ring.c -n 50        of one file
  tools/mutate.py core --list                  what would be tried
  tools/mutate.py --check-equivalents          whether the list of equivalent mutants still fits the code

A mutant is built in a copy of the tree (build-mutants/tree; one for each worker, --jobs) and run against the unit tests of its folder: the suite of the file's own
name first, then the quick ones, then those of folders that use it (USERS). A failed case, a crash or a hang is a find. A mutant that
survives is tried again with sanitizers. Not counted are mutants that do not compile, those of which the compiler makes the same code,
and those of tests/mutants-equivalent.txt, each with its reason. Exit status 1: fewer found than --least percent.

Tests of mutants run in network, process and mount namespaces of their own where that is allowed (root), with limits on memory, file size and
time, in an empty folder; at the end of each, all processes that it started are killed.
"""

import argparse
import contextlib
import fcntl
import hashlib
import io
import json
import multiprocessing
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import mutants
import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
MESON = "/usr/bin/meson" if os.path.exists("/usr/bin/meson") else "meson"
PYTHON = "/usr/bin/python3"
NOT_PRODUCT = re.compile(r"_test\.c$|/testing\.h$|/conformance\.h$|oracle")
# Options of a build, where the tree has them. No debug information: equal code then makes equal objects.
OPTIONS = ["-Doptimization=1", "-Ddebug=false"]
OWN_OPTIONS = {"tests": "true", "nvcc": "disabled"}
SANITIZED = ["-Db_sanitize=address,undefined", "-Db_lundef=false"]
# Tests of folders whose code has its tests elsewhere: prefixes of their names, "system/NAME" for tests/system/NAME_test.py.
USERS = {
    "base": ["experiment/experiment", "system/bad_yaml"],
    "calibration": ["stage/correct", "sink/calibration", "system/calibrate"],
    "client": ["session/socket", "system/socket"],
    "cmd": [f"system/{name}" for name in ("cli", "bad_yaml", "doctor", "calibrate", "pingpong", "sparse", "transfers", "session", "socket",
                                          "signals", "plugin", "detectors", "frontend", "score", "outputs")],
    "codec": ["hdf5/images", "system/replay"],
    "control": ["system/frontend", "system/feroce", "system/native"],
    "control/tcp": ["control/conformance", "system/frontend", "system/peers"],
    "core": ["link/udp", "receiver/flow"],
    "detector": ["stage/conformance", "system/detectors"],
    "emulator": ["receiver/flow", "receiver/outcomes", "receiver/rejoin", "system/cli", "system/fault", "system/fault_kinds"],
    "endpoint": ["system/pingpong"],
    "experiment": ["session", "receiver/flow", "system/cli", "system/site", "system/session"],
    "feedback": ["sink/feedback", "system/feedback", "system/feedback_write"],
    "frontend": ["receiver/flow", "link/native", "system/fault"],
    "geometry": ["detector/replay", "system/recorded", "system/readers"],
    "gpu": ["unit", "receiver/gpu_loop", "receiver/gpu_faults"],
    "hdf5": ["sink/nexus", "detector/replay", "system/sparse"],
    "link": ["receiver/flow", "system/native", "system/packet"],
    "monitor": ["session/socket", "system/cli", "system/socket"],
    "net": ["link/udp", "endpoint", "system/peers"],
    "net/verbs": ["link/verbs", "system/verbs"],
    "net/xdp": ["link/xdp", "link/poller_xdp_race"],
    "plugin": ["experiment/plugins", "system/plugin"],
    "receiver": ["session/session", "system/cli", "system/events", "system/fault", "system/endless"],
    "receiver/assemble": ["receiver/flow", "receiver/outcomes"],
    "roce": ["endpoint", "link/udp"],
    "session": ["system/session", "system/socket", "system/outputs"],
    "session/folder": ["session/session_folder", "system/session"],
    "sink": ["system/readers", "system/replay", "system/sparse", "system/outputs", "system/stream2"],
    "stage": ["unit", "receiver/gpu_loop"],
    "unit": ["receiver/gpu_loop", "receiver/gpu_faults", "receiver/flow"],
}
# Code that runs only where there is such a file.
NEEDS = {"src/gpu/cuda/": "/dev/nvidiactl"}
MEMORY_BYTES, FILE_BYTES = 8 << 30, 2 << 30
SLOW_SUITE_S = 30  # longer ones run only if they have the name of the mutated file


class Suite:
    """One entry of `meson test`."""

    def __init__(self, name, command, env):
        self.name, self.command, self.env = name, command, env
        self.seconds = None  # of a run without a mutant; None: not yet run
        self.broken = None  # why it cannot be used

    def programs(self, build):
        """What ninja must make for it."""
        words = [os.path.normpath(word) for word in [*map(str, self.command), self.env.get("SLUICE", "")]]
        return [os.path.relpath(word, build) for word in words if word.startswith(f"{build}/")]


# ---- the copy ----

def project_files(source):
    listing = subprocess.run(["git", "-C", source, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, text=True, check=False)
    if listing.returncode == 0 and (source / ".git").exists():
        return {name for name in listing.stdout.split("\0") if name and (source / name).is_file()}
    return {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}


def copy_tree(source, tree):
    """Bring the copy up to date; files that are equal keep their time, so that little is built again."""
    wanted = project_files(source)
    for name in wanted:
        data = (source / name).read_bytes()
        to = tree / name
        if not to.is_file() or to.read_bytes() != data:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(data)
            shutil.copymode(source / name, to)
    for path in list(tree.rglob("*")):
        name = path.relative_to(tree).as_posix()
        if path.is_file() and not name.startswith("build") and name not in wanted:
            path.unlink()


# ---- running tests ----

def isolation():
    """A command line before a test's: no port, process or mount of the test is seen outside, and none outlives it."""
    if os.environ.get("SLUICE_MUTATE_ISOLATION") == "none":
        return []
    command = ["unshare", "--net", "--mount-proc", "--pid", "--fork", "--kill-child", "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    try:
        works = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        works = False
    return command if works else []


def limits(memory):
    def apply():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    return apply


def end_group(process):
    """End a program and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run_limited(command, env, seconds, memory):
    """Exit status (None: out of time) and stdout. The working folder and TMPDIR are empty ones, removed afterwards."""
    folder = tempfile.mkdtemp(prefix="slm-")
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, cwd=folder, env={**env, "TMPDIR": folder, "SLUICE_RUN_DIR": f"{folder}/run"},
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL, start_new_session=True,
                                   preexec_fn=limits(memory))
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end_group(process)
        out.seek(0)
        text = out.read(1 << 24).decode(errors="replace")
    shutil.rmtree(folder, ignore_errors=True)
    return status, text


class Build:
    """A build folder of the copy, and the tests in it."""

    patience = 15  # seconds that a suite may take besides six times what it takes without a mutant

    def __init__(self, tree, folder, options, env, memory, slower):
        self.tree, self.folder, self.options, self.env, self.memory, self.slower = tree, tree / folder, options, env, memory, slower
        self.prefix = isolation()
        self.suites, self.objects = [], {}

    def configure(self):
        if self.suites:
            return
        choices = self.tree / "meson_options.txt"
        known = choices.read_text() if choices.exists() else ""
        own = [f"-D{name}={value}" for name, value in OWN_OPTIONS.items() if f"'{name}'" in known]
        env = {**os.environ, **self.env}
        if not (self.folder / "build.ninja").exists():
            run = subprocess.run([MESON, "setup", self.folder, self.tree, *OPTIONS, *own, *self.options], env=env, capture_output=True, text=True,
                                 check=False)
            if run.returncode:
                sys.exit(f"error: cannot configure {self.folder}:\n{run.stdout[-2000:]}{run.stderr}")
        elif self.ninja(["build.ninja"], 600):
            sys.exit(f"error: cannot configure {self.folder} again: remove it and repeat")
        self.read()

    def read(self):
        """Tests, and the objects of each source file."""
        tests = subprocess.run([MESON, "introspect", "--tests", self.folder], capture_output=True, text=True, check=True)
        self.suites = [Suite(test["name"], test["cmd"], test["env"]) for test in json.loads(tests.stdout)]
        for path in sorted((self.tree / "tests/system").glob("*_test.py")):
            self.suites.append(Suite(f"system/{path.stem.removesuffix('_test')}", [PYTHON, path], {"SLUICE": str(self.folder / "sluice")}))
        for entry in json.loads((self.folder / "compile_commands.json").read_text()):
            source = os.path.relpath(os.path.normpath(os.path.join(entry["directory"], entry["file"])), self.tree)
            self.objects.setdefault(source, []).append(entry["output"])

    def ninja(self, targets, seconds):
        """None, or the output of a build that failed or took too long."""
        process = subprocess.Popen(["ninja", "-C", self.folder, *targets], env={**os.environ, **self.env}, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        try:
            text, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return f"the build took more than {seconds} s\n"
        finally:
            end_group(process)
        return text if process.returncode else None

    def fails(self, suite, seconds):
        """Why a suite fails, or None."""
        env = {**os.environ, **self.env, **suite.env, "MALLOC_PERTURB_": "165", "SLUICE_SITE": "", "PYTHONDONTWRITEBYTECODE": "1"}
        status, out = run_limited([*self.prefix, *map(str, suite.command)], env, seconds, self.memory)
        failed = [case.name for case in tap.read(out, status) if case.state == "failed"]
        return failed[-1] if failed else None  # how the program ended is the last

    def finds(self, suite):
        """Why a suite fails with a mutant, or None. A failed case must fail twice: on a busy machine one may fail without a mutant."""
        failed = self.fails(suite, self.limit(suite))
        return failed if failed in (None, "(crashed)", "(timed out)") else self.fails(suite, self.limit(suite))

    def measure(self, suite):
        """Run a suite without a mutant, twice if the first fails: how long it takes, or that it is of no use here."""
        if suite.seconds is not None or suite.broken:
            return
        problem = self.ninja(suite.programs(self.folder), 3600)
        if problem:
            sys.exit(f"error: {suite.name} does not build without a mutant:\n{problem[-3000:]}")
        for _ in range(2):
            start = time.monotonic()
            suite.broken = self.fails(suite, 3 * SLOW_SUITE_S)
            if not suite.broken:
                suite.seconds = time.monotonic() - start
                return
            if suite.broken == "(timed out)":
                break
        print(f"  note: {suite.name} is left out: {suite.broken} without a mutant", flush=True)

    def limit(self, suite):
        return self.patience * self.slower + 6 * suite.seconds

    def hashes_of(self, names):
        return [hashlib.sha256((self.folder / name).read_bytes()).digest() for name in names]


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


def folder_of(name, folders):
    """The longest folder that this path or test lies in."""
    return max((folder for folder in folders if name.startswith(f"{folder}/")), key=len, default=None)


def candidates(build, folders, only):
    """{folder: [Candidate]} of product files that this machine builds."""
    found = {folder: [] for folder in folders}
    for path in sorted((build.tree / "src").rglob("*.[ch]")):
        source = path.relative_to(build.tree).as_posix()
        folder = folder_of(source.removeprefix("src/"), folders)
        built = (source in build.objects or path.suffix == ".h") and not cannot_run(source)
        if folder and built and not NOT_PRODUCT.search(source) and wanted(source, folder, only):
            text = path.read_text()
            found[folder] += [Candidate(source, text, mutant) for mutant in mutants.mutants_of(text)]
    return {folder: list_of for folder, list_of in found.items() if list_of}


def cannot_run(source):
    return any(source.startswith(prefix) and not os.path.exists(file) for prefix, file in NEEDS.items())


def wanted(source, folder, only):
    return not only or folder in only or any(source == name or source.startswith(f"{name.rstrip('/')}/") for name in only)


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

class Score:
    def __init__(self):
        self.found, self.survivors, self.equivalent, self.same, self.broken = [], [], 0, 0, 0

    def count(self):
        return len(self.found) + len(self.survivors)

    def percent(self):
        return 100 * len(self.found) / self.count() if self.count() else 100.0


class Trial:
    def __init__(self, builds, arguments, end):
        self.builds, self.arguments, self.end = builds, arguments, end

    def suites_for(self, build, folder, folders, source):
        """Usable suites in the order of trial: of the file's name, then the folder's quick ones, then those of users."""
        own = [suite for suite in build.suites if folder_of(suite.name, folders) == folder]
        users = [suite for prefix in USERS.get(folder, []) for suite in build.suites
                 if suite not in own and (suite.name == prefix or suite.name.startswith(f"{prefix}/"))]
        if not own:
            own, users = users, []
        stem = source.removeprefix("src/").rsplit(".", 1)[0]
        for suite in own + users:
            build.measure(suite)
        named = [suite for suite in own if suite.name == stem]
        quick = sorted((suite for suite in own if suite not in named and not suite.broken and suite.seconds < SLOW_SUITE_S),
                       key=lambda suite: suite.seconds)
        return [suite for suite in named if not suite.broken] + quick + [
            suite for suite in users if not suite.broken and suite.seconds < SLOW_SUITE_S]

    def try_in(self, build, folder, folders, candidate, deadline):
        """(outcome, by) in one build: outcome is found, survived, same or broken."""
        path = build.tree / candidate.source
        build.configure()
        suites = self.suites_for(build, folder, folders, candidate.source)
        # Of a header, which has no object of its own, the test programs.
        made = build.objects.get(candidate.source, [])[:1] or sorted({name for suite in suites for name in suite.programs(build.folder)})
        if build.ninja(made, 3600):
            sys.exit(f"error: {candidate.source} does not build without a mutant")
        before = build.hashes_of(made)
        path.write_text(candidate.mutant.apply(candidate.text))
        try:
            if build.ninja(made, 600):
                return "broken", ""
            if build.hashes_of(made) == before:
                return "same", ""
            for suite in suites:
                if time.monotonic() > deadline:
                    return "survived", "out of time"
                if build.ninja(suite.programs(build.folder), 300):
                    return "broken", ""
                failed = build.finds(suite)
                if failed:
                    return "found", f"{suite.name}: {failed}"
            return "survived", "" if suites else "no test"
        finally:
            path.write_text(candidate.text)

    def test(self, folder, folders, candidate):
        outcome, by = "survived", ""
        for build in self.builds:
            outcome, by = self.try_in(build, folder, folders, candidate, time.monotonic() + self.arguments.mutant_seconds)
            if outcome != "survived":
                return outcome, by + (" (sanitized)" if build is not self.builds[0] else "")
        return outcome, by

    def folder(self, folder, folders, pool, equivalents):
        score = Score()
        for candidate in draw(pool, self.arguments.seed, folder):
            if score.count() >= self.arguments.number or time.monotonic() > self.end:
                break
            if equivalents.has(candidate):
                score.equivalent += 1
                continue
            start = time.monotonic()
            outcome, by = self.test(folder, folders, candidate)
            if outcome == "found":
                score.found.append(candidate)
            elif outcome == "survived":
                score.survivors.append(candidate)
            else:
                score.same += outcome == "same"
                score.broken += outcome == "broken"
            if outcome in ("found", "survived"):
                print(f"  {outcome:9}{candidate.source}:{candidate.line} {candidate.mutant.operator}"
                      f"{': ' + by if by else ''} ({time.monotonic() - start:.1f} s)", flush=True)
            if outcome == "survived":
                print("".join(f"      - {before}\n      + {after}\n" for before, after in candidate.change), end="", flush=True)
        return score


def builds_of(arguments, worker):
    """The builds of a worker, in a copy of the tree of its own."""
    tree = arguments.work / (f"tree-{worker}" if worker else "tree")
    copy_tree(arguments.source, tree)
    builds = [Build(tree, "build", [], {}, MEMORY_BYTES, 1)]
    if not arguments.plain:
        builds.append(Build(tree, "build-asan", SANITIZED, {
            "CC": "clang", "SLUICE_SANITIZER": "asan", "ASAN_OPTIONS": "detect_stack_use_after_return=1:hard_rss_limit_mb=4096",
            "UBSAN_OPTIONS": "halt_on_error=1"}, 0, 4))
    return builds


class Campaign:
    """All folders, one after the other, or shared out among workers. The mutants of a folder are drawn from its seed and tried in order by
    one worker, so that the number of workers changes nothing but the time."""

    def __init__(self, arguments, folders, pools, equivalents, end):
        self.arguments, self.folders, self.pools, self.equivalents, self.end = arguments, folders, pools, equivalents, end

    def score(self, trial, folder):
        """None: out of time."""
        if time.monotonic() > self.end:
            return None
        print(f"{folder}: {len(self.pools[folder])} mutants to draw from", flush=True)
        return trial.folder(folder, self.folders, self.pools[folder], self.equivalents)

    def alone(self, builds):
        trial = Trial(builds, self.arguments, self.end)
        scores = {folder: self.score(trial, folder) for folder in self.pools}
        return {folder: score for folder, score in scores.items() if score}

    def work(self, worker, todo, done):
        """A worker, in a process of its own: (folder, score, what it printed) of each folder that it takes; (None, why, "") at its end."""
        problem = None
        try:
            builds = builds_of(self.arguments, worker)
            builds[0].configure()
            trial = Trial(builds, self.arguments, self.end)
            while (folder := todo.get()) is not None:
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    score = self.score(trial, folder)
                done.put((folder, score, printed.getvalue()))
        except KeyboardInterrupt:
            problem = "interrupted"
        except SystemExit as why:
            problem = str(why)
        except Exception:  # noqa: BLE001  (shown by the parent, which ends)
            problem = traceback.format_exc()
        done.put((None, problem, ""))

    def with_workers(self, count):
        """What a worker prints about a folder is shown when the folder is done."""
        todo, done, scores = multiprocessing.Queue(), multiprocessing.Queue(), {}
        for folder in [*self.pools, *[None] * count]:
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
        finally:
            for worker in workers if count else []:
                worker.terminate()  # it puts the source back and ends its test
            for worker in workers:
                worker.join()
        return scores


def report(scores, arguments, missed):
    print(f"\nseed {arguments.seed}" + (f"; out of time before {', '.join(missed)}" if missed else ""))
    print(f"  {'folder':22}{'mutants':>8}{'found':>8}{'score':>8}   left out: equivalent, same code, not compiled")
    for folder, score in scores.items():
        print(f"  {folder:22}{score.count():8}{len(score.found):8}{score.percent():7.0f}%   {score.equivalent}, {score.same}, {score.broken}")
    total, found = sum(score.count() for score in scores.values()), sum(len(score.found) for score in scores.values())
    survivors = [candidate for score in scores.values() for candidate in score.survivors]
    if survivors:
        print("survivors:")
        print("".join(candidate.diff() for candidate in survivors), end="")
    percent = 100 * found / total if total else 0
    print(f"{found} of {total} mutants found, {percent:.1f} %; at least {arguments.least} % are asked for")
    return 0 if total and percent >= arguments.least and not missed else 1


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("only", nargs="*", help="folders of src (core, link) or files (src/core/ring.c); none: all")
    parser.add_argument("-s", "--seed", default="1", help="which mutants are drawn")
    parser.add_argument("-n", "--number", type=int, default=5, help="mutants for each folder that compile and are not equivalent")
    parser.add_argument("--seconds", type=float, default=3600, help="for everything; folders that are not reached fail the run")
    parser.add_argument("--mutant-seconds", type=float, default=180, help="for the tests of one mutant in one build")
    parser.add_argument("--patience", type=float, default=Build.patience, help="a suite hangs when it takes six times as long as without a mutant, and this many seconds more")
    parser.add_argument("--least", type=float, default=95, help="percent that must be found")
    parser.add_argument("-j", "--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="folders at a time, each with a copy of the tree")
    parser.add_argument("--plain", action="store_true", help="no second trial with sanitizers")
    parser.add_argument("--source", type=pathlib.Path, default=ROOT, help="the tree to take")
    parser.add_argument("--work", type=pathlib.Path, help="where to copy and build it (SOURCE/build-mutants)")
    parser.add_argument("--equivalents", type=pathlib.Path, help="SOURCE/tests/mutants-equivalent.txt")
    parser.add_argument("--check-equivalents", action="store_true", help="look for entries that fit no line any more; build nothing")
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
    equivalents = Equivalents(arguments.equivalents)
    if arguments.check_equivalents:
        problems = equivalents.stale(arguments.source)
        print("\n".join(problems) or f"{len(equivalents.reasons)} entries fit the code")
        return 1 if problems else 0
    Build.patience = arguments.patience
    lock = locked(arguments.work)
    end = time.monotonic() + arguments.seconds
    builds = builds_of(arguments, 0)
    builds[0].configure()
    folders = folders_of(builds[0].tree)
    pools = candidates(builds[0], folders, arguments.only)
    if not pools:
        sys.exit(f"error: no mutants of {' '.join(arguments.only) or 'src'}: name folders of src, or files of them")
    for prefix in [prefix for prefix in NEEDS if cannot_run(prefix) and (builds[0].tree / prefix).is_dir()]:
        print(f"skipped: {prefix}: there is no {NEEDS[prefix]} here")
    if arguments.list:
        for folder, pool in pools.items():
            print(f"{folder}: {len(pool)} mutants to draw from", flush=True)
            for _, candidate in zip(range(arguments.number), draw(pool, arguments.seed, folder)):
                print(candidate.diff(), end="")
        return 0
    workers = min(arguments.jobs, len(pools))
    campaign = Campaign(arguments, folders, pools, equivalents, end)
    scores = campaign.alone(builds) if workers == 1 else campaign.with_workers(workers)
    lock.close()
    return report({folder: scores[folder] for folder in pools if folder in scores}, arguments,
                  [folder for folder in pools if folder not in scores])


def interrupt(_number, _frame):
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGINT, interrupt)  # also where a shell has told us to ignore it
    signal.signal(signal.SIGTERM, interrupt)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
