"""One raw answer or quote, printed from its address."""

from dataclasses import dataclass

from pipeline.domain.errors import InputError
from pipeline.lake import Lake
from pipeline.lake.pulled import refuse_pulled
from pipeline.lake.raw import read_manifest
from pipeline.lake.raw_answer import Evidence, evidence_at
from pipeline.lake.records import read_record
from pipeline.quote.ledger import Entry, entry_at, runs


@dataclass(frozen=True, slots=True)
class QuoteEvidence:
    """A quote as the ledger holds it."""

    address: str
    run_id: str
    entry: Entry


def evidence_of(lake: Lake, address: str) -> Evidence | QuoteEvidence:
    """Return what is at the raw address of a search or a quote. Raises what `evidence_at` raises,
    and InputError in a folder that was pulled.
    """
    refuse_pulled(lake.root)
    address = address.strip()
    if not address.startswith("quotes/"):
        return evidence_at(lake, address)
    found = entry_at(lake, address)
    if found is None:
        raise InputError(
            f"The ledger holds no quote at {address!r}.",
            hint='Find addresses in mart.quote_check: nightaudit query "SELECT raw_address FROM mart.quote_check"',
        )
    return QuoteEvidence(address, *found)


@dataclass(frozen=True, slots=True)
class _Run:
    is_simulated: bool


def is_simulated(lake: Lake, evidence: Evidence | QuoteEvidence) -> bool:
    """Whether the bundled sandbox gave an answer, not a supplier. Raises CorruptObject."""
    if isinstance(evidence, QuoteEvidence):
        return any(run.is_simulated for run in runs(lake) if run.run_id == evidence.run_id)
    record = lake.confirmation_path(evidence.sweep_id)
    if lake.exists(record):
        return read_record(lake, record, _Run, hint="Restore it from a backup.").is_simulated
    return read_manifest(lake, evidence.sweep_id).is_simulated
