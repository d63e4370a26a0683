"""What a name that is not known was probably meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches

# More are no help.
_MOST = 3


def meant_by(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """Return the known names that `name` probably means, as `this` or `this or that`; empty: none is like it.

    They have all of its words (`url` and `base_url`, `market` and `markets`), or else it is spelled like one of them.
    """
    by_lower = {each.lower(): each for each in known}
    found = [each for each in by_lower if _words(name) <= _words(each)]
    if not found or len(found) > _MOST:
        found = get_close_matches(name.lower(), by_lower, n=1, cutoff=likeness)
    return " or ".join(by_lower[each] for each in found)


def _words(name: str) -> set[str]:
    """Return the words of a name, each in the singular: an `s` is easily forgotten."""
    return {word.removesuffix("s") for word in name.lower().split("_")}
