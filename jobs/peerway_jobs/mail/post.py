"""Sends one mail, by SMTP or through a sendmail command."""

from __future__ import annotations

import os
import smtplib
import ssl
import subprocess
from email.message import EmailMessage
from pathlib import Path

from peerway_common import atomic_file
from peerway_jobs.mail.settings import Mail

_TIMEOUT_S = 30
_MOST_PASSWORD = 1 << 16  # bytes
# How a sendmail command says that this mail will never do; all else may be different later.
_REFUSED = (os.EX_DATAERR, os.EX_NOUSER, os.EX_NOHOST)


class NotNow(Exception):
    """The mail server cannot be reached or accepts no mail now; a later try may succeed."""


class Never(Exception):
    """The mail server will never accept this mail."""


def send(mail: Mail, message: EmailMessage) -> None:
    """Send a mail. Raises NotNow, Never."""
    try:
        if mail.address.scheme == "sendmail":
            _by_command(mail, message)
        else:
            _by_smtp(mail, message)
    except (smtplib.SMTPRecipientsRefused, smtplib.SMTPDataError, smtplib.SMTPSenderRefused) as error:
        raise (Never if _permanent(error) else NotNow)(str(error)) from None
    except (OSError, smtplib.SMTPException, subprocess.TimeoutExpired) as error:
        raise NotNow(f"{mail.server}: {error.__class__.__name__}: {error}") from None


def _permanent(error: smtplib.SMTPException) -> bool:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= 500 for code, _ in error.recipients.values())
    return isinstance(error, smtplib.SMTPResponseException) and error.smtp_code >= 500


def _by_smtp(mail: Mail, message: EmailMessage) -> None:
    host, port = str(mail.address.hostname), mail.address.port or 0
    trust = ssl.create_default_context()
    encrypted = mail.address.scheme == "smtps"
    connection: smtplib.SMTP
    if encrypted:
        connection = smtplib.SMTP_SSL(host, port, timeout=_TIMEOUT_S, context=trust)
    else:
        connection = smtplib.SMTP(host, port, timeout=_TIMEOUT_S)
    with connection:
        connection.ehlo()
        if not encrypted and connection.has_extn("starttls"):
            connection.starttls(context=trust)
            encrypted = True
        if mail.user:
            if not encrypted:
                raise NotNow(f"{mail.server} offers no TLS: the password is not sent; use smtps://")
            connection.login(mail.user, _password(mail))
        connection.send_message(message)


def _password(mail: Mail) -> str:
    try:
        return atomic_file.text(Path(mail.password_file), _MOST_PASSWORD).strip()
    except ValueError as error:
        raise NotNow(str(error)) from None


def _by_command(mail: Mail, message: EmailMessage) -> None:
    command = [mail.address.path, "-i", "-f", mail.sender, "--", str(message["To"])]
    done = subprocess.run(
        command, input=message.as_bytes(), capture_output=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip()[:200]
        kind = Never if done.returncode in _REFUSED else NotNow
        raise kind(f"{mail.address.path} ended with {done.returncode}: {why}")
