"""Sluice from Python: live frames, shares of memory, sessions, and files of runs.

    for frame in sluice.follow("share:run1"): ...       look at a live run
    share = sluice.Share("cam", {"image": image}, 16)   publish memory that others follow
    session = sluice.Session("scan.yaml", root="data")  start, watch and stop runs
    run = sluice.open("run.nxs")                        read a run's file

docs/how-to/python.md shows each. Needs the C library libsluice-client.so (but for open()), the packages cffi and numpy; h5py for open().
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ._errors import Ended as Ended
    from ._errors import Error as Error
    from ._errors import Overtaken as Overtaken
    from ._errors import Timeout as Timeout
    from ._files import Run as Run
    from ._files import open as open  # pylint: disable=redefined-builtin
    from ._follow import REASONS as REASONS
    from ._follow import Follower as Follower
    from ._follow import Frame as Frame
    from ._follow import follow as follow
    from ._follow import shares as shares
    from ._layout import Array as Array
    from ._layout import Description as Description
    from ._library import library_path as library_path
    from ._messages import Message as Message
    from ._session import Control as Control
    from ._session import Session as Session
    from ._session import SessionInfo as SessionInfo
    from ._session import Status as Status
    from ._session import attach as attach
    from ._session import program_path as program_path
    from ._session import run as run
    from ._session import sessions as sessions
    from ._share import Counts as Counts
    from ._share import Element as Element
    from ._share import Share as Share
    from ._share import shared_array as shared_array

# Each name is imported when it is first used: reading a file needs no library, and a stage in Python nothing of this.
_WHERE = {
    "_errors": ("Ended", "Error", "Overtaken", "Timeout"),
    "_files": ("Run", "open"),
    "_follow": ("REASONS", "Follower", "Frame", "follow", "shares"),
    "_layout": ("Array", "Description"),
    "_library": ("library_path",),
    "_messages": ("Message",),
    "_session": ("Control", "Session", "SessionInfo", "Status", "attach", "program_path", "run", "sessions"),
    "_share": ("Counts", "Element", "Share", "shared_array"),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}
# Without `open`: `from sluice import *` must not take the place of Python's own.
__all__ = [*sorted(name for name in _MODULE_OF if name != "open"), "__version__"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'sluice' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted([*globals(), *_MODULE_OF])
