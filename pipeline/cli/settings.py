"""`nightaudit settings` and `nightaudit spec`: every setting and spec key, its value here and its source."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from pydantic_settings import DotEnvSettingsSource, EnvSettingsSource
from rich.text import Text

from pipeline.cli.given import settings_with
from pipeline.cli.terminal import Terminal, write_json_lines
from pipeline.night.read_spec import demo_spec
from pipeline.settings import PREFIX, Settings, meaning_of, read_settings
from pipeline.spec import SAMPLE_SPEC, SpecKey, read_spec, spec_keys
from pipeline.spec.model import SpecTable, SweepSpec

# Characters of a value that are shown; JSON shows them all.
_WIDEST = 120


@dataclass(frozen=True, slots=True)
class Entry:
    """A setting or a spec key. `value` is empty if it is unset, and `(hidden)` for a secret."""

    name: str
    value: str
    source: str
    meaning: str


def show_settings(form: str) -> None:
    """Print every setting."""
    _show(form, setting_entries(read_settings()))


def show_spec_keys(spec_path: Path | None, form: str) -> None:
    """Print every key of a sweep spec, with its value in the spec of the next night."""
    settings = settings_with(spec_path)
    path = settings.spec or demo_spec(settings) or (SAMPLE_SPEC if settings.is_simulated else None)
    if form == "table":
        heading = "No sweep spec is set: name one with --spec or NIGHTAUDIT_SPEC." if path is None else f"Spec: {path}"
        Terminal(soft_wrap=True, highlight=False).print(Text(heading))
    _show(form, spec_entries(None if path is None else read_spec(path)))


def setting_entries(settings: Settings) -> Iterator[Entry]:
    """Yield every setting with its value; the source is `environment`, `.env` or `default`."""
    # The readers that pydantic itself uses; the first takes precedence.
    environment, file = EnvSettingsSource(Settings)(), DotEnvSettingsSource(Settings)()
    for field, declared in Settings.model_fields.items():
        source = "environment" if field in environment else ".env" if field in file else "default"
        yield Entry(f"{PREFIX}{field.upper()}", _written(getattr(settings, field)), source, meaning_of(declared))


def spec_entries(spec: SweepSpec | None) -> Iterator[Entry]:
    """Yield every key with its value in `spec`; the source is `spec` or `default`."""
    for key in spec_keys():
        given = None if spec is None else _given(spec, key)
        default = "" if key.default in {"none", "required"} else key.default
        yield Entry(key.address, *(given or (default, "default")), key.description)


def _given(spec: SweepSpec, key: SpecKey) -> tuple[str, str] | None:
    """Return the value of a key in a spec, and its source; None if the spec does not set it."""
    tables: list[SpecTable] = [spec]
    *names, last = key.address.split(".")
    for name in names:
        tables = [inner for table in tables for inner in _tables(getattr(table, name))]
    values = [_written(getattr(table, last)) for table in tables if last in table.model_fields_set]
    return ("; ".join(values), "spec") if values else None


def _tables(value: Any) -> Iterable[SpecTable]:  # noqa: ANN401 - a table, a list of tables, or none
    return value if isinstance(value, tuple) else () if value is None else (value,)


def _written(value: object) -> str:
    if isinstance(value, SecretStr):
        return "(hidden)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(_written, value))
    if isinstance(value, dict):
        return "; ".join(f"{name} = {_written(each)}" for name, each in value.items())
    return "" if value is None else str(value)


def _show(form: str, entries: Iterable[Entry]) -> None:
    if form == "json":
        write_json_lines(map(asdict, entries))
        return
    console = Terminal(soft_wrap=True, highlight=False)
    for each in entries:
        value = each.value if len(each.value) <= _WIDEST else f"{each.value[:_WIDEST]} …"
        console.print(
            Text.assemble((each.name, "bold"), " = ", (value or "(unset)", "cyan"), (f"  [{each.source}]", "dim"))
        )
        console.print(Text(f"    {each.meaning}"))
