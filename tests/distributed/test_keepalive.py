"""Connections of libraries, which fail soon after the other machine is gone."""

from __future__ import annotations

import socket

import pytest

from made.distributed.keepalive import kept_alive


@pytest.fixture
def connect():
    """A function that opens connections to a port of this machine."""
    opened = [socket.create_server(("127.0.0.1", 0))]

    def connect() -> socket.socket:
        opened.append(socket.create_connection(opened[0].getsockname()))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


def test_connections_that_are_opened_within_are_kept_alive_and_no_others(connect) -> None:
    before = connect()
    with kept_alive():
        within, closed = connect(), connect()
        closed.close()
    kept = [each.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) for each in (before, within, connect())]
    assert kept == [0, 1, 0]


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="not an option of this system")
def test_they_fail_within_half_a_minute_of_silence(connect) -> None:
    with kept_alive():
        within = connect()
    first, period, times, unconfirmed = (
        within.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
        for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
    )
    assert 0 < first + period * times < 30
    assert 0 < unconfirmed < 30_000
