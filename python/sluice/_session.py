"""Sessions: acquisitions that run in processes of their own, started, watched and controlled from here."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

from ._errors import Error, error_of, unless_in_time
from ._library import Handle, c_text, end_of, ffi, fork_count, in_thread, is_over, library, library_path, raise_for, slice_ms, text

OVER = ("ended", "fault")
Experiment = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Settings = Union[Mapping[str, Any], Sequence[str]]
ANSWER_S = 10.0


class Status(Mapping[str, Any]):
    """What a session says of itself, as attributes: `status.state`, `status.frames.settled`, `status.ledger.total.outcomes`.

    docs/reference/status.md lists the fields. Keys work, too, also for names that are no identifiers: `status["frames"]["kept"]`.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = dict(fields)

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self._fields[key])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._fields:
            raise AttributeError(f"a status has no '{name}' here; there are: {', '.join(self.__dict__.get('_fields', ()))}")
        return _wrapped(self._fields[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self._fields]

    def as_dict(self) -> Dict[str, Any]:
        """Plain dictionaries and lists."""
        return dict(self._fields)

    def __repr__(self) -> str:
        return f"Status({json.dumps(self._fields)})"


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Status(value)
    return [_wrapped(item) for item in value] if isinstance(value, list) else value


class SessionInfo(NamedTuple):
    """A session, without a connection to it."""

    name: str
    alive: bool
    pid: int
    run: int
    experiment: str
    root: str
    folder: str
    started: float


def sessions() -> List[SessionInfo]:
    """All sessions of this user on this host, by name; `alive` is False of those that have crashed."""
    lib, found, n = library(), ffi.new("struct sl_remote_info **"), ffi.new("size_t *")
    err = lib.sl_remote_list(found, n)
    if err:
        raise error_of(err, "the folder of sessions is refused, since other users could enter it")
    try:
        return [SessionInfo(text(i.name), bool(i.alive), int(i.pid), int(i.run), text(i.experiment), text(i.root), text(i.folder),
                            int(i.started_unix_ns) * 1e-9) for i in (found[0][k] for k in range(n[0]))]
    finally:
        lib.sl_remote_free(found[0])


def program_path() -> str:
    """The program `sluice`: the environment's SLUICE, else that of PATH, else the one beside the library."""
    asked = os.environ.get("SLUICE")
    if asked:
        return asked
    found = shutil.which("sluice")
    if found:
        return found
    here = pathlib.Path(library_path())
    for parent in list(here.resolve().parents)[:4] if here.name != str(here) else []:
        for path in (parent / "sluice", parent / "bin/sluice"):
            if path.is_file() and os.access(path, os.X_OK):
                return str(path)
    raise Error("program", "there is no program 'sluice'", hint="install it, or set SLUICE to its path")


# ---- a connection ----

class _Connection:
    """Lines of JSON to a session and back. After a reply that came too late, or an interrupt, it connects again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._handle: Optional[Handle] = None
        self._lock = threading.Lock()

    def _connected(self, timeout: float) -> Handle:
        lib = library()

        def connect() -> Any:
            where, error, keep = ffi.new("struct sl_remote **"), ffi.new("struct sl_remote_error *"), []  # type: Any, Any, List[Any]
            raise_for(lib.sl_remote_open(c_text(self.name, keep), int(timeout * 1000), where, error), error)
            return where[0]
        if self._handle is None or not self._handle.is_ours:
            self._handle = Handle(in_thread(connect, lib.sl_remote_close), lib.sl_remote_close, f"the connection to '{self.name}'", shared=False)
        return self._handle

    def line(self, timeout: Optional[float], request: Optional[str] = None) -> Dict[str, Any]:
        """The next line, the reply to a request if one is given."""
        end = end_of(timeout)
        with self._lock:
            try:
                with self._connected(ANSWER_S if timeout is None else timeout) as remote:
                    return self._read(remote, end, request)
            except BaseException:  # a reply may still be under way
                self._drop()
                raise

    def _read(self, remote: Any, end: Optional[float], request: Optional[str]) -> Dict[str, Any]:
        lib, out, error = library(), ffi.new("char **"), ffi.new("struct sl_remote_error *")
        keep: List[Any] = []
        wait = slice_ms(end)
        err = lib.sl_remote_next(remote, wait, out, error) if request is None else \
            lib.sl_remote_request(remote, c_text(request, keep), wait, out, error)
        while err == -errno.ETIMEDOUT and not is_over(end):
            err = lib.sl_remote_next(remote, slice_ms(end), out, error)
        if err and err != -errno.EPROTO:
            raise_for(err, error)
        try:
            reply = json.loads(ffi.string(out[0]))
        finally:
            lib.sl_remote_free(out[0])
        if not isinstance(reply, dict):
            raise Error("reply", "the reply is not understood")
        return reply

    def request(self, request: Mapping[str, Any], timeout: Optional[float]) -> Dict[str, Any]:
        """The reply to a request. A refusal is raised."""
        reply = self.line(timeout, json.dumps(request))
        if not reply.get("ok"):
            why = reply.get("error") or {}
            raise error_of(-errno.EPROTO, why.get("message") or "the reply is not understood", code=why.get("code") or "reply",
                           where=why.get("where") or "", hint=why.get("hint") or "")
        return reply

    def _drop(self) -> None:
        handle, self._handle = self._handle, None
        if handle:
            handle.close()

    def close(self) -> None:
        """Hang up."""
        with self._lock:
            self._drop()


# ---- control ----

_C = TypeVar("_C", bound="Control")


class Control:
    """A session that lives in another process: `sluice.attach(name)`."""

    def __init__(self, name: str, timeout: float = ANSWER_S) -> None:
        self._name, self._timeout = name, timeout
        self._connection = _Connection(name)

    @property
    def name(self) -> str:
        """The session's name."""
        return self._name

    def request(self, call: str, timeout: Optional[float] = None, **fields: Any) -> Dict[str, Any]:
        """Any request of docs/reference/status.md; returns its reply."""
        return self._connection.request({"call": call, **fields}, self._timeout if timeout is None else timeout)

    def status(self) -> Status:
        """The status now."""
        return Status(self.request("status")["status"])

    @property
    def state(self) -> str:
        """The state now: "configured", "armed", "running" ..."""
        return str(self.status().state)

    def watch(self, interval: float = 1.0, *, changes: bool = False, until: Sequence[str] = OVER) -> Iterator[Status]:
        """The status now and at each interval (0.1 s at least), until its state is one of `until`, or the session closes.

        changes: only where state, counts of frames, metadata or error differ from the one before.
        """
        connection, last = _Connection(self._name), None
        try:
            reply = connection.request({"call": "watch", "interval_ms": max(100, int(interval * 1000))}, self._timeout)
            while True:
                status = reply.get("status")
                if status is not None:
                    facts = [status.get(key) for key in ("state", "run", "result", "frames", "metadata", "error", "drained")]
                    if not changes or facts != last:
                        yield Status(status)
                    last = facts
                    if status.get("state") in until:
                        return
                reply = connection.line(None)
        except Error as why:
            if why.code != "connection":
                raise
        finally:
            connection.close()

    def configure(self, settings: Settings = ()) -> None:
        """Read the experiment again, with these overrides: {"detector.frames": 500}, or ["detector.frames=500"]."""
        self.request("configure", set=_overrides(settings))

    def arm(self, wait: Optional[float] = None) -> str:
        """Open outputs, memory and link, and plan the sources. wait: seconds until it is armed; None: return at once."""
        return self._call("arm", wait, "armed")

    def start(self, wait: Optional[float] = None, *, frames: int = 0) -> str:
        """Let the sources send; arms first where that is due. wait: seconds until it runs; None: return at once. frames: of an armed session,
        be paused behind so many frames; wait is then until it is paused, or the run has ended."""
        return self._call("start", wait, "paused", frames=frames) if frames else self._call("start", wait, "running")

    def pause(self, wait: Optional[float] = None) -> str:
        """Give no more credits. wait: seconds until everything that was sent is settled; None: return at once."""
        state = self._call("pause", wait, "paused")
        end = end_of(wait)
        while wait is not None and self.state == "paused" and not self.status().drained:
            if is_over(end):
                raise unless_in_time(wait, f"the session '{self._name}' is not drained")
            time.sleep(0.01)
        return state

    def resume(self, wait: Optional[float] = None, *, frames: int = 0) -> str:
        """Give credits again. frames: for so many frames, of a session that is paused and drained: then it is paused again, and wait is until
        that. Exactly these frames come."""
        return self._call("resume", wait, "paused", frames=frames) if frames else self._call("resume", wait, "running")

    def stop(self, reason: Optional[str] = None, wait: Optional[float] = None) -> str:
        """Ask the sources to end; what they sent is processed and stored. wait: seconds until the run has ended."""
        return self._end("stop", reason, wait)

    def abort(self, reason: Optional[str] = None, wait: Optional[float] = None) -> str:
        """As stop, without waiting for the sources."""
        return self._end("abort", reason, wait)

    def _end(self, call: str, reason: Optional[str], wait: Optional[float]) -> str:
        """A session of one run closes behind it, perhaps before it is asked to wait: on a busy host a client comes too late."""
        state = self._call(call, None, **({"reason": reason} if reason else {}))
        if wait is None:
            return state
        try:
            return self.wait(*OVER, timeout=wait)
        except Error as why:
            if why.code != "connection" or any(info.name == self._name and not info.alive for info in sessions()):
                raise
            return "ended"

    def _call(self, call: str, wait: Optional[float], *states: str, **fields: Any) -> str:
        state = str(self.request(call, **fields).get("state", ""))
        return state if wait is None else self.wait(*states, timeout=wait)

    def wait(self, *states: str, timeout: Optional[float] = None) -> str:
        """Until the state is one of these (none given: "ended", "fault"); returns it. Raises Timeout, and the run's error where
        it led to the state "fault" and that was not waited for. A run that has ended ends the wait, too."""
        wanted, end = list(states or OVER), end_of(timeout)
        while True:
            try:
                reply = self._connection.request({"call": "wait", "states": wanted, "timeout_ms": max(1, slice_ms(end))}, ANSWER_S)
            except Error as why:
                if why.code != "timeout":
                    raise
                if is_over(end):
                    raise unless_in_time(timeout, f"the session '{self._name}' was not {' or '.join(wanted)}") from None
                continue
            state = str(reply.get("state", ""))
            if state == "fault" and "fault" not in states:
                raise_fault(reply.get("status") or {})
            return state

    # ---- metadata and sinks ----

    def metadata(self) -> Dict[str, str]:
        """What users say of the run under way, or of the next one."""
        return dict(self.request("metadata")["metadata"])

    def set_metadata(self, *, keep: bool = False, **values: Any) -> Dict[str, str]:
        """Say what is measured: `set_metadata(sample="lysozyme")`; None removes. keep: for later runs, too."""
        texts = {key: None if value is None else str(value) for key, value in values.items()}
        return dict(self.request("metadata", set=texts, **({"keep": True} if keep else {}))["metadata"])

    def add_point(self, first: int, frames: int, values: Optional[Mapping[str, float]] = None) -> int:
        """Say that `frames` frames from the sequence `first` on are a point of a scan, and where the motors were. The run's NeXus file has the
        table (`sluice/points`). Returns the point's number."""
        return int(self.request("point", first=first, frames=frames, values=dict(values or {}))["point"])

    def sinks(self) -> Dict[str, str]:
        """Where the sinks of its run write, by name: files, addresses, shares."""
        return {addon["name"]: addon["where"] for addon in self.status().as_dict().get("addons", ())
                if addon.get("kind") == "sink" and addon.get("where")}

    def close(self) -> None:
        """Hang up; the session goes on."""
        self._connection.close()

    def __enter__(self: _C) -> _C:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sluice.{type(self).__name__} {self._name}>"


def raise_fault(status: Mapping[str, Any]) -> None:
    """Raise the error of a run that could not begin."""
    why = status.get("error") or {}
    raise Error(why.get("code") or "fault", why.get("message") or "the run could not begin", where=why.get("where") or "",
                hint=why.get("hint") or "")


def attach(name: str, timeout: float = ANSWER_S) -> Control:
    """Control a session that runs already. timeout: seconds for each of its answers."""
    control = Control(name, timeout)
    control.status()
    return control


def _overrides(settings: Settings) -> List[str]:
    if isinstance(settings, Mapping):
        return [f"{path}={_as_text(value)}" for path, value in settings.items()]
    if isinstance(settings, str):
        raise TypeError("settings: a mapping or a list is needed")
    return [str(setting) for setting in settings]


def _as_text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


# ---- sessions of our own ----

class Session(Control):
    """A session that this program starts, in a process of its own; as a context manager it ends with the block.

    experiment: an experiment file, or what would be in it, as a dictionary.
    root: the folder in which each run gets its own: the session takes run after run, `arm()`, `start()`, `stop()`. Without it it
        takes one run, which begins at once, as `sluice run` does.
    name: for `sluice.attach()` and `sluice ps`; None: that of the experiment file.
    settings: overrides, {"detector.frames": 500}.
    emulate: start the detector side, too.
    arguments: more options of the program.
    wait: seconds until it answers.

    Ctrl-C reaches this program alone. If it is killed, its sessions go on; `sluice.attach()` has them again.
    """

    def __init__(self, experiment: Experiment, root: Union[str, "os.PathLike[str]", None] = None, *, name: Optional[str] = None,
                 settings: Settings = (), emulate: bool = False, arguments: Sequence[str] = (), wait: float = 30.0) -> None:
        self._one_run = root is None
        options = ["--emulate"] if emulate else []
        options += ["--name", name] if name else []
        options += [word for override in _overrides(settings) for word in ("--set", override)]
        options += [*arguments] if root is None else ["--root", os.fspath(root), *arguments]
        content = json.dumps(experiment) if isinstance(experiment, Mapping) else None
        path = f"{name or 'python'}.yaml" if isinstance(experiment, Mapping) else os.fspath(experiment)
        self._process, place = _start_process("run" if root is None else "session", path, content, options)
        self._summary, self._log = place / "summary.json", place / "log"
        self._ending = weakref.finalize(self, _end_process, self._process, place, fork_count())
        super().__init__("", ANSWER_S)
        try:
            self._meet(wait)
        except BaseException:
            self._ending()
            raise

    def _meet(self, wait: float) -> None:
        """Until the process has its socket; a run may be over before that."""
        end = end_of(wait)
        while True:
            found = next((info for info in sessions() if info.pid == self._process.pid and info.alive), None)
            if found:
                self._name = found.name
                self._connection = _Connection(found.name)
                return
            status = self._process.poll()
            if status is not None and (status == 1 or not self._one_run):
                raise self._failure(status)
            if status is not None:
                return
            if is_over(end):
                raise unless_in_time(wait, "the session did not answer")
            time.sleep(0.005)

    def _failure(self, status: int) -> Error:
        """What the program said last before it ended."""
        errors = [line.split(" error: ", 1)[-1].removeprefix("error: ") for line in self.log().splitlines() if "error: " in line]
        return Error("program", errors[0] if errors else f"the program ended with the exit status {status}")

    @property
    def pid(self) -> int:
        """Of its process."""
        return self._process.pid

    def log(self) -> str:
        """What the program has said so far."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def result(self, timeout: Optional[float] = None) -> Status:
        """What the run left behind, once it has ended: the summary of `sluice run`, or result.json of the run's folder
        (docs/reference/summary.md). Raises the error of a run that could not begin."""
        if self._one_run:
            self._wait_for_process(timeout)
            if not self._summary.exists():
                raise self._failure(self._process.returncode)
            return Status(json.loads(self._summary.read_text()))
        if self.wait(timeout=timeout) == "fault":
            raise_fault(self.status().as_dict())
        return Status(json.loads((pathlib.Path(self.status().folder) / "result.json").read_text()))

    def _wait_for_process(self, timeout: Optional[float]) -> int:
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise unless_in_time(timeout, f"the run '{self._name}' did not end") from None

    def run(self, timeout: Optional[float] = None) -> Status:
        """Take one run to its end: start() and result(). timeout: seconds for the run."""
        if not self._one_run:
            self.start()
        return self.result(timeout)

    def close(self, timeout: float = 60.0) -> None:
        """End the run that is under way, and the process."""
        if self._ending.alive and self._process.poll() is None:
            try:
                self.request("stop")
                if not self._one_run:
                    self.request("close")
                self._wait_for_process(timeout)
            except Error:
                pass
        super().close()
        self._ending()


def _start_process(command: str, path: str, content: Optional[str], options: Sequence[str]) -> "Tuple[subprocess.Popen[bytes], pathlib.Path]":
    """The process, and a folder with its log and summary; content: of an experiment file to be made there."""
    start, place = program_path(), pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))
    try:
        if content is not None:
            path = str(place / path)
            pathlib.Path(path).write_text(content, encoding="utf-8")
        summary = ["--quiet", "--summary", str(place / "summary.json")] if command == "run" else []
        with open(place / "log", "wb") as log:
            process = subprocess.Popen([start, command, path, *summary, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       start_new_session=True)
    except BaseException as why:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(why, OSError):
            raise Error("program", f"{start} cannot be started: {why.strerror}", errno=why.errno or 0) from why
        raise
    return process, place


def _end_process(process: "subprocess.Popen[bytes]", folder: pathlib.Path, forks: int) -> None:
    """Stop the run, then the process, at the latest with SIGKILL. A process that was forked off leaves it alone."""
    if forks != fork_count():
        return
    for number, seconds in ((signal.SIGINT, 20.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, None)):
        if process.poll() is not None:
            break
        process.send_signal(number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
    shutil.rmtree(folder, ignore_errors=True)


def run(experiment: Experiment, *, settings: Settings = (), emulate: bool = False, name: Optional[str] = None,
        arguments: Sequence[str] = (), timeout: Optional[float] = None) -> Status:
    """Take one run of an experiment to its end, and return its summary (docs/reference/summary.md)."""
    with Session(experiment, settings=settings, emulate=emulate, name=name, arguments=arguments) as session:
        return session.result(timeout)
