"""Shares: memory that a program publishes, and others follow."""

from __future__ import annotations

import errno
import mmap
import os
import threading
import time
import weakref
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ._errors import Error, error_of, unless_in_time
from ._follow import HeldMemory
from ._layout import PAGE, Array, Description, bytes_at, cut, description_of, fill_arrays, stride_of
from ._library import Handle, c_text, end_of, ffi, is_over, library, raise_for, slice_ms, text
from ._messages import Message, received, sending

ArrayLike = Union[Array, Tuple[Any, ...], "np.ndarray[Any, Any]"]
Memory = Union["np.ndarray[Any, Any]", Tuple[int, int]]
REGION = "data"  # the name of an array that has none


# ---- arrays that can be the memory of a share ----

class _SharedMemory(mmap.mmap):
    """A mapping that knows its memfd."""

    fd: int = -1


def shared_array(shape: Union[int, Sequence[int]], dtype: Any = float, count: Optional[int] = None) -> "np.ndarray[Any, Any]":
    """An array of zeros whose memory can be that of a share: `sluice.Share(name, memory=array)`.

    count: for a ring, an array [count, *shape] with a place of the ring in each row: `sluice.Share(name, memory=array, count=count)`.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise ValueError("objects cannot be shared")
    nbytes = int(np.prod(sizes, dtype=np.int64)) * kind.itemsize
    stride = stride_of(nbytes)
    if nbytes <= 0 or (count is not None and count < 1):
        raise ValueError("an array without elements cannot be shared")
    fd = os.memfd_create("sluice-array", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        room = -(-(stride * (count or 1)) // PAGE) * PAGE
        os.ftruncate(fd, room)
        memory = _SharedMemory(fd, room)
    except BaseException:
        os.close(fd)
        raise
    memory.fd = fd
    weakref.finalize(memory, os.close, fd)
    if count is None:
        return np.ndarray(sizes, kind, buffer=memory)
    inner = np.ndarray(sizes, kind, buffer=memory).strides
    return np.ndarray((count, *sizes), kind, buffer=memory, strides=(stride, *inner))


def _memory_of(array: "np.ndarray[Any, Any]") -> Tuple[_SharedMemory, int]:
    """The shared memory that an array lies in, and the offset of its first byte there."""
    base: Any = array
    while base is not None and not isinstance(base, _SharedMemory):
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    if base is None:
        raise Error("request", "the memory of this array belongs to this program alone, and others cannot map it",
                    hint="make it with sluice.shared_array(shape, dtype), or push() copies of it", errno=errno.EINVAL)
    start = np.frombuffer(base, np.uint8).__array_interface__["data"][0]
    return base, int(array.__array_interface__["data"][0] - start)


def _check_memory(array: "np.ndarray[Any, Any]", count: Optional[int], offset: int) -> "np.ndarray[Any, Any]":
    """One element of it, if it is laid out as a share needs it."""
    one: "np.ndarray[Any, Any]" = array if count is None else array[0, ...]
    hint = "use the whole array that sluice.shared_array() returned"
    if count is not None and len(array) != count:
        raise Error("request", f"the array has {len(array)} rows, and the ring {count} places", errno=errno.EINVAL)
    if offset % PAGE or not one.flags.c_contiguous or not array.flags.writeable:
        raise Error("request", "the array is not contiguous, read only, or does not begin at a page", hint=hint, errno=errno.EINVAL)
    if count is not None and count > 1 and array.strides[0] != stride_of(one.nbytes):
        raise Error("request", "rows of the array do not lie where places of a ring do", errno=errno.EINVAL,
                    hint="make it with sluice.shared_array(shape, dtype, count)")
    return one


# ---- options ----

def _array_of(value: ArrayLike) -> Array:
    if isinstance(value, Array):
        return value
    if isinstance(value, np.ndarray):
        return Array(value.dtype, value.shape)
    return Array(*value)


class _Layout:
    """What a share is to have: arrays, places, memory; as the library's options, which live as long as this."""

    def __init__(self, arrays: Union[Mapping[str, ArrayLike], str, None], count: Optional[int], memory: Optional[Memory]) -> None:
        self._keep: List[Any] = []
        self.memory: Optional[object] = None
        self.fd, self.offset = 0, 0
        if isinstance(memory, np.ndarray):
            self.memory, self.offset = _memory_of(memory)
            self.fd = self.memory.fd
            one = _check_memory(memory, count, self.offset)
            if isinstance(arrays, Mapping):
                raise ValueError("with an array as memory, `arrays` is its name or None")
            arrays = {arrays or REGION: one}
        elif memory is not None:
            self.fd, self.offset = memory
        if not isinstance(arrays, Mapping):
            raise ValueError("arrays: a mapping, {name: sluice.Array(dtype, shape)}, is needed")
        self.arrays = {name: _array_of(value) for name, value in arrays.items()}
        self.count = 1 if count is None else count
        if self.count < 1:
            raise ValueError("count: a ring has at least one place")

    def options(self, run: Optional[str] = None, *, max_peers: int = 0, queue_bytes: int = 0, listen: Optional[str] = None,
                secret_file: Optional[str] = None, device: Optional[str] = None) -> Any:
        """The `struct sl_share_options`."""
        filled, options = fill_arrays(self.arrays), ffi.new("struct sl_share_options *")
        self._keep.append(filled)
        options.bytes = ffi.sizeof("struct sl_share_options")
        options.arrays, options.array, options.count = len(self.arrays), filled, self.count
        options.memory_fd, options.memory_offset = self.fd, self.offset
        options.max_peers, options.queue_bytes = max_peers, queue_bytes
        options.run, options.listen = c_text(run, self._keep), c_text(listen, self._keep)
        options.secret_file, options.device = c_text(secret_file, self._keep), c_text(device, self._keep)
        return options


