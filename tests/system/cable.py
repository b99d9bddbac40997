"""cable.py - two hosts with one cable between them: network namespaces and a veth pair (root)."""

import contextlib
import os
import shutil
import subprocess

from harness import CONTROL_PORT, Program, equal, experiment, intact, read_summary, skip
from recording import contents


def ip(*arguments):
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


class Pair:
    """Two hosts with one cable; data travels over a link of this kind unless told otherwise."""

    near = {"v4": "10.89.0.1", "v6": "fd89::1"}
    far = {"v4": "10.89.0.2", "v6": "fd89::2"}

    def __init__(self, kind, detector, offload=True, mtu=4500, queues=1):
        if os.geteuid():
            skip("network namespaces need root")
        self.names = [f"sl{kind}{os.getpid()}{letter}" for letter in "rs"]
        self.kind, self.detector, self.offload, self.mtu = kind, detector, offload, mtu
        self.queues = [word for side in ("numrxqueues", "numtxqueues") for word in (side, str(queues))]

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
        ip("-n", self.names[0], "link", "add", "cable", *self.queues, "type", "veth", "peer", "name", "cable",
           *self.queues, "netns", self.names[1])
        for name, addresses in zip(self.names, (self.near, self.far)):
            ip("-n", name, "link", "set", "cable", "mtu", str(self.mtu), "up")
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
        link = {"kind": self.kind, "listen": self.near[version], "source": self.far[version],
                **sections.pop("link", {})}
        control = {"address": self.near["v4"], "port": CONTROL_PORT, "token": "between us", "wait_s": 60}
        path = experiment(here, **{"detector": self.detector, "emulate": "none", "control": control, **sections}, link=link)
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
        intact(done, summary, self.detector["frames"])
        equal(summary["link"]["kind"], changes.get("link", {}).get("kind", self.kind), "link")
        return contents(folder / name / "run.nxs")
