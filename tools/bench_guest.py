#!/usr/bin/python3
"""bench_guest.py - our links beside Linux Soft-RoCE (rxe), both inside the same virtual machine.

  tools/bench_guest.py --json FILE    all rows; about eight minutes in emulation
  tools/bench_guest.py --quick        a few rows from little data

tools/bench.py runs it. A Debian kernel with rdma_rxe boots twice:

  rates         two CPUs, on KVM where that boots it, else in QEMU's software emulation: then figures are no speeds
  instructions  one CPU, emulated, whose clock is the number of instructions that it has executed: what a byte costs both
                ends together, the kernel's part included. The same on any machine, however busy

Rows are measured in turn, every other round backwards. Needs root and Debian's packages; exits with 77 and says why where
it cannot run. What the rows are: tests/interop/rates.py; what they mean: docs/reference/benchmarks.md.
"""

import argparse
import contextlib
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/interop"))
import image  # noqa: E402  (found through the line above)
import lab  # noqa: E402
import rates  # noqa: E402

CANNOT = 77
ROUNDS, EMULATED_ROUNDS = 7, 5
COUNTED_ROUNDS, COUNTED_SECONDS = 2, 0.3  # they differ by a per cent
KVM = pathlib.Path("/dev/kvm")
KVM_BOOT_TIMEOUT_S = 20  # it takes two or three; a KVM that boots only kernels of its own kind never ends
PROGRAMS = ("tests/interop/agent", "tests/interop/wire", "bench/peer_verbs", "bench/sluice-bench")
CLOCK = "tsc=reliable clocksource=tsc"  # the others are devices, which cost an emulator more than a packet does
# An emulated CPU that says it is good at copying bytes one by one (erms) is asked to, and is not.
CPU = ("-cpu", "max,-erms")
NATIVE = {"cpus": 2, "accelerator": ("-accel", "kvm", "-cpu", "host"), "boot_timeout_s": KVM_BOOT_TIMEOUT_S}
# Waking a CPU that sleeps is emulated at the price of several packets: idle ones spin.
EMULATED = {"cpus": 2, "accelerator": ("-accel", "tcg,thread=multi", *CPU), "append": f"{CLOCK} idle=poll"}
# One instruction is one nanosecond; when the CPU has nothing to do, the clock goes straight to the next event.
COUNTED = {"cpus": 1, "accelerator": ("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", *CPU), "append": CLOCK}
LOUD = """
EMULATED. No KVM here boots this kernel, so two CPUs were emulated in software: 30 to 100 times slower than a machine, and
each instruction at another price than on one. The rates are no speeds, and their ratios say how two programs suit an
emulator on a host that may be busy. The instructions per byte do not depend on that.
"""


# ---- the guest ----

def install(build):
    """What is needed, or Unavailable."""
    if os.geteuid():
        raise image.Unavailable("a private network namespace and a tap need root")
    for command in ([ROOT / "tools/deps.sh", "guest"], [ROOT / "tools/build.sh", build, "--", *PROGRAMS]):
        if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
            raise image.Unavailable(f"'{' '.join(str(word) for word in command)}' failed")
    why = lab.missing()
    if why:
        raise image.Unavailable(why)


def boot_for_rates(kernel, programs, folder):
    """(the lab, why it is emulated or None)"""
    why = "no /dev/kvm"
    if os.access(KVM, os.R_OK | os.W_OK):
        try:
            return lab.Lab(kernel, programs, folder, memory_mib=rates.MEMORY_MIB, **NATIVE), None
        except RuntimeError:
            why = "/dev/kvm is here but does not boot this kernel"
            print(f"bench_guest.py: {why}", file=sys.stderr)
    return lab.Lab(kernel, programs, folder, memory_mib=rates.MEMORY_MIB, **EMULATED), why


def first_line(path, start):
    lines = pathlib.Path(path).read_text().splitlines()
    return next((line[len(start):].strip(" \t:") for line in lines if line.startswith(start)), "unknown")


