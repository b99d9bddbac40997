#!/usr/bin/python3
"""bench.py - every published number beside its peers, measured on this machine.

  tools/bench.py              all rows, 7 rounds, under 4 minutes; then the table of the stages, 5 minutes, that of the
                              triggers, 3 minutes, that of the shares, 5 minutes, that of the codecs, 2 minutes, and that of the
                              links, 12 minutes more; then --guest
  tools/bench.py --quick      the same rows from less data, about a minute: to see that it works
  tools/bench.py --files      the rows of files and streams alone; --rounds 15 takes about 15 minutes
  tools/bench.py --stages     the table of the stages alone
  tools/bench.py --triggers   the tables of the triggers alone; tools/bench_triggers.py puts them into the documents
  tools/bench.py --shares     the tables of the shares alone; tools/bench_shares.py puts them into benchmarks.md
  tools/bench.py --codecs     the tables of the codecs alone; tools/bench_codecs.py puts them into benchmarks.md
  tools/bench.py --links      the table of the links alone
  tools/bench.py --guest      what runs in a virtual machine, beside Soft-RoCE, alone: 8 minutes

What is measured and what is compared are run in turn, round after round, since one program may vary twofold within a
minute on a shared machine. The table shows medians over the rounds with the least and the most; a ratio is taken within
each round first. docs/reference/benchmarks.md says what each row means. Writes bench-out/results.md, bench-out/results.json,
with --files bench-out/files.json, bench-out/stage.json, bench-out/trigger.json, bench-out/share.json, bench-out/codec.json, bench-out/link.json
and bench-out/guest.json, and draws docs/reference/bench-*.svg (with --quick or --out, into the folder of the results).
"""

import argparse
import datetime
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zlib

from bench_probes import (PROBES, ROOT, Absent, Bench, codec_table, cost_table, guest_table, link_table, share_table, stage_table,
                          trigger_table)

ROUNDS, QUICK_ROUNDS = 7, 3
BUDGET_S = 215  # no round begins that would not end before
OUT = ROOT / "bench-out"
FILES_BUDGET_S = 900  # the same of --files, whose runs write for seconds
PARTS = ("files", "links", "stages", "triggers", "shares", "codecs", "guest")  # options that measure one part alone
BUSY = 0.05  # of the CPU time went elsewhere: say so


# ---- the table: section, [(probe, title, figure, unit, factor, probes it is compared with)] ----

