"""A table written batch by batch, to a file or to standard output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from made.cli.printing import mode, note, print_json

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from made.io.write import Writer


class Output:
    """A table written batch by batch, to a file or to standard output.

    For JSON on standard output, rows are kept until the end.

    Arguments:
        out: the file; ``-`` or None for standard output.
        names: the columns of batches that are arrays.
        safe_csv: put an apostrophe before text that a spreadsheet would run as a formula.
        silent: print nothing about the file.
        schema: the types of the columns. Default: those of the first batch, which are kept here.

    Attributes:
        facts: further members of the JSON.
        rows: number of rows written.
    """

    def __init__(
        self,
        out: str | None,
        names: Sequence[str] | None = None,
        safe_csv: bool = False,
        silent: bool = False,
        schema: pa.Schema | None = None,
    ) -> None:
        self.out, self.names, self.silent, self.schema = out or "-", names, silent, schema
        self.safe_csv = safe_csv and (self.out == "-" or Path(self.out).suffix.lower() == ".csv")
        self.facts: dict[str, Any] = {}
        self.rows = 0
        self._writer: Writer | None = None
        self._columns = list(names or [])
        self._kept: list[list[Any]] = []

    def __enter__(self) -> Output:
        from made.io.write import Writer

        if self.out != "-" or not mode.json:
            self._writer = Writer(self.out, names=self.names, schema=self.schema).__enter__()
        return self

    def write(self, rows: Any) -> None:
        """Write a batch of rows."""
        from made.io.write import spreadsheet_safe

        self.rows += len(rows)
        if self._writer is not None:
            self._writer.write(spreadsheet_safe(arrow(rows, self.names)) if self.safe_csv else rows)
        elif hasattr(rows, "column_names"):
            self._columns = rows.column_names
            self._kept += [list(row.values()) for row in rows.to_pylist()]
        else:
            self._kept += rows.tolist()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.__exit__(kind, error, trace)
            self.schema = self._writer.schema
        if kind is not None or self.silent:
            return
        if self._writer is None:
            print_json({"columns": self._columns, "rows": self._kept} | self.facts)
        else:
            self.tell()

    def tell(self) -> None:
        """Print how many rows were written to the file."""
        if mode.json:
            print_json({"rows": self.rows, "out": self.out} | self.facts)
        elif self.out != "-":
            count = self.facts.get("parts", 0)
            parts = f", in {count} part{'s' * (count != 1)}" if count else ""
            note(f"{self.rows} rows written to {self.out}{parts}.")


def arrow(rows: Any, names: Sequence[str] | None) -> pa.Table:
    """A batch as a pyarrow table; ``names`` are the columns of an array."""
    from made.io.write import as_table

    return as_table(rows, None if hasattr(rows, "column_names") else names)


def texts(table: Any, rows: NDArray[Any], columns: NDArray[Any]) -> pa.Array:
    """Some entries of a table as text, as in CSV, by their rows and columns; null where missing."""
    import pyarrow as pa

    from made.io.write import as_text

    if not hasattr(table, "column_names"):
        values = [None if value is None or value != value else str(value) for value in table[rows, columns].tolist()]
        return pa.array(values, pa.large_string())
    found = [
        as_text(table.column(d).take(pa.array(rows[columns == d])).combine_chunks()) for d in range(table.shape[1])
    ]
    # Column by column; then back in the order that was asked for.
    return pa.chunked_array(found).combine_chunks().take(columns.argsort(kind="stable").argsort())
