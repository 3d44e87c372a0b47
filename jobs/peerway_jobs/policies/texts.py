"""The mails of policies to the owners of jobs."""

from __future__ import annotations

from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from peerway_common.printable import shortened
from peerway_jobs.mail.settings import Mail
from peerway_jobs.policies.evidence import Idleness
from peerway_jobs.policies.settings import Policies, Policy
from peerway_jobs.rules.template import duration, gpus
from peerway_jobs.store.runs import Run

_WORDS = {
    "en": {
        "warn": "Job {job}: its GPUs have been idle for {idle}",
        "cancel": "Job {job} was cancelled: its GPUs were idle for {idle}",
        "what": "Your job {job} ({name}) holds {gpus}. None of them has computed for {idle}.",
        "then_warn": "Please cancel the job if it does not need them any more: scancel {job}",
        "then_hold": "If this is still so in {after}, new jobs of the account {account} are held until this "
        "job ends or computes again. To end it: scancel {job}",
        "then_cancel": "If this is still so in {after}, the job is cancelled. To end it yourself: "
        "scancel {job}",
        "was_cancelled": "You were warned, and the GPUs stayed idle. So the job was cancelled.",
        "end": "This is the policy {policy} of your centre. The figures: {page}/jobs/{job}",
    },
    "ru": {
        "warn": "Задание {job}: GPU простаивают {idle}",
        "cancel": "Задание {job} отменено: GPU простаивали {idle}",
        "what": "Ваше задание {job} ({name}) занимает {gpus}. Ни один из них не считал уже {idle}.",
        "then_warn": "Отмените задание, если GPU ему больше не нужны: scancel {job}",
        "then_hold": "Если через {after} ничего не изменится, новые задания счёта {account} будут задержаны, "
        "пока это задание не закончится или не начнёт считать. Отменить его: scancel {job}",
        "then_cancel": "Если через {after} ничего не изменится, задание будет отменено. Отменить самому: "
        "scancel {job}",
        "was_cancelled": "Вас предупредили, но GPU по-прежнему простаивали. Поэтому задание отменено.",
        "end": "Это политика {policy} вашего центра. Данные: {page}/jobs/{job}",
    },
}  # fmt: skip


def mail_about(
    act: str, policies: Policies, policy: Policy, mail: Mail, run: Run, idleness: Idleness, now: float
) -> EmailMessage:
    """The warning, or the mail after the job was cancelled."""
    lang, words = policies.language, _WORDS[policies.language]
    places = {
        "job": run.job, "name": shortened(run.name, 80), "gpus": gpus(run.gpus, lang),
        "idle": duration(idleness.idle_s or 0.0, lang), "after": duration(policy.after_warning_s, lang),
        "account": shortened(run.account, 80), "policy": policy.name, "page": policies.page,
    }  # fmt: skip
    then = "was_cancelled" if act == "cancel" else f"then_{policy.action}"
    parts = [words[name].format(**places) for name in ("what", then)]
    email = EmailMessage()
    email["From"], email["To"] = mail.sender, mail.to.replace("{user}", run.user)
    email["Subject"] = words[act].format(**places).replace("\u00a0", " ")
    email["Date"], email["Message-ID"] = formatdate(now), make_msgid(domain=mail.sender.partition("@")[2])
    email["Auto-Submitted"] = "auto-generated"
    text = "\n\n".join([*parts, "-- \n" + words["end"].format(**places)])
    email.set_content(text.replace("\u00a0", " ") + "\n")
    return email
