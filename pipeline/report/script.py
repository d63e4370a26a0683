"""The one script of our pages, which sorts and filters tables, and what lets a browser run it and no other."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Final

TABLES: Final = Path(__file__).with_name("tables.js").read_text(encoding="utf-8")
# A source of a content security policy: the script that has this hash.
TABLES_SOURCE: Final = f"'sha256-{b64encode(sha256(TABLES.encode()).digest()).decode()}'"
