"""Users' SQL reads the lake and nothing else; it writes nothing, and ends."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from waiting import await_true

from pipeline.domain.errors import CorruptObject, InputError, QueryStopped
from pipeline.lake.query_child import parts_of
from pipeline.lake.user_query import Bounds, Condition, user_query
from pipeline.lake.user_sql import functions_with_effects, locked_session

SECRET = "correct horse battery staple"
FEW = Bounds(seconds=60, memory_mb=500)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A lake with a published file whose view reads Parquet, next to files that no query may read."""
    home = tmp_path_factory.mktemp("home")
    for folder in ("published", "tables/offer/s", "raw/s"):
        (home / "lake" / folder).mkdir(parents=True)
    lake = home / "lake"
    with duckdb.connect(str(lake / "published" / "nightaudit.duckdb")) as session:
        session.execute(f"COPY (SELECT range AS total FROM range(10)) TO '{lake}/tables/offer/s/a.parquet'")  # noqa: S608 - a path of ours
        session.execute(f"COPY (SELECT 1 AS n) TO '{lake}/raw/s/multi-GB-000000.parquet'")
        session.execute("CREATE SCHEMA mart; CREATE SCHEMA report; CREATE SCHEMA lake")
        session.execute("CREATE TABLE mart.sweep AS SELECT 's' AS sweep_id, 10 AS offers")
        session.execute("CREATE TABLE report.flag AS SELECT range AS flag_id, range % 3 AS size_pct FROM range(9)")
        session.execute(f"CREATE VIEW lake.offer AS FROM read_parquet('{lake}/tables/offer/*/*.parquet')")
        session.execute("CREATE MACRO mart.offer_as_of(least) AS TABLE SELECT * FROM lake.offer WHERE total >= least")
        session.execute(f"CREATE VIEW lake.gone AS FROM read_parquet(['{lake}/tables/offer/s/a.parquet'])")
    (home / "secret.txt").write_text(SECRET)
    (home / "secret.csv").write_text(f"words\n{SECRET}\n")
    duckdb.connect(str(home / "other.duckdb")).close()
    (lake / "raw" / "schema.sql").write_text("CREATE TABLE memory.main.evil AS SELECT 1")
    (lake / "raw" / "load.sql").write_text(f"COPY (SELECT 1) TO '{home}/evil.csv'")
    return home


@pytest.fixture
def file(home):
    return home / "lake" / "published" / "nightaudit.duckdb"


def ask(file, sql, bounds=FEW):
    with user_query(file, sql, bounds) as answer:
        return list(answer.rows())


def asked_here(file, asked, spill):
    """The same without a separate process, which takes most of the time: rows, or the reason why there are none."""
    parts = list(parts_of(file, asked, spill, FEW.memory_mb, as_arrow=False))
    failures = [part for part in parts if isinstance(part, tuple)]
    if failures:
        assert failures == parts[-1:]
        raise InputError(failures[0][1]) if failures[0][0] == "refused" else AssertionError(failures)
    return [row for rows in parts[1:] for row in rows]


def everything_in(home):
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in home.rglob("*")
    }


READING = {
    "SELECT sweep_id FROM mart.sweep": [("s",)],
    "FROM mart.sweep": [("s", 10)],
    "select count(*) from lake.offer;": [(10,)],
    "-- a word before\nSELECT 1 -- and one after": [(1,)],
    "WITH a AS (SELECT 1 AS x) SELECT x FROM a UNION ALL SELECT 2 ORDER BY x": [(1,), (2,)],
    "WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM t WHERE x < 3) SELECT max(x) FROM t": [(3,)],
    "SELECT count(*) FROM mart.offer_as_of(7)": [(3,)],
    "VALUES (1)": [(1,)],
    "TABLE mart.sweep": [("s", 10)],
    "SELECT * FROM range(2)": [(0,), (1,)],
    "SELECT count(*) FROM duckdb_views() WHERE schema_name = 'lake'": [(2,)],
    "SELECT 1.50::DECIMAL(18,4), DATE '2030-01-01', [1, 2], {'a': NULL}": None,
    "SELECT unnest([1, 2])": [(1,), (2,)],
    "PIVOT mart.sweep ON sweep_id IN ('s') USING sum(offers)": [(10,)],
    "SELECT random() < 2, uuid() IS NOT NULL, now() IS NOT NULL": [(True, True, True)],
    "SHOW ALL TABLES": None,
    "SHOW TABLES FROM mart": [("sweep",)],
    "DESCRIBE mart.sweep": None,
    "SUMMARIZE mart.sweep": None,
    "EXPLAIN SELECT 1": None,
    "explain analyze FROM mart.sweep": None,
    "EXPLAIN (FORMAT json) FROM mart.sweep": None,
    "EXPLAIN (ANALYZE, FORMAT json) FROM mart.sweep": None,
    "SELECT count(*) FROM '{lake}/raw/s/multi-GB-000000.parquet'": [(1,)],
    "SELECT count(*) FROM glob('{lake}/raw/*/*.parquet')": [(1,)],
}


