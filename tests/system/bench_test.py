#!/usr/bin/python3
"""bench_test.py - sluice bench: what it measures is whole, what it says is well-formed, and wrong arguments are
told. How fast anything is, no test asks."""
# normal build only

import json
import os
import pathlib
import re
import subprocess
import sys

from harness import ROOT, SLOW, SLUICE, TIMEOUT_S, case, check, equal, main, run, run_fails, skip

# On a busy machine a short measurement may not get its turn at all: then it is made longer.
SECONDS = ("0.05", "0.5", "5")


def measure(folder, only, *more, what="link"):
    file = folder / "result.json"
    for seconds in SECONDS:
        run("bench", what, "--rounds", "1", "--seconds", seconds, "--only", only, "--json", file, *more, folder=folder)
        result = json.loads(file.read_text())
        if all(row["value"] > 0 for row in result["rows"]):
            break
    return result


def whole(result, names):
    """Every row is there, complete, and lost nothing."""
    rows = {row["name"]: row for row in result["rows"]}
    equal(sorted(rows), sorted(names), "the rows")
    for row in rows.values():
        check(row["value"] > 0 and row["min"] <= row["value"] <= row["max"], f"{row['name']}: figures in order")
        equal(row["unit"], "us" if "/p" in row["name"] else "GB/s", "unit")
        equal(row["loss"], 0, f"{row['name']}: loss")


@case("a link is measured over lo, and loses nothing")
def one_row(folder):
    result = measure(folder, "sluice/udp/uc/4096")
    whole(result, ["sluice/udp/uc/4096"])
    for key in ("cpu", "cores", "kernel", "rmem_max", "receive_buffer", "rounds", "seconds"):
        check(key in result["machine"], f"machine has {key}")


@case("services, options, lengths and several queues")
def variants(folder):
    for name in ("sluice/udp/rc/4096", "sluice/udp/uc/8246", "sluice/udp/uc/4096/no-icrc-check",
                 "sluice/udp/uc/4096/nocsum", "sluice/udp/uc/4096/one", "sluice/udp/uc/4096/queues-8", "sluice/shm/4096"):
        whole(measure(folder, name), [name])
    for name in ("sluice/udp/uc/64/events", "sluice/shm/1048576/events"):
        whole(measure(folder, name, "--sweep"), [name])


@case("latencies come as three rows and a distribution")
def latencies(folder):
    result = measure(folder, "sluice/shm/latency/4096")
    whole(result, [f"sluice/shm/latency/4096/p{p}" for p in ("50", "99", "99.9")])
    times = result["latencies_us"]["sluice/shm/latency/4096"]
    equal(len(times), len(result["levels"]), "a time for every level")
    equal(times, sorted(times), "times in order")


@case("over a veth pair that cuts: nothing is lost there either, and nothing stays")
def cut(folder):
    if os.geteuid() != 0:
        skip("network namespaces need root")
    result = measure(folder, "sluice/udp/[ur]c/4096/cut")
    if result["left_out"]:
        skip(next(iter(result["left_out"].values())))
    whole(result, ["sluice/udp/uc/4096/cut", "sluice/udp/rc/4096/cut"])


@case("peers that are built run beside, others say why not")
def peers(folder):
    if SLOW:
        skip("peers are not built with sanitizers")
    result = measure(folder, "*/pushpull/4096")
    check(len(result["rows"]) + len(result["left_out"]) == 1, "measured or left out with a reason")
    whole(measure(folder, "sockets/recv*/4096"), ["sockets/recv/4096", "sockets/recvmmsg/4096"])


@case("detectors are measured: what they offer, and what they make")
def detectors(folder):
    result = measure(folder, "detector/[pr]*", what="detector")
    names = {f"detector/{name}{end}" for name in ("pattern", "rich") for end in ("", "/new")}
    check(names <= {row["name"] for row in result["rows"]} | set(result["left_out"]), "a row is missing")
    for row in result["rows"]:
        check(row["value"] > 0 and row["events_per_s"] > 0, f"{row['name']} has figures")
    equal(sorted(result["left_out"].keys() & names), [], "left out")


def stages(folder, only):
    result = measure(folder, only, what="stage")
    for row in result["rows"]:
        check(row["value"] > 0 and row["min"] <= row["value"] <= row["max"], f"{row['name']}: figures in order")
        equal(row["unit"], "GB/s", "unit")
        equal(row["frame_bytes"], 2 * 512 * 1024, f"{row['name']}: bytes of a frame")
        rate = row["frame_bytes"] / row["ms_per_frame"] * 1e-6
        check(abs(rate / row["value"] - 1) < 1e-3, f"{row['name']}: GB/s and ms per frame say the same")
    return result


