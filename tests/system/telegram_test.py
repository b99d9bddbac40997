#!/usr/bin/python3
"""telegram_test.py - a detector side that stays, and telegrams: a manager configures both sides of an acquisition over three runs, by XML
documents that their schema accepts; mistakes are refused by schema and program alike; receivers that are late, killed, started again or of
another mind are named; the same telegrams over HTTP, with its roles."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import harness
from harness import ROOT, Program, case, check, equal, experiment, main, run, skip, text_of, wait_for
from service import serving

SPACE = "urn:sluice:telegram:1"
SCHEMA = ROOT / "docs/reference/telegram.xsd"
SMALL = {"kind": "pattern", "modules": 2, "rows": 32, "columns": 64, "frames": 60, "frame_rate_Hz": 500}
STATUS = json.loads((ROOT / "docs/reference/status.schema.json").read_text())


# ---- a manager, as RASHPA has one: a script that speaks telegrams ----

def telegram(*requests, name="t"):
    """A document of requests: (call, to, attributes, children), where children are (element, key, text)."""
    document = ElementTree.Element("telegram", {"xmlns": SPACE, "version": "1", "id": name})
    for call, to, attributes, children in requests:
        element = ElementTree.SubElement(document, call, {**({"to": to} if to else {}), **attributes})
        for kind, key, text in children:
            ElementTree.SubElement(element, kind, {"path" if kind == "set" else "key": key}).text = text
    return ElementTree.tostring(document)


def request(call, to=None, children=(), **attributes):
    return call, to, {name: str(value) for name, value in attributes.items()}, children


def sets(**values):
    return [("set", path.replace("__", "."), str(value)) for path, value in values.items()]


def is_valid(document):
    """Whether the schema accepts it, as xmllint says."""
    if not shutil.which("xmllint"):
        skip("xmllint (libxml2-utils) is not installed")
    done = subprocess.run(["xmllint", "--noout", "--nonet", "--schema", str(SCHEMA), "-"], input=document, capture_output=True, check=False)
    check(done.returncode in (0, 1, 3), f"xmllint: {done.stderr.decode()}")
    return done.returncode == 0


class Answers:
    """A reply, which the schema accepts."""

    def __init__(self, document):
        check(is_valid(document), f"the schema refuses a reply: {document.decode()}")
        self.root = ElementTree.fromstring(document)
        self.list = self.root.findall(f"{{{SPACE}}}answer")
        self.result = self.root.get("result")

    def part(self, index, *path):
        found = self.list[index]
        for name in path:
            found = found.find(f"{{{SPACE}}}{name}")
            check(found is not None, f"answer {index} has no {'/'.join(path)}: {ElementTree.tostring(self.root).decode()}")
        return found

    def error(self, index=-1):
        error = self.part(index, "error") if self.list else self.root.find(f"{{{SPACE}}}error")
        return error.get("code"), error.text


def exchange(folder, *requests, valid=True, document=None):
    """A telegram from the shell, and its reply."""
    document = document or telegram(*requests)
    equal(is_valid(document), valid, f"whether the schema accepts {document[:300]}")
    (folder / "telegram.xml").write_bytes(document)
    done = run("ctl", "--telegram", folder / "telegram.xml", folder=folder)
    answers = Answers(done.out().encode())
    equal(done.process.returncode, 0 if answers.result == "done" else 1, "exit status")
    return answers


# ---- both sides ----

def sides(folder, *arguments, session=True, **sections):
    """An experiment, its detector side (experiment.detector) and its session (s)."""
    os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")
    sections = {"detector": SMALL, "sinks": ["verify"], "emulate": "none", **sections}
    path = experiment(folder, **sections)
    program = Program("emulate", path, "--serve", *arguments, folder=folder)
    wait_for("the detector side", lambda: (folder / "sockets/experiment.detector.json").exists() or not program.running())
    check(program.running(), program.err())
    return path, program, receiver(folder, path) if session else None


def receiver(folder, path, *arguments):
    program = Program("session", path, "--root", folder / "runs", "--name", "s", *arguments, folder=folder)
    wait_for("the session", lambda: is_registered(folder / "sockets/s.json", program.pid) or not program.running())
    check(program.running(), program.err())
    return program


def is_registered(path, pid):
    """A session that was killed has left a registration, too: it is not this one's."""
    with contextlib.suppress(json.JSONDecodeError):
        return json.loads(text_of(path) or "{}").get("pid") == pid
    return False


