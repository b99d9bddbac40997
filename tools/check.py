#!/usr/bin/python3
"""check.py - build every variant, run every test that this machine can run, and count the cases.

  tools/check.py                                        everything
  tools/check.py --only unit,lint --build normal        a part
  tools/check.py --match ring                           what has "ring" in its name
  tools/check.py --long                                 with the long campaigns: make check-long
  tools/check.py --timings                              and which programs took longest
  tools/check.py --again                                and give programs that failed a second try, alone: CI does

Parts: unit (the C tests), system (tests/system/*_test.py), lint (tests/lint), model (tests/model, by spin), fuzz
(libFuzzer, a short run each).
Builds: normal, asan (address and undefined behaviour), tsan (what threads share). Every test program speaks TAP on
stdout; the last line here is "N passed, N failed, N skipped" and counts cases, not programs.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import tap
from lanes import BACKGROUND_NICE, RUNNING, Cost, Interrupted, Slots, start, stop, stop_all, wait_for  # noqa: F401  (some are for check_interop.py)

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"  # Debian's, which has numpy and h5py; the first on the path may be another
PARTS = ("unit", "system", "lint", "model", "fuzz")
# What takes a minute or more begins first, so that no core waits for it at the end. Not those of system tests that keep all
# cores busy: they would be in each other's way.
LONG = {"receiver/gpu", "system/keeper", "system/opencl", "model/device_ring"}
SYSTEM_TIMEOUT_S, LINT_TIMEOUT_S, MODEL_TIMEOUT_S = 300, 300, 900
NOT_A_LINT = ("core.sh", "lint.py", "options_page.py")  # the last needs the program: it runs as docs/options
# In a system test whose code has unit tests with sanitizers, or other system tests: `make check-long` runs it with them.
LONG_SANITIZED = "# with sanitizers in check-long"
# Unit tests that take half a minute with sanitizers, likewise.
LONG_SANITIZED_UNIT = ("docs/pages", "receiver/gpu", "stage/rings/oracle", "detector/jungfrau/jungfrau")
INTERPRETER = {".py": PYTHON, ".sh": "/bin/sh"}
# System tests that run once more with other threads in the program: (name, cases with this in their name, environment).
AGAIN_WITH = {"senders": ("assemble", "32 modules", {"SLUICE_SENDERS": "3"})}
# Of sanitized builds: compiled in a third of the time, and hardly slower; no GPU will see them. Line numbers are all that a
# report of a sanitizer needs of debug information, and lld links in a quarter of the time.
QUICK = ("-Doptimization=1", "-Dnvcc=disabled", *(["-Dc_link_args=-fuse-ld=lld"] if shutil.which("ld.lld") else []))
# PoCL, which runs kernels on the CPU: what one test has had compiled the next finds, in any build.
POCL = {"POCL_CACHE_DIR": str(ROOT / "build/pocl")}
# What system tests need of a build: the normal one has it all.
SYSTEM_TARGETS = {"normal": ["all", "tests/dissect/roce_pcap", "tests/raw/raw_file"], "asan": ["sluice"], "tsan": []}
BUILT = []  # (build, cost) of each call of build.sh
# A second try is for a program that had too little of a busy machine. More failed programs than this are no accident, and what a
# sanitizer has found was there, however seldom it shows.
MOST_AGAIN = 5
SANITIZER_REPORT = re.compile(r"(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|runtime error:")


class Build:
    """A variant: its folder, its meson options, its compiler, and what runs in it."""

    def __init__(self, name, folder, options, slower=1, env=None, compiler=None):
        self.name, self.folder, self.options, self.slower = name, ROOT / folder, options, slower
        self.env = env or {}
        self.compiler = {"CC": compiler} if compiler else {}
        self.prefix = no_aslr() if slower > 1 else []

    def wants(self, name):
        """Whether a C test runs in this build: TSan looks at what threads share, and at nothing else."""
        shared = ("core/", "gpu/", "receiver/", "feedback/", "emulator/", "experiment/", "session/", "unit/", "share/", "stage/python/", "service/image/", "flight/", "base/bell", "base/queue", "base/sequence", "link/poller",
                  "bench/gpu/ingest")
        if self.name == "asan" and name in LONG_SANITIZED_UNIT and "SLUICE_LONG" not in os.environ:
            return False
        return self.name != "tsan" or name.startswith(shared)


class Job:
    """One test program, in one build. A job that computes takes two slots, a job that waits half of its time takes one."""

    def __init__(self, build, name, command, env, timeout_s, slots=2, nice=0):
        self.build, self.name, self.command, self.timeout_s = build, name, command, timeout_s
        self.env, self.slots, self.nice = env, slots, nice


class Result:
    def __init__(self, job, cases, stderr, cost, notes=()):
        self.job, self.cases, self.stderr, self.cost = job, cases, stderr, cost
        self.notes = notes  # what the program wants to be shown, whatever the result: "# note: ..."

    def of(self, state):
        return [case for case in self.cases if case.state == state]


def no_aslr():
    """gcc 12's sanitizers stumble over kernels that randomize more address bits than they know of."""
    command = ["setarch", "-R"]
    try:
        return command if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0 else []
    except OSError:
        return []


