"""bench_probes.py - what tools/bench.py runs: each probe measures one thing once and returns its figures.

Sizes are for about a second each on two ordinary cores; the quick ones are a third of that or less.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import zlib

import bench_codecs
import bench_plots
import bench_shares
import bench_triggers

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"  # Debian's, which has numpy; the first on the path may be another
PROGRAM_TIMEOUT_S = 60
LINK_TIMEOUT_S = 1800
STAGE_TIMEOUT_S = 1800
GUEST_TIMEOUT_S = 3600
GUEST_CANNOT = 77  # exit status: there can be no guest here
PACKET_BYTES = 4096
SHM_BYTES = 1 << 30  # free in /dev/shm, for the file of the end-to-end rows to go there


class Absent(Exception):
    """This row cannot be measured here; the text says why."""


class Bench:
    """Where things are, and how much to do: `size(full, quick)` is an amount of work."""

    def __init__(self, build, quick, scratch):
        self.build, self.quick, self.scratch = build, quick, scratch
        memory = pathlib.Path("/dev/shm")
        roomy = memory.is_dir() and shutil.disk_usage(memory).free > SHM_BYTES
        self.memory = pathlib.Path(tempfile.mkdtemp(prefix="sluice-bench-", dir=memory)) if roomy else scratch
        # An address of our own: runs of others on this machine have port 4791 elsewhere.
        pid = os.getpid()
        self.address = f"127.{77 + pid // 62500 % 100}.{pid // 250 % 250 + 1}.{pid % 250 + 1}"
        self.dumped = False
        self.counted = {}  # instructions per packet, by mode

    def size(self, full, quick):
        return str(quick if self.quick else full)

    def program(self, name):
        path = self.build / "bench" / name
        if not path.exists():
            raise Absent(f"{name} is not built (its library is not installed)")
        return path

    def close(self):
        if self.memory != self.scratch:
            shutil.rmtree(self.memory, ignore_errors=True)


def run(command, cwd=ROOT):
    """What a program prints. All that it started ends with it, whatever happens."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([str(word) for word in command], cwd=cwd, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=err, start_new_session=True)
        try:
            status = process.wait(PROGRAM_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        for file in (out, err):
            file.seek(0)
        if status != 0:
            last = err.read().decode(errors="replace").strip().splitlines()[-1:]
            name = pathlib.Path(command[0]).name
            raise Absent(f"{name} {'ran too long' if status is None else 'failed'}: {' '.join(last)}")
        return out.read().decode()


# ---- what is run; each returns its figures ----

def program(name, *words):
    """A program of bench/ that prints JSON; (full, quick) pairs among the words are amounts."""
    def probe(bench):
        sized = [bench.size(*word) if isinstance(word, tuple) else word for word in words]
        return json.loads(run([bench.program(name), *sized]))
    return probe


def sluice(bench, experiment, settings):
    """A run with its front end as another process; what its summary says."""
    summary = bench.scratch / "summary.json"
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    run([bench.build / "sluice", "run", ROOT / "bench/part" / experiment, "--quiet", "--summary", summary, "--set",
         f"link.listen={bench.address}", *sets])
    return json.loads(summary.read_text())


def link(kind, frames, pmtu=PACKET_BYTES, modules=2):
    def probe(bench):
        said = sluice(bench, "link.yaml", {"link.kind": kind, "link.pmtu": pmtu, "detector.modules": modules,
                                           "detector.frames": bench.size(*frames)})
        return {"GB_per_s": said["rates"]["GB_per_s"], "frames_per_s": said["rates"]["frames_per_s"],
                "packets_per_s": said["link"]["packets"] / said["rates"]["seconds"]}
    return probe


def events(kind, frames, in_block=256):
    def probe(bench):
        said = sluice(bench, "events.yaml", {"link.kind": kind, "detector.frames": bench.size(*frames),
                                             "detector.events": in_block})
        return {name: said["rates"][name] for name in ("GB_per_s", "events_per_s")}
    return probe


def cpu_seconds(pid):
    """CPU time of each thread of a process, by the thread's name."""
    seconds = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            text = (task / "stat").read_text()
        except OSError:
            continue  # it has ended
        name, fields = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        seconds[name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def thread_cost(bench):
    """The share of a core that threads of the receiver take in the middle of a run at a fixed rate."""
    command = [bench.build / "sluice", "run", ROOT / "bench/part/rate.yaml", "--quiet", "--set", f"link.listen={bench.address}"]
    with subprocess.Popen([str(word) for word in command], cwd=bench.scratch, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        time.sleep(1)
        begun, before = time.monotonic(), cpu_seconds(process.pid)
        time.sleep(2)
        took, after = time.monotonic() - begun, cpu_seconds(process.pid)
        if process.wait(PROGRAM_TIMEOUT_S) != 0 or "settler" not in before:
            raise Absent("the run at 10 kHz failed")
    return {f"{name}_cores": (after[name] - before[name]) / took for name in ("dispatcher", "settler", "link-0")}


def detector(name, seconds):
    """A row of sluice bench detector, one round."""
    def probe(bench):
        file = bench.scratch / "detector.json"
        run([bench.build / "sluice", "bench", "detector", "--rounds", "1", "--seconds", bench.size(*seconds), "--only", name,
             "--json", file])
        row = json.loads(file.read_text())["rows"][0]
        return {"GB_per_s": row["value"], "events_per_s": row["events_per_s"]}
    return probe


def remove(file):
    """A file of a run, and its data files."""
    for path in (file, *file.parent.glob(f"{file.stem}_data_*.h5")):
        path.unlink()


def end_to_end(kind, frames, rate_hz=0, darks=128, **changes):
    def probe(bench):
        file = bench.memory / "demo.nxs"
        said = sluice(bench, "demo.yaml",
                      {"link.kind": kind, "detector.frames": bench.size(*frames), "detector.dark_frames": darks,
                       "detector.frame_rate_Hz": rate_hz, "sinks[0].nexus.path": file, **changes})
        remove(file)
        figures = {name: said["rates"][name] for name in ("GB_per_s", "frames_per_s")}
        for hop, times in said["latency_us"].items():
            figures |= {f"{hop}_p50_us": times["p50"], f"{hop}_p99_us": times["p99"]}
        return figures
    return probe


def stages(bench):
    return json.loads(run([bench.program("bench_stages"), ROOT / "bench/part/demo.yaml", bench.size(1240, 310)]))


def numpy_stages(bench):
    if not bench.dumped:
        run([bench.program("bench_stages"), ROOT / "bench/part/demo.yaml", "dump", bench.scratch])
        bench.dumped = True
    return json.loads(run([PYTHON, ROOT / "bench/peer/numpy.py", bench.scratch, bench.size(124, 31)]))


def zlib_crc(bench):
    packets = [memoryview(os.urandom(PACKET_BYTES)) for _ in range(64)]
    rounds = int(bench.size(2000, 500))
    start = time.perf_counter()
    for _ in range(rounds):
        for packet in packets:
            zlib.crc32(packet)
    seconds = time.perf_counter() - start
    return {"GB_per_s": rounds * len(packets) * PACKET_BYTES / seconds * 1e-9}


def instructions(bench, mode, packets=50000):
    """User-space instructions per packet, counted by callgrind: the same every time, so one round does."""
    if mode not in bench.counted and shutil.which("valgrind"):
        file = bench.scratch / f"callgrind-{mode}"
        out = run(["valgrind", "-q", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=bench_describe",
                   "--toggle-collect=bench_packets", f"--callgrind-out-file={file}", bench.program("bench_frontend"),
                   mode, packets])
        total = next(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith("summary:"))
        bench.counted[mode] = total / json.loads(out)["packets"]
    return {"instructions_per_packet": bench.counted[mode]} if mode in bench.counted else {}


def frontend(mode, packets):
    def probe(bench):
        command = [bench.program("bench_frontend"), mode, bench.size(*packets)]
        return {**json.loads(run(command)), **instructions(bench, mode)}
    return probe


def write_plainly(bench):
    path = bench.scratch / "file.raw"
    figures = json.loads(run([bench.program("peer_write"), path, 2 << 20, bench.size(256, 64)]))
    path.unlink()
    return figures


def session(bench):
    """Runs of 16 frames after 128 dark ones, each in a folder of its own; the first opens everything."""
    root = bench.scratch / "session"
    figures = json.loads(run([bench.program("bench_session"), ROOT / "bench/part/demo.yaml", bench.size(101, 21), root,
                              bench.build / "sluice", "detector.frames=16", "sinks.nexus.path=run.nxs"]))
    shutil.rmtree(root)
    return figures


def file_probe(write):
    """After the same amount was written and removed: a virtual machine may have to get the page cache's memory from its
    host first, which can take longer than the disk."""
    def probe(bench):
        write_plainly(bench)
        return write(bench)
    return probe


def write_nexus(compression, audit="true"):
    def write(bench):
        path = bench.scratch / "file.nxs"
        figures = json.loads(run([bench.program("bench_file"), ROOT / "bench/part/demo.yaml", path, bench.size(256, 64), compression,
                                  audit]))
        remove(path)
        return figures
    return write


RAW = {"write_bytes": 1 << 20, "depth": 32, "files": 4, "chunk_bytes": 4 << 20}  # the first two as in bench/part/raw.c


def raw_folder(bench):
    folder = bench.scratch / "raw"
    folder.mkdir()
    return folder


def write_raw(bench):
    folder = raw_folder(bench)
    try:
        return json.loads(run([bench.program("bench_raw"), folder / "run.raw", RAW["chunk_bytes"], bench.size(256, 64), RAW["files"]]))
    finally:
        shutil.rmtree(folder)


def write_fio(bench):
    """The same pattern: as many bytes in as many files, one after the other, with the same writes in flight."""
    if not shutil.which("fio"):
        raise Absent("fio is not installed")
    folder = raw_folder(bench)
    direct = raw_is_direct(folder)
    try:
        text = run(["fio", "--name=raw", f"--directory={folder}", "--rw=write", "--ioengine=io_uring", f"--direct={direct:d}",
                    f"--bs={RAW['write_bytes']}", f"--iodepth={RAW['depth']}", f"--nrfiles={RAW['files']}",
                    "--file_service_type=sequential", f"--size={RAW['chunk_bytes'] * int(bench.size(256, 64))}", "--end_fsync=1",
                    "--output-format=json"], cwd=folder)
    finally:
        shutil.rmtree(folder)
    return {"GB_per_s": 1e-9 * json.loads(text[text.index("{"):])["jobs"][0]["write"]["bw_bytes"]}


def raw_is_direct(folder):
    """Whether files of this folder can be written past the page cache."""
    try:
        os.close(os.open(folder / "direct", os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600))
    except OSError:
        return False
    return True


def pack(bench, images=None):
    """Images packed from memory into memory, by a thread on each core and nothing else."""
    return json.loads(run([bench.program("bench_pack"), ROOT / "bench/part/keep.yaml", images or bench.size(2000, 200), os.cpu_count()]))


def keep_all(**options):
    """Every frame is stored, packed, on disk; `options`: of the sink."""
    def probe(bench):
        file = bench.scratch / "keep.nxs"
        said = sluice(bench, "keep.yaml", {"detector.frames": bench.size(2000, 200), "sinks[0].nexus.path": file,
                                           **{f"sinks[0].nexus.{name}": value for name, value in options.items()}})
        remove(file)
        rate = said["rates"]["frames_per_s"]
        return {"frames_per_s": rate, "pixel_GB_per_s": 1e-9 * rate * pack(bench, 16)["image_bytes"]}
    return probe


def write_packed(bench):
    """As many bytes as the packed images have, by write and fsync; counted as the pixels that they stand for."""
    size, path = pack(bench, 16), bench.scratch / "packed.raw"
    packed = round(size["packed_bytes_per_image"])
    figures = json.loads(run([bench.program("peer_write"), path, packed, bench.size(2000, 200)]))
    path.unlink()
    return {"pixel_GB_per_s": figures["GB_per_s"] * size["image_bytes"] / packed, **figures}


def stream(mode):
    return program("bench_stream", ROOT / "bench/part/stream.yaml", mode, (198, 66))


def link_table(bench, out, plots):
    """`sluice bench link`, which has rounds of its own: its text, its results, and where it drew them."""
    file = out / "link.json"
    amount = ["--rounds", "1", "--seconds", "0.1"] if bench.quick else ["--sweep"]
    command = [bench.build / "sluice", "bench", "link", "--json", file, *amount]
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          timeout=LINK_TIMEOUT_S, text=True, check=False)
    if not done.stdout:
        raise Absent(f"sluice bench link ended with status {done.returncode}")
    return done.stdout, done.returncode, bench_plots.write(json.loads(file.read_text()), plots)


def cost_table(bench, out):
    """What the compared rows cost in user space, instructions per byte; the same every time, so one round does."""
    if not shutil.which("valgrind"):
        raise Absent("instructions per byte: valgrind is not installed")
    command = [bench.build / "sluice", "bench", "link", "--callgrind", "--compared", "--rounds", "1", "--json",
               out / "cost.json"]
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          timeout=LINK_TIMEOUT_S, text=True, check=False)
    if not done.stdout:
        raise Absent(f"sluice bench link --callgrind ended with status {done.returncode}")
    return done.stdout


def stage_row(row):
    found = [f"{row['found']} of {row['planted']} peaks"] if "planted" in row else []
    found += [f"{row['picked']} pixels"] if "picked" in row else []
    hoped = row.get("expected_ms")
    found += [f"expected at most {hoped:g} ms: {'yes' if row['ms_per_frame'] <= hoped else 'no'}"] if hoped else []
    return (f"| `{row['name']}` | {row['value']:.3g} | {row['min']:.3g} .. {row['max']:.3g} | {row['ms_per_frame']:.3g} | "
            f"{', '.join(found)} |")


def stage_ratio(ratio):
    peers = ratio["name"].split(" / ")[1].split("|")
    peer = f"`{peers[0]}`" if len(peers) == 1 else "the best of " + ", ".join(f"`{name}`" for name in peers)
    hoped = ratio.get("expected")
    said = f"{hoped:g}: {'yes' if ratio['value'] >= hoped else 'no'}" if hoped else ""
    return (f"| `{ratio['name'].split(' / ')[0]}` | {peer} | {ratio['value']:.3g} | {ratio['min']:.3g} .. {ratio['max']:.3g} | "
            f"{said} |")


def stage_report(results):
    """What `sluice bench stage --json` wrote, as the tables of a document."""
    machine = results["machine"]
    lines = [f"{machine['cpu']}, {machine['cores']} cores; {machine['rounds']} rounds of {machine['seconds']:g} s; load "
             f"{machine['load_average']:g} at the end.", "",
             "| row | GB/s of raw pixels | min .. max | ms per frame | found |", "|---|---|---|---|---|",
             *map(stage_row, results["rows"])]
    if results["ratios"]:
        lines += ["", "| row | beside | ratio | min .. max | expected |", "|---|---|---|---|---|",
                  *map(stage_ratio, results["ratios"])]
    lines += ["", *(f"- left out: `{name}`: {why}" for name, why in results["left_out"].items())]
    return "\n".join(lines).rstrip() + "\n"


def stage_table(bench, out):
    """`sluice bench stage`, which has rounds of its own: tables for the report, and its exit status."""
    file = out / "stage.json"
    amount = ["--rounds", "1", "--seconds", "0.05", "--only", "*/500k"] if bench.quick else []
    command = [bench.build / "sluice", "bench", "stage", "--json", file, *amount]
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          timeout=STAGE_TIMEOUT_S, text=True, check=False)
    if not done.stdout:
        raise Absent(f"sluice bench stage ended with status {done.returncode}")
    return stage_report(json.loads(file.read_text())), done.returncode


