"""The texts of the pages of the cluster and of the queue, in English and Russian."""

from __future__ import annotations

CLUSTER_WORDS: dict[str, tuple[str, str]] = {
    "use_over_time": ("Use", "Загрузка"),
    "range hour": ("last hour", "последний час"),
    "range day": ("last day", "последние сутки"),
    "range month": ("last 30 days", "последние 30 дней"),
    "whole_cluster": ("Whole cluster", "Весь кластер"),
    "use_of_cpu": ("CPU", "CPU"),
    "use_of_gpu": ("GPU", "GPU"),
    "use_of_memory": ("Memory", "Память"),
    "use_of_power": ("GPU power", "Мощность GPU"),
    "use_of_node_power": ("Power of whole nodes", "Мощность узлов целиком"),
    "use_of_waiting": ("Waiting jobs", "Ожидающие задания"),
    "allocated_by_slurm": ("allocated by Slurm", "выделено Slurm"),
    "used_measured": ("used, as measured", "использовано, по измерениям"),
    "no_use_yet": (
        "Nothing is recorded of this time. The server records the use once a minute.",
        "За это время записей нет. Сервер записывает загрузку раз в минуту.",
    ),
    "watts": ("W", "Вт"),
    "kilowatts": ("kW", "кВт"),
    "search_nodes": ("Node, user or job", "Узел, пользователь или задание"),
    "group_by": ("Grouped by", "Группы"),
    "group ": ("automatic", "автоматически"),
    "group rack": ("rack", "по стойкам"),
    "group type": ("node type", "по типам узлов"),
    "group partition": ("partition", "по разделам"),
    "group state": ("state", "по состоянию"),
    "group none": ("nothing", "без групп"),
    "shown_as": ("Shown as", "Вид"),
    "size ": ("automatic", "автоматически"),
    "size tiles": ("tiles", "плитки"),
    "size squares": ("squares", "квадраты"),
    "rack": ("Rack", "Стойка"),
    "no_rack": ("no rack in the name", "стойка в имени не указана"),
    "no_type": ("no type", "без типа"),
    "no_partition": ("in no partition", "вне разделов"),
    "no_state": ("no state", "без состояния"),
    "all_nodes": ("All nodes", "Все узлы"),
    "nodes_chosen": ("{chosen} of {all} nodes are shown.", "Показано узлов: {chosen} из {all}."),
    "nodes_cut": (
        "These are the first {most} of {all} nodes. To see the others, choose a rack, a type or a state, or "
        "search.",
        "Это первые {most} из {all} узлов. Чтобы увидеть остальные, выберите стойку, тип или состояние либо "
        "воспользуйтесь поиском.",
    ),
    "no_nodes": ("No node fits this choice.", "Подходящих узлов нет."),
    "tab now": ("Now", "Сейчас"),
    "tab waiting": ("Waiting jobs", "Очередь"),
    "tab wall": ("Wall", "На стену"),
    "waiting_jobs": ("Waiting jobs", "Задания в очереди"),
    "my_waiting_lines": ("Your waiting jobs", "Ваши задания в очереди"),
    "waiting_lines": ("Each waiting job", "Каждое задание в очереди"),
    "tasks_waiting": ("{count} tasks", "задач: {count}"),
    "longest_wait": ("Longest wait", "Дольше всего ждёт"),
    "expected_start": ("Expected start, UTC", "Ожидаемое начало, UTC"),
    "none_waits": ("No job waits.", "В очереди ничего нет."),
    "none_of_yours_waits": (
        "None of the jobs that you may see waits.",
        "Среди заданий, которые вам видны, в очереди ничего нет.",
    ),
    "lines_left_out": ("{count} more lines are not shown.", "Ещё строк не показано: {count}."),
    "lines_not_stored": (
        "The server keeps the {most} lines with the highest priority; {count} more wait.",
        "Сервер хранит {most} строк с наивысшим приоритетом; ещё ждут: {count}.",
    ),
    "last_years": (
        "of the jobs that ended in the {years}",
        "по заданиям, завершённым за {years}",
    ),
    "ended_in": ("Ended in the last", "Завершены за последние"),
    "sums wasted": ("the most wasteful", "с наибольшими потерями"),
    "sums used": ("the largest", "крупнейшие"),
    "each_month": ("Each month", "По месяцам"),
    "each_month_lead": (
        "A job counts in the month in which it ended (UTC); a user is new in the month of their first job "
        "that is known here. The figures are summed once an hour.",
        "Задание относится к месяцу, в котором завершилось (UTC); пользователь новый в месяце своего первого "
        "известного здесь задания. Суммы обновляются раз в час.",
    ),
    "month": ("Month", "Месяц"),
    "users": ("Users", "Пользователи"),
    "new_users": ("New users", "Новые пользователи"),
    "wall_loading": ("The figures are being loaded.", "Загрузка показателей."),
    "wall_login": (
        "This screen may not read the cluster. Log in, or open this page with #token= and a token with the "
        "scope cluster:read.",
        "У этого экрана нет доступа к данным кластера. Войдите или откройте страницу с #token= и токеном с "
        "правом cluster:read.",
    ),
    "nodes_cut_wall": ("The first {most} of {all} nodes.", "Первые {most} из {all} узлов."),
}
