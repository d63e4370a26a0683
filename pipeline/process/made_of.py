"""What a worker of a cluster is made of, and whether it sees the lake: it is compared with the machine of the night."""

import platform
import secrets
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

import xxhash

import pipeline

_PACKAGE = Path(pipeline.__file__).parent
# Libraries whose versions could change the bytes of files.
_LIBRARIES = ("duckdb", "pyarrow", "msgspec", "numpy")


def sql_folder() -> Path:
    """Return the folder of our SQL: beside the packages in a checkout, inside them when installed."""
    installed = _PACKAGE / "_sql"
    return installed if installed.is_dir() else _PACKAGE.parent / "sql"


def look(folder: Path) -> dict[str, str]:
    """Return the versions of this process and whether it sees a folder of the lake, in which it leaves an answer."""
    seen = dict(made_of()) | {"folder": str(folder) if folder.is_dir() else "", "answer": secrets.token_hex(8)}
    if seen["folder"]:
        try:
            (folder / seen["answer"]).touch()
        except OSError as error:
            seen["folder"] = f"cannot write there: {error.strerror}"
    return seen


@cache
def made_of() -> Mapping[str, str]:
    """Return the versions of this process: a digest of our code and SQL, and the libraries that write files."""
    sql, digest = sql_folder(), xxhash.xxh3_64()
    for root, pattern in ((_PACKAGE, "*.py"), (sql, "*.sql"), (sql, "*.toml")):
        for place in sorted(root.rglob(pattern)):
            digest.update(place.relative_to(root).as_posix().encode())
            digest.update(place.read_bytes())
    code = f"{pipeline.__version__}, {digest.hexdigest()}"
    python = ".".join(platform.python_version_tuple()[:2])
    return {"nightaudit": code, "Python": python} | {name: version(name) for name in _LIBRARIES}
