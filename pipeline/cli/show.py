"""`nightaudit show`: the request and the answer behind a raw address."""

import json
import sys
from datetime import datetime

import msgspec
from rich.text import Text

from pipeline.cli.terminal import Terminal
from pipeline.domain.errors import CorruptObject
from pipeline.domain.texts import printable
from pipeline.lake import Lake
from pipeline.lake.raw_answer import Evidence
from pipeline.lake.simulated import SIMULATED
from pipeline.replay.evidence import QuoteEvidence, evidence_of, is_simulated
from pipeline.settings import read_settings
from pipeline.supplier.bodies import UnreadableBody, inflate


def show(address: str, *, body_only: bool) -> None:
    """Print what is at a raw address; with `body_only`, only the decompressed body, unchanged."""
    settings = read_settings()
    lake = Lake(settings.lake)
    evidence = evidence_of(lake, address)
    request, sent, encoding = _sent(evidence)
    body, fault = _inflated(sent, encoding, settings.max_body_bytes)
    if body_only:
        if fault:
            raise CorruptObject(
                f"The body at {address} cannot be decompressed: {fault}",
                kept="It is in the raw zone, unchanged.",
                hint="If it is only too large, raise NIGHTAUDIT_MAX_BODY_MB.",
            )
        # A file or a program gets the bytes; a terminal would interpret some of them.
        sys.stdout.buffer.write(printable(body.decode("utf-8", "replace")).encode() if sys.stdout.isatty() else body)
        sys.stdout.buffer.flush()
        return
    console = Terminal(soft_wrap=True, highlight=False)
    if is_simulated(lake, evidence):
        console.print(Text(SIMULATED, "yellow"))
    console.facts(_facts(evidence, sent, body, encoding))
    for label, text in (("Request", pretty(request)), ("Answer", pretty(body) if body else "(no body)")):
        # As Text, because it comes from the supplier and must not be read as markup.
        console.print(Text(f"\n{label}", "bold"))
        console.print(Text(text))


def as_document(evidence: Evidence | QuoteEvidence, max_body_bytes: int) -> dict[str, str]:
    """Return what is at a raw address as labels and texts, the request and the decompressed answer last."""
    request, sent, encoding = _sent(evidence)
    body, _ = _inflated(sent, encoding, max_body_bytes)
    facts = dict(_facts(evidence, sent, body, encoding))
    return facts | {"Request": request.decode("utf-8", "replace"), "Answer": body.decode("utf-8", "replace")}


def _facts(evidence: Evidence | QuoteEvidence, sent: bytes, body: bytes, encoding: str) -> list[tuple[str, str]]:
    size = f"{len(sent):,} bytes as sent ({encoding or 'plain'}), {len(body):,} decompressed"
    return _search_facts(evidence, size) if isinstance(evidence, Evidence) else _quote_facts(evidence, size)


def _inflated(sent: bytes, encoding: str, max_body_bytes: int) -> tuple[bytes, str]:
    """Return the decompressed body, or a replacement and the reason."""
    try:
        return inflate(sent, encoding, limit_bytes=max_body_bytes), ""
    except UnreadableBody as error:
        return f"({len(sent)} bytes that cannot be decompressed: {error})".encode(), str(error)


def _sent(evidence: Evidence | QuoteEvidence) -> tuple[bytes, bytes, str]:
    """Return the request, the body as received, and its encoding."""
    if isinstance(evidence, Evidence):
        return evidence.record.request, evidence.record.body, evidence.record.content_encoding
    answer = evidence.entry.answer
    request = evidence.entry.intent.request.encode()
    return (request, b"", "") if answer is None else (request, answer.body, answer.content_encoding)


def pretty(data: bytes) -> str:
    """Return JSON with line breaks, every number and text as it was sent; other bytes as text."""
    try:
        return msgspec.json.format(data, indent=2).decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return data.decode("utf-8", "replace")


def _quote_facts(evidence: QuoteEvidence, size: str) -> list[tuple[str, str]]:
    intent, answer = evidence.entry.intent, evidence.entry.answer
    facts = [
        ("Address", evidence.address),
        ("Quote", f"{intent.quote_no} of the run {evidence.run_id}"),
        ("Offer", f"search {intent.offer.search_id} of the sweep {intent.offer.sweep_id}"),
        ("Intended", intent.intended_at.isoformat()),
    ]
    if answer is None:
        return [*facts, ("Status", "unknown: no answer was recorded; a reservation may have been made")]
    facts += [
        ("Status", "none" if answer.http_status is None else str(answer.http_status)),
        ("Started", _started(answer.started_at, answer.ended_at)),
        ("Reservation", "none stated" if answer.reservation_id is None else str(answer.reservation_id)),
        ("Body", size),
    ]
    if answer.failure:
        facts.append(("Failure", ": ".join(part for part in (answer.failure, answer.failure_detail) if part)))
    return facts


def _started(start: datetime, end: datetime) -> str:
    return f"{start.isoformat()}, {round((end - start).total_seconds() * 1000)} ms"


def _search_facts(evidence: Evidence, size: str) -> list[tuple[str, str]]:
    record = evidence.record
    status = "none" if record.http_status is None else str(record.http_status)
    if record.is_split:
        status += ", and the batch was split in two"
    facts = [
        ("Address", evidence.address),
        ("Sweep", evidence.sweep_id),
        ("Search", str(record.search_id)),
        ("Status", status),
        ("Started", f"{_started(record.started_at, record.ended_at)}, attempt {record.attempts}"),
        ("Headers", _headers(record.headers)),
        ("Body", size),
    ]
    if record.failure:
        facts.append(("Failure", ": ".join(part for part in (record.failure, record.failure_detail) if part)))
    if evidence.body_sha256:
        checked = "matches lake.search" if evidence.is_loaded else "not loaded yet"
        facts.append(("SHA-256", f"{evidence.body_sha256} ({checked})"))
    return facts


def _headers(text: str) -> str:
    try:
        held = json.loads(text)
    except ValueError:
        return text
    return ", ".join(f"{name}: {value}" for name, value in held.items()) if isinstance(held, dict) else text
