#!/usr/bin/python3
"""pages_test.py SLUICE - what the pages of docs/ show is so: experiment files are accepted, those of docs/reference/stages.md run, the
stage of docs/tutorials/write-a-stage.md and the detector of docs/tutorials/write-a-detector.md are built with the commands of the pages, against
an installed tree, and do as told there; the commands, programs and scripts of the pages of docs/how-to that are checked below print what the pages
show; docs/reference/summary.md names all that a run leaves behind; the tables of docs/reference/wire.md and docs/reference/feedback.md are those of the code.
"""

import grp
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tap  # noqa: E402  (found through the line above)

import control_pages  # noqa: E402
import extract  # noqa: E402
import live_page  # noqa: E402
import service_pages  # noqa: E402
import share_pages  # noqa: E402

SLUICE = str(pathlib.Path(sys.argv[1]).resolve())
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable  # Debian's has h5py
PLUGINS = ("blank", "spot")
TUTORIAL = (ROOT / "docs/tutorials/write-a-stage.md").read_text()
DETECTOR = (ROOT / "docs/tutorials/write-a-detector.md").read_text()


def words(text):
    """The text without its line breaks."""
    return " ".join(text.split())


def run(*command, folder=None, env=None):
    return subprocess.run([str(part) for part in command], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=200, check=False)


# ---- an installed tree ----

class Installed:
    """What `meson install` makes of the build folder, and the plug-ins of the tutorials, built in a folder of their own."""

    def __init__(self, place):
        self.folder, self.problems = pathlib.Path(place).resolve() / "mine", []
        self.ran, self.skipped = [], set()  # commands, as they were given to shell(); pages
        self.absent = set()  # commands whose program is not installed
        root = pathlib.Path(place) / "root"
        meson = "/usr/bin/meson" if os.path.exists("/usr/bin/meson") else "meson"
        done = run(meson, "install", "-C", pathlib.Path(SLUICE).parent, "--no-rebuild", "--tags", "runtime,devel,python-runtime", "--destdir", root)
        if done.returncode:
            self.problems = [done.stdout + done.stderr]
        self.program = next(iter(root.rglob("bin/sluice")), None)
        description = next(iter(root.rglob("sluice.pc")), None)
        if not self.program or not description:
            self.problems += ["no bin/sluice and sluice.pc were installed"]
            return
        self.env = {**os.environ, "PATH": f"{self.program.parent}:{os.environ['PATH']}", "PKG_CONFIG_PATH": str(description.parent)}
        self.env.pop("SLUICE_PLUGINS", None)
        if not re.search(r"^prefix=\$", description.read_text(), re.M):  # a build folder that was configured before it could be moved
            self.env["PKG_CONFIG_SYSROOT_DIR"] = str(root)
        self.folder.mkdir(0o755)
        for name, page in zip(PLUGINS, (TUTORIAL, DETECTOR), strict=True):
            (self.folder / f"{name}.c").write_text("\n".join(extract.blocks(page, "c")))
            (self.folder / f"{name}.yaml").write_text(extract.blocks(page, "yaml")[0])

    def shell(self, commands):
        """Commands of a page; runs use shm, as other tests may have UDP port 4791 of 127.0.0.1."""
        self.ran.append(commands)
        commands = re.sub(r"^(sluice run .*)$", r"\1 --quiet --summary summary.json --set link.kind=shm", commands, flags=re.M)
        return run("/bin/sh", "-e", "-c", commands, folder=self.folder, env=self.env)

    def python(self, code):
        return run(PYTHON, "-c", code, folder=self.folder, env=self.env)

    def summary(self):
        return json.loads((self.folder / "summary.json").read_text())


# ---- experiment files ----

def experiments():
    """(page, number, text) of every block in the pages that is a whole experiment file."""
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")]):
        for number, block in enumerate(extract.blocks(page.read_text(), "yaml"), 1):
            if re.search(r"^detectors?:", block, re.M) and re.search(r"^sinks:", block, re.M):
                yield page.name, number, block


def rejected(installed, text):
    """What the program has against an experiment file. The plug-ins of the tutorials lie beside it."""
    path = installed.folder / "experiment.yaml"
    path.write_text(text)
    result = run(SLUICE, "doctor", path, folder=installed.folder)
    return [] if result.returncode == 0 else [result.stderr]


def check_experiments(out, installed):
    found = list(experiments())
    for page, number, text in found:
        out.case(f"{page}: experiment {number} is accepted", rejected(installed, text))
    out.case("there are experiments to check", [] if len(found) >= 3 else [f"only {len(found)}"])
    out.case("an experiment with a wrong key is not accepted",
             [] if rejected(installed, found[0][2] + "\nno_such_key: 1\n") else ["it was"])


# ---- docs/reference/stages.md ----

