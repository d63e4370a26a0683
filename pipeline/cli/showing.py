"""`nightaudit show`: the request and the answer behind a raw address."""

from __future__ import annotations

import json
import sys

import msgspec
from rich.console import Console
from rich.text import Text

from pipeline.domain.errors import CorruptObject
from pipeline.evidence import Evidence, evidence_at
from pipeline.lake import Lake
from pipeline.settings import read_settings
from pipeline.supplier.bodies import UnreadableBody, inflate


def show(address: str, *, body_only: bool) -> None:
    """Print what lies at a raw address; `body_only` writes the inflated body to the output as it is."""
    settings = read_settings()
    evidence = evidence_at(Lake(settings.lake), address)
    record = evidence.record
    try:
        body = inflate(record.body, record.content_encoding, limit_bytes=settings.max_body_mb * 1_000_000)
    except UnreadableBody as error:
        if body_only:
            raise CorruptObject(
                f"The body at {address} cannot be inflated: {error}",
                kept="It lies in the raw zone as it came.",
                hint="A larger NIGHTAUDIT_MAX_BODY_MB helps where it is only too large.",
            ) from None
        body = f"({len(record.body)} bytes that cannot be inflated: {error})".encode()
    if body_only:
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()
        return
    console = Console(soft_wrap=True, highlight=False)
    for label, told in _facts(evidence, len(body)):
        console.print(Text.assemble((f"{label}: ", "bold"), told))
    for label, text in (("Request", pretty(record.request)), ("Answer", pretty(body) if body else "(no body)")):
        # Texts come from the supplier: nothing in them is markup of ours.
        console.print(Text(f"\n{label}", "bold"))
        console.print(Text(text))


def pretty(data: bytes) -> str:
    """Return JSON with line breaks, every number and text as it was sent; other bytes as text."""
    try:
        text = msgspec.json.format(data, indent=2).decode()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        text = data.decode("utf-8", "replace")
    # A terminal obeys control characters; a reader should see them.
    return "".join(mark if mark.isprintable() or mark == "\n" else repr(mark)[1:-1] for mark in text)


def _facts(evidence: Evidence, body_bytes: int) -> list[tuple[str, str]]:
    record = evidence.record
    took = round((record.ended_at - record.started_at).total_seconds() * 1000)
    status = "none" if record.http_status is None else str(record.http_status)
    if record.is_split:
        status += ", and the batch was split in halves"
    facts = [
        ("Address", evidence.address),
        ("Sweep", evidence.sweep_id),
        ("Search", str(record.search_id)),
        ("Status", status),
        ("Started", f"{record.started_at.isoformat()}, {took} ms, attempt {record.attempts}"),
        ("Headers", _headers(record.headers)),
        ("Body", f"{len(record.body):,} bytes as sent ({record.content_encoding or 'plain'}), {body_bytes:,} inflated"),
    ]
    if record.failure:
        facts.append(("Failure", ": ".join(part for part in (record.failure, record.failure_detail) if part)))
    if evidence.body_sha256:
        checked = "the same as in lake.search" if evidence.is_loaded else "not loaded yet"
        facts.append(("SHA-256", f"{evidence.body_sha256} ({checked})"))
    return facts


def _headers(text: str) -> str:
    try:
        held = json.loads(text)
    except ValueError:
        return text
    return ", ".join(f"{name}: {value}" for name, value in held.items()) if isinstance(held, dict) else text
