"""Every relation of a published file is read to its end, and to its fifth row, by plain DuckDB.

The world is large enough for plans that small ones never get: DuckDB 2.0.0 waits forever for the first rows of some.
`make test-duckdb` runs this with the oldest DuckDB that is supported as well.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from benchmarks.history import make_history
from benchmarks.simulated import World

from pipeline.lake import Lake
from pipeline.lake.database import query_published

pytestmark = pytest.mark.slow

# Read by the DuckDB of the environment, or by the one in this folder.
OTHER = os.environ.get("OTHER_DUCKDB")

# A process of its own: what never returns can be ended, and another DuckDB can be imported.
READ = """
import sys
import duckdb

file, query = sys.argv[1:]
with duckdb.connect(":memory:") as session:
    session.execute(f"ATTACH '{file}' AS published (READ_ONLY)")
    session.execute("USE published")
    relations = session.execute(
        "SELECT DISTINCT schema_name || '.' || table_name FROM duckdb_columns() "
        "WHERE database_name = 'published' AND schema_name IN ('mart', 'report', 'lake', 'ref') ORDER BY 1"
    ).fetchall()
    for (relation,) in relations:
        print(f"{duckdb.__version__} {relation}", flush=True)
        session.execute(query.format(relation)).fetchall()
print("all", flush=True)
"""


@pytest.fixture(scope="session")
def file(once_a_run):
    return once_a_run("relations-to-read", lambda folder: make_history(Lake(str(folder / "lake")), World(80, 2)))


@pytest.mark.parametrize("query", ["SELECT * FROM {} LIMIT 5", "SELECT count(*) FROM {}"])
@pytest.mark.parametrize("folder", [None, OTHER] if OTHER else [None], ids=lambda folder: "other" if folder else "ours")
def test_every_relation_reads_one_after_the_other_in_a_plain_session(file, folder, query):
    found = _output([sys.executable, "-c", READ, str(file), query], folder)
    assert found[-1] == "all", f"{query} of {found[-1]} fails or never returns"
    assert len(found) > 100


def _output(command, folder):
    environment = os.environ | ({"PYTHONPATH": folder} if folder else {})
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            return process.communicate(timeout=200)[0].splitlines()
        except subprocess.TimeoutExpired:
            process.kill()
            return process.communicate()[0].splitlines()


def test_the_first_rows_of_a_join_of_a_relation_with_itself_return(file):
    """Without the setting of our sessions, DuckDB 2.0.0 never returns from it."""
    query = "SELECT * FROM mart.price_path AS a JOIN mart.price_path AS b USING (property_id) LIMIT 5"
    assert len(query_published(file, query).fetchall()) == 5
