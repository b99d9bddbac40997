"""links.py - whole experiments over link verbs on Soft-RoCE: both ends in the guest, or one there and link udp here.

What each run leaves behind is compared with the file of a run over link udp on this host's loopback, dataset by
dataset. The same experiment file serves all of them; only the link section differs.
"""

import io
import json
import pathlib
import tempfile

import h5py
import numpy as np

import lab
from harness import ROOT, Failed, check, equal
from peers import Local

DEMO = ROOT / "examples/jungfrau-laptop.yaml"
FAN_OUT = ROOT / "examples/live-roi.yaml"
DEMO_SETS = ["detector.dark_frames=14", "detector.frames=36", "detector.hit_fraction=0.2", "ring.slots=8",
             "ring.late_frames=4", "ring.late_timeout_ms=60000", "sinks.nexus.frames_per_file=0"]  # one file: it comes out of the guest whole
BLOCK = {"rows": 64, "columns": 500, "modules": 2, "dark_frames": 10, "frames": 90}  # 64 kB: 16 packets of 4096, or 63
TIMEOUT_S = 90
# Emulation is slow, and so is what answers in it.
PATIENT = {"timeout": 18}
# Wall clock, and how the data came.
MAY_DIFFER = {"start_time", "end_time", "end_time_estimated", "link", "guard", "proof", "experiment", "run_id"}


# ---- files ----

def contents(file):
    """Every dataset of a NeXus file, but for what differs between any two runs."""
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset) and name.rsplit("/", 1)[-1] not in MAY_DIFFER:
            value = np.asarray(item[()])
            found[name] = value.shape, value.tolist() if value.dtype == object else value.tobytes()

    with h5py.File(file, "r") as opened:
        opened.visititems(visit)
    return found


AUDIT = "entry/sluice/audit/"
# Sums of the source are in the record only with link.crc; they go into the hash tree.
OF_THE_SOURCE = {AUDIT + name for name in ("leaf", "root", "source_crc32c", "source_crc32c_known")}


def same_file(got, wanted):
    known = AUDIT + "source_crc32c_known"
    may_differ = OF_THE_SOURCE if got.get(known) != wanted.get(known) else set()
    equal(sorted(got), sorted(wanted), "datasets")
    equal(sorted(name for name in got if got[name] != wanted[name] and name not in may_differ), [], "datasets that differ")
    check(got["entry/data/data"][0][0] > 2, "hardly any image to compare")


def experiment(link, control=None, wait_s=20):
    """With one process at `control`, or both started by run. JSON is YAML."""
    text = {"detector": {"kind": "pattern", **BLOCK}, "link": link, "ring": {"late_timeout_ms": 60000},
            "sinks": [{"nexus": {"path": "run.nxs", "dataset": "raw", "frames_per_file": 0, "overwrite": True}}, "verify"], "emulate": "local"}
    if control:
        text.update({"emulate": "none", "control": {"address": control, "token": "interop", "wait_s": wait_s}})
    return json.dumps(text).encode()


class Reference:
    """Files of runs over udp on loopback, made when first asked for."""

    def __init__(self, sluice):
        self.sluice = sluice
        self.made = {}

    def run(self, name, source, sets):
        if name not in self.made:
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "experiment.yaml").write_bytes(source)
                words = [self.sluice, "run", f"{folder}/experiment.yaml", "--quiet"]
                end = finish(Local(arguments(words, [*sets, f"sinks.nexus.path={folder}/run.nxs"])), TIMEOUT_S)
                check(end[0] == 0, f"over udp here: {end}")
                self.made[name] = contents(f"{folder}/run.nxs")
        return self.made[name]

    def demo(self):
        return self.run("demo", DEMO.read_bytes(), DEMO_SETS)

    def small(self):
        return self.run("small", experiment({"kind": "udp"}), [])


# ---- programs ----

def arguments(words, sets):
    return [*words, *(word for setting in sets for word in ("--set", setting))]


def finish(program, timeout_s):
    """(exit status, what it said)"""
    try:
        return program.finish(timeout_s), program.complaints()
    finally:
        program.close()


def put(guest, source):
    guest.must("rm -rf /tmp/x && mkdir -p /tmp/x/demo-out && cat >/tmp/x/experiment.yaml", stdin=source)


def there(command, *sets):
    """The command line of sluice in the guest."""
    return "cd /tmp/x && " + " ".join(arguments(["sluice", command, "experiment.yaml"], [f"'{s}'" for s in sets]))


# ---- both ends in the guest ----

def inside(ends, source, sets, path, wanted):
    guest = ends.lab.guest
    put(guest, source)
    done = guest.run(there("run", *sets), TIMEOUT_S)
    check(done.status == 0, done.report())
    check("Result: intact" in done.text(), done.report())
    same_file(contents(io.BytesIO(guest.pull(f"/tmp/x/{path}"))), wanted)


def demo(ends, reference):
    sets = [*DEMO_SETS, "link.kind=verbs", f"link.listen={lab.GUEST[4]}"]
    inside(ends, DEMO.read_bytes(), sets, "demo-out/run.nxs", reference.demo())


def fan_out(ends):
    """Two receivers and a front end with a transfer to each, all on one device; `verify` compares every pixel."""
    guest = ends.lab.guest
    put(guest, FAN_OUT.read_bytes())
    done = guest.run(there("run", "detector.dark_frames=10", "detector.frames=21", "link.kind=verbs",
                           "ring.late_timeout_ms=60000", *(f"transfers.{name}.link.{side}={lab.GUEST[4]}"
                                                           for name in ("full", "live") for side in ("listen", "source"))),
                     TIMEOUT_S)
    check(done.status == 0 and done.text().count("Result: intact") == 2, done.report())
    check("frames_compared 31" in done.text() and "frames_compared 4" in done.text(), done.report())


