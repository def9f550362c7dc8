"""What every request passes through: who may ask, how much and how long, and what is counted."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from made.serve.bounds import Bounds
from made.serve.metrics import Metrics
from made.serve.problems import Problem
from made.serve.security import HEADERS, Guard

__all__ = ["Gate"]

SILENCE = 1.0  # seconds without a byte, after which no more of a refused body is expected
log = logging.getLogger("made.serve")


class Gate:
    """An application behind a guard and bounds; ``scope["state"]["deadline"]`` tells it how long a request may take."""

    def __init__(self, app: ASGIApp, guard: Guard, bounds: Bounds, metrics: Metrics) -> None:
        self.app, self.guard, self.bounds, self.metrics = app, guard, bounds, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.monotonic(), 0
        deadline, size, complete, closing = begin + self.bounds.seconds, 0, False, False
        if scope["method"] == "HEAD":  # as GET; the server sends the head only
            scope = {**scope, "method": "GET"}
        state = scope.setdefault("state", {})
        state["deadline"], full = deadline, state.get("full", False)

        async def bounded_receive() -> Message:
            nonlocal size, complete
            if complete:  # only the end of the connection can follow
                return await receive()
            try:
                async with asyncio.timeout(max(deadline - time.monotonic(), 0)):
                    message = await receive()
            except TimeoutError:
                raise Problem("body-too-slow", f"the body took more than {self.bounds.seconds:g} seconds.") from None
            size, complete = size + len(message.get("body", b"")), not message.get("more_body", False)
            if size > self.bounds.body:
                raise self._too_large()
            return message

        async def discard_body() -> None:
            """Read the rest of a refused body: a client that writes all of it first would find its connection reset."""
            more = not complete
            with suppress(TimeoutError):
                while more and (rest := deadline - time.monotonic()) > 0:
                    async with asyncio.timeout(min(rest, SILENCE)):
                        more = (await receive()).get("more_body", False)

        async def bounded_send(message: Message) -> None:
            nonlocal status, closing
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if closing := full or status in (408, 413):
                    headers["Connection"] = "close"
                self.metrics.answered(self._route(scope), status, time.monotonic() - begin)
            elif closing and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await discard_body()
                message = {"type": "http.response.body"}
            # A client that does not read its answer is not waited for.
            async with asyncio.timeout(self.bounds.seconds):
                await send(message)

        try:
            headers = Headers(scope=scope)
            if full:
                raise Problem("full", f"{self.bounds.connections:,} connections are open, the limit of the server.")
            self.guard.check(scope["path"], headers)
            length = headers.get("content-length", "")
            if length.isdigit() and int(length) > self.bounds.body:
                raise self._too_large()
            await self.app(scope, bounded_receive, bounded_send)
        except Problem as problem:
            await problem.response()(scope, receive, bounded_send)
        except TimeoutError:
            log.info("%s %s: the client did not read its answer", scope["method"], scope["path"])

    def _too_large(self) -> Problem:
        return Problem("body-too-large", f"the body has more than {self.bounds.body:,} bytes, the limit of the server.")

    def _route(self, scope: Scope) -> str:
        """The route template of the path: unlike paths, there are only a few of them."""
        return str(getattr(scope.get("route"), "path", None) or "unknown")
