#!/usr/bin/python3
"""check_interop.py - Sluice's RoCEv2 in user space against Linux Soft-RoCE in a virtual machine.

  tools/check_interop.py                                everything
  tools/check_interop.py --kernel 6.1 --match "RC read" a part
  tools/check_interop.py --asan                         our side with the address and undefined behaviour sanitizers

Each kernel is booted once, in software emulation, beside a network namespace of its own, and meets every scenario of
tests/interop (its README.md says how they are made). Needs root, Debian's packages and nothing else; where it cannot
run it says why. The last line is "N passed, N failed, N skipped" and counts cases.
"""

import argparse
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import check
import session_limit
import tap

ROOT = check.ROOT
INTEROP = ROOT / "tests/interop"
sys.path.insert(0, str(INTEROP))
import image  # noqa: E402  (found through the line above)
import lab  # noqa: E402

CACHE = ROOT / "build/interop"
USER_PROGRAMS = ["tests/interop/peer-user", "tests/interop/peer-share", "sluice"]
GUEST_PROGRAMS = ["tests/interop/agent", "tests/interop/wire", "tests/interop/peer-verbs", "tests/interop/peer-share", "sluice",
                  "bench/peer_verbs", "bench/sluice-bench", "tests/raw/raw_file"]
PRINTING = threading.Lock()


def skip_all(why):
    print(f"skipped: {why}")
    print("0 passed, 0 failed, 1 skipped")
    return 0


def install():
    """Why the packages cannot be had; None: they are here."""
    if os.geteuid():
        return "a private network namespace and a tap need root"
    if subprocess.run([ROOT / "tools/deps.sh", "interop"], check=False).returncode:
        return "packages are missing (tools/deps.sh interop)"
    return lab.missing()


def forget_old(variant):
    """A folder that was configured before libibverbs was installed knows nothing of these programs."""
    plan = variant.folder / "build.ninja"
    if plan.exists() and GUEST_PROGRAMS[0] not in plan.read_text():
        plan.unlink()


def build(asan):
    """Build what runs here and what runs in the guest: the variant of the first, and an error."""
    normal, sanitized = check.builds()[:2]
    ours = sanitized if asan else normal
    for variant, programs in ((normal, GUEST_PROGRAMS), (ours, USER_PROGRAMS)):
        forget_old(variant)
        error = check.build_all(variant, programs)
        if error:
            return ours, error
    return ours, None


def get_kernel(series):
    """Into the cache; the reason when that cannot be done."""
    try:
        image.kernel(series, CACHE)
        return None
    except image.Unavailable as why:
        return str(why)


