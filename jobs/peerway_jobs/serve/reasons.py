"""What Slurm's reasons for waiting mean, in plain words, in English and Russian."""

from __future__ import annotations

from peerway_jobs.rules.template import LANGUAGES

_LIMIT = (
    "a limit of the account, the user or the QOS is reached: the job starts when jobs under that limit end",
    "достигнут лимит аккаунта, пользователя или QOS: задание начнётся, когда завершатся задания под этим "
    "лимитом",
)
_NEVER = (
    "the job asks for more than a limit allows, and will never start as it is: change or cancel it",
    "задание запрашивает больше, чем разрешает лимит, и в таком виде не начнётся никогда: измените или "
    "отмените его",
)
REASONS: dict[str, tuple[str, str]] = {
    "Resources": (
        "it is among the next: it waits until enough of what it asks for is free",
        "оно среди ближайших: ждёт, пока освободится достаточно запрошенных ресурсов",
    ),
    "Priority": (
        "other jobs have a higher priority and come first",
        "впереди задания с более высоким приоритетом",
    ),
    "None": ("Slurm has not looked at it yet", "Slurm ещё не рассматривал его"),
    "Dependency": ("it waits for another job", "ждёт другого задания"),
    "DependencyNeverSatisfied": (
        "the job that it waits for failed, so it will never start: cancel it",
        "задание, которого оно ждёт, завершилось неудачно, поэтому оно не начнётся: отмените его",
    ),
    "BeginTime": ("its owner asked for a later start", "владелец запросил более поздний запуск"),
    "JobHeldUser": ("its owner holds it: scontrol release", "удержано владельцем: scontrol release"),
    "JobHeldAdmin": ("an administrator holds it", "удержано администратором"),
    "JobArrayTaskLimit": (
        "as many tasks of its array run as its owner allowed (%N)",
        "выполняется столько задач массива, сколько разрешил владелец (%N)",
    ),
    "ReqNodeNotAvail": (
        "a node that it needs is down, drained or reserved",
        "нужный ему узел выключен, выведен из работы или зарезервирован",
    ),
    "Reservation": ("it waits for its reservation to begin", "ждёт начала своего резервирования"),
    "Licenses": ("it waits for a licence", "ждёт лицензии"),
    "PartitionDown": ("its partition is down", "раздел выключен"),
    "PartitionInactive": ("its partition is inactive", "раздел неактивен"),
    "PartitionTimeLimit": _NEVER,
    "PartitionNodeLimit": _NEVER,
    "BadConstraints": (
        "no node can ever satisfy what it asks for: change or cancel it",
        "ни один узел не может удовлетворить запрос: измените или отмените задание",
    ),
    "JobHoldMaxRequeue": ("it failed to start too often", "слишком много неудачных запусков"),
    "launch_failed_requeued_held": (
        "it could not be started and is held; an administrator can release it",
        "не удалось запустить, удержано; администратор может снять удержание",
    ),
    "Prolog": ("its nodes are being prepared", "подготавливаются узлы"),
    "Cleaning": ("its last run is still being cleaned up", "завершается очистка после прошлого запуска"),
    "SchedDefer": ("Slurm's settings defer it", "отложено настройками Slurm"),
}


def explained(reason: str, language: str) -> str:
    """What a reason means; empty if it is not known here.

    Reasons of limits are many, such as QOSMaxGRESPerUser and AssocGrpCpuLimit; a limit of one job
    (MaxCpuPerJobLimit) is never satisfied by waiting.
    """
    texts = REASONS.get(reason)
    if texts is None and reason.startswith(("QOS", "Assoc")):
        texts = _NEVER if "PerJob" in reason or "PerNode" in reason or "WallDuration" in reason else _LIMIT
    if texts is None and reason.startswith("ReqNodeNotAvail"):  # it may name the nodes
        texts = REASONS["ReqNodeNotAvail"]
    return texts[LANGUAGES.index(language)] if texts else ""
