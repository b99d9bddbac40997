#!/usr/bin/python3
"""metrics_test.py - metrics of sessions as Prometheus takes them: promtool finds nothing wrong, a real Prometheus scrapes live runs and answers as
their status does, alerts fire for a loss and a crash, and every query of the dashboard and of the rules is one of metrics that there are."""
# normal build only

import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.parse
import urllib.request

from harness import ROOT, SLUICE, Program, address, case, check, equal, experiment, main, run, run_fails, skip, wait_for

PROMTOOL, PROMETHEUS = shutil.which("promtool"), shutil.which("prometheus")
RULES = ROOT / "packaging/prometheus/sluice.rules.yml"
DASHBOARD = json.loads((ROOT / "packaging/grafana/sluice.json").read_text())
SMALL = {"kind": "pattern", "modules": 2, "rows": 32, "columns": 64, "frames": 0, "frame_rate_Hz": 200}
SCRAPES_S = 0.2


def start(folder, name, *arguments, run_it=True, **sections):
    """A session, by default in the middle of a run."""
    os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")
    path = experiment(folder, f"{name}.yaml", **{"detector": SMALL, "link": {"kind": "shm"}, "control": {"port": 0}, **sections,
                                                 "sinks": [{"nexus": {"path": f"{name}.nxs", "dataset": "raw"}}, "null", "null"]})
    program = Program("session", path, "--root", folder / "data", "--name", name, *arguments, folder=folder)
    wait_for("a socket", lambda: (folder / f"sockets/{name}.sock").exists() or not program.running())
    check(program.running(), "the session ended at once")
    if run_it:
        run("ctl", name, "start", folder=folder)
        wait_for("frames", lambda: status(folder, name)["frames"]["settled"] > 20)
    return program


def status(folder, name):
    return json.loads(run("ctl", name, "status", "--json", folder=folder).out())["status"]


def metrics(folder):
    """What `sluice ps --metrics` prints, as a text and as {line without value: value}."""
    done = run("ps", "--metrics", folder=folder)
    equal(done.process.returncode, 0, "exit status")
    text = done.out()
    return text, dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def is_clean(text):
    if not PROMTOOL:
        skip("promtool is not installed (Debian: prometheus)")
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"promtool: {done.stdout}{done.stderr}\n{text}")


# ---- the text ----

@case("ps --metrics: of no session, of live ones side by side, and of a crashed one; promtool finds nothing wrong")
def _(folder):
    os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")
    text, values = metrics(folder)
    equal(sorted(name.split("{")[0] for name in values), ["sluice_build_info", "sluice_collect_seconds"], "metrics without a session")
    is_clean(text)
    runs = start(folder, "runs")
    start(folder, "rests", run_it=False)
    dies = start(folder, "dies", run_it=False)
    dies.send(signal.SIGKILL)
    dies.process.wait()
    before = status(folder, "runs")
    text, values = metrics(folder)
    after = status(folder, "runs")
    is_clean(text)
    equal([values[f'sluice_session_{what}{{session="{name}"}}'] for name in ("runs", "rests", "dies") for what in ("up", "crashed")],
          ["1", "0", "1", "0", "0", "1"], "who is up, and who crashed")
    equal([values[f'sluice_session_state{{session="runs",state="{state}"}}'] for state in ("running", "ended")], ["1", "0"], "state")
    equal(values['sluice_session_state{session="rests",state="configured"}'], "1", "state of the other")
    for name, path in (("sluice_frames_settled_total", ("frames", "settled")), ("sluice_link_bytes_total", ("link", "bytes"))):
        low, high = (status[path[0]][path[1]] for status in (before, after))
        check(low <= int(values[f'{name}{{session="runs"}}']) <= high, f"{name} is not between {low} and {high}")
    wire = [int(value) for name, value in values.items() if name.startswith('sluice_latency_seconds_bucket{session="runs",hop="wire"')]
    equal(wire, sorted(wire), "buckets of a histogram")
    check(wire[-1] > 20 and wire[-1] == int(values['sluice_latency_seconds_count{session="runs",hop="wire"}']), "the count of a histogram")
    run("ctl", "runs", "stop", "--wait", folder=folder)
    text, values = metrics(folder)
    is_clean(text)
    ended = status(folder, "runs")
    equal([int(values[f'sluice_ledger_outcome_total{{session="runs",outcome="stored",module="{m}"}}']) for m in (0, 1)],
          [module["outcomes"]["stored"] for module in ended["ledger"]["modules"]], "stored")
    equal((values['sluice_run_result{session="runs",result="intact"}'], values['sluice_ledger_closed{session="runs"}']), ("1", "1"), "the end")
    runs.send(signal.SIGTERM)
    runs.ends(0)
    check('session="runs"' not in metrics(folder)[0], "a session that closed is still there")


