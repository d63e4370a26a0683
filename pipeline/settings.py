"""The frozen, validated `Settings`, read once at start-up from the environment and a `.env` file."""

import logging
import os
import re
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import croniter
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from pipeline.domain.addresses import is_in_the_clear, lake_address, receiving_address, web_address
from pipeline.domain.analysis import Analysis
from pipeline.domain.codes import A_MARKET, MARKETS
from pipeline.domain.errors import SettingsError
from pipeline.domain.names import meant_by
from pipeline.domain.servers import Cluster, Workforce, cluster_address, mailbox_of, store_address
from pipeline.domain.texts import one_line, validation_text
from pipeline.process.env_file import ENV_FILE, names_in_env_file
from pipeline.process.regular_file import open_regular

logger = logging.getLogger(__name__)

PREFIX = "NIGHTAUDIT_"

# Slow enough for a supplier whose limits are unknown; the sandbox needs no such care.
OUTSIDE_REQUESTS_PER_SECOND, OUTSIDE_CONCURRENCY = 5.0, 4
SANDBOX_REQUESTS_PER_SECOND, SANDBOX_CONCURRENCY = 500.0, 8

# Far enough from the ends of the calendar that every stay and deadline around a clock is a valid date.
_CLOCK_YEARS = range(2000, 2200)

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the current instant in UTC."""
    return datetime.now(UTC)


class Credentials(StrEnum):
    """How the client id and secret are sent to the token endpoint (RFC 6749, section 2.3.1)."""

    BASIC = "basic"
    BODY = "body"


class TotalRole(StrEnum):
    """What the supplier's `total` means; reports show margins only if this is known."""

    UNKNOWN = "unknown"
    NET = "net"
    SELL = "sell"


class LogFormat(StrEnum):
    """How the log is written."""

    TEXT = "text"
    JSON = "json"


def _market(value: str) -> str:
    """Return a valid market code unchanged. Raises ValueError that names the nearest one."""
    if value in MARKETS:
        return value
    close = get_close_matches(value.upper(), MARKETS, n=1)
    raise ValueError(f"{value!r} is not {A_MARKET}{f'; did you mean {close[0]}?' if close else ''}")


