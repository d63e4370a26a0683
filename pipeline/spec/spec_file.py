"""A spec's file becomes a SweepSpec, or one SpecError that lists every mistake with its line; its keys as a table."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pipeline.domain.errors import SpecError
from pipeline.domain.texts import is_an_echo, one_line, quoted, validation_text
from pipeline.spec.bounds import MOST_ERRORS_SHOWN, Unreadable, read_bounded
from pipeline.spec.documents import Document, Place, read_toml, read_yaml, written
from pipeline.spec.model import Ask, Detail, Horizon, Properties, SpecTable, Stays, SweepSpec
from pipeline.spec.values import nearest

_TABLES: tuple[tuple[str, type[SpecTable]], ...] = (
    ("properties", Properties),
    ("stays", Stays),
    ("stays.horizon", Horizon),
    ("ask", Ask),
    ("detail", Detail),
)


@dataclass(frozen=True, slots=True)
class SpecKey:
    """One key: its address in the file, its default, and what it means."""

    address: str
    default: str
    description: str


def spec_keys() -> Iterator[SpecKey]:
    """Yield every key that a spec may hold, in the order in which it is documented."""
    for table, model in _TABLES:
        for name, field in model.model_fields.items():
            if f"{table}.{name}" not in dict(_TABLES):
                default = "required" if field.is_required() else _shown_default(field.default) or "none"
                yield SpecKey(f"{table}.{name}", default, one_line(field.description))


def _shown_default(value: Any) -> str:  # noqa: ANN401 - any default of a field
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown_default, value))}]" if value else ""
    if isinstance(value, Enum):
        return f'"{value.value}"'
    return str(value) if value else ""


HINT = "Correct the spec; `nightaudit plan` shows what it will request."

_READERS = {".toml": read_toml, ".yaml": read_yaml, ".yml": read_yaml}

_KEYS = [tuple(key.address.rsplit(".", 1)) for key in spec_keys()]

# Messages of pydantic that name its own types, in the words of a file.
_PLAIN_WORDS = {
    "tuple_type": "must be a list, in square brackets",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "too_short": "must not be empty",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "string_type": "must be a text in quotes",
    "string_too_short": "must not be empty",
}


def read_spec(path: Path, snapshot_date: date | None = None) -> SweepSpec:
    """Return the spec of a TOML or YAML file.

    With `snapshot_date`, explicit check-in dates are also checked against it. Raises SpecError with all mistakes.
    """
    try:
        text = read_bounded(path).decode("utf-8-sig")
    except OSError as error:
        raise SpecError(
            f"The sweep spec {path} cannot be read: {error.strerror}.",
            hint="Name an existing file with --spec or NIGHTAUDIT_SPEC.",
        ) from None
    except Unreadable as error:
        raise SpecError(
            f"The sweep spec {path} cannot be read: {error}.",
            hint="Move its property ids to a separate file and name that in properties.file.",
        ) from None
    except UnicodeDecodeError:
        raise SpecError(f"The sweep spec {path} is not UTF-8 text.", hint="Save it as UTF-8.") from None
    return parse_spec(text, path, snapshot_date)


def parse_spec(text: str, path: Path, snapshot_date: date | None = None) -> SweepSpec:
    """Return the spec of a file's text; the extension of `path` is its format. Raises SpecError."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise SpecError(
            f"The sweep spec {path} is neither .toml nor .yaml.",
            hint="Give it the extension of its format: .toml or .yaml.",
        )
    try:
        document = reader(text)
    except Unreadable as error:
        at = f"{path}:{error.line}" if error.line else f"{path}"
        raise SpecError(f"The sweep spec cannot be read:\n  {at}: {error}", hint=HINT) from None
    try:
        return SweepSpec.model_validate(document.data, context={"snapshot_date": snapshot_date})
    except ValidationError as error:
        details = [item for item in error.errors(include_url=False) if not is_an_echo(item)]
    # A mistyped key often causes the other errors, so it must not be the one that is cut off.
    details.sort(key=lambda item: item["type"] != "extra_forbidden")
    shown = _problems(details[:MOST_ERRORS_SHOWN], document, path)
    if len(details) > MOST_ERRORS_SHOWN:
        shown.append(f"  and {len(details) - MOST_ERRORS_SHOWN} more")
    raise SpecError("The sweep spec cannot be used:\n" + "\n".join(shown), hint=HINT)


def _problems(details: list[ErrorDetails], document: Document, path: Path) -> list[str]:
    placed = []
    for item in details:
        place = tuple(part for part in item["loc"] if part != "[key]")
        if "index" in item.get("ctx", {}):
            # Horizons are checked against each other in the table that holds their list.
            place += ("horizon",) * (place == ("stays",)) + (item["ctx"]["index"],)
        words = f"{written(place) or 'the spec'}: {_message(item, place)}"
        placed.append((document.nearest_line(place) or 1, words))
    return [f"  {path}:{line}: {text}" for line, text in sorted(placed)]


def _message(item: ErrorDetails, place: Place) -> str:
    kind, given = item["type"], item["input"]
    if kind == "extra_forbidden":
        name, allowed = str(place[-1]), tuple(_table_at(place[:-1]).model_fields)
        # In TOML a key below [[stays.horizon]] belongs to the horizon: an easy mistake.
        hint = next((f"; it belongs to [{table}]." for table, key in _KEYS if key == name), nearest(name, allowed))
        return f"unknown key{hint or '.'} Allowed here: {', '.join(allowed)}."
    if kind == "missing":
        return f"is missing. {one_line(_table_at(place[:-1]).model_fields[str(place[-1])].description)}"
    if kind in _PLAIN_WORDS:
        return f"{_PLAIN_WORDS[kind]}{_given(given)}"
    if kind in {"value_error", "item"}:
        return validation_text(item["msg"])
    return f"{validation_text(item['msg'])}{_given(given)}"


def _given(value: Any) -> str:  # noqa: ANN401 - whatever a document holds
    return "" if isinstance(value, list | dict) or value is None else f", not {quoted(value)}"


def _table_at(place: Place) -> type[SpecTable]:
    """Return the table of the spec at a place."""
    table: type[SpecTable] = SweepSpec
    for part in place:
        if isinstance(part, str):
            annotation = table.model_fields[part].annotation
            found = [each for each in (annotation, *get_args(annotation)) if isinstance(each, type)]
            table = next(each for each in found if issubclass(each, SpecTable))
    return table
