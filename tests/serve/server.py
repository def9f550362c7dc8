"""A server for tests: in a thread, at a free port of the loopback interface."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from made.serve.app import create_app
from made.serve.bounds import Bounds
from made.serve.operations import Served
from made.serve.run import listen, make_server
from made.serve.security import Guard
from people import fitted_people

__all__ = ["Live", "live", "people_served"]


@dataclass
class Live:
    """A server that runs, and a client of it."""

    port: int
    client: httpx.Client
    name: str = "people"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def post(self, what: str, **options) -> httpx.Response:
        return self.client.post(f"/api/models/{self.name}/{what}", **options)


def people_served(name: str = "people") -> Served:
    return Served(name, fitted_people().model_)


@contextmanager
def live(*models: Served, bounds: Bounds | None = None, guard: Guard | None = None, **client) -> Iterator[Live]:
    """Serve models, by default the one of people, until the context ends."""
    bounds = bounds or Bounds()
    app = create_app(models or (people_served(),), bounds, guard)
    with listen("127.0.0.1", 0) as listener:
        port, server = listener.getsockname()[1], make_server(app, bounds)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False, **client) as own:
                yield Live(port, own)
        finally:
            server.should_exit = True
            thread.join(timeout=30)
            assert not thread.is_alive()