class Counts(NamedTuple):
    """What a share has done so far."""

    published: int
    peers: int
    peers_ever: int
    refused: int
    messages_in: int
    messages_out: int


# ---- elements ----

class Element:
    """The next element of a share, filled in place: `element["image"][:] = pixels`, `element.number = 7`, `element.commit()`.

    As a context manager it commits at the end, unless an exception came: then nothing is published, and the next reserve() has
    the same place. Behind the commit its arrays are read only.
    """

    __slots__ = ("_share", "_note", "_arrays", "_description", "_done")
    _share: "Share"
    _note: Any
    _arrays: Dict[str, "np.ndarray[Any, Any]"]
    _description: Description
    _done: bool

    def __init__(self, share: "Share", note: Any, arrays: Dict[str, "np.ndarray[Any, Any]"], description: Description) -> None:
        object.__setattr__(self, "_share", share)
        object.__setattr__(self, "_note", note)
        object.__setattr__(self, "_arrays", arrays)
        object.__setattr__(self, "_description", description)
        object.__setattr__(self, "_done", False)

    _NUMBERS = frozenset(("number", "timestamp", "missing", "score", "keep", "reason", "flags", "epoch"))

    def __getitem__(self, name: str) -> "np.ndarray[Any, Any]":
        return self._arrays[name]

    @property
    def arrays(self) -> Dict[str, "np.ndarray[Any, Any]"]:
        """All arrays by name; ragged ones with all the rows that there can be."""
        return self._arrays

    def __setattr__(self, name: str, value: Any) -> None:
        """number, timestamp, missing, score, keep, reason, flags, epoch; user: up to eight numbers."""
        if self._done:
            raise Error("state", "the element is committed, or its share was resized")
        if name == "user":
            numbers = [int(n) for n in value]
            if len(numbers) > len(self._note.user):
                raise ValueError(f"user: at most {len(self._note.user)} numbers")
            for i, number in enumerate(numbers):
                self._note.user[i] = number
        elif name in self._NUMBERS:
            setattr(self._note, name, float(value) if name == "score" else int(value))
        else:
            raise AttributeError(f"an element has no '{name}'; there are: {', '.join(sorted(self._NUMBERS))}, user")

    def set_rows(self, name: str, rows: int) -> None:
        """How many rows of a ragged array this element has."""
        place = next((p for p in self._description.places if p.name == name), None)
        if place is None or not place.array.ragged:
            raise ValueError(f"'{name}' is no ragged array")
        if not 0 <= rows <= place.array.shape[0]:
            raise ValueError(f"'{name}': {rows} rows, and there can be {place.array.shape[0]}")
        if self._done:
            raise Error("state", "the element is committed, or its share was resized")
        self._note.rows[place.index] = rows

    def leave_out(self, *names: str) -> None:
        """Say that this element does not have these arrays: followers do not get them."""
        if self._done:
            raise Error("state", "the element is committed, or its share was resized")
        places = {place.name: place.index for place in self._description.places}
        for name in names:
            if name not in places:
                raise KeyError(f"no array '{name}'; there are: {', '.join(places)}")
            self._note.absent |= 1 << places[name]

    def commit(self) -> int:
        """Publish it; returns its n."""
        return self._share._commit(self)  # pylint: disable=protected-access

    def _reset(self) -> None:
        """Forget all numbers."""
        self._note[0] = ffi.new("struct sl_share_note *", {"keep": 1})[0]  # kept, unless the caller decides otherwise

    def _finish(self) -> None:
        object.__setattr__(self, "_done", True)
        for array in self._arrays.values():
            array.flags.writeable = False

    def __enter__(self) -> "Element":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._done:
            return
        if kind is None:
            self.commit()
        else:
            self._reset()


