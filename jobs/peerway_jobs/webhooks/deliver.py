"""Sends the messages that are due, tries again after failures, and records each."""

from __future__ import annotations

import threading
from collections.abc import Callable

from peerway_jobs.monitor import Monitor
from peerway_jobs.store import deliveries
from peerway_jobs.webhooks.events import due
from peerway_jobs.webhooks.messages import body
from peerway_jobs.webhooks.post import Never, NotNow, send
from peerway_jobs.webhooks.settings import BadWebhooks, Webhook, Webhooks

_EVERY_S = 60.0
_PAUSE_S = 600.0  # after a service did not answer, or could not take a message
_REFUSED_PAUSE_S = 3600.0


class Deliveries:
    """Sends a server's messages. A webhook that fails pauses alone."""

    def __init__(self, monitor: Monitor, settings: Webhooks, tell: Callable[[str], None]) -> None:
        self._monitor, self._settings, self._tell = monitor, settings, tell
        self._begun = monitor.clock()
        self._not_before: dict[str, float] = {}
        self._reported: dict[str, str] = {}

    def work(self, stop: threading.Event) -> None:
        """Send due messages once a minute, until `stop` is set."""
        while not stop.wait(_EVERY_S):
            try:
                self.send_due()
            except Exception as error:
                self._report("webhooks", f"webhooks: {type(error).__name__}: {error}")

    def send_due(self) -> int:
        """Send the messages that are due; returns how many were sent.

        A message is recorded after it was sent. So a crash in between sends it twice, but never loses it.
        """
        sent = 0
        for hook in self._settings.hooks:
            if self._not_before.get(hook.name, 0.0) > self._monitor.clock():
                continue
            try:
                sent += self._send_of(hook)
                self._reported.pop(hook.name, None)
            except NotNow as error:
                self._pause(hook, error.pause_s or _PAUSE_S, f"takes no message now: {error}")
            except BadWebhooks as error:
                self._pause(hook, _PAUSE_S, f"cannot be used: {error}")
        return sent

    def _send_of(self, hook: Webhook) -> int:
        jobs, now, sent = self._monitor.jobs, self._monitor.clock(), 0
        for event in due(jobs, hook, self._settings.page, now, self._begun):
            try:
                send(hook, body(self._settings, hook, event, now))
            except Never as error:  # what it was about comes again with the next message
                deliveries.record(jobs, hook.name, event.kind, now, 0.0, f"refused: {error}")
                self._pause(hook, _REFUSED_PAUSE_S, f"refused a message about {event.kind}: {error}")
                break
            deliveries.record(jobs, hook.name, event.kind, now, event.upto, deliveries.SENT)
            sent += 1
        return sent

    def _pause(self, hook: Webhook, pause_s: float, why: str) -> None:
        self._not_before[hook.name] = self._monitor.clock() + pause_s
        self._report(
            hook.name, f"webhook {hook.name} {why}; all is tried again in {pause_s / 60:.0f} minutes"
        )

    def _report(self, name: str, text: str) -> None:
        """Log a failure once, not at each try."""
        if self._reported.get(name) != text:
            self._reported[name] = text
            self._tell(text)
