"""Every response field of the document, and the column that it is stored in: none is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.domain.search import Operation
from pipeline.domain.stored import STORED
from pipeline.domain.tables import SIDE_TABLES, TABLES
from pipeline.supplier.fields import response_fields

FACTS = json.loads((Path(__file__).parent / "facts.json").read_text())


def documented(schema: str, prefix: str = "") -> set[str]:
    """Paths of all fields of a schema of the document, apart from those that only hold others."""
    found = set()
    for field, kind in FACTS["responses"][schema].items():
        bare = kind.strip("[]")
        path = f"{prefix}{field}{'[]' * kind.startswith('[')}"
        found |= documented(bare, f"{path}.") if bare in FACTS["responses"] else {path}
    return found


@pytest.mark.parametrize("operation", Operation)
def test_every_field_of_the_document_is_stored_in_a_column(operation):
    fields = documented(operation.value)
    columns = {f"{table.name}.{column.name}" for table in (TABLES | SIDE_TABLES).values() for column in table.columns}
    stored = {field for field in fields if columns.issuperset(STORED[operation].get(field, ("none",)))}
    assert fields - stored == set(), f"{len(stored)} of {len(fields)} fields are stored"


@pytest.mark.parametrize("operation", Operation)
def test_nothing_is_listed_that_the_document_does_not_have(operation):
    assert documented(operation.value) == set(response_fields(operation)) == set(STORED[operation])
