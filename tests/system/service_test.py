#!/usr/bin/python3
"""service_test.py - `sluice serve` as clients meet it: every operation of the OpenAPI document is done, and every answer is as the document says;
roles, tokens, hosts and origins; experiments that are checked, replaced and refused; sessions that are started, crash and are forgotten; the
service that is killed while runs go on."""

import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import tempfile

from harness import (ROOT, case, check, equal, main, run, run_fails, skip, text_of, wait_for, without_privilege)
from service import (API, SEEN, SLOWLY, TO_A_FILE, Stream, document, kill_session, put_experiment, serving)

TOKENS = {"view": "v" * 20, "operate": "o" * 20, "configure": "c" * 20}
PARAMETERS = {"frames": {"path": "detector.frames", "label": "Frames", "min": 10, "max": 100000},
              "mode": {"path": "threads.polling"}, "title": {"path": "metadata.title"}, "pin": {"path": "threads.pin"},
              "rate": {"path": "detector.frame_rate_Hz", "max": 1000}}
TEXT = {"detector": {**SLOWLY, "frames": 50}, "sinks": ["verify"], "link": {"kind": "shm"}, "control": {"port": 0}, "emulate": "local"}


def yaml(**changes):
    """An experiment as a body: JSON is YAML."""
    return json.dumps({**TEXT, **changes}, indent=1)


# ---- the API ----

@case("every operation of the document is answered as it says, through the life of a session")
def operations(folder):
    with serving(folder) as service:
        put_experiment(service, "demo", parameters=PARAMETERS, **TO_A_FILE, detector={"frames": 60})
        (service.experiments / "wrong.yaml").write_text("detector: {kind: patern}\nsinks: [verify]\n")
        (service.experiments / "text.txt").write_text("no experiment")
        capabilities = service.get("")
        equal(capabilities["role"], "configure", "role")
        check("verify" in [sink["name"] for sink in capabilities["addons"]["sinks"]], "sinks")
        for addon in sum(capabilities["addons"].values(), []):
            import jsonschema  # pylint: disable=import-outside-toplevel
            jsonschema.Draft202012Validator.check_schema(addon["options"])
        equal(service.ask("HEAD", "").status, 200, "HEAD")
        listed = service.get("/experiments")["experiments"]
        equal([(e["name"], e["valid"]) for e in listed], [("demo", True), ("wrong", False)], "experiments")
        check("pattern" in listed[1]["error"]["hint"] and listed[1]["error"]["line"] == 1, f"its mistake: {listed[1]['error']}")
        parameters(service, listed[0]["parameters"])
        experiments(service)
        sessions(service)
        runs(service)
        telegrams(service)
        service.ask("GET", "/openapi.json", status=200)
        check(b"\nsluice_build_info{" in service.ask("GET", "/metrics", status=200).body, "metrics")
        service.ask("GET", "/", status=200)
        service.ask("GET", "/metrics", status=200)
        stream = Stream(service)
        equal(stream.next()[0], "hello", "first event")
        stream.close()
        SEEN.setdefault(("GET", f"{API}/events"), set()).add(200)
        all_seen(service)


def parameters(service, declared):
    by_name = {p["name"]: p for p in declared}
    equal(sorted(by_name), sorted(PARAMETERS), "parameters")
    equal((by_name["frames"]["type"], by_name["frames"]["min"], by_name["frames"]["value"]), ("integer", 10, 60), "frames")
    equal(by_name["mode"]["values"], ["adaptive", "latency", "cores"], "values of a choice")
    for wrong in ({"frames": 5}, {"frames": 10.5}, {"frames": "many"}, {"frames": True}, {"mode": "fast"}, {"mode": 1}, {"pin": "true"},
                  {"title": 5}, {"title": "two\nlines"}, {"title": "x" * 300}, {"rate": 1e300}, {"other": 1}, {"rate": None}, {"rate": []}):
        answer = service.ask("POST", "/sessions", {"experiment": "demo", "parameters": wrong}, status=422)
        equal(answer.json["errors"][0]["where"], f"parameters.{next(iter(wrong))}", f"where of {wrong}")
    for wrong in ({}, {"experiment": "../demo"}, {"experiment": 5}, {"experiment": "demo", "colour": 1}, {"experiment": "demo", "set": "x"},
                  {"experiment": "demo", "set": ["x"]}, {"experiment": "demo", "set": [5]}, {"experiment": "demo", "parameters": []},
                  {"experiment": "demo", "name": ".x"}, {"experiment": "demo", "name": "a/b"}, {"experiment": "demo", "transfer": "x"},
                  {"experiment": "demo", "outcomes": 1}, [], "5", b"{", b'{"experiment":"demo","experiment":"demo"}'):
        equal(service.ask("POST", "/sessions", wrong).status, 400, f"status of {wrong}")
    equal(service.ask("POST", "/sessions", {"experiment": "absent"}).code, "not_found", "an experiment that is not there")
    service.ask("POST", "/sessions", {"experiment": "wrong"}, status=422)


