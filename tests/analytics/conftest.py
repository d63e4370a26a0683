"""The planted worlds that findings are tested on, each made once, and lakes of them to damage."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted_world import MANY_STAYS, made

from pipeline.lake import Lake
from pipeline.publish.refresh import refresh
from pipeline.sandbox.server.launch import SandboxProcess

NIGHTS = (0, 18, 36)


def planted_sandbox() -> SandboxProcess:
    return SandboxProcess(seed=1, properties=400, plant_share=0.5, missing_share=0)


@pytest.fixture(scope="session")
def sandbox():
    """The sandbox of `world`, as it is on the last night of it."""
    with planted_sandbox() as process:
        yield process


@pytest.fixture(scope="session")
def world(sandbox, tmp_path_factory):
    """One stay over weeks."""
    return made(tmp_path_factory.mktemp("findings"), sandbox, NIGHTS, of_a_kind=2, plain=2)


@pytest.fixture(scope="session")
def year(tmp_path_factory):
    """Stays of a year, over as many days as a property needs to go quiet."""
    with planted_sandbox() as process:
        home = tmp_path_factory.mktemp("year")
        return made(home, process, (0, 2, 3, 4), of_a_kind=1, plain=2, questions=MANY_STAYS)


@pytest.fixture
def lake(world, tmp_path):
    """A lake of its own to damage, and to confirm in."""
    return copied(world.lake, tmp_path / "lake")


def copied(lake: Lake, root: Path) -> Lake:
    """A copy of a lake whose published file reads the copy."""
    shutil.copytree(lake.root, root)
    copy = Lake(str(root))
    refresh(copy)
    return copy