def runs(text):
    """What is wrong with a run of an experiment, in small; shm, as other tests may have UDP port 4791 of 127.0.0.1."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "experiment.yaml").write_text(text)
        result = run(SLUICE, "run", "experiment.yaml", "--quiet", "--summary", "s.json", "--set", "link.kind=shm", "--set",
                     "detector.frames=42", "--set", "detector.dark_frames=16", "--set", "detector.pool=7", folder=folder)
        if result.returncode:
            return [f"exit status {result.returncode}", result.stderr]
        frames = json.loads((pathlib.Path(folder) / "s.json").read_text())["frames"]
        return [] if frames["kept"] else [f"nothing is kept: {frames}"]


def check_stages(out):
    page = (ROOT / "docs/reference/stages.md").read_text()
    listed = re.findall(r"^ *stage +(\w+)", run(SLUICE, "list", "stages").stdout, re.M)
    out.case("stages.md has every stage in its table", [name for name in listed if f"\n| `{name}` |" not in page])
    if "(not in this program" in run(SLUICE, "list", "nexus").stdout:
        out.skip("experiments of stages.md run", "this program has no nexus sink")
        return
    for number, text in [(number, text) for name, number, text in experiments() if name == "stages.md"]:
        out.case(f"stages.md: experiment {number} runs, and keeps something", runs(text))


# ---- docs/how-to/library.md ----

def check_library(out, installed):
    """The program of the page is built as it says, runs an experiment by the installed library, and prints its ledger."""
    case = "embed.c is built as library.md says, and prints the ledger of a run"
    shutil.copy(ROOT / "examples/embed.c", installed.folder)
    (installed.folder / "experiment.yaml").write_text(
        "detector: {kind: pattern, modules: 2, rows: 32, columns: 64, frames: 50}\nlink: {kind: shm}\n"
        "sinks: ['null', verify]\nemulate: local\n")
    build, start = extract.blocks((ROOT / "docs/how-to/library.md").read_text(), "sh")[0].splitlines()
    # A sanitized library must be the first one that is loaded: such a program cannot use it.
    if os.environ.get("SLUICE_SANITIZER"):
        out.skip(case, "the library of this build needs a sanitized program")
        return
    # The loader does not know this prefix, as the page says.
    library = next(iter(installed.program.parents[1].rglob("libsluice.so.0"))).parent
    start = f"LD_LIBRARY_PATH={library} {start}"
    done = installed.shell(f"{build} -Wall -Wextra\n{start}")
    ledger = [line for line in done.stdout.splitlines() if line.startswith("module")]
    out.case(case, [] if done.returncode == 0 and ledger == ["module 0: 50 stored", "module 1: 50 stored"]
             else [f"exit status {done.returncode}", done.stdout, done.stderr])
    done = installed.shell(f"{start} ring.slots=many")
    out.case("embed.c ends with 1 when the experiment is wrong",
             [] if done.returncode == 1 and "ring.slots" in done.stderr else [f"exit status {done.returncode}", done.stderr])


# ---- docs/how-to/many-short-runs.md, docs/reference/run-folders.md ----

def check_many_runs(out, installed):
    """The commands of the page print what it shows, and result.json has what run-folders.md and summary.md name."""
    page = (ROOT / "docs/how-to/many-short-runs.md").read_text()
    if "(not in this program" in run(SLUICE, "list", "nexus").stdout:
        out.skip("many-short-runs.md", "this program has no nexus sink")
        return
    (installed.folder / "scan.yaml").write_text(extract.blocks(page, "yaml")[0])
    commands, shown = extract.blocks(page, "sh"), extract.blocks(page, "text")
    for number in range(2):
        done, text = installed.shell(commands[number]), shown[number].replace("FOLDER", str(installed.folder))
        out.case(f"many-short-runs.md: commands {number + 1} print what the page shows",
                 [] if done.returncode == 0 and done.stdout == text else [done.stdout + done.stderr, "is not", text])
    if installed.python("import h5py").returncode:
        out.skip("many-short-runs.md: h5py finds what the page shows", "python3-h5py is not installed")
    else:
        read = installed.python(extract.blocks(page, "python")[0])
        out.case("many-short-runs.md: h5py finds what the page shows",
                 [] if read.stdout == shown[2] else [read.stdout + read.stderr, "is not", shown[2]])
    text = shown[3].replace("FOLDER", str(installed.folder))
    scan = run("/bin/sh", "-e", "-c", commands[3], folder=installed.folder,
               env={**installed.env, "SLUICE_RUN_DIR": str(installed.folder / "scan-sockets"), "SLUICE_SITE": ""})
    angles = [json.loads(path.read_text())["metadata"] for path in sorted(installed.folder.glob("scan-data/*/result.json"))]
    out.case("many-short-runs.md: the script of a scan does as told",
             [] if scan.stdout == text and angles == [{"angle_deg": angle} for angle in ("0", "15", "30")]
             else [scan.stdout + scan.stderr, "is not", text, str(angles)])
    done = installed.shell(commands[2])
    result = installed.folder / "data/000005/result.json"
    out.case("many-short-runs.md: one run in a folder", [] if done.returncode == 0 and result.exists() else [done.stderr])
    check_result(out, json.loads(result.read_text()) if result.exists() else {}, result.parent)


def check_result(out, result, folder):
    page = (ROOT / "docs/reference/run-folders.md").read_text()
    both = page + (ROOT / "docs/reference/summary.md").read_text()
    named = set(re.findall(r"[\w]+", " ".join(re.findall(r"`[^`]+`", both))))
    out.case("run-folders.md and summary.md name every field of result.json", sorted(keys(result) - named))
    data = re.compile(r"_data_\d{6}\.h5$|\.nxs$")
    files = [path.name for path in folder.iterdir() if not data.search(path.name)] if folder.exists() else ["no folder"]
    out.case("run-folders.md names every file of a run folder", [name for name in files if f"| `{name}` |" not in page and name != "summary.json"])


# ---- docs/how-to/geometry.md ----

def check_geometry(out, installed):
    """The commands of the page run in their order, and the rings are where it shows them; twice, by both files."""
    page = (ROOT / "docs/how-to/geometry.md").read_text()
    if "(not in this program" in run(SLUICE, "list", "nexus").stdout or installed.python("import h5py, numpy").returncode:
        out.skip("geometry.md", "this program has no nexus sink, or python3-h5py is not installed")
        return
    shutil.copy(ROOT / "examples/lab6.py", installed.folder)
    (installed.folder / "powder.yaml").write_text(extract.blocks(page, "yaml")[0])
    make, look, first, second = extract.blocks(page, "sh")
    rings, shown = extract.blocks(page, "python")[0], extract.blocks(page, "text")[0]
    for name, commands in (("a PONI file", f"{make}\n{look}\n{first}"), ("a .geom", second)):
        done = installed.shell(commands)
        found = installed.python(rings).stdout.replace("-0.00", "+0.00")
        out.case(f"geometry.md: with {name} rings are where the page shows them",
                 [] if done.returncode == 0 and found == shown else [done.stdout + done.stderr, found, "is not", shown])


# ---- docs/how-to/files.md ----

def block(page, kind, words):
    """The one block of that kind that has these words."""
    return next(text for text in extract.blocks(page, kind) if words in text)


def check_results(out, installed, page):
    """The section about results of every frame: its experiment runs, and its Python prints what the page shows."""
    (installed.folder / "results.yaml").write_text(block(page, "yaml", "results.nxs"))
    done = installed.shell(block(page, "sh", "results.yaml"))
    read, shown = installed.python(block(page, "python", "results.nxs")), block(page, "text", "hit rates")
    out.case("files.md: results of every frame are read as the page shows",
             [] if not done.returncode and read.stdout == shown else [done.stdout + done.stderr, read.stdout + read.stderr, "is not", shown])


def check_files(out, installed):
    """Its experiment runs, its Python reads the files, also as a follower, and the files are left alone by recover."""
    page = (ROOT / "docs/how-to/files.md").read_text()
    if "(not in this program" in run(SLUICE, "list", "nexus").stdout or installed.python("import h5py").returncode:
        installed.skipped.add("files")
        out.skip("files.md", "this program has no nexus sink, or python3-h5py is not installed")
        return
    (installed.folder / "files.yaml").write_text(extract.blocks(page, "yaml")[0])
    write, recover = block(page, "sh", "run files.yaml"), block(page, "sh", "recover")
    names, access, room = block(page, "sh", "{sample}"), block(page, "sh", "mode="), block(page, "sh", "forecast")
    look, follow = block(page, "python", "entry/sluice/state"), block(page, "python", "swmr=True")
    slow, count = block(page, "sh", "on_slow"), block(page, "python", "left out")
    done = installed.shell(write)
    named, may, fits = installed.shell(names), installed.shell(access), installed.shell(room.replace("python3 ", f"{PYTHON} "))
    out.case("files.md: words in a path", [] if "lysozyme_000001_" in named.stdout and not named.returncode else [named.stdout + named.stderr])
    out.case("files.md: group and mode", [] if may.stdout.endswith(2 * f"660 {grp.getgrgid(os.getegid()).gr_name}\n") else [may.stdout + may.stderr])
    out.case("files.md: whether there is room", [] if fits.stdout.endswith("True\n") else [fits.stdout + fits.stderr])
    read, followed, again = installed.python(look), installed.python(follow), installed.shell(recover)
    right = ("int16 b'complete'" in read.stdout and "run_data_000002.h5" in followed.stdout and "nothing to do" in again.stdout
             and not done.returncode)
    out.case("files.md: its experiment runs, and its files are read as the page shows",
             [] if right else [done.stdout + done.stderr, read.stdout + read.stderr, followed.stdout + followed.stderr, again.stdout + again.stderr])
    done, counted = installed.shell(slow), installed.python(count)  # on a busy host frames may be left out: then 2
    nexus = next(sink for sink in installed.summary()["sinks"] if sink["name"] == "nexus")
    right = done.returncode in (0, 2) and counted.stdout == f"{nexus['pace']['left_out']} kept frames were left out\n"
    out.case("files.md: frames that a slow disk costs are counted as the page shows",
             [] if right else [done.stdout + done.stderr, counted.stdout + counted.stderr])
    check_results(out, installed, page)
    check_live(out, installed, page)
    check_readers(out, installed, page)


def check_live(out, installed, page):
    """The status of a run of files.yaml is asked for while it goes on, in one shell, as a user would."""
    commands = block(page, "sh", "ctl files --json")
    installed.ran.append(commands)
    env = {**installed.env, "SLUICE_RUN_DIR": str(installed.folder / "files-sockets"), "SLUICE_SITE": ""}
    done = run("/bin/sh", "-e", "-c", commands, folder=installed.folder, env=env)
    read = installed.python(block(page, "python", "status.json"))
    found = re.fullmatch(r"rows on disk: (\d+) stored up to sequence: (\d+)\n", read.stdout)
    out.case("files.md: the status of a run says what is on disk", [] if done.returncode == 0 and found and int(found[2]) <= int(found[1])
             else [done.stdout + done.stderr, read.stdout + read.stderr])


def check_readers(out, installed, page):
    """The commands of the section "Open them" that need no window, with the programs that are installed."""
    geometry = "sluice geometry run_master.h5 --crystfel > run.geom"
    done, text = installed.shell(geometry), (installed.folder / "run.geom").read_text()
    out.case("files.md: CrystFEL's geometry of the file", [] if f"`{geometry}`" in page and not done.returncode and "data = /entry/data/data" in text
             else [done.stderr, text])
    for command in ("dials.import run_master.h5", "dials.find_spots imported.expt"):
        if not shutil.which(command.split()[0]):
            installed.absent.add(command)
            out.skip(f"files.md: {command}", "dials is not installed")
            continue
        done = installed.shell(command)
        out.case(f"files.md: {command}", [] if f"`{command}`" in page and not done.returncode else [done.stdout + done.stderr])


# ---- docs/how-to/burst.md, docs/how-to/look-back.md ----

def check_burst(out, installed):
    """Every command of the page prints what the page shows."""
    page = (ROOT / "docs/how-to/burst.md").read_text()
    (installed.folder / "burst.yaml").write_text(extract.blocks(page, "yaml")[0])
    for commands, shown in zip(extract.blocks(page, "sh"), extract.blocks(page, "text"), strict=True):
        done = installed.shell(commands)
        out.case(f"burst.md: {commands.split(chr(10))[0]}", [] if done.returncode == 0 and done.stdout == shown
                 else [done.stdout + done.stderr, "is not", shown])
    done = installed.shell("sluice recover burst.raw")
    out.case("burst.md: recover leaves a whole recording alone", [] if done.returncode == 0 and "nothing to do" in done.stdout
             else [done.stdout + done.stderr])


def check_look_back(out, installed):
    """The commands of the page in one shell, as a user would type them, and its Python behind them."""
    page = (ROOT / "docs/how-to/look-back.md").read_text()
    (installed.folder / "look.yaml").write_text(extract.blocks(page, "yaml")[0])
    env = {**installed.env, "SLUICE_RUN_DIR": str(installed.folder / "sockets"), "SLUICE_SITE": ""}
    installed.ran += extract.blocks(page, "sh")
    done = run("/bin/sh", "-e", "-c", "\n".join(extract.blocks(page, "sh")), folder=installed.folder, env=env)
    wanted = [r"^last.nxs: frames \d+ to \d+, [12]\.\d+ s: rows about", r"^around.nxs: frames 240 to 260, .* 21 frames, 21 images",
              r"^look: ended.*intact", r"^end.nxs: frames"]
    missing = [text for text in wanted if not re.search(text, done.stdout, re.M)]
    out.case("look-back.md: its commands do as told", [f"exit status {done.returncode}", done.stdout, done.stderr, *missing]
             if done.returncode or missing else [])
    read = installed.python(extract.blocks(page, "python")[0])
    shown = extract.blocks(page, "text")[0]
    out.case("look-back.md: the file is as the page shows", [] if read.stdout == shown else [read.stdout + read.stderr, "is not", shown])


# ---- docs/how-to/two-detectors.md ----

def check_two_detectors(out, installed):
    """The commands of the page, its Python, and what that prints."""
    page = (ROOT / "docs/how-to/two-detectors.md").read_text()
    if "(not in this program" in run(SLUICE, "list", "nexus").stdout or installed.python("import h5py").returncode:
        installed.skipped.add("two-detectors")
        out.skip("two-detectors.md", "this program has no nexus sink, or python3-h5py is not installed")
        return
    (installed.folder / "two.yaml").write_text(extract.blocks(page, "yaml")[0])
    for commands in extract.blocks(page, "sh"):
        done = installed.shell(commands)
        out.case(f"two-detectors.md: {commands.strip()}", [] if done.returncode == 0 else [done.stdout + done.stderr])
    read = installed.python(extract.blocks(page, "python")[0])
    shown = extract.blocks(page, "text")[0]
    out.case("two-detectors.md: every frame is with its event", [] if read.stdout == shown else [read.stdout + read.stderr, "is not", shown])


# ---- docs/how-to/audit.md ----

def check_audit(out, installed):
    """Every command of the page, in its order: the run, its proof, the damage, and what is said of it."""
    page = (ROOT / "docs/how-to/audit.md").read_text()
    if "(not in this program" in run(SLUICE, "list", "nexus").stdout or installed.python("import h5py").returncode:
        installed.skipped.add("audit")
        out.skip("audit.md", "this program has no nexus sink, or python3-h5py is not installed")
        return
    (installed.folder / "audit.yaml").write_text(extract.blocks(page, "yaml")[0])
    take, prove, find = extract.blocks(page, "sh")
    shown = extract.blocks(page, "text")
    done = installed.shell(take)
    out.case("audit.md: its experiment runs", [] if done.returncode == 0 else [done.stdout + done.stderr])
    done = installed.shell(prove)
    out.case("audit.md: the run is proven as the page shows", [] if done.returncode == 0 and done.stdout == shown[0]
             else [done.stdout + done.stderr, "is not", shown[0]])
    damage, done = installed.python(extract.blocks(page, "python")[0]), installed.shell(find)
    out.case("audit.md: the damage is named as the page shows", [] if damage.returncode == 0 and done.stdout == shown[1]
             else [damage.stderr, done.stdout + done.stderr, "is not", shown[1]])


# ---- docs/how-to/stream2.md ----

def check_stream(out, installed):
    """The client of the page prints what the page shows of the page's experiment."""
    page = (ROOT / "docs/how-to/stream2.md").read_text()
    case = "stream2.md: the client prints what the page shows"
    if "(not in this program" in run(SLUICE, "list", "stream2").stdout or installed.python("import bitshuffle, cbor2, zmq").returncode:
        installed.skipped.add("stream2")
        out.skip(case, "this program has no stream2 sink, or python3-zmq, python3-cbor2 or bitshuffle is not installed")
        return
    pid = os.getpid()
    own = f"127.{96 + (pid >> 16 & 31)}.{pid >> 8 & 255}.{pid & 255}"  # others may stream on 127.0.0.1
    (installed.folder / "stream.yaml").write_text(extract.blocks(page, "yaml")[0].replace("address: 127.0.0.1", f"address: {own}"))
    (installed.folder / "client.py").write_text(extract.blocks(page, "python")[0].replace("127.0.0.1", own))
    done = installed.shell(extract.blocks(page, "sh")[0].replace("python3 ", f"timeout 100 {PYTHON} "))
    shown = extract.blocks(page, "text")[0]
    out.case(case, [] if done.returncode == 0 and done.stdout == shown else [done.stdout + done.stderr, "is not", shown])
    listed = installed.shell("sluice list stream2").stdout
    out.case("stream2.md names options that there are", [name for name in ("wait_s", "sockets", "block", "queue", "timeout_s", "dataset")
                                                         if f" {name}" not in listed or name not in page])
    summary = installed.summary()
    figures = next(s for s in summary["sinks"] if s["name"] == "stream2")["figures"]
    named = (ROOT / "docs/reference/summary.md").read_text()
    out.case("summary.md names every figure of stream2", [name for name in figures if f"`{name}`" not in named])


