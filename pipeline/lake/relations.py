"""The SQL under `sql/`: one file is one relation, named like the file, in the schema named like its folder.

A file starts with comments: first the grain, then optional meanings of columns as `-- column: meaning`. One SELECT
follows. Other declarations about the relations of a folder, such as rules, are in TOML files in the same folder.
"""

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from graphlib import TopologicalSorter
from typing import Any, Literal, TypeVar

import duckdb
import msgspec

from pipeline.domain.tables import SIDE_TABLES, STATE_TABLES, TABLES
from pipeline.domain.texts import literal
from pipeline.process.made_of import sql_folder

# Schemas whose relations are views of the published file.
_OF_VIEWS = ("mart", "report")
_OF_NIGHT = re.compile(r"\bnight\.(\w+)")
_COMMENT = re.compile(r"--.*")
_RULE_VERSION = re.compile(r"\b(\d+) AS rule_version\b")
_MACRO_CALL = re.compile(r"\bmart\.(\w+)\(")
# How a macro begins that returns rows of views; the others are expressions, which views use.
_OVER_VIEWS = ") AS TABLE ("

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True)
class Relation:
    """One SQL file."""

    schema: str
    name: str
    grain: str
    sql: str
    meanings: dict[str, str] = field(default_factory=dict)
    """Meanings of columns in the file, by name."""

    @property
    def full_name(self) -> str:
        """Name with its schema."""
        return f"{self.schema}.{self.name}"


