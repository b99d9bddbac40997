#!/usr/bin/python3
"""bench.py - every published number beside its peers, measured on this machine.

  tools/bench.py              all rows, 7 rounds, under 4 minutes
  tools/bench.py --quick      the same rows from less data, about half a minute: to see that it works

What is measured and what is compared are run in turn, round after round, since one program may vary twofold within a
minute on a shared machine. The table shows medians over the rounds with the least and the most; a ratio is taken within
each round first. docs/benchmarks.md says what each row means. Writes bench-out/results.md and bench-out/results.json.
"""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"  # Debian's, which has numpy; the first on the path may be another
ROUNDS, QUICK_ROUNDS = 7, 3
BUDGET_S = 215  # no round begins that would not end before
PROGRAM_TIMEOUT_S = 60
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
    run([bench.build / "sluice", "run", ROOT / "bench" / experiment, "--quiet", "--summary", summary, "--set",
         f"link.listen={bench.address}", *sets])
    return json.loads(summary.read_text())


def link(kind, frames, pmtu=PACKET_BYTES):
    def probe(bench):
        said = sluice(bench, "link.yaml",
                      {"link.kind": kind, "link.pmtu": pmtu, "detector.frames": bench.size(*frames)})
        return {"GB_per_s": said["rates"]["GB_per_s"],
                "packets_per_s": said["link"]["packets"] / said["rates"]["seconds"]}
    return probe


def end_to_end(kind, frames, rate_hz=0, darks=128):
    def probe(bench):
        file = bench.memory / "demo.nxs"
        said = sluice(bench, "demo.yaml",
                      {"link.kind": kind, "detector.frames": bench.size(*frames), "detector.dark_frames": darks,
                       "detector.frame_rate_Hz": rate_hz, "sinks[0].nexus.path": file})
        file.unlink()
        figures = {name: said["rates"][name] for name in ("GB_per_s", "frames_per_s")}
        for hop, times in said["latency_us"].items():
            figures |= {f"{hop}_p50_us": times["p50"], f"{hop}_p99_us": times["p99"]}
        return figures
    return probe


def stages(bench):
    return json.loads(run([bench.program("bench_stages"), ROOT / "bench/demo.yaml", bench.size(1240, 310)]))


def numpy_stages(bench):
    if not bench.dumped:
        run([bench.program("bench_stages"), ROOT / "bench/demo.yaml", "dump", bench.scratch])
        bench.dumped = True
    return json.loads(run([PYTHON, ROOT / "bench/peer_numpy.py", bench.scratch, bench.size(124, 31)]))


def zlib_crc(bench):
    packets = [memoryview(os.urandom(PACKET_BYTES)) for _ in range(64)]
    rounds = int(bench.size(2000, 500))
    start = time.perf_counter()
    for _ in range(rounds):
        for packet in packets:
            zlib.crc32(packet)
    seconds = time.perf_counter() - start
    return {"GB_per_s": rounds * len(packets) * PACKET_BYTES / seconds * 1e-9}


def nexus_file(bench):
    path = bench.scratch / "file.nxs"
    figures = json.loads(run([bench.program("bench_file"), ROOT / "bench/demo.yaml", path, bench.size(256, 64)]))
    path.unlink()
    return figures


def plain_file(bench):
    path = bench.scratch / "file.raw"
    figures = json.loads(run([bench.program("peer_write"), path, 2 << 20, bench.size(256, 64)]))
    path.unlink()
    return figures


PROBES = {
    "link udp 4096": link("udp", (600, 200)),
    "peer udp 4096": program("peer_udp", "4096", (300000, 75000)),
    "link udp 1024": link("udp", (250, 80), 1024),
    "peer udp 1024": program("peer_udp", "1024", (400000, 100000)),
    "peer zmq 4096": program("peer_zmq", "4096", (250000, 60000)),
    "peer zmq 1Mi": program("peer_zmq", str(1 << 20), (1500, 400)),
    "link shm": link("shm", (3000, 1000)),
    "peer memcpy": program("peer_memcpy", (8000, 2000)),
    "stages": stages,
    "peer numpy": numpy_stages,
    "icrc isal": program("bench_icrc", "isal", (2000000, 500000)),
    "icrc portable": program("bench_icrc", "portable", (200000, 50000)),
    "peer zlib": zlib_crc,
    "demo udp": end_to_end("udp", (1000, 300)),
    "demo shm": end_to_end("shm", (1000, 300)),
    "demo udp paced": end_to_end("udp", (168, 68), 200, 32),
    "demo shm paced": end_to_end("shm", (168, 68), 200, 32),
    "file nexus": nexus_file,
    "peer write": plain_file,
}

