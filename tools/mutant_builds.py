"""mutant_builds.py - copies of the tree, builds of them, and test programs that run within limits; for tools/mutate.py.

Tests run in network, process and mount namespaces of their own where that is allowed (root), with limits on memory, file size and time,
in an empty folder; at the end of each, all processes that it started are killed.
"""

import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import tap

MESON = "/usr/bin/meson" if os.path.exists("/usr/bin/meson") else "meson"
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
# Options of a build, where the tree has them. No debug information: equal code then makes equal objects.
OPTIONS = ["-Doptimization=1", "-Ddebug=false"]
OWN_OPTIONS = {"tests": "true", "nvcc": "disabled"}
SANITIZED = ["-Db_sanitize=address,undefined", "-Db_lundef=false"]
MEMORY_BYTES, FILE_BYTES = 8 << 30, 2 << 30
SLOW_SUITE_S = 30  # longer ones run only if they have the name of the mutated file


class OutOfTime(Exception):
    """The time for a mutant, or for everything, is over."""


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


def folder_of(name, folders):
    """The longest folder that this path or test lies in."""
    return max((folder for folder in folders if name.startswith(f"{folder}/")), key=len, default=None)


# ---- the copy ----

def project_files(source):
    if not (source / ".git").exists():
        return all_files(source)
    try:
        listing = subprocess.run(["git", "-C", source, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, text=True,
                                 check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return all_files(source)
    return {name for name in listing.split("\0") if name and (source / name).is_file()}


def all_files(source):
    """Without git: all files but those of hidden folders, builds, and folders of which git would ignore everything."""
    found = set()
    for folder, folders, names in os.walk(source):
        if folder != str(source) and ignores_itself(pathlib.Path(folder)):
            folders.clear()
            continue
        folders[:] = [name for name in folders if name != ".git" and not (folder == str(source) and name.startswith("build"))]
        found.update(os.path.relpath(os.path.join(folder, name), source) for name in names)
    return {name for name in found if (source / name).is_file()}


def ignores_itself(folder):
    ignored = folder / ".gitignore"
    return ignored.is_file() and "*" in ignored.read_text().split()


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


def clone_tree(tree, to):
    """A copy with the builds in it: what is built is not built again, since files keep their times. Build files go on naming the first tree
    where that makes no difference: data of tests, maps of symbols, the paths of tools (Build.read)."""
    shutil.rmtree(to, ignore_errors=True)
    return subprocess.Popen(["cp", "-a", "--reflink=auto", tree, to])


# ---- running tests ----

# For hosts without iproute2.
LOOPBACK_UP = ("import fcntl,os,socket,struct,sys; s=socket.socket(); fcntl.ioctl(s, 0x8914, struct.pack('16sh14x', b'lo', 1)); "
               "s.close(); os.execvp(sys.argv[1], sys.argv[1:])")


def isolation():
    """A command line before a test's: no port, process or mount of the test is seen outside, and none outlives it."""
    if os.environ.get("SLUICE_MUTATE_ISOLATION") == "none":
        return []
    command = ["unshare", "--net", "--mount-proc", "--pid", "--fork", "--kill-child", "--"]
    command += ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"] if shutil.which("ip") else [sys.executable, "-c", LOOPBACK_UP]
    try:
        works = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        works = False
    return command if works else []


def limits(memory):
    def apply():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Tests of full disks set a limit of their own, and lift it again.
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
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

    parts = ()  # "system/NAME WORDS": the cases of a system test that have these words in their names, where all of them take too long
    patience = 15  # seconds that a suite may take besides six times what it takes without a mutant
    end = float("inf")  # of everything, by time.monotonic()
    processes = None  # of ninja; None: as it likes

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
        """Tests, and the objects of each source file. In a clone, meson's lists name the tree that it was made of."""
        origin = json.loads((self.folder / "meson-info/meson-info.json").read_text())["directories"]["source"]

        def listed(name):
            return json.loads(re.sub(re.escape(origin) + "(?=[/\"])", str(self.tree), (self.folder / name).read_text()))

        self.suites = [Suite(test["name"], test["cmd"], test["env"]) for test in listed("meson-info/intro-tests.json")]
        for path in sorted((self.tree / "tests/system").glob("*_test.py")):
            self.suites.append(Suite(f"system/{path.stem.removesuffix('_test')}", [PYTHON, path], {"SLUICE": str(self.folder / "sluice")}))
        for name in self.parts:
            test, words = name.removeprefix("system/").split(" ", 1)
            path = self.tree / f"tests/system/{test}_test.py"
            if path.exists():
                self.suites.append(Suite(name, [PYTHON, path, words], {"SLUICE": str(self.folder / "sluice")}))
        for entry in listed("compile_commands.json"):
            source = os.path.relpath(os.path.normpath(os.path.join(entry["directory"], entry["file"])), self.tree)
            self.objects.setdefault(source, []).append(entry["output"])

    def suites_of(self, folder, folders, users):
        """Suites of the folder itself, and those of folders that use it."""
        own = [suite for suite in self.suites if folder_of(suite.name, folders) == folder]
        return own, [suite for prefix in users.get(folder, []) for suite in self.suites
                     if suite not in own and (suite.name == prefix or suite.name.startswith(f"{prefix}/"))]

    def ninja(self, targets, seconds, deadline=float("inf")):
        """None, or the output of a build that failed or took too long."""
        left = min(deadline, self.end) - time.monotonic()
        jobs = ["-j", str(self.processes)] if self.processes else []
        process = subprocess.Popen(["ninja", "-C", self.folder, *jobs, *targets], env={**os.environ, **self.env}, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        try:
            text, _ = process.communicate(timeout=max(0, min(seconds, left)))
        except subprocess.TimeoutExpired:
            if left < seconds:
                raise OutOfTime("while it was built") from None
            return f"the build took more than {seconds} s\n"
        finally:
            end_group(process)
        return text if process.returncode else None

    def fails(self, suite, seconds):
        """Why a suite fails, or None."""
        env = {**os.environ, **self.env, **suite.env, "MALLOC_PERTURB_": "165", "SLUICE_SITE": "", "PYTHONDONTWRITEBYTECODE": "1"}
        libraries = [environment.get("LD_LIBRARY_PATH") for environment in (suite.env, os.environ)]
        if any(libraries):
            env["LD_LIBRARY_PATH"] = ":".join(filter(None, libraries))
        status, out = run_limited([*self.prefix, *map(str, suite.command)], env, seconds, self.memory)
        failed = [case.name for case in tap.read(out, status) if case.state == "failed"]
        return failed[-1] if failed else None  # how the program ended is the last

    def finds(self, suite, deadline):
        """Why a suite fails with a mutant, or None. A failed case must fail twice: on a busy machine one may fail without a mutant."""
        failed = self.fails_until(suite, self.limit(suite), deadline)
        return failed if failed in (None, "(crashed)", "(timed out)") else self.fails_until(suite, self.limit(suite), deadline)

    def fails_until(self, suite, seconds, deadline):
        """As fails(). A suite that had less than its time at the deadline does not hang for all that is known."""
        left = min(deadline, self.end) - time.monotonic()
        failed = self.fails(suite, min(seconds, left)) if left > 0 else "(timed out)"
        if failed == "(timed out)" and left < seconds:
            raise OutOfTime(f"before {suite.name} had ended")
        return failed

    def measure(self, suite, built=False):
        """Run a suite without a mutant, twice if the first fails: how long it takes, or that it is of no use here."""
        if suite.seconds is not None or suite.broken:
            return
        problem = None if built else self.ninja(suite.programs(self.folder), 3600)
        if problem:
            sys.exit(f"error: {suite.name} does not build without a mutant:\n{problem[-3000:]}")
        for _ in range(2):
            start = time.monotonic()
            suite.broken = self.fails_until(suite, 3 * SLOW_SUITE_S, self.end)
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
