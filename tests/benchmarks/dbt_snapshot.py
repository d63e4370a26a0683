"""The peer of our history: `dbt snapshot` of the same offers, in an environment of its own under `bench/dbt`.

The check strategy over what counts as a change, with offers that are gone closed, as our history has it. The key is a
hash of what makes an offer the same, as dbt's own macros make one. It keeps the history and nothing else.
"""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

from benchmarks.measuring import Cost, cost_of_command

from pipeline.domain.texts import literal

_HOME = Path(__file__).parents[2] / "bench" / "dbt"
_WANTED = ("dbt-core>=1.9,<1.11", "dbt-duckdb<1.11")
_KEY = (
    *("source", "property_id", "market", "product_type", "check_in", "nights", "party", "currency_asked"),
    *("room_stay_id", "room_id", "board_id", "policy_key", "currency"),
)
_VALUES = ("total", "pre_promo_total", "discount_pct", "floor", "available_rooms", "promotion_key")
_PROJECT = """
name: peer
version: "1.0"
profile: peer
snapshot-paths: [snapshots]
flags: {send_anonymous_usage_stats: false, use_colors: false}
"""
_PROFILE = """
peer:
  target: peer
  outputs: {{peer: {{type: duckdb, path: {database}, threads: 2, settings: {{temp_directory: {scratch}}}}}}}
"""
_SNAPSHOT = """
{{% snapshot offer_history %}}
{{{{ config(target_schema="history", unique_key="offer_key", strategy="check", check_cols={values},
            hard_deletes="invalidate") }}}}
SELECT md5(concat_ws('|', {key})) AS offer_key, * FROM read_parquet({{{{ "'" ~ var("night") ~ "/*.parquet'" }}}})
{{% endsnapshot %}}
"""


def is_installed() -> bool:
    """Whether the environment has been made."""
    return (_HOME / "bin" / "dbt").exists()


def install() -> str | None:
    """Make the environment, once; return why it is not available."""
    if is_installed():
        return None
    venv.create(_HOME, clear=True, with_pip=True)
    command = [_HOME / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *_WANTED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stderr.strip().splitlines() or [""]
    return f"dbt cannot be installed: {said[-1]}" if done.returncode else None


class Snapshots:
    """A project of one snapshot in a folder of its own, to be taken night by night."""

    def __init__(self, folder: Path) -> None:
        (folder / "snapshots").mkdir(parents=True)
        self._folder = folder
        database = {"database": folder / "peer.duckdb", "scratch": folder / "scratch"}
        key = ", ".join(f"coalesce({name}::VARCHAR, '~')" for name in _KEY)
        for name, text in (
            ("dbt_project.yml", _PROJECT),
            ("profiles.yml", _PROFILE.format(**database)),
            ("snapshots/offer_history.sql", _SNAPSHOT.format(key=key, values=list(_VALUES))),
        ):
            (folder / name).write_text(text, encoding="utf-8")

    def take(self, night: Path, offers: float) -> Cost:
        """Take a snapshot of the offers in this folder, from the start of dbt to its end."""
        environment = os.environ | {"DO_NOT_TRACK": "1", "DBT_PROFILES_DIR": str(self._folder)}
        command = [_HOME / "bin" / "dbt", "snapshot", "--project-dir", self._folder, "--vars", f"{{night: '{night}'}}"]
        return cost_of_command([str(word) for word in command], environment, offers)

    def rows(self) -> int:
        """How many rows the history has."""
        import duckdb

        with duckdb.connect(":memory:") as session:
            session.execute(f"ATTACH {literal(str(self._folder / 'peer.duckdb'))} AS peer (READ_ONLY)")
            return session.execute("SELECT count(*) FROM peer.history.offer_history").fetchall()[0][0]
