#!/usr/bin/python3
"""service_load_test.py - `sluice serve` under clients that mean no good, or are many: garbage, half requests, slow ones, three hundred connections, viewers that
stop reading, a root on a full disk. The run that goes on meanwhile loses nothing, and the service's memory stays as it was."""

import json
import os
import pathlib
import random
import resource
import select
import socket
import threading
import time

from harness import SLOW, case, check, equal, main, sink, skip, text_of, wait_for
from service import API, TO_A_FILE, Stream, put_experiment, serving

REQUEST = f"GET {API} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def resident_kB(pid):
    return int(next(line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")).split()[1])


def connect(service, receive_bytes=None):
    client = socket.socket()
    if receive_bytes:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client.settimeout(60)
    client.connect((service.host, service.port))
    return client


def speak(service, data, wait=True):
    """What is answered to these bytes, until the service hangs up or says nothing for a while."""
    answer = b""
    with connect(service) as client:
        try:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            client.settimeout(0.3)
            while wait and (part := client.recv(65536)):
                answer += part
        except OSError:
            pass
    return answer


def garbage(rng):
    """Something that is no request, or nearly one."""
    line = f"GET {API} HTTP/1.1".encode()
    kinds = (
        lambda: rng.randbytes(rng.randrange(1, 5000)),
        lambda: b"\0" * rng.randrange(1, 5000),
        lambda: b"\r\n" * rng.randrange(1, 500),
        lambda: line + b"\r\n" + b"X: " + b"y" * rng.randrange(1, 100000) + b"\r\n\r\n",
        lambda: line + b"\r\n" + b"".join(b"X%d: y\r\n" % i for i in range(rng.randrange(1, 5000))) + b"\r\n",
        lambda: b"GET /" + b"a" * rng.randrange(1, 100000) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        lambda: b"POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        lambda: b"POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
        lambda: b"POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        lambda: b"POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
        lambda: b"POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        lambda: b"GET\0/ HTTP/1.1\r\n\r\n",
        lambda: b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        lambda: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        lambda: bytes(b ^ 1 << rng.randrange(8) if rng.random() < 0.02 else b for b in REQUEST * 3),
        lambda: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(200),
    )
    return rng.choice(kinds)()


def bad_bodies(service):
    """Bodies of every kind for every call that takes one: an error with a reason, never an internal one."""
    texts = (b"[]", b"null", b"{", b'{"experiment":' + b"[" * 5000, b'"' + b"a" * 100000 + b'"', b"\xff\xff", b"\0", b'{"set":{"a":"\\u0000"}}',
             b'{"experiment":"a\\u0000b"}', b'{"reason":"\\ud800"}', b'{"parameters":{"a":1e999}}', b"{" + b'"a":{' * 3000, b"%YAML 9.9\n---\n",
             b"&a [*a]", b"a: &x [1]\nb: *x\n", b"- " * 5000, b"a: " * 500, b"? " * 3000, b"detector: {kind: pattern}\n" * 3,
             b"detector: {kind: pattern, rows: 99999999, columns: 99999999}\nsinks: [verify]\n")
    for method, path in (("POST", "/sessions"), ("POST", "/sessions/demo/stop"), ("POST", "/sessions/demo/configure"), ("PATCH", "/sessions/demo/metadata"),
                         ("PUT", "/experiments/new"), ("POST", "/experiments/new/check")):
        for text in texts:
            answer = service.ask(method, path, text)
            check(answer.status in (200, 202, 400, 409, 422), f"{method} {path} with {text[:40]!r}: {answer.status} {answer.body[:300]!r}")
            check(answer.status != 200 or path.endswith("check"), f"{method} {path} took {text[:40]!r}")


@case("garbage, half requests and bodies of any kind: each is refused, others are served, and the run that goes on loses nothing", long=True)
def nonsense(folder):
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    with serving(folder) as service:
        service.begin("demo", **TO_A_FILE)
        before = None
        halves = []
        for number in range(60 if SLOW else 120):
            speak(service, garbage(rng), wait=number % 5 == 0)
            if number % 10 == 0:
                halves.append(connect(service))
                halves[-1].sendall(REQUEST[:rng.randrange(len(REQUEST))])
            if number == 30:
                before = resident_kB(service.program.pid)
        equal(service.raw("GET", API).status, 200, f"status after garbage (seed {seed})")
        bad_bodies(service)
        check(resident_kB(service.program.pid) < 2 * before + 50000, "memory grows")
        for client in halves:
            client.close()
        stays_intact(service)


def stays_intact(service):
    service.ask("POST", "/sessions/demo/stop", status=202)
    status = service.until("demo", "ended")["status"]
    equal((status["result"], status["ledger"]["total"]["outcomes"].get("lost", 0)), ("intact", 0), "the run")


@case("clients that send or take a byte now and then are cut after a while, idle ones, too", long=True)
def slow(folder):
    with serving(folder) as service:
        put_experiment(service, "demo")
        head, body, idle, reader = connect(service), connect(service), connect(service), connect(service, 2048)
        body.sendall(b"PUT /api/v1/experiments/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
        reader.sendall(REQUEST.replace(API.encode(), f"{API}/openapi.json".encode()) * 200)
        idle.sendall(REQUEST)
        began = time.monotonic()
        ended = {}
        while len(ended) < 4 and time.monotonic() < began + 200:
            time.sleep(2)
            for name, client in (("head", head), ("body", body), ("idle", idle), ("reader", reader)):
                if name in ended:
                    continue
                try:
                    if name in ("head", "body"):
                        client.sendall(b"X" if name == "head" else b"#")
                    elif name == "reader":
                        client.send(b"")
                    gone = select.select([client], [], [], 0)[0] and name != "reader" and not client.recv(65536)
                except OSError:
                    gone = True
                if gone or (name == "reader" and time.monotonic() > began + 140):
                    ended[name] = time.monotonic() - began
        check(15 < ended.get("head", 0) < 40, f"a slow head: {ended}")
        check(50 < ended.get("body", 0) < 90, f"a slow body: {ended}")
        check(20 < ended.get("idle", 0) < 60, f"an idle connection: {ended}")
        equal(service.raw("GET", API).status, 200, "status")


@case("three hundred connections: 256 are served, more are told to come again, and all is well when they have gone", long=True)
def many(folder):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 2000), hard), hard))
    with serving(folder) as service:
        clients = [connect(service) for _ in range(300)]
        statuses = []
        for client in clients:
            client.sendall(REQUEST)
            statuses.append(client.recv(20).split()[1])
        equal((statuses.count(b"200"), statuses.count(b"503")), (256, 44), "answers")
        for client in clients:
            client.close()
        wait_for("an answer", lambda: service.raw("GET", API).status == 200)


