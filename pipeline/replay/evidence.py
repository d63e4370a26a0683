"""One raw answer or quote, printed from its address."""

from dataclasses import dataclass

from pipeline.domain.errors import InputError
from pipeline.lake import Lake
from pipeline.lake.raw_answer import Evidence, evidence_at
from pipeline.quote.ledger import Entry, entry_at


@dataclass(frozen=True, slots=True)
class QuoteEvidence:
    """A quote as the ledger holds it."""

    address: str
    run_id: str
    entry: Entry


def evidence_of(lake: Lake, address: str) -> Evidence | QuoteEvidence:
    """Return what is at the raw address of a search or a quote. Raises what `evidence_at` raises."""
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