def status_of(folder, name="experiment.detector"):
    status = json.loads(run("ctl", name, "--json", folder=folder).out())["status"]
    with contextlib.suppress(ImportError):
        import jsonschema  # pylint: disable=import-outside-toplevel
        jsonschema.Draft202012Validator(STATUS).validate(status)
    return status


def ended(folder, session, detector, status=0):
    """status: of the worst run of the session."""
    for name in ("s", "experiment.detector"):
        run("ctl", name, "close", "--wait", folder=folder)
    session.ends(status)
    detector.ends(0)


# ---- cases ----

@case("a manager takes three runs with other regions and frame counts, by telegrams alone; the ledgers are as it asked")
def three_runs(folder):
    transfers = {"roi": {"x": 0, "y": 0, "width": 64, "height": 32}}
    _, detector, session = sides(folder, transfers=transfers)
    answers = exchange(folder, request("capabilities"))
    described = answers.part(0, "capabilities")
    names = {(s.get("name"), s.get("kind")) for s in described.findall(f"{{{SPACE}}}session")}
    equal(names, {("experiment.detector", "detector"), ("s", "session")}, "sessions")
    check(any(a.get("kind") == "link" and a.get("name") == "udp" for a in described.findall(f"{{{SPACE}}}addon")), "links")
    regions = [(0, 0, 64, 32, 60), (16, 8, 32, 16, 45), (8, 0, 16, 32, 70)]
    for number, (x, y, width, height, frames) in enumerate(regions, 1):
        wanted = sets(detector__frames=frames, transfers__roi__x=x, transfers__roi__y=y, transfers__roi__width=width,
                      transfers__roi__height=height)
        answers = exchange(
            folder, request("configure", "experiment.detector", wanted), request("configure", "s", wanted),
            request("metadata", "s", [("value", "sample", f"number <{number}>")]),
            request("arm", "experiment.detector"), request("arm", "s", wait_s=60),
            request("wait", "experiment.detector", state="armed", wait_s=60),
            request("start", "experiment.detector"), request("start", "s", wait_s=60),
            request("wait", "s", state="ended", wait_s=120), request("wait", "experiment.detector", state="ended", wait_s=60))
        equal(answers.result, "done", f"run {number}: {ElementTree.tostring(answers.root).decode()}")
        run_ended, sent = answers.part(8, "status"), answers.part(9, "status")
        ledger = answers.part(8, "status", "ledger")
        equal((run_ended.get("result"), run_ended.get("run"), run_ended.get("frames")), ("intact", str(number), str(frames)), "the run")
        equal((ledger.get("closed"), ledger.get("settled"), ledger.get("sent")), ("true", str(2 * frames), str(2 * frames)), "ledger")
        equal({o.get("name"): o.get("count") for o in ledger}, {"stored": str(2 * frames)}, "outcomes")
        equal((sent.get("result"), sent.get("frames")), ("intact", str(frames)), "the detector side")
        modules = answers.part(9, "status", "detector").findall(f"{{{SPACE}}}module")
        equal([(m.get("transfer"), m.get("number"), m.get("sent")) for m in modules],
              [("roi", "0", str(frames)), ("roi", "1", str(frames))], "modules")
        result = json.loads((folder / f"runs/{number:06}/result.json").read_text())
        verify = harness.sink(result, "verify")
        equal(verify.pop("frames_compared"), frames, "frames compared with the truth")
        equal(set(verify.values()), {0}, "what verify found")
        equal(status_of(folder, "s")["frames"]["pixel_bytes"], 2 * frames * width * height * 2, "bytes of the region")
        equal(result["metadata"]["sample"], f"number <{number}>", "metadata")
    status = status_of(folder)
    equal((status["kind"], status["run"], status["detector_side"]["set"][0]), ("detector", 3, "detector.frames=70"), "status")
    answers = exchange(folder, request("close", "s"), request("close", "experiment.detector"))
    equal(answers.result, "done", "closed")
    session.ends(0)
    detector.ends(0)
    equal(list((folder / "sockets").iterdir()), [], "what is left of both")