def experiments(service):
    whole = service.ask("GET", "/experiments/demo", status=200)
    equal(whole.headers["etag"], f'"{whole.json["sha256"]}"', "ETag")
    equal(whole.json["text"], (service.experiments / "demo.yaml").read_text(), "text")
    check(service.get("/experiments/wrong")["errors"], "errors of a wrong one")
    service.ask("GET", "/experiments/absent", status=404)
    service.ask("POST", "/experiments/demo/check", status=200)
    found = service.ask("POST", "/experiments/new/check", "detector: {kind: pattern, framse: 5}\nlink:\n  kind: shn\nsinks: [verify]\n", status=200).json
    equal((found["valid"], [e["line"] for e in found["errors"]]), (False, [1, 3]), "lines of mistakes")
    check(all(word in str(mistake) for word, mistake in zip(("'frames'", "udp"), found["errors"])), f"what is allowed: {found['errors']}")
    equal({e["where"].split(":")[0] for e in found["errors"]}, {"new.yaml"}, "the file's name")
    service.ask("POST", "/experiments/absent/check", status=404)
    made = service.ask("PUT", "/experiments/new", yaml(), status=201)
    equal((service.experiments / "new.yaml").read_text(), yaml(), "the file")
    again = service.ask("PUT", "/experiments/new", yaml(emulate="none"), headers={"If-Match": made.headers["etag"]}, status=200)
    equal(service.ask("PUT", "/experiments/new", yaml(), headers={"If-Match": made.headers["etag"]}).status, 412, "a stale tag")
    equal(service.ask("PUT", "/experiments/new", yaml(), headers={"If-None-Match": "*"}).status, 412, "nothing must be there")
    equal(service.ask("PUT", "/experiments/other", yaml(), headers={"If-Match": "*"}).status, 412, "something must be there")
    service.ask("PUT", "/experiments/new", yaml(sinks=["vrify"]), status=422)
    equal(json.loads((service.experiments / "new.yaml").read_text())["emulate"], "none", "what a refused text leaves")
    equal(service.get("/experiments/new")["sha256"], again.json["sha256"], "sha256")
    service.ask("PUT", "/experiments/new", b"", status=400)
    service.ask("PUT", "/experiments/new", b"\xff\xfe", status=422)
    equal(sorted(p.name for p in service.experiments.iterdir()), ["demo.yaml", "new.yaml", "text.txt", "wrong.yaml"], "files")


def sessions(service):
    equal(service.ask("POST", "/sessions", {"experiment": "demo", "outcomes": True, "set": ["detector.frame_rate_Hz=100"],
                                            "parameters": {"frames": 100000, "title": "Over HTTP", "mode": "cores"}}, status=201).json,
          {"name": "demo"}, "name")
    equal(service.ask("POST", "/sessions", {"experiment": "demo", "name": "demo"}).status, 409, "a name that is taken")
    equal(service.ask("POST", "/sessions", {"experiment": "demo"}, status=201).json["name"], "demo-2", "the next name")
    service.until("demo-2", "configured")
    service.ask("DELETE", "/sessions/demo-2", status=202)
    wait_for("one session", lambda: [s["name"] for s in service.get("/sessions")["sessions"]] == ["demo"])
    service.ask("POST", "/sessions/demo/configure", {"parameters": {"frames": 100000, "title": "Again"}}, status=200)
    equal(service.ask("POST", "/sessions/demo/configure", {"parameters": {"frames": 1}}).status, 422, "a wrong parameter")
    service.ask("PATCH", "/sessions/demo/metadata", {"set": {"sample": "thaumatin", "x": 5, "y": None}, "keep": True}, status=200)
    equal(service.get("/sessions/demo/metadata")["metadata"]["sample"], "thaumatin", "metadata")
    equal(service.ask("PATCH", "/sessions/demo/metadata", {"set": []}).status, 400, "wrong metadata")
    service.ask("POST", "/sessions/demo/arm", status=202)
    service.until("demo", "armed")
    service.ask("POST", "/sessions/demo/start", status=202)
    service.until("demo", "running")
    equal(service.ask("POST", "/sessions/demo/arm").code, "state", "what is not possible now")
    equal(service.ask("POST", "/sessions/demo/configure", {}).status, 409, "configure during a run")
    wait_for("frames", lambda: service.frames("demo") > 10)
    check("share" in [a["name"] for a in service.session("demo")["status"]["addons"]], "a share for viewers")
    for path in ("image", "image.png", "results"):
        answer = service.ask("GET", f"/sessions/demo/{path}?wait_ms=5000")
        check(answer.status in (200, 204, 404), f"{path}: {answer.status} {answer.body[:300]}")
    service.ask("POST", "/sessions/demo/pause", status=202)
    service.until("demo", "paused")
    service.ask("POST", "/sessions/demo/resume", status=202)
    service.until("demo", "running")
    equal(service.get("/sessions/demo/explain")["lost"], 0, "what explain says of the run under way")
    ledger = service.get("/sessions/demo/ledger")
    equal(ledger["words"], [], "causes of a run that loses nothing")
    equal(service.ask("POST", "/sessions/demo/stop", {"reason": "much too long a reason"}).status, 400, "a long reason")
    service.ask("POST", "/sessions/demo/stop", {"reason": "enough"}, status=202)
    status = service.until("demo", "ended")["status"]
    equal((status["stopped_by"], status["result"], status["metadata"]["title"]), ("enough", "intact", "Again"), "the end")
    service.ask("POST", "/sessions/demo/start", status=202)
    service.until("demo", "running")
    service.ask("POST", "/sessions/demo/abort", status=202)
    service.until("demo", "ended")
    service.ask("DELETE", "/sessions/demo", status=202)
    wait_for("the end", lambda: not service.get("/sessions")["sessions"])
    for path in ("", "/ledger", "/metadata"):
        service.ask("GET", f"/sessions/demo{path}", status=404)
    equal(service.ask("POST", "/sessions/demo/start").code, "not_found", "a session that has ended")