# ---- docs/how-to/redis.md ----

def check_redis(out, installed):
    """Every command of the page, in its order, with a server of the page's own."""
    page = (ROOT / "docs/how-to/redis.md").read_text()
    if "(not in this program" in run(SLUICE, "list", "redis").stdout or not shutil.which("redis-server") or not shutil.which("redis-cli") \
            or installed.python("import redis").returncode:
        installed.skipped.add("redis")
        out.skip("redis.md", "this program has no redis sink, or redis-server, redis-tools or python3-redis is not installed")
        return
    (installed.folder / "follow.yaml").write_text(extract.blocks(page, "yaml")[0])
    (installed.folder / "follow.py").write_text(extract.blocks(page, "python")[0])
    start, follow, look, end = extract.blocks(page, "sh")
    shown = extract.blocks(page, "text")
    begun = installed.shell(start + "timeout 10 sh -c 'until redis-cli -s redis.sock PING > /dev/null; do sleep 0.05; done' 2> /dev/null")
    try:
        out.case("redis.md: the server begins", [] if begun.returncode == 0 else [begun.stdout + begun.stderr])
        done = installed.shell(follow.replace("python3 ", PYTHON + " "))
        out.case("redis.md: a program follows the run", [] if done.returncode == 0 and done.stdout == shown[0]
                 else [done.stdout + done.stderr, "is not", shown[0]])
        done = installed.shell(look)
        out.case("redis.md: redis-cli prints what the page shows",
                 [] if done.returncode == 0 and done.stdout == shown[1] else [done.stdout + done.stderr, "is not", shown[1]])
        check_redis_bench(out, installed)
    finally:
        done = installed.shell(end)
    out.case("redis.md: the server ends", [] if done.returncode == 0 else [done.stdout + done.stderr])