GOOD = [
    "<capabilities/>",
    '<status to="absent.1"/>',
    '<configure to="absent"/>',
    '<configure to="absent"><set path="a">1</set><set path="b.c[+]"/></configure>',
    '<arm to="absent" wait_s="0"/>',
    '<start to="absent" wait_s="86400"/>',
    '<pause to="absent" wait_s="1.25"/>',
    '<resume to="absent" wait_s="00001"/>',
    '<stop to="absent" reason="fifteen bytes !" wait_s="9.0"/>',
    '<abort to="absent" reason=""/>',
    '<metadata to="absent" keep="false"/>',
    '<metadata to="absent"><remove key="a"/><value key="b">c &#x1F600;</value></metadata>',
    '<wait to="absent" state="idle" wait_s="0"/>',
    '<close to="absent"/><!-- a comment -->',
    "<capabilities/>" * 64,
]
BAD = [
    "",
    "text",
    "<reboot/>",
    '<capabilities to="s"/>',
    "<status/>",
    '<status to=""/>',
    '<status to=".s"/>',
    '<status to="a b"/>',
    f'<status to="{"x" * 64}"/>',
    '<status to="s" wait_s="1"/>',
    '<arm to="s" wait_s="-1"/>',
    '<arm to="s" wait_s="86400.1"/>',
    '<arm to="s" wait_s="99999"/>',
    '<arm to="s" wait_s="1e2"/>',
    '<arm to="s" wait_s=" 1"/>',
    '<arm to="s" wait_s="0.00000000000000000001"/>',
    '<arm to="s" reason="x"/>',
    '<arm to="s"><arm to="s"/></arm>',
    '<arm to="s">x</arm>',
    '<stop to="s" reason="sixteen bytes !!"/>',
    '<stop to="s" reason="a&#10;b"/>',
    '<configure to="s"><set>1</set></configure>',
    '<configure to="s"><set path="">1</set></configure>',
    '<configure to="s"><set path="a b">1</set></configure>',
    '<configure to="s"><set path="a=b">1</set></configure>',
    f'<configure to="s"><set path="a">{"x" * 4001}</set></configure>',
    '<configure to="s"><value key="a">1</value></configure>',
    '<metadata to="s" keep="yes"/>',
    '<metadata to="s"><set path="a">1</set></metadata>',
    '<metadata to="s"><remove key="a">1</remove></metadata>',
    '<wait to="s" state="ended"/>',
    '<wait to="s" wait_s="1"/>',
    '<wait to="s" state="happy" wait_s="1"/>',
    '<status xmlns="" to="s"/>',
    '<status xmlns="urn:sluice:telegram:2" to="s"/>',
    "<capabilities/>" * 65,
]


