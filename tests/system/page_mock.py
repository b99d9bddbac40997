"""page_mock.py - a service with the HTTP API of `sluice serve` and nothing behind it: for the page's own tests and pictures.

  tests/system/page_mock.py [--port 8765] [--scene running|loss|paused|ended|crashed|empty|fault|many|names|elsewhere|token|view] [--large]

Then open http://127.0.0.1:8765/. Sessions make frames, hits and images by the clock; a test changes what happens by the methods of Mock
(lose, crash, freeze_images, ...) and looks at what the page has asked for (calls). Images are Poisson noise on powder rings with Bragg peaks.
"""

import argparse
import functools
import http.server
import json
import math
import pathlib
import random
import socket
import struct
import sys
import threading
import time
import urllib.parse
import zlib

import numpy as np

WEB = pathlib.Path(__file__).resolve().parents[2] / "web"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
CSP = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
       "frame-ancestors 'none'")
INVALID = -32768
ROOT, FOLDER = "/data/runs", "/data/experiments"
ROLES = ["view", "operate", "configure"]
OUTCOMES = {"dark": "vetoed", "stage": "vetoed", "damaged": "incomplete", "partner": "incomplete", "no_arrival": "lost", "no_slot": "overrun",
            "late": "incomplete", "sink": "unwritten", "slow": "unwritten"}


# ---- images ----

