"""Messages between a share and those who follow it."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Iterator, Tuple, Union

import numpy as np

from ._library import ffi, library


@dataclasses.dataclass(frozen=True)
class Message:
    """A message that arrived. `peer`: the number of the follower that sent it; 0: the writer. `kind`: the application's own."""

    data: bytes
    kind: int = 0
    peer: int = 0

    def text(self) -> str:
        """The data as UTF-8."""
        return self.data.decode()


def received(message: Any) -> Message:
    """What a `struct sl_share_message` has; its memory is freed."""
    try:
        data = bytes(ffi.buffer(message.data, message.bytes)) if message.bytes else b""
        return Message(data, int(message.kind), int(message.peer))
    finally:
        library().sl_remote_free(message.data)


@contextlib.contextmanager
def sending(data: Union[bytes, bytearray, memoryview, str, "np.ndarray[Any, Any]"]) -> Iterator[Tuple[Any, int]]:
    """(pointer, bytes) of what is to be sent, while it is sent."""
    if isinstance(data, str):
        data = data.encode()
    if isinstance(data, np.ndarray):
        data = np.ascontiguousarray(data)
    with ffi.from_buffer(data) as start:
        yield start, len(start)