@pytest.mark.parametrize("sql", READING)
def test_what_reads_is_answered(home, file, sql, tmp_path):
    rows = asked_here(file, sql.replace("{lake}", str(home / "lake")), tmp_path)
    expected = READING[sql]
    assert rows == expected if expected is not None else rows


# Each would write a file, read one that is not the lake's, reach the network or change the session.
ATTEMPTS = [
    "SELECT write_log('x')",
    "SELECT offers FROM mart.sweep WHERE WRITE_LOG('x', level := 'error') IS NULL",
    "SELECT setseed(0.5)",
    "SELECT json_serialize_plan('EXPORT DATABASE ''{lake}/raw/evil''')",
    "SELECT JSON_SERIALIZE_PLAN('FROM read_text(''{home}/secret.txt'')', optimize := true)",
    "FROM json_each(system.main.json_serialize_plan('COPY (SELECT 1) TO ''{lake}/raw/evil.csv'''))",
    "SELECT sleep_ms(600000)",
    "SELECT pg_sleep(600)",
    "SELECT nextval('mart.numbers')",
    "COPY (SELECT 1) TO '{home}/evil.csv'",
    "COPY (SELECT 1) TO '{lake}/raw/evil.csv'",
    "COPY mart.sweep TO '{lake}/tables/evil.parquet'",
    "COPY FROM DATABASE nightaudit TO memory",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{home}/evil.csv'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{lake}/raw/evil.csv'",
    "EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{lake}/raw/evil.csv'",
    "EXPLAIN (ANALYZE, FORMAT json) COPY (SELECT 1) TO '{lake}/raw/evil.csv'",
    "explain/**/analyze/**/copy (select 1) to '{lake}/raw/evil.csv'",
    "/* */ EXPLAIN ANALYZE COPY (SELECT 1) TO '{lake}/raw/evil.csv'",
    "EXPLAIN EXPLAIN ANALYZE COPY (SELECT 1) TO '{lake}/raw/evil.csv'",
    "EXPLAIN ANALYZE CREATE TABLE memory.main.x AS SELECT 1",
    "EXPLAIN ANALYZE INSERT INTO mart.sweep VALUES ('x', 1)",
    "EXPLAIN ANALYZE SELECT 1; COPY (SELECT 1) TO '{lake}/raw/evil.csv'",
    "EXPORT DATABASE '{lake}/raw/evil'",
    "PRAGMA import_database('{lake}/raw')",
    "IMPORT DATABASE '{lake}/raw'",
    "PRAGMA copy_database('nightaudit', 'memory')",
    "PRAGMA enable_profiling",
    "ATTACH '{lake}/raw/evil.duckdb'",
    "ATTACH '{home}/other.duckdb' AS other",
    "ATTACH '{lake}/published/nightaudit.duckdb' AS writable",
    "DETACH nightaudit",
    "USE memory",
    "CREATE TABLE memory.main.x AS SELECT 1",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE MACRO memory.main.m() AS 1",
    "CREATE SECRET (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "INSERT INTO mart.sweep VALUES ('x', 1)",
    "UPDATE mart.sweep SET offers = 0",
    "DELETE FROM mart.sweep",
    "DROP TABLE mart.sweep",
    "MERGE INTO mart.sweep USING mart.sweep AS b ON true WHEN MATCHED THEN DELETE",
    "WITH x AS (DELETE FROM mart.sweep RETURNING *) SELECT * FROM x",
    "WITH x AS (INSERT INTO memory.main.x VALUES (1) RETURNING *) SELECT * FROM x",
    "SET memory_limit = '100GB'",
    "RESET enable_external_access",
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    "LOAD httpfs",
    "INSTALL httpfs",
    "FORCE INSTALL httpfs FROM 'http://127.0.0.1:9/'",
    "CALL enable_logging(storage = 'file', storage_config = {'path': '{lake}/raw'})",
    "SELECT * FROM enable_logging(storage = 'file', storage_config = {'path': '{lake}/raw'})",
    "SELECT * FROM enable_profiling(save_location = '{lake}/raw/evil.json')",
    "SELECT * FROM checkpoint('nightaudit')",
    "SELECT * FROM query('FROM enable_logging()')",
    "SELECT * FROM query_table('{home}/secret.csv')",
    "FROM json_execute_serialized_sql(json_serialize_sql('FROM mart.sweep'))",
    "FROM arrow_scan(1, 2, 3)",
    "FROM pandas_scan(1)",
    "FROM read_duckdb('{home}/other.duckdb')",
    "FROM which_secret('s3://a', 's3')",
    "FROM duckdb_secrets()",
    "FROM read_text('{home}/secret.txt')",
    "FROM read_text('/etc/passwd')",
    "FROM read_blob('/etc/passwd')",
    "FROM read_csv('{home}/secret.csv')",
    "FROM '{home}/secret.csv'",
    "FROM '/etc/passwd'",
    "FROM read_text('{lake}/raw/../../secret.txt')",
    "FROM read_text('file://{home}/secret.txt')",
    "FROM read_text('file:/etc/passwd')",
    "FROM read_text(['{lake}/raw/schema.sql', '{home}/secret.txt'])",
    "FROM read_csv((SELECT '{home}/secret.csv'))",
    "SELECT (SELECT content FROM read_text('{home}/secret.txt'))",
    "SELECT 1 UNION ALL SELECT content FROM read_text('{home}/secret.txt')",
    "FROM sniff_csv('{home}/secret.csv')",
    "FROM glob('/etc/*')",
    "FROM glob('{home}/*')",
    "FROM glob('{lake}/raw/../../*')",
    "FROM parquet_metadata('/etc/passwd')",
    "FROM 'http://127.0.0.1:9/x.csv'",
    "FROM read_parquet('s3://bucket/x.parquet')",
    "FROM read_csv('http://127.0.0.1:9/x.csv')",
    "SELECT * FROM file",
    "SELECT * FROM names_files",
    "PREPARE x AS SELECT 1",
    "EXECUTE x",
    "BEGIN",
    "VACUUM",
    "CHECKPOINT",
    "PIVOT mart.sweep ON sweep_id",
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY (SELECT 1) TO '{home}/evil.csv'",
    "",
    ";",
    "nonsense",
    "SELECT getenv('HOME')",
    "COPY mart.sweep FROM '{home}/secret.csv'",
    "COPY--x\n(SELECT 1) TO '{lake}/raw/evil.csv'",
    "COPY/**/(SELECT/**/1)/**/TO/**/'{lake}/raw/evil.csv'",
    "SELECT 1;\n--\n;COPY (SELECT 1) TO '{lake}/raw/evil.csv'",
    "\uff23\uff2f\uff30\uff39 (SELECT 1) TO '{lake}/raw/evil.csv'",
    "\ufeffSELECT content FROM read_text('{home}/secret.txt')",
    "EXPLAIN ANALYZE ATTACH '{lake}/raw/evil.duckdb'",
    "EXPLAIN ANALYZE EXPORT DATABASE '{lake}/raw/evil'",
    "EXPLAIN ANALYZE PREPARE x AS SELECT 1",
    "EXPLAIN ANALYZE SET memory_limit = '1GB'",
    "EXPLAIN ANALYZE CALL enable_logging()",
    "DESCRIBE SELECT * FROM read_csv('{home}/secret.csv')",
    "SUMMARIZE SELECT * FROM read_text('{home}/secret.txt')",
    "DEALLOCATE ALL",
    "SET VARIABLE x = 1",
    "CALL pragma_version()",
    "CALL start_ui_server()",
    "PRAGMA force_checkpoint",
    "PRAGMA add_parquet_key('k', '0123456789112345')",
    "FROM duckdb_secrets(redact := false)",
    "FROM duckdb_logs()",
    "SELECT system.main.getenv('PATH')",
    "SELECT * FROM (INSERT INTO mart.sweep VALUES ('y', 1) RETURNING *)",
    "FROM read_json('http://127.0.0.1:9/x.json')",
    "FROM read_ndjson_objects('{home}/secret.txt')",
    "FROM system.main.read_text('/etc/passwd')",
    "FROM read_text('/proc/self/environ')",
    "FROM read_text('/proc/self/root{home}/secret.txt')",
    "FROM read_text('/proc/self/cwd/secret.txt')",
    "FROM read_text('secret.txt')",
    "FROM read_text('{lake}//..//secret.txt')",
    "FROM read_text('{lake}/raw/\x00/../../../secret.txt')",
    "FROM read_text(chr(47) || 'etc/passwd')",
    "FROM read_text(E'\\x2Fetc\\x2Fpasswd')",
    "FROM query('FROM read_tex' || 't(''/etc/passwd'')')",
    "FROM (VALUES ('/etc/passwd')) AS t(f), LATERAL (FROM read_text(t.f))",
    "FROM parquet_kv_metadata('{home}/secret.csv')",
    "FROM sqlite_scan('{home}/other.duckdb', 'x')",
    "FROM delta_scan('{lake}/tables/offer')",
    "FROM read_csv('/dev/fd/0')",
    "FROM read_text('|id')",
    "FROM 'hf://datasets/x/y.csv'",
    "FROM '{home}/other.duckdb'",
    "FROM sql_auto_complete('SELECT * FROM ''/etc/')",
    "SELECT 1 -- " + "x" * 1_000_001,
]


