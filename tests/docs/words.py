"""Words that we do not use, and where prose is: in pages, comments, docstrings and texts, not in names of code."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

# Each with what to write instead.
WORDS = {
    "anew": "again, or: rebuild",
    "nobody": "name who it is about",
    "somebody": "name who it is about",
    "anybody": "name who it is about",
    "everybody": "name who it is about",
    "in vain": "failed",
    "mend": "fix, repair",
    "told": "reported, sent, stated, shown",
    "house": "property",
    "houses": "properties",
    "gravest": "most severe",
    "go on with": "continue, or: resume",
    "goes on with": "continues, or: resumes",
    "gone on with": "resumed",
    "upside down": "inverted",
    "is over": "is resolved, or: has ended",
    "are over": "are resolved, or: have ended",
    "stands no more": "is no longer open",
    "still stand": "are still open",
    "is as it was": "is unchanged",
    "are as they were": "are unchanged",
    "stay as they were": "stay unchanged",
    "all the same": "anyway",
    "whoever": "name who it is about",
    "cries": "alerts",
    "of itself": "on its own",
    "for want of": "because … ran out",
    "asked about": "requested, searched, re-queried",
    "held against": "compared with",
    "worked out": "computed",
    "looked at": "checked, examined",
    "told of": "described, reported",
    "said of": "said about, or: noted",
    "stands beside": "is next to, comes with",
    "stand beside": "are next to, come with",
    "stands apart": "deviates, is an outlier",
    "stand apart": "deviate, are outliers",
    "lie apart": "differ",
    "lies apart": "differs",
    "an own": "its own",
    "so many": "this many, or: at most N",
    "the nights before": "earlier nights",
    "nights to come": "later nights",
    "for ever": "forever",
    "any more": "no longer, any longer",
    "all in all": "in total",
    "go on": "continue",
    "goes on": "continues",
    "asked again": "requested again",
    "asks again": "requests again",
    "say of": "say about",
    "says of": "says about",
    "says nothing of": "says nothing about",
    "begun again": "restarted",
    "by the clock": "elapsed",
    "in the median": "median",
    "is away": "cannot be reached",
    "are away": "cannot be reached",
    "at odds": "differ, contradict",
    "exists already": "already exists",
    "is there already": "is already running, or: already exists",
    "moved alike": "moved in the same direction",
    "wait for a decision": "need a decision",
    "waits for a decision": "needs a decision",
    "begun already": "already started",
    "as it comes": "with default settings",
    "run it again": "run the command again",
    "build it again": "rebuild it",
    "nobody's": "name who it is about",
    "surely": "clearly",
    "not as written": "differs from what was written",
}
# Whole phrases with a word in between.
PATTERNS = {
    r"another \w+ than": "a different … from, or: a … other than",
    r"\d a (?:second|cell|request|offer)": "per",
}
_FOUND = re.compile(rf"\b({'|'.join([*map(re.escape, WORDS), *PATTERNS])})\b", re.IGNORECASE)


def instead(found: str) -> str:
    """Return what to write instead of an unwanted word."""
    return WORDS.get(found) or next(better for pattern, better in PATTERNS.items() if re.fullmatch(pattern, found))


_CODE = re.compile(r"`[^`\n]*`")


def unwanted(file: Path) -> Iterator[tuple[int, str]]:
    """Yield each unwanted word of a file with its line."""
    for line, written in _prose(file):
        # Code in a text is no prose.
        text = _CODE.sub(lambda code: " " * len(code[0]), written)
        for found in _FOUND.finditer(text):
            yield line + text.count("\n", 0, found.start()), found[1].lower()


def _prose(file: Path) -> Iterator[tuple[int, str]]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        yield from _of_python(text)
    elif file.suffix == ".sql":
        for number, line in enumerate(text.splitlines(), 1):
            if "--" in line:
                yield number, line.partition("--")[2]
    else:
        yield 1, text


def _of_python(text: str) -> Iterator[tuple[int, str]]:
    # Telling a comment from a text is slow, so it is done only if a line has such a word behind a #.
    if any(_FOUND.search(line.partition("#")[2]) for line in text.splitlines()):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        # One word alone is a key or a name, not prose.
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
