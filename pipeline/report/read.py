"""Reading relations of the published file for a report, limited to its scope."""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from pipeline.lake.database import REPORT_MEMORY
from pipeline.lake.relations import relation
from pipeline.report.case_rows import ended_of, with_case_ids, with_opening
from pipeline.report.scope import Scope
from pipeline.report.which_pages import costly_properties, first_cases

# What a query may use that does not fit into the memory of a report: with the rest of its process, 700 MB.
_MEMORY_OF_LARGE = "400MB"
# Properties whose offers are read at once, where those of all would not fit: some two million offers.
_PROPERTIES_AT_ONCE = 2_000
# Folders of the pages of cases and of properties.
CASES, PROPERTY_PAGES = "cases", "properties"
# The most of each, the most urgent first: writing them takes some seconds, and a manager calls about fewer.
CASE_PAGES, ENDED_PAGES, PROPERTIES = 200, 50, 100


@dataclass(frozen=True)
class Reader:
    """An open published file and what the report is about."""

    session: duckdb.DuckDBPyConnection
    scope: Scope
    # Relations that cannot be filtered as requested, with the filters they do not have; their sections are left out.
    wider: dict[str, str] = field(default_factory=dict)
    # The folder of all reports.
    reports: Path | None = None

    def rows(
        self,
        name: str,
        *,
        only: str = "*",
        order: str = "ALL",
        limit: int | None = None,
        where: str = "true",
        qualify: str = "",
    ) -> pl.DataFrame:
        """Return rows of a relation, such as `report.parity_score`, within the scope, in a fixed order.

        `only` are the columns wanted, `qualify` is a QUALIFY condition on these rows.
        """
        columns = self.columns(name)
        limits, values = self.scope.condition(*columns)
        if missing := self.scope.missing(*columns):
            self.wider[name] = missing
        top = f" LIMIT {limit}" if limit is not None else ""
        chosen = f"WHERE {limits} AND ({where}) {f'QUALIFY {qualify}' if qualify else ''}"
        return self.query(f"SELECT {only} FROM {name} {chosen} ORDER BY {order}{top}", values)  # noqa: S608 - our own names; what users give is a parameter

    def query(self, sql: str, values: dict[str, Any] | None = None) -> pl.DataFrame:
        """Return the result of one of our queries."""
        try:
            return pl.DataFrame(self.session.sql(sql, params=values).to_arrow_table())
        except duckdb.OutOfMemoryException:
            # A median or a list holds all its values in memory, and those of tens of millions of offers need more.
            self.session.execute(f"SET memory_limit = '{_MEMORY_OF_LARGE}'")
            try:
                return pl.DataFrame(self.session.sql(sql, params=values).to_arrow_table())
            finally:
                self.session.execute(f"SET memory_limit = '{REPORT_MEMORY}'")

    def columns(self, relation: str) -> list[str]:
        """Return the names of a relation's columns."""
        return [row[0] for row in self.session.execute(f"DESCRIBE {relation}").fetchall()]

    @cached_property
    def is_out_of_reach(self) -> bool:
        """Whether no cell within the limits was ever requested."""
        if not self.scope.words:
            return False
        limits, values = self.scope.condition("property_id", "market", "check_in")
        return self.query(f"SELECT 1 FROM mart.cell_latest WHERE {limits} LIMIT 1", values).is_empty()  # noqa: S608 - our own names; what users give is a parameter

    def figures(self, name: str, ids: Collection[int] | None = None, also: str = "true") -> pl.DataFrame:
        """Return the rows of `sql/page/<name>.sql`: within the scope, or of the properties `ids`; and where `also`."""
        within = self.scope.expression if ids is None else f"list_contains({list(ids)}, its_property_id)"
        macro = "is_within(its_property_id, its_market, its_check_in)"
        self.session.execute(f"CREATE OR REPLACE TEMP MACRO {macro} AS (({within}) AND {also})")
        return self.query(relation("page", name).sql)

    def figures_by_property(self, name: str) -> pl.DataFrame:
        """Return `figures` of rows that belong to one property each, in the order of properties.

        Some properties at a time: a median holds all its values in memory, and those of every stay would not fit.
        """
        return pl.concat(self.figures(name, also=its) for its in self.some_at_a_time("its_property_id"))

    def some_at_a_time(self, column: str) -> list[str]:
        """Return conditions on a column of property ids that divide the properties of the night, in their order."""
        ends = self._ids.gather_every(_PROPERTIES_AT_ONCE, _PROPERTIES_AT_ONCE)
        lower = ["true", *(f"{column} >= {first}" for first in ends)]
        upper = [*(f"{column} < {end}" for end in ends), "true"]
        return [f"{first} AND {end}" for first, end in zip(lower, upper, strict=True)]

    def total(self, name: str) -> dict[str, Any]:
        """Return the one row of `sql/page/<name>.sql` within the scope."""
        return self.figures(name).row(0, named=True)

    def note_cases(self) -> None:
        """Note that a section shows cases, if they cannot be filtered as requested."""
        if missing := self.scope.missing("property_id", "market"):
            self.wider["report.finding_case"] = missing

    @cached_property
    def cases_of_night(self) -> pl.DataFrame:
        """The cases that are not closed or ended since the night before, with names, the most urgent first."""
        last = "(SELECT started_at FROM mart.sweep ORDER BY started_at DESC LIMIT 1 OFFSET 1)"
        rows = self.rows("report.finding_case", order="urgency", where=f"closed_at > {last} IS NOT FALSE")
        return with_opening(self.named(rows))

    @cached_property
    def _unclosed(self) -> pl.DataFrame:
        return self.cases_of_night.filter(pl.col("status") != "closed")

    @property
    def cases(self) -> pl.DataFrame:
        """The cases that are neither closed nor part of a wider one, with names, the most urgent first."""
        return self._unclosed.filter(pl.col("status") != "part_of")

    @cached_property
    def ended(self) -> pl.DataFrame:
        """The cases that ended with the last night, with names, without those covered by a wider one of tonight."""
        return ended_of(self.cases_of_night)

    @cached_property
    def case_pages(self) -> frozenset[str]:
        """The cases with a page; none if cases cannot be filtered as requested."""
        if self.scope.missing("property_id", "market"):
            return frozenset()
        return frozenset({*first_cases(self.cases, CASE_PAGES), *first_cases(self.ended, ENDED_PAGES)})

    @property
    def case_page(self) -> pl.Expr:
        """The page of `case_id`, relative to other pages; NULL: it has none."""
        has_page = pl.col("case_id").is_in(list(self.case_pages | self._there(CASES)))
        # A function given to polars would be kept, with this session, for as long as the process lives.
        return pl.when(has_page).then(pl.format(f"{CASES}/{{}}.html", "case_id")).alias("case_page")

    @cached_property
    def property_pages(self) -> tuple[int, ...]:
        """The properties with a page, by their most costly problem; none if markets or days are filtered."""
        scope = self.scope
        if scope.words and scope != Scope(property_id=scope.property_id):
            return ()
        urgent = costly_properties(self.cases)
        if scope.property_id is None and len(urgent) < PROPERTIES:
            urgent = list(dict.fromkeys([*urgent, *self._ids]))
        return tuple(urgent[:PROPERTIES]) if scope.property_id is None else (scope.property_id,)

    @cached_property
    def linked_properties(self) -> frozenset[int]:
        """The properties with a page in this report or, if it is filtered, an earlier one of the night."""
        numbers = (stem for stem in self._there(PROPERTY_PAGES) if stem.removeprefix("-").isdigit())
        return frozenset({*self.property_pages, *map(int, numbers)})

    def _there(self, folder: str) -> frozenset[str]:
        """Return the pages in a folder of the night that a filtered report does not write, but links."""
        if self.reports is None or not self.scope.words:
            return frozenset()
        return frozenset(page.stem for page in (self.reports / self.night["sweep_id"] / folder).glob("*.html"))

    def with_cases(self, flags: pl.DataFrame) -> pl.DataFrame:
        """Return flags with their open cases and the pages of these, also where a case is wider than the filters."""
        return with_case_ids(flags, self._unclosed_of_all).with_columns(self.case_page)

    @cached_property
    def _unclosed_of_all(self) -> pl.DataFrame:
        if not self.scope.words:
            return self._unclosed
        return self.query("SELECT * FROM report.finding_case WHERE status <> 'closed' ORDER BY urgency")

    def whole(self, relation: str) -> None:
        """Note that a section reads a relation unfiltered."""
        if self.scope.words:
            self.wider[relation] = self.scope.missing()

    def named(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return rows with the name of their property, as `mart.property` has it, after its id."""
        at = frame.columns.index("property_id") + 1
        placed = frame.join(self._names, on="property_id", how="left", maintain_order="left")
        return placed.select(*frame.columns[:at], "property_name", *frame.columns[at:])

    @cached_property
    def properties(self) -> pl.DataFrame:
        """The rows of `mart.property`."""
        return self.query("SELECT * FROM mart.property")

    @cached_property
    def _ids(self) -> pl.Series:
        """The properties that were requested, in order."""
        return self.query("SELECT DISTINCT property_id FROM mart.cell_latest ORDER BY property_id")["property_id"]

    @cached_property
    def _names(self) -> pl.DataFrame:
        return self.properties.select("property_id", "property_name")

    @cached_property
    def places(self) -> dict[int, dict[str, str]]:
        """City, brand and group of properties, by which tables can be filtered."""
        known = {"data-city": "city", "data-brand": "brand", "data-group": "property_group"}
        return {
            row["property_id"]: {name: row[column] for name, column in known.items() if row[column]}
            for row in self.properties.iter_rows(named=True)
        }

    @property
    def has_names(self) -> bool:
        """Whether most properties of the night have a name; the others are shown by id."""
        named = self._names.drop_nulls("property_name")["property_id"]
        return 2 * int(self._ids.is_in(named.to_list()).sum()) >= self._ids.len()

    @property
    def about(self) -> str:
        """The name of the report's property; empty if it is unknown, or there is no such property."""
        is_its = pl.col("property_id").eq_missing(self.scope.property_id)
        names = self._names.filter(is_its)["property_name"].drop_nulls()
        return str(names[0]) if names.len() else ""

    @property
    def limits(self) -> str:
        """The filters in words, with the name of the report's property; empty without filters."""
        number, words = self.scope.property_id, self.scope.words
        return words.replace(f"property {number}", f"property {number} ({self.about})", 1) if self.about else words

    @cached_property
    def nights(self) -> list[dict[str, Any]]:
        """The rows of `mart.sweep` of the published nights, the last one first."""
        return self.query("SELECT * FROM mart.sweep ORDER BY started_at DESC").rows(named=True)

    @cached_property
    def night(self) -> dict[str, Any]:
        """The row of `mart.sweep` of the last published night."""
        return self.nights[0]

    @property
    def is_first_night(self) -> bool:
        """Whether there is no earlier night to compare with."""
        return len(self.nights) == 1