def test_the_corpus_is_of_some_size():
    assert len(set(ATTEMPTS)) >= 50


def test_each_function_that_duckdb_marks_is_refused_or_known_to_be_harmless():
    """A version with a new one fails here: check what it does."""
    known = {"json_serialize_plan", "nextval", "pg_sleep", "setseed", "setval", "sleep_ms", "write_log"}
    with duckdb.connect() as session:
        found = functions_with_effects(session)
    assert found <= known
    assert known - found <= {"setval"}, "a version lacks it"


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda text: text[:60])
def test_an_attempt_to_do_more_is_refused_and_leaves_nothing(home, file, attempt, monkeypatch, tmp_path):
    monkeypatch.chdir(home)
    before = everything_in(home)
    with pytest.raises(InputError) as caught:
        asked_here(file, attempt.replace("{home}", str(home)).replace("{lake}", str(home / "lake")), tmp_path)
    assert SECRET not in str(caught.value)
    assert everything_in(home) == before


def test_a_deep_text_costs_nothing_but_itself(file, tmp_path):
    with contextlib.suppress(InputError):
        assert asked_here(file, "SELECT " + "(" * 5000 + "1" + ")" * 5000, tmp_path) == [(1,)]


def test_settings_of_the_session_are_out_of_reach(file):
    rows = ask(file, "SELECT name FROM duckdb_settings() WHERE value = 'false'")
    assert {("enable_external_access",), ("autoload_known_extensions",), ("autoinstall_known_extensions",)} < set(rows)


