"""What `mutate.py` lists: changes that no case notices, and those alone."""

from __future__ import annotations

from mutate import changes, survivors
from test_golden import HERE

from pipeline.lake.relations import relation

ONE_OPERATION = """
given:
  mart.sweep: [{sweep_id: sweep 5, started_at: night 5}]
  state.cell:
    - {cell_key: 1, status: offered}
    - {cell_key: 2, status: failed}
expected:
  - {operation: multi, answered: 1, offered: 1}
"""


def test_a_change_that_a_case_notices_is_not_listed(golden):
    made = relation("page", "answered_total")
    tried, left = survivors(golden, sorted((HERE / "page" / made.name).glob("*.yaml")), made)
    assert tried == len(list(changes(made.sql))) > 3
    assert left == []


def test_a_change_that_no_case_notices_is_listed_with_its_line(golden, tmp_path):
    (tmp_path / "one_operation.yaml").write_text(ONE_OPERATION)
    made = relation("page", "answered_total")
    _, left = survivors(golden, [tmp_path / "one_operation.yaml"], made)
    found = {(made.sql.splitlines()[line - 1].split(" AS ")[-1], what.split(" -> ")[-1]) for line, what, _ in left}
    # The case names neither column, and the third one differs.
    assert {("no_offer,", "nothing"), ("absent", "nothing")} <= found
    assert ("answered,", "nothing") not in found