EVENTS = ("events_per_s", "M events/s", 1e-6)
PIXELS = ("pixel_GB_per_s", "GB/s", 1)
RATE, PACKETS, FRAMES = ("GB_per_s", "GB/s", 1), ("packets_per_s", "k packets/s", 1e-3), ("frames_per_s", "frames/s", 1)
DESCRIPTORS = ("descriptors_per_s", "M descriptors/s", 1e-6)
COST = ("instructions_per_packet", "instructions/packet", 1)
TABLE = [
    ("Link: the receive path alone (2 modules, no stages, nothing kept)", [
        ("link udp 4096", "udp, PMTU 4096, a message per packet", *RATE,
         ["peer udp 4096", "peer zmq 4096", "peer zmq 1Mi"]),
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
    ("Image of 4 Mpixel from 8 modules: front end, link, assembly, a ledger that closes (no stages, nothing kept)", [
        ("image udp", "udp, PMTU 4096", *FRAMES, []),
        ("image udp", "", *RATE, ["link udp 4096"]),
        ("image shm", "shm", *FRAMES, []),
        ("image shm", "", *RATE, ["link shm"]),
    ]),
    ("Events: the RICH's, 256 of 48 bytes in a block, with a ledger that closes; then what emulators offer, one core", [
        ("events udp", "rich over udp, PMTU 4096", *EVENTS, []),
        ("events udp", "", *RATE, ["link udp 4096"]),
        ("events udp large", "rich over udp, 4096 events in a block", *EVENTS, []),
        ("events udp large", "", *RATE, ["link udp 4096"]),
        ("events shm", "rich over shm", *EVENTS, []),
        ("events shm", "", *RATE, ["link shm"]),
        ("events memory", "rich, copied into a ring", *EVENTS, []),
        ("events memory", "", *RATE, ["peer memcpy"]),
        ("events tracker", "tracker, 9 sectors, copied into a ring", *EVENTS, []),
        ("events tracker", "", *RATE, ["peer memcpy"]),
    ]),
    ("Threads: what they take of a core at 10,000 frames/s of 8 modules of 128 bytes (shm, no stages, nothing kept)", [
        ("threads", "link", "link-0_cores", "cores", 1, []),
        ("threads", "dispatcher, with the assembler", "dispatcher_cores", "cores", 1, []),
        ("threads", "settler", "settler_cores", "cores", 1, []),
    ]),
    ("Stages on one core: correct to int16 photons, then veto (raw bytes; 2 modules, batches of 8)", [
        ("stages", "correct + veto, cpu unit", *RATE, ["peer numpy", "peer memcpy"]),
        ("stages", "", *FRAMES, []),
        ("peer numpy", "peer: the same in numpy", *RATE, []),
        ("peer memcpy", "peer: memcpy, one core", *RATE, []),
    ]),
    ("Assembly: events of 128 bytes and their record through ring and assembler, one core", [
        ("assemble 1", "1 module", *EVENTS, []),
        ("assemble 2", "2 modules", *EVENTS, ["assemble 1"]),
        ("assemble 4", "4 modules", *EVENTS, ["assemble 1"]),
        ("assemble 8", "8 modules", *EVENTS, ["assemble 1"]),
        ("assemble 16", "16 modules", *EVENTS, ["assemble 1"]),
        ("assemble 32", "32 modules", *EVENTS, ["assemble 1"]),
        ("assemble 8 long", "8 modules, ten times as many events", *EVENTS, ["assemble 8"]),
        ("assemble by frame 32", "32 modules, aligned by frame number", *EVENTS, ["assemble 32"]),
        ("assemble joined 32", "the same modules as two detectors, joined by frame number", *EVENTS, ["assemble by frame 32"]),
    ]),
    ("ICRC: the check of 4 KiB packets, one core", [
        ("icrc isal", "ISA-L (what the links use)", *RATE, ["peer zlib", "icrc portable"]),
        ("icrc portable", "portable (src/roce alone)", *RATE, ["peer zlib"]),
        ("peer zlib", "peer: zlib's crc32", *RATE, []),
    ]),
    ("Front end: what it computes, one core (bytes described; ROI and lines out of a frame of 512 x 1024)", [
        ("frontend packet", "sluice/frontend/descriptors/packet: a message per packet of 4096", *DESCRIPTORS, []),
        ("frontend packet", "", *COST, []),
        ("frontend packet", "", *RATE, ["link udp 4096", "link shm"]),
        ("frontend line", "sluice/frontend/descriptors/line: a message per line of 2048, with a pitch", *DESCRIPTORS, []),
        ("frontend line", "", *COST, []),
        ("frontend line", "", *RATE, ["link udp 4096"]),
        ("frontend roi", "sluice/frontend/descriptors/roi: packets of 4096 from lines of 1024", *DESCRIPTORS, []),
        ("frontend roi", "", *COST, []),
        ("frontend roi", "", *RATE, ["link udp 4096"]),
        ("frontend headers", "sluice/frontend/packets/no-icrc: with headers and credit, ICRC left to a circuit", *PACKETS,
         ["link udp 4096"]),
        ("frontend headers", "", *COST, []),
        ("frontend isal", "sluice/frontend/packets/isal: with the ICRC", *PACKETS, ["link udp 4096"]),
        ("frontend isal", "", *COST, []),
        ("frontend portable", "sluice/frontend/packets/portable: with the portable ICRC", *PACKETS, ["link udp 4096"]),
        ("frontend portable", "", *COST, []),
    ]),
    ("Session: from start to the first frame of the next run (the demo's stages and ring, 128 dark and 16 bright frames, run folders)", [
        ("session", "the first run, which opens everything", "cold_ms", "ms", 1, []),
        ("session", "later runs, p50", "first_p50_ms", "ms", 1, []),
        ("session", "later runs, p99", "first_p99_ms", "ms", 1, []),
        ("session", "later runs, from start to closed files, p50", "whole_p50_ms", "ms", 1, []),
    ]),
    ("End to end: the demo, as fast as credits allow", [
        ("demo udp", "udp, correct, veto, nexus", *FRAMES, []),
        ("demo udp", "", *RATE, ["link udp 4096"]),
        ("demo shm", "shm, correct, veto, nexus", *FRAMES, []),
        ("demo shm", "", *RATE, ["link shm", "stages", "demo shm no audit"]),
    ]),
    ("File: images of 2 MiB until the file is closed and on disk", [
        ("file nexus", "nexus sink, not packed", *RATE, ["peer write"]),
        ("file packed", "nexus sink, bslz4, packed and written by one thread (GB of pixels)", *RATE, ["peer write", "file no audit"]),
        ("peer write", "peer: write and fsync", *RATE, []),
    ]),
    ("Raw: chunks of 4 MiB in 4 files, writes of 1 MiB with 32 in flight, past the page cache, until the run is finished", [
        ("raw", "raw container, with checksums and index", *RATE, ["fio"]),
        ("fio", "peer: fio, io_uring, the same pattern", *RATE, []),
    ]),
    ("Files, end to end: every frame of 2 MiB corrected, packed by bslz4, written, on disk (shm; GB of pixels)", [
        ("keep", "shm, correct, nexus", *FRAMES, ["keep unflushed", "keep no audit"]),
        ("keep", "", *PIXELS, ["pack", "write packed"]),
        ("keep unflushed", "the same, flushed at the end alone (flush_s: 3600)", *FRAMES, []),
        ("keep no audit", "the same without the hash tree (audit: false)", *FRAMES, []),
        ("pack", "roofline: the same images packed alone, a thread on each core", *PIXELS, []),
        ("write packed", "roofline: write and fsync of as many packed bytes", *PIXELS, []),
    ]),
    ("Stream: images of 2 MiB, packed to about 0.28 MB, to one client on loopback (GB of messages)", [
        ("stream sink", "stream2 sink, images packed before", *RATE, ["stream loop"]),
        ("stream sink", "", "cpu_us_per_image", "us of CPU per image", 1, ["stream loop"]),
        ("stream loop", "peer: a C loop that sends the same messages", *RATE, []),
        ("stream loop", "", "cpu_us_per_image", "us of CPU per image", 1, []),
        ("stream sink", "stream2 sink with packing, one thread (GB of pixels)", *PIXELS, []),
    ]),
]
SHORT = {"peer udp 4096": "plain UDP", "peer udp 1024": "plain UDP", "peer zmq 4096": "ZeroMQ 4 KiB",
         "peer zmq 1Mi": "ZeroMQ 1 MiB", "peer memcpy": "memcpy", "peer numpy": "numpy", "peer zlib": "zlib",
         "icrc portable": "portable", "assemble 32": "by sequence", "assemble by frame 32": "one detector", "assemble 1": "1 module", "assemble 8": "the shorter run", "link udp 4096": "the link alone", "link shm": "the link alone",
         "stages": "the stages alone", "peer write": "plain write", "demo shm no audit": "without the hash tree", "file no audit": "without the hash tree",
         "stream loop": "a C loop", "fio": "fio", "keep unflushed": "not flushed",
         "keep no audit": "without the hash tree", "pack": "packing alone", "write packed": "writing alone"}
FILES = ("File", "Raw", "Stream:")  # sections of --files begin so
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
        f"Of the CPU time, other programs had {100 * about['others']:.0f} % "
        f"and other guests {100 * about['stolen']:.0f} %.",
    ]


def cpu_times():
    """Seconds of all CPUs since boot: (idle, stolen by other guests, all), and those that we and our programs used."""
    user, nice, system, idle, wait, irq, softirq, stolen = (
        int(word) / os.sysconf("SC_CLK_TCK") for word in first_line("/proc/stat", "cpu ").split()[:8])
    own = os.times()
    return (idle + wait, stolen, user + nice + system + idle + wait + irq + softirq + stolen,
            own.user + own.system + own.children_user + own.children_system)


def disturbance(before, after):
    """The shares of the CPU time that other programs and other guests had in between."""
    idle, stolen, total, own = (end - start for start, end in zip(before, after))
    return {"others": max(total - idle - stolen - own, 0) / total, "stolen": stolen / total}


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


def probes_of(files):
    """All probes, or those of sections about files and streams."""
    wanted = {name for section, rows in TABLE if section.startswith(FILES) for probe, *_, peers in rows for name in (probe, *peers)}
    return [name for name in PROBES if name in wanted or not files]


def all_rounds(bench, count, probes, budget_s):
    rounds, absent, start = [], {}, time.monotonic()
    for i in range(count):
        began = time.monotonic()
        # Every other round backwards: none always has the same neighbour before it.
        names = probes if i % 2 == 0 else list(reversed(probes))
        rounds.append(one_round(bench, names, absent))
        took = time.monotonic() - began
        print(f"round {i + 1} of {count}: {took:.0f} s", file=sys.stderr, flush=True)
        if time.monotonic() - start + took > budget_s:
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
             "docs/reference/benchmarks.md."]
    for section, rows in TABLE:
        shown = [line for line in (table_row(rounds, row) for row in rows) if line]
        if shown:
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
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--files", action="store_true", help="only the rows of files and streams")
    only.add_argument("--links", action="store_true", help="only the table of the links (sluice bench link)")
    only.add_argument("--stages", action="store_true", help="only the table of the stages (sluice bench stage)")
    only.add_argument("--triggers", action="store_true", help="only the tables of the triggers (sluice bench trigger)")
    only.add_argument("--shares", action="store_true", help="only the tables of the shares (sluice bench share)")
    only.add_argument("--codecs", action="store_true", help="only the table of the codecs (sluice bench codec --compared)")
    only.add_argument("--guest", action="store_true", help="only what runs in a virtual machine (tools/bench_guest.py)")
    parser.add_argument("--rounds", type=int, help=f"at most as many; default {ROUNDS}, quick {QUICK_ROUNDS}")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--out", type=pathlib.Path, default=OUT, help="where the results go")
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
    times, start = cpu_times(), time.monotonic()
    try:
        rounds, absent = all_rounds(bench, arguments.rounds, probes_of(arguments.files), FILES_BUDGET_S if arguments.files else BUDGET_S)
    finally:
        bench.close()
    about |= {"rounds": len(rounds), "seconds": time.monotonic() - start, **disturbance(times, cpu_times())}
    if about["others"] + about["stolen"] > BUSY:
        print("bench.py: this machine was busy with other things; expect wide ranges", file=sys.stderr)
    return about, rounds, absent


