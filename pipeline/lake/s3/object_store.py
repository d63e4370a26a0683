"""The object store of a lake on S3: objects that are created once and never changed.

<prefix>/objects/<sha256>             the bytes of a file of the lake
<prefix>/log/<version>.json           the lake's commits and claims: see `commit_log`
<prefix>/snapshots/<version>.json     all files of the lake as of a version
<prefix>/landed/raw/<sweep>/          answers that workers of a cluster have landed: see `hand_over`
<prefix>/tables/<table>/              copies of the tables' files, for other engines: see `in_place`
<prefix>/clock/                       objects of a moment, by which the store's own clock is read
"""

import hashlib
import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from pipeline.domain.errors import CorruptObject, LakeError, SettingsError, StoreAway

logger = logging.getLogger(__name__)

T = TypeVar("T")

# How long a command waits for a store that does not answer.
PATIENCE_SECONDS = 180.0
# Larger files are transferred in parts, so that a slow line repeats only one part and memory holds no complete file.
PART_BYTES = 8 << 20
_ADDRESS = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?P<prefix>(?:/[A-Za-z0-9!_.'()-]+)*)/?")
_SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
# A store's answer may repeat parts of the request, such as the id of a key.
_ANSWER = re.compile(r"[:,]? *(?:Debug source|with body|body:|<).*", re.DOTALL)
_BEFORE_REASON = re.compile(r"^.*? in [0-9.]+[µnm]?s - ")
# The library has no error type for a refused listing.
_REFUSED = re.compile(r"status code: 4(?!08|29)\d\d")


class Store:
    """A bucket's prefix. Credentials, region and endpoint come from the usual AWS variables."""

    def __init__(self, address: str) -> None:
        """Describe a store, without sending anything. Raises SettingsError."""
        match = _ADDRESS.fullmatch(address)
        if match is None or any(part in {".", ".."} for part in match["prefix"].split("/")):
            raise SettingsError(
                "This is not the address of a lake on S3.",
                hint="Name a bucket and a prefix of letters, digits, . - and _: s3://bucket/nightaudit",
            )
        self.address = address.rstrip("/")
        is_clear = os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true"}
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
        if endpoint.startswith("http://") and not is_clear:
            raise SettingsError(
                "AWS_ENDPOINT_URL is an http address: others can read and change what is sent there.",
                hint="Use https; on this machine, or within a private network, AWS_ALLOW_HTTP=true allows it.",
            )
        self._is_away = False
        try:
            self._store = S3Store(
                match["bucket"],
                prefix=match["prefix"].strip("/") or None,
                client_options={"connect_timeout": "5s", "timeout": "30s", "allow_http": is_clear},
                retry_config={
                    "max_retries": 8,
                    "retry_timeout": timedelta(seconds=10),
                    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=2)},
                },
            )
        except (BaseError, ValueError) as error:
            raise SettingsError(
                f"The store of {self.address} cannot be used: {_said(error)}",
                hint="Correct AWS_ENDPOINT_URL and the other AWS_… variables.",
            ) from None

    def put_new(self, key: str, data: bytes) -> bool:
        """Create an object. False: it existed, or an attempt of ours whose answer was lost has created it."""
        try:
            self._patiently(lambda: obstore.put(self._store, key, data, mode="create", use_multipart=False))
        except AlreadyExistsError:
            return False
        return True

    def put(self, key: str, data: bytes) -> None:
        """Create or replace an object."""
        self._patiently(lambda: obstore.put(self._store, key, data, use_multipart=False))

    def copy(self, name: str, key: str) -> None:
        """Let the store copy the object of a file to a key. Raises FileNotFoundError."""
        self._patiently(lambda: obstore.copy(self._store, _key(name), key))

    def keep(self, place: Path, cut: int | None = None) -> tuple[str, int]:
        """Create the object of a file, or of its first `cut` bytes; return its name and size."""
        if cut is not None or place.stat().st_size <= PART_BYTES:
            return self.keep_bytes(place.read_bytes()[:cut])
        with place.open("rb") as file:
            name = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
        self._put_parts(name, place)
        return name, size

    def keep_bytes(self, data: bytes) -> tuple[str, int]:
        """Create the object of some bytes; return its name and size."""
        name = hashlib.sha256(data).hexdigest()
        if len(data) <= PART_BYTES:
            self.put_new(_key(name), data)
        else:
            self._put_parts(name, data)
        return name, len(data)

    def _put_parts(self, name: str, content: Path | bytes) -> None:
        if not self.exists(_key(name)):
            # An upload in parts cannot be create-only, but it would replace the same bytes.
            self._patiently(
                lambda: obstore.put(
                    self._store, _key(name), content, use_multipart=True, chunk_size=PART_BYTES, max_concurrency=4
                )
            )

    def get(self, key: str) -> bytes:
        """Read an object. Raises FileNotFoundError."""
        return self._patiently(lambda: bytes(obstore.get(self._store, key).bytes()))

    def fetch(self, name: str, size: int, place: Path) -> None:
        """Write the object of a file to a place. Raises FileNotFoundError, and CorruptObject if its bytes are wrong."""
        digest = hashlib.sha256()
        with place.open("wb") as file:
            for start in range(0, size, PART_BYTES):
                end = min(start + PART_BYTES, size)
                part = self._patiently(
                    lambda start=start, end=end: bytes(  # type: ignore[misc]
                        obstore.get_range(self._store, _key(name), start=start, end=end)
                    )
                )
                digest.update(part)
                file.write(part)
        if digest.hexdigest() != name:
            raise CorruptObject(
                f"The object {self.address}/{_key(name)} is damaged: its name is not the SHA-256 of its content.",
                kept="It was not used, and nothing was changed.",
                hint="Restore it in the bucket, from a version or a backup, or from the copy of another machine.",
            )

    def list_after(self, folder: str, after: str = "") -> dict[str, datetime]:
        """Return the names in a folder that follow `after`, in order, each with its time by the store's clock."""
        found = self._listed(folder, f"{folder}/{after}" if after else None)
        return {key.rpartition("/")[2]: at for key, at in found.items()}

    def keys(self, folder: str) -> dict[str, datetime]:
        """Return the keys in a folder and in those inside it, in order, each with its time by the store's clock."""
        return self._listed(folder, None)

    def _listed(self, folder: str, offset: str | None) -> dict[str, datetime]:
        found = self._patiently(lambda: obstore.list(self._store, folder, offset=offset).collect())
        return {it["path"]: it["last_modified"] for it in sorted(found, key=lambda each: each["path"])}

    def older_than(self, found: Mapping[str, datetime], hours: float) -> list[str]:
        """Return which of some listed names are older, by the store's clock."""
        now = self.now()
        return [name for name, at in found.items() if (now - at).total_seconds() >= hours * 3600]

    def time_of(self, key: str) -> datetime:
        """Return when an object was created, by the store's clock. Raises FileNotFoundError."""
        return self._patiently(lambda: obstore.head(self._store, key)["last_modified"])

    def now(self) -> datetime:
        """Return the time by the store's clock: those of two machines may differ."""
        key = f"clock/{secrets.token_hex(8)}"
        self.put_new(key, b"")
        try:
            return self.time_of(key)
        finally:
            self.delete([key])

    def delete(self, keys: list[str]) -> None:
        """Delete objects; missing ones are ignored."""
        if keys:
            with suppress(FileNotFoundError):
                self._patiently(lambda: obstore.delete(self._store, keys))

    def exists(self, key: str) -> bool:
        """Whether there is an object."""
        try:
            self.time_of(key)
        except FileNotFoundError:
            return False
        return True

    def _patiently(self, do: Callable[[], T]) -> T:
        """Call `do`, and again while the store does not answer. Raises LakeError once that has taken too long."""
        since = time.monotonic()
        while True:
            try:
                done = do()
            except (FileNotFoundError, AlreadyExistsError):
                self._is_away = False
                raise
            except (BaseError, OSError) as error:
                is_refused = isinstance(error, PermissionDeniedError | UnauthenticatedError)
                if is_refused or _REFUSED.search(str(error)):
                    raise LakeError(
                        f"The store refuses {self.address}: {_said(error)}",
                        kept="What was committed before is untouched.",
                        hint="Check the bucket's name, the AWS_… variables, and the permissions of their key.",
                    ) from None
                if time.monotonic() - since > PATIENCE_SECONDS:
                    raise StoreAway(
                        f"The store of {self.address} does not answer: {_said(error)}",
                        kept="What was committed before is untouched; other files are still in this machine's copy.",
                        hint="Check AWS_ENDPOINT_URL and the network, then run the command again on this machine.",
                    ) from None
                # Once for all the threads that wait for it.
                if not self._is_away:
                    self._is_away = True
                    logger.warning("The store of %s does not answer; trying again: %s", self.address, _said(error))
                time.sleep(1)
            else:
                self._is_away = False
                return done


def _key(name: str) -> str:
    return f"objects/{name}"


def _said(error: Exception) -> str:
    """Return an error's message on one line, without parts of the request and without credentials."""
    said = _BEFORE_REASON.sub("", _ANSWER.sub("", " ".join(str(error).split()))) or type(error).__name__
    for value in filter(None, map(os.environ.get, _SECRETS)):
        said = said.replace(value, "…")
    return re.sub(r"//[^/@ ]*@", "//", said)[:300]
