"""README, commands, settings and spec keys stay in step. Run this file by hand to write the README's tables anew."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.main import get_command

from pipeline.cli.commands import app
from pipeline.inputs.selling_prices import COLUMNS as PRICE_COLUMNS
from pipeline.settings import PREFIX, Settings
from pipeline.spec import spec_keys

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def settings_table() -> str:
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None or name == "workers" else f"`{_written(field.default)}`"
        rows.append(f"| `{PREFIX}{name.upper()}` | {default} | {field.description} |")
    return "\n".join(rows)


def spec_table() -> str:
    rows = ["| key | default | meaning |", "|---|---|---|"]
    rows += [f"| `{key.address}` | {key.default} | {key.description} |".replace("\n", " ") for key in spec_keys()]
    return "\n".join(rows)


def price_table() -> str:
    rows = ["| column | meaning |", "|---|---|"]
    rows += [
        f"| {f'`{column.name}`' if column.is_required else f'*{column.name}*'} | {column.meaning} |"
        for column in PRICE_COLUMNS
    ]
    return "\n".join(rows)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def speed_table() -> str:
    """What `make bench` found last of what is kept; report relations that miss nothing are one row together."""
    kept = json.loads((ROOT / "tests/benchmarks/results.json").read_text())
    lines = ["| what | measured | least to most | to reach | |", "|---|---|---|---|---|"]
    for name, part in kept["parts"].items():
        load = " to ".join(f"{each:g}" for each in part["load"])
        of = f", commit {part['commit']}" if part.get("commit") else ""
        lines.append(f"| **`{name}`**, {part['seconds']} s at a load of {load}{of} | | | | |")
        lines += [f"| skipped: {left_out} | | | | |" for left_out in part["skipped"]]
        rows = part["rows"]
        quick = [row for row in rows if row["what"].startswith("report.") and row["reached"] is not False]
        lines += [_speed_row(row) for row in rows if row not in quick]
        if quick:
            slowest = max(quick, key=lambda row: row["value"])
            what = f"{len(quick)} report relations, the slowest of them: `{slowest['what']}`"
            lines.append(_speed_row(slowest | {"what": what}))
    held, parts = kept["machine"], kept["parts"].values()
    machine = f"{held['cores']} cores, {held['memory_gb']} GB, {held['system']}, Python {held['python']}"
    days = " to ".join(sorted({min(part["day"] for part in parts), max(part["day"] for part in parts)}))
    sizes = " and ".join(sorted({part["size"] for part in parts}))
    minutes = sum(part["seconds"] for part in parts) / 60
    said = (
        f"Measured with `make bench` at {sizes} size on {days} (UTC), in {minutes:.0f} minutes all together; {machine}."
    )
    return "\n".join([said, "", *lines])


def _speed_row(row: dict) -> str:
    is_spread = row["low"] is not None and row["low"] != row["high"]
    spread = f"{_figure(row['low'])} to {_figure(row['high'])}" if is_spread else ""
    mark = {True: "reached", False: "**missed**", None: ""}[row["reached"]]
    note = "; ".join(part for part in (mark, row["note"]) if part)
    return f"| {row['what']} | {_figure(row['value'])} {row['unit']} | {spread} | {row['reach']} | {note} |"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


TABLES = {"settings": settings_table, "spec keys": spec_table, "price columns": price_table, "speed": speed_table}


def between(text: str, name: str) -> str:
    match = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", text, re.DOTALL)
    assert match, name
    return match[1].strip()


@pytest.mark.parametrize("name", TABLES)
def test_the_readme_lists_what_the_code_declares(name):
    assert between(README.read_text(), name) == TABLES[name]()


def test_the_readme_names_every_command():
    named = set(re.findall(r"\| `nightaudit (\w+)", README.read_text()))
    assert named == set(get_command(app).commands)


def test_every_setting_is_in_the_example_file():
    named = set(re.findall(rf"^#? ?({PREFIX}\w+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert named == {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}


def test_every_place_that_the_readme_names_exists():
    named = set(re.findall(r"`((?:pipeline|flows|sql|tests)/[\w/.]*)", README.read_text()))
    assert named
    assert [place for place in named if not (ROOT / place).exists()] == []


if __name__ == "__main__":
    written = README.read_text()
    for marker, table in TABLES.items():
        written = re.sub(
            rf"(<!-- {marker} -->\n).*?(<!-- /{marker} -->)",
            lambda match, table=table: f"{match[1]}{table()}\n{match[2]}",
            written,
            flags=re.DOTALL,
        )
    README.write_text(written)
