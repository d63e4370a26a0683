"""Web addresses: parsed once, and written one way from then on.

Whether a connection is encrypted and its certificate verified depends on an address. So no address is compared or
searched as text: capitals in `HTTPS://`, a leading blank or a dot after the host make no difference.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pydantic import AnyHttpUrl

DEFAULT_PORTS = {"http": 80, "https": 443}
# Of web addresses, of the rate store and of the cluster.
_ENCRYPTED = frozenset({"https", "rediss", "tls"})
_CLEAR = frozenset({"http", "redis", "tcp"})

# Paths have colons and at-signs too.
_PLAIN_PATH = re.compile(r"\.{0,2}/(?!/)|~|file:///(?!/)", re.IGNORECASE)
_BUCKET = re.compile(r"s3://(?P<bucket>[^/]*)(?P<prefix>.*)", re.IGNORECASE | re.DOTALL)
_NAMES = r"(?:key|secret|token|password|credential|(?<![a-z])(?:sig|pass|pwd|auth|bearer|jwt))[\w.-]*"
# Such an option, an access key's id, or a query: no lake's path has them.
_IN_ANY = rf"--[\w-]*{_NAMES}\s|(?-i:(?<![A-Z0-9])A[KS]IA[A-Z0-9]{{12}})|\?[^/]*="
# Or a value of such a name, or a user with a password.
_KEYS = re.compile(rf"{_IN_ANY}|{_NAMES}\s*=|[^/\s:@]:[^/@]+@", re.IGNORECASE)
# A folder may be named `partition_key=3`, and have colons and at-signs further on.
_SURE_NAMES = r"(?:secret|token|password|credential|signature|access.?key)[\w.-]*"
_KEYS_IN_A_PATH = re.compile(
    rf"{_IN_ANY}|{_SURE_NAMES}\s*=|://[^/\s:@]*:[^/@]+@|\A\.{{0,2}}/[^/\s:@]+:[^/\s@]+@", re.IGNORECASE
)
_STATED = re.compile(rf"{_NAMES}[\"']?\s*:", re.IGNORECASE)
# An address that is still encoded then is refused.
_MOST_DECODED = 5


def web_address(text: str) -> str:
    """Return an address of http or https in its one spelling.

    Raises ValueError, without any password in it, if it is not such an address or has a user, a query or a fragment.
    """
    parsed = _parsed(text)
    if parsed.username is not None or parsed.password is not None:
        raise ValueError("an address must not carry a user or password; use the client id and secret settings")
    if parsed.query is not None or parsed.fragment is not None:
        raise ValueError("a base address must not carry a query (?) or a fragment (#): paths are appended to it")
    return f"{parsed.scheme}://{_authority(parsed)}{(parsed.path or '').rstrip('/')}"


def receiving_address(text: str) -> str:
    """Return an address that messages are sent to, in its one spelling; it may have a query and a user.

    Raises ValueError, which quotes no part of the address, as all of it is a secret.
    """
    try:
        parsed = _parsed(text)
    except ValueError:
        raise ValueError("it is not an address like https://hooks.example.com/…") from None
    return str(parsed)


def proxy_address(text: str, variable: str) -> str:
    """Return a proxy's address in its one spelling; it may have a user and password.

    Raises ValueError, which names `variable` and no password, if the proxy cannot be used.
    """
    scheme, mark, _ = text.strip().partition("://")
    if not mark:
        raise ValueError(
            f"The proxy of {variable} has no scheme: write http:// before it, as in http://proxy.example:3128."
        )
    if scheme.lower() not in DEFAULT_PORTS:
        raise ValueError(
            f"The proxy of {variable} speaks {scheme.lower()!r}; only proxies of http:// and https:// can be used."
        )
    try:
        return str(_parsed(text)).rstrip("/")
    except ValueError:
        raise ValueError(f"The proxy of {variable} is not an address like http://proxy.example:3128.") from None


def lake_address(text: str) -> str:
    """Return the address of a lake. Raises ValueError, without its text, if it names keys: they would be printed."""
    if _has_keys(text):
        raise ValueError(
            "a lake's address must not carry keys; use AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
        )
    return text


def _has_keys(text: str) -> bool:
    for _ in range(_MOST_DECODED):
        if _has_plain_keys(text):
            return True
        if (decoded := unquote(text)) == text:
            return False
        text = decoded
    return True


def _has_plain_keys(text: str) -> bool:
    # The scheme may be wrong or missing, and the address quoted or after the name of a setting.
    stripped = text.strip(" \t\r\n\"'<>")
    if _PLAIN_PATH.match(stripped):
        return _KEYS_IN_A_PATH.search(stripped) is not None
    if _KEYS.search(stripped) or _STATED.search(stripped):
        return True
    if stated := _BUCKET.match(stripped):
        bucket, prefix = stated["bucket"], stated["prefix"]
        # No bucket has capitals: it may be a key's id, and its secret may have slashes.
        is_id = not bucket or bucket != bucket.lower()
        return bool(set(":@?") & {*bucket}) or "?" in prefix or (is_id and "@" in prefix)
    return re.search(r"\?.|:.*@|//[^/]*@", stripped, re.DOTALL) is not None


def is_encrypted(address: str) -> bool:
    """Whether an address in its one spelling uses TLS."""
    return urlsplit(address).scheme in _ENCRYPTED


def is_in_the_clear(address: str) -> bool:
    """Whether what is sent to an address in its one spelling can be read in transit: no TLS, to another machine."""
    parsed = urlsplit(address)
    return parsed.scheme in _CLEAR and not is_loopback(parsed.hostname or "")


def is_host(host: str) -> bool:
    """Whether a host can be looked up: the labels of a name have 1 to 63 characters."""
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_and_port(address: str) -> str:
    """Return the host of an address, with its port where that is not the scheme's default."""
    return host_alone(urlsplit(address).netloc)


def host_alone(authority: str) -> str:
    """Return a host and port in one spelling; older manifests have them as the settings were written."""
    host, mark, port = authority.lower().rpartition(":")
    if not mark or not port.isdecimal():
        return authority.lower().rstrip(".")
    return host.rstrip(".") if int(port) in DEFAULT_PORTS.values() else f"{host.rstrip('.')}:{port}"


def _parsed(text: str) -> AnyHttpUrl:
    # Workers that normalise import this module, parse no address, and start faster without pydantic.
    from pydantic import AnyHttpUrl, ValidationError

    stripped = text.strip()
    # The parser drops line breaks and turns backslashes into slashes, as browsers do; a real address has neither.
    is_odd = not stripped.isprintable() or " " in stripped or "\\" in stripped
    try:
        parsed = None if is_odd or "://" not in stripped else AnyHttpUrl(stripped)
    except ValidationError:
        parsed = None
    if parsed is None or not is_host((parsed.host or "").strip(".")):
        named = repr(text) if "@" not in text else "what is given"
        raise ValueError(f"{named} is not an address like https://api.example.com")
    if (parsed.host or "").endswith("."):
        # The trailing dot marks a fully qualified name; certificates and the Host header do without it.
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
    port = "" if parsed.port in {None, DEFAULT_PORTS[parsed.scheme]} else f":{parsed.port}"
    return f"{parsed.host}{port}"