class Session:
    """One kernel's run: its cases are shown as they come."""

    def __init__(self, series, ours, arguments):
        command = [check.PYTHON, INTEROP / "session.py", "--kernel", series, "--cache", CACHE,
                   "--guest-programs", ROOT / "build/tests/interop", "--user-programs", ours.folder / "tests/interop",
                   "--guest-sluice", ROOT / "build/sluice", "--sluice", ours.folder / "sluice",
                   "--match", arguments.match, "--seed", arguments.seed]
        command += ["--against-itself"] if arguments.against_itself else []
        command += ["--again"] if arguments.again else []
        command += ["--capture", f"{arguments.capture}-{series}.pcap"] if arguments.capture else []
        self.begin(series, [*ours.prefix, *command], ours.env)

    def begin(self, series, command, env):
        self.series = series
        self.command = [str(word) for word in command]
        self.env = {**os.environ, **env, "PYTHONDONTWRITEBYTECODE": "1"}
        self.output, self.seconds = [], []  # lines; (name, seconds) of cases
        self.boot_s = None  # it has not booted
        self.start = self.last = time.monotonic()
        self.ended = threading.Event()
        self.late = False

    def watch(self, process):
        """Ends the session when its limit is reached, which changes when the guest has booted."""
        while not self.ended.wait(0.2):
            if time.monotonic() - self.start > session_limit.limit_s(self.boot_s):
                self.late = True
                check.stop(process)
                return

    def run(self):
        """All of its cases. The whole session is killed with all it started, whichever way this ends."""
        self.start = self.last = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="interop-") as folder, tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(self.command, env={**self.env, "TMPDIR": folder}, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
                                       preexec_fn=lab.die_with_parent)
            check.RUNNING.add(process)
            watcher = threading.Thread(target=self.watch, args=[process])
            watcher.start()
            try:
                for line in process.stdout:
                    self.show(line)
                status = process.wait()
            finally:
                self.ended.set()
                watcher.join()
                check.stop(process)
                check.RUNNING.discard(process)
            errors.seek(0)
            sys.stderr.write(errors.read().decode(errors="replace"))
        cases = tap.read("".join(self.output), None if self.late else status)
        if self.late:
            cases[-1].text += session_limit.explain(self.boot_s, self.seconds, time.monotonic() - self.last)
        return cases

    def show(self, line):
        self.output.append(line)
        match = tap.CASE.match(line)
        if match:
            self.seconds.append((match[3], time.monotonic() - self.last))
        if self.boot_s is None:
            self.boot_s = session_limit.boot_seconds(line)
        with PRINTING:
            if match:
                state = "FAILED" if match[1] else "skipped" if tap.SKIP.match(match[3]) else "passed"
                print(f"  {state:8}{match[3]}  ({time.monotonic() - self.last:.1f} s)")
            elif line.startswith("#"):
                print(f"          {self.series}{line[1:].rstrip()}")
            sys.stdout.flush()
        self.last = time.monotonic()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("--kernel", default=",".join(image.KERNELS), help="series, comma-separated")
    parser.add_argument("--match", default="", help="run only cases with this in their name")
    parser.add_argument("--asan", action="store_true", help="our side with sanitizers")
    parser.add_argument("--against-itself", action="store_true", help="rxe at both ends: what is its own doing?")
    parser.add_argument("--seed", type=int, default=11, help="of the faults on the wire")
    parser.add_argument("--capture", help="write all frames to CAPTURE-6.1.pcap and so on")
    parser.add_argument("--again", action="store_true", help="give a few cases that fail a second try; what failed first is shown")
    parser.add_argument("--jobs", type=int, default=1, help="guests at a time")
    arguments = parser.parse_args()
    arguments.kernel = arguments.kernel.split(",")
    for series in arguments.kernel:
        if series not in image.KERNELS:
            parser.error(f"'{series}' is none of {', '.join(image.KERNELS)}")
    return arguments


def interrupted(*_):
    raise KeyboardInterrupt


def run_all(sessions, jobs):
    """The cases of all sessions."""
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        return [case for cases in pool.map(Session.run, sessions) for case in cases]
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(check.RUNNING):
            check.stop(process)
        raise
    finally:
        pool.shutdown()


def finish(cases, seconds):
    counts = {state: sum(case.state == state for case in cases) for state in ("passed", "failed", "skipped")}
    for case in cases:
        if case.state != "passed":
            print(f"{case.state}: {case.name}{': ' + case.text if case.state == 'skipped' else ''}")
        if case.state == "failed":
            print("".join(f"  {line}\n" for line in case.text.splitlines()), end="")
    print(f"in {seconds:.0f} s:")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not sum(counts.values()) else 0


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, interrupted)
    start = time.monotonic()
    why = install()
    if why:
        return skip_all(why)
    ours, error = build(arguments.asan)
    if error:
        print(error)
        return 1
    print("getting kernels", flush=True)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        reasons = dict(zip(arguments.kernel, pool.map(get_kernel, arguments.kernel)))
    cases = [tap.Case("skipped", f"{series} boots", reason) for series, reason in reasons.items() if reason]
    sessions = [Session(series, ours, arguments) for series, reason in reasons.items() if not reason]
    cases += run_all(sessions, arguments.jobs)
    return finish(cases, time.monotonic() - start)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
