"""Connecting to a Ray cluster. Needs the extra `ray`."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from made.errors import ClusterError, WorkerLost

REACHING = 5.0  # seconds
LOOK = 1.0  # seconds between looks at the head
SILENT = 15.0  # seconds in which it does not answer before it is given up; Ray takes a minute
# Ray prints what became of lost workers on standard output, between the answers, unless all of it is left out.
SILENCE = {"RAY_DEDUP_LOGS": "1", "RAY_DEDUP_LOGS_SKIP_REGEX": "^"}


@contextmanager
def connected(address: str, end: Callable[[Exception], object]) -> Iterator[Any]:
    """The module ``ray``, connected to a cluster that this machine is a node of.

    Arguments:
        address: host:port of its head.
        end: called by another thread with an error if the head is lost. It should end the process: calls of Ray wait
            for the head, and then end the process without a sentence.
    """
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")  # or what is left to do at the end would start a cluster here
    os.environ.update(SILENCE)
    try:
        import ray
    except ImportError:
        raise ImportError("'--ray' needs a package: pip install 'made[ray]'.") from None
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ClusterError(
            f"the address of a Ray cluster is host:port of its head, such as 10.0.0.1:6379, not {address!r}."
        )
    try:
        socket.create_connection((host, int(port)), REACHING).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(
            f"the Ray cluster at {address} cannot be reached: {getattr(error, 'strerror', None) or error}. Is its head "
            "running (ray start --head), and is the port open?"
        ) from None
    on_terminate = signal.getsignal(signal.SIGTERM)
    try:
        with _silenced():
            ray.init(address=address, log_to_driver=False, logging_level="CRITICAL")
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ClusterError(
            f"the Ray cluster at {address} does not accept this process ({str(error).splitlines()[0].rstrip('.')}): "
            "RAY_AUTH_MODE and RAY_AUTH_TOKEN have to be those that the cluster was started with, this machine has to "
            "be one of its nodes (ray start --address), and the versions of Ray the same."
        ) from None
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_terminate)  # Ray would exit without a word
    ended = threading.Event()
    threading.Thread(target=_watch, args=(address, host, int(port), end, ended), daemon=True).start()
    try:
        yield ray
    finally:
        ended.set()
        ray.shutdown()


def _watch(address: str, host: str, port: int, end: Callable[[Exception], object], ended: threading.Event) -> None:
    answered = time.monotonic()
    while not ended.wait(LOOK):
        if _answers(host, port):
            answered = time.monotonic()
        elif time.monotonic() - answered > SILENT and not ended.is_set():
            remedy = "What is written is kept: the same command continues from there, of made fit with --resume."
            end(WorkerLost(f"the head of the Ray cluster at {address} does not answer any more. {remedy}"))
            return


def unreachable(ray: Any) -> dict[str, float]:
    """The addresses of machines that do not answer, though Ray takes them for alive, and their processors."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    with ThreadPoolExecutor(max(1, len(nodes))) as pool:
        answers = list(pool.map(lambda node: _answers(node["NodeManagerAddress"], node["NodeManagerPort"]), nodes))
    gone = [node for node, answer in zip(nodes, answers, strict=True) if not answer]
    return {node["NodeManagerAddress"]: node["Resources"].get("CPU", 0) for node in gone}


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), REACHING).close()
    except OSError:
        return False
    return True


@contextmanager
def _silenced() -> Iterator[None]:
    """Nothing on standard error: Ray repeats each second why it cannot connect."""
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
