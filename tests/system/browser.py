"""browser.py - Debian's chromium by the WebDriver protocol, with nothing but http.client: opens pages, clicks, types, takes pictures.

    with Browser(folder) as browser:
        browser.open(url)
        browser.click("Start")
        browser.until("document.title.includes('running')", "the run to start")
"""

import base64
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class BrowserError(Exception):
    pass


def missing():
    """What is not installed, in words; None: it is all there."""
    for program, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver")):
        if not shutil.which(program):
            return f"no {program} here (Debian: {package})"
    return None


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Browser:
    """One chromium with a profile of its own below folder. No request leaves this host."""

    def __init__(self, folder, width=1440, height=900, timeout_s=60):
        self.folder, self.timeout_s = pathlib.Path(folder), timeout_s
        self.port = free_port()
        (self.folder / "home").mkdir(exist_ok=True)
        env = {**os.environ, "HOME": str(self.folder / "home"), "TZ": "UTC"}
        self.log = open(self.folder / "chromedriver.log", "wb")
        self.driver = subprocess.Popen([shutil.which("chromedriver"), f"--port={self.port}"], stdout=self.log, stderr=self.log, env=env, start_new_session=True)
        self.session = None
        try:
            self.wait_for_driver()
            options = {"binary": shutil.which("chromium"), "args": [*FLAGS, f"--user-data-dir={self.folder}/profile", f"--window-size={width},{height}"]}
            answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
            self.session = f"/session/{answer['sessionId']}"
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.session:
            with contextlib.suppress(BrowserError, OSError, http.client.HTTPException):
                self.call("DELETE", self.session, timeout_s=5)
        # The group: chromedriver and every chromium that it has started, also one whose page is in an endless loop.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait()
        self.log.close()

    def wait_for_driver(self):
        end = time.monotonic() + self.timeout_s
        while True:
            try:
                if self.call("GET", "/status")["ready"]:
                    return
            except OSError:
                pass
            if time.monotonic() > end or self.driver.poll() is not None:
                raise BrowserError("chromedriver does not answer")
            time.sleep(0.05)

    def call(self, method, path, body=None, timeout_s=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s or self.timeout_s + 30)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            value = json.loads(answer.read())["value"]
        finally:
            connection.close()
        if answer.status != 200:
            raise BrowserError(f"{method} {path}: {value.get('error')}: {value.get('message', '').splitlines()[:1]}")
        return value

    def post(self, path, body=None):
        return self.call("POST", self.session + path, body or {})

    # ---- pages ----

    def open(self, url):
        self.post("/url", {"url": url})

    def run(self, script, *arguments):
        """The value of a JavaScript expression."""
        return self.post("/execute/sync", {"script": f"return ({script})", "args": list(arguments)})

    def until(self, script, what, timeout_s=None):
        """Wait until an expression is true, and return it."""
        end = time.monotonic() + (timeout_s or self.timeout_s)
        while True:
            value = self.run(script)
            if value:
                return value
            if time.monotonic() > end:
                raise BrowserError(f"waited in vain for {what}: {script}")
            time.sleep(0.05)

    def text(self, selector):
        return self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.innerText).join('\\n')")

    def find(self, words, selector="button, a"):
        """The element that is seen and has exactly these words, or this selector where it begins with # or a dot."""
        if re.match(r"[#.\[]", words):
            script = f"document.querySelector({json.dumps(words)})"
        else:
            script = (f"[...document.querySelectorAll({json.dumps(selector)})].filter((e) => e.innerText.trim() === {json.dumps(words)} || "
                      f"e.getAttribute('aria-label') === {json.dumps(words)}).filter((e) => e.offsetParent !== null && !e.disabled).at(-1) ?? null")
        self.until(f"{script} !== null", f"'{words}' to be there")
        return self.run(script)[ELEMENT]

    def click(self, words):
        """A click of the mouse. An element that was made anew between finding and clicking is found again."""
        for attempt in range(5):
            try:
                return self.post(f"/element/{self.find(words)}/click")
            except BrowserError as problem:
                if attempt == 4 or "stale" not in str(problem) and "intercepted" not in str(problem):
                    raise
                time.sleep(0.1)

    def fill(self, selector, value):
        element = self.find(selector)
        self.post(f"/element/{element}/clear")
        self.post(f"/element/{element}/value", {"text": str(value)})

    def keys(self, keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.post("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def point(self, selector, x=0, y=0, wheel=0):
        """Move the mouse to x, y from the middle of an element, and turn its wheel."""
        origin = {ELEMENT: self.find(selector)}
        self.post("/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [{"type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": origin}]}]})
        if wheel:
            self.post("/actions", {"actions": [{"type": "wheel", "id": "wheel", "actions": [{"type": "scroll", "x": x, "y": y, "deltaX": 0, "deltaY": wheel, "origin": origin, "duration": 0}]}]})

    def complaints(self):
        """What the page or the browser wrote to the console, but for requests that failed: those a test causes."""
        return [entry["message"] for entry in self.post("/se/log", {"type": "browser"}) if entry["level"] in ("SEVERE", "WARNING") and "Failed to load resource" not in entry["message"]]

    # ---- pictures ----

    def emulate(self, width, height, scale=1, mobile=False, dark=True):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        if mobile:
            self.command("Emulation.setTouchEmulationEnabled", enabled=True)

    def command(self, name, **parameters):
        return self.post("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def picture(self, path, whole=False):
        data = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
