"""Addresses of servers other than the supplier's: the rate store, the cluster, the mail server.

An address may contain a password, so messages quote only its host and port.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, parse_qsl, unquote, urlsplit

from pipeline.domain.addresses import is_encrypted, is_host

_STORE_SCHEMES = frozenset({"redis", "rediss", "unix"})
# The store's client reads every connection argument from the query, including the host and whether TLS is verified.
_STORE_QUERY = frozenset({"db", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})


def store_address(text: str) -> str:
    """Return a store's address in its one spelling. Raises ValueError, which quotes no part of it, if it is none."""
    stripped = text.strip()
    msg = "it is not an address like rediss://store.example.com:6379/0"
    if not stripped.isprintable() or " " in stripped:
        raise ValueError(msg)
    try:
        parsed = urlsplit(stripped)
        host, port = (parsed.hostname or "").rstrip("."), parsed.port
        query = parse_qsl(parsed.query, keep_blank_values=True, strict_parsing=bool(parsed.query))
    except ValueError:
        raise ValueError(msg) from None
    is_socket = parsed.scheme == "unix"
    number = parsed.path.strip("/")
    is_place = parsed.path.startswith("/") and len(parsed.path) > 1 if is_socket else not number or number.isdecimal()
    is_named = not host if is_socket else is_host(host)
    if parsed.scheme not in _STORE_SCHEMES or not is_named or not is_place or parsed.fragment:
        raise ValueError(msg)
    if {name for name, _ in query} - _STORE_QUERY:
        raise ValueError(
            f"its query (?) may name only {', '.join(sorted(_STORE_QUERY))}: the host comes before it, and "
            "certificates are always verified"
        )
    user, mark, _ = parsed.netloc.rpartition("@")
    written = f"[{host}]" if ":" in host else host
    authority = f"{user}{mark}{written}{'' if port is None else f':{port}'}"
    return parsed._replace(netloc=authority).geturl()


def place_of_store(address: str) -> str:
    """Return the host and port, or the socket, of a store's address in its one spelling, which are not secret."""
    parsed = urlsplit(address)
    return parsed.netloc.rpartition("@")[2] or parsed.path


FORM: Final = "smtps://USER:PASSWORD@HOST/?from=ADDRESS&to=ADDRESS,ADDRESS"
# `smtps` starts with TLS; `smtp` switches to it with STARTTLS.
_MAIL_PORTS: Final = {"smtps": 465, "smtp": 587}


@dataclass(frozen=True, slots=True)
class Mailbox:
    """Mail server, sender and receivers of a message."""

    is_tls: bool
    host: str
    port: int
    user: str | None
    password: str = field(repr=False)
    sender: str
    to: tuple[str, ...]


def mailbox_of(address: str) -> Mailbox:
    """Return the parts of an address like FORM. Raises ValueError, which quotes no password, for any other text.

    User and password are percent-encoded.
    """
    try:
        parsed = urlsplit(address.strip())
        said, port = parse_qs(parsed.query, strict_parsing=True), parsed.port
        (sender,) = said.pop("from", [])
    except ValueError:
        raise _not_an_address() from None
    to = tuple(each.strip() for part in said.pop("to", []) for each in part.split(",") if each.strip())
    is_plain = parsed.path in ("", "/") and not parsed.fragment
    is_known = parsed.scheme in _MAIL_PORTS and is_host(parsed.hostname or "") and is_plain
    if said or not is_known or not to or not all(map(_is_mail_address, (sender, *to))):
        raise _not_an_address()
    return Mailbox(
        parsed.scheme == "smtps",
        str(parsed.hostname),
        port or _MAIL_PORTS[parsed.scheme],
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


_CLUSTER_SCHEMES = frozenset({"tcp", "tls"})


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Dask cluster: its scheduler's address and, for `tls`, the certificates of both ends."""

    address: str
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    @property
    def is_encrypted(self) -> bool:
        """Whether what is sent cannot be read or changed in transit."""
        return is_encrypted(self.address)


@dataclass(frozen=True, slots=True)
class Workforce:
    """What computes the parts of a night: a cluster's workers, or processes of this machine.

    `processes` None: as many as the machine has processors.
    """

    processes: int | None = None
    cluster: Cluster | None = None


def cluster_address(text: str) -> str:
    """Return a scheduler's address in its one spelling. Raises ValueError, without its text, if it is none."""
    stripped = text.strip()
    msg = "this is not a scheduler's address, such as tls://scheduler.example.com:8786"
    try:
        parsed = urlsplit(stripped)
        host, port = (parsed.hostname or "").rstrip("."), parsed.port
    except ValueError:
        raise ValueError(msg) from None
    is_whole = parsed.scheme in _CLUSTER_SCHEMES and is_host(host) and port is not None and "@" not in parsed.netloc
    if not is_whole or parsed.path.strip("/") or parsed.query or parsed.fragment or not stripped.isprintable():
        raise ValueError(msg)
    return f"{parsed.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
