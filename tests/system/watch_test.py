#!/usr/bin/python3
"""watch_test.py - sluice ctl watch: a full-screen status in a terminal, of sessions of this host and of a service; lines on a pipe. However it
ends, the terminal is as it was."""

import contextlib
import os
import re
import signal

from harness import SLUICE, Program, case, check, equal, experiment, main, run, wait_for
from service import put_experiment, require, serving
from terminal import Terminal

STEADY = {"kind": "pattern", "modules": 2, "rows": 32, "columns": 64, "frames": 100000, "frame_rate_Hz": 100}
TO_NOTHING = {"sinks": ["null", "verify"], "link": {"kind": "shm"}, "control": {"port": 0}}
LOSSY = {"link": {"kind": "udp"}, "ring": {"late_timeout_ms": 300}, "frontend": {"drop": 0.05}}


def start(folder, name, detector=None, **sections):
    """A run with this name, in the background."""
    os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")
    path = experiment(folder, name=f"{name}.yaml", detector={**STEADY, **(detector or {})}, **{**TO_NOTHING, **sections})
    program = Program("run", path, "--still", "--root", folder / f"runs-{name}", folder=folder)
    wait_for("a session", lambda: (folder / f"sockets/{name}.json").exists() or not program.running())
    return program


@contextlib.contextmanager
def terminal(*arguments, **options):
    screen = Terminal(SLUICE, "ctl", *arguments, "--interval_ms", "100", **options)
    try:
        yield screen
    finally:
        screen.close()


def quits(screen):
    screen.press("q")
    equal(screen.ends(), 0, f"exit status; {screen.before}")
    check(screen.as_before(), "the terminal is not as it was")
    equal(screen.before.strip(), "", "what is left on the ordinary screen")


@case("a run on the screen: progress, rates, ledger, causes in words, latencies, queues, sinks; at every size; q ends it")
def _(folder):
    start(folder, "scan", **LOSSY)
    with terminal("scan", "watch") as screen:
        screen.shows("scan", "● running", "run 000001", "frames/s", "Ledger", "stored", "Latency by hop", "total", "ring",
                     "of 32", "verify", "lost or damaged", "damaged", "some packets", "sluice explain")
        check(screen.other and not screen.cursor, "it is not on the other buffer, or the cursor is shown")
        lost = next(row for row in screen.rows() if row.lstrip().startswith("incomplete"))
        at = screen.rows().index(lost), lost.index("incomplete")
        check("31" in screen.styles[at[0]][at[1]].split(";"), "losses are not red")
        first = screen.text()
        screen.until("newer numbers", lambda: screen.text() != first)
        screen.resize(200, 50)
        screen.shows("module 1", "unwritten", "Slots of the ring in use", "To mend it: packets are lost")
        check(any(len(row) > 150 for row in screen.rows()), "the width is not used")
        screen.resize(30, 5)
        screen.shows("too small")
        for columns, rows in ((40, 10), (60, 20), (80, 24), (132, 43)):
            screen.resize(columns, rows)
            screen.shows("scan", "q quit")
        quits(screen)


@case("the terminal is as it was after every signal that ends it, and while it is stopped")
def _(folder):
    start(folder, "scan")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV, signal.SIGABRT, signal.SIGUSR1):
        with terminal("watch", wrapper=("sh", "-c", 'ulimit -c 0; exec "$@"', "sh")) as screen:
            screen.shows("scan", "running")
            screen.process.send_signal(number)
            equal(screen.ends(), -number, "how it ended")
            check(screen.as_before(), f"after signal {number} the terminal is not as it was")
    with terminal("watch") as screen:
        screen.shows("scan", "running")
        screen.press("\x03")  # a user's Ctrl-C
        equal(screen.ends(), -signal.SIGINT, "how it ended")
        check(screen.as_before(), "after Ctrl-C the terminal is not as it was")
    with terminal("watch") as screen:
        screen.shows("scan", "running")
        screen.press("\x1a")
        stopped = os.waitid(os.P_PID, screen.process.pid, os.WSTOPPED | os.WNOWAIT)
        equal(stopped.si_status, signal.SIGSTOP, "what stopped it")
        screen.read(0.2)
        check(screen.as_before(), "stopped, it keeps the terminal")
        screen.process.send_signal(signal.SIGCONT)
        screen.until("the other buffer again", lambda: screen.other)
        screen.shows("scan", "running", "Ledger")
        quits(screen)


