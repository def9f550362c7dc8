"""Counts and times of requests, in the text format of Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from made.serve.worker import Worker

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """What `/metrics` shows; of one application, not of the process."""

    def __init__(self, worker: Worker) -> None:
        self.registry = CollectorRegistry()
        labels = ["route", "status"]
        self._requests = Counter("made_requests_total", "Requests answered.", labels, registry=self.registry)
        self._seconds = Histogram(
            "made_request_seconds",
            "Seconds from the head of a request to the head of its answer.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._rows = Counter("made_rows_total", "Rows answered.", ["route"], registry=self.registry)
        waiting = Gauge("made_waiting_requests", "Requests that wait for the worker.", registry=self.registry)
        waiting.set_function(lambda: worker.waiting)
        computing = Gauge("made_computing_requests", "Requests that are computed: 0 or 1.", registry=self.registry)
        computing.set_function(lambda: float(worker.busy))
        busy = Gauge("made_worker_seconds", "Seconds that the worker has computed.", registry=self.registry)
        busy.set_function(lambda: worker.seconds)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count an answer. A route is a template, or the number of labels would grow with what clients ask for."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def rows(self, route: str, count: int) -> None:
        """Count the rows of an answer."""
        self._rows.labels(route).inc(count)

    def text(self) -> bytes:
        """All of them."""
        return generate_latest(self.registry)
