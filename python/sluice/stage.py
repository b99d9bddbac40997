"""A process of the stage `python`: it calls the function of a script with each frame.

The stage starts it; it is embedded in the library, so this file need not be installed for that. It needs NumPy and the standard
library, and nothing else of this package. What it shares with the stage is in src/stage/python/wire.h and python.h.

    def judge(frame):
        return frame["image"].max() > 100
"""

from __future__ import annotations

import ctypes
import io
import json
import mmap
import os
import signal
import socket
import struct
import sys
import traceback
import types
from collections.abc import Iterator, Mapping
from typing import Any, Callable

SOCKET, MEMORY, CODE = 3, 4, 5  # descriptors
MAGIC = 0x59505653
SETUP, JUDGE = 1, 2  # orders
READY, REFUSED, VERDICT, FAILED = 1, 2, 3, 4  # answers
HEAD = struct.Struct("=QQQQQ")
HEAD_BYTES = 64
ORDER = struct.Struct("=IIQII")
ANSWER = struct.Struct("=IIQIId")
NOTE = struct.Struct("=QQQQQIHHf16I")
TEXT_BYTES = 500
KINDS_SHOWN = 50  # of exceptions, with their tracebacks

PARTIAL = 1 << 2  # of a frame's flags


class Frame(Mapping[str, Any]):
    """A frame as the script sees it: its arrays by name, and what is known of it.

    Arrays are read-only views of memory that the next frames use again: copy what is to last longer than the call.
    """

    __slots__ = ("_arrays", "number", "timestamp", "sequence", "missing", "flags", "keep", "reason", "score")

    def __init__(self, arrays: dict[str, Any], note: tuple[Any, ...]) -> None:
        self._arrays = arrays
        (_, self.number, self.timestamp, self.sequence, self.missing, self.flags, keep, self.reason, self.score) = note[:9]
        self.keep = bool(keep)  # of the stages before; so are score and reason

    def __getitem__(self, name: str) -> Any:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    @property
    def results(self) -> dict[str, Any]:
        """All arrays but the pixels: what stages before have found."""
        return {name: array for name, array in self._arrays.items() if name not in ("raw", "image")}

    @property
    def partial(self) -> bool:
        """Modules are missing: `missing` has a bit for each."""
        return bool(self.flags & PARTIAL)

    def __repr__(self) -> str:
        return f"Frame(number={self.number}, {', '.join(self._arrays)})"


class Refused(Exception):
    """The script cannot be used; the text says why."""


class Memory:
    """The places, as NumPy arrays that cannot be written."""

    def __init__(self, numpy: Any, descriptor: int) -> None:
        memory = mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ)
        magic, place_at, place_bytes, places, text = HEAD.unpack_from(memory)
        if magic != MAGIC:
            raise Refused("this program and the library that started it are of different versions")
        self.description: dict[str, Any] = json.loads(memory[HEAD_BYTES:HEAD_BYTES + text])
        self._memory, self._at, self._bytes = memory, place_at, place_bytes
        self._ragged = [(i, array["name"]) for i, array in enumerate(self.description["arrays"]) if array["ragged"]]
        self._places = [self._views(numpy, place_at + i * place_bytes) for i in range(places)]

    def _views(self, numpy: Any, at: int) -> dict[str, Any]:
        return {array["name"]: numpy.ndarray(array["shape"], array["type"], self._memory, at + array["offset"])
                for array in self.description["arrays"]}

    def frame(self, place: int) -> Frame:
        """The frame that is in a place now."""
        note = NOTE.unpack_from(self._memory, self._at + place * self._bytes)
        arrays = self._places[place]
        if self._ragged:
            arrays = dict(arrays)
            for i, name in self._ragged:
                arrays[name] = arrays[name][:note[9 + i]]
        return Frame(arrays, note)


class Script:
    """The user's file."""

    def __init__(self, path: str, function: str, description: dict[str, Any]) -> None:
        self.path, self.most = path, description["numbers"]
        self.description: dict[str, Any] = {**description, "arrays": {
            array["name"]: {"type": array["type"].lstrip("=|"), "shape": tuple(array["shape"]), "ragged": bool(array["ragged"])}
            for array in description["arrays"]}}
        name = os.path.splitext(os.path.basename(path))[0]
        self.module = types.ModuleType(name)
        self.module.__file__ = os.path.abspath(path)
        sys.modules.setdefault(name, self.module)
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, self.module.__dict__)  # pylint: disable=exec-used
        judge = getattr(self.module, function, None)
        if not callable(judge):
            raise Refused(f"there is no function {function}(frame) in it (option function)")
        self.judge: Callable[[Frame], Any] = judge

    def setup(self) -> None:
        """A run begins."""
        setup = getattr(self.module, "setup", None)
        if callable(setup):
            setup(dict(self.description))

    def verdict(self, frame: Frame) -> tuple[bool, float, list[float]]:
        """keep, score, numbers"""
        result = self.judge(frame)
        score: Any = None
        numbers: Any = ()
        if isinstance(result, Mapping):
            unknown = sorted(str(key) for key in result if key not in ("keep", "score", "numbers"))
            if unknown or "keep" not in result:
                raise TypeError(f"a verdict has the keys keep, score and numbers, not {unknown or sorted(map(str, result))}")
            result, score, numbers = result["keep"], result.get("score"), result.get("numbers", ())
        elif isinstance(result, tuple):
            if len(result) != 2:
                raise TypeError(f"a tuple as a verdict is (keep, score), and this has {len(result)} items")
            result, score = result
        if result is None:
            raise TypeError("the function returned None: it has to return whether to keep the frame")
        keep = bool(result)
        numbers = [float(number) for number in numbers]
        if len(numbers) > self.most:
            raise ValueError(f"{len(numbers)} numbers, and the stage has room for {self.most} (option numbers)")
        return keep, float(keep if score is None else score), numbers


