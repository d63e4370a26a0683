"""The library that draws charts, used without the fonts of this machine.

It has its own fonts, with the widths of Arial. A font that is installed on the machine would be opened again for every
letter measured, which takes half of the time of a chart, and charts would depend on the machine.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import vl_convert

# Read by the library (fontconfig) when it first draws.
_VARIABLE: Final = "FONTCONFIG_FILE"
_NO_FONTS: Final = Path(__file__).with_name("no_fonts.conf")

# Characters of two units in UTF-16, such as emoji: the library cuts a long label between the two, and then fails.
_PAIRS: Final = re.compile("[\U00010000-\U0010ffff]")
# Characters of one unit that have no meaning of their own.
_STAND_INS: Final = range(0xE000, 0xF900)


def draw(spec: Mapping[str, Any]) -> str:
    """Return a chart in Vega-Lite as SVG."""
    text = json.dumps(spec, ensure_ascii=False)
    found = sorted(set(_PAIRS.findall(text)))
    if not found:
        return _drawn(dict(spec))
    free = (chr(code) for code in _STAND_INS if chr(code) not in text)
    stand_ins = dict(zip(found, free, strict=False))
    drawn = _drawn(json.loads(_PAIRS.sub(lambda each: stand_ins.get(each[0], "\ufffd"), text)))
    return drawn.translate({ord(each): character for character, each in stand_ins.items()})


def _drawn(spec: dict[str, Any]) -> str:
    with _no_fonts_of_the_machine():
        return vl_convert.vegalite_to_svg(spec)


def start() -> None:
    """Start the library, which takes as long as some charts."""
    draw({"mark": "point", "data": {"values": []}, "title": "none"})


@contextmanager
def _no_fonts_of_the_machine() -> Iterator[None]:
    # Only within: a browser that is started by this process needs them.
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = str(_NO_FONTS)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
