"""Web addresses: parsed once, and written one way from then on.

Whether a connection is encrypted and its certificate verified hangs on an address. So no address is compared or
searched as text: `HTTPS://`, a blank before it or a dot behind its host are the same address as without.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pydantic import AnyHttpUrl

_DEFAULT_PORTS = {"http": 80, "https": 443}


def web_address(text: str) -> str:
    """Return an address of http or https in its one spelling, without what does not belong to a base address.

    Raises ValueError, which repeats no password, where it is none, or carries a user, a query or a fragment.
    """
    parsed = _parsed(text)
    if parsed.username is not None or parsed.password is not None:
        msg = "an address must not carry a user or password; use the client id and secret settings"
        raise ValueError(msg)
    if parsed.query is not None or parsed.fragment is not None:
        msg = "a base address must not carry a query (?) or a fragment (#): paths are written behind it"
        raise ValueError(msg)
    return f"{parsed.scheme}://{_authority(parsed)}{(parsed.path or '').rstrip('/')}"


def receiving_address(text: str) -> str:
    """Return an address that messages are sent to, in its one spelling; it may carry a query and a user.

    Raises ValueError, which repeats nothing of it: all of it is a secret.
    """
    try:
        parsed = _parsed(text)
    except ValueError:
        msg = "it is not an address like https://hooks.example.com/…"
        raise ValueError(msg) from None
    return str(parsed)


def proxy_address(text: str, variable: str) -> str:
    """Return a proxy's address in its one spelling; it may carry a user and password.

    Raises ValueError, which repeats no password and names `variable`, where it is no proxy that can be used.
    """
    scheme, mark, _ = text.strip().partition("://")
    if not mark:
        msg = f"The proxy of {variable} has no scheme: write http:// before it, as in http://proxy.example:3128."
        raise ValueError(msg)
    if scheme.lower() not in _DEFAULT_PORTS:
        msg = f"The proxy of {variable} speaks {scheme.lower()!r}; only proxies of http:// and https:// can be used."
        raise ValueError(msg)
    try:
        return str(_parsed(text)).rstrip("/")
    except ValueError:
        msg = f"The proxy of {variable} is not an address like http://proxy.example:3128."
        raise ValueError(msg) from None


def is_encrypted(address: str) -> bool:
    """Whether an address in its one spelling is one of https."""
    return urlsplit(address).scheme == "https"


def is_in_the_clear(address: str) -> bool:
    """Whether what is sent to an address in its one spelling can be read on its way: http to another machine."""
    return not is_encrypted(address) and not is_loopback(urlsplit(address).hostname or "")


def is_loopback(host: str) -> bool:
    """Whether a host is this very machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_and_port(address: str) -> str:
    """Return what a server is known by: its host, and its port where it is not the scheme's own."""
    return host_alone(urlsplit(address).netloc)


def host_alone(authority: str) -> str:
    """Return a host and port in one spelling, from when they were written down as the settings had them."""
    host, mark, port = authority.lower().rpartition(":")
    if not mark or not port.isdecimal():
        return authority.lower().rstrip(".")
    return host.rstrip(".") if int(port) in _DEFAULT_PORTS.values() else f"{host.rstrip('.')}:{port}"


def _parsed(text: str) -> AnyHttpUrl:
    # The workers that normalise read hosts of raw answers, parse no address, and begin quickly without pydantic.
    from pydantic import AnyHttpUrl, ValidationError

    stripped = text.strip()
    # A parser of addresses takes line breaks away and turns backslashes round, as browsers do; no address has them.
    is_odd = not stripped.isprintable() or " " in stripped or "\\" in stripped
    try:
        parsed = None if is_odd or "://" not in stripped else AnyHttpUrl(stripped)
    except ValidationError:
        parsed = None
    if parsed is None or not (parsed.host or "").strip("."):
        named = repr(text) if "@" not in text else "what is given"
        msg = f"{named} is not an address like https://api.example.com"
        raise ValueError(msg)
    if (parsed.host or "").endswith("."):
        # The dot says that a name is whole; in certificates and on the wire names stand without it.
        return AnyHttpUrl.build(
            scheme=parsed.scheme,
            username=parsed.username,
            password=parsed.password,
            host=(parsed.host or "").rstrip("."),
            port=parsed.port,
            path=(parsed.path or "/").removeprefix("/"),
            query=parsed.query,
            fragment=parsed.fragment,
        )
    return parsed


def _authority(parsed: AnyHttpUrl) -> str:
    port = "" if parsed.port in {None, _DEFAULT_PORTS[parsed.scheme]} else f":{parsed.port}"
    return f"{parsed.host}{port}"