def runs(service):
    rows = service.get("/runs")
    equal([(row["run"], row["state"]) for row in rows["runs"]], [(2, "over"), (1, "over")], "runs")
    equal((rows["more"], rows["runs"][1]["result"], rows["runs"][1]["lost"], rows["runs"][1]["damaged"]), (False, "intact", 0, 0), "the first one")
    page = service.get("/runs?limit=1")
    equal(([row["run"] for row in page["runs"]], page["more"]), ([2], True), "a page")
    equal([row["run"] for row in service.get("/runs?before=2")["runs"]], [1], "the next page")
    result = service.get("/runs/1")
    equal((result["stopped_by"], result["frames"]["settled"]), ("enough", rows["runs"][1]["frames"]), "result")
    check("run 1 ended" in service.ask("GET", "/runs/1/log", status=200).body.decode(), "log")
    check("# --set" in service.ask("GET", "/runs/000001/experiment", status=200).body.decode(), "experiment, with origins")
    equal(service.ask("GET", "/runs/1/outcomes", status=200).body.decode().split()[:4], ["0", "0", "stored", "none"], "outcomes")
    said = service.get("/runs/1/explain")
    equal((said["lost"], said["cause"], said["sent"]), (0, None, 2 * result["frames"]["settled"]), "what explain says")
    picture = service.ask("GET", "/runs/1/picture.png", status=200)
    equal(picture.body[:4], b"\x89PNG", "picture")
    equal(service.ask("GET", "/runs/1/picture.png").body, picture.body, "the same picture")
    for path in ("3", "3/log", "3/explain", "3/picture.png", "0", "-1", "x", "1/nothing", "1/log/x", "99999999999999999999"):
        equal(service.ask("GET", f"/runs/{path}").status, 404, f"status of {path}")
    for query in ("limit=0", "limit=1001", "limit=x", "limit=", "limit=1&limit=2", "before=-1", "before=1e3", "limit=%", "limit=%zz", "l=1",
                  "limit=99999999999999999999", "token=" + "c" * 20):
        equal(service.ask("GET", f"/runs?{query}").status, 400, f"status of {query}")


def telegrams(service):
    """What they are is for telegram_test.py; here they are answered as the document says."""
    space = 'xmlns="urn:sluice:telegram:1"'
    answer = service.ask("POST", "/telegram", f'<telegram {space} version="1"><capabilities/><status to="x"/></telegram>'.encode(), status=200)
    check(b'code="absent"' in answer.body and b'result="failed"' in answer.body, answer.body.decode())
    check(b"DOCTYPE" in service.ask("POST", "/telegram", b"<!DOCTYPE a><a/>", status=400).body, "a document with a DOCTYPE")
    service.ask("POST", "/telegram", status=400)


def all_seen(service):
    """What is documented can be had."""
    missing = [f"{method.upper()} {path}" for path, methods in document(service)["paths"].items() for method, operation in methods.items()
               if not any(str(status) in operation["responses"] and status < 400 for status in SEEN.get((method.upper(), path), ()))
               and operation["summary"] != "A file of the page."]
    check(not missing, f"no success seen of: {missing}")


