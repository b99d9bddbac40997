#!/usr/bin/python3
"""page_test.py - the live page in chromium: with page_mock.py as its service, and with `sluice serve` and a run that is started by a click.

Skipped where chromium and chromedriver are not installed; the unit tests of web/test need node alone.
"""

# normal build only

import atexit
import contextlib
import json
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import harness
from browser import Browser, missing
from harness import ROOT, Program, address, case, check, equal, experiment, main, skip, wait_for
from service import SLOWLY, put_experiment, serving

SESSION = "#/session/jungfrau-demo"
OLD = "document.querySelector('.stage')?.classList.contains('old')"
FRAME = "Number(document.querySelector('.frame-number').innerText.replace(/[^0-9]/g, ''))"


class Shared:
    """One chromium for all cases: it starts when the first one needs it."""

    browser = None
    folder = None

    @classmethod
    def get(cls):
        if missing():
            skip(missing())
        if not cls.browser:
            cls.folder = tempfile.mkdtemp(prefix="chromium-")
            cls.browser = Browser(cls.folder)
            atexit.register(cls.close)
        return cls.browser

    @classmethod
    def close(cls):
        cls.browser.close()
        shutil.rmtree(cls.folder, ignore_errors=True)


@contextlib.contextmanager
def page(scene="running", where=SESSION, width=1440, height=900, dark=True):
    """The page before a mock in some scene; in the end nothing may have been written to the console."""
    from page_mock import Mock  # here, as it needs numpy
    browser = Shared.get()
    mock = Mock(scene)
    try:
        browser.emulate(width, height, 1, width < 500, dark)
        browser.complaints()
        browser.open(mock.url + where)
        yield browser, mock
        equal(browser.complaints(), [], "what the console has")
    finally:
        browser.open("about:blank")
        mock.close()


# ---- without a browser ----

@case("unit tests of the page's modules, by node")
def _(_folder):
    node = shutil.which("node")
    if not node:
        skip("no node here (Debian: nodejs)")
    for flags in (["--experimental-default-type=module"], []):  # later ones see by themselves what a module is
        done = subprocess.run([node, *flags, "--test", *sorted(map(str, (ROOT / "web/test").glob("*_test.js")))], capture_output=True, text=True, timeout=harness.TIMEOUT_S, check=False)
        if "bad option" not in done.stderr:
            break
    passed = re.search(r"^# pass (\d+)$", done.stdout, re.M)
    check(done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:])
    check(passed and int(passed[1]) > 30, f"only {passed and passed[1]} tests ran")


@case("every state, outcome and cause of the headers has words on the page")
def _(_folder):
    words = (ROOT / "web/words.js").read_text()
    header = (ROOT / "include/sluice/outcome.h").read_text()
    causes = {name.lower() for name in re.findall(r"^\tSL_CAUSE_(\w+),", header, re.M)} - {"none"}
    outcomes = {name.lower() for name in re.findall(r"^\tSL_(\w+),", header, re.M) if not name.startswith("CAUSE")} - {"no_outcome", "outcomes"}
    table = words[words.index("export const CAUSES"):]
    equal(set(re.findall(r"(\w+): \"", table[:table.index("};")])), causes, "causes")
    equal(set(re.findall(r'\{name: "(\w+)"', words)), outcomes, "outcomes")
    states = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/reference/states.md").read_text().split("| call |")[0], re.M))
    said = set(re.findall(r"(\w+): \"", words[words.index("STATES"):words.index("RESULTS")]))
    equal(said - {"crashed"}, states, "states")


@case("the page needs nothing from elsewhere, and no inline script or style")
def _(_folder):
    for path in sorted((ROOT / "web").glob("*")):
        if path.is_dir():
            continue
        text = path.read_text()
        check(not re.search(r"(https?:)?//(?!www\.w3\.org)[a-z0-9-]+\.[a-z]{2,}", text), f"{path.name} names another host")
        check(not re.search(r"\beval\(|new Function|innerHTML|outerHTML\s*=|document\.write|insertAdjacentHTML", text), f"{path.name} makes code or elements of texts")
        if path.suffix == ".html":
            check("style=" not in text and not re.search(r"<script(?![^>]*\bsrc=)", text) and not re.search(r"\son\w+=", text), "inline script or style")


# ---- a run from the first click to the last ----

