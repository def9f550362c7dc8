"""Every bound, at its edge: the most that is allowed is answered, one more is refused."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack

import pytest
from server import live, people_served

from made.serve.bounds import Bounds
from made.serve.operations import Served


def test_rows() -> None:
    with live(bounds=Bounds(rows=3)) as server:
        assert server.post("score", json={"rows": [{}] * 3}).status_code == 200
        answer = server.post("score", json={"rows": [{}] * 4})
        assert (answer.status_code, answer.json()["type"]) == (422, "urn:made:too-many-rows")


def test_rows_of_a_file() -> None:
    header = b"job,age,debt,wage,since,fed,score\n"
    with live(bounds=Bounds(rows=3)) as server:
        for rows, status in ((3, 200), (4, 422)):
            body = header + b"cook,30,0.0,1.5,2024-03-01,true,1\n" * rows
            assert server.post("score", content=body, headers={"content-type": "text/csv"}).status_code == status


def test_samples() -> None:
    with live(bounds=Bounds(samples=5)) as server:
        assert server.post("sample", json={"count": 5}).status_code == 200
        answer = server.post("sample", json={"count": 6})
        assert (answer.status_code, answer.json()["type"]) == (422, "urn:made:too-many-samples")
        question = "age > 30 and wage > 10"
        assert server.post("probability", json={"question": question, "samples": 5}).status_code == 200
        assert server.post("probability", json={"question": question, "samples": 6}).status_code == 422


@pytest.mark.parametrize("chunked", [False, True])
def test_body(chunked) -> None:
    """Whether its length is announced or not."""
    content = b'{"rows": [{"age": 30}]}'

    def send(body: bytes):
        headers = {"content-type": "application/json"}
        return server.post("score", content=iter([body]) if chunked else body, headers=headers)

    with live(bounds=Bounds(body=len(content) + 3)) as server:
        assert send(content + b"   ").status_code == 200
        answer = send(content + b"    ")
        assert (answer.status_code, answer.json()["type"]) == (413, "urn:made:body-too-large")


class Slow(Served):
    """A model that takes its time."""

    gate = threading.Event()

    def probability(self, question, samples, seed):
        self.gate.wait(20)
        return {"probability": 0.5}


class Endless(Served):
    """A model that would compute for ever, in many short steps."""

    stopped = threading.Event()

    def probability(self, question, samples, seed):
        try:
            while True:
                time.sleep(0.001)
        finally:
            self.stopped.set()


def test_waiting() -> None:
    slow, found = Slow("people", people_served().model), []

    def ask() -> None:
        found.append(server.post("probability", json={"question": "age > 30"}).status_code)

    with live(slow, bounds=Bounds(waiting=2)) as server:
        threads = [threading.Thread(target=ask) for _ in range(3)]  # one is computed, two wait
        for thread in threads:
            thread.start()
            time.sleep(0.3)
        answer = server.post("probability", json={"question": "age > 30"})
        assert (answer.status_code, answer.json()["type"]) == (429, "urn:made:busy")
        assert int(answer.headers["retry-after"]) > 0
        assert server.client.get("/healthz").status_code == 200
        slow.gate.set()
        for thread in threads:
            thread.join()
        assert found == [200, 200, 200]


@pytest.mark.parametrize("most", [1, 3])
def test_connections(most) -> None:
    """As many as may are open, and all are answered; the next one is told when to come again."""
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with live(bounds=Bounds(connections=most)) as server, ExitStack() as stack:

        def ask() -> tuple[socket.socket, bytes]:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            connection.sendall(request)
            return connection, connection.recv(65536)

        opened = [ask() for _ in range(most)]
        assert all(answer.startswith(b"HTTP/1.1 200") for _, answer in opened)
        one_more, answer = ask()
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1" in answer.lower()
        while part := one_more.recv(65536):  # until it is closed
            answer += part
        assert b"urn:made:full" in answer
        opened[0][0].close()
        deadline = time.monotonic() + 10
        while not (answer := ask()[1]).startswith(b"HTTP/1.1 200") and time.monotonic() < deadline:
            time.sleep(0.05)
        assert answer.startswith(b"HTTP/1.1 200")


def test_seconds() -> None:
    endless = Endless("people", people_served().model)
    with live(endless, people_served("other"), bounds=Bounds(seconds=1)) as server:
        begin = time.monotonic()
        answer = server.post("probability", json={"question": "age > 30"})
        assert 0.9 < time.monotonic() - begin < 4
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:made:late")
        assert int(answer.headers["retry-after"]) > 0
        # The computation is given up, and the worker is free again.
        assert endless.stopped.wait(5)
        assert server.client.post("/api/models/other/score", json={"rows": [{}]}).status_code == 200


def test_work_for_a_client_that_has_left_is_given_up() -> None:
    endless = Endless("people", people_served().model)
    endless.stopped.clear()
    with live(endless) as server:
        with pytest.raises(Exception, match="timed out"):
            server.post("probability", json={"question": "age > 30"}, timeout=0.5)
        assert endless.stopped.wait(5)


@pytest.mark.parametrize("name", ["body", "rows", "samples", "waiting", "seconds", "connections"])
def test_a_bound_is_above_zero(name) -> None:
    with pytest.raises(ValueError, match=f"'{name}' should be above 0"):
        Bounds(**{name: 0})