def measure_stages(arguments, scratch, what, measure_table):
    """The table of the stages, triggers, shares or codecs, and whether a row of ours failed or computed something else than its peers."""
    title = f"\n## {what.capitalize()}s: sluice bench {what}\n\n"
    bench = Bench(arguments.build.resolve(), arguments.quick, scratch)
    try:
        text, status = measure_table(bench, arguments.out)
    except Absent as why:
        return f"{title}Left out: {why}\n", True
    finally:
        bench.close()
    return f"{title}{text}", status != 0


def measure_links(arguments, scratch):
    """The table of the links, and whether a row of ours failed or lost something."""
    bench = Bench(arguments.build.resolve(), arguments.quick, scratch)
    plots = arguments.out if arguments.quick or arguments.out != OUT else ROOT / "docs/reference"
    try:
        text, status, drawn = link_table(bench, arguments.out, plots)
        cost = "" if arguments.quick else cost_of(bench, arguments.out)
    except Absent as why:
        return f"\n## Links\n\nLeft out: {why}\n", True
    finally:
        bench.close()
    print("".join(f"drawn: {path}\n" for path in drawn), end="", file=sys.stderr)
    return f"\n## Links: sluice bench link\n\n```\n{text}\n{cost}```\n", status != 0


def cost_of(bench, out):
    try:
        return cost_table(bench, out)
    except Absent as why:
        return f"left out: {why}\n"