@pytest.mark.parametrize(
    "change",
    [
        "SET enable_external_access = true", "SET memory_limit = '100GB'", "SET temp_directory = '/tmp'",
        "SET TimeZone = 'Asia/Tokyo'", "SET threads = 64", "RESET memory_limit", "SET lock_configuration = false",
        "SET allowed_directories = ['/']",
    ],
)  # fmt: skip
def test_the_session_itself_refuses_other_settings(file, tmp_path, change):
    """Should a text get past the parser, nothing of the session can be loosened."""
    with locked_session(file, tmp_path, 500) as session:
        before = session.execute("FROM duckdb_settings() ORDER BY name").fetchall()
        with pytest.raises(duckdb.Error):
            session.execute(change)
        assert session.execute("FROM duckdb_settings() ORDER BY name").fetchall() == before


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("PIVOT (SELECT total % 2 AS odd, total FROM lake.offer) ON odd IN (0, 1) USING sum(total)", [(20, 25)]),
        ("FROM (SELECT total % 2 AS odd, total FROM lake.offer) PIVOT (sum(total) FOR odd IN (0, 1))", [(20, 25)]),
    ],
)
def test_a_pivot_of_named_values_is_answered(file, sql, rows):
    assert ask(file, sql) == rows


@pytest.mark.parametrize(
    "sql", ["PIVOT lake.offer ON total USING sum(total)", "WITH p AS (PIVOT lake.offer ON total USING count(*)) FROM p"]
)
def test_a_pivot_without_values_is_refused_with_the_way_out(file, sql):
    with pytest.raises(InputError, match="A PIVOT must name the values") as refused:
        ask(file, sql)
    assert "PIVOT t ON market IN ('DE', 'GB')" in refused.value.hint