class Share:
    """A share: this program publishes elements, any number of others follow them, and none of them can slow it down.

    name: 1 to 63 characters of A-Z a-z 0-9 . _ -; followers say "share:NAME".
    arrays: what each element has: {name: sluice.Array(dtype, shape, unit, ragged)}, or a NumPy array to be like.
    count: places of the ring; without it the share is a plain region of memory, a ring of one place.
    memory: an array of `sluice.shared_array()`, which is then the memory of the one array of each element (`arrays`: its name);
        or (fd, offset) of a memfd. Without it the share makes its own.
    run: what this is about, for people.
    listen: "HOST:PORT": followers on other hosts, too, by RDMA. secret_file: what they prove to know. device: of RDMA.
    max_peers: followers at a time (0: 64). queue_bytes: messages that wait, for each follower and direction (0: 64 MiB).

    One thread writes elements at a time; any thread sends and receives messages.
    """

    def __init__(self, name: str, arrays: Union[Mapping[str, ArrayLike], str, None] = None, count: Optional[int] = None, *,
                 memory: Optional[Memory] = None, run: Optional[str] = None, listen: Optional[str] = None,
                 secret_file: Optional[str] = None, device: Optional[str] = None, max_peers: int = 0, queue_bytes: int = 0) -> None:
        lib, layout, keep = library(), _Layout(arrays, count, memory), []  # type: Any, _Layout, List[Any]
        options = layout.options(run, max_peers=max_peers, queue_bytes=queue_bytes, listen=listen, secret_file=secret_file, device=device)
        where, error = ffi.new("struct sl_share **"), ffi.new("struct sl_remote_error *")
        raise_for(lib.sl_share_open(c_text(name, keep), options, where, error), error)
        self._handle = Handle(where[0], lib.sl_share_close, f"the share '{name}'", shared=True)
        self._end = weakref.finalize(self, self._handle.close)
        self._writing = threading.RLock()
        self._run = run
        self._reserved: Optional[Element] = None
        with self._handle as pointer:
            self._url = text(lib.sl_share_url(pointer))
            self._use(pointer, layout)

    def _use(self, pointer: Any, layout: _Layout) -> None:
        """A generation that begins."""
        self._memory = layout.memory
        self._description = description_of(library().sl_share_describe(pointer))
        self._held: Optional[HeldMemory] = None
        self._places: Dict[int, "np.ndarray[Any, Any]"] = {}
        if self._reserved:
            self._reserved._finish()  # pylint: disable=protected-access
            self._reserved = None

    # ---- elements ----

    def reserve(self) -> Element:
        """The next element, to be filled in place. From here on followers cannot get the one that lay there before."""
        with self._writing, self._handle as pointer:
            if self._reserved is None:
                lib = library()
                note = lib.sl_share_reserve(pointer)
                data = self._place(pointer, lib.sl_share_at(pointer, 0))
                arrays = {place.name: cut(place, data, place.array.shape[0] if place.array.ragged else 0)
                          for place in self._description.places}
                self._reserved = Element(self, note, arrays, self._description)
                self._reserved._reset()  # pylint: disable=protected-access
            return self._reserved

    def _place(self, pointer: Any, at: Any) -> "np.ndarray[Any, Any]":
        address = int(ffi.cast("uintptr_t", at))
        if self._held is None:
            held = library().sl_share_hold_mapping(pointer)
            if not held:
                raise error_of(-errno.ENOMEM)
            self._held = HeldMemory(held)
        if address not in self._places:
            self._places[address] = bytes_at(address, self._description.data_bytes, self._held, writable=True)
        return self._places[address]

    def _commit(self, element: Element) -> int:
        with self._writing, self._handle as pointer:
            if self._reserved is not element:
                raise Error("state", "the element is committed, or its share was resized")
            n = int(library().sl_share_commit(pointer))
            self._reserved = None
            element._finish()  # pylint: disable=protected-access
            return n

    def commit(self) -> int:
        """Publish what was reserved; returns its n. Of a share whose memory is an array: publish what is in the array now."""
        return self.reserve().commit()

    def push(self, values: Union[Mapping[str, Any], "np.ndarray[Any, Any]", None] = None, **note: Any) -> int:
        """Publish a copy: of arrays by name, or of one array where elements have one. The element does not have arrays that are not
        named. note: number, timestamp, score, keep, reason, missing, flags, epoch, user. Returns its n.
        """
        named = values if isinstance(values, Mapping) else {} if values is None else {self._only(): values}
        places = {place.name: place for place in self._description.places}
        given = {name: self._fitting(places, name, value) for name, value in named.items()}
        unknown = set(note) - Element._NUMBERS - {"user"}  # pylint: disable=protected-access
        if unknown:
            raise TypeError(f"an element has no '{sorted(unknown)[0]}'; there are: {', '.join(sorted(Element._NUMBERS))}, user")
        with self._writing, self.reserve() as element:
            element._reset()  # pylint: disable=protected-access
            for name, value in given.items():
                ragged = places[name].array.ragged
                np.copyto(element[name][:len(value)] if ragged else element[name], value, casting="same_kind")
                if ragged:
                    element.set_rows(name, len(value))
            element.leave_out(*(name for name in places if name not in given))
            for name, number in note.items():
                setattr(element, name, number)
            return element.commit()

    def _only(self) -> str:
        if len(self._description.places) != 1:
            raise ValueError(f"which array? {', '.join(self._description.arrays)}: give a mapping")
        return self._description.places[0].name

    def _fitting(self, places: Mapping[str, Any], name: str, value: Any) -> "np.ndarray[Any, Any]":
        """The value as an array, if it fits."""
        if name not in places:
            raise KeyError(f"no array '{name}'; there are: {', '.join(places)}")
        array, given = places[name].array, np.asarray(value)
        fits = given.shape[1:] == array.shape[1:] and given.ndim == len(array.shape) and len(given) <= array.shape[0] if array.ragged \
            else given.shape == array.shape
        if not fits:
            raise ValueError(f"array '{name}' is {'at most ' if array.ragged else ''}{array.shape}, not {given.shape}")
        if given.dtype.kind in "iu" and array.dtype.kind in "iu" and not isinstance(value, np.ndarray):
            info = np.iinfo(array.dtype)  # numbers of a list: those decide, not the type that NumPy gives them
            if given.size and (given.min() < info.min or given.max() > info.max):
                raise ValueError(f"array '{name}' is {array.dtype}, from {info.min} to {info.max}")
            given = given.astype(array.dtype)
        if not np.can_cast(given.dtype, array.dtype, "same_kind"):
            raise TypeError(f"array '{name}' is {array.dtype}, and {given.dtype} cannot become that without loss")
        return given

    def resize(self, arrays: Union[Mapping[str, ArrayLike], str, None] = None, count: Optional[int] = None, *,
               memory: Optional[Memory] = None) -> None:
        """Another layout: new memory under the same name. Followers read what is published in the old one, then attach again."""
        layout, error = _Layout(arrays, count, memory), ffi.new("struct sl_remote_error *")
        options = layout.options(self._run)
        with self._writing, self._handle as pointer:
            raise_for(library().sl_share_resize(pointer, options, error), error)
            self._use(pointer, layout)

    # ---- messages ----

    def send(self, data: Union[bytes, bytearray, memoryview, str, "np.ndarray[Any, Any]"], peer: int = 0, kind: int = 0,
             timeout: float = 5.0) -> None:
        """Send a message to the follower with that number, or to every one that is connected and has room (0). A str is sent as
        UTF-8. Raises Timeout while its queue is full, Error "absent": that follower has gone."""
        end = end_of(timeout)
        with sending(data) as (start, size):
            while True:
                with self._handle as pointer:
                    err = library().sl_share_send(pointer, peer, kind, start, size)
                if err == 0:
                    return
                if err == -errno.ENOENT:
                    raise error_of(err, f"follower {peer} has gone")
                if err == -errno.EMSGSIZE:
                    raise error_of(err, f"a message of {size} bytes is longer than a queue; see queue_bytes")
                if err != -errno.EAGAIN:
                    raise error_of(err)
                if is_over(end):
                    raise unless_in_time(timeout, f"the queue of follower {peer} is full, and had no room")
                time.sleep(0.001)

    def receive(self, timeout: Optional[float] = None) -> Message:
        """The next message of any follower. Raises Timeout; None: no limit."""
        end, message = end_of(timeout), ffi.new("struct sl_share_message *")
        while True:
            with self._handle as pointer:
                err = library().sl_share_receive(pointer, slice_ms(end), message)
            if err == 0:
                return received(message)
            if err != -errno.ETIMEDOUT:
                raise error_of(err)
            if is_over(end):
                raise unless_in_time(timeout, f"{self._url}: no message came")

    # ---- what it is ----

    @property
    def url(self) -> str:
        """What followers say."""
        return self._url

    def describe(self) -> Description:
        """Arrays, places, generation."""
        return self._description

    def counts(self) -> Counts:
        """What it has done so far."""
        c = ffi.new("struct sl_share_counts *")
        with self._handle as pointer:
            library().sl_share_count(pointer, c)
        return Counts(int(c.published), int(c.peers), int(c.peers_ever), int(c.refused), int(c.messages_in), int(c.messages_out))

    def close(self) -> None:
        """End it. Followers read what is published, and are told."""
        with self._writing:
            if self._reserved:
                self._reserved._finish()  # pylint: disable=protected-access
                self._reserved = None
        self._end()

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return not self._handle.is_open

    def __enter__(self) -> "Share":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sluice.Share {self._url}{' (closed)' if self.closed else ''}>"
