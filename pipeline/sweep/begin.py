"""The start of a sweep: its plan is recorded before the first search is sent."""

from collections.abc import Sequence
from datetime import datetime

import xxhash

from pipeline import __version__
from pipeline.domain.codes import CONTRACT_VERSION
from pipeline.domain.errors import InputError, LakeError
from pipeline.lake import Lake
from pipeline.lake.raw import Manifest, write_manifest
from pipeline.plan import PLAN_VERSION, SweepPlan
from pipeline.spec import SweepSpec


def begin(
    lake: Lake,
    spec: SweepSpec,
    property_ids: Sequence[int],
    *,
    now: datetime,
    supplier: str,
    is_simulated: bool,
    send_rate_type: bool = True,
    detail_ids: Sequence[int] | None = None,
) -> Manifest:
    """Write the manifest of a new sweep and return it.

    `now` (UTC) gives the sweep its id and the day that its lead days are counted from. Raises SpecError for check-ins
    that cannot be requested on that day, and InputError if there is nothing to request.
    """
    plan = SweepPlan.of(spec, property_ids, now.date(), detail_ids)
    cells = plan.counts().cells
    if not cells:
        raise InputError(
            "The spec selects no cells, so there is nothing to request.",
            kept="Nothing was started.",
            hint="Check its properties and horizons: nightaudit plan",
        )
    text = spec.canonical_json().decode()
    asked = f"{now.isoformat()} {text} {sorted(property_ids)}"
    manifest = Manifest(
        sweep_id=f"{now:%Y%m%dT%H%M%SZ}-{xxhash.xxh3_64_hexdigest(asked.encode())[:6]}",
        started_at=now,
        snapshot_date=now.date(),
        is_simulated=is_simulated,
        supplier=supplier,
        spec=text,
        property_ids=tuple(sorted(set(property_ids))),
        partitions=tuple(partition for partition in plan.partitions if partition.searches),
        cells=cells,
        send_rate_type=send_rate_type,
        plan_version=PLAN_VERSION,
        nightaudit_version=__version__,
        contract_version=CONTRACT_VERSION,
        detail_property_ids=None if detail_ids is None else tuple(sorted(set(detail_ids))),
    )
    if not write_manifest(lake, manifest):
        raise LakeError(
            f"The sweep {manifest.sweep_id} already exists.",
            kept="It is unchanged.",
            hint=f"Resume it: nightaudit resume {manifest.sweep_id}",
        )
    return manifest


def plan_of(manifest: Manifest) -> SweepPlan:
    """Return the plan that a manifest was made from. Raises LakeError if this version plans differently."""
    if manifest.plan_version != PLAN_VERSION:
        raise LakeError(
            f"The sweep {manifest.sweep_id} was planned by version {manifest.plan_version} of the planner; this is "
            f"version {PLAN_VERSION}, which numbers searches differently.",
            kept="Answers that have landed are kept.",
            hint=f"Finish it with nightaudit {manifest.nightaudit_version}, or abandon its remaining searches with "
            "that version: nightaudit resume --close",
        )
    spec = SweepSpec.from_canonical(manifest.spec)
    return SweepPlan.of(spec, manifest.property_ids, manifest.snapshot_date, manifest.detail_property_ids)
