"""`SupplierClient`: one search in, one `Answer` out. It fetches and nothing else: no decoding, no inflating.

It drives the authentication flow over the transport itself, without `httpx.AsyncClient`. So each request, including
repeated ones and those for tokens, takes a slot just before it is sent; bodies are read within a limit; redirects are
only followed within the origin; no cookie is kept; and a request takes about half the CPU time.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import cache
from typing import Self

import httpx

from pipeline.domain.errors import CHECK_SCOPES, SupplierUnreachable, TokenRefused
from pipeline.domain.search import Operation
from pipeline.settings import Clock, Settings, utc_now
from pipeline.supplier.answer import Answer, Failure
from pipeline.supplier.auth import TOKEN_PATH, USER_AGENT, ClientCredentials, TokenUnavailable
from pipeline.supplier.connection import PooledTransport
from pipeline.supplier.envelope import has_offers
from pipeline.supplier.exchange import Limits, failure_of_reply
from pipeline.supplier.pacer import Allowance, Pace, Unlimited
from pipeline.supplier.retries import CONCERNS_THE_SWEEP, RETRIED, Backoff, retry_after_seconds
from pipeline.supplier.sender import Sender, pace_of

_HEADER_CHARACTERS = 200


class SupplierClient:
    """Asks the supplier: one client, one pool and one pacer per process. An async context manager.

    Any number of tasks may call `ask` at once: `concurrency` limits the requests in flight, `pacer` their rate.
    `wall_clock` dates answers, and a Retry-After with a date is counted from it.
    """

    def __init__(
        self,
        base_url: str,
        auth: ClientCredentials,
        *,
        pacer: Pace,
        limits: Limits,
        concurrency: int = 4,
        attempts: int = 4,
        allowance: Allowance | None = None,
        backoff: Backoff | None = None,
        transport: Callable[[str], httpx.AsyncBaseTransport] = PooledTransport,
        wall_clock: Clock = utc_now,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._auth = auth
        self._pacer = pacer
        self._in_flight = asyncio.Semaphore(concurrency)
        self._attempts = attempts
        self._limits = limits
        self._sender = Sender(
            pacer, limits, allowance or Unlimited(), transport=transport, wall_clock=wall_clock, sleep=sleep
        )
        self._backoff = backoff or Backoff()
        self._wall_clock = wall_clock
        self._sleep = sleep
        self._was_ever_reached = False
        self._is_a_quote_allowed = False
        self._urls = {operation: httpx.URL(f"{self.base_url}{operation.path}") for operation in Operation}
        self._headers = httpx.Headers(
            {
                "Accept": "application/json",
                "Accept-Encoding": "gzip",
                "Content-Type": "application/json",
                "User-Agent": USER_AGENT,
            }
        )

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        base_url: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        allowance: Allowance | None = None,
        now: Clock | None = None,
        tokens: dict[str, ClientCredentials] | None = None,
    ) -> Self:
        """Return the client that `settings` describe; the other arguments override them (the sandbox).

        It continues with the token of the last client in `tokens`, and takes its place there.
        """
        base = base_url or settings.base_url or ""
        auth_url = base if base_url else settings.auth_url or base
        secret = settings.client_secret.get_secret_value() if settings.client_secret else ""
        auth = ClientCredentials(
            auth_url.rstrip("/") + TOKEN_PATH,
            client_id or settings.client_id or "",
            client_secret or secret,
            scopes=settings.scopes,
            credentials=settings.credentials,
        )
        if tokens is not None:
            if last := tokens.get(auth.address):
                auth.take_over(last)
            tokens[auth.address] = auth
        return cls(
            base,
            auth,
            pacer=pace_of(settings, base),
            concurrency=settings.in_flight,
            attempts=settings.attempts,
            limits=Limits(settings.connect_timeout_seconds, settings.read_timeout_seconds, settings.max_body_bytes),
            allowance=allowance,
            wall_clock=now or settings.clock,
        )

    async def __aenter__(self) -> Self:
        self._sender.open(self.base_url, self._auth.address)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sender.close()

    @property
    def paced_seconds(self) -> float:
        """Total seconds that searches have waited for their turn."""
        return self._sender.paced_seconds

    async def ask(self, operation: Operation, body: bytes, *, attempts: int | None = None) -> Answer:
        """Send `body` and return the answer, or why there is none after all attempts.

        `attempts` overrides the client's. A quote is sent once, even after a 401, because it makes a reservation, and
        a broken connection does not show whether it was made; the next quote has a new token.

        Raises what ends a sweep or a run of quotes: TokenRefused (by the token endpoint, or because quotes are
        forbidden), SweepStopped (the day's calls are used up), and SupplierUnreachable if no connection was ever made.
        """
        most = 1 if operation is Operation.QUOTE else attempts or self._attempts
        number, answer = 1, await self._attempt(operation, body, 0)
        while answer.failure in RETRIED and number < most:
            if self._concerns_all(answer):
                self._hold_all(answer, number)
            else:
                await self._sleep(self._backoff.seconds(number))
            number, answer = number + 1, await self._attempt(operation, body, answer.attempts)
        if self._concerns_all(answer):
            # The attempts are used up, but the other searches must wait.
            self._hold_all(answer, number)
        if answer.failure is Failure.UNREACHABLE and not self._was_ever_reached:
            raise SupplierUnreachable(
                f"The supplier could not be reached: {answer.failure_detail}",
                hint=f"Check NIGHTAUDIT_BASE_URL ({self.base_url}), NIGHTAUDIT_AUTH_URL and the network.",
            )
        return answer

    @staticmethod
    def _concerns_all(answer: Answer) -> bool:
        return answer.failure in RETRIED and (
            answer.failure in CONCERNS_THE_SWEEP or "retry-after" in answer.headers_of_interest
        )

    def _hold_all(self, answer: Answer, number: int) -> None:
        stated = answer.headers_of_interest.get("retry-after")
        asked_for = retry_after_seconds(stated, self._wall_clock()) or 0.0
        self._pacer.pause(max(asked_for, self._backoff.seconds(number)))

    async def _attempt(self, operation: Operation, body: bytes, sent: int) -> Answer:
        """Return the answer to one attempt, after `sent` requests; it may include a token request and a repeat."""
        request = httpx.Request("POST", self._urls[operation], headers=self._headers, content=body)
        async with self._in_flight, aclosing(self._auth.async_auth_flow(request)) as flow:
            begun_at = self._wall_clock()
            try:
                outgoing = await anext(flow)
                answer: Answer | None = None
                while True:
                    if outgoing is not request:
                        response = await self._sender.token(outgoing)
                    elif answer is not None and operation is Operation.QUOTE:
                        return answer
                    else:
                        answer = await self._search(operation, request, sent)
                        sent = answer.attempts
                        if answer.http_status is None:
                            return answer
                        response = _of_status(answer.http_status)
                    try:
                        outgoing = await flow.asend(response)
                    except StopAsyncIteration:
                        assert answer is not None  # noqa: S101 - the flow ends after the request alone
                        return answer
            except TokenUnavailable as error:
                return Answer(
                    None,
                    "",
                    "",
                    b"",
                    begun_at,
                    self._wall_clock(),
                    sent,
                    Failure.UNREACHABLE if error.is_unreachable else Failure.NO_TOKEN,
                    f"token endpoint: {self._auth.secrets.redact(str(error))}",
                    {"retry-after": error.retry_after} if error.retry_after else {},
                )

    async def _search(self, operation: Operation, request: httpx.Request, sent: int) -> Answer:
        """Send a search, after `sent` requests, and return its answer, without the secrets that it repeats."""
        may_move = operation is not Operation.QUOTE
        reply, started_at, sent = await self._sender.search(request, sent, may_move=may_move)
        secrets, limit = self._auth.secrets, self._limits.body_bytes
        # Cut only now: the beginning of a secret would not be recognised.
        headers = {name: secrets.redact_answered(value)[:_HEADER_CHARACTERS] for name, value in reply.headers.items()}
        reply.headers = headers
        failure, detail = failure_of_reply(operation, reply, limit)
        self._was_ever_reached |= failure is not Failure.UNREACHABLE
        if operation is Operation.QUOTE:
            self._refuse_forbidden_quotes(reply.status, is_allowed=failure is None)
        # Only the beginning of a body that is too large could be searched for secrets and kept.
        body = b"" if failure is Failure.BODY_TOO_LARGE else reply.body
        encoding = headers.get("content-encoding", "")
        is_error = reply.status != httpx.codes.OK
        if body and (is_error or not has_offers(operation, body, encoding)):
            # Some suppliers repeat the token in their error, and its text is shown and exported.
            body, encoding = secrets.redact_body(body, encoding, limit_bytes=limit, is_error=is_error)
        return Answer(
            reply.status,
            headers.get("content-type", ""),
            encoding,
            body,
            started_at,
            self._wall_clock(),
            sent,
            failure,
            secrets.redact(detail) if detail else "",
            headers,
        )

    def _refuse_forbidden_quotes(self, status: int | None, *, is_allowed: bool) -> None:
        """Raise TokenRefused if a quote is forbidden and none was allowed before: the token lacks the scope."""
        self._is_a_quote_allowed |= is_allowed
        if status == httpx.codes.FORBIDDEN and not self._is_a_quote_allowed:
            raise TokenRefused(
                f"The supplier answered {status} to the quote: its token does not allow quotes.", hint=CHECK_SCOPES
            )


@cache
def _of_status(status: int) -> httpx.Response:
    """Return a response for the authentication flow, which reads its status alone."""
    return httpx.Response(status)
