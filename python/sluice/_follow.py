"""Followers: programs that read what a share publishes, and cannot slow it down."""

from __future__ import annotations

import errno
import time
import weakref
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._errors import Error, error_of, unless_in_time
from ._layout import Description, bytes_at, cut, description_of
from ._library import Handle, c_text, end_of, ffi, in_thread, is_over, library, raise_for, slice_ms, text
from ._messages import Message, received, sending

#: Names of `Frame.reason`: which stage decided, and why. A plug-in may use any.
REASONS = ("unjudged", "dark", "bright_pixels", "no_pedestal", "score", "spots", "peaks", "prescaled", "rings", "tracks")
NEWEST = 2**64 - 1
DARK, COMPLETE, PARTIAL = 1, 2, 4  # bits of Frame.flags


class HeldMemory:
    """Memory of one generation, mapped until the last array of it is gone."""

    def __init__(self, pointer: Any) -> None:
        release = library().sl_share_mapping_release
        self.pointer = pointer
        self._end = weakref.finalize(self, release, pointer)
        self._end.atexit = False  # arrays may be used until the very end

    def is_valid(self, n: int) -> bool:
        """Whether element n is in its place, whole."""
        return bool(library().sl_share_mapping_is_valid(self.pointer, n))


class Frame:
    """An element of a share: a frame of a run, or what its writer likes.

    `frame["image"]` is an array of it, `frame.arrays` all of them. They are copies, or read-only views of the share's memory
    (`view=True`) that the writer may overwrite at any moment: what was made of a view counts only if `valid()` says so
    afterwards.
    """

    __slots__ = ("_element", "_data", "_mapping", "_arrays", "description")

    def __init__(self, element: Any, data: "np.ndarray[Any, Any]", mapping: Optional[HeldMemory], description: Description) -> None:
        self._element, self._data, self._mapping = element, data, mapping
        self._arrays: Optional[Dict[str, "np.ndarray[Any, Any]"]] = None
        self.description = description

    @property
    def n(self) -> int:
        """The element's place in the sequence of all that the share published."""
        return int(self._element.n)

    @property
    def missed(self) -> int:
        """Elements between the last one and this one that this follower did not get."""
        return int(self._element.missed)

    @property
    def number(self) -> int:
        """The detector's number of the frame."""
        return int(self._element.note.number)

    @property
    def timestamp(self) -> int:
        """The detector's time of the frame, in its own unit."""
        return int(self._element.note.timestamp)

    @property
    def committed(self) -> float:
        """When it was published: seconds since 1970, as time.time()."""
        return int(self._element.note.commit_unix_ns) * 1e-9

    @property
    def committed_ns(self) -> int:
        """The same in nanoseconds, as time.time_ns()."""
        return int(self._element.note.commit_unix_ns)

    @property
    def keep(self) -> bool:
        """The verdict of the stages."""
        return bool(self._element.note.keep)

    @property
    def reason(self) -> int:
        """Why: an index into `sluice.REASONS`."""
        return int(self._element.note.reason)

    @property
    def reason_name(self) -> str:
        """Why, in a word; the number of one that has none here."""
        reason = self.reason
        return REASONS[reason] if reason < len(REASONS) else str(reason)

    @property
    def score(self) -> float:
        """Of the stage that decided."""
        return float(self._element.note.score)

    @property
    def missing(self) -> int:
        """A bit for each module whose pixels are not there."""
        return int(self._element.note.missing)

    @property
    def flags(self) -> int:
        """Bits: 1 dark, 2 complete, 4 kept with missing modules."""
        return int(self._element.note.flags)

    @property
    def epoch(self) -> int:
        """A number of the writer's."""
        return int(self._element.note.epoch)

    @property
    def user(self) -> Tuple[int, ...]:
        """Eight numbers of the writer's."""
        return tuple(self._element.note.user)

    @property
    def is_view(self) -> bool:
        """Whether the arrays are views of the share's memory."""
        return self._mapping is not None

    @property
    def arrays(self) -> Dict[str, "np.ndarray[Any, Any]"]:
        """All arrays of this element by name; one that it does not have is left out, as the image of a frame that no stage saw."""
        if self._arrays is None:
            rows, absent = self._element.note.rows, self._element.note.absent
            self._arrays = {place.name: cut(place, self._data, rows[place.index]) for place in self.description.places
                            if not absent >> place.index & 1}
        return self._arrays

    def __getitem__(self, name: str) -> "np.ndarray[Any, Any]":
        try:
            return self.arrays[name]
        except KeyError:
            raise _no_array(name, self.description, self._element) from None

    def __contains__(self, name: object) -> bool:
        return name in self.arrays

    def valid(self) -> bool:
        """Whether what the arrays show is this element, whole: always of a copy; of a view until the writer takes its place."""
        return self._mapping is None or self._mapping.is_valid(self.n)

    def copy(self) -> "Frame":
        """A frame with copies of the arrays, for a view. Raises Overtaken if the writer was faster."""
        data = self._data.copy()
        if not self.valid():
            raise error_of(-errno.ESTALE, f"element {self.n} was overtaken by the writer")
        return Frame(self._element, data, None, self.description)

    def __repr__(self) -> str:
        arrays = ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in self.arrays.items())
        return f"<sluice.Frame n={self.n} number={self.number} {arrays}>"


