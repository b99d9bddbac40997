"""live_page.py - docs/tutorials/live-page.md: its experiment is that of examples/, its commands run, and the page that they serve has what it tells.
The clicks themselves are in tests/system/page_test.py."""

import json
import os
import pathlib
import re
import subprocess
import time
import urllib.request

import extract

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAIT_S = 120


def ask(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
        return answer.read()


def until(condition):
    end = time.monotonic() + WAIT_S
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.1)
    return value


def follow(serving, port_file, shell, commands):
    """What a user does after `sluice serve`, and what is wrong with it."""
    if not until(lambda: serving.poll() is not None or (port_file.exists() and port_file.read_text().endswith("\n"))) or serving.poll() is not None:
        return ["the service is not there"]
    url = f"http://127.0.0.1:{port_file.read_text().strip()}"
    problems = [] if b"assets/main.js" in ask(url) else ["there is no page"]
    api = f"{url}/api/v1"
    labels = [parameter["label"] for parameter in json.loads(ask(f"{api}/experiments"))["experiments"][0]["parameters"]]
    if labels != ["Frames", "Frame rate", "Share of hits", "Threshold of the veto", "Packets to lose"]:
        problems.append(f"the form has {labels}")
    ask(f"{api}/sessions", {"experiment": "jungfrau", "parameters": {"lose": 0.01}})
    ask(f"{api}/sessions/jungfrau/start", {})
    if not until(lambda: (json.loads(ask(f"{api}/sessions/jungfrau"))["status"] or {}).get("frames", {}).get("settled", 0) > 100):
        problems.append("no frames came")
    ask(f"{api}/sessions/jungfrau/pause", {})
    if not until(lambda: json.loads(ask(f"{api}/sessions/jungfrau"))["state"] == "paused"):
        problems.append("it does not pause")
    listed = shell(commands[0])
    if not re.search(r"^jungfrau +paused +\d+ +\d+ .*jungfrau\.yaml$", listed.stdout, re.M):
        problems.append(listed.stdout + listed.stderr)
    ended = shell(commands[1])
    if ended.returncode or "jungfrau: ended" not in ended.stdout:
        problems.append(f"exit status {ended.returncode}: {ended.stdout}{ended.stderr}")
    if not re.search(r"\b[1-9]\d* (lost|damaged)", ended.stdout):
        problems.append(f"nothing was lost: {ended.stdout}")
    return problems


def check(out, installed, run, absent):
    page = (ROOT / "docs/tutorials/live-page.md").read_text()
    example = (ROOT / "examples/live/jungfrau.yaml").read_text()
    shown = extract.blocks(page, "yaml")[0]
    out.case("live-page.md: its experiment is that of examples/live", [] if shown == example else ["they differ"])
    if absent:
        out.skip("live-page.md: its commands do as told", "this program has no service: libmicrohttpd-dev was not found")
        return
    (installed.folder / "live").mkdir()
    # Shared memory, as other tests may have UDP port 4791 of 127.0.0.1.
    (installed.folder / "live/jungfrau.yaml").write_text(shown.replace("{kind: udp, listen: 127.0.0.1}", "{kind: shm}"))
    env = {**installed.env, "SLUICE_RUN_DIR": str(installed.folder / "page-sockets"), "SLUICE_SITE": ""}
    serve, *commands = extract.blocks(page, "sh")
    port_file = installed.folder / "page-port"
    words = serve.split() + ["--listen", "127.0.0.1:0", "--port_file", str(port_file)]
    with open(os.devnull, "wb") as nothing, subprocess.Popen(words, cwd=installed.folder, env=env, stdout=nothing, stderr=nothing) as serving:
        try:
            problems = follow(serving, port_file, lambda text: run("/bin/sh", "-c", text, folder=installed.folder, env=env), commands)
        finally:
            run("/bin/sh", "-c", "sluice ctl jungfrau abort; sluice ctl jungfrau close", folder=installed.folder, env=env)
            serving.terminate()
    out.case("live-page.md: its commands do as told", problems)
