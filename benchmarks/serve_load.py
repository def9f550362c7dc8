"""Many clients at once ask `made serve`: every answer is compared with that of Python, and the memory is measured.

    python -m benchmarks.serve_load MODEL --requests 10000 --clients 64

The server is a process of its own at a free port of 127.0.0.1, and is stopped at the end, by SIGTERM.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from made.model.model import Model
from made.serve.answers import plain
from made.serve.operations import Served

WARM_UP = 500  # requests before the memory is measured for the first time
LONGEST = 1800  # seconds of the whole run


def questions(served: Served, count: int) -> list[tuple[str, dict[str, Any], Any]]:
    """Paths, bodies and right answers of some requests, of every kind."""
    rows = served.model.sample(count, random_state=1)
    found: list[tuple[str, dict[str, Any], Any]] = []
    for number in range(count):
        row = plain(rows.slice(number, 1).to_pylist()[0])
        known = dict(random.Random(number).sample(sorted(row.items()), 3))
        name, table = served.names[number % len(served.names)], rows.slice(number, 1)
        found += [
            ("score", {"rows": [row]}, {"rows": served.score(table, []).table.to_pylist()}),
            ("conditionals", {"given": known}, served.conditionals(known, (0.05, 0.5, 0.95))),
            ("sample", {"count": 2, "given": known, "random_state": number}, None),
            (f"predict?target={name}", {"rows": [row]}, None),
        ]
        drawn = served.sample(2, known, 1.0, number).table.to_pylist()
        found[-2] = (*found[-2][:2], {"rows": drawn})
        answer = served.predict(table, name, (0.05, 0.5, 0.95))
        found[-1] = (*found[-1][:2], {"rows": answer.table.to_pylist(), **answer.facts})
    return [(path, body, json.loads(json.dumps(plain(answer)))) for path, body, answer in found]


def resident(process: int) -> float:
    """The memory of a process, in MB."""
    text = Path(f"/proc/{process}/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


class Clients:
    """Threads that ask until enough requests have been answered."""

    def __init__(self, port: int, name: str, asked: list[tuple[str, dict[str, Any], Any]]) -> None:
        self.port, self.name, self.asked = port, name, asked
        self.statuses: Counter[int] = Counter()
        self.wrong = 0
        self.seconds: list[float] = []
        self._lock, self._next = threading.Lock(), iter(range(0))

    def run(self, requests: int, clients: int) -> float:
        """Ask, and return how long it took."""
        self._next, begin = iter(range(requests)), time.perf_counter()
        threads = [threading.Thread(target=self._ask) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begin

    def _ask(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while True:
            with self._lock:
                number = next(self._next, None)
            if number is None:
                break
            path, body, expected = self.asked[number % len(self.asked)]
            begin = time.perf_counter()
            headers = {"Content-Type": "application/json"}
            connection.request("POST", f"/api/models/{self.name}/{path}", json.dumps(body), headers)
            answer = connection.getresponse()
            found = json.loads(answer.read())
            with self._lock:
                self.statuses[answer.status] += 1
                self.wrong += answer.status == 200 and found != expected
                self.seconds.append(time.perf_counter() - begin)
        connection.close()


def main() -> None:
    """Run and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=64)
    given = parser.parse_args()
    served = Served(given.model.name, Model.load(given.model))
    asked = questions(served, 25)
    command = [sys.executable, "-m", "made", "serve", str(given.model), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stop = threading.Timer(LONGEST, process.kill)
    stop.start()
    try:
        assert process.stdout is not None
        content = ""
        while not content.rstrip().endswith("}"):
            content += process.stdout.readline()
        clients = Clients(int(json.loads(content)["url"].rstrip("/").rpartition(":")[2]), served.name, asked)
        clients.run(WARM_UP, given.clients)
        before = resident(process.pid)
        clients.statuses.clear()
        clients.seconds.clear()
        seconds = clients.run(given.requests, given.clients)
        after = resident(process.pid)
        process.send_signal(signal.SIGTERM)
        ended = process.wait(60)
    finally:
        stop.cancel()
        process.kill()
        process.wait()
    times = sorted(clients.seconds)
    facts = {
        "requests": sum(clients.statuses.values()),
        "clients": given.clients,
        "statuses": dict(clients.statuses),
        "wrong": clients.wrong,
        "seconds": round(seconds, 1),
        "median_ms": round(1000 * statistics.median(times)),
        "p99_ms": round(1000 * times[int(0.99 * (len(times) - 1))]),
        "growth_mb": round(after - before, 1),
        "resident_mb": round(after, 1),
        "exit_code": ended,
    }
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
