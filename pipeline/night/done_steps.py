"""The finished steps of a night, recorded in the lake after each, and the command that continues with the next one.

A sweep without a record was made by single commands, or by a version that kept none.
"""

import msgspec

from pipeline.domain.errors import LakeError
from pipeline.lake import Lake
from pipeline.lake.records import read_record
from pipeline.night.latest import is_published

_LAST_STEPS = frozenset({"report", "alert"})
_FOLDER = "nights"
_HINT = "Remove this file; its night then counts as finished if it has been published."


def done_steps(lake: Lake, sweep_id: str) -> frozenset[str] | None:
    """Return the names of a night's finished steps; None: nothing was recorded."""
    try:
        return read_record(lake, _path(sweep_id), frozenset[str], kept="Nothing was started.", hint=_HINT)
    except FileNotFoundError:
        return None


def note_done(lake: Lake, sweep_id: str, step: str) -> None:
    """Record a finished step, and commit it to a lake on S3. The caller holds the lake's writer lock."""
    before = done_steps(lake, sweep_id) or frozenset()
    if step not in before:
        lake.put(_path(sweep_id), msgspec.json.encode(sorted(before | {step})))
    lake.commit()


def command_to_go_on(lake: Lake, sweep_id: str) -> str:
    """Return the command that continues with a loaded sweep; empty: no step is missing, or that cannot be read.

    A line about the verdict follows if the audit has blocked the sweep.
    """
    try:
        done = done_steps(lake, sweep_id)
        if is_published(lake, sweep_id):
            return "" if done is None or done >= _LAST_STEPS else "nightaudit nightly"
        # A slow import.
        from pipeline.audit import stored_audit

        verdict = stored_audit(lake, sweep_id)
    except LakeError:
        return ""
    if verdict is not None and not verdict.is_passed:
        said = "The audit blocked it. For new answers: nightaudit sweep"
        return f'nightaudit publish {sweep_id} --override "reason"\n{said}'
    if done is not None:
        return "nightaudit nightly"
    return f"nightaudit {'audit' if verdict is None else 'publish'} {sweep_id}"


def _path(sweep_id: str) -> str:
    return f"{_FOLDER}/{sweep_id}.json"
