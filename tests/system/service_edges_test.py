#!/usr/bin/python3
"""service_edges_test.py - `sluice serve` where something is odd: requests that a proxy could read in another way, clients that vanish while a telegram waits,
names and texts with characters that do not belong there, a folder of sockets that others can enter, damaged runs, sessions that crash; and the routes of
api.md, which are those of the OpenAPI document."""

import contextlib
import json
import os
import pathlib
import re
import select
import signal
import socket
import time

import harness
from harness import ROOT, Program, case, check, equal, experiment, main, run, run_fails, skip, wait_for
from service import API, TO_A_FILE, Stream, pid_of, put_experiment, require, serving

TELEGRAM = '<telegram xmlns="urn:sluice:telegram:1" version="1">%s</telegram>'
FRAMES = 120


def connect(service):
    return socket.create_connection((service.host, service.port), timeout=harness.TIMEOUT_S)


def answers(service, *lines, body=b"", method="GET", path=API, version="1.1"):
    """Statuses of all that is answered, until the service closes the connection."""
    head = b"\r\n".join(line if isinstance(line, bytes) else line.encode() for line in (f"{method} {path} HTTP/{version}", *lines))
    with connect(service) as client:
        client.sendall(head + b"\r\n\r\n" + body)
        said = b""
        with contextlib.suppress(ConnectionError):  # reset: it closed before it read all
            while part := client.recv(65536):
                said += part
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3})", said)]


@case("a request that two readers could understand differently is refused, and its connection closed")
def heads(folder):
    with serving(folder) as service:
        here = f"127.0.0.1:{service.port}"
        host, good = f"Host: {here}", f"Origin: http://{here}"
        end = "Connection: close"
        equal(answers(service, host, good, "X-Text: \xe9\tb", "Empty:", end), [200], "a usual request")
        second = f"GET {API}/runs HTTP/1.1\r\n{host}\r\n\r\n".encode()
        chunks = b"0\r\n\r\n" + second
        post = {"method": "POST", "path": f"{API}/sessions"}
        for lines, options in (
                ((host, "Content-Length: 5", "Transfer-Encoding: chunked"), {"body": chunks, **post}),
                ((host, "Transfer-Encoding: chunked", "Content-Length: 5"), {"body": chunks, **post}),
                ((host, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), {"body": chunks, **post}),
                ((host, "Transfer-Encoding: xchunked"), {"body": chunks, **post}),
                ((host, "Transfer-Encoding: chunked"), {"body": chunks, "version": "1.0", **post}),
                ((host, "Content-Length: 0", f"Content-Length: {len(second)}"), {"body": second, **post}),
                ((host, host), {}), ((host, "Host: localhost"), {}), ((host, good, good), {}), ((host, good, "Origin: http://evil.org"), {}),
                ((host, "Authorization: Bearer a", "Authorization: Bearer b"), {}),
                ((host, f"{good}\0evil", "Accept: */*"), {}), ((host, f"{good}\0evil"), {}), ((host, f"{good}\0\0\0\0evil"), {}),
                ((host, f"{good}\0\0", " evil"), {}), ((host, "X: a", " Origin: b"), {}), ((host, "Host : localhost"), {}),
                ((f"{host}\0.evil.org",), {}), ((host, "X: \x01"), {})):
            equal(answers(service, *lines, **options), [400], f"answers to {lines}")
        # An answer before the body: what follows is that body, and no request.
        equal(answers(service, "Host: evil.org", f"Content-Length: {len(second)}", body=second, **post), [403], "a refused request with a body")
        equal(answers(service, host, "Content-Length: 2", end, body=b"{}", **post), [400], "a body as it should be: no experiment is named")


# ---- telegrams ----

def telegram(service, requests):
    return service.raw("POST", f"{API}/telegram", (TELEGRAM % requests).encode())


def sockets_left(service):
    """Connections that the clients have closed, and the service has not (CLOSE-WAIT is 08)."""
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return [line for line in lines if line.split()[1].endswith(f":{service.port:04X}") and line.split()[3] == "08"]


