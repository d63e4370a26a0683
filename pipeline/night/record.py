"""Which steps of a night are done, recorded in the lake after each, so that the next run finishes the rest.

A sweep without a record was made by the single commands, or by a version that kept none.
"""

from __future__ import annotations

import msgspec

from pipeline.lake import Lake
from pipeline.lake.records import read_record

_FOLDER = "nights"
_HINT = "Remove this file; its night then counts as finished if it has been published."


def done_steps(lake: Lake, sweep_id: str) -> frozenset[str] | None:
    """Return the names of a night's finished steps; None: nothing was recorded."""
    try:
        return read_record(lake, _path(sweep_id), frozenset[str], kept="Nothing was started.", hint=_HINT)
    except FileNotFoundError:
        return None


def note_done(lake: Lake, sweep_id: str, step: str) -> None:
    """Record a finished step. The caller holds the lake's writer lock."""
    before = done_steps(lake, sweep_id) or frozenset()
    if step not in before:
        lake.put(_path(sweep_id), msgspec.json.encode(sorted(before | {step})))


def _path(sweep_id: str) -> str:
    return f"{_FOLDER}/{sweep_id}.json"