def _once(values: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return tuple(dict.fromkeys(values)) if values else None


def _parts(value: object) -> object:
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


def _mailbox(address: str) -> str:
    mailbox_of(address)
    return address


def _instant(value: object) -> object:
    """Return an instant in UTC. Raises ValueError if it names no time zone, or is near an end of the calendar."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            raise ValueError(f"{value!r} is not an instant like 2026-10-01T02:00:00Z") from error
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ValueError(f"{value.isoformat()} names no time zone; {value.isoformat()}Z is in UTC")
    if value.year not in _CLOCK_YEARS:
        raise ValueError(f"the year {value.year} is not from {_CLOCK_YEARS.start} to {_CLOCK_YEARS.stop - 1}")
    return value.astimezone(UTC)


def _time_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"{value!r} is not a time zone like Europe/Stockholm") from error
    return value


def _cron(value: str) -> str:
    try:
        # The library that the scheduler uses. It also accepts seconds and years, so require five fields.
        is_cron = len(value.split()) == 5 and croniter(value, utc_now()).get_next() > 0
    except ValueError:
        is_cron = False
    if not is_cron:
        raise ValueError(
            f"{value!r} is not a valid cron expression. It has five fields: minute, hour, day of the "
            "month, month, day of the week. 30 2 * * * is 02:30 each night"
        )
    return value


def _secret(checked: Callable[[str], str]) -> AfterValidator:
    return AfterValidator(lambda secret: SecretStr(checked(secret.get_secret_value())))


def _compared(name: str) -> Any:  # noqa: ANN401 - pydantic's own type of a field
    """Return a setting that is a column of `ref.analysis` too: default, bounds and meaning are declared there."""
    declared = next(each for each in fields(Analysis) if each.name == name)
    return Field(declared.default, description=declared.metadata["meaning"], **declared.metadata["bounds"])


def meaning_of(field: FieldInfo) -> str:
    """Return the meaning of a setting and, if it is a number with bounds, its range."""
    bounds = {
        name: f"{value:,.10g}"
        for each in field.metadata
        for name in ("ge", "gt", "le")
        if (value := getattr(each, name, None)) is not None
    }
    least, most = bounds.get("ge"), bounds.get("le")
    if "gt" in bounds:
        allowed = f" Range: above {bounds['gt']}, at most {most}."
    elif most is not None:
        allowed = f" Range: {least} to {most}."
    else:
        allowed = f" At least {least}." if least not in {None, "0"} else ""
    return f"{one_line(field.description)}{allowed}"


WebAddress = Annotated[str, AfterValidator(web_address)]
Receiver = Annotated[SecretStr, _secret(receiving_address)]
Market = Annotated[str, AfterValidator(_market)]
TimeZone = Annotated[str, AfterValidator(_time_zone)]


class Settings(BaseSettings):
    """Everything that can be set. The text below a field is its meaning in the settings table."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=ENV_FILE,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        validate_default=True,
        use_attribute_docstrings=True,
    )

    base_url: WebAddress | None = None
    """Address of the supplier. Unset: the bundled sandbox answers, and all data is simulated."""
    client_id: str | None = None
    """OAuth client id."""
    client_secret: SecretStr | None = None
    """OAuth client secret. Never logged or stored."""
    auth_url: WebAddress | None = None
    """Address of the token service, if it differs from the base address."""
    allow_clear_text: bool = False
    """Allow http to another machine: others can then read the secret, token and prices."""
    credentials: Credentials = Credentials.BASIC
    """How id and secret are sent to the token service: `basic` or `body`."""
    scopes: str = "read_rooms"
    """Scopes to request, separated by spaces. Quotes also need `write_rooms`."""

    requests_per_second: Annotated[float, Field(ge=0.001, le=10_000)] | None = None
    """Maximum requests per second of a sweep. Unset: 5, or 500 for the sandbox."""
    rate_store: Annotated[SecretStr, _secret(store_address)] | None = None
    """Redis server (`rediss://…`) through which all processes that call the supplier share one rate limit and one daily
    cap. Unset: each process has its own. Never logged."""
    rate_store_clear_text: bool = False
    """Allow `redis://` to another machine: others can then read its password and change the rate."""
    concurrency: Annotated[int, Field(ge=1, le=512)] | None = None
    """Maximum requests in flight. Unset: 4, or 8 for the sandbox."""
    daily_calls: Annotated[int, Field(ge=1)] | None = None
    """Maximum calls per UTC day, of all commands that share this lake or its rate store; 1 or more. Without a rate
    store, another lake counts its own. Unset: no cap."""
    attempts: int = Field(4, ge=1, le=20)
    """Maximum attempts per search, including the first."""
    connect_timeout_seconds: float = Field(10, gt=0, le=3_600)
    """Seconds to wait for a connection."""
    read_timeout_seconds: float = Field(60, gt=0, le=3_600)
    """Seconds to wait for an answer, and between parts of it."""
    max_body_mb: int = Field(64, ge=1, le=1_000)
    """Maximum megabytes of an answer, as sent and decompressed. Larger ones are refused."""
    send_rate_type: bool = True
    """Send `rateType: BAR` with each request."""

    quote_cap: int = Field(0, ge=0, le=1000)
    """Maximum quotes per run; each makes a reservation. 0: quotes are off."""
    confirm_cap: int = Field(100, ge=1, le=10_000)
    """Maximum searches per run of `nightaudit confirm`."""

    lake: Annotated[str, AfterValidator(lake_address)] = "lake"
    """Folder of the lake: raw answers, tables, published file. Or `s3://bucket/prefix`; the AWS_… environment variables
    then give credentials, region and endpoint."""
    lake_copy: Path | None = None
    """Folder for this machine's copies of lakes on S3, each as large as its lake. Unset: `nightaudit` in the user's
    cache folder."""
    worker_copy_mb: int = Field(50_000, ge=1)
    """Maximum megabytes of a lake on S3 that a worker of a cluster keeps, not counting the files of running tasks."""
    lake_claim_seconds: float = Field(180, ge=3, le=86_400)
    """Seconds without a sign of life after which another machine may take over a lake on S3."""
    observation_nights: int = Field(35, ge=0)
    """Number of nights whose offers `nightaudit lake --apply` keeps in the tables. 0: all."""
    raw_nights: int = Field(0, ge=0)
    """Number of nights whose raw answers `nightaudit lake --apply` keeps; older nights cannot be rebuilt. 0: all."""
    grace_hours: float = Field(24, ge=0, le=100_000)
    """Hours that unused files are kept, because readers may have them open."""
    spec: Path | None = None
    """Sweep spec (TOML or YAML). Unset, with the sandbox only: that of the demo in this lake, else the sample spec."""
    property_limit: Annotated[int, Field(ge=1)] | None = None
    """Sweep only the first N properties of the spec. Unset: all."""
    markets: Annotated[tuple[Market, ...] | None, NoDecode, BeforeValidator(_parts), AfterValidator(_once)] = None
    """Sweep only these markets of the spec, separated by commas. Unset: all."""
    workers: int = Field(min(os.cpu_count() or 1, 8), ge=1, le=64)
    """Processes of this machine that normalise, audit and publish; on a large night each takes up to 700 MB. Unset: one
    per processor, at most 8."""
    cluster: Annotated[str, AfterValidator(cluster_address)] | None = None
    """Dask scheduler (`tls://host:port`) whose workers normalise, audit and publish, and send searches if they share
    `NIGHTAUDIT_RATE_STORE`. Unset: this machine does."""
    cluster_ca_file: Path | None = None
    """CA certificate (PEM) that verifies the cluster's certificates. Required for `tls://`."""
    cluster_cert_file: Path | None = None
    """Certificate (PEM) of this machine, for the cluster."""
    cluster_key_file: Path | None = None
    """Private key (PEM) of that certificate. Never logged."""
    cluster_clear_text: bool = False
    """Allow `tcp://` to another machine: anyone who reaches the scheduler can run code on its workers."""
    tolerated_failed_share: float = Field(0.05, ge=0, le=1)
    """Share of failed cells above which a finished run exits with code 4."""
    tolerated_failed_rules: int = Field(0, ge=0)
    """Number of failed rules above which a finished run exits with code 4."""
    tolerated_quarantined_share: float = Field(0.01, ge=0, le=1)
    """Share of unusable offers in a market above which the quality gate blocks."""
    audit_deviations: float = Field(6, le=1_000, gt=0)
    """Allowed deviation from earlier nights, as a multiple of their spread; lower is stricter."""
    audit_nights: int = Field(28, ge=2)
    """Maximum number of earlier nights that a sweep is compared with."""
    audit_cold_nights: int = Field(5, ge=2)
    """Earlier nights that checks against history need; with fewer, only absolute rules apply."""
    notify_webhook: Receiver | None = None
    """Webhook for the reasons why a sweep is blocked, one POST of JSON each. Never logged."""
    notify_mail: Annotated[SecretStr, _secret(_mailbox)] | None = None
    """E-mail for the same messages, as `smtps://USER:PASSWORD@HOST/?from=ADDRESS&to=ADDRESS,ADDRESS`. Never logged."""
    notify_block: str | None = None
    """Prefect notification block for the same messages, as `type/name`, such as `slack-webhook/watch`."""
    published_webhook: Receiver | None = None
    """Webhook for one POST of JSON after each published night: where to find it and its changes. Never logged."""
    log_format: LogFormat = LogFormat.TEXT
    """Format of the log: `text` (warnings), or `json` (one object per line, with the sweep's id)."""
    metrics_port: int | None = Field(None, ge=1, le=65535)
    """Port of 127.0.0.1 on which a sweep serves its metrics as OpenMetrics while it runs. Unset: none."""
    alerts: Path | None = None
    """File of alert rules (TOML): who gets which findings after each night. Unset: no alerts."""
    pages_url: WebAddress | None = None
    """Address at which receivers of alerts open the lake's `reports` folder, such as `https://intranet.example/rates`.
    Unset: messages name files on this machine."""
    total_role: TotalRole = _compared("total_role")

    reference_market: Market | None = _compared("reference_market")
    tolerance_pct: float = _compared("tolerance_pct")
    what_if_markup_pct: float | None = _compared("what_if_markup_pct")
    reference_rate_pct: float = _compared("reference_rate_pct")
    disparity_pct: float = _compared("disparity_pct")
    medium_pct: float = _compared("medium_pct")
    high_pct: float = _compared("high_pct")
    price_days: int = _compared("price_days")
    reference_days: int = _compared("reference_days")
    plausible_rooms: int = _compared("plausible_rooms")
    quiet_nights: int = _compared("quiet_nights")
    silent_nights: int = _compared("silent_nights")
    unobserved_nights: int = _compared("unobserved_nights")
    unrequested_days: int = _compared("unrequested_days")
    ladder_stays: int = _compared("ladder_stays")
    ladder_pct: float = _compared("ladder_pct")
    discount_rounding: float = _compared("discount_rounding")
    cancel_horizon_days: int = _compared("cancel_horizon_days")
    check_in_hour: int = _compared("check_in_hour")
    check_in_time_zone: TimeZone = _compared("check_in_time_zone")
    reference_gone_days: int = _compared("reference_gone_days")

    query_seconds: float = Field(300, gt=0, le=1_000_000)
    """Time limit of a user's query, in seconds: on the command line, in a spec or in an alert rule."""
    query_memory_mb: int = Field(2000, ge=100)
    """Memory limit of such a query, in megabytes."""

    schedule_cron: Annotated[str, AfterValidator(_cron)] = "30 2 * * *"
    """When the nightly run starts, as a cron expression."""
    schedule_timezone: TimeZone = "UTC"
    """Time zone of the schedule, such as `Europe/Stockholm`."""

    sandbox_seed: int = Field(1, ge=0)
    """Seed of the sandbox's simulated world."""
    sandbox_properties: int = Field(3000, ge=1, le=100_000)
    """Number of properties in the sandbox."""

    sandbox_clock: Annotated[AwareDatetime, BeforeValidator(_instant)] | None = None
    """Time at which the sandbox's nights take place, such as `2026-10-01T02:00:00Z`. Unset: the real time."""

    @model_validator(mode="after")
    def _credentials_are_complete(self) -> Self:
        if self.base_url and not (self.client_id and self.client_secret):
            raise ValueError("with a base address, NIGHTAUDIT_CLIENT_ID and NIGHTAUDIT_CLIENT_SECRET are required too")
        return self

    @model_validator(mode="after")
    def _credentials_are_text(self) -> Self:
        secret = self.client_secret.get_secret_value() if self.client_secret else ""
        sent = {"CLIENT_ID": self.client_id or "", "CLIENT_SECRET": secret, "SCOPES": self.scopes}
        for name, text in sent.items():
            # The environment hands on other bytes as half surrogates.
            if any("\ud800" <= letter <= "\udfff" for letter in text):
                raise ValueError(f"{PREFIX}{name} is not text in UTF-8")
        return self

    @model_validator(mode="after")
    def _only_the_sandbox_has_a_clock(self) -> Self:
        if self.base_url and self.sandbox_clock:
            raise ValueError(
                "NIGHTAUDIT_SANDBOX_CLOCK works only with the bundled sandbox, but NIGHTAUDIT_BASE_URL names a "
                "supplier. Unset one of them"
            )
        return self

    @model_validator(mode="after")
    def _high_is_above_medium(self) -> Self:
        if self.high_pct < self.medium_pct:
            raise ValueError(f"{PREFIX}HIGH_PCT ({self.high_pct}) is below {PREFIX}MEDIUM_PCT ({self.medium_pct})")
        return self

    @property
    def clock(self) -> Clock:
        """The clock for everything that is recorded: the real time, or the sandbox's clock, which stands still.

        It stands still so that the same seed and clock produce the same night: every instant of a command is the one
        that was set, and every duration is zero. Pacing, time limits and retries use the real time.
        """
        instant = self.sandbox_clock
        return utc_now if instant is None else lambda: instant

    @model_validator(mode="after")
    def _nothing_is_sent_in_the_clear(self) -> Self:
        named = {"BASE_URL": self.base_url, "AUTH_URL": self.auth_url}
        for name, secret in (("NOTIFY_WEBHOOK", self.notify_webhook), ("PUBLISHED_WEBHOOK", self.published_webhook)):
            named[name] = secret.get_secret_value() if secret else None
        clear = [f"{PREFIX}{name}" for name, address in named.items() if address and is_in_the_clear(address)]
        if clear and not self.allow_clear_text:
            raise ValueError(
                f"{' and '.join(clear)}: http to another machine exposes secrets and tokens. "
                f"Use https; within a private network, {PREFIX}ALLOW_CLEAR_TEXT=true allows it"
            )
        return self

    @model_validator(mode="after")
    def _the_shared_rate_is_not_sent_in_the_clear(self) -> Self:
        store = self.rate_store.get_secret_value() if self.rate_store else None
        if store and is_in_the_clear(store) and not self.rate_store_clear_text:
            raise ValueError(
                f"{PREFIX}RATE_STORE: redis to another machine exposes its password, and lets others change the rate. "
                f"Use rediss; within a private network, {PREFIX}RATE_STORE_CLEAR_TEXT=true allows it"
            )
        return self

    @model_validator(mode="after")
    def _cluster_connection_is_encrypted(self) -> Self:
        if self.cluster is None:
            return self
        if is_in_the_clear(self.cluster) and not self.cluster_clear_text:
            raise ValueError(
                f"{PREFIX}CLUSTER: others can read and forge plain tcp to another machine. Use tls; within a private "
                f"network, {PREFIX}CLUSTER_CLEAR_TEXT=true allows it"
            )
        if self.cluster.startswith("tls"):
            for name in ("cluster_ca_file", "cluster_cert_file", "cluster_key_file"):
                file = getattr(self, name)
                if file is None or not file.is_file():
                    raise ValueError(f"{PREFIX}CLUSTER uses tls, so {PREFIX}{name.upper()} must name an existing file")
        return self

    @property
    def spread_over(self) -> Cluster | None:
        """The cluster that does the work that can be distributed; None: processes of this machine."""
        if self.cluster is None:
            return None
        return Cluster(self.cluster, self.cluster_ca_file, self.cluster_cert_file, self.cluster_key_file)

    @property
    def workforce(self) -> Workforce:
        """What computes the parts of a night."""
        return Workforce(self.workers, self.spread_over)

    @property
    def is_simulated(self) -> bool:
        """Whether the bundled sandbox stands in for a supplier."""
        return self.base_url is None

    @property
    def analysis(self) -> Analysis:
        """The settings that comparisons use, as `ref.analysis` publishes them, by the same names."""
        return Analysis(**{each.name: getattr(self, each.name) for each in fields(Analysis)})

    @property
    def rate(self) -> float:
        """Requests per second that a sweep may send."""
        return self.requests_per_second or (
            SANDBOX_REQUESTS_PER_SECOND if self.is_simulated else OUTSIDE_REQUESTS_PER_SECOND
        )

    @property
    def in_flight(self) -> int:
        """Requests that a sweep may have in flight."""
        return self.concurrency or (SANDBOX_CONCURRENCY if self.is_simulated else OUTSIDE_CONCURRENCY)

    @property
    def max_body_bytes(self) -> int:
        """Maximum bytes of a decompressed answer."""
        return self.max_body_mb * 1_000_000