@case("a wait ends when its client has gone; waits leave room for telegrams that do not wait")
def waits(folder):
    with serving(folder) as service:
        service.begin("demo")
        document = (TELEGRAM % '<wait to="demo" state="ended" wait_s="86400"/><stop to="demo"/>').encode()
        request = f"POST {API}/telegram HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(document)}\r\n\r\n".encode() + document
        clients = [connect(service) for _ in range(60)]
        for client in clients:
            client.sendall(request)
        refused = wait_for("all but 56 are refused", lambda: len(r := select.select(clients, [], [], 0)[0]) == 4 and r)
        for client in refused:
            check(b" 503 " in client.recv(4096).split(b"\r\n")[0], "too many wait")
        equal(telegram(service, '<status to="demo"/>').status, 200, "one that does not wait")
        equal(telegram(service, '<wait to="demo" state="ended" wait_s="60"/>').status, 503, "one more that waits")
        for number, client in enumerate(clients):
            if number % 2:
                client.shutdown(socket.SHUT_WR)
            else:
                client.close()
        wait_for("room for others", lambda: telegram(service, '<wait to="demo" state="running" wait_s="60"/>').status == 200)
        for client in clients:
            client.close()
        wait_for("all connections are closed", lambda: not sockets_left(service))
        equal(service.session("demo")["state"], "running", "what would have come behind the wait was not done")


# ---- names and texts ----

@case("names that no call could have are refused or told; a long one stays as it is")
def names(folder):
    with serving(folder) as service:
        long = "experiment-" + "x" * 52
        equal(len(long), 63, "as long as a name may be")
        for name in ("demo.v2", long):
            put_experiment(service, name)
        for name in ("a b", "-x", "\xe9t\xe9", "y" * 64):
            put_experiment(service, name)
        (service.experiments / ".hidden.yaml").write_text("x")
        (service.experiments / "folder name.yaml").mkdir()
        with open(os.fsencode(service.experiments) + b"/\xff.yaml", "wb"):
            pass
        listed = {e["name"]: e for e in service.get("/experiments")["experiments"]}
        equal(sorted(n for n, e in listed.items() if e["valid"]), ["demo.v2", long], "valid ones")
        wrong = sorted(n for n, e in listed.items() if not e["valid"])
        equal(wrong, sorted(["-x", "a b", "y" * 64, "\xe9t\xe9", "?"]), "those that are told")
        for name in wrong:
            equal((listed[name]["error"]["code"], listed[name]["error"]["hint"]), ("name", "rename the file"), f"why '{name}' is none")
        for name in ("-x", "--", ".x"):
            answer = service.ask("POST", "/sessions", {"experiment": "demo.v2", "name": name}, status=400)
            check("'.' or '-' at the beginning" in answer.json["error"]["message"], f"the reason: {answer.json}")
        for name in (long, "demo.v2"):
            equal(service.ask("POST", "/sessions", {"experiment": name}, status=201).json["name"], name, "a session has the name of its experiment")
        equal(service.ask("POST", "/sessions", {"experiment": long}, status=201).json["name"], long[:60] + "-2", "the next one")
        odd = experiment(folder, name="\xe9.yaml", control={"port": 0})
        session = Program("session", odd, "--root", folder / "more", folder=folder)
        wait_for("its session", lambda: service.ask("GET", "/sessions/_-").status == 200)
        equal(run("ctl", "_-", "close", "--wait", folder=folder).process.returncode, 0, "a session of an odd file can be addressed")
        session.wait()
        run_fails("session", service.experiments / "demo.v2.yaml", "--root", folder / "more", "--name", "-y", folder=folder)


@case("mistakes are listed once, with the right line")
def mistakes(folder):
    with serving(folder) as service:
        put_experiment(service, "demo")
        found = service.ask("POST", "/experiments/new/check", b"detector:\n - : [\nx", status=200).json["errors"]
        equal([(e["where"], e["line"]) for e in found], [("new.yaml:2:4", 2)], "the place of a broken text")
        for override in ("stages=...", "stages=copy", "stages[+]=nope", "x=1"):
            answer = service.ask("POST", "/sessions", {"experiment": "demo", "set": [override]}, status=422)
            messages = [e["message"] for e in answer.json["errors"]]
            equal(len(messages), len(set(messages)), f"mistakes of {override}: {messages}")


@case("metadata take no control characters; others stay as they are")
def characters(folder):
    with serving(folder) as service:
        put_experiment(service, "demo")
        service.ask("POST", "/sessions", {"experiment": "demo"}, status=201)
        for key in ("title", "comment"):
            for text in ("\x1b[2J", "a\rb", "\x7f", "\x9b2J", "a\0b"):
                answer = service.ask("PATCH", "/sessions/demo/metadata", {"set": {key: text}})
                check(answer.status in (400, 409, 422), f"{key}={text!r}: {answer.status} {answer.body}")
        kept = {"title": "\u202egnp.elpmas", "comment": "two\nlines, a\ttab, \xe9, \xa0"}
        service.ask("PATCH", "/sessions/demo/metadata", {"set": kept}, status=200)
        equal(service.get("/sessions/demo/metadata")["metadata"], kept, "metadata")


