"""Contract drift: the structure of a sweep's raw answers, compared with the supplier's document.

One pass over the raw zone, with one shard in memory at a time. Answers repeat a few shapes a hundred thousand times, so
objects are only counted by shape (their fields and the kinds of their values), and the few distinct shapes are compared
with the document at the end. Every field is optional, so a missing one is not a mistake, but its share shows a change.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from pipeline.domain.codes import BOARDS, ERROR_CODES, is_known_promotion
from pipeline.domain.search import Operation
from pipeline.domain.shards import all_segments
from pipeline.domain.texts import storable
from pipeline.lake import Lake
from pipeline.lake.raw import Manifest, landed, raw_address, read_shard
from pipeline.supplier.bodies import UnreadableBody, inflate
from pipeline.supplier.date_times import instant_of
from pipeline.supplier.fields import Field, fields_of
from pipeline.supplier.wire import ANSWERS

_KINDS = {dict: "object", list: "array", str: "text", bool: "flag", int: "integer", float: "number", type(None): "null"}
# Kinds that are accepted for another kind: 1 is a number too.
_ALSO = {"number": {"integer"}}
_MOST_SHAPES = 5_000
_MOST_UNKNOWN = 1_000
_OTHERS = "(other names)"
_MOST_VALUES = 1_000
_OTHER_VALUES = "(other values)"

_Shape = tuple[str, tuple[str, ...], tuple[type, ...]]


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of deviation at one path: its count, the total, and an example."""

    kind: str
    operation: str
    path: str
    detail: str
    occurrences: int
    of: int
    example: str

    @property
    def group(self) -> tuple[str, str, str]:
        """What it is listed with: its kind and the object that it is in."""
        return self.kind, self.operation, self.path.rpartition(".")[0]

    @property
    def share(self) -> float:
        """Part of the objects, or answers, that deviate."""
        return self.occurrences / self.of


def drift_of(lake: Lake, manifest: Manifest, max_body_bytes: int) -> list[Finding]:
    """Compare every landed answer of a sweep with the document, most important kinds first.

    Raises CorruptObject if a shard is damaged.
    """
    there = landed(lake, manifest.sweep_id)
    counts: dict[Operation, _Counts] = {}
    for segment in all_segments(manifest.partitions):
        operation = segment.partition.operation
        counted = counts.setdefault(operation, _Counts(operation))
        for shard in segment.shards:
            if shard.name not in there:
                continue
            for row, record in enumerate(read_shard(lake, manifest.sweep_id, shard.name)):
                # Other statuses are not answers of the service.
                if record.http_status in {200, 400, 500} and not record.is_split:
                    address = raw_address(manifest.sweep_id, shard.name, row)
                    is_own = record.http_status != 500
                    counted.add(record.body, record.content_encoding, address, max_body_bytes, is_own=is_own)
    order = ("unreadable", "changed_type", "unknown_field", "new_value", "missing_field")
    found = [finding for counted in counts.values() for finding in counted.findings()]
    return sorted(found, key=lambda each: (order.index(each.kind), each.operation, each.path, -each.occurrences))


