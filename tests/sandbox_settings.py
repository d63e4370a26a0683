"""Settings of a client of a running sandbox."""

from __future__ import annotations

from typing import Any

from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.settings import Settings


def settings_asking(sandbox: SandboxProcess, **others: Any) -> Settings:
    """Return settings with the address and the credentials of a sandbox, and others."""
    asked = {name: getattr(sandbox, name) for name in ("base_url", "client_id", "client_secret")}
    return Settings(_env_file=None, **asked | others)