def check_redis_bench(out, installed):
    """The program that the page's figures are of, with few rows: it ends well, and every row is in."""
    command, case = "build/bench/bench_redis 500 address=./redis.sock", "redis.md: bench_redis"
    program = pathlib.Path(SLUICE).parent / "bench/bench_redis"
    installed.ran.append(command)
    if not program.exists():
        out.skip(case, "it is not built")
        return
    done = run(program, *command.split()[1:], folder=installed.folder)
    out.case(case, [] if done.returncode == 0 and json.loads(done.stdout)["rows_per_s"] > 0 else [done.stdout + done.stderr])


# ---- docs/how-to/follow-a-run.md ----

FOLLOWED = (r"^\d+ +frame \d+ +kept +peaks +score \d+ +peaks \d+  age ", r"^live +[\d.]+ MB +60 ", r"^  image +1064 x 1030 <i2 photons$",
            r"^  peaks +up to 1024 x 8 <f4$", r'^\{"n":\d+.*"verdict":"kept"', r"^image-\d{6}\.npy$", r"^live: ended; \d+ elements seen, ")


def check_follow(out, installed):
    """The commands of the page in one shell, as a user would type them: they print lines like those shown, and leave the files."""
    page = (ROOT / "docs/how-to/follow-a-run.md").read_text()
    blocks = extract.blocks(page, "sh")
    (installed.folder / "live.yaml").write_text(extract.blocks(page, "yaml")[0])
    env = {**installed.env, "SLUICE_RUN_DIR": str(installed.folder / "share-sockets"), "SLUICE_SITE": ""}
    installed.ran += blocks
    commands = "\n".join(blocks[:-1]).replace("--quiet", "--quiet --summary live.json")
    done = run("/bin/sh", "-e", "-c", commands, folder=installed.folder, env=env)
    missing = [line for line in FOLLOWED if not re.search(line, done.stdout, re.M)]
    for line in (line for line in page.splitlines() if line.startswith("    ") and "frame" in line):
        missing += [] if re.match(FOLLOWED[0], line.strip()) else [f"the page shows: {line}"]
    files = [name for name in ("now.png", "live.png", "peaks.npy", "now.json") if not (installed.folder / name).exists()]
    out.case("follow-a-run.md: its commands do as told", [f"exit status {done.returncode}", done.stdout, done.stderr, *missing, *files]
             if done.returncode or missing or (files and "libpng" not in done.stderr) else [])
    images = sorted((installed.folder / "frames").glob("*.npy"))
    out.case("follow-a-run.md: five elements were saved", [] if len(images) == 5 else [str(images)])
    if images and not installed.python("import numpy").returncode:
        read = installed.python(f"import numpy; print(numpy.load('frames/{images[0].name}').shape, numpy.load('peaks.npy').shape[1])")
        out.case("follow-a-run.md: NumPy reads them", [] if read.stdout == "(1064, 1030) 8\n" else [read.stdout + read.stderr])
    done, shown = run("/bin/sh", "-e", "-c", blocks[-1], folder=installed.folder, env=env), extract.blocks(page, "text")[0]
    out.case("follow-a-run.md: messages come back as the page shows", [] if done.stdout == shown else [done.stdout + done.stderr, "is not", shown])
    summary, page = installed.folder / "live.json", (ROOT / "docs/reference/summary.md").read_text()
    sinks = json.loads(summary.read_text())["sinks"] if summary.exists() else []
    figures = [name for sink in sinks if sink["name"] == "share" for name in sink["figures"]]
    out.case("summary.md names every figure of share", [name for name in figures if f"`{name}`" not in page] if figures else ["there are none"])