class _Counts:
    """Counts the shapes in the answers of one operation."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation.value
        self._root = ANSWERS[operation]
        self._answers = 0
        self._structs: dict[str, type[msgspec.Struct]] = {"": self._root}
        self._shapes: Counter[_Shape] = Counter()
        self._shape_at: dict[_Shape, str] = {}
        self._objects: Counter[str] = Counter()
        self._found: Counter[tuple[str, str, str]] = Counter()
        self._found_at: dict[tuple[str, str, str], str] = {}
        self._unknown: Counter[str] = Counter()
        self._values: Counter[str] = Counter()
        self._address = ""

    def add(self, body: bytes, encoding: str, address: str, max_body_bytes: int, *, is_own: bool = True) -> None:
        """Count one answer. `is_own` False: it may come from a server in between, and is skipped if unreadable."""
        try:
            document = msgspec.json.decode(inflate(body, encoding, limit_bytes=max_body_bytes))
        except (UnreadableBody, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            if is_own:
                self._answers += 1
                self._address = address
                self._note("unreadable", "$", type(error).__name__)
            return
        self._answers += 1
        self._address = address
        if isinstance(document, dict):
            self._object("", self._root, document)
        else:
            self._note("changed_type", "$", f"{_KINDS[type(document)]} instead of object")
        if len(self._shapes) > _MOST_SHAPES:
            self._fold()

    def findings(self) -> Iterator[Finding]:
        self._fold()
        for (kind, path, detail), occurrences in self._found.items():
            parent = path.rpartition(".")[0]
            of = self._objects[parent] if kind in {"missing_field", "unknown_field"} else 0
            example = self._found_at[kind, path, detail]
            # Several names or values of one object may count as one.
            yield Finding(
                kind, self._operation, path, detail, occurrences, max(of or self._answers, occurrences), example
            )

    def _object(self, path: str, struct: type[msgspec.Struct], value: dict[str, Any]) -> None:
        shape = (path, tuple(value), tuple(map(type, value.values())))
        self._shapes[shape] += 1
        if self._shapes[shape] == 1:
            self._structs[path] = struct
            self._shape_at.setdefault(shape, self._address)
        for name, known in fields_of(struct).items():
            given = value.get(name)
            if given is not None:
                self._field(f"{path}.{name}" if path else name, known, given)

    def _field(self, path: str, known: Field, value: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        if known.is_list:
            for item in value if isinstance(value, list) else ():
                if known.struct is not None and isinstance(item, dict):
                    self._object(f"{path}[]", known.struct, item)
                elif _KINDS[type(item)] != known.kind:
                    self._note("changed_type", f"{path}[]", f"{_KINDS[type(item)]} instead of {known.kind}")
        elif known.struct is not None:
            if isinstance(value, dict):
                self._object(path, known.struct, value)
        elif deviation := _deviation(path, known.kind, value):
            self._note(deviation[0], path, deviation[1])

    def _note(self, kind: str, path: str, detail: str, times: int = 1, address: str | None = None) -> None:
        what = (kind, path, detail)
        if kind == "new_value" and what not in self._found:
            if self._values[path] >= _MOST_VALUES:
                what = (kind, path, _OTHER_VALUES)
            else:
                self._values[path] += 1
        self._found[what] += times
        self._found_at.setdefault(what, address or self._address)

    def _fold(self) -> None:
        """Compare the shapes counted so far with the document, and forget them."""
        for shape, times in self._shapes.items():
            path, names, kinds = shape
            address = self._shape_at[shape]
            self._objects[path] += times
            known = fields_of(self._structs[path])
            prefix = f"{path}." if path else ""
            for name, kind in zip(names, kinds, strict=True):
                if name not in known:
                    self._note("unknown_field", prefix + self._bounded(path, name), _KINDS[kind], times, address)
                elif not _fits(known[name], kind):
                    wanted = "array" if known[name].is_list else known[name].kind
                    self._note("changed_type", prefix + name, f"{_KINDS[kind]} instead of {wanted}", times, address)
            # The envelope has either content or errors, so nothing is missing there or in errors.
            if path and not path.startswith("errors"):
                stated = {name for name, kind in zip(names, kinds, strict=True) if kind is not type(None)}
                for name in known.keys() - stated:
                    self._note("missing_field", prefix + name, "missing or null", times, address)
        self._shapes.clear()
        self._shape_at.clear()

    def _bounded(self, path: str, name: str) -> str:
        """Return the name of an unknown field; after very many, further ones share a name."""
        place = f"{path}.{name[:100]}"
        if place not in self._unknown and len(self._unknown) >= _MOST_UNKNOWN:
            return _OTHERS
        self._unknown[place] += 1
        return storable(name[:100])


def _fits(known: Field, kind: type) -> bool:
    if kind is type(None):
        return True
    if known.is_list:
        return kind is list
    found = _KINDS[kind]
    wanted = "text" if known.kind == "date-time" else known.kind
    return found == wanted or found in _ALSO.get(wanted, ())


def _deviation(path: str, kind: str, value: Any) -> tuple[str, str] | None:  # noqa: ANN401 - whatever JSON can hold
    """Return how a value of a documented kind deviates; None: it does not."""
    if kind == "date-time":
        return (
            ("changed_type", "text instead of date-time") if isinstance(value, str) and not _is_moment(value) else None
        )
    if path.endswith("boardBasis.id"):
        is_new = isinstance(value, int) and value not in BOARDS
    elif path.endswith("promotions[].promoType"):
        is_new = isinstance(value, str) and not is_known_promotion(value)
    elif path.endswith(".rateType"):
        is_new = isinstance(value, str) and value != "BAR"
    elif path in {"errors[].code", "errors[].errorCode"}:
        is_new = isinstance(value, int) and value not in ERROR_CODES
    else:
        return None
    return ("new_value", str(value)[:100]) if is_new else None


@lru_cache(maxsize=10_000)
def _is_moment(text: str) -> bool:
    return instant_of(text) is not None
