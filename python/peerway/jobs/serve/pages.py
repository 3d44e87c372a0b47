"""The pages. All are made here, on the server; scripts only draw graphs and fetch the page anew."""

from __future__ import annotations

import time
from collections import defaultdict
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from peerway.jobs.rules import template as texts
from peerway.jobs.rules.load import BadRules, rules_of
from peerway.jobs.serve.access import COOKIE, check_same_site
from peerway.jobs.serve.api import JobId
from peerway.jobs.serve.oidc import LoginFailed, Provider
from peerway.jobs.serve.people import SESSION_SECONDS, Viewer
from peerway.jobs.serve.series_data import PLOTS
from peerway.jobs.serve.state import State
from peerway.jobs.serve.words import LANGUAGES, word
from peerway.jobs.store.lists import CORES_A_GPU, Filter, listed, sums
from peerway.jobs.store.verdicts import keep_rules, verdict_of
from peerway.printable import printable
from peerway.whole_file import replace

A_PAGE = 50
_STATE = "peerway_login"
Word = Annotated[str, Query(max_length=64)]


class Attempts:
    """How often a name or an address tried to log in: at most 10 a minute."""

    def __init__(self) -> None:
        self._times: defaultdict[str, list[float]] = defaultdict(list)

    def allows(self, *keys: str) -> bool:
        """Count one attempt; False where there were too many."""
        now = time.monotonic()
        if len(self._times) > 10_000:
            self._times.clear()
        for key in keys:
            self._times[key] = [at for at in self._times[key] if at > now - 60] + [now]
        return all(len(self._times[key]) <= 10 for key in keys)


