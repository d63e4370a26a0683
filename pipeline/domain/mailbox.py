"""Where e-mail goes: the server that takes a message, its sender and its recipients, as one address says them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

FORM: Final = "smtps://USER:PASSWORD@HOST/?from=ADDRESS&to=ADDRESS,ADDRESS"
# Of `smtps`, where TLS comes first, and of `smtp`, where the server is asked for it.
_PORTS: Final = {"smtps": 465, "smtp": 587}


@dataclass(frozen=True, slots=True)
class Mailbox:
    """Which server takes a message, from whom and for whom."""

    is_tls: bool
    host: str
    port: int
    user: str | None
    password: str = field(repr=False)
    sender: str
    to: tuple[str, ...]


def mailbox_of(address: str) -> Mailbox:
    """Return what an address such as FORM says. Raises ValueError, which repeats no password, where it is none.

    Blanks and signs in user and password are written as %20 and so on.
    """
    try:
        parsed = urlsplit(address.strip())
        said, port = parse_qs(parsed.query, strict_parsing=True), parsed.port
        (sender,) = said.pop("from", [])
    except ValueError:
        raise _not_an_address() from None
    to = tuple(each.strip() for part in said.pop("to", []) for each in part.split(",") if each.strip())
    is_known = parsed.scheme in _PORTS and parsed.hostname and parsed.path in ("", "/") and not parsed.fragment
    if said or not is_known or not to or not all(map(_is_mail_address, (sender, *to))):
        raise _not_an_address()
    return Mailbox(
        parsed.scheme == "smtps",
        str(parsed.hostname),
        port or _PORTS[parsed.scheme],
        unquote(parsed.username) if parsed.username is not None else None,
        unquote(parsed.password or ""),
        sender,
        to,
    )


def _not_an_address() -> ValueError:
    return ValueError(f"an e-mail address must be of the form {FORM}")


def _is_mail_address(text: str) -> bool:
    name, _, domain = text.rpartition("@")
    return bool(name and domain) and text.isprintable() and not set(text) & set(' <>,;"')
