"""libsluice-client.so: found, loaded once, and called so that Ctrl-C works.

No call into the library waits longer than SLICE_MS: between two of them Python handles signals. CFFI releases the GIL while the
library runs.
"""

from __future__ import annotations

import os
import pathlib
import sys
import sysconfig
import threading
import time
from typing import Any, Callable, Iterator, List, Optional, Tuple

from ._cdef import CDEF
from ._errors import Error, error_of

try:
    import cffi
except ImportError as _why:  # pragma: no cover - depends on the host
    raise ImportError("sluice needs the Python package cffi (Debian: python3-cffi; else: pip install cffi)") from _why

SONAME = "libsluice-client.so.0"
SLICE_MS = 100

ffi: Any = cffi.FFI()
ffi.cdef(CDEF)
_lock = threading.Lock()
_loaded: List[Any] = []
_path: List[str] = []


def library_folders(package: pathlib.Path) -> Iterator[pathlib.Path]:
    """Folders of libraries of the prefix in which a package is installed: PREFIX/lib*/.../package; then those of this Python's."""
    prefixes = [parent.parent for parent in package.parents if parent.name in ("lib", "lib64")][:1]
    triplet = sysconfig.get_config_var("MULTIARCH") or ""
    for prefix in [*prefixes, pathlib.Path(sys.prefix)]:
        for name in (f"lib/{triplet}", "lib64", "lib"):
            yield prefix / name


def _candidates() -> List[str]:
    asked = os.environ.get("SLUICE_CLIENT_LIBRARY")
    if asked:
        return [asked]
    here = pathlib.Path(__file__).resolve().parent
    return [*(str(folder / SONAME) for folder in library_folders(here) if (folder / SONAME).exists()), SONAME]


def _load() -> Any:
    problems = []
    for name in _candidates():
        try:
            loaded = ffi.dlopen(name)
        except OSError as why:
            problems.append(str(why))
            continue
        if not hasattr(loaded, "sl_share_mapping_release"):
            raise Error("library", f"{name} is older than this package", hint="install both from one release")
        _path.append(name)
        return loaded
    raise Error("library", f"{SONAME} cannot be loaded: {'; '.join(problems)}",
                hint="install Sluice, or set SLUICE_CLIENT_LIBRARY to the path of the library")


def library() -> Any:
    """The library, loaded when it is first needed."""
    if not _loaded:
        with _lock:
            if not _loaded:
                _loaded.append(_load())
    return _loaded[0]


def library_path() -> str:
    """The path, or name, under which the library was loaded."""
    library()
    return _path[0]


# ---- texts and errors ----

def text(field: Any) -> str:
    """A text of the library's."""
    return str(ffi.string(field).decode(errors="replace"))


def c_text(value: Optional[str], keep: List[Any]) -> Any:
    """A text for the library; None: NULL. `keep` holds it while the call lasts."""
    if value is None:
        return ffi.NULL
    if "\0" in value:
        raise ValueError("a text has a null byte")
    keep.append(ffi.new("char[]", os.fsencode(value)))
    return keep[-1]


def raise_for(err: int, error: Any) -> None:
    """Raise what the library says unless err is 0 or more."""
    if err < 0:
        raise error_of(err, text(error.message), code=text(error.code), where=text(error.where), hint=text(error.hint))


# ---- time ----

def end_of(seconds: Optional[float]) -> Optional[float]:
    """When a wait of so many seconds ends; None: never."""
    return None if seconds is None else time.monotonic() + max(0.0, seconds)


def slice_ms(end: Optional[float]) -> int:
    """How long the next call may wait."""
    if end is None:
        return SLICE_MS
    left = end - time.monotonic()
    return SLICE_MS if left > SLICE_MS / 1000 else max(0, int(left * 1000 + 0.999))


def is_over(end: Optional[float]) -> bool:
    """Whether the wait has lasted long enough."""
    return end is not None and time.monotonic() >= end


# ---- handles ----

_forks: List[int] = [0]  # how often this process was forked off from another


def _forked() -> None:
    _forks[0] += 1


os.register_at_fork(after_in_child=_forked)


def fork_count() -> int:
    """Changes in a child process: what its parent opened is not the child's to use, nor to end."""
    return _forks[0]


class Handle:
    """A pointer of the library's, with any number of users at a time, or one; closed when the last of them is done."""

    def __init__(self, pointer: Any, close: Callable[[Any], Any], what: str, *, shared: bool) -> None:
        self._pointer, self._close, self._what = pointer, close, what
        self._most = sys.maxsize if shared else 1
        self._forks = fork_count()
        self._users = 0
        self._free = threading.Condition(threading.Lock())

    def __enter__(self) -> Any:
        if not self.is_ours:
            raise Error("request", f"{self._what} was opened before a fork, and belongs to the parent process", hint="open it in this process")
        with self._free:
            while self._users >= self._most and self._pointer is not None:
                self._free.wait()
            if self._pointer is None:
                raise Error("closed", f"{self._what} is closed")
            self._users += 1
            return self._pointer

    def __exit__(self, *_: object) -> None:
        with self._free:
            self._users -= 1
            if not self._users:
                self._free.notify_all()

    @property
    def is_ours(self) -> bool:
        """Whether this process opened it, and not the one that it was forked off from."""
        return self._forks == fork_count()

    @property
    def is_open(self) -> bool:
        """Whether it can be used."""
        return self._pointer is not None

    def replace(self, pointer: Any, then: Callable[[Any], None]) -> None:
        """Another pointer in the place of this one, which is closed; `then` is called with it before any other thread can use it."""
        with self._free:
            while self._users and self._pointer is not None:
                self._free.wait()
            old, closed = self._pointer, self._pointer is None
            if not closed:
                self._pointer = pointer
                then(pointer)
        self._close(pointer if closed else old)
        if closed:
            raise Error("closed", f"{self._what} is closed")

    def close(self) -> None:
        """Close it, once; in a child process, nothing."""
        if not self.is_ours:
            return
        with self._free:
            pointer, self._pointer = self._pointer, None
            self._free.notify_all()
            while self._users:
                self._free.wait()
        if pointer is not None:
            self._close(pointer)


def in_thread(call: Callable[[], Any], undo: Callable[[Any], Any]) -> Any:
    """Call what may take long on a thread of its own, so that Ctrl-C does not wait for it; what comes too late is undone."""
    lock, done = threading.Lock(), threading.Event()
    results: List[Any] = []
    given_up: List[bool] = []

    def run() -> None:
        result: Tuple[Any, Optional[BaseException]]
        try:
            result = (call(), None)
        except BaseException as why:  # it is raised by the caller's thread
            result = (None, why)
        with lock:
            results.append(result)
            late = bool(given_up)
        done.set()
        if late and result[1] is None:
            undo(result[0])

    threading.Thread(target=run, name="sluice-open", daemon=True).start()
    try:
        while not done.wait(SLICE_MS / 1000):
            pass
    except BaseException:
        with lock:
            given_up.append(True)
            early = results[0] if results else None
        if early and early[1] is None:
            undo(early[0])
        raise
    value, why = results[0]
    if why is not None:
        raise why
    return value