def trigger_table(bench, out):
    """`sluice bench trigger`, which has rounds of its own: tables for the report, and its exit status."""
    file = out / "trigger.json"
    amount = ["--rounds", "1", "--seconds", "0.05"] if bench.quick else []
    command = [bench.build / "sluice", "bench", "trigger", "--json", file, *amount]
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          timeout=STAGE_TIMEOUT_S, text=True, check=False)
    if not done.stdout:
        raise Absent(f"sluice bench trigger ended with status {done.returncode}")
    return bench_triggers.report(json.loads(file.read_text())), done.returncode


def share_table(bench, out):
    """`sluice bench share`, which has rounds of its own: tables for the report, and its exit status."""
    file = out / "share.json"
    amount = ["--rounds", "1", "--seconds", "0.05"] if bench.quick else ["--sweep"]
    command = [bench.build / "sluice", "bench", "share", "--json", file, *amount]
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          timeout=STAGE_TIMEOUT_S, text=True, check=False)
    if not done.stdout:
        raise Absent(f"sluice bench share ended with status {done.returncode}")
    return bench_shares.report(json.loads(file.read_text())), done.returncode


def codec_table(bench, out):
    """`sluice bench codec`, which has rounds of its own: tables for the report, and its exit status."""
    file = out / "codec.json"
    amount = ["--rounds", "1", "--seconds", "0.05"] if bench.quick else ["--rounds", "9"]
    command = [bench.build / "sluice", "bench", "codec", "--compared", "--json", file, *amount]
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          timeout=STAGE_TIMEOUT_S, text=True, check=False)
    if not done.stdout:
        raise Absent(f"sluice bench codec ended with status {done.returncode}")
    results = {**json.loads(file.read_text()), "peer": bench_codecs.peer_of(os.environ)}
    file.write_text(json.dumps(results, indent=1) + "\n")
    return bench_codecs.report(results), done.returncode


