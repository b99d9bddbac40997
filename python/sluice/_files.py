"""Files of runs, read lazily: `run = sluice.open("run.nxs")`."""

from __future__ import annotations

import glob
import os
import pathlib
import re
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Union

import numpy as np

from ._errors import Error

try:
    import h5py
except ImportError as _why:  # pragma: no cover - depends on the host
    raise ImportError("sluice.open() needs the Python package h5py (Debian: python3-h5py; else: pip install h5py hdf5plugin)") from _why
try:
    import hdf5plugin as _hdf5plugin  # noqa: F401  (its import makes the filters of packed images known)
except ImportError:
    pass

FRAMES, RESULTS, IMAGES = "entry/sluice/frames", "entry/results", "entry/data"
_MASTER = re.compile(r"(_master)?(\.[^./]*)?$")

NpArray = Any  # np.ndarray[Any, Any]; a row may be a number, too


class Series:
    """Rows of a run, read when they are asked for: `len(series)`, `series[7]`, `series[10:20]`, `series[:]`.

    While a run is being written its rows lie in several data files, of which this looks like one array.
    """

    def __init__(self, parts: Callable[[], List[Any]], path: str) -> None:
        self._parts, self.path = parts, path

    def _datasets(self) -> List[Any]:
        found = [file[self.path] for file in self._parts() if self.path in file]
        if not found:
            raise KeyError(f"no rows of {self.path} are there yet")
        return found

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._datasets())

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Of a number of it."""
        return self._datasets()[0].dtype  # type: ignore[no-any-return]

    @property
    def shape(self) -> Tuple[int, ...]:
        """Rows first."""
        return (len(self), *self._datasets()[0].shape[1:])

    @property
    def attrs(self) -> Dict[str, Any]:
        """The attributes of the dataset, such as `units`, `long_name`."""
        return dict(self._datasets()[0].attrs)

    def __getitem__(self, key: Any) -> NpArray:
        if isinstance(key, tuple):
            return self[key[0]][key[1:] if isinstance(key[0], (int, np.integer)) else (slice(None), *key[1:])]
        if isinstance(key, (int, np.integer)):
            return self._row(int(key))
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            return self._rows(start, stop)[::step] if step > 0 else self._rows(stop + 1, start + 1)[::-1][::-step]
        wanted = np.asarray(key)
        if wanted.dtype == bool:
            wanted = np.flatnonzero(wanted)
        return np.stack([self._row(int(row)) for row in wanted]) if wanted.size else self._rows(0, 0)

    def _row(self, row: int) -> NpArray:
        datasets = self._datasets()
        left = row if row >= 0 else row + sum(len(dataset) for dataset in datasets)
        for dataset in datasets if left >= 0 else ():
            if left < len(dataset):
                return _read(dataset, left)
            left -= len(dataset)
        raise IndexError(f"row {row} of {self.path}, which has {len(self)}")

    def _rows(self, start: int, stop: int) -> NpArray:
        found, first = [], 0
        datasets = self._datasets()
        for dataset in datasets:
            n = len(dataset)
            low, high = max(start - first, 0), min(stop - first, n)
            if low < high:
                found.append(_read(dataset, slice(low, high)))
            first += n
        if not found:
            return np.empty((0, *datasets[0].shape[1:]), datasets[0].dtype)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def __iter__(self) -> Iterator[NpArray]:
        return (self._row(row) for row in range(len(self)))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> NpArray:
        return self[:] if dtype is None else self[:].astype(dtype)

    def __repr__(self) -> str:
        return f"<sluice.Series {self.path} {list(self.shape)} {self.dtype}>"


def _read(dataset: Any, key: Any) -> NpArray:
    try:
        return dataset[key]
    except OSError as why:
        if "filter" not in str(why) and "plugin" not in str(why):
            raise
        raise Error("filter", f"{dataset.file.filename}: its images are packed, and HDF5 has no filter for them here",
                    hint="install hdf5plugin (Debian: python3-hdf5plugin, or bitshuffle and hdf5-filter-plugin)") from why


class Table(Mapping[str, Series]):
    """Columns by name: `run.frames["score"][:]`."""

    def __init__(self, parts: Callable[[], List[Any]], path: str) -> None:
        self._parts, self.path = parts, path

    def _group(self) -> Any:
        for file in self._parts():
            if self.path in file:
                return file[self.path]
        return {}

    def __getitem__(self, name: str) -> Series:
        if name not in self._group():
            raise KeyError(f"no column '{name}'; there are: {', '.join(self)}")
        return Series(self._parts, f"{self.path}/{name}")

    def __iter__(self) -> Iterator[str]:
        group = self._group()
        return (name for name in group if _is_series(group, name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<sluice.Table {self.path}: {', '.join(self)}>"


def _is_series(group: Any, name: str) -> bool:
    item = group.get(name)
    return isinstance(item, h5py.Dataset) and item.ndim > 0 and not name.endswith("_names")


class Ledger(Mapping[str, "np.ndarray[Any, Any]"]):
    """What became of every module-frame: `ledger["stored"]` has a number for each module.

    `closed`: whether it closes; `sent`: what each module's source says it sent; `causes`: the same by cause.
    """

    def __init__(self, group: Any) -> None:
        names, counts = ([_text(name) for name in group[f"{kind}_names"][:]] for kind in ("outcome", "cause")), group
        outcome_names, cause_names = names
        self.closed = bool(counts["closed"][()])
        self.sent: "np.ndarray[Any, Any]" = counts["sent"][:]
        self._outcomes = dict(zip(outcome_names, counts["outcomes"][:].T))
        self.causes: Dict[str, "np.ndarray[Any, Any]"] = dict(zip(cause_names, counts["causes"][:].T))

    def __getitem__(self, outcome: str) -> "np.ndarray[Any, Any]":
        counts: "np.ndarray[Any, Any]" = self._outcomes[outcome]
        return counts

    def __iter__(self) -> Iterator[str]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __repr__(self) -> str:
        some = ", ".join(f"{name} {counts.sum()}" for name, counts in self._outcomes.items() if counts.any())
        return f"<sluice.Ledger {'closed' if self.closed else 'NOT CLOSED'}: {some or 'empty'}>"


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


class Run:
    """A run's file. Nothing is read before it is asked for.

    A run that is being written can be read, too: what is flushed is there, and `refresh()` looks for more. `state` tells:
    "writing", "complete" or "recovered". `file` is the h5py.File of the master, for everything else that is in it.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        self.path = pathlib.Path(path)
        self._data: Dict[str, Any] = {}
        self._order: Optional[Tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]] = None
        self.file = self._open_master()
        self.refresh()

    def _open_master(self) -> Any:
        try:
            file = h5py.File(self.path, "r")
        except FileNotFoundError:
            raise Error("absent", f"{self.path}: there is no such file") from None
        except OSError as why:
            raise Error("file", f"{self.path}: not a file that HDF5 can open: {why}") from why
        if "entry/sluice/state" not in file:
            file.close()
            raise Error("file", f"{self.path}: not the file of a run: it has no /entry/sluice/state",
                        hint="open the master, as run.nxs, not one of its data files")
        return file

    # ---- while it is written ----

    @property
    def state(self) -> str:
        """"writing", "complete" or "recovered"."""
        return _text(self.file["entry/sluice/state"][()])

    def refresh(self) -> "Run":
        """Look for rows that came since; of a file that is complete, nothing happens."""
        self._order = None
        if self.state != "writing":
            return self
        # The writer puts the final master in the place of this one.
        self.file.close()
        self.file = self._open_master()
        if self.state != "writing":
            self._close_data()
            return self
        owner = self.file.attrs.get("file_set")
        for name in sorted(glob.glob(glob.escape(str(self._stem())) + "_data_[0-9][0-9][0-9][0-9][0-9][0-9]*.h5")):
            self._look_at(name, owner)
        return self

    def _stem(self) -> pathlib.Path:
        return self.path.with_name(_MASTER.sub("", self.path.name, count=1))

    def _look_at(self, name: str, owner: Any) -> None:
        """A data file of this run, opened as a follower."""
        if name not in self._data:
            try:
                file = h5py.File(name, "r", libver="latest", swmr=True)
            except OSError:  # its header is not written yet
                return
            if file.attrs.get("file_set") != owner:
                file.close()
                return
            self._data[name] = file
        file = self._data[name]
        for path in (FRAMES, RESULTS, IMAGES):
            for item in (file[path].values() if path in file else ()):
                if isinstance(item, h5py.Dataset):
                    item.refresh()

    def _parts(self) -> List[Any]:
        return list(self._data.values()) or [self.file]

    # ---- what is in it ----

    @property
    def images(self) -> Series:
        """A row for each image that was stored."""
        series = Series(self._parts, f"{IMAGES}/data")
        if not any(series.path in file for file in self._parts()):
            raise KeyError(f"{self.path}: no images are stored in it")
        return series

    @property
    def frames(self) -> Table:
        """Columns about every frame, kept or not: `frame_number`, `timestamp`, `keep`, `score`, `reason`, `missing` ..."""
        return Table(self._parts, FRAMES)

    @property
    def results(self) -> Table:
        """Columns of what stages found out; `result_of()` has those of one frame."""
        return Table(self._parts, RESULTS)

    @property
    def ledger(self) -> Ledger:
        """What became of every module-frame. A run that is being written has none yet."""
        if "entry/sluice/ledger" not in self.file:
            raise Error("state", f"{self.path}: the ledger is written when the run ends", hint="refresh() later")
        return Ledger(self.file["entry/sluice/ledger"])

    @property
    def metadata(self) -> Dict[str, str]:
        """What users say of the run."""
        group = self.file.get("entry/sluice/metadata", {})
        return {name: _text(group[name][()]) for name in group}

    @property
    def experiment(self) -> str:
        """The experiment file as it was read."""
        return _text(self.file["entry/sluice/experiment"][()])

    @property
    def reason_names(self) -> List[str]:
        """Names of the column `reason`."""
        return self._names("reason_names")

    @property
    def outcome_names(self) -> List[str]:
        """Names of the column `outcome`."""
        return self._names("outcome_names")

    @property
    def cause_names(self) -> List[str]:
        """Names of the column `cause`."""
        return self._names("cause_names")

    def _names(self, name: str) -> List[str]:
        path = f"{FRAMES}/{name}"
        file = next(file for file in [self.file, *self._parts()] if path in file)
        return [_text(value) for value in file[path][:]]

    # ---- by frame number ----

    def row_of(self, number: int) -> int:
        """The row in `frames` of the frame with that number of the detector's; of several with it, the first."""
        if self._order is None:
            numbers = self.frames["frame_number"][:]
            order = np.argsort(numbers, kind="stable")
            self._order = (order, numbers[order])
        order, numbers = self._order
        at = int(np.searchsorted(numbers, number))
        if at == len(numbers) or numbers[at] != number:
            raise KeyError(f"{self.path}: no frame has the number {number}")
        return int(order[at])

    def image_of(self, number: int) -> Optional["np.ndarray[Any, Any]"]:
        """The image of the frame with that number; None: none is stored of it."""
        row = int(self.frames["image_index"][self.row_of(number)])
        return None if row < 0 else self.images[row]

    def result_of(self, number: int) -> Dict[str, "np.ndarray[Any, Any]"]:
        """What stages found out about the frame with that number, by name; lists have the rows of this frame alone. Empty: no
        stage looked at it, or its results are not stored."""
        row = int(self.frames["result_index"][self.row_of(number)]) if "result_index" in self.frames else -1
        if row < 0:
            return {}
        results, found = self.results, {}
        for name in results:
            if f"{name}_first" in results:
                first, rows = int(results[f"{name}_first"][row]), int(results[f"{name}_rows"][row])
                found[name] = results[name][first:first + rows]
            elif not (name.endswith(("_first", "_rows")) and name.rsplit("_", 1)[0] in results):
                found[name] = results[name][row]
        return found

    # ---- the end ----

    def _close_data(self) -> None:
        for file in self._data.values():
            file.close()
        self._data = {}

    def close(self) -> None:
        """Close all files."""
        self._close_data()
        self.file.close()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sluice.Run {self.path}{f' ({self.state})' if self.file else ' (closed)'}>"


def open(path: Union[str, "os.PathLike[str]"]) -> Run:  # pylint: disable=redefined-builtin
    """Open the file of a run: the master that the sink `nexus` wrote, or is writing."""
    return Run(path)
