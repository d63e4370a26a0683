"""Which machines send the searches of a night, and whether a worker of the cluster is able to."""

from dataclasses import dataclass

from pipeline.domain.errors import NightauditError
from pipeline.night.supplier import supplier_name
from pipeline.settings import Settings, read_settings
from pipeline.supplier.rate_mark import RateProbe


def store_of_workers(settings: Settings) -> str | None:
    """Return the rate store through which workers of a cluster share the rate; None: only this machine sends."""
    if settings.rate_store is None or settings.spread_over is None or why_alone(settings):
        return None
    return settings.rate_store.get_secret_value()


def why_alone(settings: Settings) -> str:
    """Return why the workers of a cluster send no searches by the settings of the night; empty: they do.

    The bundled sandbox answers the machine that started it, and live metrics count the requests of one process.
    """
    if settings.is_simulated:
        return "the bundled sandbox answers this machine alone"
    if settings.metrics_port is not None:
        return "NIGHTAUDIT_METRICS_PORT counts the requests of this machine alone"
    return "" if settings.rate_store is not None else "NIGHTAUDIT_RATE_STORE is not set"


def cannot_send(settings: Settings, supplier: str) -> str:
    """Return why a worker with these settings cannot send searches to a supplier, as a predicate; empty: it can."""
    needed = {"NIGHTAUDIT_BASE_URL": settings.base_url, "NIGHTAUDIT_RATE_STORE": settings.rate_store}
    if missing := [name for name, value in needed.items() if value is None]:
        return f"has no {' and no '.join(missing)}, so it cannot send searches"
    own = supplier_name(settings)
    return "" if own == supplier else f"names the supplier {own} in NIGHTAUDIT_BASE_URL (here: {supplier})"


@dataclass(frozen=True, slots=True)
class SenderProbe:
    """Whether a worker can send the searches of the nights of a machine with these settings."""

    supplier: str
    auth_url: str
    client_id: str
    shares_rate: RateProbe

    @classmethod
    def of(cls, settings: Settings, shares_rate: RateProbe) -> "SenderProbe":
        """Return the probe of the machine with these settings."""
        return cls(supplier_name(settings), _auth_url(settings), settings.client_id or "", shares_rate)

    def __call__(self) -> str:
        """Return why it cannot; empty: it can. The client secret never leaves its machine, so it is not compared."""
        try:
            settings = read_settings()
        except NightauditError as error:
            return f"cannot read its settings: {' '.join(error.message.split())}"
        if why := cannot_send(settings, self.supplier):
            return why
        if (own := _auth_url(settings)) != self.auth_url:
            return f"gets its tokens from {own} (here: {self.auth_url}; NIGHTAUDIT_AUTH_URL)"
        if settings.client_id != self.client_id:
            return f"uses the NIGHTAUDIT_CLIENT_ID {settings.client_id} (here: {self.client_id})"
        return self.shares_rate()


def _auth_url(settings: Settings) -> str:
    return (settings.auth_url or settings.base_url or "").rstrip("/")
