"""The server: a socket, uvicorn on it, and an end that waits for the answers that are under way."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from made.errors import ParameterError
from made.serve.bounds import Bounds
from made.serve.gate import Gate
from made.serve.problems import Problem
from made.serve.security import HEADERS

__all__ = ["listen", "make_server", "run"]

PATIENCE = 1.0  # seconds, at most, for the answer to a client that has closed its sending side
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=256)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ParameterError(
            f"cannot listen on {host}, port {port}: {reason}. Choose another '--port'.", argument="port"
        ) from None


def run(app: Gate, listener: socket.socket, bounds: Bounds) -> None:
    """Serve until SIGINT or SIGTERM; requests that have begun are answered first."""
    make_server(app, bounds).run(sockets=[listener])


def make_server(app: Gate, bounds: Bounds) -> uvicorn.Server:
    """A server of an application, which has not begun."""
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        limit_concurrency=bounds.connections,
        timeout_keep_alive=max(1, int(min(bounds.seconds, 30))),
        timeout_graceful_shutdown=int(bounds.seconds) + 1,
    )
    return _Server(config)


class _Protocol(H11Protocol):
    """A connection that is closed if the head of its first request does not arrive in time, or what is left of a body
    after the answer.

    The application is told of one too many (``state["full"]``): the refusal of uvicorn has no Retry-After, and comes
    one connection too soon.

    A client that has sent all of its request may close its sending side. It looks like one that has left, so that its
    answer is not computed for longer than ``PATIENCE``.
    """

    ended = False  # whether the client has closed its sending side

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        most, self.limit_concurrency = self.limit_concurrency, None
        if most is not None and len(self.connections) > most:
            self.app_state = self.app_state | {"full": True}
        self._expect()

    def handle_events(self) -> None:
        super().handle_events()
        unread = self.conn.their_state is h11.SEND_BODY
        if self.cycle is not None and not (unread and self.cycle.response_complete):
            self._expected.cancel()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._expect()

        if self.ended and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()

    def eof_received(self) -> bool:  # type: ignore[override]  # True: the connection stays open
        self.ended = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        if self.ended:
            asyncio.get_running_loop().call_later(PATIENCE, self.transport.close)
        return self.ended

    def send_400_response(self, msg: str) -> None:
        problem = Problem("http", "the request cannot be read, or its head is too long.").response()
        headers = [*problem.raw_headers, *((name.lower().encode(), value.encode()) for name, value in HEADERS.items())]
        head = h11.Response(status_code=400, headers=[*headers, (b"connection", b"close")])
        with suppress(h11.LocalProtocolError):  # an answer has begun
            for part in (head, h11.Data(data=bytes(problem.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(part) or b"")
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expected.cancel()
        super().connection_lost(exc)

    def _expect(self) -> None:
        self._expected = asyncio.get_running_loop().call_later(self.timeout_keep_alive, self._too_slow)

    def _too_slow(self) -> None:
        self.transport.close()


class _Server(uvicorn.Server):
    """A server whose graceful end is no failure: the signal is not raised again."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