def measure_guest(arguments):
    """What runs in a virtual machine, and whether a row of ours failed or lost something."""
    title = "\n## In a virtual machine, beside Soft-RoCE\n\n"
    try:
        text, status = guest_table(arguments.build.resolve(), arguments.quick, arguments.out)
    except Absent as why:
        print(f"bench.py: nothing was measured in a virtual machine: {why}", file=sys.stderr)
        return f"{title}Left out: {why}\n", False
    return f"{title}```\n{text}```\n", status != 0


def main():
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    text, failures = "", []
    everything = not any(getattr(arguments, part) for part in PARTS)
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as scratch:
        if everything or arguments.files:
            measured = measure(arguments, pathlib.Path(scratch))
            text = report(*measured)
            (arguments.out / ("files.json" if arguments.files else "results.json")).write_text(json.dumps(results(*measured), indent=1) + "\n")
            failures.append(any(not name.startswith("peer") for name in measured[2]))
        for what, wanted, measure_table in (("stage", arguments.stages, stage_table), ("trigger", arguments.triggers, trigger_table),
                                            ("share", arguments.shares, share_table), ("codec", arguments.codecs, codec_table)):
            if everything or wanted:
                stages, failed = measure_stages(arguments, pathlib.Path(scratch), what, measure_table)
                text, failures = text + stages, [*failures, failed]
        if everything or arguments.links:
            links, failed = measure_links(arguments, pathlib.Path(scratch))
            text, failures = text + links, [*failures, failed]
        if everything or arguments.guest:
            guest, failed = measure_guest(arguments)
            text, failures = text + guest, [*failures, failed]
    name = next((f"{part}.md" for part in PARTS if getattr(arguments, part)), "results.md")
    (arguments.out / name).write_text(text)
    print(text)
    print(f"written to {arguments.out}")
    return 1 if any(failures) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # programs and scratch files end with us, either way
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("bench.py: interrupted")
