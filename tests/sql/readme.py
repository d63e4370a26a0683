"""Write what follows from the files, parts of `sql/README.md` and the macros of rules: `make sql-readme`."""

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
MACROS = sql_folder() / "macro"
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


def macros_of_rules() -> dict[str, str]:
    """The macros that say what `rules.toml` declares about a rule, by name."""
    rules = finding_rules().values()
    units = [f"        WHEN '{rule.name}' THEN '{rule.unit}'" for rule in rules if rule.unit != "%"]
    comparing = [rule.name for rule in rules if rule.compares == "markets"]
    signed = [rule.name for rule in rules if rule.signed]
    meanings = {
        "size_unit": "Unit of a rule's sizes: `%` of the value that they are compared with, or as rules.toml says.",
        "compares_markets": "Whether a rule's findings are differences between two markets, as rules.toml says.",
        "is_signed": "Whether a rule's sizes above and below 0 differ in meaning, as rules.toml says.",
    }
    bodies = {
        "size_unit": "\n".join(["    CASE rule", *units, "        ELSE '%'", "    END"]),
        "compares_markets": _is_one_of(comparing),
        "is_signed": _is_one_of(signed),
    }
    return {
        name: f"-- {meaning}\n-- Written by `make sql-readme`.\n"
        f"CREATE OR REPLACE MACRO mart.{name}(rule) AS (\n{bodies[name]}\n)\n"
        for name, meaning in meanings.items()
    }


def _is_one_of(names: Sequence[str]) -> str:
    listed = ",\n".join(f"        '{name}'" for name in names)
    return f"    rule IN (\n{listed}\n    )"


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
    for name, text in macros_of_rules().items():
        (MACROS / f"{name}.sql").write_text(text, encoding="utf-8")