@case("a session is started by clicks, frames move, a loss lights up with its cause, it is paused and stopped")
def _(_folder):
    with page("empty", "") as (browser, mock):
        browser.click(".choice")
        browser.fill("#parameter-frames", 300000)
        browser.find("#session-name")
        browser.click("[type=submit]")
        browser.until("location.hash === '#/session/jungfrau-demo' && document.querySelector('.pill.running')", "the run to start")
        equal(mock.calls[:2], [("POST", "sessions", {"experiment": "jungfrau-demo", "parameters": {"frames": 300000, "hits": 0.06, "threshold": 10, "image": "modules"}}), ("POST", "sessions/jungfrau-demo/start", {})], "what was asked of the service")
        first = browser.until(FRAME, "a frame")
        browser.until(f"{FRAME} > {first}", "the next frame")
        browser.until("document.querySelector('.summary.good')", "the ledger to say that nothing is lost")
        check(not browser.run("document.querySelector('.ledger').classList.contains('lit')"), "the ledger is lit, and nothing is lost")
        mock.lose(7, "damaged", 1)
        browser.until("document.querySelector('.ledger.lit')", "the ledger to light up")
        browser.until("document.querySelector('.tile.bad b')?.innerText === '14'", "the number of losses")
        said = browser.text(".cause")
        check("Some packets of the module-frame are missing." in said and "What to do:" in said and "module 1" in said and "incomplete: damaged" in said, said)
        check("14 lost" in browser.until("document.title.includes('lost') && document.title", "the title to say it"), "the title")
        browser.click("Pause")
        browser.until("document.querySelector('.pill.paused')", "the pause")
        browser.click("Resume")
        browser.until("document.querySelector('.pill.running')", "the run to go on")
        browser.click("Stop")
        browser.until("document.querySelector('.pill.ended')", "the end")
        check("Ended early" in browser.text(".problem"), "why it ended")
        equal([verb for _, verb, _ in mock.calls[2:]], [f"sessions/jungfrau-demo/{verb}" for verb in ("pause", "resume", "stop")], "commands")


@case("a form says what is wrong, and sends what it shows")
def _(_folder):
    with page("empty", "") as (browser, mock):
        browser.click("Start")
        browser.until("document.querySelectorAll('dialog .choice').length === 3", "the choices")
        check(browser.run("document.querySelectorAll('dialog .choice')[2].disabled && document.querySelectorAll('dialog .choice')[2].innerText.includes('out of range')"), "an experiment that is not valid can be chosen")
        browser.run("document.querySelector('dialog .choice').click()")
        browser.fill("#parameter-frames", 99000000)
        check(not browser.run("document.querySelector('dialog form').checkValidity()"), "a number out of its range is accepted")
        browser.run("document.querySelector('dialog form').noValidate = true")
        browser.click("dialog [type=submit]".replace("dialog ", ""))
        browser.until("document.querySelector('#parameter-frames-mistake')?.innerText === 'Takes a number from 1 to 10000000.'", "the service's answer at the field")
        equal([call[2]["parameters"]["frames"] for call in mock.calls], [99000000], "calls")
        browser.fill("#parameter-frames", 400000)
        browser.click("[type=submit]")
        browser.until("document.querySelector('.pill.running')", "the run to start")
        equal(mock.calls[1][2]["parameters"]["frames"], 400000, "the parameter that was put right")


@case("a form marks the fields that are wrong, by their labels, with exact ranges; all fields are of one width")
def _(_folder):
    with page("empty", "") as (browser, _):
        browser.click(".choice")
        browser.fill("#parameter-frames", 99000000)
        browser.fill("#parameter-threshold", 0)
        browser.run("document.querySelector('dialog form').noValidate = true")
        said = browser.text("dialog")
        check("1 to 10,000,000" in said and "1 to 32,767" in said and "0: until it is stopped" not in said, said)
        browser.click("[type=submit]")
        browser.until("document.querySelectorAll('dialog [aria-invalid]').length === 2", "the marks")
        equal(browser.run("[...document.querySelectorAll('dialog [aria-invalid]')].map((e) => e.id)"), ["parameter-frames", "parameter-threshold"], "fields that are marked")
        said = browser.text(".problems")
        check("Frames, Threshold" in said and "parameters." not in browser.text("dialog"), said)
        equal(browser.run("new Set([...document.querySelectorAll('dialog .input > :first-child')].map((e) => Math.round(e.getBoundingClientRect().width))).size"), 1, "widths of fields")
        browser.complaints()


@case("the ledger of a run under way: what the watermark proves to be safe is stored, the rest is pending")
def _(_folder):
    with page() as (browser, mock):
        cells = "Object.fromEntries([...document.querySelectorAll('.ledger tbody tr')].map((row) => [row.querySelector('th').innerText, Number(row.querySelector('.total').innerText.replaceAll(',', ''))]))"
        browser.until(f"{cells}.stored > 10000 && {cells}.pending > 0", "what is stored")
        for _ in range(10):
            with mock.lock:
                shown, session = browser.run(cells), mock.sessions["jungfrau-demo"]
                check(0 < shown["stored"] <= 2 * session.safe, f"{shown['stored']} shown as stored, {2 * session.safe} are")
            time.sleep(0.2)
        browser.run("document.querySelector('.ledger').scrollIntoView()")
        with mock.lock:
            mock.sessions["jungfrau-demo"].state = "paused"
        browser.until(f"{cells}.stored > 0 && document.querySelector('.pill.paused') && !{cells}.pending", "everything to be stored")


