"""control_pages.py - docs/how-to/prometheus.md, lima.md and bluesky.md: their commands and scripts do as the pages show, with ports of this test's own."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import extract

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"
PATIENCE_S = 120
PORTS = re.compile(r"127\.0\.0\.1:(8765|9090|11018)\b")


class Page:
    """A page in a folder of its own, with what meson installed."""

    def __init__(self, installed, name):
        self.name, self.installed = name, installed
        self.text = (ROOT / f"docs/how-to/{name}.md").read_text()
        self.folder = installed.folder / name
        self.folder.mkdir()
        root = installed.program.parents[1]
        library = next(iter(root.rglob("libsluice-client.so.0")))
        package = next(iter(root.rglob("sluice/_cdef.py")), None)
        self.env = {**installed.env, "SLUICE_RUN_DIR": str(installed.folder / f"{name}-sockets"), "SLUICE_SITE": "", "LD_LIBRARY_PATH": str(library.parent),
                    "SLUICE_CLIENT_LIBRARY": str(library), "PYTHONPATH": str(package.parents[1]) if package else "", "PYTHONDONTWRITEBYTECODE": "1"}
        self.env.pop("SLUICE", None)
        self.ports = {}
        for number, block in enumerate(extract.blocks(self.text, "yaml")):
            self.write(self.file_name(block, number), block)

    def file_name(self, block, number):
        """As the text before the block calls it."""
        before = self.text[:self.text.index(block)]
        names = re.findall(r"`([\w.-]+\.(?:yaml|yml|properties))`", before)
        return names[-1] if names else f"block-{number}.yaml"

    def write(self, name, text):
        (self.folder / name).write_text(self.own(text))

    def own(self, text):
        """With free ports in the place of those of the page, the same each time; with Debian's Python."""
        def port(match):
            if match[1] not in self.ports:
                with socket.socket() as free:
                    free.bind(("127.0.0.1", 0))
                    self.ports[match[1]] = str(free.getsockname()[1])
            return f"127.0.0.1:{self.ports[match[1]]}"
        return PORTS.sub(port, text)

    def run(self, commands):
        """In one shell, as a user would type them; what they started ends with it."""
        commands = re.sub(r"\bpython3\b", PYTHON, self.own(commands))
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            shell = subprocess.Popen(["/bin/sh", "-e", "-c", commands], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                     start_new_session=True)
            try:
                status = shell.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                status = "none: it took too long"
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
            out.seek(0)
            err.seek(0)
            return status, out.read(), err.read()

    def steps(self):
        """[(language, block, what the page shows behind it)] of commands and scripts, in their order."""
        found = re.findall(r"^```(sh|python|text|yaml)\n(.*?)^```$", self.text, re.M | re.S)
        return [(kind, text, found[i + 1][1] if i + 1 < len(found) and found[i + 1][0] == "text" else "")
                for i, (kind, text) in enumerate(found) if kind in ("sh", "python")]

    def skip(self, out, why):
        self.installed.skipped.add(self.name)
        out.skip(f"{self.name}.md", why)

    def check(self, out):
        """All commands and scripts in one shell; each prints what the page shows behind it."""
        script, steps = "", self.steps()
        for number, (kind, text, _) in enumerate(steps):
            if kind == "python":
                self.write(f"script-{number}.py", text)
                text = f"python3 script-{number}.py\n"
            else:
                self.installed.ran.append(text)
            script += f"{text}echo '=== {number}'\n"
        status, said, errors = self.run(script)
        parts = re.split(r"^=== \d+\n", said, flags=re.M)
        logs = [path.read_text(errors="replace")[-2000:] for path in sorted(self.folder.glob("*.log"))]
        for number, (_, text, shown) in enumerate(steps):
            printed = parts[number] if number < len(parts) - 1 else None
            out.case(f"{self.name}.md: {text.splitlines()[0][:100]}", [] if printed == shown else
                     [f"exit status {status}", printed or said, "is not", shown, errors[-3000:], *logs])


def has_python(*modules):
    return subprocess.run([PYTHON, "-c", f"import {', '.join(modules)}"], capture_output=True, check=False).returncode == 0


def check(out, installed):
    sanitized = os.environ.get("SLUICE_SANITIZER")
    no_nexus = "(not in this program" in subprocess.run([installed.program, "list", "nexus"], capture_output=True, text=True, check=False).stdout
    no_service = subprocess.run([installed.program, "serve", "--openapi"], capture_output=True, check=False, env=installed.env).returncode
    page = Page(installed, "prometheus")
    if no_service or not all(map(shutil.which, ("prometheus", "promtool", "curl"))):
        page.skip(out, "this program has no sluice serve, or prometheus or curl is not installed")
    else:
        page.check(out)
    page = Page(installed, "lima")
    page.write("lima.properties", next(text for text in extract.blocks(page.text, "text") if "->Session" in text))
    if sanitized or no_nexus or not has_python("cffi", "numpy", "tango"):
        page.skip(out, "python3-tango, python3-cffi or python3-numpy is not installed, or the library needs a sanitized program")
    else:
        page.check(out)
        # The server's session outlives it: also where a step before its end has failed.
        subprocess.run([installed.program, "ctl", "camera", "close"], env=page.env, capture_output=True, check=False)
    page = Page(installed, "bluesky")
    if sanitized or no_nexus or not has_python("cffi", "h5py", "numpy"):
        page.skip(out, "python3-cffi, python3-h5py or python3-numpy is not installed, or the library needs a sanitized program")
    else:
        page.check(out)