@case("docs/reference/openapi.json is the document of this program, and is one of OpenAPI 3.1")
def same_document(folder):
    done = run("serve", "--openapi", folder=folder)
    if "libmicrohttpd" in done.err():
        skip("libmicrohttpd-dev was not found when this was built")
    whole = json.loads(done.out())
    check(json.loads((ROOT / "docs/reference/openapi.json").read_text()) == whole,
          "it has changed: build/sluice serve --openapi > docs/reference/openapi.json")
    ids = [operation["operationId"] for methods in whole["paths"].values() for operation in methods.values()]
    equal(len(ids), len(set(ids)), "names of operations are different")
    for path, methods in whole["paths"].items():
        for method, operation in methods.items():
            placeholders = {p[1:-1] for p in path.split("/") if p.startswith("{")}
            equal({p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}, placeholders, f"parameters of {method} {path}")
            check("default" in operation["responses"], f"{path}: other errors")
    schemas = whole["components"]["schemas"]
    for reference in references(whole):
        part = schemas
        for key in reference.removeprefix("#/components/schemas/").split("/"):
            check(key in part, f"{reference} leads nowhere")
            part = part[key]


def references(node):
    if isinstance(node, dict):
        yield from [node["$ref"]] if "$ref" in node else []
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


# ---- who may what ----

@case("roles: view looks, operate runs with declared parameters, configure does all; without a token nothing; commands are in the audit log")
def roles(folder):
    with serving(folder, tokens=TOKENS) as service:
        put_experiment(service, "demo", parameters=PARAMETERS)
        equal(service.ask("GET", "", role=None).code, "unauthorized", "no token")
        equal(service.ask("GET", "", headers={"Authorization": "Bearer " + "x" * 20}, role=None).status, 401, "a wrong token")
        equal(service.ask("GET", "", headers={"Authorization": "Basic dTpw"}, role=None).status, 401, "another scheme")
        equal(service.ask("GET", f"?token={TOKENS['view']}", role=None).status, 401, "a token in the query")
        equal(service.raw("GET", "/", role=None).status, 200, "the page itself")
        for role in TOKENS:
            equal(service.get("", role=role)["role"], role, "role")
        equal(service.ask("POST", "/sessions", {"experiment": "demo"}, role="view").code, "forbidden", "view starts")
        equal(service.ask("PUT", "/experiments/x", yaml(), role="operate").code, "forbidden", "operate puts")
        equal(service.ask("POST", "/sessions", {"experiment": "demo", "set": ["detector.frames=20"]}, role="operate").status, 403, "operate sets")
        service.ask("POST", "/sessions", {"experiment": "demo", "parameters": {"frames": 100}}, role="operate", status=201)
        equal(service.ask("POST", "/sessions/demo/configure", {"set": ["detector.frames=20"]}, role="operate").status, 403, "operate sets later")
        service.ask("POST", "/sessions/demo/configure", {"set": ["detector.frames=20"]}, role="configure", status=200)
        service.ask("DELETE", "/sessions/demo", role="operate", status=202)
        log = service.root / ".service/audit.log"
        wait_for("the audit log", lambda: len(text_of(log).splitlines()) >= 11)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        started = next(line for line in lines if line["status"] == 201)
        equal((started["name"], started["role"], started["from"], started["method"], started["path"]),
              ("operate-client", "operate", "127.0.0.1", "POST", f"{API}/sessions"), "who started it")
        equal(sum(line["status"] in (401, 403) for line in lines), 8, "refusals")
        check(not any(token in json.dumps(lines) for token in TOKENS.values()), "no token is in the log")
        equal((service.root / ".service/audit.log").stat().st_mode & 0o777, 0o600, "mode of the log")


