#!/usr/bin/python3
"""check.py - build every variant, run every test that this machine can run, and count the cases.

  tools/check.py                                        everything
  tools/check.py --only unit,lint --build normal        a part
  tools/check.py --match ring                           what has "ring" in its name
  tools/check.py --long                                 with the long campaigns: make check-long

Parts: unit (the C tests), system (tests/system/*_test.py), lint (tests/lint), model (tests/model, by spin), fuzz
(libFuzzer, a short run each).
Builds: normal, asan (address and undefined behaviour), tsan (what threads share). Every test program speaks TAP on
stdout; the last line here is "N passed, N failed, N skipped" and counts cases, not programs.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"  # Debian's, which has numpy and h5py; the first on the path may be another
PARTS = ("unit", "system", "lint", "model", "fuzz")
# What takes a minute or more begins first, so that no core waits for it at the end. Not those of system tests that keep all
# cores busy: they would be in each other's way.
LONG = {"receiver/gpu", "system/keeper", "system/opencl", "model/device_ring"}
SYSTEM_TIMEOUT_S, LINT_TIMEOUT_S, MODEL_TIMEOUT_S = 300, 300, 900
NOT_A_LINT = ("core.sh", "lint.py", "options_page.py")  # the last needs the program: it runs as docs/options
INTERPRETER = {".py": PYTHON, ".sh": "/bin/sh"}
# Of sanitized builds: compiled in a third of the time, and hardly slower; no GPU will see them.
QUICK = ("-Doptimization=1", "-Dnvcc=disabled")
# PoCL, which runs kernels on the CPU: what one test has had compiled the next finds, in any build.
POCL = {"POCL_CACHE_DIR": str(ROOT / "build/pocl")}
# What system tests need of a build: the normal one has it all.
SYSTEM_TARGETS = {"normal": ["all", "tests/dissect/roce_pcap", "tests/raw/raw_file"], "asan": ["sluice"], "tsan": []}
RUNNING = set()  # programs under way, to be stopped when we are


class Build:
    """A variant: its folder, its meson options, its compiler, and what runs in it."""

    def __init__(self, name, folder, options, slower=1, env=None, compiler=None):
        self.name, self.folder, self.options, self.slower = name, ROOT / folder, options, slower
        self.env = env or {}
        self.compiler = {"CC": compiler} if compiler else {}
        self.prefix = no_aslr() if slower > 1 else []

    def wants(self, name):
        """Whether a C test runs in this build: TSan looks at what threads share, and at nothing else."""
        shared = ("core/", "gpu/", "receiver/", "feedback/", "emulator/", "experiment/", "session/", "unit/", "base/bell", "base/queue", "base/sequence", "link/poller",
                  "bench/gpu/ingest")
        if self.name == "asan" and name == "docs/pages" and "SLUICE_LONG" not in os.environ:
            return False  # it runs whole programs for half a minute; the normal build has it
        return self.name != "tsan" or name.startswith(shared)


class Job:
    """One test program, in one build."""

    def __init__(self, build, name, command, env, timeout_s):
        self.build, self.name, self.command, self.timeout_s = build, name, command, timeout_s
        self.env = env


class Result:
    def __init__(self, job, cases, stderr, seconds, notes=()):
        self.job, self.cases, self.stderr, self.seconds = job, cases, stderr, seconds
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
                                     "-Dc_args=-fsanitize=fuzzer-no-link"], 4,
              {"SLUICE_SANITIZER": "asan", "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
               "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}, "clang"),
        Build("tsan", "build-tsan", ["-Dtests=true", *QUICK, "-Db_sanitize=thread", "-Db_lundef=false"], 8,
              {"SLUICE_SANITIZER": "tsan", "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}),
    ]


# ---- running one program ----

def stop(process):
    """End a program and what it started: all of it is in one session of its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def execute(job):
    """Run it in a fresh TMPDIR; exit status (None: timed out), stdout, stderr. Files rather than pipes: a child that
    outlives its parent would keep a pipe open."""
    folder = tempfile.mkdtemp(prefix="sluice-")  # short: Unix sockets have 107 characters for their path
    # SLUICE_SITE, SLUICE_RUN_DIR: a site file and sessions of this host must not change what the tests see.
    env = {**POCL, **os.environ, **job.build.env, **job.env, "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1", "SLUICE_SITE": "",
           "SLUICE_RUN_DIR": f"{folder}/run"}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([*job.build.prefix, *job.command], cwd=ROOT, env=env, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err, start_new_session=True)
        RUNNING.add(process)
        try:
            status = process.wait(job.timeout_s * job.build.slower)
        except subprocess.TimeoutExpired:
            status = None
        stop(process)
        RUNNING.discard(process)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    shutil.rmtree(folder, ignore_errors=True)
    return status, texts[0], texts[1]


def run_tap(job):
    start = time.monotonic()
    status, out, err = execute(job)
    notes = [line.removeprefix("# note: ") for line in out.splitlines() if line.startswith("# note: ")]
    return Result(job, tap.read(out, status), err, time.monotonic() - start, notes)