# ---- the table: section, [(probe, title, figure, unit, factor, probes it is compared with)] ----

RATE, PACKETS, FRAMES = ("GB_per_s", "GB/s", 1), ("packets_per_s", "k packets/s", 1e-3), ("frames_per_s", "frames/s", 1)
TABLE = [
    ("Link: the receive path alone (2 modules, no stages, nothing kept)", [
        ("link udp 4096", "udp, PMTU 4096, a message per packet", *RATE, ["peer udp 4096", "peer zmq 4096", "peer zmq 1Mi"]),
        ("link udp 4096", "", *PACKETS, []),
        ("link udp 1024", "udp, PMTU 1024, a message per packet", *RATE, ["peer udp 1024"]),
        ("link udp 1024", "", *PACKETS, []),
        ("link shm", "shm", *RATE, ["peer memcpy", "peer zmq 1Mi"]),
        ("peer udp 4096", "peer: plain UDP, 4 KiB", *RATE, []),
        ("peer udp 1024", "peer: plain UDP, 1 KiB", *RATE, []),
        ("peer zmq 4096", "peer: ZeroMQ PUSH/PULL on TCP, 4 KiB", *RATE, []),
        ("peer zmq 1Mi", "peer: ZeroMQ PUSH/PULL on TCP, 1 MiB", *RATE, []),
        ("peer memcpy", "peer: memcpy, one core", *RATE, []),
    ]),
    ("Stages on one core: correct to int16 photons, then veto (raw bytes; 2 modules, batches of 8)", [
        ("stages", "correct + veto, cpu unit", *RATE, ["peer numpy", "peer memcpy"]),
        ("stages", "", *FRAMES, []),
        ("peer numpy", "peer: the same in numpy", *RATE, []),
        ("peer memcpy", "peer: memcpy, one core", *RATE, []),
    ]),
    ("ICRC: the check of 4 KiB packets, one core", [
        ("icrc isal", "ISA-L (what the links use)", *RATE, ["peer zlib", "icrc portable"]),
        ("icrc portable", "portable (src/roce alone)", *RATE, ["peer zlib"]),
        ("peer zlib", "peer: zlib's crc32", *RATE, []),
    ]),
    ("End to end: the demo, as fast as credits allow", [
        ("demo udp", "udp, correct, veto, nexus", *FRAMES, []),
        ("demo udp", "", *RATE, ["link udp 4096"]),
        ("demo shm", "shm, correct, veto, nexus", *FRAMES, []),
        ("demo shm", "", *RATE, ["link shm", "stages"]),
    ]),
    ("File: images of 2 MiB until the file is closed and on disk", [
        ("file nexus", "nexus sink", *RATE, ["peer write"]),
        ("peer write", "peer: write and fsync", *RATE, []),
    ]),
]
SHORT = {"peer udp 4096": "plain UDP", "peer udp 1024": "plain UDP", "peer zmq 4096": "ZeroMQ 4 KiB",
         "peer zmq 1Mi": "ZeroMQ 1 MiB", "peer memcpy": "memcpy", "peer numpy": "numpy", "peer zlib": "zlib",
         "icrc portable": "portable", "link udp 4096": "the link alone", "link shm": "the link alone",
         "stages": "the stages alone", "peer write": "plain write"}
HOPS = ("wire", "assemble", "process", "sink", "total")
LATENCIES = [("demo udp paced", "udp, 200 Hz"), ("demo shm paced", "shm, 200 Hz"), ("demo udp", "udp, full speed"),
             ("demo shm", "shm, full speed")]


# ---- the machine ----

def first_line(path, start=""):
    """The first line of a file that begins so, without that; "" when there is none."""
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line[len(start):].strip(" \t:") for line in lines if line.startswith(start)), "")