@case("other hosts and pages of other sites are refused; what is answered cannot be framed, sniffed or kept")
def origins(folder):
    with serving(folder, "--host", "beamline.example.org,other") as service:
        here = f"127.0.0.1:{service.port}"
        for host, status in ((here, 200), ("localhost", 200), ("LOCALHOST:1", 200), ("beamline.example.org:443", 200), ("other", 200),
                             ("evil.example.org", 403), ("127.0.0.2", 403), ("localhost.", 403), ("localhost:x", 400), ("", 400),
                             ("[::1", 400), ("a b", 400), ("x" * 300, 400)):
            equal(service.raw("GET", API, headers={"Host": host}).status, status, f"status for host '{host}'")
        for origin, status in ((f"http://{here}", 200), (f"https://{here}", 200), ("null", 403), ("http://evil.example.org", 403),
                               (f"http://{here}.evil.org", 403), (f"http://{here}@evil.org", 403), ("http://127.0.0.1", 403), ("", 403)):
            equal(service.raw("GET", API, headers={"Origin": origin}).status, status, f"status for origin '{origin}'")
        answer = service.raw("GET", API)
        equal((answer.headers["x-content-type-options"], answer.headers["cache-control"]), ("nosniff", "no-store"), "headers")
        check("frame-ancestors 'none'" in answer.headers["content-security-policy"], "policy")
        page = service.raw("GET", "/")
        check("script-src 'self'" in page.headers["content-security-policy"] and "unsafe" not in page.headers["content-security-policy"], "policy")
        equal(service.raw("GET", "/", headers={"If-None-Match": page.headers["etag"]}).status, 304, "not changed")
        packed = service.raw("GET", "/", headers={"Accept-Encoding": "gzip"})
        equal(packed.headers.get("content-encoding"), "gzip", "packed")
        for path in ("/assets/../service.c", "/assets/%2e%2e/x", "/assets/", "/assets/x", "/index.html", "//", "/api/v1/", "/api", "/api/v1//runs",
                     "/api/v1/sessions/a%2fb", "/api/v1/sessions/..", "/api/v1/sessions/a%00b", "/api/v1/sessions/%ff", "/api/v2"):
            equal(service.raw("GET", path).status, 404, f"status of {path}")
        for method, path in (("DELETE", API), ("POST", "/"), ("OPTIONS", f"{API}/sessions"), ("PUT", f"{API}/runs/1"), ("TRACE", "/")):
            equal(service.raw(method, path).status, 405, f"status of {method} {path}")


@case("it is not reachable from other hosts without tokens and TLS, and takes no file that others can read")
def exposure(folder):
    (folder / "experiments").mkdir()
    tokens = folder / "tokens"
    tokens.write_text("view someone " + "v" * 20 + "\n")
    tokens.chmod(0o600)
    start = ("serve", "--root", folder / "runs", "--experiments", folder / "experiments")
    done = run(*start, "--listen", "0.0.0.0:0", folder=folder)
    if "libmicrohttpd" in done.err():
        skip("libmicrohttpd-dev was not found when this was built")
    check("--tokens" in done.err() and done.process.returncode == 1, "tokens are asked for")
    run_fails(*start, "--listen", "[::]:0", "--tokens", tokens, folder=folder, says=["--tls_cert"])
    run_fails(*start, "--listen", "localhost:0", folder=folder, says=["numeric"])
    run_fails(*start, "--listen", "127.0.0.1", folder=folder, says=["ADDRESS:PORT"])
    run_fails(*start, "--listen", "127.0.0.1:70000", folder=folder, says=["ADDRESS:PORT"])
    run_fails(*start, "--listen", "127.0.0.1:0", "--tls_cert", tokens, folder=folder, says=["go together"])
    run_fails(*start, "--listen", "127.0.0.1:0", "--tls_cert", tokens, "--tls_key", tokens, folder=folder, says=["--tls_cert"])
    tokens.chmod(0o604)
    run_fails(*start, "--listen", "127.0.0.1:0", "--tokens", tokens, folder=folder, says=["chmod 600"])
    tokens.chmod(0o600)
    for text, says in (("view someone short\n", "line 1: a token has 16"), ("look x " + "v" * 20, "its role"), ("# none\n", "has no token"),
                       ("view a " + "v" * 20 + "\nview\n", "line 2: takes three words"), ("view a/b " + "v" * 20, "a name has")):
        tokens.write_text(text)
        done = run_fails(*start, "--listen", "127.0.0.1:0", "--tokens", tokens, folder=folder, says=[says])
        check("vvvv" not in done.err(), "no token is printed")


@case("TLS: a client that trusts the certificate gets answers, others and plain HTTP get none")
def tls(folder):
    if not shutil.which("openssl"):
        skip("openssl is not installed")
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", folder / "key.pem",
                           "-out", folder / "cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                          capture_output=True, text=True, check=False)
    equal(done.returncode, 0, done.stderr)
    (folder / "key.pem").chmod(0o600)
    with serving(folder, "--tls_cert", folder / "cert.pem", "--tls_key", folder / "key.pem", tokens=TOKENS) as service:
        import http.client  # pylint: disable=import-outside-toplevel
        trusting = ssl.create_default_context(cafile=folder / "cert.pem")
        connection = http.client.HTTPSConnection("localhost", service.port, context=trusting, timeout=60)
        connection.request("GET", API, headers=service.headers("view"))
        equal(connection.getresponse().status, 200, "over TLS")
        check(connection.sock.version() in ("TLSv1.2", "TLSv1.3"), "version of TLS")
        connection.close()
        old = ssl.create_default_context(cafile=folder / "cert.pem")
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        for context in (ssl.create_default_context(), old):
            try:
                http.client.HTTPSConnection("localhost", service.port, context=context, timeout=60).connect()
                check(False, "a client was let in that should not")
            except ssl.SSLError:
                pass
        try:
            service.raw("GET", API)
            check(False, "plain HTTP was answered")
        except (http.client.HTTPException, ConnectionError):
            pass
    run_fails("serve", "--listen", "127.0.0.1:0", "--root", folder / "runs", "--experiments", folder / "experiments", "--tls_cert", folder / "cert.pem",
              "--tls_key", folder / "tokens", folder=folder, says=["--tls_key"])


