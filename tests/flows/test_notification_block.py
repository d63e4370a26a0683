"""A blocked night is told through Prefect's own notification blocks as well."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pipeline.domain.errors import SettingsError


@pytest.fixture
def receiver():
    told = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", told
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("prefect_records")
def test_a_notification_block_tells_a_real_receiver(receiver):
    from prefect.blocks.notifications import CustomWebhookNotificationBlock
    from prefect.blocks.system import Secret

    from flows.notify import notification_block

    address, told = receiver
    said = {"text": "{{body}}", "subject": "{{subject}}"}
    CustomWebhookNotificationBlock(name="watch", url=address, method="POST", json_data=said).save("watch")
    notification_block("custom-webhook/watch")("a subject", "a cause")
    assert told == [{"text": "a cause", "subject": "a subject"}]
    Secret(value="x").save("no-watch")
    with pytest.raises(SettingsError, match="not a notification block"):
        notification_block("secret/no-watch")("a subject", "a cause")


@pytest.mark.usefixtures("prefect_records")
def test_a_block_that_would_keep_its_failure_to_itself_fails_aloud():
    from prefect.blocks.abstract import NotificationError
    from prefect.blocks.notifications import MattermostWebhook

    from flows.notify import notification_block

    MattermostWebhook(name="away", hostname="127.0.0.1", port=9, token="t0ken").save("away")
    with pytest.raises(NotificationError):
        notification_block("mattermost-webhook/away")("a subject", "a cause")