@case("several sessions: a list, one of them chosen by keys; they end, crash and come again; p holds the screen")
def _(folder):
    with terminal("watch", env={"SLUICE_RUN_DIR": str(folder / "sockets")}) as screen:
        screen.shows("There is no session")
        left, right = start(folder, "left"), start(folder, "right", **LOSSY)
        screen.shows("NAME", "STATE", "left", "right", "left.yaml  shm")
        screen.press("j")
        screen.shows("right.yaml  udp")
        screen.press("\033[A")
        screen.shows("left.yaml  shm")
        screen.press("p")
        screen.shows("[held]")
        before = screen.rows()[1:]
        screen.read(1)
        equal(screen.rows()[1:], before, "a screen that is held")
        screen.press("p")
        screen.until("newer numbers", lambda: screen.rows()[1:] != before)
        left.send(signal.SIGINT)
        left.ends(0)
        screen.shows("closed, intact")
        right.send(signal.SIGKILL)
        right.wait()
        screen.shows("crashed")
        start(folder, "left", detector={"frame_rate_Hz": 50})
        screen.until("the next of this name", lambda: any(re.match(r" left +running", row) for row in screen.rows()))
        quits(screen)
    with terminal("watch", "nobody") as screen:  # watched by name, others are not there
        screen.shows("nobody", "waiting")
        check("left" not in screen.text(), "another session is shown")
        quits(screen)


@case("without colours, without UTF-8, and with texts that are meant to harm the terminal")
def _(folder):
    os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")
    path = experiment(folder, name="a\033[2J\nb.yaml", detector=STEADY, **TO_NOTHING)
    Program("run", path, "--still", "--name", "scan", folder=folder)
    wait_for("a session", (folder / "sockets/scan.json").exists)
    with terminal("scan", "watch", env={"LC_ALL": "C"}) as screen:
        screen.shows("running", "* running", "a?[2J?b.yaml")  # the screen fails the test on any control character
        check(screen.text().isascii(), "characters beyond ASCII")
        quits(screen)
    with terminal("scan", "watch", env={"NO_COLOR": "1"}) as screen:
        screen.shows("running")
        used = {style for row in screen.styles for style in row}
        check(not any(part.startswith("3") for style in used for part in style.split(";")), f"colours: {used}")
        quits(screen)


@case("on a pipe it is a line each, also of all sessions, and as JSON; TERM=dumb is no screen")
def _(folder):
    start(folder, "left")
    right = start(folder, "right")
    lines = Program("ctl", "watch", "--interval_ms", "100", folder=folder)
    wait_for("lines of both", lambda: all(f"{name}: running" in lines.out() for name in ("left", "right")))
    right.send(signal.SIGINT)
    right.ends(0)
    wait_for("its end", lambda: "right: ended" in lines.out() and "right: closed" in lines.out())
    check("\033" not in lines.out(), "sequences on a pipe")
    lines.stop()
    json = Program("ctl", "watch", "left", "--json", "--interval_ms", "100", folder=folder)
    wait_for("JSON", lambda: json.out().count('"session":"left"') > 2)
    json.stop()
    done = run("ctl", "watch", "--interval_ms", "100", folder=folder, wrapper=("sh", "-c", '"$@" | head -n 3', "sh"))
    equal(len(done.ends(0).out().splitlines()), 3, "lines until the reader has gone")
    with terminal("left", "watch", env={"TERM": "dumb"}) as screen:
        screen.until("a line", lambda: "left: running" in screen.before)
        check(not screen.other, "a terminal that knows no sequences gets some")


@case("of a service: the same screen, and what is known when the service goes away and comes again")
def _(folder):
    require()
    with serving(folder) as service:
        put_experiment(service, "scan", **LOSSY)
        put_experiment(service, "other")
        url = f"http://127.0.0.1:{service.port}"
        for name in ("scan", "other"):
            run("ctl", "--host", url, "open", name, folder=folder).ends(0)
            run("ctl", "--host", url, name, "start", folder=folder).ends(0)
        with terminal("--host", url, "watch") as screen:
            screen.shows(url, "other", "scan", "● running", "frames/s", "Ledger", "ring")
            screen.press("j")
            screen.shows("scan.yaml  udp", "some packets")
            run("ctl", "--host", url, "other", "close", folder=folder).ends(0)
            screen.shows("closed")
            service.kill()
            screen.shows("Nothing new for")
            service.arguments += ["--listen", f"127.0.0.1:{service.port}"]
            service.start()
            screen.until("news", lambda: "Nothing new for" not in screen.text())
            quits(screen)
        with terminal("--host", url, "scan", "watch") as screen:
            screen.shows("scan.yaml  udp")
            quits(screen)
        lines = Program("ctl", "--host", url, "watch", "--interval_ms", "100", folder=folder)
        wait_for("lines", lambda: lines.out().count("scan: running") > 2)
        lines.stop()


if __name__ == "__main__":
    main()
