"""small_disk.py - a file system that is soon full: a small tmpfs."""

import shlex

from harness import Program, skip


def small_disk(folder, megabytes):
    """A wrapper that runs the program with a full-size tmpfs of its own at folder/disk, and afterwards copies what is
    there to folder/copy: the mount is seen by nobody else."""
    (folder / "disk").mkdir()
    (folder / "copy").mkdir()
    mount = f"mount -t tmpfs -o size={megabytes}m none {shlex.quote(str(folder / 'disk'))}"
    script = f'{mount} || exit 77; "$@"; status=$?; cp -a {shlex.quote(str(folder))}/disk/. ' \
             f'{shlex.quote(str(folder))}/copy; exit $status'
    for unshare in (["unshare", "-m"], ["unshare", "-rm"]):  # as root, or as root of a namespace of our own
        trial = Program(folder=folder, program="true", wrapper=[*unshare, "sh", "-c", script, "sh"])
        if trial.wait() == 0:
            return [*unshare, "sh", "-c", script, "sh"]
    skip("neither root nor user namespaces may mount a small tmpfs here")
