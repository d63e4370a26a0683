"""Where the store of a shared rate listens. Its address may carry a password, so only its place is ever repeated."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from pipeline.domain.addresses import is_loopback

_SCHEMES = frozenset({"redis", "rediss", "unix"})
# The store's client takes any argument of a connection from a query, its host and the checks of TLS too.
_QUERY = frozenset({"db", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})


def store_address(text: str) -> str:
    """Return a store's address in its one spelling. Raises ValueError where it is none, and repeats nothing of it."""
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
    if parsed.scheme not in _SCHEMES or is_socket == bool(host) or not is_place or parsed.fragment:
        raise ValueError(msg)
    if {name for name, _ in query} - _QUERY:
        msg = (
            f"its query (?) may name only {', '.join(sorted(_QUERY))}: the host stands before it, and certificates are "
            "always verified"
        )
        raise ValueError(msg)
    user, mark, _ = parsed.netloc.rpartition("@")
    written = f"[{host}]" if ":" in host else host
    authority = f"{user}{mark}{written}{'' if port is None else f':{port}'}"
    return parsed._replace(netloc=authority).geturl()


def place_of_store(address: str) -> str:
    """Return the host and port, or the socket, of a store's address in its one spelling: what is no secret of it."""
    parsed = urlsplit(address)
    return parsed.netloc.rpartition("@")[2] or parsed.path


def is_store_encrypted(address: str) -> bool:
    """Whether a store's address in its one spelling is one of TLS."""
    return urlsplit(address).scheme == "rediss"


def is_store_in_the_clear(address: str) -> bool:
    """Whether what is sent to a store can be read on its way: redis to another machine."""
    parsed = urlsplit(address)
    return parsed.scheme == "redis" and not is_loopback(parsed.hostname or "")
