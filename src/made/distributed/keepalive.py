"""Connections that fail soon after the machine at the other end is gone: without power, or without a network.

A process that ends closes its connections, and its peers notice at once. A machine that vanishes does not. So the
system asks it every few seconds; it answers for its processes, however long they compute silently.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

DESCRIPTORS = "/dev/fd"  # those of this process, on Linux and macOS
OPTIONS = {  # attributes of `socket`, where the system has them
    "TCP_KEEPIDLE": 3,  # seconds of silence before the first question
    "TCP_KEEPALIVE": 3,  # the same on macOS
    "TCP_KEEPINTVL": 3,  # seconds between questions
    "TCP_KEEPCNT": 3,  # questions without an answer
    "TCP_USER_TIMEOUT": 12_000,  # milliseconds in which what was sent has to be confirmed
}


@contextmanager
def kept_alive() -> Iterator[None]:
    """Keep the connections alive that are opened within, such as those of gloo, which has no option for it."""
    before = _sockets()
    yield
    for descriptor in _sockets() - before:
        with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:  # it may have been closed
            keep_alive(connection)


def keep_alive(connection: socket.socket) -> None:
    """Let a connection fail if its other end does not answer for about 12 seconds."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in OPTIONS.items():
        if option := getattr(socket, name, None):
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _sockets() -> set[int]:
    """The descriptors of this process that are sockets."""
    found = set()
    with suppress(OSError):
        for name in os.listdir(DESCRIPTORS):
            with suppress(OSError):  # the folder itself is closed by now
                if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    found.add(int(name))
    return found
