#!/usr/bin/python3
"""verbs_test.py - link verbs where there is no RDMA, or no rdma-core: the program runs, and says what is missing.

The library is another one than the host's: an empty file, or the double that the unit tests have.
"""

import contextlib
import os
import pathlib

from harness import SLUICE, case, check, equal, experiment, main, run, run_fails, skip

DOUBLE = pathlib.Path(SLUICE).parent / "tests/lib"


@contextlib.contextmanager
def library(folder, devices=""):
    """Programs find libibverbs there first."""
    before = {name: os.environ.get(name) for name in ("LD_LIBRARY_PATH", "FAKE_VERBS")}
    os.environ.update({"LD_LIBRARY_PATH": str(folder), "FAKE_VERBS": devices})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def needs_verbs(folder):
    """Skip where it was not built."""
    text = run("list", "verbs", folder=folder).out()
    if "not in this program" in text:
        skip(text.strip())


def broken(folder):
    """A folder whose libibverbs is none."""
    (folder / "lib").mkdir()
    (folder / "lib/libibverbs.so.1").write_bytes(b"")
    return folder / "lib"


def says(program, *texts):
    for text in texts:
        check(text in program.out() + program.err(), f"'{text}' is not in what it says")


@case("without libibverbs everything but link verbs works, and it says what to install")
def _(folder):
    needs_verbs(folder)
    path = experiment(folder)
    with library(broken(folder)):
        says(run("list", "verbs", folder=folder).ends(0), "not usable here", "libibverbs1")
        says(run("doctor", path, "--set", "link.kind=verbs", folder=folder).ends(0), "mend  RDMA: no library",
             "libibverbs1")
        says(run("doctor", path, folder=folder).ends(0), "ok    RDMA: no library")
        run_fails("run", path, "--set", "link.kind=verbs", folder=folder, says=["RDMA NICs cannot be used", "libibverbs1"])
        run("run", path, folder=folder).ends(0)
        page = run("list", "--markdown", folder=folder).ends(0).out()
    equal(run("list", "--markdown", folder=folder).ends(0).out(), page, "the page, with and without a library")


@case("an address that no device has is named, with those there are")
def _(folder):
    needs_verbs(folder)
    path = experiment(folder)
    with library(DOUBLE, "mlx5_0=192.0.2.1 mlx5_1=fd77::3"):
        run_fails("run", path, "--set", "link.kind=verbs", "--set", "link.listen=192.0.2.9", folder=folder,
                  says=["192.0.2.9", "mlx5_0 192.0.2.1", "mlx5_1 fd77::3"])
    with library(DOUBLE):
        run_fails("run", path, "--set", "link.kind=verbs", folder=folder, says=["no RDMA NIC at all"])


@case("doctor names devices and their addresses, and what they lack")
def _(folder):
    needs_verbs(folder)
    path = experiment(folder)
    with library(DOUBLE, "mlx5_0=192.0.2.1 mlx5_1=fd77::3 bare0=fe80::1"):
        says(run("doctor", folder=folder).ends(0), "ok    RDMA: mlx5_0 port 1 has 192.0.2.1 (GID 1), path MTU 4096",
             "mlx5_1 port 1 has fd77::3", "mend  RDMA: bare0 has no RoCE v2 address")
        says(run("doctor", path, "--set", "link.kind=verbs", "--set", "link.listen=192.0.2.1,192.0.2.7",
                 folder=folder).ends(0), "RDMA: no device has the address 192.0.2.7")
    with library(DOUBLE):
        says(run("doctor", path, "--set", "link.kind=verbs", folder=folder).ends(0), "mend  RDMA: no device", "rdma_rxe")


@case("what a NIC cannot do is refused before anything is sent")
def _(folder):
    needs_verbs(folder)
    path = experiment(folder)
    with library(DOUBLE, "mlx5_0=192.0.2.1"):
        run_fails("run", path, "--set", "link.kind=verbs", "--set", "link.listen=192.0.2.1", "--set",
                  "link.operation=send", folder=folder, says=["link.service: rc"])
    equal(sorted(p.name for p in folder.glob("*.nxs*")), [], "files there")


main()