def guest_table(build, quick, out):
    """tools/bench_guest.py, which has rounds of its own: its text and its exit status. It enters a network namespace, so
    it is a process."""
    command = [PYTHON, ROOT / "tools/bench_guest.py", "--build", build, "--json", out / "guest.json"]
    done = subprocess.run([str(word) for word in [*command, *(["--quick"] if quick else [])]], cwd=ROOT,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=GUEST_TIMEOUT_S, text=True, check=False)
    if done.returncode == GUEST_CANNOT:
        raise Absent(done.stdout.strip())
    return done.stdout or f"tools/bench_guest.py ended with status {done.returncode}\n", done.returncode


PROBES = {
    "link udp 4096": link("udp", (600, 200)),
    "peer udp 4096": program("peer_udp", "recvmmsg", "4096", (0.8, 0.2)),
    "link udp 1024": link("udp", (250, 80), 1024),
    "peer udp 1024": program("peer_udp", "recvmmsg", "1024", (0.8, 0.2)),
    "peer zmq 4096": program("peer_zmq", "push", "4096", (0.8, 0.2)),
    "peer zmq 1Mi": program("peer_zmq", "push", str(1 << 20), (0.8, 0.2)),
    "link shm": link("shm", (3000, 1000)),
    "peer memcpy": program("peer_memcpy", "copy", str(1 << 20), (0.8, 0.2)),
    "image udp": link("udp", (200, 60), modules=8),
    "image shm": link("shm", (800, 200), modules=8),
    "events udp": events("udp", (60000, 15000)),
    "events udp large": events("udp", (8000, 2000), 4096),
    "events shm": events("shm", (200000, 50000)),
    "events memory": detector("detector/rich", (0.8, 0.2)),
    "threads": thread_cost,
    "events tracker": detector("detector/tracker", (0.8, 0.2)),
    "stages": stages,
    "session": session,
    "peer numpy": numpy_stages,
    **{f"assemble {modules}": program("bench_assemble", "sequence", modules, 128, (20000000, 2000000))
       for modules in (1, 2, 4, 8, 16, 32)},
    # A run of many frames costs what a short one costs, frame by frame.
    "assemble 8 long": program("bench_assemble", "sequence", 8, 128, (200000000, 8000000)),
    "assemble by frame 32": program("bench_assemble", "frame", 32, 128, (20000000, 2000000)),
    "assemble joined 32": program("bench_assemble", "joined", 32, 128, (20000000, 2000000)),
    "icrc isal": program("bench_icrc", "isal", (2000000, 500000)),
    "icrc portable": program("bench_icrc", "portable", (200000, 50000)),
    "peer zlib": zlib_crc,
    "frontend packet": frontend("packet", (20000000, 5000000)),
    "frontend line": frontend("line", (15000000, 4000000)),
    "frontend roi": frontend("roi", (10000000, 2000000)),
    "frontend headers": frontend("headers", (3000000, 700000)),
    "frontend isal": frontend("isal", (1000000, 300000)),
    "frontend portable": frontend("portable", (150000, 40000)),
    "demo udp": end_to_end("udp", (1000, 300)),
    "demo shm": end_to_end("shm", (1000, 300)),
    "demo shm no audit": end_to_end("shm", (1000, 300), **{"sinks[0].nexus.audit": "false"}),
    "demo udp paced": end_to_end("udp", (168, 68), 200, 32),
    "demo shm paced": end_to_end("shm", (168, 68), 200, 32),
    "file nexus": file_probe(write_nexus("none")),
    "file packed": file_probe(write_nexus("bslz4")),
    "file no audit": file_probe(write_nexus("bslz4", "false")),
    "peer write": file_probe(write_plainly),
    "raw": write_raw,
    "fio": write_fio,
    "keep": file_probe(keep_all()),
    "keep unflushed": file_probe(keep_all(flush_s=3600)),
    "keep no audit": file_probe(keep_all(audit="false")),
    "pack": pack,
    "write packed": file_probe(write_packed),
    "stream sink": stream("sink"),
    "stream loop": stream("loop"),
}