def builds():
    return [
        Build("normal", "build", ["-Dtests=true"]),
        # Of clang, so that the fuzz targets are of the same build.
        Build("asan", "build-asan", ["-Dtests=true", "-Dfuzz=true", *QUICK, "-Db_sanitize=address,undefined", "-Db_lundef=false",
                                     "-Dc_args=['-g1','-fno-sanitize-recover=all','-fsanitize=fuzzer-no-link']"], 4,
              {"SLUICE_SANITIZER": "asan", "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
               "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}, "clang"),
        Build("tsan", "build-tsan", ["-Dtests=true", *QUICK, "-Db_sanitize=thread", "-Db_lundef=false", "-Dc_args=-g1"], 8,
              {"SLUICE_SANITIZER": "tsan", "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}),
    ]


# ---- running one program ----

def execute(job):
    """Run it in a fresh TMPDIR; exit status (None: timed out), stdout, stderr, cost. Files rather than pipes: a child that
    outlives its parent would keep a pipe open."""
    folder = tempfile.mkdtemp(prefix="sluice-")  # short: Unix sockets have 107 characters for their path
    # SLUICE_SITE, SLUICE_RUN_DIR: a site file and sessions of this host must not change what the tests see.
    env = {**POCL, **os.environ, **job.build.env, **job.env, "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1", "SLUICE_SITE": "",
           "SLUICE_RUN_DIR": f"{folder}/run"}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        status, cost = wait_for(start([*job.build.prefix, *job.command], job.nice, cwd=ROOT, env=env, stdout=out, stderr=err),
                                job.timeout_s * job.build.slower)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    shutil.rmtree(folder, ignore_errors=True)
    return status, texts[0], texts[1], cost


def run_tap(job):
    status, out, err, cost = execute(job)
    notes = [line.removeprefix("# note: ") for line in out.splitlines() if line.startswith("# note: ")]
    return Result(job, tap.read(out, status), err, cost, notes)


def run_fuzz(job):
    """A fuzz target is one case: it ran for its time and found nothing."""
    status, out, err, cost = execute(job)
    text = "" if status == 0 else "timed out\n" if status is None else "".join(
        line + "\n" for line in (out + err).splitlines()[-60:])
    return Result(job, [tap.Case("passed" if status == 0 else "failed", "finds nothing", text)], "", cost)


# ---- what there is to run ----

def build_all(build, targets=(), nice=0):
    """Configure a variant if need be, and build these targets, or all that is built by default; the output when that fails."""
    command = [ROOT / "tools/build.sh", build.folder.relative_to(ROOT), *build.options, "--", *targets]
    with tempfile.TemporaryFile() as errors:
        # A pipe even on a terminal: other programs print beside this one, and ninja would write over their lines.
        process = start(command, nice, cwd=ROOT, env={**os.environ, **build.compiler}, stdout=subprocess.PIPE, stderr=errors,
                        text=True, errors="replace")
        with process.stdout:
            for line in process.stdout:
                print(line, end="", flush=True)
        status, cost = wait_for(process)
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    BUILT.append((build, cost))
    sys.stderr.write(text if status == 0 else "")
    return None if status == 0 else text or "the build failed\n"


def introspect(build):
    run = subprocess.run(["/usr/bin/meson" if os.path.exists("/usr/bin/meson") else "meson", "introspect", "--tests",
                          build.folder], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def unit_jobs(build):
    return [Job(build, test["name"], test["cmd"], test["env"], test["timeout"])
            for test in introspect(build) if build.wants(test["name"])]


def programs_of(build, jobs):
    """What ninja must build for these jobs: the programs that they start, or name, and that are in the build's folder."""
    names = {os.path.normpath(word) for job in jobs for word in [*map(str, job.command), job.env.get("SLUICE", "")]}
    return sorted(os.path.relpath(name, build.folder) for name in names if name.startswith(f"{build.folder}/"))


def system_jobs(build):
    """tests/system/*_test.py, in the builds that they are for."""
    env = {"SLUICE": str(build.folder / "sluice")}
    if (build.folder / "sluice-guarded").exists():  # not in builds with a sanitizer
        env["SLUICE_GUARDED"] = str(build.folder / "sluice-guarded")
    jobs = []
    for path in sorted((ROOT / "tests/system").glob("*_test.py")):
        lines = path.read_text().splitlines()
        sanitized = "# normal build only" not in lines and (LONG_SANITIZED not in lines or "SLUICE_LONG" in os.environ)
        if build.name == "normal" or (build.name == "asan" and sanitized):
            jobs.append(Job(build, f"system/{path.stem.removesuffix('_test')}", [PYTHON, path], env, SYSTEM_TIMEOUT_S, slots=1))
    for name, (test, match, more) in AGAIN_WITH.items() if build.name == "normal" else ():
        command = [PYTHON, ROOT / f"tests/system/{test}_test.py", match]
        jobs.append(Job(build, f"system/{test} {name}", command, {**env, **more}, SYSTEM_TIMEOUT_S, slots=1))
    return jobs


def lint_jobs(build):
    scripts = sorted(path for path in (ROOT / "tests/lint").iterdir()
                     if path.suffix in INTERPRETER and path.name not in NOT_A_LINT)
    return [Job(build, f"lint/{path.stem}", [INTERPRETER[path.suffix], path, ROOT], {}, LINT_TIMEOUT_S)
            for path in scripts]


def model_jobs(build):
    """Each model by itself, and the names that models and code share."""
    script = ROOT / "tests/model/model.py"
    models = sorted((ROOT / "tests/model").glob("*.pml"))
    return [Job(build, "model/names", [PYTHON, script], {}, LINT_TIMEOUT_S, nice=BACKGROUND_NICE)] + [
        Job(build, f"model/{path.stem}", [PYTHON, script, path], {}, MODEL_TIMEOUT_S, nice=BACKGROUND_NICE) for path in models]


def fuzz_jobs(asan, seconds):
    """The fuzz targets, in the folder of the build that has them."""
    build = Build("fuzz", asan.folder, asan.options, asan.slower, asan.env, "clang")
    jobs = []
    for program in sorted(build.folder.rglob("*_fuzz")):
        name = program.name.removesuffix("_fuzz")
        seeds = ROOT / "tests/fuzz/corpus" / name
        grown = build.folder / "corpus" / name  # libFuzzer adds to the first folder and only reads the others
        grown.mkdir(parents=True, exist_ok=True)
        command = [program, f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=0",
                   f"-artifact_prefix={build.folder}/{name}-", grown, *([seeds] if seeds.is_dir() else [])]
        jobs.append(Job(build, f"fuzz/{name}", command, {}, seconds + 60))
    return jobs


# ---- the run ----

class Tally:
    """All results so far, and how they are shown."""

    def __init__(self, verbose):
        self.results = []
        self.again = []  # failed results whose second try passed
        self.verbose = verbose
        self.lock = threading.Lock()

    def show(self, result):
        failed, skipped = result.of("failed"), result.of("skipped")
        count = f"{len(result.of('passed'))} passed" + (f", {len(failed)} FAILED" if failed else "")
        count += f", {len(skipped)} skipped" if skipped else ""
        print(f"  {result.job.build.name:7}{result.job.name:32}{count}  ({result.cost.seconds:.1f} s, cpus {result.cost.cpu_s:.1f} s)")
        for note in result.notes:
            print(f"      {note}")
        for case in result.cases if self.verbose else []:
            print(f"      {case.state:8}{case.name}")
        for case in failed:
            print(f"    FAILED {result.job.build.name} {result.job.name}: {case.name}")
            print("".join(f"      {line}\n" for line in case.text.splitlines()), end="")
        if failed and result.stderr.strip():
            print("    its stderr:")
            print("".join(f"      {line}\n" for line in result.stderr.splitlines()[-80:]), end="")
        sys.stdout.flush()

    def add(self, result):
        with self.lock:
            self.results.append(result)
            self.show(result)

    def add_failure(self, build, name, text):
        self.add(Result(Job(build, name, [], {}, 0), [tap.Case("failed", name, text)], "", Cost()))

    def queue(self, slots, jobs, runner):
        """Run these jobs when it is their turn; the long ones first."""
        for job in sorted(jobs, key=lambda job: job.name not in LONG):
            slots.add(job.slots, lambda job=job: self.add(runner(job)))

    def run(self, jobs, runner, workers):
        """Run these jobs, and wait for them."""
        slots = Slots(2 * workers)
        try:
            self.queue(slots, jobs, runner)
            slots.end()
        except KeyboardInterrupt:
            stop_all()
            raise

    def try_again(self):
        """Run what failed once more, each program alone on the machine; what passes then counts as passed, and finish() names it."""
        failed = [result for result in self.results if result.of("failed")]
        for first in failed if len(failed) <= MOST_AGAIN else []:
            if not first.job.command or first.job.build.name == "fuzz" or SANITIZER_REPORT.search(first.stderr + "".join(case.text for case in first.cases)):
                continue
            print(f"  second try, alone: {first.job.build.name} {first.job.name}", flush=True)
            second = run_tap(first.job)
            self.show(second)
            if not second.of("failed"):
                self.results[self.results.index(first)] = second
                self.again.append(first)

    def timings(self, rows=30):
        """What took longest: seconds of cpus decide, since those do not depend on what else ran."""
        def line(build, name, count, cost):
            print(f"  {build:7}{name:32}{cost.cpu_s:8.1f}{cost.seconds:9.1f}{max(0.0, cost.seconds - cost.cpu_s):9.1f}{count:>7}")

        def total(name, costs):
            line(name, "", len(costs), Cost(sum(cost.seconds for cost in costs), sum(cost.cpu_s for cost in costs)))

        print("timings: seconds of cpus, seconds, and their difference (it waited; negative differences, of several threads, are 0)")
        for result in sorted(self.results, key=lambda result: -result.cost.cpu_s)[:rows]:
            line(result.job.build.name, result.job.name, "", result.cost)
        print("  by what waited longest")
        for result in sorted(self.results, key=lambda result: result.cost.cpu_s - result.cost.seconds)[:rows]:
            line(result.job.build.name, result.job.name, "", result.cost)
        print("  in all, and how many programs")
        for part in sorted({(result.job.build.name, result.job.name.startswith("system/")) for result in self.results}):
            total(part[0] + (" system" if part[1] else ""), [
                result.cost for result in self.results if (result.job.build.name, result.job.name.startswith("system/")) == part])
        for name in sorted({build.name for build, _ in BUILT}):
            total(f"{name} build", [cost for build, cost in BUILT if build.name == name])

    def finish(self, states=("passed", "failed", "skipped")):
        """What was skipped and what failed, then the counts of these states."""
        counts = {state: sum(len(result.of(state)) for result in self.results)
                  for state in ("passed", "failed", "skipped")}
        for state in ("skipped", "failed"):
            if counts[state]:
                print(f"{state}:")
            for result in self.results:
                for case in result.of(state):
                    why = f": {case.text or 'no reason given'}" if state == "skipped" else ""
                    print(f"  {result.job.build.name} {result.job.name}: {case.name}{why}")
        if self.again:
            print("passed only at the second try:")
            for result in self.again:
                for case in result.of("failed"):
                    print(f"  {result.job.build.name} {result.job.name}: {case.name}")
        print(", ".join(f"{counts[state]} {state}" for state in states))
        # Nothing run is nothing shown to work.
        return 1 if counts["failed"] or not sum(counts.values()) else 0


def matching(jobs, match):
    return [job for job in jobs if match in job.name]


def tests_of(build, arguments):
    """Unit and system tests of a configured build."""
    unit = matching(unit_jobs(build), arguments.match) if "unit" in arguments.only else []
    system = matching(system_jobs(build), arguments.match) if "system" in arguments.only else []
    return unit, system


def make_ready(tally, slots, build, arguments, nice):
    """Build one variant, then queue its tests."""
    tests = build.name in arguments.build and ("unit" in arguments.only or "system" in arguments.only)
    fuzz = build.name == "asan" and "fuzz" in arguments.only
    if not tests and not fuzz:
        return
    error = build_all(build, ["configure"], nice)
    if error:
        tally.add_failure(build, "(configure)", error)
        return
    unit, system = tests_of(build, arguments) if tests else ([], [])
    targets = programs_of(build, unit) + (SYSTEM_TARGETS[build.name] if system else []) + (["fuzz_programs"] if fuzz else [])
    error = build_all(build, targets, nice) if targets else None
    if error:
        tally.add_failure(build, "(build)", error)
        return
    tally.queue(slots, unit, run_tap)
    tally.queue(slots, system, run_tap)


class Interop:
    """tools/check_interop.py behind the tests. What it says is shown when it has ended,
    its own count of cases included."""

    def __init__(self, tally, kernel, again):
        self.tally, self.kernel, self.status = tally, kernel, None
        self.more = ["--again"] if again else []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        with tempfile.TemporaryFile() as out:
            try:
                self.status, cost = wait_for(start([PYTHON, ROOT / "tools/check_interop.py", "--kernel", self.kernel, *self.more], cwd=ROOT,
                                                   stdout=out, stderr=subprocess.STDOUT))
            except Interrupted:
                return
            out.seek(0)
            with self.tally.lock:
                print(f"Soft-RoCE of {self.kernel}  ({cost.seconds:.1f} s, cpus {cost.cpu_s:.1f} s)")
                print(out.read().decode(errors="replace"), end="", flush=True)

    def end(self):
        """Its exit status."""
        self.thread.join()
        return self.status


def check(tally, arguments):
    """Tests run as soon as their build is there; meanwhile the next variant is built in the background, and models are checked
    when all are built: that fills the time in which tests wait."""
    source = Build("source", ".", [])
    slots, background, interop = Slots(2 * arguments.jobs), None, None
    try:
        if "lint" in arguments.only:
            tally.queue(slots, matching(lint_jobs(source), arguments.match), run_tap)
        variants = builds()
        for build in variants:
            make_ready(tally, slots, build, arguments, 0 if build is variants[0] else BACKGROUND_NICE)
        background = Slots(2 * arguments.jobs)
        if "model" in arguments.only:
            tally.queue(background, matching(model_jobs(source), arguments.match), run_tap)
        if "fuzz" in arguments.only:  # last: each runs for a given time, so that cores are better left to it
            tally.queue(slots, matching(fuzz_jobs(variants[1], arguments.fuzz_seconds), arguments.match), run_fuzz)
        background.end()
        slots.end()
        if arguments.again:
            tally.try_again()
        # By itself: a guest takes whole cores when it boots, and tests of ours have time limits.
        if arguments.interop:
            interop = Interop(tally, arguments.interop, arguments.again)
        return interop.end() if interop else 0
    except BaseException:
        stop_all()
        for one in (slots, background, interop):
            if one:
                one.end()
        raise


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("--only", default=",".join(PARTS), help="parts, comma-separated: " + ", ".join(PARTS))
    parser.add_argument("--build", default="normal,asan,tsan", help="builds, comma-separated")
    parser.add_argument("--match", default="", help="run only what has this in its name")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time; twice as many of the system tests")
    parser.add_argument("--fuzz-seconds", type=int, default=4, help="how long each fuzz target runs")
    parser.add_argument("--long", action="store_true", help="long campaigns, too: more faults and packets, every trigger")
    parser.add_argument("--interop", metavar="SERIES", help="check_interop.py with this kernel, too, behind the tests")
    parser.add_argument("--timings", action="store_true", help="at the end, say what took how long")
    parser.add_argument("--again", action="store_true", help="run programs that failed a second time, alone, and name those that pass then")
    parser.add_argument("-v", "--verbose", action="store_true", help="name every case")
    arguments = parser.parse_args()
    arguments.only = arguments.only.split(",")
    arguments.build = arguments.build.split(",")
    for given, known in ((arguments.only, PARTS), (arguments.build, [build.name for build in builds()])):
        for name in given:
            if name not in known:
                parser.error(f"'{name}' is none of {', '.join(known)}")
    return arguments


def main():
    arguments = parse_arguments()
    tally = Tally(arguments.verbose)
    if arguments.long:
        os.environ["SLUICE_LONG"] = "1"  # tests look for it
    pathlib.Path(POCL["POCL_CACHE_DIR"]).mkdir(parents=True, exist_ok=True)
    interop_failed = check(tally, arguments)
    if arguments.timings:
        tally.timings()
    return tally.finish() or (1 if interop_failed else 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