# ---- docs/how-to/python-stage.md ----

def check_python_stage(out, installed):
    """Its scripts judge frames of runs, and figures and results are those that the page shows; so does the script of examples/."""
    page = (ROOT / "docs/how-to/python-stage.md").read_text()
    if "(not in this program" in run(SLUICE, "list", "nexus").stdout or installed.python("import h5py, numpy").returncode:
        installed.skipped.add("python-stage")
        out.skip("python-stage.md", "this program has no nexus sink, or python3-h5py is not installed")
        return
    (installed.folder / "hits.yaml").write_text(extract.blocks(page, "yaml")[0])
    for name, script in zip(("hits", "outliers", "flaky"), extract.blocks(page, "python"), strict=True):
        (installed.folder / f"{name}.py").write_text(script)
    (installed.folder / "examples").mkdir()
    for name in ("python-stage.yaml", "python_stage.py"):
        shutil.copy(ROOT / "examples" / name, installed.folder / "examples")
    blocks, shown = extract.blocks(page, "sh"), extract.blocks(page, "text")
    first = installed.env["PATH"]
    installed.env["PATH"] = f"{installed.program.parent}:{pathlib.Path(PYTHON).parent}:{first}"
    try:
        done = [installed.shell(block) for block in blocks]
    finally:
        installed.env["PATH"] = first
    out.case("python-stage.md: every command succeeds",
             [one.stdout + one.stderr for one in done if one.returncode])
    printed = [one.stdout for one in done if one.stdout]
    out.case("python-stage.md: commands print what the page shows", [] if printed == shown else [f"{printed}", "is not", f"{shown}"])
    figures = installed.summary()["unit"]["figures"]  # of the last one
    out.case("examples/python-stage.yaml: every frame is judged", [] if figures["python_judged"] == 300 else [f"{figures}"])


# ---- docs/how-to/python.md ----

def check_python(out, installed):
    """Every script of the page prints what the page shows, with the package that meson installed; and pip installs it, too."""
    page = (ROOT / "docs/how-to/python.md").read_text()
    if "(not in this program" in run(SLUICE, "list", "nexus").stdout or installed.python("import cffi, h5py, numpy").returncode:
        installed.skipped.add("python")
        out.skip("python.md", "this program has no nexus sink, or python3-cffi, python3-h5py or python3-numpy is not installed")
        return
    if os.environ.get("SLUICE_SANITIZER"):
        installed.skipped.add("python")
        out.skip("python.md", "the library of this build needs a sanitized program")
        return
    watched, scan = extract.blocks(page, "yaml")
    (installed.folder / "watched.yaml").write_text(watched)
    (installed.folder / "scan.yaml").write_text(scan)
    install, watch = extract.blocks(page, "sh")
    scripts, shown = extract.blocks(page, "python"), extract.blocks(page, "text")
    check_pip(out, installed, install)
    root = installed.program.parents[1]
    before = installed.env
    installed.env = {**before, "PYTHONPATH": str(next(root.rglob("sluice/_cdef.py")).parents[1]), "SLUICE_SITE": "",
                     "SLUICE_RUN_DIR": str(installed.folder / "python-sockets")}
    installed.env.pop("SLUICE", None)
    (installed.folder / "watch.py").write_text(scripts[0])
    done = installed.shell(watch.replace("python3 ", f"{PYTHON} "))
    shows(out, "python.md: frames of a live run are followed", done, shown[0])
    (installed.folder / "view.py").write_text(scripts[1])
    done = installed.shell(watch.replace("python3 watch.py", f"{PYTHON} view.py"))
    shows(out, "python.md: views of a live run", done, shown[1])
    for number, name in ((2, "runs are started and watched"), (3, "a file is read"), (4, "a program publishes arrays of its own")):
        shows(out, f"python.md: {name}", installed.python(scripts[number]), shown[number])
    installed.env = before


def shows(out, name, done, text):
    out.case(name, [] if done.returncode == 0 and done.stdout == text else [done.stdout + done.stderr, "is not", text])


def check_pip(out, installed, command):
    """In a copy of the tree, to a folder of its own, without network."""
    if installed.python("import pip").returncode:
        installed.skipped.add("python")
        out.skip("python.md: pip installs the package", "python3-pip is not installed")
        return
    copy, target = installed.folder / "tree", installed.folder / "pip"
    shutil.copytree(ROOT / "python", copy / "python", ignore=shutil.ignore_patterns("__pycache__"))
    options = f"--no-index --no-deps --disable-pip-version-check --root-user-action ignore --target {target}"
    done = installed.shell(command.replace("python3 -m pip install", f"{PYTHON} -m pip install {options}").replace("./python", str(copy / "python")))
    installed.ran[-1] = command
    out.case("python.md: pip installs the package", [] if done.returncode == 0 and (target / "sluice/__init__.py").exists()
             else [done.stdout + done.stderr])


# ---- docs/how-to/why-did-i-lose-frames.md ----

def shape(text):
    """The same without its numbers, which are of one host and one run."""
    return re.sub(r"\d+(\.\d+)?", "N", text)


