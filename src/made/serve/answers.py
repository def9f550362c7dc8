"""Answers as JSON, CSV or a stream of Arrow, a few rows at a time."""

from __future__ import annotations

import datetime
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from made.io.write import write_csv
from made.serve.bodies import ARROW, CSV, JSON

__all__ = ["Answer", "as_json", "plain"]

ROWS = 1000  # at a time


@dataclass(frozen=True)
class Answer:
    """Rows, and what else there is to say.

    Attributes:
        table: the rows.
        facts: more members of the JSON document.
    """

    table: pa.Table
    facts: Mapping[str, Any] = field(default_factory=dict)

    def stream(self, media_type: str) -> Iterator[bytes]:
        """The answer in pieces."""
        return {JSON: self._json, CSV: self._csv, ARROW: self._arrow}[media_type]()

    def _parts(self) -> Iterator[pa.Table]:
        return (self.table.slice(first, ROWS) for first in range(0, max(len(self.table), 1), ROWS))

    def _json(self) -> Iterator[bytes]:
        before = b'{"rows": ['
        for part in self._parts():
            rows = b", ".join(as_json(row) for row in part.to_pylist())
            yield before + rows
            before = b", "
        rest = as_json(self.facts)[1:]
        yield (b"], " if self.facts else b"]") + rest

    def _csv(self) -> Iterator[bytes]:
        double = [
            pa.field(each.name, pa.float64() if pa.types.is_float32(each.type) else each.type)
            for each in self.table.schema
        ]
        for number, part in enumerate(self._parts()):
            handle = io.BytesIO()
            write_csv(part.cast(pa.schema(double)), handle, header=number == 0)  # as exact as in JSON
            yield handle.getvalue()

    def _arrow(self) -> Iterator[bytes]:
        handle = io.BytesIO()
        with pa.ipc.new_stream(handle, self.table.schema) as writer:
            for part in self._parts():
                writer.write_table(part)
                yield handle.getvalue()
                handle.seek(0)
                handle.truncate()
        yield handle.getvalue()


def as_json(value: Any) -> bytes:
    """JSON in which every finite number is exact."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False).encode(errors="replace")


def plain(value: Any) -> Any:
    """A value as JSON has it: NaN is null, infinity a text, a date in ISO 8601.

    Example:
        >>> plain({"a": np.float32(0.5), "b": [math.nan, -math.inf], "c": datetime.date(2024, 3, 1)})
        {'a': 0.5, 'b': [None, '-Infinity'], 'c': '2024-03-01'}
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value
