"""service_pages.py - docs/how-to/serve.md and script-it.md: their commands do as the pages show, with a port of this test's own."""

import os
import shutil
import subprocess

import control_pages


def end_sessions(page):
    """A page that failed half-way may leave sessions: they outlive the service."""
    listed = subprocess.run([page.installed.program, "ps"], capture_output=True, text=True, check=False, env=page.env).stdout
    for line in listed.splitlines()[1:]:
        subprocess.run([page.installed.program, "ctl", line.split()[0], "close"], capture_output=True, check=False, env=page.env)


def check(out, installed):
    no_service = subprocess.run([installed.program, "serve", "--openapi"], capture_output=True, check=False, env=installed.env).returncode
    absent = subprocess.run([installed.program, "list"], capture_output=True, text=True, check=False, env=installed.env).stdout
    for name in ("serve", "script-it"):
        page = control_pages.Page(installed, name)
        if no_service or "ctl --host" in absent or "nexus      (not in" in absent or not shutil.which("curl") or os.environ.get("SLUICE_SANITIZER"):
            page.skip(out, "this program has no sluice serve, or curl is not installed")
            continue
        (page.folder / "experiments").mkdir()
        for path in page.folder.glob("*.yaml"):
            path.rename(page.folder / "experiments" / path.name)
        page.check(out)
        end_sessions(page)