# ---- the folder of sockets ----

@case("a folder of sockets that others can enter: the service does not start, and one that runs says so")
def sockets(folder):
    require()
    place = folder / "open"
    place.mkdir()
    place.chmod(0o755)
    before = os.environ.get("SLUICE_RUN_DIR")
    os.environ["SLUICE_RUN_DIR"] = str(place)
    (folder / "experiments").mkdir()
    try:
        run_fails("serve", "--listen", "127.0.0.1:0", "--root", folder / "runs", "--experiments", folder / "experiments", folder=folder,
                  says=["SLUICE_RUN_DIR", "chmod 700"])
    finally:
        os.environ["SLUICE_RUN_DIR"] = before or ""
    with serving(folder) as service:
        put_experiment(service, "demo")
        service.sockets.mkdir(exist_ok=True)
        service.sockets.chmod(0o755)
        answer = service.ask("POST", "/sessions", {"experiment": "demo"}, status=503)
        equal(answer.code, "access", "the code")
        check("chmod 700" in answer.json["error"]["message"], answer.json["error"]["message"])
        equal(wait_for("the list is refused", lambda: (a := service.ask("GET", "/sessions")).status == 503 and a.code), "access", "the code")
        check("chmod 700" in service.program.err(), "the service warns")
        service.sockets.chmod(0o700)
        wait_for("the list is back", lambda: service.ask("GET", "/sessions").status == 200)
        service.ask("POST", "/sessions", {"experiment": "demo"}, status=201)


# ---- damaged and endless runs ----

def damage(service, name, **detector):
    """A run over UDP of which the front end leaves packets out."""
    put_experiment(service, name, detector={"rows": 64, "columns": 256, **detector}, link={"kind": "udp"}, frontend={"drop": 0.15, "fault_seed": 5}, sinks=["null"])
    service.ask("POST", "/sessions", {"experiment": name}, status=201)
    service.ask("POST", f"/sessions/{name}/start", status=202)


def ctl(service, folder, *words):
    done = run("ctl", "--host", f"http://127.0.0.1:{service.port}", *words, folder=folder)
    if "libcurl" in done.err():
        skip("libcurl4-openssl-dev was not found when this was built")
    equal(done.process.returncode, 0, f"exit status of ctl {words}: {done.out()}{done.err()}")
    return done.out()


def cell(text, row, column):
    lines = [line.split() for line in text.splitlines()]
    return int(next(line for line in lines if line[0] == row)[lines[0].index(column)])


@case("what is damaged counts as lost in every list; why it was is one sentence, of runs and of sessions")
def damaged(folder):
    with serving(folder) as service:
        damage(service, "demo", frames=FRAMES)
        service.until("demo", "ended")
        row = wait_for("the run is over", lambda: (r := service.get("/runs")["runs"][0])["state"] == "over" and r)
        bad = row["lost"] + row["damaged"]
        check(row["damaged"] > FRAMES, f"most are damaged: {row}")
        equal(cell(ctl(service, folder, "sessions"), "demo", "LOST"), bad, "LOST of ctl sessions")
        equal(cell(ctl(service, folder, "runs"), "000001", "LOST"), bad, "LOST of ctl runs")
        equal(cell(run("ps", folder=folder).out(), "demo", "LOST"), bad, "LOST of ps")
        said = service.get("/runs/1/explain")
        equal((said["lost"], said["sent"]), (bad, 2 * FRAMES), "what explain says")
        local = run("explain", service.root / "000001", folder=folder).out()
        check(f"{bad} of {2 * FRAMES} module-frames were lost or damaged." in local, local)
        for words in (("run", "1", "explain"), ("demo", "explain")):
            equal(ctl(service, folder, *words), local, "as sluice explain says it")
            equal(json.loads(ctl(service, folder, *words, "--json"))["cause"], said["cause"], "as JSON")
        equal(service.get("/sessions/demo/explain")["lost"], bad, "of the session")
        equal(service.ask("GET", "/sessions/absent/explain").code, "not_found", "of one that is not there")


