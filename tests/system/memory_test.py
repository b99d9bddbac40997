#!/usr/bin/python3
"""memory_test.py - a ring that is larger than the cgroup of the program allows is refused with the reason, before memory is taken: a
program that took it would be killed without a word."""
# normal build only

import contextlib
import os
import pathlib
import subprocess

from harness import SLUICE, case, check, equal, experiment, main, skip

LIMIT = 192 << 20


def own_group():
    """The folder of this process's cgroup, and the name of the file with its limit."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return pathlib.Path("/sys/fs/cgroup/memory" + path), "memory.limit_in_bytes"
    path = pathlib.Path("/proc/self/cgroup").read_text().rsplit("::", 1)[-1].strip()
    return pathlib.Path("/sys/fs/cgroup" + path), "memory.max"


@contextlib.contextmanager
def group():
    """A cgroup below our own with a limit, and the name of that limit."""
    parent, file = own_group()
    folder = parent / f"sluice-memory-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as why:
        skip(f"no cgroup can be made here: {why}")
    try:
        try:
            (folder / file).write_text(str(LIMIT))
        except OSError as why:
            skip(f"a cgroup that is made here has no limit of memory: {why}")
        yield folder, file
    finally:
        folder.rmdir()


def run_in(folder, file, slots):
    """A run with so many slots of 2 MiB inside that cgroup."""
    path = experiment(folder, emulate="local", link={"kind": "shm"}, ring={"slots": slots, "late_frames": 2},
                      detector={"modules": 1, "rows": 1024, "columns": 1024, "frames": 5})
    command = f'echo $$ > "{file}/cgroup.procs" && exec "{SLUICE}" run "{path}" --quiet'
    return subprocess.run(["/bin/sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@case("a ring larger than the limit of the cgroup is refused by name, and the program is not killed")
def _(folder):
    with group() as (inside, file):
        done = run_in(folder, inside, 200)
        equal(done.returncode, 1, "exit status")
        for words in ("a ring of 200 slots needs 0.39 GiB", "this process may use 0.1", f"{file} of /", inside.name, "ring.slots"):
            check(words in done.stderr, f"'{words}' is not in: {done.stderr}")


@case("a ring that fits into the limit of the cgroup runs")
def _(folder):
    with group() as (inside, _):
        done = run_in(folder, inside, 4)
        equal(done.returncode, 0, f"exit status; {done.stderr}")


if __name__ == "__main__":
    main()
