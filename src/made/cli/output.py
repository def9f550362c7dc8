"""A table written batch by batch, to a file or to standard output."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from made.cli.printing import note, print_json

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from made.io.write import Writer

__all__ = ["Output", "for_file", "texts"]


class Output:
    """A table written batch by batch, to a file or to standard output.

    For JSON on standard output, rows are kept until the end.

    Arguments:
        out: the file; ``-`` or None for standard output.
        as_json: print JSON and nothing else.
        quiet: print no note of what was written.
        names: the columns of batches that are arrays.
        safe_csv: put an apostrophe before text that a spreadsheet would run as a formula.

    Attributes:
        facts: what JSON holds beside the rows.
        rows: how many there are.
    """

    def __init__(
        self,
        out: str | None,
        as_json: bool,
        quiet: bool,
        names: Sequence[str] | None = None,
        safe_csv: bool = False,
    ) -> None:
        self.out, self.as_json, self.quiet, self.names, self.safe_csv = out, as_json, quiet, names, safe_csv
        self.facts: dict[str, Any] = {}
        self.rows = 0
        self._to_file = out is not None and out != "-"
        self._stack = ExitStack()
        self._writer: Writer | None = None
        self._columns: list[str] = list(names or [])
        self._kept: list[list[Any]] = []

    def __enter__(self) -> Output:
        from made.io.write import Writer

        if self._to_file or not self.as_json:
            self._writer = self._stack.enter_context(Writer(self.out or "-", names=self.names))
        return self

    def write(self, rows: Any) -> None:
        """Write a batch of rows."""
        self.rows += len(rows)
        if self._writer is not None:
            self._writer.write(for_file(rows, self.out or "-", self.names, self.safe_csv))
        elif hasattr(rows, "column_names"):
            self._columns = rows.column_names
            self._kept += [list(row.values()) for row in rows.to_pylist()]
        else:
            self._kept += rows.tolist()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if kind is not None:
            return
        if self.as_json and self._to_file:
            print_json({"rows": self.rows, "out": self.out} | self.facts)
        elif self.as_json:
            print_json({"columns": self._columns, "rows": self._kept} | self.facts)
        elif self._to_file:
            note(f"{self.rows} rows written to {self.out}.", self.quiet)


def for_file(rows: Any, target: str, names: Sequence[str] | None, safe_csv: bool) -> Any:
    """A table as it is written: for CSV, without formulas if ``safe_csv``."""
    if not safe_csv or (target != "-" and Path(target).suffix.lower() != ".csv"):
        return rows
    from made.io.write import as_table, spreadsheet_safe

    return spreadsheet_safe(as_table(rows, None if hasattr(rows, "column_names") else names))


def texts(table: Any, column: int, rows: NDArray[Any]) -> pa.Array:
    """Some entries of a column as text, as in CSV; null where missing."""
    import pyarrow as pa

    from made.io.write import as_text

    if hasattr(table, "column_names"):
        return as_text(table.column(column).take(pa.array(rows)).combine_chunks())
    values = [None if value is None or value != value else str(value) for value in table[rows, column].tolist()]
    return pa.array(values, pa.large_string())