def read_settings(**given: Any) -> Settings:  # noqa: ANN401 - any field of Settings
    """Return the settings from the environment and `.env`; `given` takes precedence over both.

    Warns of a name with our prefix that has no effect. Raises SettingsError that names each invalid setting, or an
    unreadable line of `.env`.
    """
    strange = [name for name in sorted({*os.environ, *names_in_env_file()}) if _is_strange(name)]
    for name in strange:
        if meant := meant_by(name, _names(), 0.85):
            _warn_of_misspelt(name, meant)
    try:
        settings = Settings(**given)
    except ValidationError as error:
        lines = [_explain(item["loc"], item["msg"]) for item in error.errors(include_input=False, include_url=False)]
        raise SettingsError(
            "These settings cannot be used:\n" + "\n".join(lines),
            hint="Correct the option, the environment or .env. Every setting is described by: nightaudit settings",
        ) from None
    for name in strange:
        if not meant_by(name, _names(), 0.85) and name not in _words_of(settings.alerts):
            _warn_of_unknown(name)
    return settings


def _explain(location: tuple[int | str, ...], message: str) -> str:
    name = f"{PREFIX}{str(location[0]).upper()}: " if location else ""
    return f"  {name}{validation_text(message)}"


def _is_strange(name: str) -> bool:
    return name.upper().startswith(PREFIX) and name.upper() not in _names()


@cache
def _names() -> tuple[str, ...]:
    return tuple(f"{PREFIX}{field.upper()}" for field in Settings.model_fields)


def _words_of(rules: Path | None) -> frozenset[str]:
    """Return the words of a file of alert rules, which names the variables that hold the addresses of its receivers."""
    if rules is None:
        return frozenset()
    try:
        with open_regular(rules) as opened:
            return frozenset(re.findall(r"\w+", opened.read().decode(errors="replace")))
    except OSError:
        # Reading the rules says why.
        return frozenset()


@cache
def _warn_of_misspelt(name: str, meant: str) -> None:
    """Warn once per process, however often the settings are read."""
    logger.warning("%s is not a setting and has no effect; did you mean %s?", name, meant)


@cache
def _warn_of_unknown(name: str) -> None:
    logger.warning("%s is neither a setting nor named in a file of alert rules, and has no effect.", name)
