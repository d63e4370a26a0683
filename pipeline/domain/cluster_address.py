"""Where a cluster's scheduler listens, and what proves who it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pipeline.domain.addresses import is_loopback

_SCHEMES = frozenset({"tcp", "tls"})


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Dask cluster: its scheduler's address; for `tls` the certificates that both ends show and accept."""

    address: str
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    @property
    def is_encrypted(self) -> bool:
        """Whether what is sent cannot be read or changed on its way."""
        return self.address.startswith("tls://")


def cluster_address(text: str) -> str:
    """Return a scheduler's address in its one spelling. Raises ValueError where it is none."""
    stripped = text.strip()
    msg = f"{text!r} is not a scheduler's address like tls://scheduler.example.com:8786"
    try:
        parsed = urlsplit(stripped)
        host, port = (parsed.hostname or "").rstrip("."), parsed.port
    except ValueError:
        raise ValueError(msg) from None
    is_whole = parsed.scheme in _SCHEMES and host and port is not None and "@" not in parsed.netloc
    if not is_whole or parsed.path.strip("/") or parsed.query or parsed.fragment or not stripped.isprintable():
        raise ValueError(msg)
    return f"{parsed.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def is_readable_on_its_way(address: str) -> bool:
    """Whether work that is sent to a scheduler could be read or forged on its way: `tcp` to another machine."""
    parsed = urlsplit(address)
    return parsed.scheme == "tcp" and not is_loopback(parsed.hostname or "")
