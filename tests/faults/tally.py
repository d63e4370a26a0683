"""The results of the tries of one fault: a line of the table."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from faults.lab import SEARCHES, Lab
from faults.warm import Ended

_ENDINGS = {
    0: "done", 1: "failed", 2: "refused", 3: "gate blocked", 4: "too many failed cells", 5: "busy", 6: "no space",
    -9: "killed", 130: "stopped", 143: "stopped",
}  # fmt: skip
_LONGEST = 400
# No message at all: what Python and asyncio print where an error was left to them.
_LEAKED = re.compile(r"^Traceback|never retrieved|leaked|It hung\.", re.MULTILINE)


@dataclass
class Tally:
    """Tries of one fault. `lost` and `doubled` are rows and files; `asked_twice` are searches that had landed.

    `broken` says what went on wrongly after the fault; a suite with any of it fails. `said` is a line for each command
    that something befell: how it ended, and what it said for that.
    """

    fault: str
    tries: int = 0
    happened: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    doubled: int = 0
    peak_mb: float = 0
    broken: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __iadd__(self, other: Tally) -> Tally:
        self.tries += other.tries
        self.happened += other.happened
        self.lost += other.lost
        self.doubled += other.doubled
        self.peak_mb = max(self.peak_mb, other.peak_mb)
        self.broken += other.broken
        self.said += other.said
        return self

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, doubled or left broken."""
        return not (self.lost or self.doubled or self.broken)

    def note(self, ended: Ended, what: str) -> None:
        """Count how a command ended. A traceback, or a warning that a library adds, is no message."""
        self.peak_mb = max(self.peak_mb, ended.peak_mb)
        self.happened[ending(ended)] += 1
        # Message, what was kept, and what to do next.
        last = " / ".join(ended.said.strip().splitlines()[-3:]) if ended.code > 0 else ""
        self.said.append(f"{what}: {ending(ended)}{last and f' ({last[-_LONGEST:]})'}")
        if leaks := _LEAKED.search(ended.said):
            self.broken.append(f"{self.fault}, {what}: {leaks[0]}: {ended.said[-3000:]}")

    def compare(self, lab: Lab, step: str, what: str) -> None:
        """Count what the lake lacks and what it has in excess, compared with the undisturbed night after a step."""
        found, wanted = lab.held(step), lab.undisturbed[step]
        for name, counts in (("lost", wanted.lost(found)), ("doubled", wanted.doubled(found))):
            if counts:
                setattr(self, name, getattr(self, name) + sum(counts.values()))
                self.broken.append(f"{self.fault}, {what}: {name} {counts}")


def ending(ended: Ended) -> str:
    """Return in a word or two how a command ended. A traceback is no message."""
    said = _ENDINGS.get(ended.code, f"code {ended.code}")
    if "It hung." in ended.said:
        said = "hung"
    if re.search(r"^Traceback", ended.said, re.MULTILINE):
        said += " with a traceback"
    return said


def disturb(tally: Tally, lab: Lab, step: str, what: str, **befalls: object) -> None:
    """Inject a fault into a step of the second night, run the step again to its end, and count the differences."""
    lab.back_to(lab.before(step))
    for ended in lab.run(*lab.argv(step), **befalls):
        tally.note(ended, what)
    tally.tries += 1
    go_on(tally, lab, step, what)


def go_on(tally: Tally, lab: Lab, step: str, what: str) -> None:
    """Run a step to its end, undisturbed, and count the differences."""
    landed, served = lab.landed(), lab.served()
    (ended,) = lab.run(*lab.argv(step))
    if ended.code:
        tally.broken.append(f"{tally.fault}, {what}: run again, it ended with {ended.code}: {ended.said[-1500:]}")
        return
    wanted = SEARCHES - landed if step == "sweep" else 0
    if lab.served() - served > wanted:
        tally.doubled += lab.served() - served - wanted
        tally.broken.append(f"{tally.fault}, {what}: {lab.served() - served - wanted} searches were asked twice")
    tally.compare(lab, step, what)
