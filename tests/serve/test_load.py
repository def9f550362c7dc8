"""Many clients at once: every answer is right. `python -m benchmarks.serve_load` is the long version."""

from __future__ import annotations

from benchmarks.serve_load import Clients, questions
from server import people_served


def test_answers_are_right_whoever_else_asks(server) -> None:
    clients = Clients(server.port, "people", questions(people_served(), 3))
    clients.run(requests=96, clients=16)
    assert clients.statuses == {200: 96}
    assert clients.wrong == 0
