#!/usr/bin/python3
"""doctor_test.py - sluice doctor on machines that do not exist: a /proc and a /sys in a folder (--root). A good machine
lacks nothing; each fault of a bad one is told, with the exact command; what does not matter to the experiment is not to be
mended. The interface is lo, since it has the address everywhere; here it looks like a NIC.
"""

import json
import pathlib
import subprocess
import xml.etree.ElementTree

from harness import RECEIVER, SLUICE, case, check, equal, experiment, main, run, run_fails, skip

ALL_CAPABILITIES = "000001ffffffffff"
NO_CAPABILITIES = "0000000000000000"
NIC = "/sys/class/net/lo"
PAGES = "/sys/kernel/mm/transparent_hugepage"

# Two nodes of eight cores, the NIC on the second; as numbers are on most servers.
GOOD = {
    "/sys/devices/system/cpu/online": "0-15",
    "/sys/devices/system/node/online": "0-1",
    "/sys/devices/system/node/node0/cpulist": "0-7",
    "/sys/devices/system/node/node1/cpulist": "8-15",
    "/sys/devices/system/node/node0/distance": "10 21",
    "/sys/devices/system/node/node1/distance": "21 10",
    **{f"/sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": str(n) for n in range(16)},
    **{f"/sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor": "performance" for n in range(16)},
    f"{NIC}/device/numa_node": "1",
    f"{NIC}/device/msi_irqs/40": "msix",
    f"{NIC}/device/msi_irqs/41": "msix",
    f"{NIC}/mtu": "9000",
    f"{NIC}/operstate": "up",
    "/proc/irq/40/effective_affinity_list": "13",
    "/proc/irq/41/effective_affinity_list": "14-15",
    f"{PAGES}/enabled": "always [madvise] never",
    f"{PAGES}/shmem_enabled": "always within_size [advise] never deny force",
    "/proc/sys/net/core/rmem_max": "67108864",
    "/proc/sys/net/core/netdev_max_backlog": "1000",
    "/proc/sys/kernel/numa_balancing": "0",
    "/proc/net/softnet_stat": "0d3eb4ec 00000000 00000020\n14ad893d 00000000 0000001d",
    "/proc/self/status": f"Name:\tsluice\nCapEff:\t{NO_CAPABILITIES}\nCpus_allowed_list:\t0-15",
    "/proc/self/limits": "Limit   Soft Limit  Hard Limit  Units\n"
                         "Max locked memory         8388608              8388608              bytes",
    "/proc/meminfo": "MemTotal: 65536000 kB\nMemAvailable:   60000000 kB\nHugePages_Total:       0\n"
                     "HugePages_Free:        0\nHugepagesize:       2048 kB",
}


def status(cpus="0-15", capabilities=NO_CAPABILITIES):
    return {"/proc/self/status": f"Name:\tsluice\nCapEff:\t{capabilities}\nCpus_allowed_list:\t{cpus}"}


def host(folder, changes):
    """The good machine with these files changed; None takes one away."""