@case("a session of another root is explained by its name; a run without an end has no number of frames to come")
def elsewhere(folder):
    with serving(folder) as service:
        path = experiment(folder, name="other.yaml", detector={"frames": 60, "rows": 64, "columns": 256}, control={"port": 0}, frontend={"drop": 0.3}, sinks=["null"])
        session = Program("session", path, "--root", folder / "elsewhere", folder=folder)
        wait_for("the session", lambda: service.ask("GET", "/sessions/other").status == 200)
        service.ask("POST", "/sessions/other/start", status=202)
        service.until("other", "ended")
        said = service.get("/sessions/other/explain")
        check(said["lost"] > 0 and said["causes"], f"what explain says: {said}")
        service.ask("DELETE", "/sessions/other", status=202)
        session.wait()
        put_experiment(service, "endless", detector={"frames": 0})
        service.ask("POST", "/sessions", {"experiment": "endless"}, status=201)
        service.ask("POST", "/sessions/endless/start", status=202)
        service.until("endless", "running")
        text = ctl(service, folder, "endless")
        check(re.search(r"run \d+: \d+ frames, 0 lost, 0 damaged", text), text)


# ---- crashes ----

@case("a run that crashed keeps the name of its experiment and its last counts, also when the service starts again")
def kept(folder):
    with serving(folder) as service:
        stream = Stream(service)
        service.begin("demo", stages=["copy"], **TO_A_FILE)
        wait_for("a status that was seen", lambda: (service.root / ".service/seen/000001.json").exists() and service.frames("demo") > 20)
        before = json.loads((service.root / ".service/seen/000001.json").read_text())
        os.kill(pid_of(service, "demo"), signal.SIGKILL)
        stream.until("run", lambda d: d["recovered"])
        stream.close()
        row = service.get("/runs")["runs"][0]
        equal((row["state"], row["experiment"]), ("crashed", str(service.experiments / "demo.yaml")), "the run")
        last = row["last_seen"]
        check(last["frames"] >= before["frames"] and last["when_unix_ns"] >= before["when_unix_ns"] and last["lost"] == 0, f"its counts: {last}")
        equal(last["ledger"]["total"]["outcomes"].get("lost", 0), 0, "its ledger")
        service.kill()
        service.start()
        equal(service.get("/runs/1"), row, "the row of another service")
        # One that ends while nobody looks needs no such record.
        service.ask("DELETE", "/sessions/demo", status=200)
        wait_for("it is forgotten", lambda: not service.get("/sessions")["sessions"])
        service.ask("POST", "/sessions", {"experiment": "demo"}, status=201)
        service.ask("POST", "/sessions/demo/start", status=202)
        wait_for("frames", lambda: service.frames("demo") > 20)
        service.ask("POST", "/sessions/demo/stop", status=202)
        service.until("demo", "ended")
        wait_for("its record goes", lambda: [p.name for p in (service.root / ".service/seen").iterdir()] == ["000001.json"])
        equal(service.get("/runs")["runs"][0]["last_seen"], None, "of a run with a result")


# ---- documents ----

@case("the routes of docs/reference/api.md are those of the OpenAPI document")
def routes(_folder):
    document = json.loads((ROOT / "docs/reference/openapi.json").read_text())["paths"]
    wanted = {(method.upper(), re.sub(r"\{.*?\}", "*", path)) for path, methods in document.items() for method in methods}
    told = set()
    for line in (ROOT / "docs/reference/api.md").read_text().splitlines():
        if re.match(r"\| `[A-Z]+[`, ]", line):
            told |= routes_of(line.split("|")[1])
    equal(sorted(wanted - told), [], "routes that api.md does not have")
    equal(sorted(told - wanted), [], "routes that there are not")


def routes_of(text):
    """Of a cell: `GET`, `PATCH /api/v1/a/NAME/b`, `c`: methods that stand before a path are its methods, words behind it stand for its last segment."""
    methods, path, found = [], None, set()
    for quoted in re.findall(r"`([^`]+)`", text):
        method, _, rest = quoted.partition(" ")
        if method.isupper():
            methods.append(method)
            path = rest or path
        elif quoted.startswith("/"):
            path = quoted
        else:
            path = f"{path.rpartition('/')[0]}/{quoted}"
        if path and not (method.isupper() and not rest):
            found |= {(m, re.sub(r"/(NAME|N|\.\.\.)(?=/|$)", "/*", path)) for m in methods}
    return found


if __name__ == "__main__":
    main()
