#!/usr/bin/python3
"""xdp_test.py - the link xdp between two hosts (network namespaces with a veth pair): what it stores is what udp
stores, in the driver and above it, with all services and both versions of IP, with packets lost, and without the
privilege."""

import os
import subprocess

from cable import Pair
from harness import GUARDED, case, check, closes, equal, experiment, fewer, intact, main, run, run_fails, skip
from recording import compare

FRAMES = fewer(200, 60)
DETECTOR = {"frames": FRAMES, "dark_frames": 0, "rows": 128, "columns": 128}
DRIVER_MTU = 2200  # a veth interface has XDP in its driver where a packet fits a page


def need_xdp(folder):
    text = run("list", "xdp", folder=folder).out()
    if "not in this program" in text or "not usable here" in text:
        skip(" ".join(text.split()))


def same(name, how, mtu, queues=1, **variants):
    @case(f"between two hosts, {name}: the file is that of udp")
    def _(folder):
        need_xdp(folder)
        with Pair("xdp", DETECTOR, mtu=mtu, queues=queues) as pair:
            udp = pair.record(folder, "udp", link={"kind": "udp", "pmtu": 1024})
            for number, variant in variants.items():
                compare(udp, pair.record(folder, number, **variant))
                said = "".join(path.read_text() for path in (folder / number).glob("stderr-*"))
                check(f"link xdp: {how}" in said, f"it did not say 'link xdp: {how}'")


same("in the driver, unreliable and reliable, 1024 and 2048 bytes", "driver, copy", DRIVER_MTU,
     a={"link": {"pmtu": 2048}}, b={"link": {"pmtu": 1024}}, c={"link": {"pmtu": 2048, "service": "rc"}},
     d={"link": {"pmtu": 1024, "service": "rc"}})
same("in the driver, IPv6", "driver, copy", DRIVER_MTU,
     a={"version": "v6"}, b={"version": "v6", "link": {"service": "rc", "pmtu": 1024}})
same("in the driver, the front end over udp", "driver, copy", DRIVER_MTU, a={"source_kind": "udp"},
     b={"source_kind": "udp", "link": {"service": "rc"}})
same("in the driver, four receive queues", "driver, copy", DRIVER_MTU, queues=4, a={}, b={"link": {"service": "rc"}})
same("above the driver", "generic, copy", 4500, a={}, b={"link": {"service": "rc"}}, c={"version": "v6"},
     d={"link": {"operation": "send"}})
same("packets lost, doubled and spoilt on a reliable connection", "driver, copy", DRIVER_MTU,
     a={"link": {"service": "rc"}, "frontend": {"drop": 0.01, "duplicate": 0.01, "corrupt": 0.01}})


@case("packets of 4096 bytes do not fit a page: smaller ones are agreed on, and that is said")
def _(folder):
    need_xdp(folder)
    with Pair("xdp", DETECTOR) as pair:
        done, summary = pair.acquire(folder, "large", link={"pmtu": 4096})
    intact(done, summary, FRAMES)
    check("packets of 2048 bytes" in done.err(), "it did not say so")
    block = DETECTOR["rows"] * DETECTOR["columns"] * 2 + 64
    equal(summary["link"]["packets"], 2 * FRAMES * -(-block // 2048), "packets")


@case("between two hosts, the guarded program")
def _(folder):
    need_xdp(folder)
    if not GUARDED:
        skip("this build has no guarded program")
    with Pair("xdp", DETECTOR, mtu=DRIVER_MTU) as pair:
        for service in ("uc", "rc"):
            done, summary = pair.acquire(folder, service, program=GUARDED, link={"service": service})
            intact(done, summary, FRAMES)


@case("packets lost on an unreliable connection: each cost its frame, the ledger closes")
def _(folder):
    need_xdp(folder)
    with Pair("xdp", DETECTOR, mtu=DRIVER_MTU) as pair:
        done, summary = pair.acquire(folder, "lossy", frontend={"drop": 0.01, "duplicate": 0.01, "corrupt": 0.01})
    equal(done.process.returncode, 2, "exit status")
    closes(summary, 2 * FRAMES)
    check(summary["link"]["turned_away"]["icrc"] > 0, "no checksum was wrong")
    check(summary["link"]["turned_away"]["duplicate"] > 0, "nothing came twice")


@case("without the capabilities it says what to do")
def _(folder):
    if "not in this program" in run("list", "xdp", folder=folder).out():
        skip("link xdp is not in this program")
    wrapper = ("setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", "--") if os.geteuid() == 0 else ()
    if wrapper and subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode:
        skip("setpriv cannot take the capability away here")
    run_fails("run", experiment(folder, link={"kind": "xdp"}), folder=folder, wrapper=wrapper,
              says=("sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep /",))


main()
