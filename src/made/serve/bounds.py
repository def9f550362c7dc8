"""How much a request may ask for."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["Bounds"]


@dataclass(frozen=True)
class Bounds:
    """The limits of a server, each an option of `made serve`.

    Attributes:
        body: bytes of a request's body; beyond it 413.
        rows: rows in a request; beyond it 422.
        samples: rows to draw, or paths of an estimate; beyond it 422.
        waiting: requests that wait while one is computed; beyond it 429.
        seconds: for a request, from its first byte to its answer; beyond it 408 if the body has not arrived, else 503.
        connections: open at a time; beyond it 503.
    """

    body: int = 8 << 20
    rows: int = 10_000
    samples: int = 100_000
    waiting: int = 64
    seconds: float = 30.0
    connections: int = 1024

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ValueError(f"'{field.name}' should be above 0, not {getattr(self, field.name)!r}.")
