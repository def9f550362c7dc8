"""Clients that misbehave, on raw sockets: the server stays, and answers everybody else."""

from __future__ import annotations

import http.client
import json
import socket
import time
from contextlib import closing, contextmanager, suppress

import pytest
from server import live

from made.serve.bounds import Bounds

BODY = b'{"rows": [{"age": 30}]}'
HEAD = b"POST /api/models/people/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def impatient():
    with live(bounds=Bounds(seconds=1.0)) as server:
        yield server
        assert server.client.get("/healthz").status_code == 200


@contextmanager
def connected(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        yield connection


def everything(connection: socket.socket) -> bytes:
    """All that is sent until the server closes the connection."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def send_slowly(connection: socket.socket, count: int) -> None:
    for _ in range(count):
        connection.sendall(b"a")
        time.sleep(0.1)


def test_a_body_that_comes_slowly(impatient) -> None:
    with connected(impatient) as connection:
        connection.sendall(HEAD + b"Content-Length: 23\r\n\r\n" + BODY[:5])
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"urn:made:body-too-slow" in answer


def test_a_head_that_comes_slowly(impatient) -> None:
    with connected(impatient) as connection:
        connection.sendall(HEAD[:30])
        begin = time.monotonic()
        assert everything(connection) == b""
        assert time.monotonic() - begin < 5


def test_a_connection_that_says_nothing(impatient) -> None:
    with connected(impatient) as connection:
        assert everything(connection) == b""


@pytest.mark.parametrize("what", ["people/nothing", "nobody/score"])
def test_a_body_that_comes_slowly_after_its_answer(impatient, what) -> None:
    """Refused before it is read, it would hold a connection as long as the client likes."""
    with connected(impatient) as connection:
        connection.sendall(HEAD.replace(b"people/score", what.encode()) + b"Content-Length: 1000\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 404")
        with pytest.raises(ConnectionError):
            send_slowly(connection, 100)


def test_a_connection_goes_on_after_a_body_that_was_not_read(impatient) -> None:
    with connected(impatient) as connection:
        length = b"Content-Length: 23\r\n\r\n"
        connection.sendall(HEAD.replace(b"people", b"nobody") + length)
        assert connection.recv(65536).startswith(b"HTTP/1.1 404")
        connection.sendall(BODY)
        connection.sendall(HEAD + length + BODY)
        assert b"HTTP/1.1 200" in everything(connection)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_client_that_reads_after_it_has_sent_all_of_a_body_is_told(server, chunked) -> None:
    """As http.client does, and whoever uses it. A reset connection would discard the answer."""
    content = b"a" * ((8 << 20) + 1)
    body = (content[first : first + 65536] for first in range(0, len(content), 65536)) if chunked else content
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request("POST", "/api/models/people/score", body, {"Content-Type": "text/csv"})
        answer = connection.getresponse()
        assert answer.status == 413
        assert b"urn:made:body-too-large" in answer.read()


def test_a_body_that_is_announced_and_never_comes_is_not_waited_for(server) -> None:
    with connected(server) as connection:
        begin = time.monotonic()
        connection.sendall(HEAD + b"Content-Length: 9999999999\r\n\r\n")
        assert b"urn:made:body-too-large" in everything(connection)
        assert time.monotonic() - begin < 8


def test_a_body_that_is_cut_short(impatient) -> None:
    for cut in (0, 1, 10, 22):
        with connected(impatient) as connection:
            connection.sendall(HEAD + b"Content-Length: 23\r\n\r\n" + BODY[:cut])
    assert impatient.post("score", content=BODY, headers={"content-type": "application/json"}).status_code == 200


def test_a_chunked_body_that_is_cut_short(impatient) -> None:
    with connected(impatient) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n17\r\n" + BODY[:9])
    assert impatient.client.get("/healthz").status_code == 200


def test_a_socket_that_is_half_closed(impatient) -> None:
    """Requests that are complete are answered, although the client sends no more; others are not waited for."""
    request = HEAD + b"Content-Length: 23\r\n\r\n" + BODY
    for sent, answers in ((request, 1), (3 * request, 3), (request[:-1], 0), (HEAD, 0), (b"", 0)):
        with connected(impatient) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            begin = time.monotonic()
            assert everything(connection).count(b"HTTP/1.1 200") == answers
            assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    "garbage", [b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x00" * 1000]
)
def test_garbage(impatient, garbage) -> None:
    with connected(impatient) as connection:
        connection.sendall(garbage)
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 4")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    assert b"Content-Security-Policy".lower() in head.lower()
    assert json.loads(body)["type"] == ("urn:made:host" if b"9.9" in garbage else "urn:made:http")


def test_a_head_without_end(impatient) -> None:
    with connected(impatient) as connection:
        with suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * (1 << 20))
        answer = everything(connection)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")


def test_a_client_that_does_not_read_its_answer(impatient) -> None:
    """The answer does not fit the buffers of the sockets: the server gives up after its time limit."""
    content = b'{"count": 60000}'
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", impatient.port))
        head = HEAD.replace(b"score", b"sample") + f"Content-Length: {len(content)}\r\n\r\n".encode()
        connection.sendall(head + content)
        time.sleep(3)
        assert impatient.client.get("/healthz").status_code == 200
        assert len(everything(connection)) < 8 << 20


def test_two_lengths_are_refused(impatient) -> None:
    """One of them might smuggle a second request past a proxy."""
    with connected(impatient) as connection:
        connection.sendall(HEAD + b"Content-Length: 23\r\nContent-Length: 5\r\n\r\n" + BODY)
        assert everything(connection).startswith(b"HTTP/1.1 400")


def test_requests_on_one_connection_are_answered_in_order(impatient) -> None:
    with connected(impatient) as connection:
        request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connection.sendall(request + request + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert everything(connection).count(b"HTTP/1.1 200") == 3
