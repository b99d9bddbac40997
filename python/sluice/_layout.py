"""Arrays of an element: their names, types and places, as a share describes them."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Mapping, Tuple, Union

import numpy as np

from ._library import ffi, text

PAGE = 4096
ALIGN = 64
RANK, ARRAYS = 6, 24


@dataclasses.dataclass(frozen=True)
class Array:
    """One array of every element: a NumPy type, a shape, and a unit for people.

    `ragged`: shape[0] is the most rows that an element can have; each says how many it has.
    """

    dtype: "np.dtype[Any]"
    shape: Tuple[int, ...]
    unit: str = ""
    ragged: bool = False

    def __init__(self, dtype: Any, shape: Union[int, Tuple[int, ...]] = (), unit: str = "", ragged: bool = False) -> None:
        sizes = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
        object.__setattr__(self, "dtype", np.dtype(dtype))
        object.__setattr__(self, "shape", sizes)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "ragged", bool(ragged))

    @property
    def nbytes(self) -> int:
        """Bytes of the array; of a ragged one with all its rows."""
        return int(np.prod(self.shape, dtype=np.int64)) * int(self.dtype.itemsize)


@dataclasses.dataclass(frozen=True)
class Place:
    """An array of a share that is there: its description, and where it lies in the data of an element."""

    name: str
    array: Array
    offset: int
    index: int


@dataclasses.dataclass(frozen=True)
class Description:
    """A share as it is now; after a resize there is another one, with the next generation."""

    name: str
    run: str
    generation: int
    count: int
    data_bytes: int
    arrays: Mapping[str, Array]
    places: Tuple[Place, ...] = dataclasses.field(repr=False)


def description_of(c: Any) -> Description:
    """What a `struct sl_share_description` says."""
    places = []
    for i in range(c.arrays):
        a = c.array[i]
        array = Array(text(a.type), tuple(a.dim[k] for k in range(a.rank)), text(a.unit), bool(a.ragged))
        places.append(Place(text(a.name), array, int(a.offset), i))
    return Description(text(c.name), text(c.run), int(c.generation), int(c.count), int(c.data_bytes),
                       {place.name: place.array for place in places}, tuple(places))


def stride_of(nbytes: int) -> int:
    """Bytes from the data of a place to those of the next one."""
    to = ALIGN if nbytes < PAGE else PAGE
    return -(-nbytes // to) * to


def fill_arrays(arrays: Mapping[str, Array]) -> Any:
    """The `struct sl_share_array` of each."""
    if not 1 <= len(arrays) <= ARRAYS:
        raise ValueError(f"an element has 1 to {ARRAYS} arrays, not {len(arrays)}")
    filled = ffi.new("struct sl_share_array[]", len(arrays))
    for c, (name, array) in zip(filled, arrays.items()):
        kind = array.dtype.str
        if array.dtype.hasobject or array.dtype.names or len(kind) > 7 or kind[0] == ">":
            raise ValueError(f"array '{name}': a share has no type {array.dtype}; numbers in the byte order of this host, as '<u2' or '<f4', are possible")
        if len(array.shape) > RANK:
            raise ValueError(f"array '{name}': at most {RANK} dimensions, not {len(array.shape)}")
        for field, value in (("name", name), ("unit", array.unit), ("type", kind)):
            code = value.encode()
            if len(code) >= ffi.sizeof(getattr(c, field)) or b"\0" in code:
                raise ValueError(f"array '{name}': its {field} '{value}' is longer than {ffi.sizeof(getattr(c, field)) - 1} bytes")
            setattr(c, field, code)
        c.rank, c.ragged = len(array.shape), array.ragged
        for k, n in enumerate(array.shape):
            if not 0 < n < 1 << 32:
                raise ValueError(f"array '{name}': a dimension of {n}")
            c.dim[k] = n
    return filled


# ---- memory of the library's as NumPy arrays ----

class Window:
    """Memory that stays mapped as long as this object, or an array made of it, is there."""

    def __init__(self, address: int, nbytes: int, owner: object, *, writable: bool = False) -> None:
        self.owner = owner
        self.__array_interface__: Dict[str, Any] = {
            "version": 3, "shape": (nbytes,), "typestr": "|u1", "data": (address, not writable)}


def bytes_at(address: int, nbytes: int, owner: object, *, writable: bool = False) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """These bytes, without a copy; the array keeps `owner`."""
    return np.asarray(Window(address, nbytes, owner, writable=writable))


def cut(place: Place, data: "np.ndarray[Any, Any]", rows: int) -> "np.ndarray[Any, Any]":
    """The array of an element in the bytes of its data; of a ragged one, the rows that it has."""
    array = place.array
    shape = (min(rows, array.shape[0]), *array.shape[1:]) if array.ragged else array.shape
    return np.ndarray(shape, array.dtype, buffer=data, offset=place.offset)