@case("schema and program accept the same telegrams, and refuse the same")
def same_mind(folder):
    os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")

    def whole(inside, head=f'xmlns="{SPACE}" version="1"'):
        return f"<telegram {head}>{inside}</telegram>".encode()

    for inside in GOOD:
        answers = exchange(folder, document=whole(inside))
        if "capabilities" not in inside:
            equal((answers.result, answers.error(0)[0]), ("failed", "absent"), f"what becomes of {inside}")
    for inside in BAD:
        answers = exchange(folder, document=whole(inside), valid=False)
        equal((answers.list, answers.error()[0]), ([], "request"), f"what becomes of {inside}")
    for head in ("", 'version="1"', f'xmlns="{SPACE}"', f'xmlns="{SPACE}" version="2"', f'xmlns="{SPACE}" version="1" id=""',
                 f'xmlns="{SPACE}" version="1" id="{"x" * 65}"', f'xmlns="{SPACE}" version="1" to="s"'):
        equal(exchange(folder, document=whole("<capabilities/>", head), valid=False).error()[0], "request", f"code of {head}")
    # What XML allows, and telegrams do not.
    bomb = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "ha"}">' for i in range(10))
    for prolog in ("<!DOCTYPE telegram>", f"<!DOCTYPE telegram [{bomb}]>", '<!DOCTYPE telegram SYSTEM "file:///etc/passwd">'):
        (folder / "t.xml").write_text(f'{prolog}<telegram xmlns="{SPACE}" version="1" id="&e9;"><capabilities/></telegram>')
        done = run("ctl", "--telegram", folder / "t.xml", folder=folder)
        equal(Answers(done.out().encode()).error()[1], "a telegram has no DOCTYPE", "error")
    large = folder / "large.xml"
    large.write_bytes(whole("<!-- " + "x" * 262144 + " --><capabilities/>"))
    check("262144 bytes" in Answers(run("ctl", "--telegram", large, folder=folder).out().encode()).error()[1], "a large one")
    harness.run_fails("ctl", "--telegram", folder / "absent.xml", folder=folder, says=["No such file"])
    harness.run_fails("ctl", "s", "--telegram", large, folder=folder, says=["the document says which session"])


@case("the first failure stops a telegram, and what was not carried out is said")
def first_failure(folder):
    _, detector, session = sides(folder)
    answers = exchange(folder, request("configure", "experiment.detector", sets(detector__frames="many")), request("arm", "s"))
    code, text = answers.error(0)
    check(code == "experiment" and "detector.frames" in text, f"{code}: {text}")
    equal([a.get("result") for a in answers.list], ["failed", "skipped"], "results")
    equal(status_of(folder)["state"], "fault", "state")
    equal(status_of(folder, "s")["state"], "configured", "state of the other")
    answers = exchange(folder, request("configure", "experiment.detector"), request("status", "experiment.detector"),
                       request("pause", "experiment.detector"))
    equal((answers.list[1].get("state"), answers.error(2)[0]), ("configured", "state"), "pause of a detector side")
    equal(exchange(folder, request("metadata", "experiment.detector")).error(0)[0], "request", "metadata of a detector side")
    equal(exchange(folder, request("resume", "s")).error(0)[0], "state", "resume of a session that rests")
    equal(exchange(folder, request("wait", "s", state="ended", wait_s=0.1)).error(0)[0], "timeout", "a wait that ends")
    ended(folder, session, detector)


@case("a receiver that is late, is killed and started again is waited for, and gets what is left; all of it is named")
def receivers_come_and_go(folder):
    # As many as it takes: it ends when the test has seen all.
    path, detector, _ = sides(folder, session=False, detector={**SMALL, "frames": 1000000, "frame_rate_Hz": 200})
    equal(exchange(folder, request("start", "experiment.detector")).result, "done", "start")
    wait_for("a wait for the receiver", lambda: status_of(folder)["detector_side"]["receivers"][0]["waits_for"] == "receiver")
    session = receiver(folder, path)
    run("ctl", "s", "start", folder=folder)
    wait_for("frames", lambda: status_of(folder, "s")["frames"]["settled"] > 20)
    session.send(9)
    session.wait()
    wait_for("a receiver that is gone", lambda: status_of(folder)["detector_side"]["receivers"][0]["gone"] == 1)
    check("the receiver is gone; offering again" in detector.err(), detector.err())
    session = receiver(folder, path)
    equal(run("ctl", "s", "start", folder=folder).process.returncode, 0, "the rest of the run")
    wait_for("the rest", lambda: (status_of(folder, "s")["frames"] or {}).get("settled", 0) > 20)
    equal(exchange(folder, request("stop", "experiment.detector", wait_s=60), request("wait", "s", state="ended", wait_s=60)).result, "done", "the end")
    status, rest = status_of(folder), status_of(folder, "s")
    equal(status["result"], "intact", "the detector side")
    check(20 < rest["frames"]["settled"] < status["frames"]["settled"] - 20 and rest["ledger"]["closed"],
          f"what was left: {rest['frames']} of {status['frames']}")
    ended(folder, session, detector)