# ---- experiments from other hosts ----

@case("experiments over HTTP: paths stay under the data roots, code where the service cannot write, and nothing is loaded before")
def distrust(folder):
    allowed, secret = folder / "allowed", folder / "secret"
    allowed.mkdir()
    secret.mkdir()
    (allowed / "way_out").symlink_to(secret)
    plugin = folder / "loaded.so"  # would be refused as no shared object, if it was loaded
    plugin.write_text("not a shared object")
    with serving(folder, "--data_roots", allowed) as service:
        def refused(says, **changes):
            answer = service.ask("PUT", "/experiments/x", yaml(**changes))
            equal(answer.status, 422, f"status of {changes}: {answer.body[:300]}")
            check(any(says in error["message"] for error in answer.json["errors"]), f"'{says}' is not said of {changes}: {answer.json['errors']}")

        outside = "outside of the folders"
        for path in ("/etc/run.nxs", str(secret / "run.nxs"), str(allowed / "way_out/run.nxs"), "/", str(allowed) + "more/run.nxs"):
            refused(outside, sinks=[{"nexus": {"path": path, "dataset": "raw"}}], stages=["copy"])
        refused("'..' is not taken", sinks=[{"nexus": {"path": "../run.nxs", "dataset": "raw"}}], stages=["copy"])
        refused("'..' is not taken", sinks=[{"nexus": {"path": str(allowed / "../secret/run.nxs"), "dataset": "raw"}}], stages=["copy"])
        refused(outside, sinks=[{"raw": {"path": "x.raw", "folders": f"here,{secret}"}}])
        refused(outside, control={"port": 0, "token_file": "/etc/shadow"})
        refused(outside, frontend={"fault_log": "/etc/faults"})
        refused(outside, geometry={"file": "/etc/passwd"})
        refused(outside, geometry={"mask": "/etc/passwd:/entry/mask"})
        refused("is code", plugins=[str(plugin)])
        refused("is code", stages=[{"python": {"script": str(folder / "judge.py")}}])
        refused("is code", stages=[{"python": {"script": "judge.py", "python": "rm"}}])
        service.ask("PUT", "/experiments/x", yaml(sinks=[{"raw": {"path": str(allowed / "{run}/x.raw")}}, "verify"]), status=201)
        service.ask("PUT", "/experiments/x", yaml(sinks=[{"raw": {"path": "sub/x.raw"}}, "verify"],
                                                  metadata={"title": "/etc/passwd", "keys": {"a": "../b"}}), status=200)
        # What lies in the folder is trusted, what clients add to it is not.
        put_experiment(service, "installed", sinks=[{"raw": {"path": str(secret / "installed.raw")}}], parameters={"path": {"path": "sinks.raw.path"}})
        answer = service.ask("POST", "/sessions", {"experiment": "installed", "parameters": {"path": "/etc/x.raw"}}, status=422)
        check(outside in answer.json["error"]["message"], "a parameter")
        answer = service.ask("POST", "/sessions", {"experiment": "installed", "set": [f"sinks[+].raw.path={secret}/x.raw"]}, status=422)
        answer = service.ask("POST", "/sessions", {"experiment": "installed", "set": [f"plugins[+]={plugin}"]}, status=422)
        check("is code" in answer.json["error"]["message"], f"a plug-in: {answer.json}")
        service.ask("POST", "/sessions", {"experiment": "installed"}, status=201)
        answer = service.ask("POST", "/sessions/installed/configure", {"set": [f"plugins[+]={plugin}"]}, status=422)
        equal(list(secret.iterdir()), [], "files outside")


@case("a plug-in that the service cannot write is taken over HTTP")
def trusted_code(folder):
    wrapper = without_privilege()
    if os.geteuid():
        skip("needs root, to have a folder that the service cannot write")
    place = pathlib.Path("/usr/local/lib")
    script = place / f"sluice-test-{os.getpid()}.py"
    # The folder of a case may lie in one that only root can enter.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-service-", dir="/var/tmp"))
    try:
        script.write_text("def judge(image):\n    return True\n")
        folder.chmod(0o777)
        (folder / "experiments").mkdir()
        (folder / "experiments").chmod(0o777)
        setpriv = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
        if not wrapper or subprocess.run([*setpriv, "true"], check=False).returncode:
            skip("setpriv cannot change the user")
        with serving(folder, wrapper=setpriv) as service:
            sections = {"stages": [{"python": {"script": str(script), "inputs": "raw"}}]}
            service.ask("PUT", "/experiments/x", yaml(**sections), status=201)
            sections["stages"][0]["python"]["script"] = str(folder / "experiments/x.py")
            equal(service.ask("PUT", "/experiments/y", yaml(**sections)).status, 422, "one that it can write")
    finally:
        script.unlink(missing_ok=True)
        shutil.rmtree(folder)