_DOUBLED = "a{0} AS NOT MATERIALIZED (SELECT p.x FROM a{1} AS p, a{1} AS q)"
# None of these hears an interrupt in time, or ends by itself.
ENDLESS = [
    "WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM t) SELECT max(x) FROM t",
    "SELECT sum(a.range * b.range) FROM range(1000000) AS a, range(1000000) AS b, range(1000000)",
    "SELECT levenshtein(repeat('a', 300000), repeat('b', 300000))",
    f"WITH a0 AS (SELECT 1 AS x), {', '.join(_DOUBLED.format(n, n - 1) for n in range(1, 25))} FROM a24",  # noqa: S608 - ours
]


@pytest.mark.parametrize("sql", ENDLESS, ids=lambda text: text[:40])
def test_a_query_without_an_end_is_ended(file, sql):
    with pytest.raises(QueryStopped, match=r"more than 0\.5 seconds") as caught:
        ask(file, sql, Bounds(seconds=0.5, memory_mb=500))
    assert "NIGHTAUDIT_QUERY_SECONDS" in caught.value.hint


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT list_sum(range(1000000000))",
        "SELECT string_agg(repeat('x', 1000000), '') FROM range(3000)",
        "SELECT repeat('x', 100000000) FROM range(1000)",
    ],
)
def test_a_query_with_too_much_memory_is_ended(file, sql):
    with pytest.raises(QueryStopped, match="may use 200 MB") as caught:
        ask(file, sql, Bounds(seconds=60, memory_mb=200))
    assert "NIGHTAUDIT_QUERY_MEMORY_MB" in caught.value.hint


def test_rows_come_as_they_are_made_and_the_rest_is_given_up(file):
    with user_query(file, "SELECT range FROM range(100000000000)", FEW) as answer:
        assert answer.columns == ["range"]
        assert next(answer.rows()) == (0,)


@pytest.mark.parametrize("more", ["ORDER BY size_pct", "HAVING sum(cells) > 500"])
def test_sums_over_a_join_with_one_row_are_right(file, more):
    """DuckDB 2.0.0 takes the join to give a single row, and cuts sums of more to what that one could hold."""
    cells = "(SELECT size_pct, 's' AS sweep_id, 200::BIGINT AS cells FROM report.flag)"
    latest = "sweep_id = (SELECT max(sweep_id) FROM mart.sweep)"
    sql = f"SELECT size_pct, sum(cells)::BIGINT FROM {cells} WHERE {latest} GROUP BY size_pct {more}"  # noqa: S608 - ours
    assert sorted(ask(file, sql)) == [(0, 600), (1, 600), (2, 600)]


def test_values_come_through_as_duckdb_gives_them(file):
    sql = (
        "SELECT 1.5000::DECIMAL(18,4), 170141183460469231731687303715884105727::HUGEINT, 'nan'::DOUBLE::VARCHAR, "
        "TIMESTAMPTZ '2030-01-01 02:00:00+00', {'a': [1, NULL]}, MAP {'k': 1}, uuid()"
    )
    here = duckdb.connect()
    here.execute("SET TimeZone = 'UTC'")
    ((*ours, _),) = ask(file, sql)
    *theirs, _ = here.execute(sql).fetchone()
    assert ours == theirs
    assert (ours[0], type(ours[0])) == (Decimal("1.5000"), Decimal)


