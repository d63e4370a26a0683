"""Sending a message to a receiver: a subject and a text, by webhook, notification block or e-mail."""

import logging
import smtplib
import ssl
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import TypeVar

import httpx

from pipeline.domain.addresses import is_loopback
from pipeline.domain.errors import SettingsError
from pipeline.domain.servers import FORM, Mailbox, mailbox_of
from pipeline.notify.chat_card import card, is_of_teams

_TIMEOUT_SECONDS = 10.0
# A message is given up after this many timeouts, as each byte of an answer restarts that of a socket.
_MOST_TIMEOUTS = 4

Tell = Callable[[str, str], None]
T = TypeVar("T")

# By the name under which the outbox keeps what was sent.
Ways = Mapping[str, Tell]


class NotDelivered(Exception):
    """Why a message did not arrive; the text does not contain its address."""


def no_server(slug: str) -> SettingsError:
    """Return the error for a Prefect notification block without a Prefect server."""
    return SettingsError(
        f"The notification block {slug} needs a Prefect server, and none is configured (PREFECT_API_URL).",
        hint="Start one (prefect server start), save the block there and set PREFECT_API_URL to its address. Or use a "
        "webhook instead of the block: NIGHTAUDIT_NOTIFY_WEBHOOK, or webhook_from of the receiver.",
    )


def through(block: Callable[[str], Tell] | None, slug: str) -> Tell:
    """Return the way through a notification block; `block` is None without a Prefect server."""
    if block is None:
        raise no_server(slug)
    return block(slug)


def webhook(address: str) -> Tell:
    """Return the way to a web address. Chat services show `text` of the JSON; Teams gets a card.

    It raises NotDelivered.
    """
    # At INFO httpx logs each address, and this one contains a secret.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)

    def post(subject: str, text: str) -> int:
        message = {"subject": subject, "text": f"{subject}\n{text}"}
        content = card(subject, text) if is_of_teams(address) else message
        # Only the status is read, as a slow body would hold up the sender.
        with httpx.stream("POST", address, json=content, timeout=_TIMEOUT_SECONDS) as answer:
            return answer.status_code

    def tell(subject: str, text: str) -> None:
        try:
            status = _within(_TIMEOUT_SECONDS, lambda: post(subject, text))
        except httpx.TimeoutException:
            raise NotDelivered(f"no answer within {_TIMEOUT_SECONDS:.0f} seconds") from None
        except TimeoutError:
            raise NotDelivered(_too_slow(_TIMEOUT_SECONDS)) from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            raise NotDelivered("its address is not a web address") from None
        except httpx.TransportError as error:
            raise NotDelivered(f"it could not be reached ({type(error).__name__})") from None
        if not httpx.codes.is_success(status):
            raise NotDelivered(f"it answered {status}")

    return tell


def _too_slow(timeout_seconds: float) -> str:
    return f"no complete answer within {_MOST_TIMEOUTS * timeout_seconds:.0f} seconds"


def _within(timeout_seconds: float, send: Callable[[], T]) -> T:
    """Return what `send` returns; raise TimeoutError after some timeouts of its socket.

    Each byte restarts the timeout of a socket, so a receiver that sends one now and then would hold the lake.
    """
    sent: Future[T] = Future()

    def run() -> None:
        try:
            sent.set_result(send())
        except BaseException as error:
            sent.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return sent.result(_MOST_TIMEOUTS * timeout_seconds)


logger = logging.getLogger(__name__)

_MAIL_SECONDS = 30.0


def mail(address: str) -> Tell:
    """Return the way to an e-mail address like FORM. It raises NotDelivered, also if the form is wrong.

    `smtps` starts with TLS, `smtp` switches to it (STARTTLS). Without TLS, mail goes only to a server on this machine.
    User and password are percent-encoded.
    """

    def tell(subject: str, text: str) -> None:
        try:
            mailbox = mailbox_of(address)
        except ValueError:
            raise NotDelivered(f"its address is not of the form {FORM}") from None
        message = EmailMessage()
        # A line break would end the header.
        message["Subject"] = " ".join(subject.split())
        message["From"], message["To"] = mailbox.sender, ", ".join(mailbox.to)
        message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain=mailbox.sender.rpartition("@")[2])
        message.set_content(text)
        try:
            refused = _within(_MAIL_SECONDS, lambda: _send(mailbox, message))
        except smtplib.SMTPNotSupportedError:
            raise NotDelivered("its server offers no TLS, or no login") from None
        except smtplib.SMTPAuthenticationError:
            raise NotDelivered("its server refused user or password") from None
        except smtplib.SMTPRecipientsRefused:
            raise NotDelivered("its server refused every recipient") from None
        except smtplib.SMTPResponseException as error:
            raise NotDelivered(f"its server answered {error.smtp_code}") from None
        except ssl.SSLCertVerificationError:
            raise NotDelivered("its server's certificate is not trusted") from None
        except TimeoutError:
            raise NotDelivered(_too_slow(_MAIL_SECONDS)) from None
        except (smtplib.SMTPException, OSError) as error:
            raise NotDelivered(f"it could not be reached ({type(error).__name__})") from None
        if refused:
            logger.warning("%d of %d recipients of an e-mail were refused.", len(refused), len(mailbox.to))

    return tell


def _send(mailbox: Mailbox, message: EmailMessage) -> dict[str, tuple[int, bytes]]:
    """Send a message, and return the recipients that the server refused if it accepted others."""
    trusted = ssl.create_default_context()
    server = (
        smtplib.SMTP_SSL(mailbox.host, mailbox.port, timeout=_MAIL_SECONDS, context=trusted)
        if mailbox.is_tls
        else smtplib.SMTP(mailbox.host, mailbox.port, timeout=_MAIL_SECONDS)
    )
    try:
        if not mailbox.is_tls and not is_loopback(mailbox.host):
            server.starttls(context=trusted)
        if mailbox.user is not None:
            server.login(mailbox.user, mailbox.password)
        return server.send_message(message)
    finally:
        # The message is accepted, whatever the server answers now.
        with suppress(smtplib.SMTPException, OSError):
            server.quit()