class Pages:
    """Templates, and what each of them gets."""

    def __init__(self, state: State, provider: Provider | None, mails: bool = False) -> None:
        self._state, self._provider, self._mails = state, provider, mails
        self._templates = Environment(
            loader=PackageLoader("peerway.jobs.serve"),
            autoescape=select_autoescape(default=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["printable"] = printable

    @staticmethod
    def language(request: Request) -> str:
        """The language of the cookie, else of the browser."""
        chosen = request.cookies.get("peerway_language", "")
        if chosen in LANGUAGES:
            return chosen
        return "ru" if request.headers.get("accept-language", "").lower().startswith("ru") else "en"

    def show(
        self, request: Request, name: str, viewer: Viewer | None, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """A page."""
        lang = self.language(request)

        def form(kind: str) -> Any:
            return lambda value: "–" if value is None else texts.FORMATS[kind](float(value), lang)

        def moment(value: float | None) -> str:
            return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M") if value else "–"

        page = self._templates.get_template(name).render(
            lang=lang,
            t=lambda key, **places: word(key, lang, **places),
            viewer=viewer,
            path=request.url.path,
            percent=form("percent"),
            gpus=form("gpus"),
            cores=form("cores"),
            size=form("bytes"),
            duration=form("duration"),
            hours=form("hours"),
            number=form("number"),
            moment=moment,
            now=self._state.monitor.clock(),
            oidc=self._provider is not None,
            mails=self._mails,
            tag_of=self._tag(lang),
            rules_error=self._state.monitor.rules_error if viewer and viewer.is_admin else "",
            **values,
        )
        return HTMLResponse(page, status)

    def _tag(self, lang: str) -> Any:
        tags = {rule.name: rule.tag[lang] for rule in self._state.monitor.rules.rules}
        return lambda name: tags.get(name, name)


def router(state: State, pages: Pages, provider: Provider | None, secure: bool) -> APIRouter:
    """The routes of the pages."""
    html = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    monitor, access = state.monitor, state.access
    _logins(html, pages, state, provider, secure)

    def asked(request: Request, *, admin: bool = False) -> Viewer:
        viewer = access.viewer(request)
        if viewer is None or viewer.node:
            raise Login
        if admin and not viewer.is_admin:
            raise HTTPException(403)
        return viewer

    @html.get("/")
    def start() -> Response:
        return RedirectResponse("/jobs", 303)

    @html.get("/jobs")
    def jobs(
        request: Request,
        user: Word = "",
        account: Word = "",
        partition: Word = "",
        state: Word = "",
        verdict: Word = "",
        text: Word = "",
        tag: Word = "",
        before: float | None = None,
        everyone: bool = False,
    ) -> Response:
        viewer = asked(request)
        others = everyone or bool(user or account or tag)
        wanted = Filter(user if others else viewer.name, account, partition, state, verdict, tag, 0, text)
        found = listed(monitor.jobs.reader, viewer.clause(), wanted, most=A_PAGE + 1, before=before)
        older = ""
        if len(found) > A_PAGE:
            query = {key: value for key, value in request.query_params.items() if key != "before"}
            older = "?" + urlencode({**query, "before": found[A_PAGE - 1].started})
        return pages.show(
            request, "jobs.html.j2", viewer, jobs=found[:A_PAGE], wanted=wanted, older=older, others=others
        )

    @html.get("/jobs/{job}")
    def job(request: Request, job: JobId, restart: int | None = None) -> Response:
        viewer = asked(request)
        run = monitor.jobs.run(job, restart)
        if run is None or not viewer.may_see(run):
            raise HTTPException(404)
        titles = {name: word(name, pages.language(request)) for name, _ in PLOTS}
        return pages.show(
            request,
            "job.html.j2",
            viewer,
            run=run,
            verdict=verdict_of(monitor.jobs, run),
            script=printable(run.script, lines=True) if viewer.may_read_script(run) else "",
            plot_titles=titles,
            restarts=monitor.jobs.restarts(job),
        )

    @html.get("/cluster")
    def cluster(request: Request) -> Response:
        return pages.show(request, "cluster.html.j2", asked(request), cluster=state.cluster())

    @html.get("/statistics")
    def statistics(
        request: Request, by: Word = "user", days: Annotated[int, Query(ge=1, le=366)] = 30
    ) -> Response:
        viewer = asked(request)
        by = by if by in ("user", "account", "partition", "tag") else "user"
        rows = sums(monitor.jobs.reader, viewer.clause(), by, monitor.clock() - days * 86400)
        return pages.show(request, "statistics.html.j2", viewer, rows=rows, by=by, days=days)

    @html.get("/admin/jobs")
    def wasted(request: Request, days: Annotated[int, Query(ge=1, le=366)] = 7) -> Response:
        viewer = asked(request, admin=True)
        wanted = Filter(since=monitor.clock() - days * 86400)
        found = listed(monitor.jobs.reader, viewer.clause(), wanted, most=200, order="wasted")
        found = [run for run in found if run.idle_gpu_hours or run.idle_core_hours]
        return pages.show(request, "wasted.html.j2", viewer, jobs=found, days=days, cores_a_gpu=CORES_A_GPU)

    @html.get("/admin/rules")
    def rules(request: Request) -> Response:
        viewer = asked(request, admin=True)
        return pages.show(
            request,
            "rules.html.j2",
            viewer,
            text=monitor.rules.text,
            hash=monitor.rules.hash,
            error="",
            saved=False,
        )

    @html.post("/admin/rules")
    def save_rules(request: Request, text: Annotated[str, Form(max_length=1 << 20)]) -> Response:
        viewer = asked(request, admin=True)
        text = text.replace("\r\n", "\n")
        try:
            new = rules_of(text)
        except BadRules as error:
            return pages.show(
                request,
                "rules.html.j2",
                viewer,
                422,
                text=text,
                hash=monitor.rules.hash,
                error=str(error),
                saved=False,
            )
        replace(monitor.rules_file, text)
        monitor.reload()
        keep_rules(monitor.jobs, new, viewer.name, monitor.clock())
        return pages.show(
            request, "rules.html.j2", viewer, text=text, hash=monitor.rules.hash, error="", saved=True
        )

    @html.get("/tokens")
    def tokens(request: Request) -> Response:
        viewer = asked(request)
        return tokens_page(request, viewer)

    def tokens_page(request: Request, viewer: Viewer, new: str = "") -> Response:
        people = access.people
        return pages.show(
            request,
            "tokens.html.j2",
            viewer,
            tokens=people.tokens(viewer.name),
            new=new,
            mail=people.wants_mail(viewer.name),
        )

    @html.post("/notices")
    def notices(request: Request, mail: Annotated[bool, Form()] = False) -> Response:
        viewer = asked(request)
        if not viewer.by_cookie:
            raise HTTPException(403)
        access.people.set_mail(viewer.name, mail)
        return RedirectResponse("/tokens", 303)

    @html.post("/tokens")
    def change_tokens(
        request: Request,
        revoke: Annotated[str, Form(max_length=8)] = "",
        days: Annotated[int, Form(ge=1, le=3650)] = 90,
    ) -> Response:
        viewer = asked(request)
        if not viewer.by_cookie:
            raise HTTPException(403)
        if revoke:
            access.people.revoke(viewer.name, revoke)
            return RedirectResponse("/tokens", 303)
        scopes = ["jobs:read", "cluster:read"]
        new = access.people.make_token(viewer.name, scopes, monitor.clock(), days=days)
        return tokens_page(request, viewer, new)

    return html


class Login(Exception):
    """Nobody is logged in."""


def _logins(html: APIRouter, pages: Pages, state: State, provider: Provider | None, secure: bool) -> None:
    attempts, people, clock = Attempts(), state.people, state.monitor.clock

    def entered(name: str) -> Response:
        response = RedirectResponse("/jobs", 303)
        response.set_cookie(
            COOKIE,
            people.begin(name, clock()),
            max_age=int(SESSION_SECONDS),
            httponly=True,
            samesite="lax",
            secure=secure,
        )
        return response

    @html.get("/login")
    def form(request: Request) -> Response:
        return pages.show(request, "login.html.j2", None, error="")

    @html.post("/login")
    def login(
        request: Request,
        name: Annotated[str, Form(max_length=64)],
        password: Annotated[str, Form(max_length=1024)],
    ) -> Response:
        check_same_site(request)
        peer = request.client.host if request.client else ""
        if not attempts.allows(f"name {name}", f"peer {peer}"):
            return pages.show(request, "login.html.j2", None, 429, error="too_many_logins")
        if not people.check(name, password):
            return pages.show(request, "login.html.j2", None, 401, error="wrong_login")
        return entered(name)

    @html.post("/logout")
    def logout(request: Request) -> Response:
        check_same_site(request)
        people.end(request.cookies.get(COOKIE, ""))
        response = RedirectResponse("/login", 303)
        response.delete_cookie(COOKIE)
        return response

    @html.post("/language")
    def language(
        request: Request, to: Annotated[str, Form(max_length=2)], back: Annotated[str, Form(max_length=200)]
    ) -> Response:
        check_same_site(request)
        inside = back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable()
        response = RedirectResponse(back if inside else "/jobs", 303)
        if to in LANGUAGES:
            response.set_cookie("peerway_language", to, max_age=365 * 86400, samesite="lax", secure=secure)
        return response

    if provider is None:
        return

    @html.get("/oidc/start")
    async def oidc_start() -> Response:
        try:
            url, secret = await provider.start(clock())
        except LoginFailed as error:
            raise HTTPException(503, str(error)) from None
        response = RedirectResponse(url, 303)
        response.set_cookie(_STATE, secret, max_age=600, httponly=True, samesite="lax", secure=secure)
        return response

    @html.get("/oidc/back")
    async def oidc_back(request: Request, state: Annotated[str, Query(max_length=200)] = "") -> Response:
        try:
            name = await provider.finish(str(request.url), state, request.cookies.get(_STATE, ""))
        except LoginFailed as error:
            raise HTTPException(403, str(error)) from None
        return entered(name)
