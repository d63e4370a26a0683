"""`nightaudit sandbox` and `python -m pipeline.sandbox`: the sandbox in the foreground."""

import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from pipeline.sandbox.faults.faults import FaultError, Faults, read_faults
from pipeline.sandbox.faults.faults_said import faults_said
from pipeline.sandbox.server.network import serve
from pipeline.sandbox.server.options import DEFAULT_CLIENT_ID, DEFAULT_CLIENT_SECRET, LOOPBACK, Options
from pipeline.sandbox.world.world import DEFAULT_MISSING_SHARE, DEFAULT_PLANT_SHARE, DEFAULT_PROPERTIES

_FAULTS = "Faults to inject, as JSON, or @FILE to read them from a file. The keys are listed below."


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not an instant like 2026-10-01T02:00:00Z") from None
    if instant.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no time zone; in UTC it ends in Z, like 2026-10-01T02:00:00Z")
    return instant.astimezone(UTC)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a date like 2026-10-01") from None


def _read_faults(text: str) -> Faults:
    try:
        if text.startswith("@") and Path(text[1:]).exists() and not Path(text[1:]).is_file():
            # A pipe without a writer would be waited for.
            raise typer.BadParameter(f"{text[1:]} cannot be read: it is not a file")
        return read_faults(Path(text[1:]).read_bytes() if text.startswith("@") else text.encode())
    except OSError as error:
        raise typer.BadParameter(f"{text[1:]} cannot be read: {error.strerror}") from None
    except FaultError as error:
        raise typer.BadParameter(str(error)) from None


# Help in plain text: in the columns of a table, names would be cut on a narrow terminal.
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(epilog=faults_said())
def sandbox(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = LOOPBACK,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8787,
    seed: Annotated[int, typer.Option(help="Seed of the simulated world.")] = 1,
    night: Annotated[int, typer.Option(help="Night of the world; prices change every night.")] = 0,
    opened: Annotated[
        date | None, typer.Option(parser=_day, help="Date of night 0. Default: --night days before --today.")
    ] = None,
    clock: Annotated[
        datetime | None,
        typer.Option(parser=_instant, help="Time of every answer, such as 2026-10-01T02:00:00Z. Default: real time."),
    ] = None,
    today: Annotated[
        date | None,
        typer.Option(parser=_day, help="The supplier's today: check-ins must be later. Default: the clock's, in UTC."),
    ] = None,
    properties: Annotated[int, typer.Option(help="Number of simulated properties.")] = DEFAULT_PROPERTIES,
    plant_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the properties with a planted anomaly.")
    ] = DEFAULT_PLANT_SHARE,
    missing_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the properties whose answers lack documented fields.")
    ] = DEFAULT_MISSING_SHARE,
    story: Annotated[
        int, typer.Option(min=0, help="Number of nights over which planted anomalies begin and end; 0: none.")
    ] = 0,
    conditions_share: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Share of the properties with a minimum stay, a supplement for several rooms, or full board as well "
            "as room only.",
        ),
    ] = 0,
    nulls: Annotated[
        bool, typer.Option(" /--no-nulls", help="Omit fields whose value is null.", show_default=False)
    ] = True,
    client_id: Annotated[str, typer.Option(help="Client id that is granted a token.")] = DEFAULT_CLIENT_ID,
    client_secret: Annotated[str, typer.Option(help="Its secret.")] = DEFAULT_CLIENT_SECRET,
    expires_in_s: Annotated[int, typer.Option("--expires-in", help="Lifetime of a token in seconds.")] = 3600,
    rate_type_required: Annotated[
        bool, typer.Option(" /--rate-type-optional", help="Accept searches without a rateType.", show_default=False)
    ] = True,
    faults: Annotated[Faults, typer.Option(parser=_read_faults, metavar="JSON", help=_FAULTS)] = "{}",  # type: ignore[assignment]
) -> None:
    """Serve a simulated supplier until interrupted."""
    given = {name: value for name, value in context.params.items() if name not in {"host", "port"}}
    try:
        options = Options(**given)
        options.world()
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    try:
        serve(options, host, port, announce=lambda base_url: _announce(base_url, options))
    except OSError as error:
        why = f"The sandbox cannot listen on {host}:{port}: {error.strerror}. Choose another --host or --port."
        typer.echo(why, err=True)
        raise typer.Exit(1) from None


def _announce(base_url: str, options: Options) -> None:
    sys.stdout.write(
        f"Simulated supplier at {base_url} (client id {options.client_id}, night {options.night}, "
        f"{options.properties} properties). Ctrl-C ends it.\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    app()
