"""Telling somebody outside: a subject and a text, by whatever way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import httpx

_TIMEOUT_SECONDS = 10.0

Tell = Callable[[str, str], None]
# By the name under which it is remembered what was told that way.
Ways = Mapping[str, Tell]


def webhook(address: str) -> Tell:
    """Return a way to tell an address. `text` is what chat services show of the JSON."""

    # At INFO httpx logs each address, and this one holds a secret.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)

    def tell(subject: str, text: str) -> None:
        answer = httpx.post(address, json={"subject": subject, "text": f"{subject}\n{text}"}, timeout=_TIMEOUT_SECONDS)
        answer.raise_for_status()

    return tell
