"""The library that draws charts, without the fonts of the machine."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markupsafe import escape

from pipeline.process.draw import draw
from pipeline.report import charts
from pipeline.report.charts import Drawing, begun, here

_SPEC = {
    "data": {"values": [{"day": "one", "share": 1}]},
    "mark": "bar",
    "encoding": {"x": {"field": "day", "type": "nominal"}, "y": {"field": "share", "type": "quantitative"}},
    "config": {"font": "Arial, sans-serif"},
}


@pytest.mark.parametrize("before", [None, "/etc/fonts/fonts.conf"])
def test_fonts_are_hidden_from_the_drawing_library_alone(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if before is None:
        monkeypatch.delenv("FONTCONFIG_FILE", raising=False)
    else:
        monkeypatch.setenv("FONTCONFIG_FILE", before)
    assert "one" in draw(_SPEC)
    assert os.environ.get("FONTCONFIG_FILE") == before


def test_a_chart_is_the_same_where_its_machine_has_other_fonts(tmp_path: Path) -> None:
    """Drawn in a process of its own, whose machine claims to have no fonts: they are read once a process."""
    none = tmp_path / "fonts.conf"
    none.write_text("<fontconfig><dir>/nonexistent</dir></fontconfig>")
    script = f"from pipeline.process.draw import draw; print(draw({_SPEC!r}), end='')"
    there = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"FONTCONFIG_FILE": str(none)},
    )
    assert there.stdout == draw(_SPEC)


@pytest.mark.parametrize("limit", range(60, 100, 3))
def test_a_label_that_is_cut_may_have_any_characters(limit: int) -> None:
    """Wherever the label is cut, between the two units of a character too."""
    names = ["\U0001f3e8" * 15, "Hotel \U00020bb7 Sonne \U0001f3e8", "\ue000 \U0010ffff " * 9]
    spec = _SPEC | {
        "data": {"values": [{"day": name, "share": 1} for name in names]},
        "encoding": {"y": {"field": "day", "type": "nominal"}, "x": {"field": "share", "type": "quantitative"}},
        "config": {"font": "Arial, sans-serif", "axis": {"labelLimit": limit}},
    }
    drawn = draw(spec)
    assert all(character in drawn for character in ("\U0001f3e8", "\U00020bb7", "\ue000", "\U0010ffff"))
    assert len(set(re.findall("[\ue000-\uf8ff]", drawn))) == 1


def test_a_chart_that_is_shown_twice_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(charts, "draw", lambda spec: drawn.append(spec["mark"]) or draw(spec))
    (chart,) = begun([Drawing(_SPEC, None, "Shares")], here)
    assert drawn == []
    assert escape(chart) == escape(chart)
    assert drawn == ["bar"]
