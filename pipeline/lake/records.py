"""Small objects of the lake as JSON: each written in one piece, and read back as the same type."""

from typing import TypeVar

import msgspec

from pipeline.domain.errors import CorruptObject
from pipeline.lake.lake import Lake

T = TypeVar("T")


def write_record(lake: Lake, path: str, value: object) -> bool:
    """Write an object that must not exist yet, as readable JSON. False: it existed."""
    return lake.put_new(path, msgspec.json.format(msgspec.json.encode(value)))


def read_record(lake: Lake, path: str, kind: type[T], *, hint: str, kept: str = "Nothing was changed.") -> T:
    """Read an object. Raises FileNotFoundError, and CorruptObject with that `hint` if it is of another kind."""
    data = lake.get(path)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise CorruptObject(
            f"{lake.local(path)} cannot be read: {error}", kept=kept, hint=hint, place=lake.local(path)
        ) from None
