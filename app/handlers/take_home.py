"""Downloads: a view is sent, a file comes back. No state, and no file on this computer's disk."""

from __future__ import annotations

from collections.abc import Callable

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.handlers.share import opened
from app.link import MAX_CODE, View, decode
from app.services import Services
from app.views import take_home

MAX_AT_ONCE = 2
FILES = {  # what is asked for -> name of the file
    "page": "both-ways.html",
    "vectors": "both-ways-vectors.npz",
    "projector": "both-ways-projector.zip",
}


class TakeHome:
    """Bound to the services and the page's styles; holds nothing of any visitor."""

    def __init__(self, services: Services, styles: Callable[[], str]) -> None:
        self.services, self._styles = services, styles
        self._turns: CapacityLimiter | None = None

    def routes(self) -> list[Route]:
        return [Route("/take-home/{what}", self.answer, methods=["POST"])]

    async def answer(self, request: Request) -> Response:
        """The file, always as one to be saved; or why there is none, in plain text."""
        if not _is_let_in(request):
            return PlainTextResponse("Log in first: files are for who may see the page.", 401)
        what = request.path_params["what"]
        if (
            what not in FILES
            or request.headers.get("sec-fetch-site", "same-origin") != "same-origin"
        ):
            return PlainTextResponse("There is no such file.", 404)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_CODE:
                return PlainTextResponse("The view is too long.", 413)
        try:
            view = decode(body.decode("ascii", "replace"))
            if self._turns is None:  # whoever waits for a turn holds no thread: others need those
                self._turns = CapacityLimiter(MAX_AT_ONCE)
            content = await to_thread.run_sync(self.make, what, view, limiter=self._turns)
        except ValueError as error:
            return PlainTextResponse(str(error).encode("utf-8", "replace"), 400)
        headers = {
            "Content-Disposition": f'attachment; filename="{FILES[what]}"',
            "X-Content-Type-Options": "nosniff",
        }
        return Response(content, media_type="application/octet-stream", headers=headers)

    def make(self, what: str, view: View) -> bytes:
        """Raises ``ValueError`` for a view that this page cannot show."""
        services, sentences, selection = opened(self.services, view)
        if what == "vectors":
            return take_home.npz(services, sentences, view)
        if what == "projector":
            return take_home.projector(services, sentences, view)
        return take_home.page(services, sentences, selection, view, self._styles())


def _is_let_in(request: Request) -> bool:
    """Whether Gradio would show this visitor the page: its own routes ask the same, but a route
    beside them is open."""
    app = request.app
    if app.auth is None:
        return True
    names = (f"access-token-{app.cookie_id}", f"access-token-unsecure-{app.cookie_id}")
    token = next((request.cookies[name] for name in names if request.cookies.get(name)), None)
    return app.tokens.get(token) is not None
