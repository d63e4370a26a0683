"""What a demo leaves in its lake, so that later nights continue it: its spec, and the length of its story."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pipeline.lake import Lake
from pipeline.settings import Settings

_SPEC = "demo/sweep.toml"
_STORY = "demo/story.json"


class _Story(msgspec.Struct):
    nights: int


def mark_as_demo(lake: Lake, spec: str, nights: int) -> Path:
    """Write down that a lake is a demo's, and return the file of its spec."""
    lake.put(_SPEC, spec.encode())
    lake.put(_STORY, msgspec.json.encode(_Story(nights)))
    return lake.local(_SPEC)


def demo_spec(settings: Settings) -> Path | None:
    """Return the spec of a demo's lake; None for another lake, and where a supplier is set."""
    file = Lake(settings.lake).local(_SPEC)
    return file if settings.is_simulated and file.exists() else None


def story_nights(lake: Lake) -> int:
    """Return how many nights the story of the sandbox's world takes in this lake; 0: it has none."""
    try:
        return msgspec.json.decode(lake.get(_STORY), type=_Story).nights
    except FileNotFoundError:
        return 0
