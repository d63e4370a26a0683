"""Write what follows from the files, parts of `sql/README.md` and the macro of units: `make sql-readme`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from nights import USUAL as USUAL_OF_TABLES
from nights import started_at, sweep_id
from session import USUAL, Golden

from pipeline.audit.rules import declared_rules
from pipeline.lake.relations import finding_rules, read_by, relation, relations, sql_folder, views

FILE = sql_folder() / "README.md"
UNITS = sql_folder() / "macro" / "size_unit.sql"
# Read by nearly everything: as arrows they would hide the others.
_EVERYWHERE = {"mart.offer_latest", "mart.cell_latest"}


def written(text: str) -> str:
    """The page with its generated parts as the files have them now."""
    parts = {
        "drawing": drawing(),
        "views": list_of_views(),
        "night": list_of_night(),
        "rules": rules(),
        "audit": audit(),
        "usual": usual(),
        "given": given(),
    }
    for name, part in parts.items():
        begin, end = f"<!-- {name}: written by `make sql-readme` -->", f"<!-- end of {name} -->"
        text = re.sub(f"{begin}.*?{end}", lambda _, b=begin, p=part, e=end: f"{b}\n{p}\n{e}", text, flags=re.DOTALL)
    return text


def units() -> str:
    """The macro that says the unit of each rule's sizes, as `rules.toml` declares it."""
    others = [rule for rule in finding_rules().values() if rule.unit != "%"]
    return "\n".join(
        [
            "-- Unit of a rule's sizes: `%` of the value that they are compared with, or as rules.toml says.",
            "-- Written by `make sql-readme`.",
            "CREATE OR REPLACE MACRO mart.size_unit(rule) AS (",
            "    CASE rule",
            *(f"        WHEN '{rule.name}' THEN '{rule.unit}'" for rule in others),
            "        ELSE '%'",
            "    END",
            ")\n",
        ]
    )


def drawing() -> str:
    made = {view.full_name for view in views()}
    arrows = sorted(
        f"  {source.replace('.', '_')}[{source}] --> {name.replace('.', '_')}[{name}]"
        for name, read in read_by(views()).items()
        for source in read & made - _EVERYWHERE
    )
    return "\n".join(["```mermaid", "flowchart LR", *arrows, "```"])


def list_of_views() -> str:
    read = read_by(views())
    rows = ([f"`{view.full_name}`", _plain(view.grain), _names(read[view.full_name])] for view in views())
    return table(("relation", "rows", "reads"), rows)


def list_of_night() -> str:
    made = relations("staging")
    read = read_by(made)
    return table(
        ("relation", "rows", "reads"),
        ([f"`{each.name}`", _plain(each.grain), _names(read[each.full_name])] for each in made),
    )


def rules() -> str:
    rows = (
        [
            f"`{rule.name}`",
            rule.title,
            f"`{rule.full_name}`",
            rule.makes,
            ", ".join(rule.subject),
            rule.unit,
            _plain(rule.severity),
            _plain(rule.meaning),
        ]
        for rule in finding_rules().values()
    )
    return table(("rule", "title", "relation", "makes", "subject", "unit of sizes", "severity", "meaning"), rows)


def audit() -> str:
    rows = (
        [
            f"`{name}`",
            rule.severity,
            rule.violators,
            _plain(relation("audit", name).grain),
            _plain(rule.reason),
        ]
        for name, rule in declared_rules().items()
    )
    return table(("rule", "severity", "violators", "rows", "reason"), rows)


def usual() -> str:
    """What a row of a golden case has where it names nothing, as a case would write it."""
    said = {name: _as_in_a_case(value) for name, value in (USUAL_OF_TABLES | USUAL).items()}
    alike: dict[str, list[str]] = {}
    for name, value in sorted(said.items()):
        alike.setdefault(value, []).append(name)
    return table(("columns", "usual"), ([_names(names), f"`{value}`"] for value, names in sorted(alike.items())))


def given() -> str:
    """The tables that a golden case may give, with their columns."""
    shapes = Golden().shapes
    rows = ([f"`{name}`", " ".join(column.name for column in shapes[name].columns)] for name in sorted(shapes))
    return table(("table", "columns"), rows)


def _as_in_a_case(value: object) -> str:
    for night in range(10):
        if value == started_at(night):
            return f"night {night}"
        if value == sweep_id(night):
            return f"sweep {night}"
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _names(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in sorted(names)) or "nothing"


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    FILE.write_text(written(FILE.read_text(encoding="utf-8")), encoding="utf-8")
    UNITS.write_text(units(), encoding="utf-8")
