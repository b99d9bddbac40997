#!/usr/bin/python3
"""xdp_test.py - the link xdp between two hosts (network namespaces with a veth pair): what it stores is what udp
stores, in the driver and above it, with packets of one buffer and of several, one thread and several, all services
and both versions of IP, with packets lost, and without the privilege."""
# normal build only

import os
import platform
import re
import subprocess

from cable import Pair
from harness import GUARDED, case, check, closes, equal, experiment, fewer, intact, main, run, run_fails, skip
from recording import compare

FRAMES = fewer(200, 60)
DETECTOR = {"frames": FRAMES, "dark_frames": 0, "rows": 128, "columns": 128}
SMALL_MTU = 2200  # an old kernel's veth interface has XDP in its driver where a packet fits a page
BLOCK = DETECTOR["rows"] * DETECTOR["columns"] * 2 + 64


def several_buffers():
    """Whether a packet may lie in several."""
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", platform.release()).groups())) >= (6, 6)


def need_several_buffers():
    if not several_buffers():
        skip("packets of several buffers need Linux 6.6")


def need_xdp(folder):
    text = run("list", "xdp", folder=folder).out()
    if "not in this program" in text or "not usable here" in text:
        skip(" ".join(text.split()))


def same(name, how, mtu, queues=1, large=False, **variants):
    @case(f"between two hosts, {name}: the file is that of udp")
    def _(folder):
        need_xdp(folder)
        if large:
            need_several_buffers()
        with Pair("xdp", DETECTOR, mtu=mtu, queues=queues) as pair:
            udp = pair.record(folder, "udp", link={"kind": "udp", "pmtu": 1024})
            for number, variant in variants.items():
                link = {"pmtu": 4096 if large else 2048, **variant.pop("link", {})}
                compare(udp, pair.record(folder, number, link=link, **variant))
                said = "".join(path.read_text() for path in (folder / number).glob("stderr-*"))
                check(f"link xdp: {how}" in said, f"it did not say 'link xdp: {how}'")


same("in the driver, unreliable and reliable, 1024 and 2048 bytes", "native, copy", SMALL_MTU,
     a={"link": {"pmtu": 2048}}, b={"link": {"pmtu": 1024}}, c={"link": {"pmtu": 2048, "service": "rc"}},
     d={"link": {"pmtu": 1024, "service": "rc"}})
same("in the driver, packets of 4096 bytes", "native, copy", 4500, large=True,
     a={}, b={"link": {"service": "rc"}}, c={"version": "v6"}, d={"link": {"message": "module"}},
     e={"link": {"operation": "send"}}, f={"link": {"segment": False}})
same("in the driver, IPv6", "native, copy", SMALL_MTU,
     a={"version": "v6"}, b={"version": "v6", "link": {"service": "rc", "pmtu": 1024}})
same("in the driver, the front end over udp", "native, copy", SMALL_MTU, a={"source_kind": "udp"},
     b={"source_kind": "udp", "link": {"service": "rc"}})
same("four receive queues, one thread", "native, copy", SMALL_MTU, queues=4, a={}, b={"link": {"service": "rc"}})
same("four receive queues, two threads", "native, copy", SMALL_MTU, queues=4, a={"link": {"pollers": 2}},
     b={"link": {"pollers": 2, "service": "rc"}})
same("one receive queue, two threads", "native, copy", SMALL_MTU, a={"link": {"pollers": 2}},
     b={"link": {"pollers": 2, "service": "rc"}})
same("two receive queues, two threads, packets of 4096 bytes", "native, copy", 4500, queues=2, large=True,
     a={"link": {"pollers": 2}}, b={"link": {"pollers": 2, "service": "rc"}})
same("above the driver", "generic, copy", SMALL_MTU, a={"link": {"mode": "generic", "segment": False}},
     b={"link": {"mode": "generic", "segment": False, "service": "rc"}})
same("above the driver, packets that nobody cut", "generic, copy", 4500, large=True,
     a={"link": {"mode": "generic"}}, b={"link": {"mode": "generic", "service": "rc"}},
     c={"link": {"mode": "generic"}, "version": "v6"}, d={"link": {"mode": "generic", "operation": "send"}},
     e={"link": {"mode": "generic", "pmtu": 1024}}, f={"link": {"mode": "generic", "message": "module", "pmtu": 256}})
same("packets lost, doubled and spoilt on a reliable connection", "native, copy", SMALL_MTU,
     a={"link": {"service": "rc"}, "frontend": {"drop": 0.01, "duplicate": 0.01, "corrupt": 0.01}})
same("packets of 4096 bytes lost, doubled and spoilt on a reliable connection", "native, copy", 4500, large=True,
     a={"link": {"service": "rc"}, "frontend": {"drop": 0.01, "duplicate": 0.01, "corrupt": 0.01}})


@case("packets of 4096 bytes come in two buffers, or smaller ones are agreed on and that is said")
def _(folder):
    need_xdp(folder)
    with Pair("xdp", DETECTOR) as pair:
        done, summary = pair.acquire(folder, "large", link={"pmtu": 4096})
    intact(done, summary, FRAMES)
    pmtu = 4096 if several_buffers() else 2048
    equal("packets of 2048 bytes, since" in done.err(), pmtu == 2048, "it said so")
    equal(summary["link"]["packets"], 2 * FRAMES * -(-BLOCK // pmtu), "packets")


@case("zero-copy on an interface that has none is refused, and said")
def _(folder):
    need_xdp(folder)
    with Pair("xdp", DETECTOR) as pair:
        path = experiment(folder, detector=DETECTOR,
                          link={"kind": "xdp", "listen": pair.near["v4"], "source": pair.far["v4"], "mode": "zerocopy"})
        run_fails("run", path, folder=folder, wrapper=pair.wrapper(0),
                  says=("no zero-copy AF_XDP sockets on cable", "link.mode: auto"))


@case("between two hosts, the guarded program")
def _(folder):
    need_xdp(folder)
    if not GUARDED:
        skip("this build has no guarded program")
    with Pair("xdp", DETECTOR, mtu=SMALL_MTU) as pair:
        for service in ("uc", "rc"):
            done, summary = pair.acquire(folder, service, program=GUARDED, link={"service": service, "pmtu": 2048})
            intact(done, summary, FRAMES)


@case("packets lost on an unreliable connection: each cost its frame, the ledger closes")
def _(folder):
    need_xdp(folder)
    with Pair("xdp", DETECTOR, mtu=SMALL_MTU) as pair:
        done, summary = pair.acquire(folder, "lossy", link={"pmtu": 2048},
                                     frontend={"drop": 0.01, "duplicate": 0.01, "corrupt": 0.01})
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
