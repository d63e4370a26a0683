"""`python -m pipeline.sandbox`: the sandbox in the foreground."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path

from pipeline.sandbox.faults.faults import FaultError, Faults, read_faults
from pipeline.sandbox.server.network import serve
from pipeline.sandbox.server.options import (
    DEFAULT_CLIENT_ID,
    DEFAULT_CLIENT_SECRET,
    LOOPBACK,
    Options,
)
from pipeline.sandbox.world.world import DEFAULT_MISSING_SHARE, DEFAULT_PLANT_SHARE, DEFAULT_PROPERTIES

_FAULTS = "faults to inject, as JSON, or @FILE to read them from a file. Keys: " + ", ".join(Faults.__struct_fields__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted. Returns 0 at the end, 1 where the address cannot be had, 2 on a wrong argument."""
    given = vars(_parser().parse_args(arguments))
    host, port = given.pop("host"), given.pop("port")
    try:
        options = Options(**given)
        options.world()
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    try:
        serve(options, host, port, announce=lambda base_url: _announce(base_url, options))
    except OSError as error:
        sys.stderr.write(
            f"The sandbox cannot listen on {host}:{port}: {error.strerror}. Choose another --host or --port.\n"
        )
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nightaudit sandbox", description="A simulated supplier.")
    parser.add_argument("--host", default=LOOPBACK, help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", type=_port, default=8787, help="port to listen on; 0 picks a free one (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the simulated world (default: %(default)s)")
    parser.add_argument(
        "--night",
        type=int,
        default=0,
        help="night of the world; prices change every night (default: %(default)s)",
    )
    parser.add_argument("--opened", type=_day, help="date of night 0 (default: --night days before --today)")
    parser.add_argument(
        "--clock", type=_instant, help="time of every answer, such as 2026-10-01T02:00:00Z (default: the real time)"
    )
    parser.add_argument(
        "--today",
        type=_day,
        help="the supplier's today: check-ins must be later (default: the clock's date, in UTC)",
    )
    parser.add_argument(
        "--properties",
        type=int,
        default=DEFAULT_PROPERTIES,
        help="number of simulated properties (default: %(default)s)",
    )
    parser.add_argument(
        "--plant-share",
        type=_share,
        default=DEFAULT_PLANT_SHARE,
        help="share of the properties with a planted anomaly, 0 to 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--missing-share",
        type=_share,
        default=DEFAULT_MISSING_SHARE,
        help="share of the properties whose answers lack documented fields, 0 to 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--story", type=_count, default=0, help="number of nights over which planted anomalies begin and end; 0: none"
    )
    parser.add_argument(
        "--conditions-share",
        type=_share,
        default=0.0,
        help="share of the properties with a minimum stay, a supplement for several rooms, or full board beside room "
        "only, 0 to 1 (default: %(default)s)",
    )
    parser.add_argument("--no-nulls", dest="nulls", action="store_false", help="omit fields whose value is null")
    parser.add_argument(
        "--client-id", default=DEFAULT_CLIENT_ID, help="client id that is granted a token (default: %(default)s)"
    )
    parser.add_argument("--client-secret", default=DEFAULT_CLIENT_SECRET, help="its secret (default: %(default)s)")
    parser.add_argument(
        "--expires-in",
        dest="expires_in_s",
        metavar="EXPIRES_IN",
        type=int,
        default=3600,
        help="lifetime of a token in seconds (default: %(default)s)",
    )
    parser.add_argument(
        "--rate-type-optional",
        dest="rate_type_required",
        action="store_false",
        help="accept searches without a rateType",
    )
    parser.add_argument("--faults", type=_faults, default="{}", help=_FAULTS)
    return parser


# What an argument is read with raises ArgumentTypeError: argparse names the option then, and ends with 2.


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        msg = f"{text!r} is not an instant like 2026-10-01T02:00:00Z"
        raise argparse.ArgumentTypeError(msg) from None
    if instant.tzinfo is None:
        msg = f"{text!r} has no time zone; in UTC it ends in Z, like 2026-10-01T02:00:00Z"
        raise argparse.ArgumentTypeError(msg)
    return instant.astimezone(UTC)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        msg = f"{text!r} is not a day like 2026-10-01"
        raise argparse.ArgumentTypeError(msg) from None


def _port(text: str) -> int:
    return int(_within(text, int, 0, 65535, "0 to 65535"))


def _count(text: str) -> int:
    return int(_within(text, int, 0, math.inf, "0 or more"))


def _share(text: str) -> float:
    return _within(text, float, 0, 1, "0 to 1")


def _within(text: str, kind: Callable[[str], float], least: float, most: float, words: str) -> float:
    with suppress(ValueError):
        if least <= (value := kind(text)) <= most:
            return value
    msg = f"must be {words}, not {text}"
    raise argparse.ArgumentTypeError(msg)


def _faults(text: str) -> Faults:
    try:
        return read_faults(Path(text[1:]).read_bytes() if text.startswith("@") else text.encode())
    except OSError as error:
        msg = f"{text[1:]} cannot be read: {error.strerror}"
        raise argparse.ArgumentTypeError(msg) from None
    except FaultError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _announce(base_url: str, options: Options) -> None:
    sys.stdout.write(
        f"Simulated supplier at {base_url} (client id {options.client_id}, night {options.night}, "
        f"{options.properties} properties). Ctrl-C ends it.\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
