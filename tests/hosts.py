"""Two hosts on one machine: network namespaces, each with its own address, joined by a pair of devices."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

__all__ = ["Host", "Hosts"]


class Host:
    """A network namespace with one interface; processes that it starts are ended by :meth:`close`.

    Attributes:
        address: its address.
        interface: the name of its network interface.
    """

    def __init__(self, name: str, interface: str, address: str) -> None:
        self.name, self.interface, self.address = name, interface, address
        self.running: list[subprocess.Popen] = []

    def start(self, *words: object, log: Path, folder: Path, **environment: str) -> subprocess.Popen:
        """Start a process, with its output in a file."""
        command = ["ip", "netns", "exec", self.name, *map(str, words)]
        variables = os.environ | {"GLOO_SOCKET_IFNAME": self.interface, "OMP_NUM_THREADS": "1"} | environment
        with log.open("w") as file:
            process = subprocess.Popen(command, cwd=folder, env=variables, stdout=file, stderr=file)
        self.running.append(process)
        return process

    def set_link(self, state: str) -> None:
        """Cut the network of this host ("down"), or join it again ("up"). No process hears of it."""
        _ip("-n", self.name, "link", "set", self.interface, state)

    def close(self) -> None:
        """End all that was started here, by number: whatever runs in the namespace."""
        found = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True, check=False)
        for number in found.stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGKILL)
        for process in self.running:
            process.wait()


class Hosts:
    """Two hosts, ``first`` and ``second``; :class:`PermissionError` where namespaces cannot be made."""

    def __init__(self) -> None:
        number = os.getpid()
        names, interfaces = [f"made-{number}-{side}" for side in "ab"], [f"md{number}{side}" for side in "ab"]
        self.first, self.second = (
            Host(name, interface, f"10.77.0.{place}")
            for place, (name, interface) in enumerate(zip(names, interfaces, strict=True), start=1)
        )
        self.made: list[str] = []
        try:
            for host in (self.first, self.second):
                _ip("netns", "add", host.name)
                self.made.append(host.name)
            ends = ["type", "veth", "peer", "name", interfaces[1], "netns", names[1]]
            _ip("link", "add", interfaces[0], "netns", names[0], *ends)
            for host in (self.first, self.second):
                _ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", host.interface)
                for device in ("lo", host.interface):
                    _ip("-n", host.name, "link", "set", device, "up")
        except (OSError, subprocess.CalledProcessError) as error:
            self.close()
            raise PermissionError(getattr(error, "stderr", None) or str(error)) from None

    def close(self) -> None:
        for host in (self.first, self.second):
            host.close()
        for name in self.made:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