# with sanitizers in check-long
    number = len(list(folder.glob("root-*")))
    root = folder / f"root-{number}"
    for path, text in {**GOOD, **changes}.items():
        if text is not None:
            (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            (root / path[1:]).write_text(text + "\n")
    return root


def examine(folder, changes=None, sections=None, file=True):
    """What doctor says of this machine, as (good, text of the finding, [commands])."""
    sections = dict(sections or {})
    sets = sections.pop("set", [])
    # One thread of each kind: what is chosen for these cpus is looked at in a case of its own.
    for section, key in (("link", "pollers"), ("unit", "workers"), ("threads", "senders")):
        sections[section] = {key: 1, **sections.get(section, {})}
    arguments = [experiment(folder, emulate="local", **sections), *sets] if file else []
    text = run("doctor", *arguments, "--root", host(folder, changes or {}), folder=folder).ends(0).out()
    findings = []
    for line in text.splitlines():
        if line.startswith(("  ok    ", "  mend  ")):
            findings.append((line.startswith("  ok"), line[8:], []))
        elif line.startswith("          "):
            findings[-1][2].append(line.strip())
    return findings, text


def mends(folder, changes, finding, command, sections=None, file=True):
    """Exactly one thing is to be mended: it is told with these words, and this is the command."""
    findings, text = examine(folder, changes, sections, file)
    bad = [f for f in findings if not f[0]]
    equal(len(bad), 1, f"things to mend in\n{text}")
    check(finding in bad[0][1], f"'{finding}' is not in '{bad[0][1]}'")
    check(command in bad[0][2], f"'{command}' is not among {bad[0][2]}")


def fine(folder, changes, sections=None, file=True, says=()):
    findings, text = examine(folder, changes, sections, file)
    check(all(f[0] for f in findings) and "This host lacks nothing we know of." in text, f"to mend:\n{text}")
    for words in says:
        check(words in text, f"'{words}' is not in\n{text}")


@case("a good machine lacks nothing, with and without an experiment")
def _(folder):
    fine(folder, {}, says=["data threads have a cpu each: 8-11", "lo is on node 1", "interrupts go to cpus 13-15",
                           "MTU 9000", "frequency governor performance"])
    fine(folder, {}, file=False, says=["16 cores"])
    fine(folder, {}, {"link": {"kind": "shm"}})
    fine(folder, status(capabilities=ALL_CAPABILITIES), {"link": {"kind": "packet"}})


@case("a plain machine with one node and no cpufreq lacks nothing either")
def _(folder):
    plain = {path: None for path in GOOD if "/node/" in path or "cpufreq" in path or "msi_irqs" in path}
    fine(folder, {**plain, f"{NIC}/device/numa_node": None}, says=["data threads have a cpu each: 1-4"])


@case("how many threads there are, as set or chosen; a host that is filled by choice lacks nothing")
def _(folder):
    fine(folder, {}, says=["threads: 1 poller (as set), 1 worker (as set) and 1 sender (as set) on 16 cpus"])
    chosen = {"link": {"pollers": "auto"}, "unit": {"workers": "auto"}, "threads": {"senders": "auto"}}
    fine(folder, {}, {**chosen, "detector": {"modules": 8}},
         says=["threads: 4 pollers (auto), 7 workers (auto) and 4 senders (auto) on 16 cpus"])


@case("too few cpus: those that are there and not allowed, or more")
def _(folder):
    path = folder / "experiment.yaml"
    mends(folder, status(cpus="14-15"), "5 data threads on this host and 2 cpus",
          f"taskset -c 0-15 sluice run {path}   # and its cgroup must have them")
    small = {"/sys/devices/system/cpu/online": "0-1", **status(cpus="0-1")}
    one_node = {path: None for path in GOOD if "/node/" in path or "msi_irqs" in path}
    mends(folder, {**one_node, **small}, "none is pinned",
          "(more cores; on this machine everything shares, and it works)")
    four = {"/sys/devices/system/cpu/online": "0-3", **status(cpus="0-1")}
    mends(folder, {**one_node, **four}, "none is pinned",
          "(more cores; on this machine everything shares, and it works)")
    mends(folder, {}, "share the cpus 9-10", "(more of them in threads.cpus; 4 threads want one each)",
          {"threads": {"cpus": "9-10"}})


@case("a governor that saves power")
def _(folder):
    mends(folder, {"/sys/devices/system/cpu/cpu5/cpufreq/scaling_governor": "powersave"},
          "cpu 5: frequency governor powersave", "sudo cpupower frequency-set -g performance")
    fine(folder, {"/sys/devices/system/cpu/cpu5/cpufreq/scaling_governor": "powersave", **status(cpus="8-15")})


@case("cpus far from the NIC, and NUMA balancing")
def _(folder):
    path = folder / "experiment.yaml"
    far = {"/proc/irq/40/effective_affinity_list": "8", **status(cpus="0-7")}
    mends(folder, far, "lo is on NUMA node 1, which has cpus 8-15; data threads run elsewhere",
          f"taskset -c 8-15 sluice run {path}")
    mends(folder, {}, "data threads run elsewhere", "set threads.cpus: 8-15", {"threads": {"cpus": "1-4"}})
    mends(folder, {"/proc/sys/kernel/numa_balancing": "1"}, "NUMA balancing is on",
          "sudo sysctl -w kernel.numa_balancing=0")


@case("isolated cpus that may not be used; none, where threads never sleep")
def _(folder):
    path, isolated = folder / "experiment.yaml", {"/sys/devices/system/cpu/isolated": "9-12"}
    mends(folder, {**isolated, **status(cpus="0-8,13-15")}, "cpus 9-12 are isolated, and this process may not use them",
          f"taskset -c 0-15 sluice run {path}")
    fine(folder, isolated, says=["cpus 9-12 are isolated; data threads get them first", "a cpu each: 9-12"])
    grub = ("echo 'GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT isolcpus={0} nohz_full={0} "
            "rcu_nocbs={0}\"' | sudo tee /etc/default/grub.d/sluice.cfg && sudo update-grub   # then reboot")
    latency = {"threads": {"polling": "latency"}}
    mends(folder, {}, "no cpu is isolated", grub.format("8-11"), latency)
    mends(folder, isolated, "the clock interrupts threads", grub.format("9-12"), latency)
    fine(folder, {**isolated, "/sys/devices/system/cpu/nohz_full": "9-12"}, latency)


@case("interrupts on the cpus of data threads, or far away")
def _(folder):
    command = ("for i in /sys/class/net/lo/device/msi_irqs/*; do echo 12-15 | sudo tee "
               "/proc/irq/${i##*/}/smp_affinity_list; done   # irqbalance would undo it: sudo systemctl stop irqbalance")
    mends(folder, {"/proc/irq/40/effective_affinity_list": "9"}, "interrupts go to cpus 9,14-15; best are 12-15", command)
    mends(folder, {"/proc/irq/41/effective_affinity_list": "0"}, "interrupts go to cpus 0,13", command)
    mends(folder, {"/proc/irq/41/effective_affinity_list": None, "/proc/irq/41/smp_affinity_list": "2"},
          "interrupts go to cpus 2,13", command)
    fine(folder, {"/proc/irq/40/effective_affinity_list": "9"}, {"threads": {"pin": False}})


@case("receive buffers: rmem_max, unless this process may exceed it or the link has none")
def _(folder):
    small = {"/proc/sys/net/core/rmem_max": "212992"}
    mends(folder, small, "net.core.rmem_max is 212992", "sudo sysctl -w net.core.rmem_max=67108864")
    mends(folder, small, "net.core.rmem_max is 212992", "sudo sysctl -w net.core.rmem_max=67108864", file=False)
    mends(folder, small, "net.core.rmem_max is 212992", "sudo sysctl -w net.core.rmem_max=1000000",
          {"link": {"receive_buffer": 1000000}})
    fine(folder, small, {"link": {"receive_buffer": 200000}})
    fine(folder, {**small, **status(capabilities=ALL_CAPABILITIES)})
    fine(folder, small, {"link": {"kind": "shm"}})


@case("a backlog that dropped packets, or is too short")
def _(folder):
    command = "sudo sysctl -w net.core.netdev_max_backlog=16384"
    dropped = {"/proc/net/softnet_stat": "0d3eb4ec 00000000 00000020\n14ad893d 0000001f 0000001d"}
    mends(folder, dropped, "1000 packets; 31 were dropped", command)
    fine(folder, {**dropped, "/proc/sys/net/core/netdev_max_backlog": "20000"})
    mends(folder, {"/proc/sys/net/core/netdev_max_backlog": "300"}, "300 packets", command)
    fine(folder, {"/proc/sys/net/core/netdev_max_backlog": "300"}, {"link": {"kind": "shm"}})


@case("huge pages: transparent ones, those of shared memory for shm, or enough that were set aside")
def _(folder):
    never = {f"{PAGES}/enabled": "always madvise [never]"}
    shared_never = {f"{PAGES}/shmem_enabled": "always within_size advise [never] deny force"}
    mends(folder, never, "transparent huge pages: never", f"echo madvise | sudo tee {PAGES}/enabled")
    fine(folder, never, {"link": {"kind": "shm"}})
    mends(folder, shared_never, "transparent huge pages of shared memory: never",
          f"echo advise | sudo tee {PAGES}/shmem_enabled", {"link": {"kind": "shm"}})
    fine(folder, shared_never)
    # 32 slots of two modules of 1024 x 1024 pixels: 64 blocks of 2 MiB, each a page longer, in a stride that is odd.
    large = {"detector": {"rows": 1024, "columns": 1024}}
    findings, _ = examine(folder, never, large)
    command = next(c for f in findings for c in f[2] if "nr_hugepages" in c)
    pages = int(command.split("=")[1].split()[0])
    check(64 < pages < 80, command)
    memory = GOOD["/proc/meminfo"]
    enough = memory.replace("HugePages_Total:       0", f"HugePages_Total: {pages + 3}")
    fine(folder, {**never, "/proc/meminfo": enough.replace("HugePages_Free:        0", f"HugePages_Free: {pages}")}, large,
         says=[f"{pages} are set aside, the ring takes {pages}"])
    findings, _ = examine(folder, {**never, "/proc/meminfo": enough.replace("HugePages_Free:        0",
                                                                            f"HugePages_Free: {pages - 1}")}, large)
    check(any(f"vm.nr_hugepages={pages + 4}" in c for f in findings for c in f[2]),
          f"those that are in use do not count: {findings}")


@case("a ring that does not fit")
def _(folder):
    mends(folder, {"/proc/meminfo": GOOD["/proc/meminfo"].replace("60000000 kB", "100000 kB")}, "a ring of 32 slots",
          "set ring.slots lower", {"detector": {"rows": 1024, "columns": 1024}})
    mends(folder, {"/proc/self/cgroup": "0::/system.slice/x.service",
                   "/sys/fs/cgroup/system.slice/x.service/memory.max": "104857600"},
          "this process may use 0.10 GB (memory.max of /system.slice/x.service)",
          "set ring.slots lower, or raise the limit (of a service: MemoryMax=)", {"detector": {"rows": 1024, "columns": 1024}})


@case("locked memory matters to who locks some")
def _(folder):
    command = "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/sluice.conf   # then log in again"
    links = run("list", "link", folder=folder).out()
    large = {"detector": {"rows": 1024, "columns": 1024}}
    unlimited = GOOD["/proc/self/limits"].replace("8388608", "unlimited")
    if "verbs      (not" not in links:
        verbs = {"set": ["--set", "link.kind=verbs"]}
        mends(folder, {}, "an RDMA NIC pins the whole ring", command, {**verbs, **large})
        fine(folder, {"/proc/self/limits": unlimited}, {**verbs, **large})
        fine(folder, status(capabilities=ALL_CAPABILITIES), {**verbs, **large})
    if "xdp        (not" not in links:
        raw_admin_bpf = status(capabilities=f"{1 << 12 | 1 << 13 | 1 << 39:016x}")
        mends(folder, raw_admin_bpf, "link xdp pins", command, {"link": {"kind": "xdp", "pmtu": 2048}})
    fine(folder, {}, large)


@case("privileges that links packet and xdp need")
def _(folder):
    program = str(pathlib.Path(SLUICE).resolve())
    mends(folder, {}, "CAP_NET_RAW no", f"sudo setcap cap_net_raw+ep {program}", {"link": {"kind": "packet"}})
    fine(folder, status(capabilities=f"{1 << 13:016x}"), {"link": {"kind": "packet"}})
    if "xdp        (not" not in run("list", "link", folder=folder).out():
        unlimited = {"/proc/self/limits": GOOD["/proc/self/limits"].replace("8388608", "unlimited")}
        mends(folder, {**unlimited, **status(capabilities=f"{1 << 13:016x}")}, "CAP_BPF no",
              f"sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep {program}", {"link": {"kind": "xdp", "pmtu": 2048}})
        fine(folder, {**unlimited, **status(capabilities=f"{1 << 12 | 1 << 13 | 1 << 39:016x}")},
             {"link": {"kind": "xdp", "pmtu": 2048}})
    fine(folder, {}, file=False)


@case("a kernel that has only small packets for link xdp")
def _(folder):
    if "xdp        (not" in run("list", "link", folder=folder).out():
        skip("link xdp is not in this program")
    able = {**status(capabilities=f"{1 << 12 | 1 << 13 | 1 << 39:016x}"),
            "/proc/self/limits": GOOD["/proc/self/limits"].replace("8388608", "unlimited")}
    large, small = {"link": {"kind": "xdp", "pmtu": 4096}}, {"link": {"kind": "xdp", "pmtu": 2048}}
    for release in ("5.15.0-91-generic", "6.1.0-18-amd64", "6.5.13"):
        old = {**able, "/proc/sys/kernel/osrelease": release}
        mends(folder, old, f"Linux {release}: link xdp has packets of 2048 bytes at most, since",
              "(a newer kernel, or link.pmtu: 2048)", large)
        fine(folder, old, small)
    for release in ("6.6.0", "6.12.9+bpo-amd64", "7.0"):
        fine(folder, {**able, "/proc/sys/kernel/osrelease": release}, large, says=["packets of 4096 bytes"])


@case("an interface that is down, or whose MTU is too small")
def _(folder):
    mends(folder, {f"{NIC}/operstate": "down"}, "is down", "sudo ip link set lo up")
    mends(folder, {f"{NIC}/mtu": "1500"}, "MTU 1500, packets carry 4096 bytes",
          "sudo ip link set lo mtu 9000   # or link.pmtu: 1024")
    fine(folder, {f"{NIC}/mtu": "1500"}, {"link": {"pmtu": 1024}})


@case("an address that nobody here has; a list of cpus that is not allowed")
def _(folder):
    mends(folder, {}, "no interface of this host has the address 192.0.2.1 (link.listen)",
          "ip -brief address   # shows those it has", {"link": {"listen": "192.0.2.1"}})
    run_fails("doctor", experiment(folder, threads={"cpus": "3000"}), folder=folder, says=["no list of cpus"])
    run_fails("doctor", experiment(folder, threads={"cpus": "16"}), "--root", host(folder, {}), folder=folder,
              says=["threads.cpus", "cpu 16", "0-15"])


@case("on the host that has link.source alone it looks as the front end would")
def _(folder):
    shown = subprocess.run(["ip", "-j", "-4", "address"], capture_output=True, text=True, check=False).stdout
    own = [(i["ifname"], a["local"]) for i in json.loads(shown or "[]") if i["ifname"] != "lo"
           for a in i["addr_info"] if a["family"] == "inet"]
    if not own:
        skip("this host has no address but that of lo")
    name, address = own[0]
    link = {"link": {"listen": "192.0.2.1", "source": address}, "control": {"address": "192.0.2.1", "token": "t"}}
    findings, text = examine(folder, {"/proc/sys/net/core/rmem_max": "212992", f"/sys/class/net/{name}/mtu": "1500"}, link)
    equal([f[1] for f in findings if not f[0]], [f"{name} ({address}): MTU 1500, packets carry 4096 bytes"],
          f"things to mend in\n{text}")
    check("seen as the front end" in text and "data threads have a cpu each: 1" in text, text)


@case("a bad machine: all at once, and what does not outlive a restart is said to")
def _(folder):
    _, text = examine(folder, {"/proc/sys/net/core/rmem_max": "212992", f"{PAGES}/enabled": "always madvise [never]",
                               "/proc/sys/kernel/numa_balancing": "1", f"{NIC}/mtu": "1500",
                               "/proc/irq/40/effective_affinity_list": "0-15",
                               "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "schedutil"})
    equal(text.count("  mend  "), 6, f"things to mend in\n{text}")
    check("What is marked 'mend' costs speed, not correctness." in text, text)
    check("/etc/sysctl.d" in text, text)


@case("an empty folder says nothing, and nothing breaks")
def _(folder):
    (folder / "empty").mkdir()
    for arguments in ([], [experiment(folder)]):
        run("doctor", *arguments, "--root", folder / "empty", folder=folder).ends(0)


@case("a root that is no folder is an error")
def _(folder):
    (folder / "file").write_text("")
    for root in ("/nonexistent", folder / "file"):
        run_fails("doctor", "--root", root, folder=folder, says=["is no folder"])


# ---- frames through this host ----

def live(folder, *arguments, status=0):
    """What doctor --live says, and its JUnit file: (text, {case: failure or None}, {property: value})."""
    done = run("doctor", *arguments, "--live", "--junit", folder / "live.xml", folder=folder).ends(status)
    suite = xml.etree.ElementTree.parse(folder / "live.xml").getroot().find("testsuite")
    cases = {c.get("name"): c.find("failure").get("message") if c.find("failure") is not None else None for c in suite.iter("testcase")}
    equal((int(suite.get("tests")), int(suite.get("failures"))), (len(cases), sum(c is not None for c in cases.values())), "counts of the suite")
    return done.out().partition("\nLive: ")[2], cases, {p.get("name"): p.get("value") for p in suite.iter("property")}


@case("live: every frame comes whole, over loopback, an address, an interface, and by the link of an experiment")
def _(folder):
    ways = [([], "udp", "127.0.0.1", 2), (["--address", RECEIVER], "udp", RECEIVER, 2), (["--address", "lo"], "udp", "127.0.0.1", 2),
            ([experiment(folder, detector={"modules": 3, "rows": 64, "columns": 128})], "udp", RECEIVER, 3),
            ([experiment(folder, "shm.yaml", link={"kind": "shm"})], "shm", "127.0.0.1", 2)]
    for arguments, link, at, modules in ways:
        text, cases, numbers = live(folder, *arguments, "--frames", "60")
        equal(set(cases.values()), {None}, "failures")
        equal((numbers["link"], numbers["address"], numbers["modules"]), (link, at, str(modules)), "link, address, modules")
        equal((numbers["module_frames_sent"], numbers["module_frames_lost"], numbers["module_frames_split"]),
              (str(60 * modules), "0", "0"), "module-frames sent, lost, split")
        check(float(numbers["first_frame_ms"]) > 0 and float(numbers["frames_per_s"]) > 0, f"numbers: {numbers}")
        check(f"  ok    0 of {60 * modules} module-frames lost\n" in text, f"the text: {text}")
    equal(sorted(path.name for path in folder.iterdir() if path.suffix not in (".yaml", ".xml") and not path.name.startswith("std")), [],
          "files left behind")


@case("live: what the host loses is counted and explained, in the text and in the JUnit file, and the exit status is 1")
def _(folder):
    path = experiment(folder, detector={"rows": 512, "columns": 512, "frame_rate_Hz": 60}, link={"credits": False, "receive_buffer": 65536},
                      ring={"overrun": "drop_newest"})
    text, cases, numbers = live(folder, path, "--frames", "40", status=1)
    split, lost = int(numbers["module_frames_split"]), int(numbers["module_frames_lost"])
    check(split + lost > 0, "nothing was lost: not much of a test")
    check(f"fault {split} module-frames split" in text and "The receive buffer is too small" in text, f"the text: {text}")
    check("The receive buffer is too small" in (cases["no module-frame is split"] or cases["no module-frame is lost"]), f"{cases}")
    text, cases, _ = live(folder, "--address", "no<such&address", status=1)
    check("is no numeric address, and no interface" in text and all(cases.values()), f"{cases}")
    run_fails("doctor", "--live", "--junit", folder / "nowhere/live.xml", "--frames", "1", folder=folder, says=["cannot write", "nowhere/live.xml"])


main()
