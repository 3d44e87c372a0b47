"""A double of Open OnDemand: a dashboard that contains our widget, and Apache's proxy to the jobs server.

It renders the few ERB tags of the widget as Rails would, sends OnDemand's Content-Security-Policy, and, like
the Apache of docs/jobs/ondemand.md, names the person who logged in to the jobs server.
"""

from __future__ import annotations

import contextlib
import html
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources

HEADER = "Remote-User"
API = "/peerway-jobs"
NONCE = "c2VjcmV0IG9uY2U"
# config/initializers/content_security_policy.rb of OnDemand's dashboard
POLICY = (
    "default-src 'self'; font-src 'self' data:; img-src 'self' data:; object-src 'none'; "
    f"script-src 'self' 'nonce-{NONCE}'; style-src 'self' 'nonce-{NONCE}'; connect-src 'self'"
)


class OnDemand:
    """`user` has logged in to the portal. `answer`, if set, comes in place of that of the jobs server."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.user = ""
        self.url = ""
        self.answer: tuple[int, bytes] | None = None

    def page(self) -> str:
        """The dashboard."""
        widget = (resources.files("peerway_jobs") / "ondemand" / "_peerway_jobs.html.erb").read_text()
        return (
            f"<!doctype html><meta charset=utf-8><title>OnDemand</title><main>{self._rendered(widget)}</main>"
        )

    def _rendered(self, widget: str) -> str:
        values = {
            "ENV['PEERWAY_JOBS_API'] || '/peerway-jobs'": API,
            "ENV['PEERWAY_JOBS_URL']": self.server,
            "OodSupport::User.new.name": self.user,
        }
        text = re.sub(r"<%#.*?%>", "", widget, flags=re.DOTALL)
        text = text.replace(
            "<%= javascript_tag nonce: true do %>", f'<script nonce="{NONCE}">\n//<![CDATA[\n'
        )
        text = text.replace("<% end %>", "\n//]]>\n</script>")
        text = re.sub(r"<%=(.*?)%>", lambda tag: html.escape(values[tag[1].strip()]), text)
        assert "<%" not in text, "a tag of ERB that this double does not know"
        return text

    def forwarded(self, path: str) -> tuple[int, bytes]:
        """The jobs server's answer to a GET of its list of jobs; nothing else is forwarded."""
        if path.partition("?")[0] != f"{API}/api/v1/jobs":
            return 404, b""
        if self.answer:
            return self.answer
        headers = {HEADER: self.user} if self.user else {}
        request = urllib.request.Request(self.server + path.removeprefix(API), headers=headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


@contextlib.contextmanager
def ondemand(server: str) -> Iterator[OnDemand]:
    """Serve the double on loopback while the block runs."""
    portal = OnDemand(server)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            dashboard = self.path == "/pun/sys/dashboard"
            status, content = (200, portal.page().encode()) if dashboard else portal.forwarded(self.path)
            self.send_response(status)
            self.send_header("Content-Type", "text/html" if dashboard else "application/json")
            self.send_header("Content-Security-Policy", POLICY)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        portal.url = f"http://127.0.0.1:{http.server_port}/pun/sys/dashboard"
        threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield portal
        finally:
            http.shutdown()