# ---- the command ----

@case("sluice ctl --host does every call, with a token, too; what is refused is said with its reason")
def command(folder):
    token_file = folder / "token"
    token_file.write_text(TOKENS["operate"] + "\n")
    token_file.chmod(0o600)
    with serving(folder, tokens=TOKENS) as service:
        def ctl(*words, status=0, says=""):
            done = run("ctl", "--host", f"http://127.0.0.1:{service.port}", "--token_file", token_file, *words, folder=folder)
            if "libcurl" in done.err():
                skip("libcurl4-openssl-dev was not found when this was built")
            equal(done.process.returncode, status, f"exit status of ctl {words}: {done.out()}{done.err()}")
            check(says in done.out() + done.err(), f"ctl {words} does not say '{says}': {done.out()}{done.err()}")
            return done.out()

        path = put_experiment(service, "demo", parameters=PARAMETERS, **TO_A_FILE)
        ctl("capabilities", says="operate-client (operate)")
        ctl("experiments", says="frames=100000 frames")
        equal(ctl("get", "demo"), path.read_text(), "text")
        ctl("check", "demo", says="no mistake")
        (folder / "wrong.yaml").write_text("detector: {kind: pattern}\nsinks: [nul]\n")
        ctl("check", "demo", folder / "wrong.yaml", says="demo.yaml:2: sinks[0]: no sink is called 'nul'")
        ctl("put", "demo", folder / "wrong.yaml", status=1, says="needs the role configure")
        ctl("open", "demo", "frames=5", status=1, says="parameters.frames: takes a whole number from 10")
        ctl("open", "demo", "frames", status=1, says="takes NAME=VALUE")
        ctl("open", "absent", status=1, says="there is no experiment 'absent'")
        equal(ctl("open", "demo", "frames=50", 'title="5"', "--name", "mine"), "mine\n", "name")
        ctl("mine", says="mine: configured")
        ctl("mine", "metadata", "sample=thaumatin", says="sample=thaumatin")
        ctl("mine", "start", "--wait", says="intact")
        ctl("mine", "configure", "frames=100000", says="configured")
        ctl("mine", "start")
        ctl("mine", "wait", "running", says="mine: running")
        ctl("mine", "arm", status=1, says="not possible while the session is running")
        ctl("mine", "start", "now", "--set", "x=y", status=1)
        check('"outcomes"' in ctl("mine", "ledger", "--json"), "ledger as JSON")
        ctl("POST", "/sessions/mine/pause", says="running")
        ctl("mine", "wait", "paused")
        ctl("mine", "resume", "--wait", says="mine: running")
        ctl("mine", "stop", "--reason", "enough", "--wait", says="intact")
        ctl("sessions", says="mine")
        ctl("runs", says="intact")
        ctl("run", "2", "log", says="run 2 ended")
        check(json.loads(ctl("/runs/2"))["stopped_by"] == "enough", "any path")
        ctl("mine", "close")
        wait_for("its end", lambda: not service.get("/sessions")["sessions"])
        ctl("mine", status=1, says="no session is called 'mine'")
        ctl("mine", "dance", status=1, says="no call is named 'dance'")
        service.program.send(signal.SIGTERM)
        service.program.ends(0)
        ctl("sessions", status=1, says="connect")
    run_fails("ctl", "--host", "localhost:1", "sessions", folder=folder, says=["is no URL"])


# ---- sessions that crash, a service that is killed ----