@case("ps: --json and --metrics together are refused; a folder that is no folder is, too")
def _(folder):
    os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")
    run_fails("ps", "--json", "--metrics", folder=folder, says=["choose one"])
    (folder / "sockets").mkdir(0o777)
    (folder / "sockets").chmod(0o777)
    run_fails("ps", "--metrics", folder=folder, says=["must belong to you"])


# ---- rules and dashboard ----

def listed(folder):
    """Names of all samples that there can be."""
    names = set()
    for name, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", run("list", "metrics", folder=folder).out(), re.M):
        names |= {name, *(f"{name}_{end}" for end in ("bucket", "sum", "count") if kind == "histogram")}
    return names


def queries(node):
    """Every query of a dashboard."""
    if isinstance(node, list):
        return [query for item in node for query in queries(item)]
    if not isinstance(node, dict):
        return []
    found = [node["expr"]] if "expr" in node else []
    return found + [query for key, value in node.items() if key != "expr" for query in queries(value)]


@case("rules: promtool checks them, each alert has a test that passes, and a rule that is broken is noticed")
def _(folder):
    if not PROMTOOL:
        skip("promtool is not installed (Debian: prometheus)")
    tests = RULES.with_name("sluice.rules.test.yml")

    def promtool(*arguments):
        done = subprocess.run([PROMTOOL, *arguments], cwd=folder, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr
    for path in (RULES, tests):
        shutil.copy(path, folder)
    for arguments in (("check", "rules", RULES.name), ("test", "rules", tests.name)):
        status, said = promtool(*arguments)
        check(status == 0, f"promtool {' '.join(arguments)}: {said}")
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    fired = re.findall(r"alertname: (\w+)\n +exp_alerts:\n", tests.read_text())
    quiet = re.findall(r"alertname: (\w+), exp_alerts: \[\]", tests.read_text())
    equal((sorted(set(fired)), sorted(quiet)), (sorted(alerts), sorted(alerts)), "alerts that tests let fire, and keep quiet")
    (folder / RULES.name).write_text(RULES.read_text().replace('state="gone"', 'state="done"'))
    status, said = promtool("test", "rules", tests.name)
    check(status != 0 and "SluiceSourceGone" in said, "a broken rule passes its test")


@case("rules and dashboard ask for metrics and labels that there are")
def _(folder):
    names, found = listed(folder), RULES.read_text() + "\n".join(queries(DASHBOARD))
    asked = set(re.findall(r"\bsluice_\w+", found))
    equal(sorted(asked - names), [], "metrics that there are not")
    check(len(asked) > 25, f"only {len(asked)} are asked for")
    labels = set(re.findall(r"`([\w, ]+)` \|[^|]*\|$", run("list", "metrics", folder=folder).out(), re.M))
    known = {label for group in labels for label in group.split(", ")} | {"session", "instance", "job", "le"}
    used = {label for group in re.findall(r"by \(([\w, ]+)\)", found) for label in group.split(", ")}
    equal(sorted(used - known), [], "labels that there are not")


# ---- a real Prometheus ----

class Exporter:
    """Answers each request with what `sluice ps --metrics` prints, at the address of this test: for programs without `sluice serve`."""

    def __init__(self, folder):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                text = subprocess.run([SLUICE, "ps", "--metrics"], cwd=folder, capture_output=True, check=False).stdout
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer((address(3), 0), Handler)
        self.target = f"{address(3)}:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Service:
    """`sluice serve` at the address of this test, with a token where one is given."""

    def __init__(self, folder, token=None):
        (folder / "root").mkdir(exist_ok=True)
        self.folder, self.token = folder, token
        options = []
        if token:
            (folder / "tokens").write_text(f"view prometheus {token}\n")
            (folder / "tokens").chmod(0o600)
            options = ["--tokens", "tokens"]
        port = folder / "service.port"
        port.unlink(missing_ok=True)
        self.program = Program("serve", "--listen", f"{address(3)}:0", "--root", "root", "--port_file", "service.port", *options, folder=folder)
        wait_for("the service", lambda: (port.exists() and port.read_text().strip()) or not self.program.running())
        check(self.program.running(), self.program.err())
        self.target = f"{address(3)}:{port.read_text().strip()}"

    def get(self, token=None):
        """(HTTP status, headers, text) of /metrics."""
        request = urllib.request.Request(f"http://{self.target}/metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, reply.headers, reply.read().decode()
        except urllib.error.HTTPError as why:
            return why.code, why.headers, why.read().decode()

    def close(self):
        self.program.send(signal.SIGTERM)
        self.program.ends(0)


def has_service(folder):
    return run("serve", "--openapi", folder=folder).process.returncode == 0


@case("sluice serve has them at /metrics, with its own; behind a token where there are tokens")
def _(folder):
    os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")
    if not has_service(folder):
        skip("this program has no sluice serve")
    start(folder, "runs")
    dies = start(folder, "dies", run_it=False)
    service = Service(folder)
    dies.send(signal.SIGKILL)
    dies.process.wait()
    text = wait_for("the crash", lambda: next((text for text in [service.get()[2]] if 'sluice_session_crashed{session="dies"} 1' in text), None))
    equal(service.get()[1]["Content-Type"], "text/plain; version=0.0.4; charset=utf-8", "type")
    is_clean(text)
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    mine, theirs = ({name.split("{")[0] for name in values} for values in (values, metrics(folder)[1]))
    equal(sorted(mine ^ theirs), ["process_cpu_seconds_total", "process_open_fds", "process_resident_memory_bytes", "process_start_time_seconds",
                                  "sluice_collect_seconds", "sluice_service_events_missed_total", "sluice_service_viewers"], "what ps and serve do not share")
    check(abs(float(values["process_start_time_seconds"]) - time.time()) < 300, f"start of the service: {values['process_start_time_seconds']}")
    check(int(values['sluice_frames_settled_total{session="runs"}']) > 20, "frames")
    service.close()
    service = Service(folder, "0123456789abcdef0123456789abcdef")
    equal(service.get()[0], 401, "status without a token")
    equal(service.get("x" * 32)[0], 401, "status with a wrong token")
    code, _, text = service.get(service.token)
    check(code == 200 and "sluice_session_up" in text, f"with the token: {code} {text[:200]}")
    service.close()


def free_port():
    with http.server.HTTPServer((address(3), 0), http.server.BaseHTTPRequestHandler) as server:
        return server.server_address[1]


class Prometheus:
    """Debian's, in a folder of its own, on a loopback address of this test."""

    def __init__(self, folder, target, token=None):
        if not PROMETHEUS:
            skip("prometheus is not installed")
        self.place = folder / "prometheus"
        self.place.mkdir()
        shutil.copy(RULES, self.place)
        (self.place / "token").write_text(token or "")
        access = {"authorization": {"credentials_file": "token"}} if token else {}
        (self.place / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": f"{int(SCRAPES_S * 1000)}ms", "scrape_timeout": f"{int(SCRAPES_S * 1000)}ms", "evaluation_interval": "500ms"},
            "rule_files": [RULES.name], "scrape_configs": [{"job_name": "sluice", "static_configs": [{"targets": [target]}], **access}]}))
        self.address = f"{address(3)}:{free_port()}"
        self.program = Program("--config.file", "prometheus.yml", f"--web.listen-address={self.address}", "--storage.tsdb.path", "tsdb",
                               "--log.level=warn", folder=self.place, program=PROMETHEUS)
        wait_for("prometheus", self.is_ready, 60)

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=5) as reply:
                return reply.status == 200
        except OSError:
            check(self.program.running(), f"prometheus ended: {self.program.err()}")
            return False

    def get(self, path, **parameters):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as reply:
                return json.loads(reply.read())["data"]
        except urllib.error.HTTPError as why:
            return check(False, f"{parameters}: {why.read().decode()}")

    def query(self, query):
        """[(labels, value)] now."""
        return [(sample["metric"], float(sample["value"][1])) for sample in self.get("query", query=query)["result"]]

    def value(self, query):
        """Of the one sample that answers a query; None: there is none."""
        found = self.query(query)
        return found[0][1] if len(found) == 1 else None

    def firing(self):
        return {(alert["labels"]["alertname"], alert["labels"].get("session")) for alert in self.get("alerts")["alerts"]
                if alert["state"] == "firing"}