def last_line(error: BaseException, path: str) -> str:
    """The last line of the traceback, and where in the script it was."""
    if isinstance(error, Refused):
        return str(error)
    last = traceback.format_exception_only(type(error), error)[-1].strip()
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == path else None
    for entry in traceback.extract_tb(error.__traceback__):
        if entry.filename == path:
            line = entry.lineno
    return f"line {line}: {last}" if line and f"line {line})" not in last else last


def print_error(error: BaseException) -> None:
    """Its traceback, without the lines of this file."""
    own = [entry for entry in traceback.extract_tb(error.__traceback__) if entry.filename != f"/dev/fd/{CODE}"]
    head = ["Traceback (most recent call last):\n"] if own else []
    sys.stderr.write("".join(head + traceback.format_list(own) + traceback.format_exception_only(type(error), error)))
    sys.stderr.flush()


class Process:
    """Orders in, answers out."""

    def __init__(self, channel: socket.socket, number: int) -> None:
        self.channel, self.number = channel, number
        self.kinds: set[tuple[Any, ...]] = set()

    def answer(self, kind: int, ticket: int = 0, keep: bool = False, score: float = 0, numbers: tuple[float, ...] = ()) -> None:
        self.channel.send(ANSWER.pack(MAGIC, kind, ticket, keep, len(numbers), score) + struct.pack(f"={len(numbers)}d", *numbers))

    def refuse(self, error: BaseException, path: str, what: str = "") -> None:
        """The script cannot be used. What is wrong is wrong in all processes: one prints where."""
        text = (what + last_line(error, path)).encode(errors="replace")[:TEXT_BYTES]
        if self.number == 0 and not isinstance(error, Refused):
            print_error(error)
        try:
            self.channel.send(ANSWER.pack(MAGIC, REFUSED, 0, 0, len(text), 0) + text)
        except OSError:
            pass  # the stage has heard of it from another process, and gone

    def show(self, error: Exception) -> None:
        """Its traceback, once for each kind."""
        frames = traceback.extract_tb(error.__traceback__)
        kind = (type(error), *((entry.filename, entry.lineno) for entry in frames[-1:]))
        if kind not in self.kinds and len(self.kinds) < KINDS_SHOWN:
            self.kinds.add(kind)
            print_error(error)

    def judge(self, script: Script, frame: Frame, ticket: int) -> None:
        try:
            keep, score, numbers = script.verdict(frame)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.show(error)
            self.answer(FAILED, ticket)
        else:
            self.answer(VERDICT, ticket, keep, score, tuple(numbers))

    def begin(self, script: Script) -> bool:
        """A run; False: the script cannot take it."""
        try:
            script.setup()
        except BaseException as error:  # pylint: disable=broad-exception-caught
            self.refuse(error, script.path, "setup(): ")
            return False
        self.answer(READY)
        return True

    def serve(self, script: Script, memory: Memory) -> None:
        """Until the stage closes its end."""
        order = bytearray(ORDER.size)
        while self.channel.recv_into(order) == ORDER.size:
            magic, kind, ticket, place, _ = ORDER.unpack(order)
            if magic != MAGIC:
                raise Refused("what came is no order")
            if kind == SETUP and not self.begin(script):
                sys.exit(1)
            if kind == JUDGE:
                self.judge(script, memory.frame(place), ticket)


def die_with(parent: int) -> None:
    """However the program that started this one ends."""
    PR_SET_PDEATHSIG = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        pass  # the end of the socket is noticed between two frames
    if os.getppid() != parent:
        sys.exit(1)


def load(path: str, function: str) -> tuple[Script, Memory]:
    try:
        import numpy  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise Refused(f"{sys.executable} has no NumPy ({error}); install it (Debian: python3-numpy), or name another interpreter "
                      "(option python)") from None
    memory = Memory(numpy, MEMORY)
    return Script(path, function, memory.description), memory


def main(parent: int, number: int, path: str, function: str) -> int:
    die_with(parent)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
    for descriptor in (SOCKET, MEMORY):
        os.set_inheritable(descriptor, False)
    os.close(CODE)
    process = Process(socket.socket(fileno=SOCKET), number)
    sys.argv = [path]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    try:
        script, memory = load(path, function)
    except BaseException as error:  # pylint: disable=broad-exception-caught
        process.refuse(error, path)
        return 1
    script.description["process"] = number
    if not process.begin(script):
        return 1
    try:
        process.serve(script, memory)
    except OSError:
        pass  # the stage has gone
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]))
