#!/usr/bin/python3
"""packet_test.py - the link packet between two hosts (network namespaces with a veth pair) and on loopback: what it
stores is what udp stores, with all services, packet sizes and both versions of IP, with packets lost, beside another
owner of the port, and without the privilege."""

import contextlib
import os
import shutil
import socket
import subprocess

from harness import (CONTROL_PORT, GUARDED, RECEIVER, ROCE_PORT, SOURCE, Program, acquire, case, check, closes, equal,
                     experiment, fewer, intact, main, read_summary, run_fails, skip)
from recording import compare, contents

FRAMES = fewer(200, 60)
DETECTOR = {"frames": FRAMES, "dark_frames": 0, "rows": 128, "columns": 128}
LINK = {"kind": "packet", "listen": RECEIVER, "source": SOURCE}


def ip(*arguments):
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


def need_packet_sockets():
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except OSError as error:
        skip(f"packet sockets need CAP_NET_RAW ({error})")


class Pair:
    """Two hosts with one cable."""

    near = {"v4": "10.89.0.1", "v6": "fd89::1"}
    far = {"v4": "10.89.0.2", "v6": "fd89::2"}

    def __init__(self, offload=True):
        need_packet_sockets()
        if os.geteuid():
            skip("network namespaces need root")
        self.names = [f"slpacket{os.getpid()}{letter}" for letter in "rs"]
        self.offload = offload

    def __enter__(self):
        try:
            self.make()
        except subprocess.CalledProcessError as error:
            self.__exit__()
            skip(f"no veth pair between network namespaces here: {error.stderr.strip()}")
        return self

    def make(self):
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", self.names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns",
           self.names[1])
        for name, addresses in zip(self.names, (self.near, self.far)):
            ip("-n", name, "link", "set", "cable", "mtu", "4500", "up")
            ip("-n", name, "addr", "add", f"{addresses['v4']}/24", "dev", "cable")
            with contextlib.suppress(subprocess.CalledProcessError):  # a host may be without IPv6
                ip("-n", name, "addr", "add", f"{addresses['v6']}/64", "dev", "cable", "nodad")
            if not self.offload:
                if not shutil.which("ethtool"):
                    skip("no ethtool here")
                subprocess.run(["ip", "netns", "exec", name, "ethtool", "-K", "cable", "tx-udp-segmentation", "off",
                                "gso", "off", "gro", "off"], check=True, capture_output=True)

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def wrapper(self, number):
        return ("ip", "netns", "exec", self.names[number])

    def acquire(self, folder, name, version="v4", program=None, source_kind=None, **sections):
        """Run it into a folder of its own; the receiver, and its summary."""
        here = folder / name
        here.mkdir()
        if version == "v6" and not ip("-n", self.names[0], "-6", "addr", "show", "dev", "cable"):
            skip("no IPv6 here")
        link = {"kind": "packet", "listen": self.near[version], "source": self.far[version],
                **sections.pop("link", {})}
        control = {"address": self.near["v4"], "port": CONTROL_PORT, "token": "between us", "wait_s": 60}
        path = experiment(here, **{"detector": DETECTOR, "emulate": "none", "control": control, **sections}, link=link)
        done = Program("run", path, "--summary", here / "summary.json", "--outcomes", here / "outcomes.txt", folder=here,
                       wrapper=self.wrapper(0), program=program)
        kind = ["--set", f"link.kind={source_kind}"] if source_kind else []
        front = Program("emulate", path, "--once", *kind, folder=here, wrapper=self.wrapper(1), program=program)
        done.wait()
        front.wait()
        return done, read_summary(here)

    def record(self, folder, name, **changes):
        """What is in its file."""
        done, summary = self.acquire(folder, name, **changes)
        intact(done, summary, FRAMES)
        equal(summary["link"]["kind"], changes.get("link", {}).get("kind", "packet"), "link")
        return contents(folder / name / "run.nxs")


def same(name, offload=True, **variants):
    @case(f"between two hosts, {name}: the file is that of udp")
    def _(folder):
        with Pair(offload) as pair:
            udp = pair.record(folder, "udp", link={"kind": "udp"})
            for number, variant in variants.items():
                compare(udp, pair.record(folder, number, **variant))


same("unreliable and reliable, 1024 and 4096 bytes",
     a={"link": {"pmtu": 4096}}, b={"link": {"pmtu": 1024}},
     c={"link": {"pmtu": 4096, "service": "rc"}}, d={"link": {"pmtu": 1024, "service": "rc"}})
same("IPv6", a={"version": "v6"}, b={"version": "v6", "link": {"service": "rc", "pmtu": 1024}})
same("one message per module and frame, sent or written", a={"link": {"message": "module"}},
     b={"link": {"operation": "send"}}, c={"link": {"operation": "send", "service": "rc"}})
same("every packet by itself on the wire", offload=False, a={}, b={"link": {"service": "rc"}},
     c={"link": {"segment": False}}, d={"version": "v6"})
same("in blocks", a={"link": {"delivery": "blocks"}}, b={"link": {"delivery": "blocks", "service": "rc"}})
same("the front end over udp", a={"source_kind": "udp"}, b={"source_kind": "udp", "link": {"service": "rc"}})
same("packets lost, doubled and spoilt on a reliable connection",
     a={"link": {"service": "rc"}, "frontend": {"drop": 0.01, "duplicate": 0.01, "corrupt": 0.01}})


@case("between two hosts, the guarded program")
def _(folder):
    if not GUARDED:
        skip("this build has no guarded program")
    with Pair() as pair:
        for service in ("uc", "rc"):
            done, summary = pair.acquire(folder, service, program=GUARDED, link={"service": service})
            intact(done, summary, FRAMES)


@case("packets lost on an unreliable connection: each cost its frame, the ledger closes")
def _(folder):
    with Pair() as pair:
        done, summary = pair.acquire(folder, "lossy", frontend={"drop": 0.01, "duplicate": 0.01, "corrupt": 0.01})
    equal(done.process.returncode, 2, "exit status")
    closes(summary, 2 * FRAMES)
    total = summary["ledger"]["total"]["outcomes"]
    check(total["incomplete"] > 0 and total["stored"] > 0, f"outcomes {total}")
    check(summary["link"]["turned_away"]["icrc"] > 0, "no checksum was wrong")
    check(summary["link"]["turned_away"]["duplicate"] > 0, "nothing came twice")


@case("on loopback, while another program owns port 4791")
def _(folder):
    need_packet_sockets()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as owner:
        owner.bind((RECEIVER, ROCE_PORT))
        done, summary = acquire(folder, detector=DETECTOR, link=LINK)
    intact(done, summary, FRAMES)
    check("enforced" in summary["link"]["guard"] and "credited" in summary["link"]["guard"], "guards")


@case("without CAP_NET_RAW it says what to do")
def _(folder):
    wrapper = ("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", "--") if os.geteuid() == 0 else ()
    if wrapper and subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode:
        skip("setpriv cannot take the capability away here")
    run_fails("run", experiment(folder, link=LINK), folder=folder, wrapper=wrapper,
              says=("CAP_NET_RAW", "sudo setcap cap_net_raw+ep /"))


main()
