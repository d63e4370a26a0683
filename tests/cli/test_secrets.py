"""No secret of the environment is in what `pull`, `export` and `mcp` write or print, in their errors neither."""

from __future__ import annotations

import asyncio
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from mcp import Client
from nights import load_night, started_at

from pipeline.cli.mcp import server
from pipeline.lake import Lake
from pipeline.publish import publish
from pipeline.settings import read_settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SECRETS = {
    "NIGHTAUDIT_CLIENT_SECRET": "{}-of-the-client",
    "NIGHTAUDIT_RATE_STORE": "rediss://user:{}-of-the-store@redis.example:6379/0",
    "NIGHTAUDIT_NOTIFY_WEBHOOK": "https://chat.example/{}-of-a-webhook",
    "NIGHTAUDIT_PUBLISHED_WEBHOOK": "https://chat.example/{}-of-another",
    "NIGHTAUDIT_NOTIFY_MAIL": "smtps://u:{}-of-mail@mail.example/?from=a@mail.example&to=b@mail.example",
    "DESK_WEBHOOK": "https://chat.example/{}-of-a-receiver",
    "DESK_MAIL": "smtps://u:{}-of-a-mailbox@mail.example/?from=a@mail.example&to=b@mail.example",
    "AWS_ACCESS_KEY_ID": "{}-key-id",
    "AWS_SECRET_ACCESS_KEY": "{}-key",
    "AWS_SESSION_TOKEN": "{}-session",
}
SECRET = "a-s3cret-4711"
GIVEN = {name: value.format(SECRET) for name, value in SECRETS.items()} | {
    "NIGHTAUDIT_BASE_URL": "https://supplier.example",
    "NIGHTAUDIT_CLIENT_ID": "a-client",
    "AWS_ALLOW_HTTP": "true",
    "AWS_REGION": "eu-north-1",
}


@pytest.fixture
def echo():
    """A store that refuses each request and repeats what it was sent, the key's id and the session's token included."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            said = f"<Error><Message>{self.path} {dict(self.headers)}</Message></Error>"
            self.send_response(403)
            self.end_headers()
            self.wfile.write(said.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as store:
        threading.Thread(target=store.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{store.server_port}"
        store.shutdown()


@pytest.fixture
def run(nightaudit, tmp_path, echo):
    def run(*arguments):
        done = nightaudit(tmp_path, *arguments, **GIVEN, NIGHTAUDIT_LAKE="lake", AWS_ENDPOINT_URL=echo)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture
def lake(tmp_path):
    """A night with an offer, so that there are files to pull."""
    made = Lake(str(tmp_path / "lake"))
    stay = {"property_id": 1, "check_in": started_at(60).date()}
    publish(made, load_night(made, 0, cell=[stay | {"offers": 1}], offer=[stay | {"total": 100}]), started_at(0))
    return made


def held_below(folder):
    return {str(place): place.read_bytes() for place in folder.rglob("*") if place.is_file()}


def test_what_is_pulled_and_exported_and_what_is_said_about_it_holds_no_secret(run, lake, tmp_path):
    said = [run("pull", "lake", "pulled"), run("export", "all.duckdb")]
    assert [code for code, _ in said] == [0, 0], said
    damaged = next((lake.root / "state").rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    shutil.rmtree(tmp_path / "pulled" / "state")
    refused = [
        run("pull", "lake", "pulled"),
        run("pull", "s3://bucket/lake", "new"),
        run("pull", f"s3://{SECRET}:{SECRET}@bucket/lake", "new"),
        run("pull", f"S3://{SECRET}:{SECRET}@bucket/lake", "new"),
        run("pull", f"https://user:{SECRET}@shop.example/lake", "new"),
        run("pull", f"//user:{SECRET}@shop.example/lake", "new"),
        run("pull", f"s3:/user:{SECRET}@bucket/lake", "new"),
        run("pull", f"bucket.s3.amazonaws.com/lake?X-Amz-Security-Token={SECRET}", "new"),
        run("pull", f"s3://bucket/p,secret_key={SECRET}", "new"),
        run("pull", f"https://shop.example/{SECRET}", "new"),
        run("export", "all.duckdb"),
        run("export", "damaged.duckdb"),
        run("export", "none.duckdb", "--property", "999999"),
        run("export", "missing/none.duckdb"),
    ]
    assert 0 not in [code for code, _ in refused]
    assert [text for _, text in [*said, *refused] if SECRET in text or "Traceback" in text] == []
    held = held_below(tmp_path)
    assert len(held) > 10
    assert [name for name, data in held.items() if SECRET.encode() in data] == []


def test_an_assistant_is_shown_no_secret(lake, monkeypatch):
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    settings = read_settings(lake=str(lake.root))
    queries = [
        "FROM duckdb_settings()",
        "FROM duckdb_secrets()",
        "SELECT getenv('NIGHTAUDIT_CLIENT_SECRET')",
        "FROM read_text('/proc/self/environ')",
        "FROM read_text('.env')",
        "FROM read_csv('s3://bucket/lake/x.csv')",
        "SELECT current_setting('s3_secret_access_key')",
        "SELECT",
    ]
    calls = [("query", {"sql": sql}) for sql in queries]
    calls += [("relations", {}), ("explain", {"flag_id": "0"}), ("evidence", {"raw_address": "raw/../../.env#1"})]

    async def ask():
        async with Client(server(settings)) as client:
            return [await client.call_tool(*call) for call in calls]

    said = ["".join(part.text for part in answer.content) for answer in asyncio.run(ask())]
    assert len(said) == len(calls)
    assert [text for text in said if SECRET in text] == []
