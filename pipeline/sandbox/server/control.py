"""The control surface below `/sandbox/`: not part of the contract, needs no token, meant for the loopback only.

GET  health · served · planted · properties · rates · faults
POST faults (replaces all; `{}` clears) · night (`{"night": 7, "today": "2031-05-01"}`, each optional; `clock` is the
     instant that answers of that night are dated with)
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pipeline.sandbox.faults.faults import FaultError, read_faults
from pipeline.sandbox.world.fx import MARKUP, REFERENCE_RATES

if TYPE_CHECKING:
    from pipeline.sandbox.server.app import SandboxApp


class _Night(msgspec.Struct, forbid_unknown_fields=True):
    night: int | None = None
    today: date | None = None
    clock: datetime | None = None


def control(app: SandboxApp, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Return status and JSON body of a control request."""
    handlers = _HANDLERS.get(path.removeprefix("/sandbox/"))
    if handlers is None:
        return 404, msgspec.json.encode({"error": f"there is no {path}", "known": sorted(_HANDLERS)})
    handler = handlers.get(method)
    if handler is None:
        return 405, msgspec.json.encode({"error": f"{path} takes {' and '.join(handlers)}"})
    try:
        return 200, msgspec.json.encode(handler(app, body))
    except (FaultError, msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        return 400, msgspec.json.encode({"error": str(error)})


def _health(app: SandboxApp, _body: bytes) -> dict[str, Any]:
    world = app.world
    return {
        "status": "ok",
        "simulated": True,
        "seed": world.seed,
        "night": world.night,
        "today": world.today,
        "properties": world.properties,
    }


def _properties(app: SandboxApp, _body: bytes) -> dict[str, Any]:
    pairs = [{"branded": branded, "unbranded": unbranded} for branded, unbranded in app.world.opaque_pairs()]
    return {"property_ids": app.world.property_ids(), "opaque_pairs": pairs}


def _set_faults(app: SandboxApp, body: bytes) -> object:
    app.set_faults(read_faults(body))
    return app.faults.faults


def _set_night(app: SandboxApp, body: bytes) -> dict[str, Any]:
    asked = msgspec.json.decode(body, type=_Night)
    world = app.world
    night = world.night if asked.night is None else asked.night
    app.turn_to(world.at(night, asked.today or world.today), asked.clock)
    return _health(app, b"")


_Handler = Callable[["SandboxApp", bytes], object]
_HANDLERS: Final[dict[str, dict[str, _Handler]]] = {
    "health": {"GET": _health},
    "served": {"GET": lambda app, _body: app.served.as_form()},
    "planted": {"GET": lambda app, _body: {"anomalies": app.world.planted()}},
    "properties": {"GET": _properties},
    "rates": {"GET": lambda _app, _body: {"base": "EUR", "rates": REFERENCE_RATES, "markup": MARKUP}},
    "faults": {"GET": lambda app, _body: app.faults.faults, "POST": _set_faults},
    "night": {"POST": _set_night},
}
