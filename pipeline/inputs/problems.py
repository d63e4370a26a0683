"""Mistakes in a user's file: each with its row, column and reason, reported in one error."""

from dataclasses import dataclass, field

from pipeline.domain.errors import InputError
from pipeline.domain.texts import shortened

# A file with a wrong date format has a fault in each row; the first ones are enough.
MOST_SHOWN = 20
# Characters of a name or reason, which may quote the file.
_LONGEST = 500


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault. `row` counts like a spreadsheet, with the header as row 1; 0: the complete file.

    `column` may name several, joined by commas; empty: the complete row.
    """

    row: int
    column: str
    reason: str

    def __str__(self) -> str:
        where = [f"row {self.row}"] if self.row else []
        named = shortened(self.column, _LONGEST)
        where += [f"{'columns' if ', ' in self.column else 'column'} {named}"] if named else []
        reason = shortened(self.reason, _LONGEST)
        return f"  {', '.join(where)}: {reason}" if where else f"  {reason}"


@dataclass(slots=True)
class Findings:
    """Collects the faults of one file. Only the first ones are kept; all are counted."""

    file_name: str
    faults: list[Fault] = field(default_factory=list)
    count: int = 0
    hint: str = "Correct the file, check it with --check, then load it again."

    def add(self, row: int, column: str, reason: str) -> None:
        """Add a fault of a row, or of the file (row 0)."""
        self.faults.append(Fault(row, column, reason))
        self.count += 1

    def count_unseen(self, more: int) -> None:
        """Count further faults like the added ones."""
        self.count += more

    def refuse_faults(self) -> None:
        """Raise InputError that lists the first faults, in the order of the file, if there are any."""
        if not self.count:
            return
        shown = sorted(self.faults)[:MOST_SHOWN]
        more = self.count - len(shown)
        lines = [str(fault) for fault in shown] + ([f"  … and {more:,} more"] if more else [])
        raise InputError(
            f"{self.file_name} cannot be loaded:\n" + "\n".join(lines),
            kept="Nothing was loaded.",
            hint=self.hint,
        )