# ---- what is old is not live ----

@case("an image of more than two seconds is visibly old, and why is said")
def _(_folder):
    with page() as (browser, mock):
        browser.until(FRAME, "a frame")
        check(not browser.run(OLD), "a new image is old")
        mock.freeze_images()
        browser.until(f"{OLD} && document.querySelector('.cover').innerText.startsWith('Not live:')", "the image to be called old")
        age = float(browser.text(".age.old").split()[0])
        check(2 <= age < 30, f"an age of {age} s")
        mock.freeze_images(False)
        browser.until(f"!{OLD} && document.querySelector('.cover').innerText === ''", "the image to be live again")
        browser.keys(" ")
        browser.until(f"{OLD} && document.querySelector('.cover').innerText.includes('frozen by you')", "a frozen image to be called so")
        browser.keys(" ")
        browser.until(f"!{OLD}", "the image to go on")


@case("a service that is gone: since when, nothing as if it were live, and back again")
def _(_folder):
    with page() as (browser, mock):
        browser.until(FRAME, "a frame")
        mock.refuse()
        said = browser.until("!document.querySelector('#alarm').hidden && document.querySelector('#alarm').innerText", "the alarm")
        check(re.match(r"Connection lost since \d\d:\d\d:\d\d \(", said), said)
        browser.until(f"{OLD} && document.querySelector('.cover').innerText.includes('connection lost')", "the image to be called old")
        check(browser.run("[...document.querySelectorAll('.buttons button')].every((b) => b.disabled)"), "buttons without a service")
        check("no connection" in browser.run("document.title"), "the title")
        mock.refuse(False)
        browser.until(f"document.querySelector('#alarm').hidden && !{OLD}", "the page to be live again")
        browser.complaints()  # requests that failed were meant to


@case("a stream that stays open and says nothing is given up", long=True)
def _(_folder):
    with page() as (browser, mock):
        browser.until(FRAME, "a frame")
        mock.stalled = True
        browser.until("!document.querySelector('#alarm').hidden", "the silence to be noticed", 30)
        mock.stalled = False


@case("paused, ended, crashed, at fault, none: each says so")
def _(_folder):
    for scene, said in (("paused", "the run is paused"), ("ended", "the run has ended")):
        with page(scene) as (browser, _):
            browser.until(f"document.querySelector('.cover')?.innerText.includes('{said}')", said)
    with page("crashed") as (browser, mock):
        browser.until("document.querySelector('.problem')?.innerText.includes('recovers its files by itself') && document.querySelector('.known')?.innerText.includes('81920 frames are safe')", "what becomes of the files")
        check("RUN-FOLDER" not in browser.text("main") and "/data/runs/000008" in browser.text(".known"), browser.text("main"))
        browser.click("Forget")
        browser.until("location.hash === '#/'", "the overview")
        equal(mock.calls, [("DELETE", "sessions/jungfrau-demo", {})], "calls")
    with page("fault") as (browser, _):
        browser.until("document.querySelector('.problem')?.innerText.includes('cannot bind 10.0.0.5:4791')", "the error")
        check("jungfrau-demo.yaml:14" in browser.text(".problem") and "set link.listen" in browser.text(".problem"), browser.text(".problem"))
        check(not browser.run("document.querySelector('.ledger').classList.contains('lit')"), "a run that never began has lost nothing")
    with page("empty", "") as (browser, _):
        browser.until("document.querySelector('.empty')?.innerText.includes('No session is running')", "that there is no session")


@case("a session that crashes while it is looked at")
def _(_folder):
    with page() as (browser, mock):
        browser.until(FRAME, "a frame")
        mock.crash()
        browser.until("document.querySelector('.pill.crashed') && document.querySelector('.session.past') && document.querySelector('.tiles').innerText.includes('before the crash')", "the crash")
        browser.until(f"{OLD} && document.querySelector('.cover').innerText.includes('crashed')", "the image to be called old")


@case("a crashed run: what is known of it, what was recovered, its log, and no empty picture")
def _(_folder):
    with page("crashed", "#/run/8") as (browser, _):
        browser.until("document.querySelector('.problem')?.innerText.includes('/data/runs/000008/run.nxs recovered: ')", "the recovered file")
        browser.until("document.querySelector('.big-picture')?.innerText.includes('no picture') && document.querySelector('pre')?.innerText.includes('threads:')", "why there is no picture, and the log")
        check(not browser.run("document.querySelector('.ledger')"), "a ledger of a run that has none")
    with page("elsewhere", "#/session/shell1") as (browser, mock):
        browser.until(FRAME, "a frame")
        mock.crash("shell1")
        browser.until("document.querySelector('.problem')?.innerText.includes('sluice recover /other/runs/000001/FILE.nxs')", "the folder of the run")