@case("a session that crashes is named, its run and files are recovered and stay in the history; then it is forgotten")
def crashed(folder):
    with serving(folder) as service:
        stream = Stream(service)
        service.begin("demo", stages=["copy"], **TO_A_FILE)
        equal(stream.until("sessions", lambda d: d["sessions"] and d["sessions"][0]["state"] == "running")["sessions"][0]["name"], "demo", "event")
        wait_for("a flushed file", lambda: (service.session("demo")["status"] or {}).get("watermark", 0) > 20)
        kill_session(service, "demo")
        session = stream.until("sessions", lambda d: d["sessions"] and d["sessions"][0]["crashed"])["sessions"][0]
        equal((session["name"], session["alive"], session["run"], session["status"]), ("demo", False, 1, None), "the session")
        row = stream.until("run", lambda d: d["recovered"])
        equal((row["run"], row["state"], row["result"]), (1, "crashed", None), "the run")
        equal([(f["file"], f["recovered"]) for f in row["recovered"]["files"]], [("run.nxs", True)], "its files")
        check("recovered" in row["recovered"]["files"][0]["said"], row["recovered"]["files"][0]["said"])
        equal(service.get("/runs")["runs"], [row], "history")
        equal(service.get("/runs/1"), row, "its row in the place of a result")
        equal(service.ask("POST", "/sessions/demo/start").code, "crashed", "a call to it")
        equal(service.ask("GET", "/sessions/demo/metadata").status, 409, "its metadata")
        service.ask("DELETE", "/sessions/demo", status=200)
        wait_for("it is forgotten", lambda: not service.get("/sessions")["sessions"])
        import h5py  # pylint: disable=import-outside-toplevel
        with h5py.File(service.root / "000001/run.nxs") as file:
            check(file["entry/data/data"].shape[0] > 20, "images are there")
        stream.close()


@case("a run that ended, and a session that crashed, while there was no service are in the history of the next one")
def missed(folder):
    with serving(folder) as service:
        service.begin("short", detector={"frames": 50})
        service.begin("doomed", stages=["copy"], **TO_A_FILE)
        service.kill()
        wait_for("the end of a run", lambda: any(service.root.glob("*/result.json")))
        kill_session(service, "doomed")
        service.start()
        sessions_ = {s["name"]: s for s in service.get("/sessions")["sessions"]}
        equal({n: s["crashed"] for n, s in sessions_.items()}, {"short": False, "doomed": True}, "sessions")
        rows = wait_for("recovery", lambda: (r := service.get("/runs")["runs"]) and r[0]["recovered"] and r)
        equal([(r["run"], r["state"]) for r in rows], [(2, "crashed"), (1, "over")], "history")


@case("only one service has a root; it ends by itself when asked, and its streams with it")
def one_service(folder):
    with serving(folder) as service:
        run_fails("serve", "--listen", "127.0.0.1:0", "--root", service.root, "--experiments", service.experiments, folder=folder,
                  says=["another service has the root"])
        run_fails("serve", "--listen", f"127.0.0.1:{service.port}", "--root", folder / "more", "--experiments", service.experiments, folder=folder,
                  says=["cannot listen on"])
        stream = Stream(service)
        stream.until("sessions")
        service.program.send(signal.SIGTERM)
        service.program.ends(0)
        while stream.next():
            pass
        stream.close()


UNIT = r"""#!/bin/sh
# Starts what follows "--" as systemd-run would: not as a child of the caller.
echo "$@" >>"$FAKE_SYSTEMD"
out=/dev/null
while [ "$1" != -- ]; do
	case $1 in --property=StandardOutput=append:*) out=${1#*append:} ;; --setenv=*) export "${1#--setenv=}" ;; esac
	shift
done
shift
setsid "$@" >>"$out" 2>&1 </dev/null &
echo $! >"$FAKE_SYSTEMD.pid"
until [ "$(cut -d' ' -f6 /proc/$!/stat)" = $! ]; do sleep 0.01; done # it has left our group
"""
IS_ACTIVE = '#!/bin/sh\ncase $* in *session-demo.*) kill -0 "$(cat "$FAKE_SYSTEMD.pid")" 2>/dev/null ;; *) false ;; esac\n'


@case("where systemd runs, sessions are transient units; one that does not begin is told with its reason")
def units(folder):
    tools = folder / "tools"
    tools.mkdir()
    for name, text in (("systemd-run", UNIT), ("systemctl", IS_ACTIVE)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    before = os.environ["PATH"]
    os.environ.update({"PATH": f"{tools}:{before}", "FAKE_SYSTEMD": str(folder / "asked")})
    try:
        with serving(folder, "--sessions", "systemd") as service:
            service.begin("demo")
            asked = (folder / "asked").read_text()
            check("--unit=sluice-session-demo --collect" in asked and "--setenv=SLUICE_RUN_DIR=" in asked, asked)
            put_experiment(service, "fails")
            (tools / "systemd-run").write_text("#!/bin/sh\nfor word; do case $word in *Output=append:*) echo 'sluice: error: no' >${word#*append:} ;; esac; done\n")
            answer = service.ask("POST", "/sessions", {"experiment": "fails"}, status=422)
            equal(answer.json["error"]["message"], "no", "what it printed")
            (tools / "systemd-run").write_text("#!/bin/sh\necho no bus >&2\nexit 1\n")
            equal(service.ask("POST", "/sessions", {"experiment": "fails"}, status=500).json["error"]["message"], "systemd-run: no bus\n", "its error")
    finally:
        os.environ["PATH"] = before
        os.environ.pop("FAKE_SYSTEMD")


if __name__ == "__main__":
    main()