def _no_array(name: str, description: Description, element: Any) -> KeyError:
    if name in description.arrays:
        return KeyError(f"element {element.n} has no '{name}'")
    return KeyError(f"no array '{name}'; there are: {', '.join(description.arrays)}")


def _open(url: str, timeout: float, secret_file: Optional[str], device: Optional[str], queue_bytes: int) -> Any:
    lib, keep = library(), []  # type: Any, List[Any]
    options = ffi.new("struct sl_follow_options *")
    options.bytes = ffi.sizeof("struct sl_follow_options")
    options.timeout_ms, options.queue_bytes = max(1, int(timeout * 1000)), queue_bytes
    options.secret_file, options.device = c_text(secret_file, keep), c_text(device, keep)
    where, error = ffi.new("struct sl_follower **"), ffi.new("struct sl_remote_error *")
    raise_for(lib.sl_follow_open(c_text(url, keep), options, where, error), error)
    return where[0]


class Follower:
    """A follower of one share. Iterate over it, or call `next()`; it closes itself when it is gone, or as a context manager.

    url: "share:NAME", or NAME, is a share of this user on this host, "rdma://HOST:PORT/NAME" a share anywhere.
    every: each element in its order, those that the writer has overtaken counted as missed; else the newest, which suits displays.
    view: arrays are read-only views of the share's memory, without a copy (only on one host).
    timeout: an element that takes longer raises Timeout; None: no limit.
    again: when the share ends or its writer crashes, go on with the next one of that name, as those of a session's runs.
    wait: seconds to wait for a share that is not there yet.
    connect_timeout: seconds for the share to answer; a fetch() waits as long for the only place of a share that is being filled.
    secret_file, device: of rdma://.
    queue_bytes: messages that wait to be received (0: 1 GiB); a longer one is dropped.

    Several threads may use a follower; they take turns.
    """

    def __init__(self, url: str, *, every: bool = False, view: bool = False, timeout: Optional[float] = None, again: bool = False,
                 wait: float = 0.0, connect_timeout: float = 5.0, secret_file: Optional[str] = None, device: Optional[str] = None,
                 queue_bytes: int = 0) -> None:
        self.url, self.every, self.view, self.timeout, self.again = url, every, view, timeout, again
        self._connect_timeout, self._secret_file, self._device, self._queue_bytes = connect_timeout, secret_file, device, queue_bytes
        pointer = self._connect(end_of(wait))
        self._handle = Handle(pointer, library().sl_follow_close, f"the follower of {url}", shared=False)
        self._end = weakref.finalize(self, self._handle.close)
        self._buffer: Optional["np.ndarray[Any, Any]"] = None
        self._mapping: Optional[HeldMemory] = None
        self._places: Dict[int, "np.ndarray[Any, Any]"] = {}
        with self._handle as opened:
            self._attach(opened)

    def _connect(self, end: Optional[float]) -> Any:
        """A follower of the library's, once the share is there."""
        while True:
            try:
                return in_thread(lambda: _open(self.url, self._connect_timeout, self._secret_file, self._device, self._queue_bytes),
                                 library().sl_follow_close)
            except Error as why:
                # One that has just ended may still be listed, and hang up.
                if why.code not in (("absent", "connection") if self.again else ("absent",)) or is_over(end):
                    raise
                time.sleep(0.01)

    def _connect_again(self, end: Optional[float], timeout: Optional[float]) -> None:
        try:
            pointer = self._connect(end)
        except Error as why:
            if why.code not in ("absent", "connection"):
                raise
            raise unless_in_time(timeout, f"{self.url}: it has ended, and no other share of that name came") from None
        self._handle.replace(pointer, self._attach)

    def _attach(self, pointer: Any) -> None:
        """What is known of the generation that the follower is attached to now."""
        self._description = description_of(library().sl_follow_describe(pointer))
        self._buffer, self._mapping, self._places = None, None, {}

    # ---- elements ----

    def __iter__(self) -> Iterator[Frame]:
        return self

    def __next__(self) -> Frame:
        frame = self._next(self.every, self.view, self.timeout)
        if frame is None:
            raise StopIteration
        return frame

    def next(self, timeout: Optional[float] = None, *, every: Optional[bool] = None, view: Optional[bool] = None) -> Frame:
        """The next element. Raises Timeout, or Ended when the share has ended and all is read.

        timeout: seconds; None: that of the follower. every, view: as those of the follower, for this call.
        """
        frame = self._next(self.every if every is None else every, self.view if view is None else view,
                           self.timeout if timeout is None else timeout)
        if frame is None:
            raise error_of(-errno.EPIPE, f"{self.url} has ended")
        return frame

    def _next(self, every: bool, view: bool, timeout: Optional[float]) -> Optional[Frame]:
        lib, end = library(), end_of(timeout)
        mode = lib.SL_FOLLOW_EVERY if every else lib.SL_FOLLOW_NEWEST
        element = ffi.new("struct sl_follow_element *")
        while True:
            with self._handle as pointer:
                err = self._try(lib, pointer, mode, view, slice_ms(end), element)
                if err == 0:
                    return self._frame(pointer, view, element)
                if err == -errno.ESTALE:
                    self._attach(pointer)
            if err in (-errno.EPIPE, -errno.ECONNRESET) and self.again:
                self._connect_again(end, timeout)
            elif err == -errno.EPIPE:
                return None
            elif err == -errno.ETIMEDOUT:
                if is_over(end):
                    raise unless_in_time(timeout, f"{self.url}: no element came")
            elif err != -errno.ESTALE:
                raise self._error(err)

    def _try(self, lib: Any, pointer: Any, mode: Any, view: bool, wait_ms: int, element: Any) -> int:
        if view:
            return int(lib.sl_follow_peek(pointer, mode, wait_ms, element))
        if self._buffer is None:
            self._buffer = np.empty(self._description.data_bytes, np.uint8)
        return int(lib.sl_follow_next(pointer, mode, wait_ms, ffi.from_buffer(self._buffer), self._buffer.nbytes, element))

    def _frame(self, pointer: Any, view: bool, element: Any) -> Frame:
        """Of an element that was copied to the buffer, which goes with it, or peeked at."""
        if view:
            return Frame(element, self._place(pointer, element.data), self._mapping, self._description)
        data, self._buffer = self._buffer, None
        assert data is not None
        return Frame(element, data, None, self._description)

    def _place(self, pointer: Any, at: Any) -> "np.ndarray[Any, Any]":
        """The data of a place, in the share's memory."""
        address = int(ffi.cast("uintptr_t", at))
        mapping = self._hold(pointer)
        if address not in self._places:
            self._places[address] = bytes_at(address, self._description.data_bytes, mapping)
        return self._places[address]

    def _hold(self, pointer: Any) -> HeldMemory:
        if self._mapping is None:
            held = library().sl_follow_hold_mapping(pointer)
            if not held:
                raise self._no_view()
            self._mapping = HeldMemory(held)
        return self._mapping

    def _error(self, err: int) -> Error:
        if err == -errno.EOPNOTSUPP:
            return self._no_view()
        what = {
            -errno.EPIPE: "it has ended",
            -errno.ECONNRESET: "its writer has crashed, or hung up",
            -errno.ENOBUFS: "messages that were not received fill the queue of this follower: receive() them",
            -errno.EAGAIN: "the writer overtook every copy: the ring has too few places for this follower",
        }.get(err, error_of(err).message)
        return error_of(err, f"{self.url}: {what}", code="overtaken" if err == -errno.EAGAIN else "")

    def _no_view(self) -> Error:
        return error_of(-errno.EOPNOTSUPP, f"{self.url}: its memory is not mapped here, so that there is no view of it", hint="follow it without view=True")

    # ---- parts ----

    def fetch(self, n: Optional[int] = None) -> Frame:
        """A copy of element n, or of the newest one, now. Raises Overtaken, or Error "empty": nothing is published yet."""
        data = np.empty(self.describe().data_bytes, np.uint8)
        element = self._fetch(n, 0, data)
        return Frame(element, data, None, self._description)

    def fetch_array(self, name: str, n: Optional[int] = None) -> "np.ndarray[Any, Any]":
        """A copy of one array of element n, or of the newest one: no other bytes are read."""
        places = {place.name: place for place in self.describe().places}
        if name not in places:
            raise KeyError(f"no array '{name}'; there are: {', '.join(places)}")
        place = places[name]
        data = np.empty(place.array.nbytes, np.uint8)
        element = self._fetch(n, place.offset, data)
        if element.note.absent >> place.index & 1:
            raise _no_array(name, self._description, element)
        whole: "np.ndarray[Any, Any]" = np.ndarray(place.array.shape, place.array.dtype, buffer=data)
        return whole[:element.note.rows[place.index]] if place.array.ragged else whole

    def fetch_bytes(self, offset: int = 0, size: Optional[int] = None, n: Optional[int] = None,
                    into: Optional["np.ndarray[Any, Any]"] = None) -> "np.ndarray[Any, Any]":
        """`size` bytes (None: all that follow) of the data of element n, or of the newest one, from `offset`.

        into: memory of yours for them, a writable contiguous array of exactly that size.
        """
        if offset < 0 or (size is not None and size < 0):
            raise ValueError("offset and size are 0 or more")
        left = self.describe().data_bytes - offset
        size = max(0, left) if size is None else size
        if size > left:
            raise error_of(-errno.ERANGE, f"{size} bytes from {offset} on: an element has {self._description.data_bytes}")
        if into is None:
            into = np.empty(size, np.uint8)
        if not into.flags.c_contiguous or not into.flags.writeable or into.nbytes != size:
            raise ValueError(f"into: a writable, contiguous array of {size} bytes is needed")
        if size:
            self._fetch(n, offset, into)
        return into

    def _fetch(self, n: Optional[int], offset: int, into: "np.ndarray[Any, Any]") -> Any:
        element = ffi.new("struct sl_follow_element *")
        number = NEWEST if n is None else n
        with self._handle as pointer:
            generation = self._description.generation
            err = library().sl_follow_fetch(pointer, number, offset, into.nbytes, ffi.from_buffer(into, require_writable=True), element)
            if err == -errno.ESTALE:
                self._attach(pointer)
                if self._description.generation != generation:
                    raise error_of(err, f"{self.url} has another layout now: describe() it, and fetch again")
        if err == -errno.ESTALE:
            raise error_of(err, f"{self.url}: element {n} was overtaken by the writer")
        if err == -errno.ENODATA:
            raise error_of(err, f"{self.url}: " + ("nothing is published yet" if n is None else f"element {n} is not published yet"))
        if err:
            raise self._error(err)
        return element

    # ---- what it is ----

    def describe(self) -> Description:
        """The share as this follower sees it: arrays, places, generation. Changes when next() or fetch() met a resize."""
        return self._description

    @property
    def published(self) -> int:
        """How many elements are published, in this generation. rdma://: it asks the share."""
        count = ffi.new("uint64_t *")
        with self._handle as pointer:
            err = library().sl_follow_published(pointer, count)
            if err == -errno.ESTALE:
                self._attach(pointer)
                err = library().sl_follow_published(pointer, count)
        if err:
            raise self._error(err)
        return int(count[0])

    @property
    def peers(self) -> int:
        """How many programs follow the share, this one among them."""
        with self._handle as pointer:
            return int(library().sl_follow_peers(pointer))

    @property
    def flag(self) -> "np.ndarray[Any, Any]":
        """The word that says how many elements are published, in the share's memory: an array of one uint64, for a loop or a
        kernel that waits by itself. After a resize take it again."""
        with self._handle as pointer:
            address = int(ffi.cast("uintptr_t", library().sl_follow_flag(pointer)))
            return bytes_at(address, 8, self._hold(pointer)).view(np.uint64)

    # ---- pings and messages ----

    def ping(self, timeout: float = 5.0) -> float:
        """Seconds to the share's thread and back."""
        end, took = end_of(timeout), ffi.new("uint64_t *")
        while True:
            with self._handle as pointer:
                err = library().sl_follow_ping(pointer, slice_ms(end), took)
            if err == 0:
                return float(took[0]) * 1e-9
            if err not in (-errno.ETIMEDOUT, -errno.EAGAIN):
                raise self._error(err)
            if is_over(end):
                raise unless_in_time(timeout, f"{self.url} did not answer")

    def send(self, data: Union[bytes, bytearray, memoryview, str, "np.ndarray[Any, Any]"], kind: int = 0, timeout: float = 5.0) -> None:
        """Send a message to the writer. A str is sent as UTF-8. Raises Timeout while its queue is full, Error "size": the message is
        longer than that queue."""
        end = end_of(timeout)
        with sending(data) as (start, size):
            while True:
                with self._handle as pointer:
                    err = library().sl_follow_send(pointer, kind, start, size, slice_ms(end))
                if err == 0:
                    return
                if err == -errno.EMSGSIZE:
                    raise error_of(err, f"{self.url}: a message of {size} bytes is longer than the writer's queue (queue_bytes of its share)")
                if err not in (-errno.EAGAIN, -errno.ETIMEDOUT):
                    raise self._error(err)
                if is_over(end):
                    raise unless_in_time(timeout, f"{self.url}: the writer's queue is full, and had no room")

    def receive(self, timeout: Optional[float] = None) -> Message:
        """The next message of the writer. Raises Timeout (None: no limit), or Error "size": it was longer than queue_bytes, and was
        dropped."""
        end, message = end_of(timeout), ffi.new("struct sl_share_message *")
        while True:
            with self._handle as pointer:
                err = library().sl_follow_receive(pointer, slice_ms(end), message)
            if err == 0:
                return received(message)
            if err == -errno.EMSGSIZE:
                raise error_of(err, f"{self.url}: a message of {message.bytes} bytes was dropped: it is longer than queue_bytes")
            if err != -errno.ETIMEDOUT:
                raise self._error(err)
            if is_over(end):
                raise unless_in_time(timeout, f"{self.url}: no message came")

    # ---- the end ----

    def close(self) -> None:
        """Stop following. Frames stay as they are; views show what was there last."""
        self._handle.close()
        self._end.detach()

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return not self._handle.is_open

    def __enter__(self) -> "Follower":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sluice.Follower {self.url}{' (closed)' if self.closed else ''}>"


def follow(url: str, *, every: bool = False, view: bool = False, timeout: Optional[float] = None, again: bool = False,
           wait: float = 0.0, connect_timeout: float = 5.0, secret_file: Optional[str] = None, device: Optional[str] = None,
           queue_bytes: int = 0) -> Follower:
    """Follow a share: `for frame in sluice.follow("share:run1"): ...`. See `Follower`."""
    return Follower(url, every=every, view=view, timeout=timeout, again=again, wait=wait, connect_timeout=connect_timeout,
                    secret_file=secret_file, device=device, queue_bytes=queue_bytes)


def shares() -> List[str]:
    """Names of the shares of this user on this host that live."""
    lib, names, n = library(), ffi.new("char (**)[64]"), ffi.new("size_t *")
    err = lib.sl_share_list(names, n)
    if err:
        raise error_of(err, "the folder of shares is refused, since other users could enter it")
    try:
        return [text(names[0][i]) for i in range(n[0])]
    finally:
        lib.sl_remote_free(names[0])