@case("what is past is shown as such: last frame in full contrast, the run's picture, the numbers of the run before")
def _(_folder):
    for scene, said, age in (("paused", "the run is paused", "s old"), ("ended", "the run has ended", "last frame")):
        with page(scene) as (browser, _):
            browser.until(f"{OLD} && document.querySelector('.cover').innerText.includes('{said}')", said)
            equal(browser.run("getComputedStyle(document.querySelector('.stage canvas')).filter"), "none", f"filter of the image, {scene}")
            check(browser.run("document.querySelector('.stage').classList.contains('calm')") and age in browser.text(".age.calm"), f"{scene}: an alarm, or no age")
    with page("ended", "") as (browser, mock):
        mock.sessions["jungfrau-demo"].shared = False
        browser.open(mock.url)
        browser.run("location.reload()")
        browser.until("document.querySelector('.session-card .picture')?.width > 200", "the picture of the run in its card")
        browser.run("location.hash = '#/session/jungfrau-demo'")
        browser.until("document.querySelector('.still')?.offsetWidth > 200 && document.querySelector('.frame-number').innerText === 'picture of run 8' && document.querySelector('.cover').innerText === ''", "the run's picture")
        browser.complaints()
    with page("ended") as (browser, mock):
        browser.until(FRAME, "a frame")
        mock.command(mock.sessions["jungfrau-demo"], "configure", {})
        browser.until("document.querySelector('.pill.configured') && document.querySelector('.cover').innerText.includes('ready for the next run')", "that it is ready")
        check("last run 8" in browser.text(".about") and "run 8" in browser.text(".far") and "mean of the run" in browser.text(".tiles"), browser.text(".strip"))
        del mock.sessions["jungfrau-demo"]
        browser.until("document.querySelector('.problem')?.innerText.includes('was closed') && document.querySelector('.problem a')?.hash === '#/run/8'", "that the session was closed")
    with page("running", "#/session/nope") as (browser, _):
        browser.until("document.querySelector('.problem')?.innerText.includes(\"There is no session 'nope'\")", "that there is no such session")


# ---- sessions that are not of this service ----

@case("a run below another root is not taken for the run of that number in our history, nor its file for ours")
def _(_folder):
    with page("elsewhere", "#/session/shell1") as (browser, mock):
        browser.click("Why was this lost?")
        browser.until("document.querySelector('dialog')?.innerText.includes('receive buffer is too small')", "the explanation of the session")
        browser.keys("\ue00c")
        mock.explains = False
        browser.click("Why was this lost?")
        browser.until("document.querySelector('dialog')?.innerText.includes('sluice explain /other/runs/000001')", "how it is explained")
        browser.keys("\ue00c")
        browser.complaints()
        check(not browser.run("document.querySelector('main a[href^=\"#/run/\"]')"), "a link to a run of that number")
        browser.click("Stop")
        browser.until("document.querySelector('.pill.ended')", "the end")
        browser.click("Start again")
        browser.until("document.querySelector('.pill.running')", "the next run")
        equal([path for _, path, _ in mock.calls], ["sessions/shell1/stop", "sessions/shell1/start"], "calls: without the form of another file")
        equal({path for path in mock.asked if path.startswith("runs/")}, set(), "runs that were asked for")


@case("start again: the form has the values that the session has, and configures it only where one was changed")
def _(_folder):
    with page("empty", "") as (browser, mock):
        browser.click(".choice")
        browser.fill("#parameter-frames", 300000)
        browser.click("[type=submit]")
        for frames, configured in ((300000, False), (200000, True)):
            browser.until("document.querySelector('.pill.running')", "the run")
            browser.click("Stop")
            browser.until("document.querySelector('.pill.ended')", "the end")
            before = len(mock.calls)
            browser.click("Start again")
            browser.find("#parameter-frames")
            equal(browser.run("document.querySelector('#parameter-frames').value"), "300000", "the value of the session")
            browser.fill("#parameter-frames", frames)
            browser.click("[type=submit]")
            browser.until("document.querySelector('.pill.running') && !document.querySelector('dialog')", "the next run")
            verbs = [path.split("/")[-1] for _, path, _ in mock.calls[before:]]
            equal(verbs, ["configure", "start"] if configured else ["start"], "calls")
        equal(mock.sessions["jungfrau-demo"].parameters["frames"], 200000, "the value that was filled in")


# ---- who may what ----

