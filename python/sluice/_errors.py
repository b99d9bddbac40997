"""What goes wrong, as exceptions."""

from __future__ import annotations

import errno as _errno
import os
from typing import Optional


class Error(Exception):
    """A call failed.

    `code` is a word that programs can compare, `message` says what happened, `where` is "FILE:LINE" of an experiment file
    or empty, `hint` says what to do or is empty, `errno` is a positive number of `errno.h` or 0.
    """

    def __init__(self, code: str, message: str, *, where: str = "", hint: str = "", errno: int = 0) -> None:
        super().__init__(code, message)
        self.code, self.message, self.where, self.hint, self.errno = code, message, where, hint, errno

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} ({self.hint})" if self.hint else text


class Timeout(Error, TimeoutError):
    """What was waited for did not come in time; `code` is "timeout"."""


class Overtaken(Error):
    """The writer took the place of an element before it was read; `code` is "overtaken"."""


class Ended(Error):
    """The share has ended, and everything in it is read; `code` is "ended"."""


_CODES = {
    _errno.ETIMEDOUT: "timeout",
    _errno.ESTALE: "overtaken",
    _errno.EPIPE: "ended",
    _errno.ECONNRESET: "crashed",
    _errno.ENOENT: "absent",
    _errno.EAGAIN: "full",
    _errno.ENOBUFS: "full",
    _errno.EMSGSIZE: "size",
    _errno.ENODATA: "empty",
    _errno.ERANGE: "range",
    _errno.EINVAL: "request",
    _errno.ENOMEM: "memory",
    _errno.EOPNOTSUPP: "unsupported",
}
_CLASSES = {"timeout": Timeout, "overtaken": Overtaken, "ended": Ended}


def error_of(err: int, message: str = "", *, code: str = "", where: str = "", hint: str = "") -> Error:
    """The exception for a return value of the library, which is a negative errno."""
    number = -err if err < 0 else err
    code = code or _CODES.get(number, "system")
    return _CLASSES.get(code, Error)(code, message or os.strerror(number), where=where, hint=hint, errno=number)


def unless_in_time(seconds: Optional[float], what: str) -> Timeout:
    """The exception for a wait that was too long."""
    return Timeout("timeout", f"{what} within {seconds:g} s" if seconds is not None else what, errno=_errno.ETIMEDOUT)