def machine(kernel):
    return {"cpu": first_line("/proc/cpuinfo", "model name"), "cores": len(os.sched_getaffinity(0)),
            "kernel": kernel.release, "guest_memory_MiB": rates.MEMORY_MIB,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


# ---- the rounds ----

def measure_all(guest, rows, rounds, seconds):
    """{name: samples}, {name: why}. What fails is left out from then on, so the n-th samples are of one round."""
    samples, absent = {row.name: [] for row in rows}, {}
    rates.prepare(guest)
    for i in range(rounds):
        began = time.monotonic()
        for row in rows if i % 2 == 0 else reversed(rows):
            if row.name in absent:
                continue
            try:
                samples[row.name].append(rates.patiently(guest, row, seconds))
            except rates.Absent as why:
                absent[row.name] = str(why)
        print(f"guest, round {i + 1} of {rounds}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return {name: got for name, got in samples.items() if name not in absent}, absent


def spread(values):
    return {"value": statistics.median(values), "min": min(values), "max": max(values)}


def row_of(row, name, unit, samples, values):
    return {"name": name, **spread(values), "unit": unit, "loss": sum(sample["loss"] for sample in samples),
            "over": row.over, "samples": values}


def rate_rows(row, samples):
    """A row of the results for each figure; /guest stays last, as in sluice/udp/latency/4096/p50/guest."""
    for figure in [name for name in samples[0] if name != "loss"] if samples else []:
        name = row.name.removesuffix("/guest") + f"/{figure}/guest" if row.latency else row.name
        yield row_of(row, name, "us" if row.latency else "GB/s", samples, [sample[figure] for sample in samples])


def cost_rows(row, samples):
    """A byte per nanosecond is a byte per instruction."""
    if samples:
        values = [1 / sample["GB_per_s"] for sample in samples]
        yield row_of(row, f"{row.name}/instructions", "instructions/B", samples, values)


def quotients(samples, name, peer):
    return spread([ours["GB_per_s"] / theirs["GB_per_s"] for ours, theirs in zip(samples[name], samples[peer])])


def ratios_of(samples, counted=False):
    """How many times as fast as the peer; how many times our instructions it needs."""
    for name, peer, expected in rates.RATIOS:
        if name in samples and peer in samples:
            title = f"{peer}/instructions / {name}/instructions" if counted else f"{name} / {peer}"
            yield {"name": title, "unit": "", **quotients(samples, name, peer),
                   **({"expected": expected} if expected else {})}


# ---- for people ----

TITLES = {"GB/s": ("GB/s of payload", 4), "us": ("us from post to event, one way", 1),
          "instructions/B": ("instructions per byte, both ends and the kernel", 3)}


def ratio_line(ratio):
    hoped = ""
    if "expected" in ratio:
        hoped = f"  expected {ratio['expected']:.2f}: {'yes' if ratio['value'] >= ratio['expected'] else 'no'}"
    return f"{ratio['name']:88} {ratio['value']:7.2f} {ratio['min']:7.2f} {ratio['max']:7.2f}{hoped}"


def table(result):
    about = result["machine"]
    lines = [f"Linux {about['kernel']}; host: {about['cpu']}, {about['cores']} cores"]
    if "accelerator" in about:
        lines += [f"rates: {about['guest_cpus']} CPUs by {about['accelerator']}, {about['rounds']} rounds of "
                  f"{about['seconds']} s, load of the host before: {about['load_average']}"]
    for unit, (title, digits) in TITLES.items():
        rows = [row for row in result["rows"] if row["unit"] == unit]
        lines += ["", f"{title:50} {'median':>8} {'min':>8} {'max':>8}  lost  over"] if rows else []
        lines += [f"{row['name']:50} {row['value']:8.{digits}f} {row['min']:8.{digits}f} {row['max']:8.{digits}f}  "
                  f"{row['loss']:4}  {row['over']}" for row in rows]
    lines += ["", f"{'ratios within rounds':88} {'median':>7} {'min':>7} {'max':>7}",
              *(ratio_line(ratio) for ratio in result["ratios"])] if result["ratios"] else []
    lines += ["", "left out", *(f"{name:50} {why}" for name, why in result["left_out"].items())] if result["left_out"] else []
    return "\n".join(lines) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--json", type=pathlib.Path, help="also write the results to this file")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--instructions", action="store_true", help="only those, no rates: for a busy machine")
    parser.add_argument("--rounds", type=int, help=f"of the rates; default {ROUNDS}, emulated {EMULATED_ROUNDS}, quick 1")
    parser.add_argument("--seconds", type=float, help="how long a row is measured in a round; default 1, quick 0.2")
    parser.add_argument("--kernel", choices=list(image.KERNELS), default=next(iter(image.KERNELS)))
    parser.add_argument("--match", default="", help="only rows with this in their name")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    arguments.seconds = arguments.seconds or (0.2 if arguments.quick else 1)
    return arguments


def measure_rates(arguments, kernel, programs, folder, rows):
    """(what is known of the guest, samples, what is left out)"""
    load = round(os.getloadavg()[0], 2)  # now: the guest itself is a load
    lab_, emulated = boot_for_rates(kernel, programs, folder)
    rounds = arguments.rounds or (1 if arguments.quick else EMULATED_ROUNDS if emulated else ROUNDS)
    about = {"accelerator": "software emulation (TCG)" if emulated else "KVM", "emulated": bool(emulated),
             "why_emulated": emulated, "guest_cpus": NATIVE["cpus"], "load_average": load, "rounds": rounds,
             "seconds": arguments.seconds}
    with contextlib.closing(lab_):
        return about, *measure_all(lab_.guest, rows, rounds, arguments.seconds)


def measure_costs(arguments, kernel, programs, folder, rows):
    """(samples, what is left out)"""
    rows = [row for row in rows if not row.latency]  # which says nothing where both ends share a CPU
    with lab.Lab(kernel, programs, folder, memory_mib=rates.MEMORY_MIB, **COUNTED) as lab_:
        return measure_all(lab_.guest, rows, COUNTED_ROUNDS, min(arguments.seconds, COUNTED_SECONDS))


def measure(arguments, folder):
    install(arguments.build)
    kernel = image.kernel(arguments.kernel, ROOT / "build/interop")
    programs = {name: arguments.build / "tests/interop" / name for name in ("agent", "wire")}
    programs |= rates.programs(arguments.build, image.find)
    rows = [row for row in rates.ROWS if arguments.match in row.name and (row.brief or not arguments.quick)]
    about, rated, absent = machine(kernel), {}, {}
    if not arguments.instructions:
        more, rated, absent = measure_rates(arguments, kernel, programs, folder, rows)
        about |= more
    counted, uncounted = measure_costs(arguments, kernel, programs, folder, rows)
    return {"machine": about,
            "rows": [figure for row in rows for figure in rate_rows(row, rated.get(row.name))] +
                    [figure for row in rows for figure in cost_rows(row, counted.get(row.name))],
            "ratios": [*ratios_of(rated), *ratios_of(counted, counted=True)],
            "left_out": {**absent, **{f"{name}/instructions": why for name, why in uncounted.items()}}}


def verdict(result):
    """Whether what is ours was measured, and lost nothing."""
    lost = [row["name"] for row in result["rows"] if row["name"].startswith("sluice/") and row["loss"]]
    failed = [name for name in result["left_out"] if name.startswith("sluice/")]
    for name in lost + failed:
        print(f"bench_guest.py: {name} {'lost something' if name in lost else 'failed'}", file=sys.stderr)
    return 2 if lost else 1 if failed else 0


def main():
    arguments = parse_arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="sluice-guest-") as folder:
            result = measure(arguments, pathlib.Path(folder))
    except image.Unavailable as why:
        print(why)
        return CANNOT
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    if result["machine"].get("emulated"):
        print(LOUD.strip() + "\n")
    print(table(result), end="")
    return verdict(result)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("bench_guest.py: interrupted")
