"""The file of a table's results, `results/<name>.json`: a list of objects, safe for concurrent writers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from made.errors import DataError
from made.io.atomic import atomic
from made.io.lock import hold
from made.paper.provenance import source_commit

LOCK_SECONDS = 60.0  # to wait for another command that writes to the same file
# Every object has these fields, null where one does not apply.
FIELDS = ("dataset", "row", "valid_nll", "test_nll", "ci95", "masks", "config", "seed", "epochs", "seconds", "commit")


class ResultsFile:
    """The results of one table or figure, one for each dataset and row; the file need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self) -> list[dict[str, Any]]:
        """All objects."""
        if not self.path.exists():
            return []
        try:
            rows = json.loads(self.path.read_text())
        except (OSError, ValueError) as error:
            raise DataError(f"{self.path} cannot be read: {error}.") from None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise DataError(f"{self.path} should be a list of results. Put the right file there, or remove it.")
        if wrong := [field for row in rows for field in FIELDS if field not in row]:
            raise DataError(f"{self.path}: a result has no {wrong[0]!r}. Put the right file there, or remove it.")
        return rows

    def get(self, dataset: str | None, row: str | None) -> dict[str, Any] | None:
        """The result of a row of a dataset, or None."""
        return next((each for each in self.rows() if (each["dataset"], each["row"]) == (dataset, row)), None)

    def put(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Write a result, replacing any result of the same dataset and row, and return it as written.

        A result without a test NLL does not replace one that has it.
        """
        result = dict.fromkeys(FIELDS) | {"commit": source_commit()} | dict(result)
        with self._edit() as rows:
            same = [each for each in rows if (each["dataset"], each["row"]) == (result["dataset"], result["row"])]
            if result["test_nll"] is not None or all(each["test_nll"] is None for each in same):
                rows[:] = [*(each for each in rows if each not in same), result]
        return result

    def remove(self, budget: str) -> None:
        """Remove the results of a budget, to be reproduced."""
        with self._edit() as rows:
            rows[:] = [each for each in rows if each.get("budget") != budget]

    @contextmanager
    def _edit(self) -> Iterator[list[dict[str, Any]]]:
        """All objects, to be changed and written, under a lock against other commands."""
        with hold(self.path.parent, wait=LOCK_SECONDS, name=f".{self.path.name}.lock"):
            rows = self.rows()
            yield rows
            rows.sort(key=lambda each: str(each["dataset"]))
            with atomic(self.path) as file:
                file.write((json.dumps(rows, indent=1, allow_nan=False) + "\n").encode())
