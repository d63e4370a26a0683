"""Serving the reports of a lake, and the notebooks, to a browser on this machine that knows the token."""

import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from pipeline.domain.errors import InputError
from pipeline.domain.texts import one_line, quoted, shortened
from pipeline.lake import Lake
from pipeline.report.guard import Guard, Key

_HOST = "127.0.0.1"
# Connections that wait until the server is ready.
_WAITING = 128
_NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
_LONGEST_REASON = 200

logger = logging.getLogger(__name__)


def application(lake: Lake, key: Key) -> Starlette:
    """Return the web application: `/reports/` is the lake's folder of that name, `/notebooks/…` are the notebooks.

    The notebooks read the published file of the settings; without installed notebooks there are only reports. Requests
    without the token of `key`, or from pages of other sites, are refused: see `guard`.
    Raises InputError if there are no reports yet.
    """
    folder = lake.reports
    if not (folder / "index.html").exists():
        command = (
            "Write them: nightaudit report" if lake.published_file.exists() else "Run a night first: nightaudit nightly"
        )
        raise InputError(f"There are no reports yet under {folder}.", hint=command)
    notebooks = _notebooks() if notebook_names() else None
    return Starlette(
        routes=[
            Route("/", lambda _: RedirectResponse("/reports/")),
            Mount("/reports", StaticFiles(directory=folder, html=True)),
            *([Mount("/notebooks", _Failures(notebooks))] if notebooks else []),
        ],
        lifespan=_ending(notebooks),
        middleware=[Middleware(Guard, key)],
    )


def notebook_names() -> list[str]:
    """Return the names of the notebooks; none if only the packages are installed."""
    return sorted(file.stem for file in _NOTEBOOKS.glob("*.py"))


class _Failures:
    """ASGI middleware that logs what fails in a notebook's request in one line.

    The notebooks' server answers with an error and then raises, and a page of traceback for each malformed request
    would bury the printed addresses.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            reason = shortened(one_line(f"{type(error).__name__}: {error}"), _LONGEST_REASON)
            logger.warning("A request for %s failed: %s", quoted(scope["path"]), reason)
            logger.debug("Where it failed:", exc_info=error)


def _ending(notebooks: Starlette | None) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    """Return a lifespan that ends the threads of opened notebooks, which would keep the process alive."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        for mount in notebooks.routes if notebooks else ():
            if isinstance(mount, Mount) and isinstance(mount.app, Starlette):
                await mount.app.state.session_manager.shutdown()

    return lifespan


def _notebooks() -> Starlette:
    import marimo

    builder = marimo.create_asgi_app(quiet=True, include_code=False)
    for name in notebook_names():
        builder = builder.with_app(path=f"/{name}", root=str(_NOTEBOOKS / f"{name}.py"))
    # The declared type is wider, for folders that are watched.
    return cast("Starlette", builder.build())


def serve_reports(lake: Lake, port: int, tell: Callable[[list[str]], None]) -> None:
    """Serve until interrupted. `tell` is called with the addresses and their token just before.

    Raises InputError if there are no reports, or the port is taken.
    """
    key = Key()
    app = application(lake, key)
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((_HOST, port))
        except OSError as error:
            raise InputError(f"Port {port} cannot be used: {error.strerror}.", hint="Choose another: --port") from None
        # An address that is opened at once waits for the server, and is not refused.
        bound.listen(_WAITING)
        own = f"http://{_HOST}:{port}"
        pages = [f"{own}/reports/", *(f"{own}/notebooks/{name}/" for name in notebook_names())]
        tell([key.address(page) for page in pages])
        config = uvicorn.Config(app, host=_HOST, port=port, log_level="warning", access_log=False)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[bound])