@case("a receiver with another experiment refuses, one that never comes ends in a fault, stop and abort end a run, each by its name")
def ends(folder):
    path, detector, session = sides(folder, detector={**SMALL, "frames": 100000, "frame_rate_Hz": 200}, control={"wait_s": 20})
    exchange(folder, request("configure", "experiment.detector", sets(detector__frames=10)), request("arm", "s"))
    code, text = exchange(folder, request("arm", "experiment.detector", wait_s=60)).error(0)
    check(code == "receiver" and "the detector section differs" in text, f"{code}: {text}")
    check("differs" in status_of(folder)["detector_side"]["receivers"][0]["refusal"], "refusal")
    equal(exchange(folder, request("abort", "s", wait_s=60), request("configure", "experiment.detector")).result, "done", "again")
    for call, result in (("stop", "intact"), ("abort", "unclosed")):
        answers = exchange(folder, request("start", "experiment.detector"), request("start", "s", wait_s=60))
        equal(answers.result, "done", f"started: {ElementTree.tostring(answers.root).decode()}")
        wait_for("frames", lambda: status_of(folder)["frames"]["settled"] > 10)
        if call == "stop":
            equal(exchange(folder, request("arm", "experiment.detector")).error(0)[0], "state", "arm during a run")
        answers = exchange(folder, request(call, "experiment.detector", reason="shutter", wait_s=60), request("wait", "s", state="ended", wait_s=60))
        equal((answers.part(0, "status").get("result"), answers.part(0, "status").get("stopped_by")), (result, "shutter"), call)
        equal(answers.part(1, "status").get("result"), result, f"the run behind {call}")
    ended(folder, session, detector, status=1)
    path.write_text(json.dumps({**json.loads(path.read_text()), "control": {**json.loads(path.read_text())["control"], "wait_s": 0.3}}))
    detector = Program("emulate", path, "--serve", "--name", "alone", folder=folder)
    wait_for("another", lambda: (folder / "sockets/alone.json").exists())
    code, text = exchange(folder, request("arm", "alone", wait_s=60)).error(0)
    check(code == "receiver" and "no receiver at" in text, f"{code}: {text}")
    detector.send(15)
    detector.ends(0)


@case("faults are injected, counted and configured away between two runs of one session; credits that are missing are seen")
def faults(folder):
    _, detector, session = sides(folder, detector={**SMALL, "frames": 100}, ring={"align": "sequence", "late_timeout_ms": 2000})
    for skip_share, wanted in ((0.2, True), (0, False)):
        equal(exchange(folder, request("configure", "experiment.detector", sets(frontend__skip=skip_share)),
                       request("start", "experiment.detector"), request("start", "s"), request("wait", "s", state="ended", wait_s=120),
                       request("wait", "experiment.detector", state="ended", wait_s=60)).result, "done", "run")
        status, receiving = status_of(folder), status_of(folder, "s")
        equal("skip" in status["detector_side"]["faults"], wanted, f"faults {status['detector_side']['faults']}")
        equal(receiving["ledger"]["total"]["skipped"] > 0, wanted, "skipped in the ledger")
        if wanted:
            equal(receiving["ledger"]["total"]["skipped"], status["detector_side"]["faults"]["skip"], "as many")
    exchange(folder, request("configure", "experiment.detector", sets(detector__frames=100000)),
             request("configure", "s", sets(detector__frames=100000)))
    equal(exchange(folder, request("start", "experiment.detector"), request("start", "s", wait_s=60), request("pause", "s", wait_s=60)).result,
          "done", "a session that is paused gives no credits")
    wait_for("a wait for credits", lambda: status_of(folder)["detector_side"]["receivers"][0]["waits_for"] == "credits")
    before = status_of(folder)["detector_side"]["held_ns"]
    time.sleep(0.05)
    check(status_of(folder)["detector_side"]["held_ns"] > before, "time that is held")
    equal(exchange(folder, request("resume", "s", wait_s=60), request("stop", "s", wait_s=60)).result, "done", "the end")
    ended(folder, session, detector, status=2)


