"""slow_disk.py - a disk that is slower than the data (tests/lib/slow_disk.c)."""

import pathlib
import subprocess
import tempfile

from harness import ROOT, equal, skip

MB = 1000 * 1000


class SlowDisk:
    """The shared object that delays writes, built once."""

    folder = path = None

    @classmethod
    def get(cls):
        if cls.path is None:
            cls.folder = tempfile.TemporaryDirectory()
            path = pathlib.Path(cls.folder.name) / "slow_disk.so"
            try:
                done = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, ROOT / "tests/lib/slow_disk.c", "-ldl"],
                                      capture_output=True, text=True, check=False)
            except FileNotFoundError:
                skip("there is no C compiler to build the slow disk with")
            equal((done.returncode, done.stderr), (0, ""), "the slow disk's compilation")
            cls.path = path
        return cls.path


def on_slow_disk(bytes_per_s, of=None):
    """A wrapper under which a program writes its files this slowly; of: those with this in their names, otherwise files of HDF5."""
    return "env", f"LD_PRELOAD={SlowDisk.get()}", f"SLOW_DISK_BYTES_PER_S={bytes_per_s}", *([f"SLOW_DISK_OF={of}"] if of else [])