@case("stages are measured on frames whose results are known")
def stage_rows(folder):
    result = stages(folder, "sluice/correct/*/500k")
    equal(sorted(row["name"] for row in result["rows"]), [f"sluice/correct/{kind}/500k" for kind in ("f32", "i16")], "the rows")
    for name, why in stages(folder, "sluice/[ips]*/500k")["left_out"].items():
        check("no stage" in why or "no option" in why, f"{name}: left out because {why}")


@case("peers of stages compute the same photons, or say why not")
def stage_peers(folder):
    if SLOW:
        skip("peers are not built with sanitizers")
    result = stages(folder, "numpy/correct/500k")
    check(len(result["rows"]) + len(result["left_out"]) == 1, "numpy: measured or left out with a reason")
    result = stages(folder, "scalar/correct/i16/500k")
    equal([row["name"] for row in result["rows"]], ["scalar/correct/i16/500k"], "the plain loop")


def triggers(folder, only):
    file = folder / "result.json"
    run("bench", "trigger", "--rounds", "1", "--seconds", SECONDS[0], "--only", only, "--json", file, folder=folder)
    result = json.loads(file.read_text())
    equal(result["left_out"], {}, "left out")
    for row in result["rows"]:
        check(row["min"] <= row["value"] <= row["max"], f"{row['name']}: figures in order")
    return {row["name"]: row for row in result["rows"]}


@case("triggers are measured, and find what the scalar program and the oracle find")
def trigger_rows(folder):
    for only, item, part, parts in (("*/rings", "event", "hit", (15, 25)), ("*/rings/baseline", "event", "hit", (15, 25)),
                                    ("*/tracks/hexagons", "sector", "stub", (160, 160)),
                                    ("sluice/tracks/rectangles/bend0/avx2", "sector", "stub", (160, 160)),
                                    ("scalar/tracks/one-hexagon/bend0", "sector", "stub", (160, 160)),
                                    ("sluice/tracks/rectangles/event-140", "event", "stub", (15000, 25000))):
        rows = triggers(folder, only)
        check(rows, f"{only}: rows")
        for name, row in rows.items():
            equal((row["item"], row["part"]), (item, part), f"{name}: what it counts")
            check(parts[0] <= row["parts"] <= parts[1], f"{name}: {row['parts']} of a {item}")
            for key, other in (("ns_per_part", row["us_per_item"] * 1000 / row["parts"]), ("items_per_s", 1e6 / row["us_per_item"])):
                check(abs(row[key] / other - 1) < 1e-4, f"{name}: {key} says the same as us_per_item")


@case("decisions of triggers have latencies; so have the way over udp, and the machine")
def trigger_latencies(folder):
    for name in ("sluice/rings/32/at-50", "sluice/tracks/hexagons/event-140/at-10", "sluice/rings/udp", "sluice/rings/udp/together",
                 "machine/jitter"):
        rows = triggers(folder, name)
        equal(sorted(rows), [f"{name}/{which}" for which in ("max", "p50", "p99", "p99.9")], "the rows")
        times = [rows[f"{name}/{which}"]["value"] for which in ("p50", "p99", "p99.9", "max")]
        equal(times, sorted(times), f"{name}: times in order")
        row = rows[f"{name}/p50"]
        check(row["count"] > 0 if name != "machine/jitter" else 0 <= row["share_lost"] <= 1, f"{name}: was measured")
        if "udp" in name:
            check(row["late"] <= row["count"], "late blocks are some of all")


@case("an accelerator is measured where there is one, and makes the CPU's images")
def gpu_rows(folder):
    file = folder / "result.json"
    run("bench", "gpu", "--rounds", "1", "--seconds", "0.01", "--only", "opencl/[cmi]*[ty]", "--json", file, folder=folder)
    result = json.loads(file.read_text())
    names = {row["name"] for row in result["rows"] if not row["name"].endswith(("p50", "p99", "p99.9", "max"))}
    if result["left_out"]:
        skip(next(iter(result["left_out"].values())))
    equal(names, {"opencl/memory-copy", "opencl/correct", "opencl/ingest/resident"}, "rows")
    for row in result["rows"]:
        if "ingest" in row["name"]:
            check(row["published"] == row["good"] == 5 * row["frames"] > 0, f"{row['name']}: the ledger closes")
            equal((row["wrong"], row["unanswered"]), (0, 0), f"{row['name']}: wrong and unanswered events")
            check(row["out_GB_per_s"] > 0 and row["frame_us_p50"] <= row["frame_us_p99"] <= row["frame_us_max"], "figures")


