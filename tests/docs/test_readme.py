"""README, commands, settings and spec keys stay in step. Run this file by hand to rewrite the pages' tables."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import costs
from nights import FIRST_DAY, load_night, started_at
from typer.main import get_command

from pipeline.cli.commands import app
from pipeline.inputs.selling_prices import COLUMNS as PRICE_COLUMNS
from pipeline.lake import Lake
from pipeline.lake.database import open_published
from pipeline.publish import publish
from pipeline.settings import PREFIX, Settings, meaning_of
from pipeline.spec import spec_keys

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
REFERENCE = ROOT / "pipeline" / "cli" / "README.md"
BENCHMARKS = ROOT / "tests" / "benchmarks" / "README.md"


def settings_table() -> str:
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None or name == "workers" else f"`{_written(field.default)}`"
        rows.append(f"| `{PREFIX}{name.upper()}` | {default} | {meaning_of(field)} |")
    return "\n".join(rows)


def example() -> str:
    head = "Copy to .env and fill in. Without a base address the bundled sandbox is used, and all data is simulated."
    entries = (
        f"# {meaning_of(field)}\n# {PREFIX}{name.upper()}={'' if name == 'workers' else _in_a_file(field.default)}\n"
        for name, field in Settings.model_fields.items()
    )
    return "\n".join([f"# {head}\n", *entries])


def _in_a_file(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return "" if default is None else f"{default:g}" if isinstance(default, float) else str(default)


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
    """Return the latest results of `make bench`; report relations that miss no target share one row."""
    kept = json.loads((ROOT / "tests/benchmarks/results.json").read_text())
    lines = ["| what | measured | lowest to highest | target | |", "|---|---|---|---|---|"]
    for name, part in kept["parts"].items():
        load = " to ".join(f"{each:g}" for each in part["load"])
        of = f", commit {part['commit']}" if part.get("commit") else ""
        lines.append(f"| **`{name}`**, {part['day']}, {part['seconds']} s, load average {load}{of} | | | | |")
        lines += [f"| skipped: {left_out} | | | | |" for left_out in part["skipped"]]
        rows = part["rows"]
        quick = [row for row in rows if row["what"].startswith("report.") and row["reached"] is not False]
        lines += [_speed_row(row) for row in rows if row not in quick]
        if quick:
            slowest = max(quick, key=lambda row: row["value"])
            what = f"{len(quick)} report relations; the slowest: `{slowest['what']}`"
            lines.append(_speed_row(slowest | {"what": what}))
    held, parts = kept["machine"], kept["parts"].values()
    machine = f"{held['cores']} cores, {held['memory_gb']} GB, {held['system']}, Python {held['python']}"
    days = " to ".join(sorted({min(part["day"] for part in parts), max(part["day"] for part in parts)}))
    sizes = " and ".join(sorted({part["size"] for part in parts}))
    minutes = sum(part["seconds"] for part in parts) / 60
    said = f"Measured with `make bench` at {sizes} size on {days} (UTC), in {minutes:.0f} minutes in total; {machine}."
    return "\n".join([said, "", *lines])


def _speed_row(row: dict) -> str:
    is_spread = row["low"] is not None and row["low"] != row["high"]
    spread = f"{_figure(row['low'])} to {_figure(row['high'])}" if is_spread else ""
    mark = {True: "reached", False: "**missed**", None: ""}[row["reached"]]
    note = "; ".join(part for part in (mark, row["note"]) if part)
    return f"| {row['what']} | {_figure(row['value'])} {row['unit']} | {spread} | {row['reach']} | {note} |"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


# Each table, and the page that shows it.
TABLES = {
    "settings": (REFERENCE, settings_table),
    "spec keys": (REFERENCE, spec_table),
    "price columns": (REFERENCE, price_table),
    "speed": (BENCHMARKS, speed_table),
    "costs": (ROOT / "flows" / "README.md", costs.table),
}
PAGES = [
    README,
    REFERENCE,
    BENCHMARKS,
    *(ROOT / folder / "README.md" for folder in ("flows", "sql", "tests/faults")),
    ROOT / "notebooks" / "GUIDE.md",
]
EXAMPLE = ROOT / ".env.example"
COMMANDS = get_command(app).commands


def between(text: str, name: str) -> str:
    match = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", text, re.DOTALL)
    assert match, name
    return match[1].strip()


@pytest.mark.parametrize("name", TABLES)
def test_a_page_lists_what_the_code_declares(name):
    page, table = TABLES[name]
    assert between(page.read_text(), name) == table(), "write it again: .venv/bin/python tests/docs/test_readme.py"


def test_the_readme_is_short_enough_to_be_read():
    assert len(README.read_text().splitlines()) < 250


def test_the_reference_names_every_command():
    named = set(re.findall(r"^\| `nightaudit (\w+)", REFERENCE.read_text(), re.MULTILINE))
    assert named == set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_commands_and_options_that_exist(page):
    for name, rest in re.findall(r"nightaudit ([a-z]+)((?: [^`\n|#]*)?)", page.read_text()):
        if name in COMMANDS and name != "sandbox":
            known = {option for each in COMMANDS[name].params for option in each.opts} | {"--help"}
            assert set(re.findall(r"(?<!\S)--[a-z-]+", rest)) <= known, (name, rest)
    code = re.findall(r"`(?:\.venv/bin/)?nightaudit ([a-z]+)", page.read_text())
    assert set(code) <= set(COMMANDS), page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_settings_that_exist(page):
    others = {"BENCH_HISTORY"}
    named = set(re.findall(rf"\b{PREFIX}([A-Z_]+[A-Z])\b", page.read_text())) - others
    assert named <= {name.upper() for name in Settings.model_fields}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_between_pages_leads_somewhere(page):
    for link, heading in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
        target = page.parent / link if link else page
        assert target.exists(), link
        if heading:
            headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
            assert heading in {each.lower().replace(" ", "-") for each in headings}, heading


def test_the_example_file_has_every_setting_as_it_is_declared():
    assert EXAMPLE.read_text() == example(), "write it again: .venv/bin/python tests/docs/test_readme.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_place_that_a_page_names_exists(page):
    named = set(re.findall(r"`((?:pipeline|flows|sql|tests)/[\w/.]*)", page.read_text()))
    assert [place for place in named if not (ROOT / place).exists()] == []


def test_every_promise_names_a_test_that_exists():
    promised = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", README.read_text())
    assert len(promised) >= 15
    assert [name for file, name in promised if f"def {name}(" not in (ROOT / file).read_text()] == []


def test_the_queries_of_the_pages_can_be_run(tmp_path):
    """Those of the guide are compared with their results in tests/notebooks."""
    lake = Lake(str(tmp_path / "lake"))
    sweep = load_night(lake, 0, cell=[{"check_in": FIRST_DAY}], offer=[{"check_in": FIRST_DAY}])
    publish(lake, sweep, started_at(0))
    queries = [
        query
        for page in PAGES[:-1]
        for query in re.findall(
            r'nightaudit query "([^"]+)"|^```sql\n(.*?)^```', page.read_text(), re.DOTALL | re.MULTILINE
        )
    ]
    assert len(queries) >= 4
    with open_published(lake.published_file) as session:
        for command, block in queries:
            session.sql(command or block).fetchall()


if __name__ == "__main__":
    EXAMPLE.write_text(example())
    for marker, (page, table) in TABLES.items():
        page.write_text(
            re.sub(
                rf"(<!-- {marker} -->\n).*?(<!-- /{marker} -->)",
                lambda match, table=table: f"{match[1]}{table()}\n{match[2]}",
                page.read_text(),
                flags=re.DOTALL,
            )
        )
