"""The text of one job for a terminal: `peerway jobs show` prints it, and the epilog appends it to the
output.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from peerway_common.printable import printable
from peerway_jobs.rules.template import cores, duration, gpus, hours, nodes, percent, plain, size
from peerway_jobs.store.runs import Run

WIDE = 100
_BAR = 20
_WORDS = {
    "en": {
        "job": "Job",
        "state": "State",
        "user": "User",
        "had": "Had",
        "time": "Time",
        "of": "of",
        "limit": "limit",
        "memory": "memory",
        "nobody": "not judged yet",
        "gpu_idle": "Idle GPU-hours",
        "core_idle": "Idle core-hours",
        "no data": "no data",
        "inefficient": "INEFFICIENT",
        "efficient": "efficient",
        "short": "too short to judge",
        "waiting": "not judged yet",
        "change": "To change",
        "verdict": "Verdict",
        "rules": "rules",
        "covered": "of its time has data",
        "nothing": "No rule found anything to improve.",
        "little": "No rule speaks of this job, but it used little of what it had.",
        "unremarkable": "no finding",
    },
    "ru": {
        "job": "Задание",
        "state": "Состояние",
        "user": "Пользователь",
        "had": "Выделено",
        "time": "Время",
        "of": "из",
        "limit": "лимит",
        "memory": "памяти",
        "nobody": "ещё не оценено",
        "gpu_idle": "GPU-часы простоя",
        "core_idle": "Ядро-часы простоя",
        "no data": "нет данных",
        "inefficient": "НЕЭФФЕКТИВНО",
        "efficient": "эффективно",
        "short": "слишком коротко",
        "waiting": "ещё не оценено",
        "change": "Что изменить",
        "verdict": "Оценка",
        "rules": "правила",
        "covered": "времени с данными",
        "nothing": "По правилам улучшать нечего.",
        "little": "Ни одно правило не сработало, но задание использовало малую часть выделенного.",
        "unremarkable": "без выводов",
    },
}


def summary(run: Run, verdict: dict[str, Any] | None, now: float, language: str = "en") -> str:
    """The text of one run; `now` (s since 1970) ends a run that is still going."""
    words = _WORDS[language]
    limit = f" {words['of']} {duration(run.time_limit, language)}" if run.time_limit else ""
    kind = f" ({printable(run.gpu_type)})" if run.gpu_type else ""
    held = f", {gpus(run.gpus, language)}{kind}" if run.gpus else ""
    memory = f", {size(run.memory, language)} {words['memory']}" if run.memory else ""
    begun = datetime.fromtimestamp(run.started, UTC).strftime("%Y-%m-%d %H:%M UTC") if run.started else "-"
    number = f" ({run.array or run.component})" if run.array or run.component else ""
    rows = [
        (words["job"], f"{run.job}{number} {printable(run.name)}"),
        (words["user"], f"{printable(run.user)} {printable(run.account)}".rstrip()),
        (words["state"], f"{run.state}" + (f" (exit {run.exit_code})" if run.exit_code else "")),
        (words["had"], f"{nodes(run.nodes, language)}, {cores(run.cores, language)}{held}{memory}"),
        (words["time"], f"{duration(run.elapsed(now), language)}{limit}, {begun}"),
    ]
    for name, value in (
        ("CPU", run.cpu_efficiency),
        ("GPU", run.gpu_efficiency),
        (words["memory"], run.memory_efficiency),
    ):
        if name != "GPU" or run.gpus:
            rows.append(
                (
                    name.capitalize() if name not in {"CPU", "GPU"} else name,
                    _bar(value, words["no data"], language),
                )
            )
    rows.append((words["verdict"], words.get(run.verdict, run.verdict)))
    if verdict:
        spent, covered = verdict["hours"], percent(verdict["hours"]["cpu_coverage"], language)
        rows[-1] = (
            words["verdict"],
            f"{rows[-1][1]}  ({words['rules']} {verdict['rules_hash']}, {covered} {words['covered']})",
        )
        if run.gpus:
            rows.append((words["gpu_idle"], hours(spent["idle_gpu_hours"], language)))
        rows.append((words["core_idle"], hours(spent["idle_core_hours"], language)))
    wide = max(len(name) for name, _ in rows)
    lines = [f"{name:<{wide}}  {value}" for name, value in rows]
    text = "\n".join([*lines, "", *_findings(verdict, words, language)])
    return plain(text).rstrip() + "\n"


def _bar(value: float | None, no_data: str, language: str) -> str:
    if value is None:
        return no_data
    full = round(min(max(value, 0), 1) * _BAR)
    return f"[{'|' * full}{' ' * (_BAR - full)}] {percent(value, language)}"


def _findings(verdict: dict[str, Any] | None, words: dict[str, str], language: str) -> list[str]:
    if verdict is None:
        return []
    if not verdict["findings"]:
        key = {"efficient": "nothing", "unremarkable": "little"}.get(verdict["state"])
        return [words[key]] if key else []
    lines: list[str] = []
    for each in verdict["findings"]:
        lines += _wrapped(f"* {printable(each['tag'][language])}: {each['conclusion'][language]}", "  ")
        lines += _wrapped(f"  {words['change']}: {each['advice'][language]}", "  ")
        if each.get("script"):
            lines.append(f"      {each['script']}")
    return lines


def _wrapped(text: str, indent: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, WIDE, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
