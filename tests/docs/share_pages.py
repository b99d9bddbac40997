"""share_pages.py - docs/how-to/share-between-hosts.md: its commands, programs and scripts do as it says, with ports of this test's own, and
its table has every call of KIRO."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import typing

import extract

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"
CAMERA_FRAMES = 6000
PATIENCE_S = 100

SHELL = (r"^demo +262\.1 kB +32 ", r"^  image +512 x 512 \|u1$", r"^\d+ +age [\d.]+ (?:us|ms|s)$", r"^kind 7, 10 bytes: beam moved$")
CAMERA = (r"^[1-9]\d* frames answered, \d+ passed over$", r"^the last one, frame \d+: light at x [\d.]+, y [\d.]+$",
          r"^commit to view +p50 +\d+ us +p90 +\d+ us +p99 +\d+ us +max +\d+ us$", r"^commit to answer +p50 +\d+ us ")

# What KIRO's headers declare; of KiroMessenger, in its branches.
KIRO = {
    "kiro_server": "new free start realloc stop",
    "kiro_client": "new free connect disconnect sync sync_partial ping_server get_memory get_memory_size",
    "kiro_trb": "new free reshape push dma_push get_element get_element_size get_max_elements get_raw_size get_raw_buffer flush purge is_setup "
                "clone adopt refresh",
    "kiro_sb": "new free stop serve clone push push_dma get_dma_pointer get_data get_data_blocking freeze thaw get_size add_sync_callback "
               "remove_sync_callback clear_sync_callbacks",
    "kiro_messenger": "new free start stop start_listen stop_listen connect submit_message send send_blocking receive add_receive_callback "
                      "remove_receive_callback add_send_callback remove_send_callback request_static accept_static push_static pull_static "
                      "release_static",
}
HEADINGS = {"kiro_server": "KiroServer", "kiro_client": "KiroClient", "kiro_trb": "KiroTrb", "kiro_sb": "KiroSb", "kiro_messenger": "KiroMessenger"}


def rows_of(page):
    """{heading: the first column of its rows, as one text} of the table of KIRO."""
    found, heading = {}, None
    for line in page.split("## From KIRO")[1].splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        begins = re.match(r"\| \*\*(\w+)\*\*", line)
        if begins:
            heading = found.setdefault(begins[1], [])
        elif heading is not None and line.startswith("| ") and len(cells) > 1:
            heading.append(cells[0])
    return {name: " ".join(rows) for name, rows in found.items()}


def lacking(page):
    """Calls of KIRO that are in no row below their heading, in full or from the underscore on."""
    rows = rows_of(page)
    return [f"{prefix}_{call}" for prefix, calls in KIRO.items() for call in calls.split()
            if not re.search(rf"`(?:{prefix})?_{call}\b", rows.get(HEADINGS[prefix], ""))]


class Done(typing.NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Page:
    def __init__(self, installed):
        self.text = (ROOT / "docs/how-to/share-between-hosts.md").read_text()
        self.installed = installed
        self.folder = installed.folder / "hosts"
        self.folder.mkdir()
        root = installed.program.parents[1]
        library = next(iter(root.rglob("libsluice-client.so.0")))
        package = next(iter(root.rglob("sluice/_cdef.py")), None)
        self.env = {**installed.env, "SLUICE_RUN_DIR": str(installed.folder / "hosts-sockets"), "SLUICE_SITE": "",
                    "LD_LIBRARY_PATH": str(library.parent), "SLUICE_CLIENT_LIBRARY": str(library),
                    "PYTHONPATH": str(package.parents[1]) if package else ""}
        self.ports = {}

    def own_ports(self, text):
        """The text with other ports in the place of those of the page, the same each time."""
        for port in sorted(set(re.findall(r"127\.0\.0\.1:(77\d\d)\b", text))):
            if port not in self.ports:
                with socket.socket() as free:
                    free.bind(("127.0.0.1", 0))
                    self.ports[port] = str(free.getsockname()[1])
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{self.ports[port]}")
        return text

    def shell(self, commands, *changes):
        self.installed.ran.append(commands)
        for old, new in changes:
            commands = re.sub(old, new, commands, flags=re.M)
        # To files, and as a group: where a command fails, those that it started in the background go on.
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            shell = subprocess.Popen(["/bin/sh", "-e", "-c", self.own_ports(commands)], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                                     stdout=out, stderr=err, start_new_session=True)
            try:
                status = shell.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                status = "none: it took too long"
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
            out.seek(0)
            err.seek(0)
            return Done(status, out.read(), err.read())


def told(done, *patterns):
    """What is wrong with what a block of commands printed."""
    missing = [pattern for pattern in patterns if not re.search(pattern, done.stdout, re.M)]
    return [f"exit status {done.returncode}", done.stdout, done.stderr, *missing] if done.returncode or missing else []


def check_shell(out, page, commands):
    done = page.shell(commands)
    lines = len(re.findall(SHELL[2], done.stdout, re.M))
    out.case("share-between-hosts.md: a share is fetched, followed and spoken to", told(done, *SHELL) or
             ([] if lines >= 5 else [f"{lines} elements"]))
    whole, row = page.folder / "newest.npy", page.folder / "row.raw"
    sizes = [path.stat().st_size if path.exists() else None for path in (whole, row)]
    out.case("share-between-hosts.md: what was fetched is in the files", [] if sizes[0] and sizes[0] > 512 * 512 and sizes[1] == 512 else [str(sizes)])


def check_programs(out, page, commands):
    case = "share-between-hosts.md: its programs are built, and print what it shows"
    for name, text in zip(("serve.c", "look.c"), extract.blocks(page.text, "c"), strict=True):
        (page.folder / name).write_text(text)
    done = page.shell(commands, (r"^cc ", "cc -Wall -Wextra -Wno-unused-parameter -Werror "))
    shown = extract.blocks(page.text, "text")[0]
    out.case(case, told(done) or ([] if done.stdout == shown else [done.stdout, "is not", shown]))


def check_camera(out, page, commands):
    case = "share-between-hosts.md: a camera is followed, and what its followers answer is timed"
    for name in ("camera-share.yaml", "camera_centroid.c"):
        (page.folder / name).write_text(page.own_ports((ROOT / "examples" / name).read_text()))
    (page.folder / "centroid.py").write_text(extract.blocks(page.text, "python")[0])
    done = page.shell(commands, (r"^python3 ", f"{PYTHON} "), (r"^cc ", "cc -Wall -Wextra -Wno-unused-parameter -Werror "),
                      (r"^sluice run .* --quiet", rf"\g<0> --set link.kind=shm --set detector.frames={CAMERA_FRAMES}"))
    out.case(case, told(done, *CAMERA))
    summary = page.folder / "camera.json"
    sinks = json.loads(summary.read_text())["sinks"] if summary.exists() else [{"figures": {}}]
    figures = sinks[0]["figures"]
    out.case("share-between-hosts.md: the run has timed them", [] if figures.get("answers", 0) > 0 and
             figures["answer_us_p50"] <= figures["answer_us_p99"] <= figures["answer_us_max"] else [str(figures)])


def check_centroid(out, page):
    """Of an image that is known: two bright pixels."""
    image = bytearray(512 * 512)
    image[100 * 512 + 300] = image[100 * 512 + 301] = 200
    (page.folder / "spot.raw").write_bytes(image)
    done = page.shell("sluice share serve spot --raw spot.raw --shape 512,512 > served.txt &\n"
                      "until ./camera_centroid share:spot 1; do sleep 0.1; done\nkill $!\nwait\n")
    out.case("camera_centroid.c finds the light", told(done, r"^1 frames answered, 0 passed over$", r": light at x 300\.50, y 100\.00$"))


def check_hosts(out, installed):
    page = Page(installed)
    out.case("share-between-hosts.md has every call of KIRO", lacking(page.text))
    out.case("share-between-hosts.md: a call that it lacks is noticed", [] if lacking(page.text.replace("kiro_sb_freeze", "kiro_sb_melt")) ==
             ["kiro_sb_freeze"] else ["it was not"])
    serve, look, secret, programs, camera = extract.blocks(page.text, "sh")
    check_shell(out, page, serve + look)
    done = page.shell(secret)
    out.case("share-between-hosts.md: without the secret a follower is refused", told(done, r"^refused$") or
             ([] if (page.folder / "copy.raw").exists() and not (page.folder / "nothing.raw").exists() else ["what was fetched?"]))
    if os.environ.get("SLUICE_SANITIZER") or not shutil.which("cc"):
        installed.skipped.add("share-between-hosts")
        out.skip("share-between-hosts.md: programs", "the library of this build needs a sanitized program")
        return
    check_programs(out, page, programs)
    if subprocess.run([PYTHON, "-c", "import cffi, numpy"], capture_output=True, check=False).returncode:
        installed.skipped.add("share-between-hosts")
        out.skip("share-between-hosts.md: a camera is followed", "python3-cffi or python3-numpy is not installed")
        return
    check_camera(out, page, camera)
    check_centroid(out, page)