@pytest.mark.parametrize("read", ["read_parquet('{}')", "histogram('{}', x)", "histogram_values('{}', x)"])
def test_a_missing_file_of_the_users_is_no_damage_of_the_published_file(home, file, read):
    with pytest.raises(InputError, match=r"none\.parquet") as caught:
        ask(file, f"FROM {read.format(f'{home}/lake/raw/none.parquet')}")
    assert not isinstance(caught.value, CorruptObject)


def test_a_missing_file_of_a_view_is_damage(file, home):
    data = home / "lake" / "tables" / "offer" / "s" / "a.parquet"
    kept = data.read_bytes()
    data.unlink()
    try:
        with pytest.raises(CorruptObject, match="nightaudit publish"):
            ask(file, "FROM lake.gone")
    finally:
        data.write_bytes(kept)


def test_a_damaged_file_is_reported_as_such(tmp_path):
    file = tmp_path / "published" / "nightaudit.duckdb"
    file.parent.mkdir()
    file.write_bytes(b"damaged" * 1000)
    with pytest.raises(CorruptObject, match="cannot be read"):
        ask(file, "SELECT 1")


def test_nothing_is_asked_of_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="Nothing is published yet"):
        ask(tmp_path / "published" / "nightaudit.duckdb", "SELECT 1")


# Conditions of alert rules ----------------------------------------------------------------------------------------


def chosen(file, where):
    with user_query(file, Condition("report.flag", where, "flag_id"), FEW) as answer:
        return [row[0] for row in answer.rows()]


@pytest.mark.parametrize(
    ("where", "flags"),
    [
        ("true", list(range(9))),
        ("size_pct = 2 -- the largest", [2, 5, 8]),
        ("size_pct = 2 OR flag_id = 0", [0, 2, 5, 8]),
        ("flag_id IN (SELECT offers - 8 FROM mart.sweep)", [2]),
        ("flag_id = 1) AND (size_pct = 1", [1]),
    ],
)
def test_a_condition_chooses_rows(file, where, flags):
    assert chosen(file, where) == flags


@pytest.mark.parametrize(
    "where",
    [
        "false) UNION ALL (SELECT content, 1 FROM read_text('{home}/secret.txt')",
        "false UNION ALL SELECT content, 1 FROM read_text('{home}/secret.txt')",
        "flag_id IN (SELECT length(content) FROM read_text('{home}/secret.txt'))",
        "false) UNION ALL (SELECT 1, 2",
        "true) ORDER BY (flag_id",
        "true) GROUP BY ALL HAVING (true",
        "true) LIMIT (1",
        "true) QUALIFY (true",
        "true); COPY (SELECT 1) TO '{home}/evil.csv'; SELECT (1",
        "true) --",
        "true /*",
        "",
        "size_pct = ",
        "no_such_column = 1",
    ],
)
def test_what_is_more_than_a_condition_is_refused(home, file, where, tmp_path):
    before = everything_in(home)
    asked = {"relation": "report.flag", "where": where.replace("{home}", str(home)), "order": "flag_id"}
    with pytest.raises(InputError) as caught:
        asked_here(file, asked, tmp_path)
    assert SECRET not in str(caught.value)
    assert everything_in(home) == before


# The process ------------------------------------------------------------------------------------------------------

PARENT = """
import sys
from pathlib import Path
from pipeline.lake.user_query import Bounds, user_query
endless = "SELECT levenshtein(repeat('a', 3000000), repeat('b', 3000000))"
with user_query(Path(sys.argv[1]), endless, Bounds()) as answer:
    pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
def test_a_query_ends_with_the_process_that_asked_it(file):
    asking = subprocess.Popen([sys.executable, "-c", PARENT, str(file)])
    try:
        child = await_true(lambda: _children(asking.pid))
        asking.kill()
        asking.wait()
        await_true(lambda: not Path(f"/proc/{child[0]}").exists() or "Z" in _state(child[0]))
    finally:
        asking.kill()


@pytest.mark.parametrize("name", ["NIGHTAUDIT_CLIENT_SECRET", "AWS_SECRET_ACCESS_KEY"])
def test_a_query_sees_no_secret(file, monkeypatch, name):
    monkeypatch.setenv(name, SECRET)
    with user_query(file, "SELECT range FROM range(100000000000)", FEW):
        for pid in _children(os.getpid()):
            assert SECRET.encode() not in Path(f"/proc/{pid}/environ").read_bytes()


def _children(pid):
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"
