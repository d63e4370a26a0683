"""The one script of our pages, which sorts and filters tables, and the hash that permits only it."""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Final

TABLES: Final = Path(__file__).with_name("tables.js").read_text(encoding="utf-8")
# For the content security policy: permits the script with this hash.
TABLES_SOURCE: Final = f"'sha256-{b64encode(sha256(TABLES.encode()).digest()).decode()}'"
