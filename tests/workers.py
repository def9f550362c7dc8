"""The environment that torchrun gives to a worker."""

from __future__ import annotations

import socket

__all__ = ["free_port", "worker_environment"]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def worker_environment(rank: int, workers: int, port: int) -> dict[str, str]:
    return {
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(workers),
        "RANK": str(rank),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