@case("kernels of rings find on an emulated device what the scalar programs find: polled, alone", long=True)
def ring_rows(folder):
    file = folder / "result.json"
    rows = {f"opencl/{work}/{cells}/{how}" for work in ("ring-cells", "ring-tracks")
            for cells in ("rectangles", "hexagons", "hexagons-bend") for how in ("persistent", "alone")}
    rows |= {f"opencl/ring-cells/{cells}/persistent/next" for cells in ("rectangles", "hexagons")}
    program = run("bench", "gpu", "--rounds", "1", "--seconds", "0.01", "--only", "opencl/ring-[ct]*", "--json", file, folder=folder)
    result = json.loads(file.read_text())
    if not program.process.returncode and len(result["left_out"]) == len(rows):  # 1: something failed
        skip(next(iter(result["left_out"].values())))
    equal(result["left_out"], {}, "left out (what came back as something else is)")
    equal({row["name"].rsplit("/", 1)[0] for row in result["rows"]}, rows, "rows")
    check(all(row["value"] > 0 for row in result["rows"]), "events came back")


@case("events at a rate are all answered, and a device that is too slow says so")
def paced(folder):
    file = folder / "result.json"
    run("bench", "gpu", "--rounds", "1", "--seconds", "0.01", "--only", "opencl/unit/rings/paced/1M", "--json", file, folder=folder)
    result = json.loads(file.read_text())
    if result["left_out"]:
        skip(next(iter(result["left_out"].values())))
    rows = {row["name"].rsplit("/", 1)[1]: row for row in result["rows"]}
    equal(sorted(rows), sorted(["p50", "p99", "p99.9", "max"]), "rows")
    equal(rows["p50"]["events"] + rows["p50"]["never_begun"], 256 * (1 + 10000 // 256), "events that were due")
    check(0 < rows["p50"]["events_per_s"] and rows["p50"]["value"] <= rows["max"]["value"], "figures")


@case("codecs are measured: packed images come back, and the peer is measured or left out with the reason")
def codecs(folder):
    result = measure(folder, "*/bs*/u16-1*", what="codec")
    rows = {row["name"]: row for row in result["rows"]}
    for codec in ("bslz4", "bszstd"):
        for end in ("", "/unpack"):
            check(0.1 < rows[f"sluice/{codec}/u16-1{end}"]["packed"] < 0.3, f"{codec}{end}: size of packed images")
            peer = f"bitshuffle/{codec}/u16-1{end}"
            check(peer in rows or result["left_out"][peer].startswith("skipped: "), f"{peer}: neither measured nor left out")


@case("the table of codecs has every row of ours with its peer and ratio, and the peers that were left out with the reason")
def codec_table(folder):
    file = folder / "codec.json"
    for library, peers in ((None, None), ("/no/such/library.so", False)):
        env = {**os.environ, **({"SLUICE_BENCH_BITSHUFFLE": library} if library else {})}
        subprocess.run([SLUICE, "bench", "codec", "--rounds", "1", "--seconds", "0.02", "--compared", "--only", "*/bslz4/u16-1*", "--json", file],
                       env=env, stdout=subprocess.DEVNULL, check=True, timeout=TIMEOUT_S)
        result = json.loads(file.read_text())
        shown = subprocess.run([sys.executable, ROOT / "tools/bench_codecs.py", file, "--print"], env=env, capture_output=True, text=True, check=True)
        table = {cells[1].strip(" `"): [cell.strip() for cell in cells[2:-1]] for cells in
                 (line.split("|") for line in shown.stdout.splitlines() if line.startswith("| `"))}
        equal(sorted(table), sorted(row["name"] for row in result["rows"] if row["name"].startswith("sluice/")), "rows of ours")
        for name, (rate, peer, ratio, *_) in table.items():
            there = name.replace("sluice/", "bitshuffle/") in {row["name"] for row in result["rows"]}
            check(peers is None or there == peers, f"{name}: a peer out of a library that is not there")
            check(rate != "-" and (peer != "-") == there and (ratio != "-") == there, f"{name}: {table[name]}")
        for name, why in result["left_out"].items():
            check(f"- left out: `{name}`: {why}" in shown.stdout, f"{name}: the table does not say that it was left out")
            check(not library or library in why, f"{name}: the reason does not name the library: {why}")
        check(not library or result["left_out"], "nothing was left out")


@case("shares are followed by fetching, by every element, by messages and beside a crowd; copies are what was committed")
def shares(folder):
    rates = ["sluice/local/fetch/1", "sluice/local/fetch/1048576", "sluice/local/follow/262144", "sluice/rdma/fetch/262144"]
    times = ["sluice/local/ping", "sluice/local/message/64", "sluice/local/view", "sluice/local/view/spin", "sluice/local/view/spin/look",
             "sluice/local/answer", "sluice/local/crowd/10", "sluice/rdma/view", "sluice/rdma/answer"]
    for name in rates:
        row, = measure(folder, name, what="share")["rows"]
        equal((row["name"], row["unit"], row["loss"]), (name, "GB/s", 0), "the row")
        check(0 < row["us_p50"] <= row["us_p99"] <= row["us_p99.9"] and row["bytes"] > 0, f"{name}: figures in order")
        check(all(row[f"us_{q}_min"] <= row[f"us_{q}"] <= row[f"us_{q}_max"] for q in ("p50", "p99", "p99.9")), f"{name}: ranges")
    for name in times:
        rows = {row["name"]: row for row in measure(folder, name, what="share")["rows"]}
        equal(sorted(rows), [f"{name}/p{p}" for p in ("50", "99", "99.9")], "the rows")
        check(rows[f"{name}/p50"]["value"] <= rows[f"{name}/p99"]["value"] and rows[f"{name}/p50"]["count"] > 0, f"{name}: figures in order")
        check("crowd" not in name or rows[f"{name}/p50"]["missed"] >= 0, f"{name}: says what was missed")


@case("shares on an RDMA NIC are measured, or left out with the reason")
def share_nics(folder):
    for name in ("sluice/verbs/fetch/4096", "sluice/verbs/follow/262144", "sluice/verbs/view", "sluice/verbs/answer"):
        result = measure(folder, name, what="share")
        check(result["rows"] or "RDMA" in result["left_out"][name] or "libibverbs" in result["left_out"][name], f"{name}: {result}")
    result = measure(folder, "sluice/verbs/fetch/1", "--address", "192.0.2.7", what="share")
    check(not result["rows"] and result["left_out"]["sluice/verbs/fetch/1"], "no NIC has this address")


@case("tools/bench_shares.py makes tables of what was measured, with the range of every figure")
def share_tables(folder):
    file = folder / "share.json"
    run("bench", "share", "--rounds", "3", "--seconds", SECONDS[0], "--only", "sluice/local/[fvp]*[144kgw]", "--json", file, folder=folder)
    done = subprocess.run([sys.executable, ROOT / "tools/bench_shares.py", file, "--print"], capture_output=True, text=True, check=False)
    equal((done.returncode, done.stderr), (0, ""), "exit status")
    figure = r"[0-9.,e-]+ \([0-9.,e-]+ \.\. [0-9.,e-]+\)"
    for line in (rf"^\| 1 B \| {figure} \|$", rf"^\| `sluice/local/follow/262144` \| {figure} \|$", rf"^\| share, this host \| {figure} \| {figure} \| {figure} \|$",
                 rf"^\| `sluice/local/ping` \| [0-9,]+ \| {figure} \| {figure} \| {figure} \|  \|$"):
        check(re.search(line, done.stdout, re.M), f"{line} is not in {done.stdout}")
    done = subprocess.run([sys.executable, ROOT / "tools/bench_shares.py", folder / "none.json"], capture_output=True, text=True, check=False)
    check(done.returncode == 1 and "none.json is not there" in done.stderr, done.stderr)


@case("peers of shares run beside, others say why not; a follower in Python likewise")
def share_peers(folder):
    if SLOW:
        skip("peers are not built with sanitizers")
    for name in ("memcpy/fetch/4096", "zeromq/reqrep/4096", "zeromq/reqrep-ipc/4096", "zeromq/pubsub-ipc/262144", "ucx/shm-get/4096",
                 "sluice/local/view/python"):
        result = measure(folder, name, what="share")
        check(result["rows"] or result["left_out"][name], f"{name}: measured or left out with a reason")
        check("memcpy" not in name or result["rows"], f"{name}: measured")
        check(all(row["value"] > 0 for row in result["rows"]), f"{name}: figures")


@case("rows for more cores than this process has are left out, with the reason")
def fewer_cores(folder):
    file = folder / "result.json"
    two = sorted(os.sched_getaffinity(0))[:2]
    why = "this process has fewer cores" if len(two) > 1 else "this process has one core"
    for what, only in (("stage", "sluice/correct/*/500k/*cores"), ("trigger", "sluice/*/*[48]cores"), ("trigger", "sluice/*16cores"),
                       ("link", "sluice/*cores")):
        command = [SLUICE, "bench", what, "--rounds", "1", "--seconds", SECONDS[0], "--only", only, "--json", file]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
                              preexec_fn=lambda: os.sched_setaffinity(0, two))
        result = json.loads(file.read_text())
        listed = set(run("bench", what, "--only", only, "--list", folder=folder).out().split())
        many = {name for name in listed if int(name.rsplit("/", 1)[1].removesuffix("cores")) > len(two)}
        check(len(many) >= 2, f"{what}: rows of many cores: {listed}")
        equal({name: result["left_out"].get(name) for name in many}, {name: why for name in many}, f"{what}: left out")
        lines = [line.split(None, 1) for line in done.stdout.splitlines()]
        check(all([name, why] in lines for name in many), f"{what}: the table says why: {done.stdout}")


@case("what scales with cores is measured with nothing but a build folder and Python: no git, no other program on the path")
def scaling(folder):
    if SLOW:
        skip("the scripts take a plain build")
    build = pathlib.Path(SLUICE).parent
    for tool, more, file, says in (("bench_scaling", ("--part", "flat"), "scaling.json", "events through ring and assembler"),
                                   ("bench_auto", ("--case", "shm/plain/2"), "auto.json", "of the best fixed choice or better")):
        if "shm/plain/2" in more and len(os.sched_getaffinity(0)) < 2:
            continue
        done = subprocess.run([sys.executable, ROOT / f"tools/{tool}.py", "--quick", "--revision", "abc123", "--build", build, "--out", folder, *more],
                              cwd="/", env={**os.environ, "PATH": "/nowhere"}, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        equal(done.returncode, 0, f"exit status of {tool}: {done.stderr[-500:]}")
        check(says in done.stdout and "revision abc123" in done.stdout, f"{tool}: {done.stdout}")
        equal(json.loads((folder / file).read_text())["machine"]["revision"], "abc123", "revision in the results")


@case("wrong arguments are told")
def arguments(folder):
    for words, said in [((), "sluice bench link"), (("stages",), "sluice bench link"),
                        (("link", "link"), "sluice bench link"),
                        (("link", "--only", "nothing*"), "no row is called 'nothing*'"),
                        (("link", "--rounds", "0"), "--rounds"), (("link", "--seconds", "x"), "--seconds"),
                        (("link", "--fast"), "unknown option '--fast'"), (("link", "--set", "a=b"), "--set means nothing"),
                        (("detector", "--sweep"), "--sweep for link and share"),
                        (("stage", "--callgrind"), "for sluice bench link"), (("trigger", "--sweep"), "--sweep for link and share"),
                        (("trigger", "--only", "sluice/ring"), "no row is called"), (("detector", "--compared"), "--compared is for")]:
        check(said in run_fails("bench", *words, folder=folder).err(), f"{words}: says {said!r}")
    check("/nowhere/x" in run_fails("bench", "link", "--rounds", "1", "--seconds", SECONDS[0], "--only", "sluice/shm/4096", "--json", "/nowhere/x",
                                    folder=folder).err(), "names the file that it cannot write")
    check("sluice/udp/uc/4096/cut\n" in run("bench", "link", "--list", folder=folder).out(), "lists its rows")
    check("sluice/correct/i16/2cores\n" in run("bench", "stage", "--list", folder=folder).out(), "lists the rows of stages")
    check("sluice/tracks/hexagons/fit/avx2\n" in run("bench", "trigger", "--list", folder=folder).out(), "lists the rows of triggers")
    check("sluice/bslz4/adu/unpack\n" in run("bench", "codec", "--list", folder=folder).out(), "lists the rows of codecs")
    check("sluice/rdma/fetch/1073741824\n" in run("bench", "share", "--sweep", "--list", folder=folder).out(), "lists the rows of shares")


if __name__ == "__main__":
    main()
