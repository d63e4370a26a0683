"""Telling somebody outside: a subject and a text, by whatever way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import httpx

_TIMEOUT_SECONDS = 10.0

Tell = Callable[[str, str], None]
# By the name under which it is remembered what was told that way.
Ways = Mapping[str, Tell]


class NotDelivered(Exception):
    """Why a message did not arrive, in words that keep its address secret."""


def webhook(address: str) -> Tell:
    """Return a way to tell an address. `text` is what chat services show of the JSON. It raises NotDelivered."""

    # At INFO httpx logs each address, and this one holds a secret.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)

    def tell(subject: str, text: str) -> None:
        try:
            # Its status is all that is wanted: a body that drips would hold up whoever tells.
            with httpx.stream(
                "POST", address, json={"subject": subject, "text": f"{subject}\n{text}"}, timeout=_TIMEOUT_SECONDS
            ) as answer:
                status = answer.status_code
        except httpx.TimeoutException:
            raise NotDelivered(f"no answer within {_TIMEOUT_SECONDS:.0f} seconds") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise NotDelivered("its address is not one of the web") from None
        except httpx.TransportError as error:
            raise NotDelivered(f"it could not be reached ({type(error).__name__})") from None
        if not httpx.codes.is_success(status):
            raise NotDelivered(f"it answered {status}")

    return tell