def run_fuzz(job):
    """A fuzz target is one case: it ran for its time and found nothing."""
    start = time.monotonic()
    status, out, err = execute(job)
    text = "" if status == 0 else "timed out\n" if status is None else "".join(
        line + "\n" for line in (out + err).splitlines()[-60:])
    return Result(job, [tap.Case("passed" if status == 0 else "failed", "finds nothing", text)], "",
                  time.monotonic() - start)


# ---- what there is to run ----

def build_all(build, targets=()):
    """Configure a variant if need be, and build these targets, or all that is built by default; the output when that fails."""
    command = [ROOT / "tools/build.sh", build.folder.relative_to(ROOT), *build.options, "--", *targets]
    run = subprocess.run(command, cwd=ROOT, env={**os.environ, **build.compiler}, stdout=None,
                         stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    sys.stderr.write(run.stderr if run.returncode == 0 else "")
    return None if run.returncode == 0 else run.stderr or "the build failed\n"


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
        normal_only = "# normal build only" in path.read_text().splitlines()
        if build.name == "normal" or (build.name == "asan" and not normal_only):
            jobs.append(Job(build, f"system/{path.stem.removesuffix('_test')}", [PYTHON, path], env, SYSTEM_TIMEOUT_S))
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
    return [Job(build, "model/names", [PYTHON, script], {}, LINT_TIMEOUT_S)] + [
        Job(build, f"model/{path.stem}", [PYTHON, script, path], {}, MODEL_TIMEOUT_S) for path in models]


def fuzz_build():
    """The fuzz targets, in the folder of the build that has them."""
    asan = next(build for build in builds() if build.name == "asan")
    return Build("fuzz", asan.folder, asan.options, asan.slower, asan.env, "clang")


def fuzz_jobs(build, seconds):
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
        self.verbose = verbose

    def show(self, result):
        failed, skipped = result.of("failed"), result.of("skipped")
        count = f"{len(result.of('passed'))} passed" + (f", {len(failed)} FAILED" if failed else "")
        count += f", {len(skipped)} skipped" if skipped else ""
        print(f"  {result.job.build.name:7}{result.job.name:32}{count}  ({result.seconds:.1f} s)")
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
        self.results.append(result)
        self.show(result)

    def add_failure(self, build, name, text):
        self.add(Result(Job(build, name, [], {}, 0), [tap.Case("failed", name, text)], "", 0))

    def run(self, jobs, runner, workers):
        jobs = sorted(jobs, key=lambda job: job.name not in LONG)
        pool = concurrent.futures.ThreadPoolExecutor(workers)
        try:
            for future in concurrent.futures.as_completed([pool.submit(runner, job) for job in jobs]):
                self.add(future.result())
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(RUNNING):
                stop(process)
            raise
        pool.shutdown()

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
        print(", ".join(f"{counts[state]} {state}" for state in states))
        # Nothing run is nothing shown to work.
        return 1 if counts["failed"] or not sum(counts.values()) else 0


def matching(jobs, match):
    return [job for job in jobs if match in job.name]


def check_build(tally, build, arguments):
    """The unit and system tests of one variant."""
    error = build_all(build, ["configure"])
    if error:
        tally.add_failure(build, "(configure)", error)
        return
    unit = matching(unit_jobs(build), arguments.match) if "unit" in arguments.only else []
    system = matching(system_jobs(build), arguments.match) if "system" in arguments.only else []
    targets = programs_of(build, unit) + (SYSTEM_TARGETS[build.name] if system else [])
    error = build_all(build, targets) if targets else None
    if error:
        tally.add_failure(build, "(build)", error)
        return
    tally.run(unit, run_tap, arguments.jobs)
    tally.run(system, run_tap, 2 * arguments.jobs)  # these wait for processes and clocks half of their time


def check_fuzz(tally, arguments):
    build = fuzz_build()
    error = build_all(build, ["fuzz_programs"])
    if error:
        tally.add_failure(build, "(build)", error)
        return
    jobs = matching(fuzz_jobs(build, arguments.fuzz_seconds), arguments.match)
    tally.run(jobs, run_fuzz, arguments.jobs)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("--only", default=",".join(PARTS), help="parts, comma-separated: " + ", ".join(PARTS))
    parser.add_argument("--build", default="normal,asan,tsan", help="builds, comma-separated")
    parser.add_argument("--match", default="", help="run only what has this in its name")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time; twice as many of the system tests")
    parser.add_argument("--fuzz-seconds", type=int, default=4, help="how long each fuzz target runs")
    parser.add_argument("--long", action="store_true", help="long campaigns, too: more faults and packets, every trigger")
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
    variants = builds()
    pathlib.Path(POCL["POCL_CACHE_DIR"]).mkdir(parents=True, exist_ok=True)
    source = Build("source", ".", [])
    if "lint" in arguments.only:
        print("linting")
        tally.run(matching(lint_jobs(source), arguments.match), run_tap, arguments.jobs)
    if "model" in arguments.only:
        print("checking the models")
        tally.run(matching(model_jobs(source), arguments.match), run_tap, arguments.jobs)
    if "unit" in arguments.only or "system" in arguments.only:
        for build in variants:
            if build.name in arguments.build:
                check_build(tally, build, arguments)
    if "fuzz" in arguments.only:
        check_fuzz(tally, arguments)
    return tally.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
