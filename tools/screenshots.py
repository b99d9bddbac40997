#!/usr/bin/python3
"""screenshots.py - pictures of the live page for the docs: a service, a run of examples/live/jungfrau.yaml that is started by clicks, chromium.

  tools/screenshots.py [--output FOLDER]        page-run.png, page-loss.png, page-old.png, page-runs.png, page-phone.png; into docs/pictures

Takes about two minutes, as plots need something to show. Runs build/sluice (or $SLUICE), on ports and in folders of its own.
"""

import argparse
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/system"))
from browser import Browser, missing  # noqa: E402  (found through the line above)

FRAME = "document.querySelector('.frame-number')?.innerText.startsWith('frame')"


@contextlib.contextmanager
def service(folder):
    """The address of a service of examples/live, with sessions of its own; both end here."""
    port_file = folder / "port"
    program = os.environ.get("SLUICE", str(ROOT / "build/sluice"))
    os.environ.update(SLUICE_RUN_DIR=str(folder / "sockets"), SLUICE_SITE="")
    command = [program, "serve", "--listen", "127.0.0.1:0", "--port_file", port_file, "--root", folder / "runs", "--experiments", ROOT / "examples/live"]
    with open(folder / "serve.log", "wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as running:
        try:
            end = time.monotonic() + 30
            while not (port_file.exists() and port_file.read_text().endswith("\n")):
                if running.poll() is not None or time.monotonic() > end:
                    sys.exit((folder / "serve.log").read_text())
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port_file.read_text().strip()}/"
        finally:
            subprocess.run([program, "ctl", "jungfrau", "abort"], capture_output=True, check=False)
            subprocess.run([program, "ctl", "jungfrau", "close"], capture_output=True, check=False)
            running.send_signal(signal.SIGTERM)


def save(browser, folder, name, width):
    """A picture of what is seen, `width` pixels wide, of 256 colours: a quarter of the bytes, and hardly a difference to be seen."""
    raw = folder / "raw.png"
    browser.picture(raw)
    with Image.open(raw) as whole:
        small = whole.convert("RGB").resize((width, round(whole.height * width / whole.width)), Image.LANCZOS)
        small.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE).save(folder / name, optimize=True)


def begin(browser, **parameters):
    """Fill in the form that is open, and start."""
    for name, value in parameters.items():
        browser.fill(f"#parameter-{name}", value)
    browser.click("[type=submit]")
    browser.until(f"document.querySelector('.pill.running') && {FRAME}", "the run")


def pictures(browser, url, output):
    browser.emulate(1440, 900)
    browser.open(url)
    browser.click(".choice")
    begin(browser)
    time.sleep(45)
    save(browser, output, "page-run.png", 1280)
    browser.emulate(390, 844, 2, True)
    browser.run("window.scrollTo(0, 0)")
    time.sleep(2)
    save(browser, output, "page-phone.png", 390)
    browser.emulate(1440, 900, dark=False)
    browser.click("Pause")
    browser.until("document.querySelector('.stage.old')", "the image to be old")
    time.sleep(6)
    save(browser, output, "page-old.png", 900)
    browser.click("Stop")
    browser.until("document.querySelector('.pill.ended')", "the end")
    browser.click("Start again")
    begin(browser, lose="0.0002")
    time.sleep(25)
    browser.until("document.querySelectorAll('.cause').length >= 2", "a loss, and what follows from it")
    save(browser, output, "page-loss.png", 1280)
    browser.click("Stop")
    browser.until("document.querySelector('.pill.ended')", "the end")
    browser.emulate(1440, 880)
    browser.click("Sessions")
    browser.until("[...document.querySelectorAll('.run-card canvas')].filter((canvas) => canvas.width > 300).length === 2", "the runs")
    time.sleep(1)
    save(browser, output, "page-runs.png", 900)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/pictures")
    arguments = parser.parse_args()
    if missing():
        sys.exit(missing())
    with tempfile.TemporaryDirectory(prefix="pictures-", ignore_cleanup_errors=True) as place:
        folder = pathlib.Path(place)
        with service(folder) as url, Browser(folder) as browser:
            pictures(browser, url, folder)
            complaints = browser.complaints()
        if complaints:
            sys.exit("\n".join(complaints))
        for picture in sorted(folder.glob("page-*.png")):
            (arguments.output / picture.name).write_bytes(picture.read_bytes())
            print(f"{arguments.output / picture.name}: {picture.stat().st_size} bytes")


if __name__ == "__main__":
    main()