@cache
def relation(schema: str, name: str) -> Relation:
    """Read `sql/<schema>/<name>.sql`."""
    lines = (sql_folder() / schema / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    said = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
    body = "\n".join(line for line in lines if not line.startswith("--")).strip().rstrip(";")
    columns = (line.partition(": ") for line in said[1:])
    meanings = {column: meaning for column, _, meaning in columns if meaning and column.isidentifier()}
    return Relation(schema, name, said[0], body, meanings)


def relations(schema: str) -> list[Relation]:
    """Read all files of a schema, by name."""
    return [relation(schema, path.stem) for path in sorted((sql_folder() / schema).glob("*.sql"))]


@cache
def declarations(schema: str, name: str, kind: type[T]) -> Mapping[str, T]:
    """Read `sql/<schema>/<name>.toml`: declarations of rules or relations, by name, which each holds too.

    Raises ValueError that names the declaration and what is wrong with it.
    """
    read = tomllib.loads((sql_folder() / schema / f"{name}.toml").read_text(encoding="utf-8"))
    found = {}
    for each, said in read.items():
        try:
            found[each] = msgspec.convert({"name": each} | said, kind)
        except msgspec.ValidationError as error:
            raise ValueError(f"sql/{schema}/{name}.toml, [{each}]: {error}") from None
    return found


@cache
def views() -> tuple[Relation, ...]:
    """Return the views of the published file, each after those that it reads."""
    known = {each.full_name: each for schema in _OF_VIEWS for each in relations(schema)}
    graph = {name: sorted(read & known.keys()) for name, read in _read_by_views().items()}
    return tuple(known[name] for name in TopologicalSorter(graph).static_order())


def direct_sources(made: Relation) -> frozenset[str]:
    """Return the full names of the relations that one reads directly."""
    return _read_by_views().get(made.full_name) or read_by([made])[made.full_name]


def sources(made: Relation) -> frozenset[str]:
    """Return the full names of the relations that one reads, directly or through views."""
    read = _read_by_views()
    reached, ahead = set[str](), [direct_sources(made)]
    while ahead:
        new = ahead.pop() - reached
        reached |= new
        ahead += [read[name] for name in new & read.keys()]
    return frozenset(reached)


def reached(names: Iterable[str]) -> set[str]:
    """Return relations and all that they read, directly or through views, by full name."""
    wanted = set(names)
    return wanted.union(*(sources(relation(*name.split("."))) for name in wanted))


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return relations and all that they read, by full name: tables first, then each view after those that it reads."""
    wanted = reached(names)
    ordered = [made.full_name for made in views() if made.full_name in wanted]
    return (*sorted(wanted.difference(ordered)), *ordered)


@cache
def _read_by_views() -> Mapping[str, frozenset[str]]:
    return read_by([each for schema in _OF_VIEWS for each in relations(schema)])


@cache
def night_relations(*last: str) -> tuple[str, ...]:
    """Return relations of `staging` and those they read as tables of `night`, each after those that it reads."""
    read = _read_by_staging()
    graph, ahead = {}, list(last)
    while ahead:
        name = ahead.pop()
        graph[name] = sorted(read[name] & read.keys())
        ahead += graph[name]
    return tuple(TopologicalSorter(graph).static_order())


@cache
def _read_by_staging() -> Mapping[str, frozenset[str]]:
    # Found in the text: parsing all of them, as for views, would cost each process a fifth of a second.
    return {each.name: frozenset(_OF_NIGHT.findall(_COMMENT.sub("", each.sql))) for each in relations("staging")}


@cache
def macros(*, over_views: bool) -> tuple[str, ...]:
    """Return the statements of `sql/macro`, each after those that it calls: of expressions, or of macros over views."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted((sql_folder() / "macro").glob("*.sql"))}
    calls = {name: sorted(set(_MACRO_CALL.findall(text)) & texts.keys() - {name}) for name, text in texts.items()}
    ordered = (texts[name] for name in TopologicalSorter(calls).static_order())
    return tuple(text for text in ordered if (_OVER_VIEWS in text) == over_views)


def read_by(relations: Collection[Relation]) -> Mapping[str, frozenset[str]]:
    """Return, by full name, the full names of the tables that each relation reads directly, as DuckDB parses it."""
    with duckdb.connect(":memory:") as session:
        parsed = session.execute(
            "SELECT json_serialize_sql(sql) FROM unnest($texts::VARCHAR[]) AS given (sql)",
            {"texts": [each.sql for each in relations]},
        ).fetchall()
    return {each.full_name: _tables(tree) for each, (tree,) in zip(relations, parsed, strict=True)}


def _tables(tree: str) -> frozenset[str]:
    found = set[str]()

    def note(part: dict[str, Any]) -> None:
        # A part of the statement itself (WITH) has no schema.
        if part.get("type") == "BASE_TABLE" and part["schema_name"]:
            found.add(f"{part['schema_name']}.{part['table_name']}")

    json.loads(tree, object_hook=note)
    return frozenset(found)


@cache
def declared_meanings() -> dict[str, str]:
    """Return the meanings of the declared tables' columns; a name has the same meaning everywhere."""
    meanings: dict[str, str] = {}
    for table in (*STATE_TABLES, *TABLES.values(), *SIDE_TABLES.values()):
        for column in table.columns:
            meanings.setdefault(column.name, column.meaning)
    return meanings


# The order of findings for readers; ids decide between equal ones.
MOST_SEVERE_FIRST = (
    "CASE severity WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END, abs(size_pct) DESC NULLS LAST, flag_id"
)


class FindingRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule and its relation; the head of the TOML file explains each key."""

    name: str
    title: str
    makes: Literal["flags", "exposures"]
    subject: Sequence[str]
    meaning: str
    numbers: Sequence[str]
    relation: str = ""
    unit: Literal["%", "% of the total", "percentage points"] = "%"
    severity: str = "By size_pct and the bounds of ref.analysis."
    planted: bool = True
    concerns: Literal["property", "selling_price"] = "property"
    call_from: Literal["low", "medium", "high"] = "low"
    about: Literal["price", "label"] = "price"
    page: Literal["", "parity", "promotions"] = ""
    compares: Literal["", "markets"] = ""
    signed: bool = False
    adds_up: bool = False

    def __post_init__(self) -> None:
        """A relation that is not named has the rule's name."""
        if not self.relation:
            msgspec.structs.force_setattr(self, "relation", self.name)

    @property
    def full_name(self) -> str:
        """Name of the relation, with its schema."""
        return f"report.{self.relation}"


def finding_rules() -> Mapping[str, FindingRule]:
    """Return all rules by name."""
    return declarations("report", "rules", FindingRule)


def size_unit(rule: str) -> str:
    """Return `mart.size_unit` of an SQL expression as SQL: published files of earlier versions lack the macro."""
    others = [(each.name, each.unit) for each in finding_rules().values() if each.unit != "%"]
    return f"CASE {rule} {' '.join(f'WHEN {literal(name)} THEN {literal(unit)}' for name, unit in others)} ELSE '%' END"


def detectors() -> tuple[str, ...]:
    """Return the full names of the relations whose findings become flags after each night.

    They read the results of a night, never the flags themselves, and have the columns of `FINDING_COLUMNS`.
    """
    return tuple(dict.fromkeys(rule.full_name for rule in finding_rules().values() if rule.makes == "flags"))


@cache
def rule_versions() -> Mapping[str, int]:
    """Return the version of the rules of each of the `detectors`, by full name."""
    found = {name: _RULE_VERSION.search(relation(*name.split(".")).sql) for name in detectors()}
    return {name: int(version[1]) for name, version in found.items() if version}
