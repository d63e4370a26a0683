"""JSON for programs: texts as they are, with control characters escaped, since a terminal may show them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from rich.console import Console

from pipeline.cli import doctor, plan, verify
from pipeline.domain.errors import CorruptObject
from pipeline.lake import Lake
from pipeline.night.damage import Damage
from pipeline.night.verify import Verified

NAME = "Hôtel Größe\u009b2J"
WRITTEN = "Hôtel Größe\\u009b2J"


@pytest.fixture(autouse=True)
def lake(tmp_path, monkeypatch):
    lake = Lake(str(tmp_path / "lake"))
    lake.put("any", b"")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NIGHTAUDIT_LAKE", str(lake.root))


def show_plan(monkeypatch):
    monkeypatch.setattr(plan, "look_ahead", lambda *_: SimpleNamespace())
    monkeypatch.setattr(plan, "as_record", lambda _: {"refusal": NAME})
    plan.show_plan(None, None, None, "json")


def show_damage(monkeypatch):
    found = Verified(1, 0, (Damage(NAME, "is missing", "nothing", "delete it"),))
    monkeypatch.setattr(verify, "verify", lambda *_, **__: found)
    with pytest.raises(CorruptObject):
        verify.verify_lake("json", is_deep=False)


def show_check(_):
    doctor._Examination(Console(), is_json=True).check("lake", lambda: NAME)


@pytest.mark.parametrize("show", [show_plan, show_damage, show_check])
def test_texts_beyond_ascii_are_kept_and_control_characters_escaped(show, monkeypatch, capsys):
    show(monkeypatch)
    (line,) = capsys.readouterr().out.splitlines()
    assert f'"{WRITTEN}"' in line
    assert json.dumps(NAME) in json.dumps(json.loads(line))
