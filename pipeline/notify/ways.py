"""Sending a message to a receiver: a subject and a text, by webhook or notification block."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import httpx

from pipeline.domain.errors import SettingsError

_TIMEOUT_SECONDS = 10.0

Tell = Callable[[str, str], None]
# By the name under which sent messages are remembered.
Ways = Mapping[str, Tell]


class NotDelivered(Exception):
    """Why a message did not arrive, in words that keep its address secret."""


def no_server(slug: str) -> SettingsError:
    """Return the refusal of a Prefect notification block where no Prefect server keeps it."""
    return SettingsError(
        f"The notification block {slug} needs a Prefect server, and none is configured (PREFECT_API_URL).",
        kept="Nothing was started.",
        hint="Start one (prefect server start), save the block there and set PREFECT_API_URL to its address. Or use a "
        "webhook instead of the block: NIGHTAUDIT_NOTIFY_WEBHOOK, or webhook_from of the receiver.",
    )


def through(block: Callable[[str], Tell] | None, slug: str) -> Tell:
    """Return the way through a notification block; `block` gives it, where a Prefect server is configured."""
    if block is None:
        raise no_server(slug)
    return block(slug)


def webhook(address: str) -> Tell:
    """Return a way to tell an address. `text` is what chat services show of the JSON. It raises NotDelivered."""

    # At INFO httpx logs each address, and this one holds a secret.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)

    def tell(subject: str, text: str) -> None:
        try:
            # Its status is all that is wanted: a body that drips would hold up the sender.
            with httpx.stream(
                "POST", address, json={"subject": subject, "text": f"{subject}\n{text}"}, timeout=_TIMEOUT_SECONDS
            ) as answer:
                status = answer.status_code
        except httpx.TimeoutException:
            raise NotDelivered(f"no answer within {_TIMEOUT_SECONDS:.0f} seconds") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise NotDelivered("its address is not a web address") from None
        except httpx.TransportError as error:
            raise NotDelivered(f"it could not be reached ({type(error).__name__})") from None
        if not httpx.codes.is_success(status):
            raise NotDelivered(f"it answered {status}")

    return tell