@case("telegrams over HTTP: the same documents; overrides need the role configure, and waits end with the service")
def over_http(folder):
    tokens = {"view": "v" * 20, "operate": "o" * 20, "configure": "c" * 20}
    with serving(folder, tokens=tokens) as service:
        path = experiment(service.experiments, name="scan.yaml", detector=SMALL, sinks=["verify"], emulate="none")
        detector = Program("emulate", path, "--serve", folder=folder)
        service.ask("POST", "/sessions", {"experiment": "scan", "name": "s"}, status=201)
        wait_for("both sides", lambda: {s["name"]: s["kind"] for s in service.get("/sessions")["sessions"]} ==
                 {"s": "session", "scan.detector": "detector"})

        def post(*requests, role="configure", status=200):
            document = telegram(*requests)
            check(is_valid(document), "a telegram that is none")
            return service.ask("POST", "/telegram", document, status=status, role=role)

        wanted = sets(detector__frames=35)
        post(request("status", "s"), role="view", status=403)
        equal(Answers(post(request("configure", "s", wanted), role="operate").body).error(0)[0], "forbidden", "overrides by an operator")
        answers = Answers(post(request("capabilities"), request("configure", "scan.detector", wanted), request("configure", "s", wanted),
                               request("start", "scan.detector"), request("start", "s"), request("wait", "s", state="ended", wait_s=120),
                               request("wait", "scan.detector", state="ended", wait_s=60)).body)
        equal(answers.result, "done", ElementTree.tostring(answers.root).decode())
        equal(answers.part(5, "status", "ledger").get("settled"), "70", "ledger")
        equal(answers.part(6, "status").get("frames"), "35", "frames sent")
        bad = [("set", "sinks", "[{nexus: {path: /etc/x.nxs}}]")]
        equal(Answers(post(request("configure", "s", bad)).body).result, "failed", "a path outside of the data roots")
        log = (folder / "runs/.service/audit.log").read_text()
        check("configure scan.detector" in log and "configure-client" in log, f"the audit log: {log[-600:]}")
        waiting = subprocess.Popen([sys.executable, "-c", "import sys, http.client\n"
                                    f"c = http.client.HTTPConnection('127.0.0.1', {service.port})\n"
                                    f"c.request('POST', '/api/v1/telegram', sys.stdin.read(), {{'Authorization': 'Bearer {tokens['operate']}'}})\n"
                                    "sys.stdout.write(c.getresponse().read().decode())"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        waiting.stdin.write(telegram(request("arm", "s"), request("wait", "s", state="running", wait_s=3600)))
        waiting.stdin.close()
        service.until("s", "configured")
        wait_for("its arming", lambda: service.session("s")["status"]["run"] == 2)
        service.program.send(15)
        service.program.ends(0)
        equal(Answers(waiting.stdout.read()).error(1)[0], "timeout", "a wait that the end of the service ends")
        waiting.wait()
        run("ctl", "scan.detector", "close", "--wait", folder=folder)
        detector.ends(0)


if __name__ == "__main__":
    sys.exit(main())
