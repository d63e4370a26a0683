"""A blocked night is reported through Prefect's own notification blocks as well."""

from __future__ import annotations

import pytest
from tiny_night import receiving

from pipeline.domain.errors import SettingsError


@pytest.mark.usefixtures("server")
def test_a_notification_block_reaches_a_real_receiver():
    from prefect.blocks.notifications import CustomWebhookNotificationBlock
    from prefect.blocks.system import Secret

    from flows.notify import notification_block

    said = {"text": "{{body}}", "subject": "{{subject}}"}
    with receiving() as (address, got):
        hook = CustomWebhookNotificationBlock(name="watch", url=address, method="POST", json_data=said)
        hook.save("watch", overwrite=True)
        notification_block("custom-webhook/watch")("a subject", "a cause")
    assert got == [{"text": "a cause", "subject": "a subject"}]
    Secret(value="x").save("no-watch", overwrite=True)
    with pytest.raises(SettingsError, match="not a notification block"):
        notification_block("secret/no-watch")("a subject", "a cause")


@pytest.mark.usefixtures("server")
def test_a_block_that_would_keep_its_failure_to_itself_fails_aloud():
    from prefect.blocks.abstract import NotificationError
    from prefect.blocks.notifications import MattermostWebhook

    from flows.notify import notification_block

    MattermostWebhook(name="away", hostname="127.0.0.1", port=9, token="t0ken").save("away")
    with pytest.raises(NotificationError):
        notification_block("mattermost-webhook/away")("a subject", "a cause")