def file_system(path):
    """The type of the file system that holds a path."""
    path = str(path.resolve())
    mounts = [line.split()[1:3] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    here = [(len(where), kind) for where, kind in mounts if path == where or path.startswith(where.rstrip("/") + "/")]
    return max(here)[1] if here else "unknown"


def output_of(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def machine(bench):
    gib = int(first_line("/proc/meminfo", "MemTotal").split()[0]) / 2**20
    virtual = " hypervisor " in first_line("/proc/cpuinfo", "flags") + " "
    l3 = first_line("/sys/devices/system/cpu/cpu0/cache/index3/size")
    return {
        "cpu": first_line("/proc/cpuinfo", "model name") or os.uname().machine,
        "cores": len(os.sched_getaffinity(0)),
        "virtual_machine": virtual,
        "last_level_cache": l3 or "unknown",
        "memory_GiB": round(gib, 1),
        "kernel": os.uname().release,
        "rmem_max": int(first_line("/proc/sys/net/core/rmem_max") or 0),
        "privileged": os.geteuid() == 0,  # may exceed rmem_max
        "file_system": file_system(bench.scratch),
        "end_to_end_file_system": file_system(bench.memory),
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        "zmq": output_of("pkg-config", "--modversion", "libzmq") or "not installed",
    }


def describe(about):
    m = about["machine"]
    kind = ", virtual machine" if m["virtual_machine"] else ""
    return [
        f"Machine: {m['cpu']}, {m['cores']} cores{kind}, last-level cache {m['last_level_cache']}, "
        f"{m['memory_GiB']} GiB, Linux {m['kernel']}; files on {m['file_system']}, "
        f"those of the end-to-end rows on {m['end_to_end_file_system']}.",
        f"Date: {about['date']}. Revision: {about['revision']}. Rounds: {about['rounds']}"
        f"{' (quick: too little data to publish)' if about['quick'] else ''}, {about['seconds']:.0f} s. "
        f"Load before and after: {about['load'][0]:.1f}, {about['load'][1]:.1f}; "
        f"{100 * about['stolen']:.1f} % of the time went to other guests.",
    ]


def cpu_ticks():
    """(stolen, all) time of all CPUs since boot."""
    ticks = [int(word) for word in first_line("/proc/stat", "cpu ").split()]
    return ticks[7], sum(ticks[:8])


# ---- the rounds ----

def one_round(bench, names, absent):
    """All probes in this order; figures by probe. What fails is left out from then on."""
    figures = {}
    for name in names:
        if name in absent:
            continue
        try:
            figures[name] = PROBES[name](bench)
        except Absent as why:
            absent[name] = str(why)
    return figures


def all_rounds(bench, count):
    rounds, absent, start = [], {}, time.monotonic()
    for i in range(count):
        began = time.monotonic()
        # Every other round backwards: none always has the same neighbour before it.
        names = list(PROBES) if i % 2 == 0 else list(reversed(PROBES))
        rounds.append(one_round(bench, names, absent))
        took = time.monotonic() - began
        print(f"round {i + 1} of {count}: {took:.0f} s", file=sys.stderr, flush=True)
        if time.monotonic() - start + took > BUDGET_S:
            break
    check_same_work(rounds)
    return rounds, absent


def check_same_work(rounds):
    for figures in rounds:
        if "stages" in figures and "peer numpy" in figures:
            if figures["stages"]["scores"] != figures["peer numpy"]["scores"]:
                sys.exit("bench.py: the stages and numpy do not agree about the scores; their times say nothing")


def spread(samples):
    return {"median": statistics.median(samples), "min": min(samples), "max": max(samples), "samples": samples}


def figure(rounds, probe, name):
    """The spread of a figure over the rounds; None when it was not measured."""
    samples = [r[probe][name] for r in rounds if name in r.get(probe, {})]
    return spread(samples) if samples else None


def ratio(rounds, probe, peer, name):
    samples = [r[probe][name] / r[peer][name] for r in rounds if name in r.get(probe, {}) and name in r.get(peer, {})]
    return spread(samples) if samples else None


# ---- the report ----

def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def between(s, factor=1):
    return f"{number(s['min'] * factor)} .. {number(s['max'] * factor)}"


def table_row(rounds, row):
    probe, title, name, unit, factor, peers = row
    value = figure(rounds, probe, name)
    if not value:
        return None
    ratios = [(SHORT[peer], ratio(rounds, probe, peer, name)) for peer in peers]
    shown = "<br>".join(f"{number(r['median'])} x {peer} ({between(r)})" for peer, r in ratios if r)
    return f"| {title} | {number(value['median'] * factor)} {unit} | {between(value, factor)} | {shown} |"


def latency_table(rounds):
    """A hop a line, a way to run the demo a column."""
    columns = [(probe, title) for probe, title in LATENCIES if any(probe in r for r in rounds)]
    lines = ["", "### Latency per hop, us: p50 / p99 (medians of the rounds)", "",
             "| hop | " + " | ".join(title for _, title in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for hop in HOPS:
        cells = []
        for probe, _ in columns:
            pair = [figure(rounds, probe, f"{hop}_{p}_us") for p in ("p50", "p99")]
            cells.append(" / ".join(f"{s['median']:.0f}" if s else "-" for s in pair))
        lines.append(f"| {hop} | " + " | ".join(cells) + " |")
    return lines if columns else []


def report(about, rounds, absent):
    lines = ["# Benchmarks", "", *describe(about), "",
             "Medians with the least and the most of the rounds; ratios are of the same round. What the rows mean: "
             "docs/benchmarks.md."]
    for section, rows in TABLE:
        shown = [line for line in (table_row(rounds, row) for row in rows) if line]
        lines += ["", f"### {section}", "", "| | median | min .. max | beside it |", "|---|---|---|---|", *shown]
    lines += latency_table(rounds)
    if absent:
        lines += ["", "### Left out", "", *(f"- {name}: {why}" for name, why in absent.items())]
    return "\n".join(lines) + "\n"


def results(about, rounds, absent):
    """The same for programs, with every sample."""
    figures = {}
    for probe in PROBES:
        names = sorted({name for r in rounds for name in r.get(probe, {})} - {"scores"})
        figures[probe] = {name: figure(rounds, probe, name) for name in names}
    ratios = {f"{probe} / {peer}": ratio(rounds, probe, peer, name)
              for _, rows in TABLE for probe, _, name, _, _, peers in rows for peer in peers}
    return {**about, "figures": figures, "ratios": ratios, "left_out": absent}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("--quick", action="store_true", help="less data and fewer rounds")
    parser.add_argument("--rounds", type=int, help=f"at most as many; default {ROUNDS}, quick {QUICK_ROUNDS}")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench-out", help="where the results go")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)
    if not (arguments.build / "sluice").exists():
        parser.error(f"{arguments.build} has no sluice; run make first")
    return arguments


def measure(arguments, scratch):
    bench = Bench(arguments.build.resolve(), arguments.quick, scratch)
    about = {"machine": machine(bench), "quick": arguments.quick,
             "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
             "revision": output_of("git", "describe", "--always", "--dirty") or "unknown"}
    load, ticks, start = os.getloadavg()[0], cpu_ticks(), time.monotonic()
    if load > 0.5 * about["machine"]["cores"]:
        print(f"bench.py: this machine is busy (load {load:.1f}); expect wide ranges", file=sys.stderr)
    try:
        rounds, absent = all_rounds(bench, arguments.rounds)
    finally:
        bench.close()
    stolen, total = (after - before for before, after in zip(ticks, cpu_ticks()))
    about |= {"rounds": len(rounds), "seconds": time.monotonic() - start, "load": [load, os.getloadavg()[0]],
              "stolen": stolen / max(total, 1)}
    return about, rounds, absent


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as scratch:
        measured = measure(arguments, pathlib.Path(scratch))
    arguments.out.mkdir(parents=True, exist_ok=True)
    text = report(*measured)
    (arguments.out / "results.md").write_text(text)
    (arguments.out / "results.json").write_text(json.dumps(results(*measured), indent=1) + "\n")
    print(text)
    print(f"written to {arguments.out}/results.md and results.json")
    return 1 if any(not name.startswith("peer") for name in measured[2]) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
