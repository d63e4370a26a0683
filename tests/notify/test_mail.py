"""E-mail through a real SMTP server: what arrives, and why something does not, without showing the password."""

from __future__ import annotations

import shutil
import socketserver
import ssl
import threading
from contextlib import contextmanager
from email import message_from_bytes
from email.policy import default

import pytest
from certificates import self_signed

from pipeline.domain.errors import SettingsError
from pipeline.domain.servers import FORM, mailbox_of
from pipeline.lake import Lake
from pipeline.notify.alert_rules import AlertRules
from pipeline.notify.alerts import tell_alerts
from pipeline.notify.ways import NotDelivered, mail
from pipeline.settings import Settings, read_settings

TO = "from=nights@hotel.example&to=a@hotel.example,b@hotel.example"


class Mailbox(socketserver.ThreadingTCPServer):
    """A server that keeps what it is sent, refuses each login, and recipients whose names begin with `no`.

    It answers QUIT in a way that no server should: what it has accepted is delivered anyway.
    """

    allow_reuse_address = daemon_threads = True

    def __init__(self, banner=b"220 ready\r\n"):
        super().__init__(("127.0.0.1", 0), _Dialogue)
        self.banner = banner
        self.messages, self.recipients, self.said = [], [], []


class _Dialogue(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.server.banner)
        while line := self.rfile.readline():
            said = line.decode().strip()
            self.server.said.append(said)
            verb = said.partition(" ")[0].upper()
            if verb == "DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = []
                while (part := self.rfile.readline()) != b".\r\n":
                    lines.append(part)
                self.server.messages.append(message_from_bytes(b"".join(lines), policy=default))
            if verb == "RCPT":
                if "<no" in said:
                    self.wfile.write(b"550 unknown\r\n")
                    continue
                self.server.recipients.append(said)
            if verb == "AUTH":
                self.wfile.write(b"535 refused\r\n")
                continue
            self.wfile.write(b"250-hotel\r\n250 AUTH PLAIN\r\n" if verb == "EHLO" else b"250 fine\r\n")


@contextmanager
def mailbox(**how):
    server = Mailbox(**how)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server, f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def failure(address: str) -> str:
    with pytest.raises(NotDelivered) as found:
        mail(address)("subject", "text")
    return str(found.value)


def test_a_message_arrives_with_its_subject_and_its_text():
    with mailbox() as (server, host):
        mail(f"smtp://{host}/?{TO}")("2 new:\nBcc: x@y.example", "Zürich: −15.4 %\nsee reports/index.html")
    (message,) = server.messages
    # One header, whatever a name holds.
    assert message["Subject"] == "2 new: Bcc: x@y.example"
    assert message["Bcc"] is None
    assert message["From"] == "nights@hotel.example"
    assert message.get_content().splitlines() == ["Zürich: −15.4 %", "see reports/index.html"]
    assert len(server.recipients) == 2


def test_a_recipient_that_is_refused_costs_the_others_nothing(caplog):
    with mailbox() as (server, host):
        mail(f"smtp://{host}/?from=a@b.example&to=nobody@b.example,c@b.example")("subject", "text")
        assert len(server.messages) == 1
        assert "1 of 2 recipients of an e-mail were refused." in caplog.text
        assert failure(f"smtp://{host}/?from=a@b.example&to=nobody@b.example") == "its server refused every recipient"


def test_a_refused_password_is_reported_without_it():
    with mailbox() as (_, host):
        assert failure(f"smtp://user:hidden-part@{host}/?{TO}") == "its server refused user or password"


def test_a_certificate_without_a_trusted_signature_gets_nothing(tmp_path):
    certificate, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with mailbox() as (server, host):
        server.socket = context.wrap_socket(server.socket, server_side=True)
        why = failure(f"smtps://user:hidden-part@{host}/?{TO}")
        assert why == "its server's certificate is not trusted"
        assert server.said == []


def test_a_server_elsewhere_gets_nothing_without_tls(monkeypatch):
    with mailbox() as (server, host):
        monkeypatch.setattr("pipeline.notify.ways.is_loopback", lambda _: False)
        assert failure(f"smtp://user:hidden-part@{host}/?{TO}") == "its server offers no TLS, or no login"
        assert not any(line.startswith(("AUTH", "MAIL", "DATA")) for line in server.said)


def test_a_server_that_is_not_there_or_has_no_time_is_reported():
    with mailbox() as (_, host):
        pass
    assert failure(f"smtp://{host}/?{TO}") == "it could not be reached (ConnectionRefusedError)"
    with mailbox(banner=b"421 too busy\r\n") as (_, host):
        assert failure(f"smtp://{host}/?{TO}") == "its server answered 421"


@pytest.mark.parametrize(
    "address",
    ["https://hotel.example/hook", "smtp://hotel.example", "smtp://hotel.example/?from=a@b.example", f"smtp:///?{TO}",
     "smtp://hotel.example/?from=a@b.example&to=nobody", "smtp://hotel.example/?from=a@b.example&to=c@d.example&bcc=e@f.example",
     "smtp://hotel.example:hidden/?from=a@b.example&to=c@d.example", f"smtp://hotel.example/path?{TO}", f"smtp://hotel..example/?{TO}",
     "smtp://hotel.example/?from=a@b.example&to=c@d.example%0ADATA"],
)  # fmt: skip
def test_an_address_that_is_none_is_reported_with_the_form(address):
    assert failure(address) == f"its address is not of the form {FORM}"


def test_a_wrong_address_in_the_settings_is_refused_at_once_without_its_password(monkeypatch):
    monkeypatch.setenv("NIGHTAUDIT_NOTIFY_MAIL", "smtps://user:hidden-part@hotel.example")
    with pytest.raises(SettingsError) as refused:
        read_settings()
    assert FORM in str(refused.value)
    assert "hidden-part" not in str(refused.value)


def test_nothing_that_is_printed_of_an_address_holds_its_password():
    address = f"smtps://user:hidden-part@hotel.example/?{TO}"
    assert "hidden-part" not in repr(mailbox_of(address)) + repr(Settings(notify_mail=address))
    assert mailbox_of(address).password == "hidden-part"
    assert mailbox_of(f"smtps://a%40b:p%2Fq@hotel.example/?{TO}").user == "a@b"


def test_a_receiver_is_notified_by_mail_as_by_webhook(a_night, tmp_path, monkeypatch):
    lake = Lake(str(tmp_path / "lake"))
    shutil.copytree(a_night.root, lake.root)
    rule = {"name": "sweeps", "relation": "mart.sweep", "key": ["sweep_id"], "who": ["desk"]}
    rules = AlertRules.model_validate({"rule": [rule], "receiver": {"desk": {"mail_from": "DESK_MAIL"}}})
    with mailbox() as (server, host):
        monkeypatch.setenv("DESK_MAIL", f"smtp://{host}/?{TO}")
        for _ in range(2):
            (reported,) = tell_alerts(lake, rules, "reports/index.html")
            assert reported.failure is None
    (message,) = server.messages
    assert message["Subject"] == "nightaudit [warning] sweeps: 1 new"
    assert "reports/index.html" in message.get_content()