@case("a token is asked for, a wrong one refused, the right one kept for this tab alone")
def _(_folder):
    with page("token") as (browser, _):
        browser.until("document.querySelector('dialog input[type=password]')", "the question")
        browser.until("document.querySelector('#alarm').innerText.includes('asks for a token')", "the alarm")
        browser.fill("[type=password]", "wrong")
        browser.click("Continue")
        browser.until("document.querySelector('dialog')?.innerText.includes('refused')", "the refusal")
        browser.fill("[type=password]", "secret")
        browser.click("Continue")
        browser.until(FRAME, "a frame")
        equal(browser.run("[sessionStorage.getItem('sluice-token'), localStorage.getItem('sluice-token'), document.cookie]"), ["secret", None, ""], "where the token is")
        browser.run("sessionStorage.clear()")


@case("whoever may only look has no buttons, and is told why")
def _(_folder):
    with page("view") as (browser, _):
        browser.until("document.querySelector('.reason')?.innerText.includes('needs operate')", "the reason")
        equal(browser.run("document.querySelectorAll('.buttons button').length"), 0, "buttons")
        check(browser.run("document.querySelector('#top .button').hidden"), "the start button is there")
        browser.keys("px")
        time.sleep(0.3)
        check(browser.run("document.querySelector('.pill').innerText") == "running", "a key did what this role may not")


# ---- the image ----

@case("zoom asks for the part that is seen in full resolution; the value under the pointer is the service's")
def _(_folder):
    with page() as (browser, mock):
        browser.until("document.querySelector('.readout').innerText.includes('maxima of')", "a binned image")
        for _ in range(4):
            browser.point(".canvas-box", 60, -40, wheel=-400)
        browser.until("!document.querySelector('.readout').innerText.includes('max of') && document.querySelector('.readout').innerText.includes('row')", "full resolution")
        browser.click("freeze the image")
        browser.point(".canvas-box", 60, -40)
        said = browser.until("document.querySelector('.readout').innerText.match(/row (\\d+).*column (\\d+).*?([\\d,]+) photons/)?.slice(1)", "a value")
        row, column, value = (int(each.replace(",", "")) for each in said)
        check(any(frame[row, column] == value for frame, _ in mock.images.frames), f"{value} photons at row {row}, column {column}: no frame has that")
        check(" \u00c5" in browser.text(".readout"), "a resolution")
        browser.keys("f")
        check(browser.run("!document.querySelector('.canvas-box').classList.contains('zoomed')"), "the whole image")


@case("keys: colours, overlays, help")
def _(_folder):
    with page() as (browser, _):
        browser.until(FRAME, "a frame")
        pressed = "[...document.querySelectorAll('.chip[data-key]')].map((chip) => chip.getAttribute('aria-pressed')).join()"
        equal(browser.run(pressed), "true,true,true,true,true", "what is on")
        browser.keys("lmkob")
        equal(browser.run(pressed), "false,false,false,false,false", "after its keys")
        browser.keys("lmkob")
        browser.keys("c")
        equal(browser.run("document.querySelector('.picks select:last-child').value"), "heat, inverted", "the next colours")
        browser.run("localStorage.clear()")
        browser.keys("?")
        browser.until("document.querySelector('dialog')?.innerText.includes('resolution rings')", "the help")
        browser.keys("\ue00c")
        browser.until("!document.querySelector('dialog')", "the help to go")
        browser.keys("r")
        browser.until("location.hash === '#/runs' && document.querySelectorAll('.run-card').length === 8", "the history")


@case("one image request at a time, however slow the service is")
def _(_folder):
    with page() as (browser, mock):
        browser.until(FRAME, "a frame")
        mock.slow_s = 0.3
        before = mock.images_sent
        time.sleep(2)
        check(mock.images_sent >= before + 2, "no images")
        equal(mock.most_at_once, 1, "image requests at the same time")


# ---- history, texts, layout ----

@case("the history has a picture of each run, and a page for it")
def _(_folder):
    with page("running", "#/runs") as (browser, _):
        browser.until("document.querySelectorAll('.run-card').length === 8 && document.querySelectorAll('.run-card .picture')[0].width > 200", "cards with pictures")
        check("212 lost or damaged" in browser.text(".run-card"), "a loss of an earlier run")
        browser.run("location.hash = '#/run/3'")
        browser.until("document.querySelector('.ledger.lit') && document.querySelector('.big-picture canvas').width > 200", "the run")
        browser.click("Why was this lost?")
        browser.until("document.querySelector('dialog')?.innerText.includes('receive buffer is too small')", "the explanation")
        browser.keys("\ue00c")
        browser.click(".detail summary")
        browser.until("document.querySelector('pre')?.innerText.includes('the ledger closes')", "the log")
        browser.run("location.hash = '#/run/99'")
        browser.until("document.querySelector('main').innerText.includes('There is no run 99')", "that there is none")
        browser.complaints()