class Images:
    """A few frames of a detector of rows x columns, made once; each element shows one of them with its peaks."""

    def __init__(self, large, seed=7):
        rng = np.random.default_rng(seed)
        across, down, gap = (2, 4, 8) if large else (1, 2, 36)
        self.rows, self.columns = down * 514 + (down - 1) * 36, across * 1030 + (across - 1) * gap
        self.beam = (self.rows / 2 + 3.5, self.columns / 2 - 7.5)
        y, x = np.mgrid[0:self.rows, 0:self.columns].astype(np.float32)
        radius = np.hypot(y - self.beam[0], x - self.beam[1])
        flux = 1.4 * np.exp(-radius / 160) + 0.25 + 0.55 * np.exp(-((radius - 480) / 150) ** 2)
        for at, height, width in ((176, .5, 7), (305, .35, 8), (352, .8, 8), (610, .22, 10)):
            flux += height * np.exp(-((radius - at) / width) ** 2)
        flux[radius < 24] = 0
        flux[(y > self.beam[0]) & (np.abs(x - self.beam[1] - (y - self.beam[0]) * 0.075) < 7)] *= 0.06
        self.mask = np.zeros((self.rows, self.columns), bool)
        for i in range(1, down):
            self.mask[i * 514 + (i - 1) * 36:i * 550] = True
        for i in range(1, across):
            self.mask[:, i * 1030 + (i - 1) * gap:i * (1030 + gap)] = True
        self.mask[rng.integers(0, self.rows, 60), rng.integers(0, self.columns, 60)] = True
        self.frames = [self.draw(rng, flux) for _ in range(4)]
        self.rings = [{"d_A": d, "radius_pixels": 480 * math.tan(2 * math.asin(.5 / d)) / math.tan(2 * math.asin(.125))} for d in (8, 4, 3, 2.5, 2)]

    def draw(self, rng, flux):
        image = rng.poisson(flux).astype(np.int16)
        peaks = []
        for _ in range(int(rng.integers(50, 110))):
            row, column = int(rng.integers(8, self.rows - 8)), int(rng.integers(8, self.columns - 8))
            if math.hypot(row - self.beam[0], column - self.beam[1]) < 60 or self.mask[row - 3:row + 4, column - 3:column + 4].any():
                continue
            height = float(rng.lognormal(3.4, 0.8))
            y, x = np.mgrid[-3:4, -3:4]
            image[row - 3:row + 4, column - 3:column + 4] += rng.poisson(height * np.exp(-(x * x + y * y) / 2.2)).astype(np.int16)
            peaks.append([row + 0.5, column + 0.5, round(height * 6.9, 1)])
        image[self.mask] = INVALID
        return image, peaks

    def part(self, element, x, y, width, height, bins):
        image, peaks = self.frames[element % len(self.frames)]
        piece = image[y:y + height, x:x + width]
        rows, columns = -(-piece.shape[0] // bins), -(-piece.shape[1] // bins)
        padded = np.full((rows * bins, columns * bins), INVALID, np.int16)
        padded[:piece.shape[0], :piece.shape[1]] = piece
        return np.ascontiguousarray(padded.reshape(rows, bins, columns, bins).max((1, 3)).astype("<i2")), peaks

    def profile(self, element):
        q = np.linspace(0.05, 31.5, 500)
        rng = np.random.default_rng(element)
        y = 1.4 * np.exp(-q / 4) + .25 + .55 * np.exp(-((q - 15.8) / 5) ** 2)
        for at, height in ((5.7, .5), (9.9, .35), (11.4, .8), (19.8, .22)):
            y += height * np.exp(-((q - at) / .26) ** 2)
        y += rng.normal(0, .012, 500)
        return [*q, *[None] * 6, *y[6:], *(y * .03)]


@functools.lru_cache
def images(large):
    return Images(large)


def png(grey):
    """An 8-bit picture of rows of bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows, columns = grey.shape[:2]
    raw = b"".join(b"\0" + grey[row].tobytes() for row in range(rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(raw, 6)) + chunk(b"IEND", b"")


STOPS = np.array([[0, 0, 4], [66, 10, 104], [147, 38, 103], [221, 81, 58], [252, 165, 10], [252, 255, 164]], float)


def picture(images, element, bins=4):
    part, _ = images.part(element, 0, 0, images.columns, images.rows, bins)
    place = np.clip(np.log1p(np.maximum(part, 0)) / math.log1p(40), 0, 1) * (len(STOPS) - 1)
    low = np.minimum(place.astype(int), len(STOPS) - 2)
    colours = STOPS[low] + (STOPS[low + 1] - STOPS[low]) * (place - low)[..., None]
    colours[part == INVALID] = (58, 64, 72)
    return png(colours.astype(np.uint8))


# ---- sessions ----

class Session:
    """A session that makes frames by the clock. Counts only grow; what a test injects is added at the next look."""

    def __init__(self, name, experiment, run, state="running", rate=870, expected=400000, modules=2, already=0, root=ROOT, folder=FOLDER, parameters=None):
        self.root, self.place, self.parameters, self.metadata = root, folder, parameters or {}, {"title": "Lysozyme, serial", "sample": "lysozyme 12"}
        self.shared = True  # the share of the session still has images
        self.flushed, self.safe, self.flushed_at = 0, 0, time.time()  # frames below `flushed` are on disk; of a module's kept ones `safe`
        self.planned = run or 1  # the number of its first run, where it has had none
        run = None if state == "configured" else run
        self.name, self.experiment, self.run, self.state, self.rate, self.expected = name, experiment, run, state, rate, expected
        self.modules, self.crashed, self.images_frozen, self.error, self.early = modules, False, False, None, None
        self.settled, self.kept, self.causes, self.element = 0.0, 0.0, [{} for _ in range(modules)], 0
        self.started = time.time() - already
        self.looked = self.started
        self.ended = None
        self.image_at = time.time()
        self.gauge = 3.0
        self.lag = 1.0
        self.advance()

    def advance(self):
        now = time.time()
        if now - self.flushed_at > 1:  # as a file sink does: what was written is flushed once a second
            self.flushed, self.safe, self.flushed_at = int(self.settled), self.column(0)["pending"], now
        if self.state == "running":
            made = min((now - self.looked) * self.rate, self.expected - self.settled if self.expected else math.inf)
            self.settled += made
            self.kept += made * (0.062 + 0.02 * math.sin(now / 9))
            if self.expected and self.settled >= self.expected:
                self.finish()
            if not self.images_frozen and now - self.image_at > 0.1:
                self.element += 1
                self.image_at = now
            self.gauge = min(32, max(1, self.gauge + random.uniform(-1.6, 1.6) + (6 - self.gauge) * 0.1))
        self.looked = now

    def finish(self, state="ended"):
        self.state, self.ended, self.flushed = state, time.time(), int(self.settled)

    def begin(self):
        """The next run, or the first."""
        self.run = self.run + 1 if self.run else self.planned
        self.settled, self.kept, self.flushed, self.safe, self.causes, self.ended, self.early = 1, 0, 0, 0, [{} for _ in range(self.modules)], None, None
        self.started = self.looked = self.flushed_at = time.time()
        self.state, self.shared = "running", True

    @property
    def path(self):
        return f"{self.place}/{self.experiment}.yaml"

    @property
    def folder(self):
        return f"{self.root}/{self.run:06d}" if self.run and self.root else None

    def lose(self, n, cause, module):
        self.advance()
        self.causes[module][cause] = self.causes[module].get(cause, 0) + n
        if cause in ("damaged", "no_arrival"):
            for other in range(self.modules):
                if other != module:
                    self.causes[other]["partner"] = self.causes[other].get("partner", 0) + n

    def column(self, module):
        settled, kept = int(self.settled), int(self.kept)
        causes = {**self.causes[module]}
        bad = sum(causes.values())
        dark = min(128, settled)
        kept = min(kept, max(0, settled - bad - dark))
        causes |= {"dark": dark, "stage": max(0, settled - bad - dark - kept)}
        over = self.ended is not None  # only then frames that sinks took are stored
        outcomes = {"stored": kept} if kept and over else {}
        for cause, n in causes.items():
            if n:
                outcomes[OUTCOMES[cause]] = outcomes.get(OUTCOMES[cause], 0) + n
        return {"settled": settled, "sent": settled + (0 if over else int(self.gauge)), "skipped": 0, "pending": 0 if over else kept, "outcomes": outcomes, "causes": {k: v for k, v in causes.items() if v}}

    def total(self, columns):
        def sums(key):
            names = {name for column in columns for name in column[key]}
            return {name: sum(column[key].get(name, 0) for column in columns) for name in names}
        return {**{key: sum(column[key] for column in columns) for key in ("settled", "sent", "skipped", "pending")}, "outcomes": sums("outcomes"), "causes": sums("causes")}

    def latency(self):
        n = max(1, int(self.settled))
        base = {"wire": (.93, 3.1, 14), "assemble": (.18, 2.4, 21), "process": (2.4, 7.9, 33), "sink": (1.1, 9.6, 48), "total": (5.2, 18.4, 96)}
        wave = self.lag * (1 + .15 * math.sin(time.time() / 5))
        return {hop: {"count": n, "sum": int(n * p50 * 1.25e6), "p50": int(p50 * 1e6), "p99": int(p99 * 1e6 * wave), "p999": int(p99 * 1.9e6), "max": int(most * 1e6)} for hop, (p50, p99, most) in base.items()} if self.settled else {}

    def status(self):
        self.advance()
        now = time.time()
        columns = [self.column(module) for module in range(self.modules)]
        running = self.state == "running"
        rate = self.rate * (1 + .04 * math.sin(now / 3) + random.uniform(-.012, .012)) if running else 0
        module_bytes = 514 * 1030 * 2
        error = self.error and {"code": "address", "message": self.error, "where": f"{self.experiment}.yaml:14", "hint": "another receiver has it: end it, or set link.listen"}
        return {
            "schema": 1, "session": self.name, "state": self.state, "run": self.run, "folder": self.folder,
            "result": None if self.state != "ended" else "damaged" if any(self.causes) else "intact", "error": error, "experiment": self.path, "transfer": None,
            "taken_ns": int(now * 1e9) % 10**15, "taken_unix_ns": int(now * 1e9), "started_unix_ns": int(self.started * 1e9) if self.settled else None, "ended_unix_ns": int(self.ended * 1e9) if self.ended else None,
            "progress_age_ns": 3_000_000, "drained": self.state == "paused", "overrun": False, "deadline_us": None, "early": self.early, "stopped_by": "page" if self.early else None,
            "kind": "session", "parameters": self.parameters, "detector": {"kind": "jungfrau", "frames": self.expected, "dark_frames": 128, "rate_Hz": 0}, "flight": None,
            "frames": {"settled": int(self.settled), "expected": self.expected, "kept": int(self.kept), "broken": sum(self.causes[0].values()), "partial": 0, "prescaled": 0, "late": 0, "pixel_bytes": int(self.settled * module_bytes * self.modules), "items": 1},
            "rates": {"window_ns": 1_500_000_000, "frames_per_s": rate, "bytes_per_s": rate * module_bytes * self.modules} if self.settled else None,
            "ledger": {"closed": self.ended is not None, "misuse": 0, "unsaved": False, "total": self.total(columns), "modules": columns},
            "sources": {"alive": self.modules, "gone": 0, "one_way": False, "same_clock": True, "modules": [
                {"state": "running" if running else "done", "fell_short": False, "first": 0, "offered": self.expected, "reached": int(self.settled) + 4, "turned_away": 0, "returns": 0, "unfinished": None} for _ in range(self.modules)]},
            "link": {"kind": "udp", "guard": "enforced, credited", "proof": "packet count", "packets": int(self.settled * 257 * self.modules), "bytes": int(self.settled * module_bytes * self.modules), "marked": 0, "notified": 0,
                     "receive_buffer_bytes": 134217728, "dropped": {"gap": sum(causes.get("damaged", 0) for causes in self.causes) * 3} if any(self.causes) else {}},
            "latency_ns": self.latency(),
            "gauges": {"slots": {"now": int(self.gauge) if running else 0, "most": 27, "of": 32}, "unit": {"now": int(self.gauge * 1.1) if running else 0, "most": 40, "of": 48}, "sinks": {"now": int(self.gauge * .7) if running else 0, "most": 31, "of": 48}},
            "threads": {"polling": "adaptive", "crowded": True, "ring_node": None, "cpus": [], "pollers": 1, "workers": 2, "busy_ns": 10**9, "progress": [{"name": name, "age_ns": random.randrange(10**5, 4 * 10**6)} for name in ("link-0", "dispatcher", "settler", "worker-0", "worker-1", "sink-0")]},
            "addons": [
                {"name": "cpu", "kind": "unit", "where": None, "error": None, "age_ns": 10**6, "figures": {}, "texts": {}, "required": True, "pace": None},
                {"name": "nexus", "kind": "sink", "where": "run.nxs", "error": None, "age_ns": 10**6, "figures": {"frames": int(self.kept), "bytes": int(self.kept * 2e6), "bytes_stored": int(self.kept * 2.7e5), "rows_durable": self.flushed, "stalls": 0, "longest_put_us": 5395}, "texts": {}, "required": True,
                 "pace": {"on_slow": "wait", "waited_ns": 0, "left_out": 0, "waiting": {"now": 2, "most": 20, "of": 48}, "mark": 36, "factor": 1, "factor_changes": 0, "changes": []}},
                {"name": "share", "kind": "sink", "where": f"share:{self.name}", "error": None, "age_ns": 10**6, "figures": {"published": self.element}, "texts": {}, "required": False, "pace": None}],
            "metadata": self.metadata, "forecast": [{"path": "runs", "free_bytes": 82 * 10**9, "frame_bytes": 2117680, "needed_bytes": None if not self.expected else 12 * 10**9, "frames_fit": 38000, "fits": True}],
            "watermark": self.flushed, "too_slow": None}

    def entry(self):
        status = None if self.crashed else self.status()
        return {"name": self.name, "kind": "session", "alive": not self.crashed, "crashed": self.crashed, "answers": not self.crashed, "state": None if self.crashed else self.state, "experiment": self.path,
                "run": self.run or 0, "root": self.root, "folder": self.folder, "started_unix_ns": int(self.started * 1e9), "status": status}


CAUSES = [
    {"cause": "damaged", "words": "some packets of the module-frame are missing", "hint": "packets are lost between front end and receiver: look at drops of the NIC (ethtool -S), at the switch and at the receive buffers (sluice doctor), or use link.service: rc"},
    {"cause": "partner", "words": "the module itself is whole, another module of the frame is not", "hint": "mend the loss of the other module; with ring.incomplete: keep, frames that lack a module are processed all the same"},
    {"cause": "no_arrival", "words": "nothing of the module-frame arrived", "hint": "look whether the front end of that module sends, and at drops of the switch, the NIC and the socket (sluice doctor)"},
]
EXPERIMENTS = [
    {"name": "jungfrau-demo", "title": "Two Jungfrau modules: correction, veto, peaks, profiles, NeXus file", "valid": True, "parameters": [
        {"name": "frames", "path": "detector.frames", "label": "Frames", "type": "integer", "min": 1, "max": 10000000, "values": None, "unit": "frames", "doc": "how many bright frames to take; 0: until it is stopped", "value": 400000},
        {"name": "hits", "path": "detector.hit_fraction", "label": "Share of hits", "type": "number", "min": 0, "max": 1, "values": None, "unit": "", "doc": "of the emulated frames", "value": 0.06},
        {"name": "threshold", "path": "stages.veto.threshold", "label": "Threshold", "type": "integer", "min": 1, "max": 32767, "values": None, "unit": "photons", "doc": "a pixel is bright from here", "value": 10},
        {"name": "image", "path": "sinks.nexus.image", "label": "Images as", "type": "choice", "min": None, "max": None, "values": ["modules", "assembled", "none"], "unit": None, "doc": "", "value": "modules"}]},
    {"name": "eiger-pink", "title": "Eiger 4M, pink beam, every tenth frame", "valid": True, "parameters": []},
    {"name": "broken", "title": None, "valid": False, "error": {"code": "experiment", "message": "veto.threshold: 40000 is out of range (1 to 32767 photons)", "where": "broken.yaml:12", "hint": None}, "parameters": []},
]


def iso(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))


class Mock:
    """The whole service. All methods may be called by any thread."""

    def __init__(self, scene="running", large=False, port=0):
        self.lock = threading.RLock()
        self.images, self.role, self.token, self.calls, self.refusing = images(large), "configure", None, [], False
        self.experiments = [dict(experiment) for experiment in EXPERIMENTS]
        self.sessions, self.runs, self.stalled, self.asked, self.explains = {}, [], False, set(), True
        self.at_once = self.most_at_once = self.images_sent = self.slow_s = 0  # of image requests
        self.history(0 if scene == "empty" else 7)
        getattr(self, f"scene_{scene}")(8 if large else 2)
        mock = self

        class Handler(Answers):
            service = mock
        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def close(self):
        self.server.shutdown()
        self.server.drop()
        self.server.server_close()

    # ---- scenes ----

    def history(self, n):
        for run in range(1, n + 1):
            started = time.time() - (n - run + 1) * 3100
            row = self.row(run, "crashed" if run == 5 else "over", "jungfrau-demo", started, started + 140 + 61 * run, 122000 + 31000 * run)
            self.runs.append({**row, "result": "damaged" if run == 3 else row["result"], "lost": 6 if run == 3 else row["lost"], "damaged": 206 if run == 3 else row["damaged"]})

    @staticmethod
    def row(run, state, experiment, started, ended, frames):
        """A run as the list has it. Of one without a result little is known."""
        over = state == "over"
        return {"run": run, "state": state, "readable": True, "folder": f"{ROOT}/{run:06d}", "result": "intact" if over else None, "experiment": f"{experiment}.yaml" if over else None, "file": None, "started": iso(started), "ended": iso(ended) if ended else None,
                "error": None, "metadata": None, "frames": frames if over else None, "lost": 0 if over else None, "damaged": 0 if over else None, "picture": over, "recovered":
                {"when_unix_ns": time.time_ns(), "files": [{"file": "run.nxs", "recovered": True, "said": "run.nxs: 81920 frames are safe, 312 were cut"}]} if state == "crashed" else None}

    def add(self, session):
        self.sessions[session.name] = session
        if session.run and session.root == ROOT:
            self.runs.append(self.row(session.run, "live", session.experiment, session.started, None, 0))
        return session

    def scene_running(self, modules):
        return self.add(Session("jungfrau-demo", "jungfrau-demo", 8, modules=modules, already=148))

    def scene_loss(self, modules):
        session = self.scene_running(modules)
        session.lose(37, "damaged", 1)
        session.lose(5, "no_arrival", 1)

    def scene_paused(self, modules):
        session = self.scene_running(modules)
        session.state, session.image_at = "paused", time.time() - 14.2

    def scene_ended(self, modules):
        session = self.scene_running(modules)
        session.finish()
        session.image_at = time.time() - 14.2
        self.over(session)

    def scene_elsewhere(self, modules):
        """A session that was started by hand, of a file and below a root that are not ours: both have namesakes here."""
        self.add(Session("shell1", "jungfrau-demo", 1, modules=modules, already=30, root="/other/runs", folder="/other")).lose(37, "damaged", 1)

    def scene_fault(self, modules):
        session = self.add(Session("jungfrau-demo", "jungfrau-demo", 8, state="fault", modules=modules))
        session.error = "cannot bind 10.0.0.5:4791: address already in use"

    def scene_crashed(self, modules):
        self.scene_running(modules).crashed = True
        self.runs[-1] = self.row(8, "crashed", "jungfrau-demo", time.time() - 150, time.time() - 2, 0)

    def scene_names(self, modules):
        """Names as long as they may be, and many of them."""
        for i, name in enumerate(["L" * 63, "jungfrau-demo", "very-long-name-of-a-session.of-the-night.of-19-November", "c", "session-d", "session-e", "session-f", "g"]):
            self.add(Session(name, "W" * 59 if i == 0 else "jungfrau-demo", 8 + i, state="running" if i < 4 else "configured", modules=modules, already=20)).metadata = {"sample-" + "k" * 57: "v" * 300, "title": "a\u202egnp.exe"}
        self.experiments.append({**EXPERIMENTS[1], "name": "W" * 59, "title": "T" * 200})

    def scene_empty(self, modules):
        pass

    def scene_many(self, modules):
        self.scene_running(modules)
        self.add(Session("eiger-pink", "eiger-pink", 9, state="paused", rate=133, expected=None, modules=modules, already=61))
        self.add(Session("align", "eiger-pink", 10, state="configured", expected=2000, modules=modules))
        self.sessions["eiger-pink"].settled = 8113
        self.sessions["eiger-pink"].lose(4, "no_slot", 0)
        self.add(Session("night", "jungfrau-demo", None, modules=modules)).crashed = True

    def scene_token(self, modules):
        self.token = "secret"
        self.scene_running(modules)

    def scene_view(self, modules):
        self.role = "view"
        self.scene_running(modules)

    # ---- what a test does ----

    def lose(self, n, cause, module=0, name="jungfrau-demo"):
        with self.lock:
            self.sessions[name].lose(n, cause, module)

    def crash(self, name="jungfrau-demo"):
        with self.lock:
            self.sessions[name].crashed = True

    def freeze_images(self, frozen=True, name="jungfrau-demo"):
        with self.lock:
            self.sessions[name].images_frozen = frozen

    def refuse(self, refusing=True):
        """Answer nothing more, as a service that was killed; or answer again."""
        self.refusing = refusing
        if refusing:
            self.server.drop()

    # ---- commands ----

    def start(self, body):
        experiment = next((each for each in self.experiments if each["name"] == body.get("experiment")), None)
        if not experiment:
            raise Problem(404, "not_found", f"there is no experiment {body.get('experiment')}")
        name = body.get("name") or experiment["name"]
        if name in self.sessions and not self.sessions[name].crashed:
            raise Problem(409, "name", f"a session {name} is running", hint="choose another name")
        frames = (body.get("parameters") or {}).get("frames", 400000)
        values = self.values(experiment, body)
        self.sessions.pop(name, None)
        self.sessions[name] = Session(name, experiment["name"], max([run["run"] for run in self.runs], default=0) + 1, state="configured", expected=frames, parameters=values)
        return {"name": name}

    def values(self, experiment, body):
        """Values of all parameters, or what is wrong with those that were sent."""
        given, errors = body.get("parameters") or {}, []
        for each in experiment["parameters"]:
            value = given.get(each["name"], each["value"])
            if each["type"] in ("integer", "number") and not each["min"] <= value <= each["max"]:
                errors.append({"code": "experiment", "message": f"takes a number from {each['min']:.9g} to {each['max']:.9g}", "where": f"parameters.{each['name']}", "line": None, "hint": None})
        if errors:
            raise Problem(422, "experiment", errors[0]["message"], errors[0]["where"], errors=errors)
        return {each["name"]: given.get(each["name"], each["value"]) for each in experiment["parameters"]}

    def over(self, session):
        """The run of a session has ended: its row in the history."""
        self.runs[:] = [run for run in self.runs if run["run"] != session.run]
        row = self.row(session.run, "over", session.experiment, session.started, session.ended, int(session.settled))
        self.runs.append({**row, "result": "damaged" if any(session.causes) else "intact"})

    def command(self, session, verb, body):
        allowed = {"start": ("configured", "armed", "ended"), "pause": ("running",), "resume": ("paused",), "arm": ("configured", "ended"), "configure": ("configured", "ended", "fault")}
        if verb in allowed and session.state not in allowed[verb]:
            raise Problem(409, "state", f"{verb}: not possible while the session is {session.state}")
        session.advance()
        if verb in ("stop", "abort") and session.state in ("running", "paused", "armed"):
            session.finish()
            session.early = f"stopped: {body.get('reason', 'stop')}"
            self.over(session)
        elif verb == "start":
            session.begin()
        elif verb == "configure":
            experiment = next((each for each in self.experiments if session.path == f"{FOLDER}/{each['name']}.yaml"), None)
            if body.get("parameters") and not experiment:
                raise Problem(409, "state", "the session's experiment is not in the folder of the service", hint="configure it with sluice ctl on its host")
            if experiment:
                session.parameters = self.values(experiment, body)
            session.state, session.error = "configured", None
        else:
            session.state = {"pause": "paused", "resume": "running", "arm": "armed"}.get(verb, session.state)
        return {"state": session.state}


def explanation(folder):
    return {"schema": 1, "run": folder, "transfer": None, "sent": 430000, "lost": 212, "unclosed": False, "cause": "small_receive_buffer", "looked_at": None, "has_result": True, "has_flight": True, "live": False, "causes": [{
        "cause": "small_receive_buffer", "group": "socket", "module_frames": 212, "at_most": True, "score": 0.9, "advice": "Give the sockets a larger buffer, or let front ends take credits (link.credits: true): then they send no more than it holds.",
        "sentence": "The receive buffer is too small: it has 0.13 MB, which hold 0.06 MB of data, and a module sends 0.52 MB in a row; the kernel counts 1015 receive-queue drops, each of 1 to 16 packets; 14690 packets are missing.", "command": "sluice run FILE --set link.receive_buffer=4194304",
        "proof": [{"name": "receive_queue_drops", "value": 1015, "unit": ""}, {"name": "receive_buffer", "value": 131072, "unit": "bytes"}, {"name": "receive_buffer_lasts", "value": 1.89447, "unit": "ms"}]}]}


class Problem(Exception):
    def __init__(self, status, code, message, where=None, hint=None, errors=None):
        super().__init__(message)
        self.status, self.body = status, {"error": {"code": code, "message": message, "where": where, "hint": hint}, **({"errors": errors} if errors else {})}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *arguments):
        self.connections = set()
        super().__init__(*arguments)

    def process_request(self, request, client_address):
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self.connections.discard(request)
        super().shutdown_request(request)

    def drop(self):
        for request in list(self.connections):
            try:
                request.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def handle_error(self, request, client_address):
        pass  # browsers end connections as they like


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", kind="application/json", **headers):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", CSP)
        self.send_header("Cache-Control", "no-store")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def handle_one_request(self):
        if self.service.refusing:
            self.close_connection = True
            return
        super().handle_one_request()

    def do_GET(self):
        self.route("GET")

    def do_POST(self):
        self.route("POST")

    def do_DELETE(self):
        self.route("DELETE")

    def route(self, method):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}") if length else {}
        if self.service.refusing:
            self.close_connection = True
            return
        try:
            if not url.path.startswith("/api/v1"):
                self.file(url.path)
                return
            path = url.path.removeprefix("/api/v1").removeprefix("/")
            if method == "GET":
                self.service.asked.add(path)
            else:
                self.service.calls.append((method, path, body))
            self.allowed(method)
            self.api(method, path.split("/"), query, body)
        except Problem as problem:
            self.answer(problem.status, problem.body)

    def file(self, path):
        name = "index.html" if path == "/" else path.removeprefix("/assets/")
        file = WEB / name
        if "/" in name or file.suffix not in TYPES or not file.is_file():
            raise Problem(404, "not_found", f"there is no {path}")
        self.answer(200, file.read_bytes(), TYPES[file.suffix])

    def allowed(self, method):
        service = self.service
        if service.token and self.headers.get("Authorization") != f"Bearer {service.token}":
            raise Problem(401, "unauthorized", "a token is needed")
        if method != "GET" and ROLES.index(service.role) < 1:
            raise Problem(403, "forbidden", "this needs the role operate")

    def api(self, method, parts, query, body):
        service = self.service
        kind, *rest = parts
        if kind == "events":
            self.events(int(query.get("interval_ms", 500)) / 1000)
            return
        with service.lock:
            if kind == "":
                self.answer(200, {"version": "0.9", "schema": 1, "time_unix_ns": time.time_ns(), "host": "beamline-1", "role": service.role, "cpus": 16, "memory": {"total_bytes": 134 * 10**9, "available_bytes": 101 * 10**9}, "folders": {"root": ROOT, "experiments": FOLDER, "data_roots": "/data"}, "addons": {}, "absent": [], "devices": [], "interfaces": [], "causes": CAUSES})
            elif kind == "experiments":
                self.answer(200, {"experiments": service.experiments})
            elif kind == "runs":
                self.runs(rest, query)
            elif kind == "sessions" and not rest:
                self.answer(*((201, service.start(body)) if method == "POST" else (200, {"sessions": [each.entry() for each in service.sessions.values()]})))
            elif kind == "sessions":
                self.session(method, rest, query, body)
            else:
                raise Problem(404, "not_found", f"there is no {kind}")

    def session(self, method, rest, query, body):
        service = self.service
        session = service.sessions.get(urllib.parse.unquote(rest[0]))
        if not session:
            raise Problem(404, "not_found", f"there is no session {rest[0]}")
        verb = rest[1] if len(rest) > 1 else ""
        if method == "DELETE":
            del service.sessions[session.name]
            self.answer(200, {})
        elif method == "POST":
            self.answer(202, service.command(session, verb, body))
        elif verb == "image":
            service.at_once += 1
            service.most_at_once = max(service.at_once, service.most_at_once)
            try:
                self.apart(service.slow_s)
                self.image(session, query)
                service.images_sent += 1
            finally:
                service.at_once -= 1
        elif verb == "results":
            if session.crashed or not session.shared or not session.element:
                raise Problem(404, "not_found", "there is no share")
            n = session.element
            self.answer(200, {"element": n, "number": int(session.settled), "arrays": {"profile": {"type": "<f4", "shape": [3, 500], "unit": "", "data": service.images.profile(n)}, "profile_q": {"type": "<f4", "shape": [500], "unit": "1/nm", "data": service.images.profile(n)[:500]}}})
        elif verb == "explain":
            if not service.explains:
                raise Problem(409, "state", f"'{session.name}' cannot be explained: it has neither a status nor a folder of its run")
            self.answer(200, explanation(session.folder))
        else:
            self.answer(200, session.entry())

    def apart(self, seconds):
        """Wait without the lock."""
        self.service.lock.release()
        time.sleep(seconds)
        self.service.lock.acquire()

    def image(self, session, query):
        service = self.service
        session.advance()
        if session.crashed or not session.shared or (session.state in ("configured", "fault") and not session.ended):
            raise Problem(404, "not_found", "there is no share")
        end = time.time() + min(float(query.get("wait_ms", 0)), 1000) / 1000
        while "after" in query and session.element <= int(query["after"]):
            if time.time() > end or service.refusing:
                self.answer(204)
                return
            self.apart(0.02)
            session.advance()
        images, bins = service.images, int(query.get("bin", 1))
        x, y = int(query.get("x", 0)), int(query.get("y", 0))
        pixels, peaks = images.part(session.element, x, y, int(query.get("width", images.columns)), int(query.get("height", images.rows)), bins)
        header = {"element": session.element, "number": int(session.settled), "timestamp": 0, "commit_unix_ns": int(session.image_at * 1e9), "age_ns": int((time.time() - session.image_at) * 1e9), "verdict": "kept", "score": len(peaks), "missing": 0,
                  "array": "image", "type": "<i2", "rows": pixels.shape[0], "columns": pixels.shape[1], "full_rows": images.rows, "full_columns": images.columns, "x": x, "y": y, "bin": bins, "how": "max", "invalid": INVALID, "unit": "photons", "peaks": peaks,
                  "beam": {"row": images.beam[0], "column": images.beam[1]}, "rings": images.rings, "wavelength_A": 1.0, "distance_m": 480 * 75e-6 / math.tan(2 * math.asin(.125)), "pixel_size_m": 75e-6, "over": False, "hits": None, "published": session.element, "missed": 0, "rate_Hz": 10}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        data = packer.compress(b"SLIM" + struct.pack("<I", len(text)) + text + pixels.tobytes()) + packer.flush()
        self.answer(200, data, "application/octet-stream", **{"Content-Encoding": "gzip"})

    def runs(self, rest, query):
        service = self.service
        if not rest:
            before = int(query.get("before", 10**9))
            found = sorted((run for run in service.runs if run["run"] < before), key=lambda run: -run["run"])
            self.answer(200, {"runs": found[:int(query.get("limit", 50))]})
            return
        run = next((run for run in service.runs if run["run"] == int(rest[0])), None)
        if not run:
            raise Problem(404, "not_found", f"there is no run {rest[0]}")
        what = rest[1] if len(rest) > 1 else ""
        if what == "picture.png":
            if not run["picture"]:
                raise Problem(404, "not_found", f"run {run['run']} has no picture")
            self.answer(200, picture(service.images, run["run"]), "image/png")
        elif what == "log":
            self.answer(200, b"2026-11-19T20:31:07.113Z info threads: 1 poller (auto), 2 workers (auto)\n2026-11-19T20:31:09.871Z info the ledger closes\n", "text/plain")
        elif what == "experiment":
            self.answer(200, b"detector:\n  kind: jungfrau          # jungfrau-demo.yaml:4\n  modules: 2              # jungfrau-demo.yaml:5\n", "text/yaml")
        elif what == "explain":
            self.answer(200, explanation(run["folder"]))
        elif run["state"] != "over":
            self.answer(200, run)
        else:
            live = next((each for each in service.sessions.values() if each.run == run["run"]), None) or Session("x", "jungfrau-demo", run["run"], already=run["frames"] / 870)
            if run["lost"]:
                live.lose(run["damaged"] // 2, "damaged", 1)
            live.finish()
            status = live.status()
            columns = [{key: column[key] for key in ("sent", "skipped", "outcomes", "causes")} for column in (status["ledger"]["total"], *status["ledger"]["modules"])]
            hops = {hop: {key: value / 1000 for key, value in of.items() if key != "sum"} | {"count": of["count"]} for hop, of in status["latency_ns"].items()}
            self.answer(200, {**run, "state": "ended" if run["state"] == "over" else run["state"], "frames": status["frames"], "ledger": {"closed": True, "misuse": 0, "total": columns[0], "modules": columns[1:]}, "latency_us": hops,
                              "metadata": status["metadata"], "ended_early": None, "origin": {"file": "/data/jungfrau-demo.yaml"}, "rates": {"seconds": 247, "frames_per_s": 870, "GB_per_s": 1.84}, "link": {"kind": "udp"}, "sinks": [{"name": "nexus"}, {"name": "share"}]})

    def events(self, interval):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.close_connection = True
        before, heard = None, {}

        def send(event, data):
            self.wfile.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())
            self.wfile.flush()
        try:
            send("hello", {"version": "0.9"})
            while not self.service.refusing:
                with self.service.lock:
                    entries = [each.entry() for each in self.service.sessions.values()]
                key = [(each["name"], each["alive"], each["state"], each["run"]) for each in entries]
                if key != before:
                    send("sessions", {"sessions": [{**each, "status": each["status"]} for each in entries]})
                before = key
                for each in entries:
                    if each["status"]:
                        send("status", {"session": each["name"], "status": each["status"]})
                        if heard.get(each["name"]) == "running" and each["state"] == "ended":
                            send("run", {"run": each["run"], "session": each["name"]})
                        heard[each["name"]] = each["state"]
                if not entries:
                    self.wfile.write(b": nothing new\n\n")
                    self.wfile.flush()
                if self.service.stalled:
                    time.sleep(60)
                time.sleep(interval)
        except OSError:
            pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--scene", default="running")
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    mock = Mock(arguments.scene, arguments.large, arguments.port)
    print(mock.url, flush=True)
    try:
        mock.thread.join()
    except KeyboardInterrupt:
        mock.close()


if __name__ == "__main__":
    sys.exit(main())