def watch(service, number, stop, counts, streams):
    """A viewer; every twentieth stops reading."""
    stream = streams[number] = Stream(service)
    try:
        while not stop.is_set():
            if number % 20 == 5:
                time.sleep(0.1)
            elif not stream.next():
                break
            else:
                counts[number] = counts.get(number, 0) + 1
    except (OSError, ValueError, AttributeError):
        pass  # its socket was closed, since the case is over


def look(service, number, stop, counts):
    """A viewer of images."""
    after = -1
    while not stop.is_set():
        answer = service.raw("GET", f"{API}/sessions/demo/image?bin=4&wait_ms=1000" + (f"&after={after}" if after >= 0 else ""))
        if answer.status == 200:
            after = json.loads(answer.body[8:8 + int.from_bytes(answer.body[4:8], "little")])["element"]
            counts[number] = counts.get(number, 0) + 1
        elif answer.status != 204:
            time.sleep(0.2)


def under_load(folder, viewers, lookers, seconds, detector):
    """A run with that many viewers: what its hops take before and with them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 2000), hard), hard))
    with serving(folder) as service:
        put_experiment(service, "demo", stages=["copy"], sinks=["verify"], detector=detector)
        before = a_run(service, seconds)
        stop, counts, streams = threading.Event(), {}, {}
        threads = [threading.Thread(target=watch, args=(service, i, stop, counts, streams), daemon=True) for i in range(viewers)]
        threads += [threading.Thread(target=look, args=(service, viewers + i, stop, counts), daemon=True) for i in range(lookers)]
        service.ask("POST", "/sessions", {"experiment": "demo"}, status=201)
        for thread in threads:
            thread.start()
        wait_for("viewers", lambda: len(counts) >= viewers - viewers // 20)
        first = resident_kB(service.program.pid)
        status = a_run(service, seconds, opened=True)
        last = resident_kB(service.program.pid)
        stop.set()
        for stream in streams.values():
            stream.socket.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(10)
        slowest = min(counts.get(i, 0) for i in range(viewers) if i % 20 != 5)
        check(slowest >= seconds, f"a viewer that reads got {slowest} events in {seconds} s")
        check(not lookers or max(counts.get(viewers + i, 0) for i in range(lookers)) > 0, "no image came")
        check(last < 1.5 * first + 50000, f"memory: {first} kB, then {last} kB")
        return before, status


def a_run(service, seconds, opened=False):
    if not opened:
        service.ask("POST", "/sessions", {"experiment": "demo"}, status=201)
    service.ask("POST", "/sessions/demo/start", status=202)
    service.until("demo", "running")
    time.sleep(seconds)
    service.ask("POST", "/sessions/demo/stop", status=202)
    status = service.until("demo", "ended")["status"]
    equal((status["result"], status["ledger"]["total"]["outcomes"].get("lost", 0)), ("intact", 0), "the run")
    service.ask("DELETE", "/sessions/demo", status=202)
    wait_for("its end", lambda: not service.get("/sessions")["sessions"])
    return status


@case("forty viewers, two of them stalled, and image viewers: a run loses nothing, and memory stays", long=True)
def viewers_few(folder):
    under_load(folder, 40, 2, 2, {"frames": 1000000, "frame_rate_Hz": 100})


@case("two hundred viewers, ten of them stalled, and ten image viewers at half the free rate: nothing lost, hops not slower than twice", long=True)
def viewers_many(folder):
    detector = {"kind": "pattern", "modules": 2, "rows": 512, "columns": 512, "frames": 1000000}
    with serving(folder) as service:
        put_experiment(service, "demo", stages=["copy"], sinks=["verify"], detector={**detector, "frame_rate_Hz": 0})
        free = a_run(service, 5)
    rate = free["frames"]["settled"] / ((free["ended_unix_ns"] - free["started_unix_ns"]) * 1e-9) / 2
    print(f"# note: half of the free rate is {rate:.0f} frames/s", flush=True)
    before, status = under_load(folder, 200, 10, 20, {**detector, "frame_rate_Hz": int(rate)})
    for hop in ("assemble", "process", "sink"):
        alone, together = before["latency_ns"][hop]["p99"], status["latency_ns"][hop]["p99"]
        print(f"# note: {hop}: p99 {alone / 1e3:.0f} us alone, {together / 1e3:.0f} us with 200 viewers", flush=True)
    check(all(status["latency_ns"][hop]["p99"] < 2 * max(before["latency_ns"][hop]["p99"], 200000) for hop in ("assemble", "process", "sink")),
          "hops are slower with viewers")


@case("a root on a full disk: the service answers, says so and goes on; what cannot be written is refused with its reason", long=True)
def full(folder):
    most = 4000  # bytes of any file of it
    with serving(folder, limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))) as service:
        put_experiment(service, "demo")
        text = (service.experiments / "demo.yaml").read_text()
        for number in range(40):  # more commands than the log has room for
            service.ask("POST", f"/sessions/none-{number}/stop", status=404)
        wait_for("a warning", lambda: "the audit log" in service.program.err())
        answer = service.ask("PUT", "/experiments/new", text + "#" * most)
        equal(answer.status, 422, "a text that cannot be stored to be checked")
        check("cannot write" in answer.json["error"]["message"], f"the reason: {answer.json}")
        check(not (service.experiments / "new.yaml").exists() and not list(service.experiments.glob(".*")), "no part of a file is left")
        service.ask("PUT", "/experiments/new", text, status=201)
        equal([e["valid"] for e in service.get("/experiments")["experiments"]], [True, True], "what is there is read")
        service.ask("POST", "/sessions", {"experiment": "demo"}, status=201)
        service.ask("POST", "/sessions/demo/start", status=202)
        status = service.until("demo", "fault")["status"]
        equal(status["error"]["code"], "output", f"a run that has no room for its result: {status['error']}")
        equal(service.get("/runs")["runs"], [], "it leaves nothing")
        equal(service.raw("GET", API).status, 200, "it is still there")


if __name__ == "__main__":
    main()