def check_explain(out, installed):
    """Each block of commands prints what the page shows, but for its numbers; and its Python reads the flight record."""
    page = (ROOT / "docs/how-to/why-did-i-lose-frames.md").read_text()
    env = {**installed.env, "SLUICE_RUN_DIR": str(installed.folder / "lossy-sockets"), "SLUICE_SITE": ""}
    (installed.folder / "lossy.yaml").write_text(extract.blocks(page, "yaml")[0])
    for commands, shown in zip(extract.blocks(page, "sh"), extract.blocks(page, "text"), strict=True):
        case = f"why-did-i-lose-frames.md: {commands.split(chr(10))[0]}"
        installed.ran.append(commands)
        if commands.startswith("tshark") and not shutil.which("tshark"):
            out.skip(case, "tshark is not installed")
            continue
        done = run("/bin/sh", "-e", "-c", commands.replace("python3 ", f"{PYTHON} "), folder=installed.folder, env=env)
        # On a busy host there may be other losses besides: they come behind.
        right = not done.returncode and shape(done.stdout).startswith(shape(shown))
        out.case(case, [] if right else [done.stdout + done.stderr, "is not", shown])
    read = installed.python(extract.blocks(page, "python")[0])
    out.case("why-did-i-lose-frames.md: its Python", [] if re.search(r"^ *\S+ s  [1-9]\d* drops  \d+ ns$", read.stdout, re.M)
             else [read.stdout + read.stderr])
    listed = {line.split()[0] for line in run(SLUICE, "explain", "--list").stdout.splitlines()}
    out.case("why-did-i-lose-frames.md names every cause", sorted(cause for cause in listed if f"`{cause}`" not in page) or
             ([] if len(listed) > 20 else ["no causes are listed"]))


# ---- every command of a page ----

PAGES = ("files", "stream2", "burst", "look-back", "redis", "audit", "follow-a-run", "python", "python-stage", "share-between-hosts",
         "prometheus", "lima", "xpcs", "bluesky", "why-did-i-lose-frames", "detector-side", "serve", "script-it")
# Between words of a paragraph: a program, a subcommand where there are some, and an argument that is no option. Not `sluice bench`, which
# tests/system/bench_test.py runs.
INLINE = re.compile(r"(?:(?:sluice (?!bench)|silx )\w+|indexamajig|dials\.\w+|redis-cli|build/\S+|tools/\S+|python3) [^-\s].*|indexamajig .*")
# What no test can run, and the words with which the page says so.
NOT_RUN = {"xpcs": {"silx view xpcs.nxs": "opens a window"},
           "files": {"indexamajig -g run.geom -i list.txt --peaks=cxi": "CrystFEL is not in Debian", "silx view run_master.h5": "opens a window",
                     "silx view results.nxs": "opens a window"}}


def paragraphs(page):
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page, flags=re.S | re.M)


def was_run(command, ran):
    """A line has the words of the command in their order; anything is in the place of NAME and of three dots."""
    words_of = [re.escape(word) for word in re.sub(r"\b[A-Z]{2,}\b|\.\.\.", " ", command).split()]
    return re.search(r"[^\n]*?".join(words_of), ran)


def check_inline(out, installed, page, ran):
    """Commands between the words of a page were run as well, or the page says why they are not."""
    text = (ROOT / f"docs/how-to/{page}.md").read_text()
    excused = NOT_RUN.get(page, {})
    found = [command for command in re.findall(r"`([^`\n]+)`", paragraphs(text)) if INLINE.fullmatch(command)]
    left = [command for command in found if command not in installed.absent and command not in excused and not was_run(command, ran)]
    left += [f"{command}: the page does not say '{why}'" for command, why in excused.items() if why not in words(text)]
    left += [f"{command} is not on the page" for command in excused if command not in found]
    out.case(f"{page}.md: every command between its words is run, or the page says why not", left)


def check_commands(out, installed):
    """Each block of commands of these pages was run by a check above, whatever was set up around it."""
    ran = "\n".join(installed.ran).replace(PYTHON, "python3").replace("timeout 100 ", "")
    for page in PAGES:
        case = f"{page}.md: every command is run"
        if page in installed.skipped:
            out.skip(case, "what the page is about is not here: see above")
            continue
        out.case(case, [block for block in extract.blocks((ROOT / f"docs/how-to/{page}.md").read_text(), "sh") if block not in ran])
        check_inline(out, installed, page, ran)
    out.case("a command between words that was not run is found", [] if INLINE.fullmatch("sluice ctl NAME frobnicate")
             and not was_run("sluice ctl NAME frobnicate", ran) else ["it is not"])


# ---- docs/how-to/xpcs.md ----

def check_xpcs(out, installed):
    """Its experiment runs, its Python prints what the page shows, and draws its picture."""
    page = (ROOT / "docs/how-to/xpcs.md").read_text()
    if "(not in this program" in run(SLUICE, "list", "nexus").stdout or installed.python("import h5py").returncode:
        installed.skipped.add("xpcs")
        out.skip("xpcs.md", "this program has no nexus sink, or python3-h5py is not installed")
        return
    (installed.folder / "xpcs.yaml").write_text(extract.blocks(page, "yaml")[0])
    done = installed.shell(block(page, "sh", "run xpcs.yaml"))
    fitted, drawn, rows = (installed.python(block(page, "python", words)) for words in ("polyfit", "savefig", "correlation_rows"))
    shown = extract.blocks(page, "text")
    out.case("xpcs.md: the diffusion constant and the rows are those of the page", [] if not done.returncode and [fitted.stdout, rows.stdout] == shown
             else [done.stdout + done.stderr, fitted.stdout + fitted.stderr, rows.stdout + rows.stderr, "is not", *shown])
    if installed.python("import matplotlib").returncode:
        out.skip("xpcs.md: its picture is drawn", "python3-matplotlib is not installed")
    else:
        out.case("xpcs.md: its picture is drawn", [] if (installed.folder / "xpcs.png").exists() else [drawn.stderr])


# ---- docs/how-to/metadata.md ----

def check_metadata(out, installed):
    """Its experiment runs, its changes are taken, and its Python prints what the page shows; its site file is accepted."""
    page = (ROOT / "docs/how-to/metadata.md").read_text()
    if "(not in this program" in run(SLUICE, "list", "nexus").stdout or installed.python("import h5py").returncode:
        out.skip("metadata.md", "this program has no nexus sink, or python3-h5py is not installed")
        return
    experiment, site = extract.blocks(page, "yaml")
    (installed.folder / "salt.yaml").write_text(experiment)
    (installed.folder / "salt-site.yaml").write_text(site)
    env = {**installed.env, "SLUICE_RUN_DIR": str(installed.folder / "salt-sockets"), "SLUICE_SITE": ""}
    installed.ran.append(extract.blocks(page, "sh")[0])
    done = run("/bin/sh", "-e", "-c", installed.ran[-1], folder=installed.folder, env=env)
    read, shown = installed.python(extract.blocks(page, "python")[0]), extract.blocks(page, "text")[0]
    out.case("metadata.md: the file has what the page shows",
             [] if done.returncode == 0 and read.stdout == shown else [done.stdout + done.stderr, read.stdout + read.stderr, "is not", shown])
    checked = run(SLUICE, "check", "--site", "salt-site.yaml", "salt.yaml", folder=installed.folder, env=env)
    out.case("metadata.md: the site file locks the instrument",
             [] if re.search(r"instrument: BL7 +# salt-site.yaml:2 \(locked\)", checked.stdout) else [checked.stdout + checked.stderr])
    known = {row.split("|")[1].strip() for row in run(SLUICE, "list", "--markdown").stdout.split("## metadata", 1)[-1].split("\n## ")[0].splitlines()
             if row.startswith("| `")}
    out.case("metadata.md names every key", sorted(key for key in known if key not in page) or ([] if len(known) > 10 else ["no keys are listed"]))


