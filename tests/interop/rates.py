"""rates.py - how fast it goes inside a guest: Soft-RoCE beside our links, on the same kernel, in turn.

    rates.prepare(guest)                        # makes the devices
    sample = row.measure(guest, seconds)        # one measurement: {"GB_per_s": ..., "loss": ...}, or Absent

Names are those of `sluice bench link` with /guest behind them. tools/bench_guest.py makes a table of them.

    rxe0 ── eth0, made at boot: rxe's CRC from a table
    rxe1 ── rx0 ══ veth ══ rx1 ── rxe2: its CRC by PCLMULQDQ, where Debian would load that, too

All of rxe lives in the guest's first network namespace, since its sockets do. They have port 4791 there, so our own rows run
in namespaces of their own.
"""

import json

import lab

LINE = 4096
RECEIVER, SENDER = "10.78.0.2", "10.78.0.1"  # of the veth pair
PROGRAMS = ("ip", "nsenter", "ethtool")  # the real ones; those of busybox can do less
QUANTILES = {"p50": 5, "p99": 9, "p99.9": 10}  # in the list that a peer prints
TIMEOUT_S = 120
MEMORY_MIB = 2048  # a ring of 512 MiB, and more
# rxe finds a device by the interface that a packet came from, so a pair in one namespace will do. The kernel must be told
# to believe packets that come from outside with an address of its own, and to answer for one interface only.
DEVICES = f"""
insmod /modules/veth.ko || exit 1
insmod /modules/crc32-pclmul.ko
ip link add rx0 type veth peer name rx1 || exit 1
for i in 0 1; do
    echo 1 >/proc/sys/net/ipv4/conf/rx$i/accept_local
    echo 1 >/proc/sys/net/ipv4/conf/rx$i/arp_ignore
    ip link set rx$i mtu 9000
    ethtool -K rx$i tso off gso off gro off tx-udp-segmentation off
done
ip addr add {SENDER}/24 dev rx0
ip addr add {RECEIVER}/24 dev rx1
for i in 0 1; do
    ip link set rx$i up
    rdma link add rxe$((i + 1)) type rxe netdev rx$i || exit 1
done
for n in $(seq 100); do  # until addresses are usable
    ping -c 1 -W 1 -I rx0 {RECEIVER} >/dev/null && exit 0
done
exit 1
"""
REMOVAL = "rdma link del rxe1; rdma link del rxe2; ip link del rx0; rmmod veth; rmmod crc32-pclmul; true"


class Absent(Exception):
    """There is no such measurement; the text says why."""


def last_line(done):
    lines = (done.err.decode(errors="replace").strip() or done.text().strip()).splitlines()
    return lines[-1] if lines else f"exit status {done.status}"


class Peer:
    """Soft-RoCE through libibverbs: bench/peer/verbs.c. `brief`: a short run has it."""

    def __init__(self, name, mode, over, receiver, sender=None, brief=False):
        self.name, self.over, self.latency = f"{name}/guest", over, mode.endswith("latency")
        self.ours, self.brief = False, brief
        self.command = f"BENCH_RECEIVER={receiver} BENCH_SENDER={sender or receiver} /bin/bench/peer_verbs {mode} {LINE}"

    def measure(self, guest, seconds):
        done = guest.run(f"{self.command} {seconds}", TIMEOUT_S)
        if done.status != 0:
            raise Absent(last_line(done))
        said = json.loads(done.text())
        if self.latency:
            return {"loss": 0, **{name: said["quantiles_us"][i] for name, i in QUANTILES.items()}}
        return {"loss": said["lost"], "GB_per_s": said["GB_per_s"]}


