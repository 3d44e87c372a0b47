"""Sends the mails that are due, within the limits, and records them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from peerway_jobs.mail.digest import digests, message
from peerway_jobs.mail.post import Never, NotNow, send
from peerway_jobs.mail.settings import Mail
from peerway_jobs.monitor import Monitor

# How long the texts of sent mails stay in the database. When a person got one stays: `peerway jobs usage
# --notices` compares their jobs before and after the first.
KEPT_S = 90 * 86_400
_EVERY_S = 60
_PAUSE_S = 600  # after the mail server did not accept a mail


class Notices:
    """Sends a server's mails."""

    def __init__(self, monitor: Monitor, mail: Mail, tell: Callable[[str], None]) -> None:
        self._monitor, self._mail, self._tell = monitor, mail, tell
        self._reported = ""

    def work(self, stop: threading.Event) -> None:
        """Send due mails once a minute, until `stop` is set."""
        pause = 0.0
        while not stop.wait(pause):
            try:
                if self._monitor.jobs.database.leads():
                    self.send_due()
                pause, self._reported = _EVERY_S, ""
            except NotNow as error:
                pause = _PAUSE_S
                if str(error) != self._reported:
                    self._tell(
                        f"no mail goes out now, all is tried again in {_PAUSE_S // 60} minutes: {error}"
                    )
                self._reported = str(error)
            except Exception as error:
                pause = _PAUSE_S
                self._tell(f"notices: {type(error).__name__}: {error}")

    def send_due(self) -> int:
        """Send the mails that are due; returns how many were sent. Raises NotNow.

        A mail is recorded after it was handed over. So a crash in between sends it twice, but never loses it.
        """
        jobs, now = self._monitor.jobs, self._monitor.clock()
        jobs.write("DELETE FROM notices WHERE sent < ? AND body LIKE 'refused:%'", (now - KEPT_S,))
        jobs.write("UPDATE notices SET body = '' WHERE sent < ? AND body != ''", (now - KEPT_S,))
        lately = jobs.reader.execute("SELECT count(*) FROM notices WHERE sent > ?", (now - 3600,)).fetchone()[
            0
        ]
        sent = 0
        for digest in list(digests(jobs, self._mail, now))[: max(0, self._mail.most_an_hour - lately)]:
            email = message(jobs, self._mail, digest, now)
            body = email.as_string()
            try:
                send(self._mail, email)
                sent += 1
            except Never as error:  # tried again when the person's next mail is due
                self._tell(f"no mail can be sent to {email['To']}: {error}")
                body = f"refused: {error}"
            jobs.write("INSERT INTO notices VALUES (?, ?, ?)", (digest.user, now, body))
        return sent
