"""The body of a message: text in the markup of Slack or Mattermost, or JSON.

Users choose the names of jobs. In text they stand in a code span, where neither service looks for mentions,
links or markup; Slack's three special characters are escaped everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from peerway_common.printable import shortened
from peerway_jobs.rules.template import figure
from peerway_jobs.webhooks.events import Event
from peerway_jobs.webhooks.settings import Webhook, Webhooks

VERSION = 1
_MOST_TEXT = 12_000  # characters: Mattermost takes 16,383, Slack 40,000
_WORDS = {
    "en": {
        "jobs": "Inefficient jobs: {jobs}; {gpu} GPU-hours and {core} core-hours idle",
        "alarms": "New alarms about agents: {count}",
        "policies": "What policies did: {count}",
        "runs": "still running",
        "more": "And {more} more: {page}{path}",
        "dry": "dry run, nothing was done",
    },
    "ru": {
        "jobs": "Неэффективных заданий: {jobs}; простой {gpu} GPU-часов и {core} ядро-часов",
        "alarms": "Новые тревоги об агентах: {count}",
        "policies": "Действия политик: {count}",
        "runs": "ещё выполняется",
        "more": "И ещё {more}: {page}{path}",
        "dry": "пробный прогон, ничего не сделано",
    },
}  # fmt: skip
_PATHS = {"jobs": "/jobs?verdict=inefficient", "alarms": "/admin/alarms", "policies": "/admin/audit"}


def body(settings: Webhooks, hook: Webhook, event: Event, now: float) -> bytes:
    """The bytes to send for an event."""
    content: dict[str, Any]
    if hook.kind == "json":
        key = {"jobs": "jobs", "alarms": "alarms", "policies": "acts"}[event.kind]
        content = {
            "version": VERSION, "event": event.kind, "webhook": hook.name, "sent": now,
            "page": settings.page, "more": event.more, key: event.items,
        }  # fmt: skip
    else:
        content = {"text": text(settings.page, hook, event)}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def text(page: str, hook: Webhook, event: Event) -> str:
    """An event as text in the markup of the webhook's service."""
    plain = _slack if hook.kind == "slack" else str
    words = _WORDS[hook.language]
    items = event.items
    places = {
        "jobs": len(items) + event.more, "count": len(items) + event.more, "more": event.more, "page": page,
        "gpu": figure(sum(each.get("idle_gpu_hours", 0) for each in items), hook.language),
        "core": figure(sum(each.get("idle_core_hours", 0) for each in items), hook.language),
        "path": _PATHS[event.kind],
    }  # fmt: skip
    write = {"jobs": _job, "alarms": _alarm, "policies": _act}[event.kind]
    lines = [plain(words[event.kind].format(**places))]
    lines += [write(each, words, plain) for each in items]
    if event.more:
        lines.append(plain(words["more"].format(**places)))
    written = "\n".join(lines).replace("\u00a0", " ")
    return written if len(written) <= _MOST_TEXT else f"{written[:_MOST_TEXT]}…"


def _job(job: dict[str, Any], words: dict[str, str], plain: Callable[[str], str]) -> str:
    whose = code(f"{job['user']} {job['name']}", plain)
    more = f" ({plain(words['runs'])})" if job["running"] else ""
    lines = [f"• {job['url']} {whose}{more}"]
    for each in job["findings"][:2]:
        lines.append(f"    {plain(_one_line(each['tag']))}: {plain(_one_line(each['conclusion']))}")
        lines.append(f"    {plain(_one_line(each['advice']))}")
    return "\n".join(lines)


def _alarm(alarm: dict[str, Any], _: dict[str, str], plain: Callable[[str], str]) -> str:
    return f"• {code(alarm['node'], plain)} {plain(alarm['kind'])}: {code(alarm['text'], plain, 300)}"


def _act(act: dict[str, Any], words: dict[str, str], plain: Callable[[str], str]) -> str:
    whose = code(f"{act['user']} {act['account']}", plain)
    outcome = words["dry"] if act["dry"] else act["outcome"]
    return f"• {code(act['policy'], plain)} {act['act']} {act['job']} {whose}: {code(outcome, plain, 300)}"


def code(value: str, plain: Callable[[str], str], most: int = 80) -> str:
    """A value that others chose, as a code span."""
    return f"`{plain(shortened(value.strip(), most).replace('`', chr(39)))}`"


def _one_line(value: str) -> str:
    """A rule's text, which an administrator wrote, without what would be read as a mention."""
    return " ".join(value.split()).replace("@", "@\u200b")


def _slack(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