# ---- docs/how-to/control-a-session.md ----

def check_control(out, installed):
    """The script of the page starts a run, controls it by name, and ends it."""
    page = (ROOT / "docs/how-to/control-a-session.md").read_text()
    (installed.folder / "scan.yaml").write_text(extract.blocks(page, "yaml")[0])
    env = {**installed.env, "SLUICE_RUN_DIR": str(installed.folder / "sockets"), "SLUICE_SITE": ""}
    installed.ran.append(extract.blocks(page, "sh")[0])
    done = run("/bin/sh", "-e", "-c", installed.ran[-1], folder=installed.folder, env=env)
    wanted = [r"^NAME +STATE +RUN +FRAMES", r"^scan +running ", r"^scan: paused.*drained", "^sample_temperature_K=77$", r"^scan: ended.*intact",
              r'"metadata":{"sample":"lysozyme"']
    missing = [text for text in wanted if not re.search(text, done.stdout, re.M)]
    out.case("the script of control-a-session.md does as told", [f"exit status {done.returncode}", done.stdout, done.stderr, *missing]
             if done.returncode or missing else [])
    files = {"include/sluice/client.h", "share/sluice/status.schema.json"}
    root = installed.program.parents[1]
    out.case("what clients need is installed", [name for name in sorted(files) if not (root / name).exists()] +
             [name for name in ("libsluice-client.so.0", "sluice-client.pc") if not list(root.rglob(name))])


# ---- docs/how-to/detector-side.md ----

def check_detector_side(out, installed):
    """Both sides take two runs by the commands of the page, then one by its telegram and one by its Python; telegrams are as their schema says."""
    page = (ROOT / "docs/how-to/detector-side.md").read_text()
    (installed.folder / "scan.yaml").write_text(extract.blocks(page, "yaml")[0])
    (installed.folder / "scan.xml").write_text(extract.blocks(page, "xml")[0])
    (installed.folder / "scan.py").write_text(extract.blocks(page, "python")[0])
    begin, end, send = extract.blocks(page, "sh")
    installed.ran += [begin, end, send]
    env = {**installed.env, "SLUICE_RUN_DIR": str(installed.folder / "detector-sockets"), "SLUICE_SITE": ""}
    done = run("/bin/sh", "-e", "-c", f"{begin}{send}{PYTHON} scan.py\n{end}", folder=installed.folder, env=env)
    wanted = [r"^scan.detector: ended, run 2: 50 of 50 frames.*intact$", r"^scan +ended +000002 +50 ", r'result="done".*to="scan.detector"',
              f"^{extract.blocks(page, 'text')[0].strip()}$", r"^run 4: intact, 80 frames, 0 lost"]
    wanted = [text.replace('".*to', '"(.|\n)*to') for text in wanted]
    missing = [text for text in wanted if not re.search(text, done.stdout, re.M)]
    out.case("the commands of detector-side.md do as told", [f"exit status {done.returncode}", done.stdout, done.stderr, *missing]
             if done.returncode or missing else [])
    schema = installed.program.parents[1] / "share/sluice/telegram.xsd"
    out.case("the schema of telegrams is installed", [] if schema.exists() else [str(schema)])
    if not shutil.which("xmllint"):
        out.skip("telegrams of the pages are as their schema says", "xmllint (libxml2-utils) is not installed")
        return
    problems = []
    for number, text in enumerate([*extract.blocks(page, "xml"), *extract.blocks((ROOT / "docs/reference/telegram.md").read_text(), "xml")]):
        (installed.folder / f"page-{number}.xml").write_text(text)
        checked = run("xmllint", "--noout", "--nonet", "--schema", schema, f"page-{number}.xml", folder=installed.folder)
        problems += [checked.stderr] if checked.returncode else []
    out.case("telegrams of the pages are as their schema says", problems)


# ---- the tutorials ----

def check_add_on(out, installed, page, name):
    """The first commands of the page build the plug-in and list it."""
    built = installed.shell(extract.blocks(page, "sh")[0])
    out.case(f"{name} is built as the page says, without a warning", [built.stderr] if built.returncode or built.stderr else [])
    shown = extract.blocks(page, "text")[0].replace("FOLDER", str(installed.folder))
    out.case(f"sluice list shows {name} as the page does", [] if built.stdout == shown else [built.stdout, "is not", shown])
    listed = run(SLUICE, "list", name)
    out.case(f"sluice itself does not have {name}", [] if listed.returncode == 1 else [listed.stdout])
    case = f"the code of {name} is as clang-format writes it"
    if not shutil.which("clang-format-14"):
        out.skip(case, "clang-format-14 is not installed")
        return
    code = "\n".join(extract.blocks(page, "c"))
    style = f"--style=file:{ROOT}/.clang-format"
    formatted = subprocess.run(["clang-format-14", style, "--assume-filename=a.c"], input=code, capture_output=True,
                               text=True, check=True).stdout
    out.case(case, [] if formatted == code else [formatted])


def told_of_blank(summary):
    """A summary in the words of the page."""
    stored = summary["ledger"]["total"]["outcomes"]["stored"]
    causes = summary["ledger"]["total"]["causes"]
    return (f"keeps {summary['frames']['kept']} of the 62 frames: {stored} module-frames are stored, {causes['stage']} "
            f"are vetoed with the cause `stage` and {causes['dark']} with the cause `dark`")


def told_of_spot(summary):
    compared = next(s for s in summary["sinks"] if s["name"] == "verify")["figures"]["frames_compared"]
    return f"stores {summary['ledger']['total']['outcomes']['stored']} module-frames and compares {compared} frames, byte by byte"


def check_run(out, installed, page, name, told):
    """The other commands of the page run the experiment; its Python reads the file. True: both went well."""
    case = f"the experiment of {name} ends as the page says"
    if "(not in this program" in run(SLUICE, "list", "nexus").stdout:
        out.skip(case, "this program has no nexus sink")
        return False
    done = installed.shell(extract.blocks(page, "sh")[1])
    if done.returncode:
        out.case(case, [done.stderr])
        return False
    says = told(installed.summary())
    out.case(case, [] if says in words(page) else ["the page does not say: " + says])
    case = f"h5py finds in the file of {name} what the page says"
    if installed.python("import h5py").returncode:
        out.skip(case, "python3-h5py is not installed")
        return True
    read, shown = installed.python(extract.blocks(page, "python")[0]), extract.blocks(page, "text")[1]
    out.case(case, [] if read.stdout == shown else [read.stdout + read.stderr, "is not", shown])
    return True


