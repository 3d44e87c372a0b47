"""Fills figures into texts: {name:format} is replaced by a figure, written as the language writes it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from peerway_common.printable import printable

LANGUAGES = ("en", "ru")
FALLBACK = "en"  # if a rule has no text in a language

_PLACE = re.compile(r"\{([a-z_][a-z0-9_]*)(?::([a-z]+))?\}")
_BYTES = {
    "en": ("B", "KiB", "MiB", "GiB", "TiB", "PiB"),
    "ru": ("Б", "КиБ", "МиБ", "ГиБ", "ТиБ", "ПиБ"),
}
_TIME = {"en": ("d", "h", "min", "s"), "ru": ("сут", "ч", "мин", "с")}
_NO_DATA = {"en": "no data", "ru": "нет данных"}


def in_language(texts: Mapping[str, str], language: str) -> str:
    """The text in a language, or in English if there is none."""
    return texts.get(language) or texts[FALLBACK]


def decimal(value: float, digits: int, language: str) -> str:
    """A number with up to `digits` decimals, without trailing zeros, with the language's separators."""
    text = f"{value:,.{digits}f}"
    if digits:
        text = text.rstrip("0").rstrip(".")
    if language == "ru":
        text = text.replace(",", "\u00a0").replace(".", ",")
    return text


def number(value: float, language: str) -> str:
    """A whole number."""
    return decimal(round(value), 0, language)


def figure(value: float, language: str) -> str:
    """A number with up to one decimal."""
    return decimal(value, 1, language)


def hours(value: float, language: str) -> str:
    """Hours with up to one decimal, or two below 0.05 and "< 0.01" below 0.005: 1.26 -> "1.3",
    0.013 -> "0.01".
    """
    if 0 < value < 0.005:
        return f"<\u00a0{decimal(0.01, 2, language)}"
    return decimal(value, 2 if 0 < value < 0.05 else 1, language)


def percent(value: float, language: str) -> str:
    """A share: 0.123 -> "12 %"; with a decimal below 1 %: 0.004 -> "0.4 %"."""
    share = value * 100
    return f"{decimal(share, 1 if 0 < share < 1 else 0, language)}\u00a0%"


def size(value: float, language: str) -> str:
    """A number of bytes in its largest unit, such as "1.5 GiB"."""
    units, at = _BYTES[language], 0
    while abs(value) >= 1024 and at < len(units) - 1:
        value /= 1024
        at += 1
    return f"{decimal(value, 1 if value < 10 and at else 0, language)}\u00a0{units[at]}"


def duration(value: float, language: str) -> str:
    """A number of seconds in its two largest units, such as "2 d 3 h"."""
    seconds = round(value)
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    words = _TIME[language]
    if days:
        parts = [(days, words[0]), (hours, words[1])]
    elif hours:
        parts = [(hours, words[1]), (minutes, words[2])]
    elif minutes:
        parts = [(minutes, words[2]), (0, "")]
    else:
        parts = [(seconds, words[3])]
    return " ".join(f"{count}\u00a0{word}" for count, word in parts if count or len(parts) == 1)


def exact(value: float, language: str) -> str:
    """A figure as evidence: four significant digits if it is small, all integer digits if it is large."""
    if not math.isfinite(value):
        return _NO_DATA[language]
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.3e}".replace(".", "," if language == "ru" else ".")
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    return decimal(value, digits, language)


def gpus(value: float, language: str) -> str:
    """A number of GPUs: "1 GPU", "4 GPUs"; Russian writes "GPU" for any number."""
    return _counted(value, language, {"en": ("GPU", "GPUs", "GPUs"), "ru": ("GPU", "GPU", "GPU")})


def cores(value: float, language: str) -> str:
    """A number of cores: "1 core", "4 cores", "1 ядро", "4 ядра", "11 ядер"."""
    return _counted(value, language, {"en": ("core", "cores", "cores"), "ru": ("ядро", "ядра", "ядер")})


def nodes(value: float, language: str) -> str:
    """A number of nodes: "1 node", "4 nodes", "1 узел", "4 узла", "11 узлов"."""
    return _counted(value, language, {"en": ("node", "nodes", "nodes"), "ru": ("узел", "узла", "узлов")})


def last_days(count: int, language: str) -> str:
    """The days until now: "last day", "last 7 days", "последний день", "последние 3 дня"."""
    if count == 1:
        return {"en": "last day", "ru": "последний день"}[language]
    words = {"en": ("day", "days", "days"), "ru": ("день", "дня", "дней")}
    return f"{'last' if language == 'en' else 'последние'} {_counted(count, language, words)}"


def last_years(count: int, language: str) -> str:
    """The years until now: "last year", "last 3 years", "последний год", "последние 3 года"."""
    if count == 1:
        return {"en": "last year", "ru": "последний год"}[language]
    words = {"en": ("year", "years", "years"), "ru": ("год", "года", "лет")}
    return f"{'last' if language == 'en' else 'последние'} {_counted(count, language, words)}"


def is_singular(count: int, language: str) -> bool:
    """Whether the language puts the noun after this number in the singular: 1, and in Russian also 21,
    31, ...
    """
    return count % 10 == 1 and count % 100 != 11 if language == "ru" else count == 1


def _counted(value: float, language: str, words: dict[str, tuple[str, str, str]]) -> str:
    """An integer with its noun; `words` has the forms for 1, for 2 to 4 and for more."""
    count = round(value)
    if language == "ru":
        last, teens = count % 10, 10 < count % 100 < 20
        form = 2 if teens or last == 0 or last > 4 else 0 if is_singular(count, language) else 1
    else:
        form = 0 if is_singular(count, language) else 2
    return f"{number(count, language)}\u00a0{words[language][form]}"


FORMATS: dict[str, Callable[[float, str], str]] = {
    "number": number,
    "figure": figure,
    "percent": percent,
    "bytes": size,
    "duration": duration,
    "hours": hours,
    "gpus": gpus,
    "cores": cores,
    "nodes": nodes,
}


def plain(text: str) -> str:
    """The text with plain spaces: a terminal or file may show a no-break space as an escape."""
    return text.replace("\u00a0", " ")


def filled(template: str, figures: Mapping[str, Any], language: str) -> str:
    """The text with its figures; a figure without data becomes "no data"."""

    def value(place: re.Match[str]) -> str:
        figure_value, form = figures.get(place[1]), place[2]
        if figure_value is None:
            return _NO_DATA[language]
        return FORMATS[form](float(figure_value), language) if form else printable(str(figure_value))

    return _PLACE.sub(value, template)


def wrong(template: str, names: Iterable[str]) -> str | None:
    """Why a text cannot be used; None if it can."""
    known = set(names)
    for place in _PLACE.finditer(template):
        if place[1] not in known:
            return f"there is no figure {place[1]}; there are {', '.join(sorted(known)) or 'none'}"
        if place[2] and place[2] not in FORMATS:
            return f"there is no format {place[2]}; there are {', '.join(FORMATS)}"
    rest = _PLACE.sub("", template)
    return "a place is {name} or {name:format}" if "{" in rest or "}" in rest else None