def small(ends, reference, family, **link):
    address = lab.GUEST[family]
    source = experiment({"kind": "verbs", "listen": address, "source": address, **PATIENT, **link})
    inside(ends, source, [], "run.nxs", reference.small())


# ---- one end in the guest ----

class Between:
    """An experiment with one end on each side: verbs there, udp here."""

    def __init__(self, ends, sluice, family, guest_receives, link, wait_s=20):
        self.ends, self.sluice, self.guest_receives = ends, sluice, guest_receives
        self.folder = tempfile.TemporaryDirectory()
        link = {"reply_port": 4791, **PATIENT, **link}
        far = {"kind": "verbs", "listen": lab.GUEST[family], "source": lab.GUEST[family], **link}
        near = {"kind": "udp", "listen": lab.HOST[family], "source": lab.HOST[family], **link}
        control = (lab.GUEST if guest_receives else lab.HOST)[4]
        put(ends.lab.guest, experiment(far, control, wait_s))
        (pathlib.Path(self.folder.name) / "experiment.yaml").write_bytes(experiment(near, control, wait_s))
        ends.restart()  # port 4791 is wanted

    def run(self):
        """((status, text) of the receiver, (status, text) of the front end)"""
        guest, path = self.ends.lab.guest, f"sinks.nexus.path={self.folder.name}/run.nxs"
        words = ["emulate", "--once"] if self.guest_receives else ["run", "--quiet"]
        with guest.start(there("run" if self.guest_receives else "emulate --once")) as far:
            near = Local(arguments([self.sluice, *words, f"{self.folder.name}/experiment.yaml"],
                                   [] if self.guest_receives else [path]))
            done = far.wait_or_kill(TIMEOUT_S)
        end = finish(near, TIMEOUT_S if done.status == 0 else 5)
        far_end = done.status, done.report()
        return (far_end, end) if self.guest_receives else (end, far_end)

    def file(self):
        if self.guest_receives:
            return io.BytesIO(self.ends.lab.guest.pull("/tmp/x/run.nxs"))
        return f"{self.folder.name}/run.nxs"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()


def across(ends, sluice, reference, family, guest_receives, link, faults=None):
    with Between(ends, sluice, family, guest_receives, link) as between:
        if faults:
            for side, seed in (("guest", 3), ("host", 4)):
                ends.lab.wire.faults(side, seed=seed, **faults)
        receiver, source = between.run()
        lost = ends.lab.wire.count("guest")["lost"]
        ends.lab.wire.clean()
        check(receiver[0] == 0 and source[0] == 0, f"receiver: {receiver}\nfront end: {source}")
        check(not faults or lost, "nothing was lost")
        same_file(contents(between.file()), reference.small())


def refused(ends, sluice, link, hint):
    """A front end that the guest's NIC cannot answer is told what to set."""
    with Between(ends, sluice, 4, True, link, wait_s=3) as between:
        receiver, source = between.run()
    check(receiver[0] and source[0], "it was taken")
    if hint not in receiver[1]:
        raise Failed(f"no word of '{hint}': {receiver[1]}")


def cases(ends, sluice):
    """`sluice`: the one here; the guest has its own."""
    reference = Reference(sluice)
    yield "verbs in the guest: the demo with another link line gives the same file", lambda: demo(ends, reference)
    yield "verbs in the guest: two transfers of one detector to two receivers", lambda: fan_out(ends)
    for what, family, link in (
            ("UC, IPv6, PMTU 4096", 6, {}), ("UC, IPv4, PMTU 1024", 4, {"pmtu": 1024}),
            ("UC, IPv4, a message per packet with CRC", 4, {"message": "packet"}),
            ("RC, IPv6, PMTU 1024", 6, {"service": "rc", "pmtu": 1024}),
            ("RC, IPv4, a message per packet", 4, {"service": "rc", "message": "packet"}),
            ("RC, IPv4, SEND", 4, {"service": "rc", "operation": "send"}),
            ("RC, IPv6, SEND, spinning", 6, {"service": "rc", "operation": "send", "poll": "spin"})):
        yield f"verbs in the guest: {what}", lambda family=family, link=link: small(ends, reference, family, **link)
    for guest_receives in (False, True):
        way = "udp to verbs" if guest_receives else "verbs to udp"
        for what, family, link in (
                ("UC, IPv4, a message per module", 4, {"message": "module"}),
                ("UC, IPv6, a message per packet with CRC", 6, {"message": "packet", "crc": True}),
                ("RC, IPv4", 4, {"service": "rc"}), ("RC, IPv6, PMTU 256", 6, {"service": "rc", "pmtu": 256}),
                ("RC, IPv4, SEND", 4, {"service": "rc", "operation": "send"})):
            yield f"{way}: {what}", lambda family=family, guest_receives=guest_receives, link=link: across(
                ends, sluice, reference, family, guest_receives, link)
        yield f"{way}: RC, packets are lost and nothing is missing", lambda guest_receives=guest_receives: across(
            ends, sluice, reference, 4, guest_receives, {"service": "rc", "timeout": 14, "retry": 7}, {"loss": 10})
    yield "udp to verbs: answers to another port than 4791 are refused with a hint", lambda: refused(
        ends, sluice, {"reply_port": 0}, "link.reply_port: 4791")