@case("Prometheus scrapes live runs, and answers as their status does; a loss and a crash raise alerts; the dashboard has answers")
def _(folder):
    good = start(folder, "good")
    start(folder, "bad", frontend={"skip": 0.1})
    token = "0123456789abcdef0123456789abcdef" if has_service(folder) else None
    exporter = Service(folder, token) if token else Exporter(folder)
    try:
        prometheus = Prometheus(folder, exporter.target, token)
        settled = 'sluice_frames_settled_total{session="good"}'
        first = wait_for("the first scrape", lambda: prometheus.value(settled))
        wait_for("frames that come", lambda: prometheus.value(settled) > first + 100)
        wait_for("a rate", lambda: (prometheus.value(f"rate({settled}[5s])") or 0) > 20)
        quantile = 'histogram_quantile(0.99, sum by (le) (rate(sluice_latency_seconds_bucket{session="good",hop="process"}[10s])))'
        wait_for("a percentile", lambda: 0 < (prometheus.value(quantile) or 0) < 30)
        equal([value for _, value in prometheus.query("up")], [1.0], "targets that are up")
        wait_for("the alert about the loss", lambda: ("SluiceDataLost", "bad") in prometheus.firing())
        check(not [alert for alert in prometheus.firing() if alert[1] == "good"], f"alerts about a good run: {prometheus.firing()}")
        for query in queries(DASHBOARD):
            text = query.replace("$__rate_interval", "10s").replace("$instance", ".*").replace("$session", ".*")
            found = prometheus.query(text)
            check(found or " > 0" in query or query.startswith("ALERTS") or "left_out" in query or "waited" in query or "result" in query or
                  "needed_bytes" in query or "disk_free" in query, f"nothing answers {text}")
        lost = prometheus.value('sum(sluice_ledger_outcome_total{session="bad",outcome="lost"})')
        check(lost and lost <= status(folder, "bad")["ledger"]["total"]["outcomes"]["lost"], f"{lost} lost module-frames")
        run("ctl", "bad", "stop", "--wait", folder=folder)
        ended = status(folder, "bad")["ledger"]["total"]
        for outcome, count in ended["outcomes"].items():
            wait_for(f"all that are {outcome}", lambda outcome=outcome, count=count: prometheus.value(
                f'sum(sluice_ledger_outcome_total{{session="bad",outcome="{outcome}"}})') == count)
        for cause, count in ended["causes"].items():
            equal(prometheus.value(f'sluice_ledger_cause_total{{session="bad",cause="{cause}"}}'), count, f"cause {cause}")
        wait_for("the alert about the result", lambda: ("SluiceRunNotIntact", "bad") in prometheus.firing())
        good.send(signal.SIGKILL)
        good.process.wait()
        wait_for("the alert about the crash", lambda: ("SluiceSessionCrashed", "good") in prometheus.firing())
    finally:
        exporter.close()


@case("what a scrape costs, beside a run")
def _(folder):
    start(folder, "runs")
    begun = time.monotonic()
    for _ in range(10):
        text, values = metrics(folder)
    print(f"# note: sluice ps --metrics: {(time.monotonic() - begun) * 100:.1f} ms a call, of these {float(values['sluice_collect_seconds']) * 1e3:.2f} ms "
          f"for the status of a session; {len(text) / 1e3:.1f} kB")
    check(len(text) < 100_000, f"{len(text)} bytes of text for a session of two modules")


if __name__ == "__main__":
    main()