class Link:
    """A row of `sluice bench link`, in a network namespace of its own unless the RDMA device is wanted."""

    def __init__(self, row, over, device=None, brief=False):
        self.name, self.over, self.latency = f"{row}/guest", over, "/latency/" in row
        self.ours, self.brief = True, brief
        self.row, self.device = row, device

    def command(self, seconds):
        line = f"sluice bench link --rounds 1 --seconds {seconds} --only {self.row} --json /tmp/row.json"
        return f"{line} --address {self.device}" if self.device else f"unshare -n sh -c 'ip link set lo up; {line}'"

    def measure(self, guest, seconds):
        done = guest.run(f"rm -f /tmp/row.json; {self.command(seconds)}", TIMEOUT_S)
        if done.status not in (0, 2):  # 2: something was lost, and the table says so
            raise Absent(last_line(done))
        said = json.loads(guest.pull("/tmp/row.json"))
        if not said["rows"]:
            raise Absent(", ".join(said["left_out"].values()))
        values = {row["name"].rsplit("/", 1)[-1] if self.latency else "GB_per_s": row["value"] for row in said["rows"]}
        return {"loss": said["rows"][0]["loss"], **values}


LO = "lo of a network namespace"
CUT = "a veth pair between two namespaces, segmentation and merging off"
INSIDE = "rxe to itself: packets pass from requester to responder, no network stack"
PAIR = "two rxe devices on the ends of a veth pair"
ROWS = [
    Link("sluice/udp/uc/4096", LO, brief=True),
    Peer("rxe/uc-write/4096", "uc-write", INSIDE, RECEIVER, brief=True),
    Peer("rxe/uc-write/4096/table-crc", "uc-write", f"{INSIDE}; its CRC from a table", lab.GUEST[4]),
    Link("sluice/udp/rc/4096", LO),
    Peer("rxe/rc-write/4096", "rc-write", INSIDE, RECEIVER),
    Link("sluice/udp/uc/4096/cut", CUT),
    Peer("rxe/uc-write/4096/cut", "uc-write", PAIR, RECEIVER, SENDER),
    Link("sluice/udp/rc/4096/cut", CUT),
    Peer("rxe/rc-write/4096/cut", "rc-write", PAIR, RECEIVER, SENDER),
    Link("sluice/udp/uc/4096/nocsum", LO),
    Link("sluice/verbs/uc/4096", f"{INSIDE}; messages of 8 MiB", RECEIVER),
    Link("sluice/verbs/rc/4096", f"{INSIDE}; messages of 8 MiB", RECEIVER),
    Link("sluice/udp/latency/4096", LO),
    Peer("rxe/latency/4096", "uc-latency", INSIDE, RECEIVER),
]
# What is compared, and what is hoped for.
RATIOS = [
    ("sluice/udp/uc/4096/guest", "rxe/uc-write/4096/guest", 1),
    ("sluice/udp/uc/4096/guest", "rxe/uc-write/4096/table-crc/guest", 1),
    ("sluice/udp/rc/4096/guest", "rxe/rc-write/4096/guest", 1),
    ("sluice/udp/uc/4096/cut/guest", "rxe/uc-write/4096/cut/guest", 1),
    ("sluice/udp/rc/4096/cut/guest", "rxe/rc-write/4096/cut/guest", 1),
    ("sluice/verbs/uc/4096/guest", "rxe/uc-write/4096/guest", None),
]


def programs(build, find):
    """What the guest must have for this: {name in /bin: path}. Its shell must not prefer busybox's programs to those."""
    return {"sluice": build / "sluice", "bench/sluice-bench": build / "bench/sluice-bench",
            "bench/peer_verbs": build / "bench/peer_verbs", "sh": find("dash"),
            **{name: find(name) for name in PROGRAMS}}


def patiently(guest, row, seconds):
    """A measurement that got no turn is made longer."""
    for longer in (1, 5, 25):
        sample = row.measure(guest, seconds * longer)
        if all(value > 0 for name, value in sample.items() if name != "loss"):
            return sample
    raise Absent("nothing was measured")


def prepare(guest):
    guest.must(DEVICES, TIMEOUT_S)


def remove(guest):
    guest.run(REMOVAL, TIMEOUT_S)
