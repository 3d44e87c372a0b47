"""Renders the templates, with what all of them need: language, formats of figures, and the viewer."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from peerway_common.printable import printable
from peerway_jobs.rules import template as texts
from peerway_jobs.rules.template import LANGUAGES
from peerway_jobs.serve.people import Viewer
from peerway_jobs.serve.state import State
from peerway_jobs.serve.words import word

_CODE = re.compile("`([^`]+)`")


def prose(text: str) -> Markup:
    """Text of a rule, where `this` is code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


class Pages:
    """Renders pages from templates."""

    def __init__(self, state: State, oidc: bool, mails: bool = False) -> None:
        self._state, self._oidc, self._mails = state, oidc, mails
        self._templates = Environment(
            loader=PackageLoader("peerway_jobs.serve"),
            autoescape=select_autoescape(default=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {"printable": printable, "prose": prose}

    @staticmethod
    def language(request: Request) -> str:
        """The language of the cookie, or else of the browser."""
        chosen = request.cookies.get("peerway_language", "")
        if chosen in LANGUAGES:
            return chosen
        return "ru" if request.headers.get("accept-language", "").lower().startswith("ru") else "en"

    def show(
        self, request: Request, name: str, viewer: Viewer | None, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """Render a page."""
        lang = self.language(request)

        def form(kind: str) -> Any:
            return lambda value: "–" if value is None else texts.FORMATS[kind](float(value), lang)

        def moment(value: float | None, zone: bool = False) -> str:
            try:
                at = datetime.fromtimestamp(value, UTC) if value else None
            except (ValueError, OverflowError, OSError):  # stored before times were checked
                return "?"
            if at is None:
                return "–"
            # live.js adds the reader's local time
            return Markup('<time datetime="{}">{}</time>').format(
                at.strftime("%Y-%m-%dT%H:%M:%SZ"), at.strftime("%Y-%m-%d %H:%M") + (" UTC" if zone else "")
            )

        page = self._templates.get_template(name).render(
            lang=lang,
            t=lambda key, **places: word(key, lang, **places),
            viewer=viewer,
            path=request.url.path,
            percent=form("percent"),
            gpus=form("gpus"),
            cores=form("cores"),
            nodes=form("nodes"),
            is_singular=lambda count: texts.is_singular(count, lang),
            last_days=lambda count: texts.last_days(count, lang),
            last_years=lambda count: texts.last_years(count, lang),
            day=lambda at: datetime.fromtimestamp(at, UTC).date().isoformat(),
            size=form("bytes"),
            duration=form("duration"),
            hours=form("hours"),
            number=form("number"),
            exact=lambda value: texts.exact(float(value), lang),
            moment=moment,
            now=self._state.monitor.clock(),
            oidc=self._oidc,
            mails=self._mails,
            tag_of=self._tag(lang),
            trouble=self._trouble(viewer),
            rules_error=self._state.monitor.rules_error if viewer and viewer.is_admin else "",
            **values,
        )
        return HTMLResponse(page, status)

    def _trouble(self, viewer: Viewer | None) -> str:
        """Why nothing can be stored now; the name of the database is for administrators."""
        if viewer is None:
            return ""
        whole = self._state.monitor.jobs.database.trouble if viewer.is_admin else ""
        return whole or self._state.ingest.trouble

    def _tag(self, lang: str) -> Any:
        tags = {rule.name: texts.in_language(rule.tag, lang) for rule in self._state.monitor.rules.rules}
        return lambda name: tags.get(name, name)