def check_tutorials(out, installed):
    check_add_on(out, installed, TUTORIAL, "blank")
    check_add_on(out, installed, DETECTOR, "spot")
    check_run(out, installed, DETECTOR, "spot", told_of_spot)
    if check_run(out, installed, TUTORIAL, "blank", told_of_blank):
        check_summary(out, installed.summary(), installed.folder / "blank.nxs")


# ---- docs/reference/summary.md ----

def keys(value):
    """Every key of a summary, at any depth."""
    if isinstance(value, dict):
        return set(value).union(*(keys(part) for part in value.values()))
    return set().union(*(keys(part) for part in value)) if isinstance(value, list) else set()


def datasets(path):
    """What the file has in the groups that are Sluice's own."""
    import h5py  # pylint: disable=import-outside-toplevel
    found = []
    with h5py.File(path, "r") as file:
        for group in ("data", "sluice"):
            file["entry"][group].visititems(lambda name, item: found.append(name) if hasattr(item, "dtype") else None)
    return set(found)


def check_summary(out, summary, path):
    page = (ROOT / "docs/reference/summary.md").read_text()
    named = set(re.findall(r"[\w]+", " ".join(re.findall(r"`[^`]+`", page))))
    out.case("summary.md names every field of the summary", sorted(keys(summary) - named))
    try:
        missing = {name for name in datasets(path) if name.split("/")[-1] not in named}
    except ImportError:
        out.skip("summary.md names every dataset of its own", "python3-h5py is not installed")
        return
    out.case("summary.md names every dataset of its own", sorted(missing))


# ---- the tables of docs/reference/wire.md ----

ROW = re.compile(r"^\| (\d+) \| (\d+) \| `([\w.]+)` \|")
MESSAGES = {"HELLO": "hello", "OFFER": "offer", "PLAN": "plan", "COUNT and DONE": "count", "ERROR": "error"}


def laid_out(fields):
    """[(field, bytes)] as rows of (offset, bytes, field), and the sum."""
    rows, at = [], 0
    for field, size in fields:
        rows.append((at, size, field))
        at += size
    return rows, at


def message_fields(name):
    """[(field, bytes)] of a message, from the table in src/control/tcp/wire.c."""
    code = (ROOT / "src/control/tcp/wire.c").read_text()
    headers = (ROOT / "src/control/tcp/wire.h").read_text() + (ROOT / "src/core/plan.h").read_text()
    table = re.search(rf"struct field {name}_fields\[\] = {{(.*?)END", code, re.S)[1]
    found = []
    for kind, field in re.findall(r"F\((\w+), struct \w+, ([\w.]+)\)", table):
        size = {"U16": "2", "U32": "4", "U64": "8"}.get(kind)
        if kind == "BYTES" and "." in field:
            size = "16"  # an address
        elif kind in ("TEXT", "BYTES"):
            size = re.search(rf"\b{field}\[(\w+)\]", headers)[1]
            size = size if size.isdigit() else re.search(rf"{size} = (\d+)", headers)[1]
        found.append((field, int(size)))
    return found


def record_fields():
    header = (ROOT / "include/sluice/record.h").read_text()
    body = re.search(r"struct sl_record {(.*?)\n};", header, re.S)[1]
    return [(field, int(bits) // 8) for bits, field in re.findall(r"uint(\d+)_t (\w+);", body)]


def table_below(lines, start):
    """The rows of the first table below a line."""
    rows = []
    for line in lines[start + 1:]:
        row = ROW.match(line)
        if row:
            rows.append((int(row[1]), int(row[2]), row[3]))
        elif rows:
            break
    return rows


def check_wire(out):
    lines = (ROOT / "docs/reference/wire.md").read_text().splitlines()
    expected, total = laid_out(record_fields())
    rows = table_below(lines, lines.index("## A block: pixels, then a record"))
    out.case("wire.md: the record", [] if rows == expected and total == 64 else [f"{rows}", f"{expected}"])
    for title, name in MESSAGES.items():
        expected, total = laid_out(message_fields(name))
        # "82 bytes:", or "82 bytes (72 at least):" where older ones have fewer fields.
        heading = re.compile(rf"{title}, {total} bytes( \(\d+ at least\))?:")
        at = next((i for i, line in enumerate(lines) if heading.fullmatch(line)), None)
        rows = [f"no line '{title}, {total} bytes'"] if at is None else table_below(lines, at)
        out.case(f"wire.md: {title}", [] if rows == expected else [f"{rows}", f"{expected}"])


# ---- the tables of docs/reference/feedback.md ----

def feedback_fields():
    """[(field, bytes)] of the header and of an answer, from the comment of src/feedback/wire.h."""
    text = (ROOT / "src/feedback/wire.h").read_text()
    parts = [[]]
    for kind, field, at in re.findall(r"\b([uf]\d+) (\w+) @(\d+)", text):
        if int(at) == 0 and parts[-1]:
            parts.append([])
        parts[-1].append((field, int(kind[1:]) // 8))
    return parts


def check_feedback(out):
    lines = (ROOT / "docs/reference/feedback.md").read_text().splitlines()
    for title, size, fields in zip(("Header", "Answer"), (40, 24), feedback_fields(), strict=True):
        expected, total = laid_out(fields)
        rows = table_below(lines, lines.index(f"{title}, {size} bytes:"))
        out.case(f"feedback.md: {title}", [] if rows == expected and total == size else [f"{rows}", f"{expected}"])


def main():
    out = tap.Writer()
    with tempfile.TemporaryDirectory() as place:
        installed = Installed(place)
        out.case("the tree is installed", installed.problems)
        if not installed.problems:
            check_tutorials(out, installed)
            check_experiments(out, installed)
            check_library(out, installed)
            check_many_runs(out, installed)
            check_geometry(out, installed)
            check_files(out, installed)
            check_xpcs(out, installed)
            if "(not in this program" in run(SLUICE, "list", "nexus").stdout or installed.python("import h5py").returncode:
                installed.skipped |= {"burst", "look-back"}
                out.skip("burst.md, look-back.md", "this program has no nexus sink, or python3-h5py is not installed")
            else:
                check_burst(out, installed)
                check_look_back(out, installed)
            check_two_detectors(out, installed)
            check_audit(out, installed)
            check_explain(out, installed)
            check_stream(out, installed)
            check_control(out, installed)
            check_detector_side(out, installed)
            check_metadata(out, installed)
            check_redis(out, installed)
            check_python(out, installed)
            check_follow(out, installed)
            check_python_stage(out, installed)
            share_pages.check_hosts(out, installed)
            control_pages.check(out, installed)
            service_pages.check(out, installed)
            live_page.check(out, installed, run, "serve" in run(SLUICE, "list", "command").stdout)
            check_commands(out, installed)
    check_stages(out)
    check_wire(out)
    check_feedback(out)
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