@case("texts of others are texts: nothing that they contain becomes an element")
def _(_folder):
    evil = '<img src=x onerror="document.title=1"><b class=evil>'
    with page("running", "") as (browser, mock):
        session = mock.sessions["jungfrau-demo"]
        mock.experiments[0]["title"] = mock.experiments[1]["name"] = mock.experiments[2]["error"]["message"] = evil
        session.experiment = session.early = session.error = evil
        session.state, session.link = "fault", evil
        browser.open(mock.url)
        browser.run("location.reload()")
        browser.until("document.querySelectorAll('.choice').length === 3 && document.querySelector('.session-card')", "the overview")
        check(evil in browser.text("main"), "the text is not shown")
        browser.open(mock.url + SESSION)
        browser.until(f"document.querySelector('.problem')?.innerText.includes('onerror')", "the error")
        browser.run("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        time.sleep(0.7)
        equal(browser.run("document.querySelectorAll('.evil, main img').length"), 0, "elements made of texts")


@case("characters that would turn a text around are shown as what they are")
def _(_folder):
    with page("names", "#/session/jungfrau-demo") as (browser, _):
        browser.until(FRAME, "a frame")
        browser.run("document.querySelectorAll('details.detail').forEach((each) => (each.open = true))")
        browser.until("document.querySelector('.details').innerText.includes('a<U+202E>gnp.exe')", "the mark in words")
        check(not browser.run("/[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.innerText)"), "a mark as itself")


WIDE = """[...document.querySelectorAll('#top *, main *, dialog *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, pre, .menu') && e.getBoundingClientRect().width > 0)
    .map((e) => e.tagName + '.' + e.className).slice(0, 5).concat(document.documentElement.scrollWidth > 391 ? ['the page: ' + document.documentElement.scrollWidth] : [])"""


@case("no view is wider than a phone, however long names are")
def _(_folder):
    for scene, where in (("loss", SESSION), ("many", ""), ("running", "#/runs"), ("running", "#/run/3"), ("crashed", "#/run/8"), ("crashed", SESSION), ("names", ""), ("names", f"#/session/{'L' * 63}"), ("names", f"#/session/{'M' * 63}")):
        with page(scene, where, 390, 844, False) as (browser, _):
            browser.until("document.querySelector('.panel') && document.querySelector('.connection.live') && document.body.innerText.length > 100", "the view")
            browser.run("document.querySelectorAll('details.detail').forEach((each) => (each.open = true))")
            time.sleep(0.7)
            equal(browser.run(WIDE), [], f"what is wider than the screen in {scene} {where}")
            if scene == "names" and not where:
                browser.click("Start")
                browser.until("document.querySelectorAll('dialog .choice').length === 4", "the choices")
                equal(browser.run(WIDE), [], "what is wider than the screen in the choices")
                browser.run("[...document.querySelectorAll('dialog .choice')].at(-1).click()")
                browser.find("#session-name")
                equal(browser.run(WIDE), [], "what is wider than the screen in the form")


@case("Sessions, Runs and the session that is shown are always in the header; the others in its menu")
def _(_folder):
    seen = "[...document.querySelectorAll('.tabs > a')].filter((e) => e.getBoundingClientRect().right <= document.querySelector('#top .button').getBoundingClientRect().left && e.offsetParent).map((e) => e.innerText.trim())"
    for width, name in ((1440, "g"), (1024, "session-f"), (390, "g")):
        with page("names", f"#/session/{name}", width, 900) as (browser, _):
            browser.until("document.querySelector('.more')", "the menu")
            tabs = browser.run(seen)
            equal(tabs[:2], ["Sessions", "Runs"], f"tabs at {width}")
            check(name in tabs or width == 390, f"{name} is not among {tabs}")
            equal(browser.run("document.querySelectorAll('.tabs > a:not([href=\"#/\"]):not([href=\"#/runs\"]), .menu a').length"), 8, "sessions in the header and its menu")
            check(width > 500 or not browser.run("document.querySelector('.connection').offsetParent"), "a dot beside the tabs")
            browser.click(".more summary")
            browser.until("document.querySelector('.menu').offsetWidth > 100", "the menu to open")
            browser.run("document.querySelector('.menu a').click()")
            browser.until("!document.querySelector('.more')?.open && decodeURIComponent(location.hash) !== '#/session/" + name + "'", "another session")


@case("a drawing that follows its element is told the new size before it is drawn")
def _(_folder):
    with page() as (browser, _):
        said = browser.run("""import('./assets/dom.js').then(({Sheet, h}) => new Promise((done) => {
            const box = h('div.plot'), said = [];
            document.body.append(box);
            const sheet = new Sheet(box, (_, width) => said.push(`draw ${width}`));
            sheet.onresize = () => said.push(`size ${sheet.width}`);
            box.style.width = '300px';
            setTimeout(() => (box.style.width = '200px'), 200);
            setTimeout(() => (sheet.close(), box.remove(), done(said)), 500);
        }))""")
        sizes = [each for each in said if "300" in each or "200" in each]
        equal(sizes[:2] + sizes[-2:], ["size 300", "draw 300", "size 200", "draw 200"], "what came first")


@case("wide screens: both columns of a session end at one height, and words wrap as wholes")
def _(_folder):
    for scene in ("running", "loss"):
        with page(scene, SESSION, 1440, 900) as (browser, _):
            browser.until(f"{FRAME} && document.querySelector('.profile').offsetHeight > 100", "a profile")
            ends = browser.run("[...document.querySelectorAll('.session .column')].map((e) => e.lastElementChild.getBoundingClientRect().bottom)")
            check(abs(ends[0] - ends[1]) < 2, f"columns end at {ends}")
            check("whole run" in browser.text(".tiles"), "of when the latency is")
            check(browser.run("document.querySelector('.colourbar').getBoundingClientRect().bottom <= innerHeight"), "the colour bar is cut off")


# ---- with the service itself ----

# Few enough frames a second that a busy machine keeps pace; shared memory, as others may have UDP port 4791.
DEMO = {
    "detector": {"kind": "jungfrau", "modules": 2, "rows": None, "columns": None, "dark_frames": 16, "frames": 100000, "frame_rate_Hz": 20, "hit_fraction": 0.9, "photon_energy_keV": 12.4, "pool": 7},
    "parameters": {"drop": {"path": "frontend.drop", "label": "Packets to drop", "max": 0.5}},
    "stages": [{"correct": {"output": "photons_i16"}}, {"veto": {"threshold": 10, "min_pixels": 5}}, {"integrate": {"bins": 100}}, "peaks"],
    "sinks": ["verify"], "link": {"kind": "shm"}, "control": {"port": 0},
}


@case("sluice serve: a run is started by clicks, its frames move; one that drops packets lights up; both are in the history")
def _(folder):
    if missing():
        skip(missing())
    with serving(folder) as service:
        put_experiment(service, "demo", **DEMO)
        with browsing() as browser:
            browser.open(f"http://127.0.0.1:{service.port}/")
            by_clicks(browser, service)


def by_clicks(browser, service):
    browser.click(".choice")
    browser.find("#parameter-drop")
    browser.click("[type=submit]")
    first = browser.until(f"document.querySelector('.pill.running') && {FRAME}", "a frame of the run")
    browser.until(f"{FRAME} > {first}", "the next frame")
    browser.until("document.querySelector('.readout').innerText.includes('1030 \u00d7 1064 pixels')", "the shape of the image")
    browser.until("!document.querySelector('.profile').hidden && document.querySelector('.summary.good')", "a profile, and a ledger without a loss")
    browser.click("Pause")
    browser.until(f"document.querySelector('.pill.paused') && {OLD} && document.querySelector('.cover').innerText.includes('paused')", "the pause, and its image to be old")
    browser.click("Resume")
    browser.until(f"document.querySelector('.pill.running') && !{OLD}", "the run to go on")
    browser.click("Stop")
    browser.until("document.querySelector('.pill.ended')", "the end")
    browser.click("Start again")
    browser.fill("#parameter-drop", "0.3")
    browser.click("[type=submit]")
    browser.until("document.querySelector('.ledger.lit') && document.querySelector('.pill.running')", "the loss to light up")
    said = browser.text(".cause")
    check("Nothing of the module-frame arrived." in said and "What to do:" in said, said)
    browser.click("Stop")
    browser.until("document.querySelector('.pill.ended')", "the end")
    browser.click("Start again")
    browser.find("#parameter-drop")
    equal(browser.run("document.querySelector('#parameter-drop').value"), "0.3", "the value that the session has, not that of the file")
    browser.keys("\ue00c")
    browser.click("Why was this lost?")
    browser.until("document.querySelector('dialog .said')?.innerText.length > 20 && document.querySelector('dialog').innerText.includes('What to do:')", "an explanation")
    browser.keys("\ue00c")
    equal([service.get(f"/runs/{run}")["result"] for run in (1, 2)], ["intact", "damaged"], "results of the runs")
    browser.click("Runs")
    browser.until("document.querySelectorAll('.run-card').length === 2 && [...document.querySelectorAll('.run-card canvas')].every((canvas) => canvas.width > 300)", "both runs, with pictures")
    check("damaged" in browser.text(".run-card.bad") and "run 1" not in browser.text(".run-card.bad"), browser.text(".run-card"))
    browser.click(".run-card.good")
    browser.until("document.querySelector('h1')?.innerText === 'Run 1' && document.querySelector('.summary.good')", "the first run")


@contextlib.contextmanager
def browsing():
    """The browser; in the end nothing may have been written to the console."""
    browser = Shared.get()
    browser.emulate(1440, 900)
    browser.complaints()
    try:
        yield browser
        complaints = browser.complaints()
    finally:
        browser.open("about:blank")
    equal(complaints, [], "what the console has")


@case("sluice serve: a run with several transfers is shown together: rates and losses of all, each beside the others, live and afterwards")
def _(folder):
    with serving(folder) as service, browsing() as browser:
        links = {name: {"link": {"listen": address(m + 1)}, "first_module": m, "modules": 1} for m, name in enumerate(("left", "right"))}
        links["right"]["frontend"] = {"drop": 0.2}
        path = experiment(folder, name="two.yaml", detector=SLOWLY, link={"kind": "udp", "source": address(3)}, control={"port": 0}, sinks=["null"],
                          ring={"late_timeout_ms": 300}, transfers=links)
        run = Program("run", path, "--root", service.root, "--still", folder=folder)
        wait_for("both sessions", lambda: {"two.left", "two.right"} <= {one["name"] for one in service.get("/sessions")["sessions"]})
        service.until("two.right", "running", "ended")
        browser.open(f"http://127.0.0.1:{service.port}/#/session/two.left")
        browser.until("document.querySelectorAll('table.transfers tbody tr').length === 3 && document.querySelector('table.transfers tr.lit')", "a table of both, lit")
        rows = browser.run("[...document.querySelectorAll('table.transfers tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))")
        equal([row[0] for row in rows], ["left", "right", "together"], "rows")
        equal(rows[0][5], "0", "lost of the transfer that loses nothing")
        check(rows[1][5] != "0" and rows[1][5] == rows[2][5], f"lost of the other, and of both: {rows}")
        check("lit" not in browser.run("document.querySelector('section.ledger').className"), "the ledger of this transfer lights up for another")
        browser.click("right")
        browser.until("location.hash === '#/session/two.right' && document.querySelector('section.ledger.lit')", "the page of the other transfer")
        run.send(signal.SIGINT)
        run.ends(2)
        result = json.loads((service.root / "000001/result.json").read_text())["transfers"]
        row = next(one for one in service.get("/runs")["runs"] if one["run"] == 1)
        equal((row["transfers"], row["frames"]), (2, sum(one["frames"]["settled"] for one in result.values())), "the run in the list")
        browser.open(f"http://127.0.0.1:{service.port}/#/run/1")
        browser.until("document.querySelector('section.ledger.lit') && document.querySelectorAll('table.transfers tbody tr').length === 3", "the run")
        cells = browser.run("Object.fromEntries([...document.querySelectorAll('section.ledger tbody tr')].map((row) => [row.cells[0].innerText, [...row.cells].slice(1, 4).map((cell) => Number(cell.innerText.replaceAll(',', '')))]))")
        for name in ("stored", "incomplete", "lost"):
            of_each = [one["ledger"]["total"]["outcomes"].get(name, 0) for one in result.values()]
            equal(cells[name], [*of_each, sum(of_each)], f"{name}: left, right, total")
        sent = [one["ledger"]["total"]["sent"] for one in result.values()]
        equal(cells["sent"], [*sent, sum(sent)], "sent: left, right, total")
        browser.run("[...document.querySelectorAll('details')].at(-1).open = true")
        browser.until("[...document.querySelectorAll('details')].at(-1).innerText.includes('first_module')", "the experiment of the last transfer")
        check("Latency by hop, left" in browser.text("main") and "sinks of right" in browser.text("main"), "latencies and sinks of each")
        check(browser.run("document.querySelector('section.ledger').innerText").count("transfer right"), "which transfer has the loss")


@case("sluice serve: the page is smaller than 165 kB, and all of its files are there")
def _(folder):
    with serving(folder) as service:
        names = ["", *(f"assets/{path.name}" for path in sorted((ROOT / "web").glob("*")) if path.is_file() and path.suffix != ".md" and path.name != "index.html")]
        answers = {name: service.raw("GET", f"/{name}") for name in names}
        equal({name: answer.status for name, answer in answers.items() if answer.status != 200}, {}, "files that are not served")
        total = sum(len(answer.body) for answer in answers.values())
        check(50_000 < total < 165_000, f"{total} bytes in all")
        for name, answer in answers.items():
            check("unsafe" not in answer.headers["content-security-policy"] and "'self'" in answer.headers["content-security-policy"], name)
        for name in names:
            if name.endswith(".js"):  # comments are left out, and lines keep their numbers
                source = (ROOT / "web" / name.removeprefix("assets/")).read_bytes()
                equal(answers[name].body.count(b"\n"), source.count(b"\n"), f"lines of {name}")
                check(source.startswith(b"// ") and not answers[name].body.startswith(b"// "), f"{name} is served with its comments")


if __name__ == "__main__":
    check(pathlib.Path(ROOT / "web/index.html").is_file(), "no page here")
    main()
