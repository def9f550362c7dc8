"""The rows of a fit, in memory or in files: their schema, and training and validation rows as the network takes them.

Two passes over the rows: one for the schema (:mod:`made.tables.summary`), one for the codes. The codes of a small table
stay in memory; the codes of a large table in files are written to memory-mapped files, from which training reads its
batches. The numbers are the same.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from made._version import __version__
from made.errors import DataError
from made.hints import hint
from made.model.code_files import CodeFiles, Part
from made.model.encode import AnyTable, Encoded, draw_apart, encode
from made.model.folder import check_replaceable
from made.tables.dates import objects
from made.tables.field import Field
from made.tables.schema import Schema
from made.tables.stream import TableStream
from made.tables.summary import ColumnSummary, TableSummary
from made.tables.table import Table
from made.training.progress import reading
from made.training.weights import RowWeights

IN_MEMORY = 2**28  # bytes of codes of a table in files, up to which they are kept in memory
MOST_HELD_OUT = 2**16  # rows


class FitData:
    """The rows of a fit.

    Arguments:
        table: the training rows.
        valid_table: the validation rows; None to hold out a share of the training rows.
        parameters: the parameters of :class:`made.MADE`.
        seed: the seed of the rows that are held out.
        weights: sample weights of the training rows.
        folder: the folder of the model, for memory-mapped files.
        verbose: show progress.

    Attributes:
        schema: the columns.
        encoded: the rows.
        template: an empty table with these columns.
        described: of each column, the share of missing values, and the range of numbers.
        weights, valid_weights: the weights of the training rows and of the validation rows.
        resumed: whether the codes were left by an earlier run.
    """

    schema: Schema
    encoded: Encoded
    template: Table
    described: list[dict[str, Any]]

    def __init__(
        self,
        table: AnyTable,
        valid_table: AnyTable | None,
        parameters: Mapping[str, Any],
        seed: int,
        weights: NDArray[np.float64] | None = None,
        folder: Path | None = None,
        verbose: bool = False,
    ) -> None:
        self.table, self.valid_table, self.parameters, self.seed = table, valid_table, parameters, seed
        self.all_weights, self.folder, self.verbose = weights, folder, verbose and isinstance(table, TableStream)
        self.weights: NDArray[np.float64] | None = weights
        self.valid_weights: NDArray[np.float64] | None = None
        self.dtype: torch.dtype = getattr(torch, parameters["dtype"])
        self.files: CodeFiles | None = None
        self.resumed = False
        try:
            self.resumed = self._resume()
            if not self.resumed:
                self._summarize()
                self.encode(self.schema)
        except BaseException:
            self.close()
            raise

    @property
    def on_disk(self) -> bool:
        """Whether the codes are in files."""
        return self.files is not None

    def close(self, *, keep: bool = False) -> None:
        """Remove the files of the codes, unless a resumable run needs them."""
        if self.files is not None:
            self.files.close(keep=keep and self.folder is not None)
            self.files = None

    def _summarize(self) -> None:
        """The first pass: the schema, and the number of rows."""
        table, weights = self.table, self.all_weights
        if weights is not None:
            assert isinstance(table, Table)
            table = table.repeated(RowWeights(weights).counts)
        summary, self.rows = TableSummary(table.head), 0
        with reading(self.verbose, "reading") as tick:
            for some in (table, self.valid_table):
                for piece in [] if some is None else some.pieces():
                    summary.add(piece, training=some is table)
                    tick(summary.rows, some.files.finished if isinstance(some, TableStream) else 0.0)
                if some is table:
                    self.rows, self.template = summary.rows, replace(table.head.template(), dtypes=summary.dtypes)
        options = {name: self.parameters[name] for name in ("missing", "unseen", "extrapolate")}
        self.schema = Schema.infer(summary, self.parameters["columns"], **options)
        self.valid_rows = summary.rows - self.rows
        self.rows = self.rows if weights is None else len(weights)
        columns = summary.columns
        self.described = [_described(column, summary.rows) for column in columns]
        observed = [not each.missing or field.missing for each, field in zip(columns, self.schema.fields, strict=True)]
        self.size = summary.rows * len(columns) * (self.dtype.itemsize + (not all(observed)))

    def encode(self, schema: Schema) -> None:
        """The second pass: the codes."""
        self.schema = schema
        held_out = 0 if self.valid_table is not None else self._held_out()
        apart = draw_apart(self.rows, held_out, self.seed)
        if self.all_weights is not None:
            self.weights = np.delete(self.all_weights, apart)
            self.valid_weights = self.all_weights[apart] if held_out else None
        self.close()
        width, valid_rows = len(schema.fields), held_out or self.valid_rows
        train, valid = Part(self.dtype), Part(self.dtype)
        if isinstance(self.table, TableStream) and self.size > IN_MEMORY:
            train, valid = self._files(width, self.rows - held_out, valid_rows)
        with reading(self.verbose, "coding") as tick:
            total = self.rows + self.valid_rows
            self.encoded = encode(
                self.table,
                self.valid_table,
                schema,
                schema.columns,
                train,
                valid,
                apart,
                self.weights,
                lambda rows: tick(rows, rows / total),
            )
        if self.files is not None:
            parts = [len(self.encoded.train), 0 if self.encoded.valid is None else len(self.encoded.valid)]
            self.files.complete(
                {
                    "asked": self._asked(),
                    "rows": parts,
                    "sha256": self.encoded.sha256,
                    "columns": [field.to_json() for field in schema.fields],
                    "named": schema.named,
                    "dropped": schema.dropped,
                    "dtypes": self.template.dtypes,
                    "described": [{key: _as_json(each) for key, each in one.items()} for one in self.described],
                }
            )

    def _files(self, width: int, rows: int, valid_rows: int) -> tuple[Part, Part]:
        """Files for the codes, announced and checked against the free space."""
        if self.folder is not None:
            check_replaceable(self.folder, ())
        self.files = files = CodeFiles(self.folder)
        if self.verbose:
            where = f"{files.path}, which is removed at the end"
            print(
                f"The codes of {rows + valid_rows:,} rows take {self.size / 2**30:.1f} GiB in {where}.",
                file=sys.stderr,
                flush=True,
            )
        files.start(self.size)
        return files.part("train", rows, width, self.dtype), files.part("valid", valid_rows, width, self.dtype)

    def _resume(self) -> bool:
        """Take the codes that an earlier run on the same files has left, and remove others; False if there are none."""
        if self.folder is None:
            return False
        self.files = CodeFiles.left(self.folder)
        about: Any = None if self.files is None else self.files.about()
        try:
            if isinstance(self.table, TableStream) and self.files is not None and about["asked"] == self._asked():
                self.schema = Schema(map(Field.from_json, about["columns"]), about["named"], about["dropped"])
                width, (rows, valid_rows) = len(self.schema.fields), about["rows"]
                train = self.files.read("train", rows, width, self.dtype)
                valid = self.files.read("valid", valid_rows, width, self.dtype) if valid_rows else None
                self.encoded = Encoded(train, valid, about["sha256"])
                self.template = replace(self.table.head.template(), dtypes=about["dtypes"])
                self.described = about["described"]
                self.rows = rows + (valid_rows if self.valid_table is None else 0)
                self.valid_rows = 0 if self.valid_table is None else valid_rows
                self.size = (rows + valid_rows) * width * (self.dtype.itemsize + 1)
                return True
        except (KeyError, TypeError, ValueError, OSError):
            pass  # damaged, or written by another version
        self.close()
        return False

    def _asked(self) -> Any:
        """Everything that the codes depend on, in the types of JSON."""
        names = ("columns", "missing", "unseen", "extrapolate", "validation_fraction", "dtype")
        tables = [each.files.signature() for each in (self.table, self.valid_table) if isinstance(each, TableStream)]
        known = None if self.valid_table is None or isinstance(self.valid_table, TableStream) else id(self.valid_table)
        return [__version__, tables, known, self.seed, [repr(self.parameters[name]) for name in names]]

    def _held_out(self) -> int:
        """The number of rows for validation, at least one unless there should be none."""
        rows, fraction = self.rows, float(self.parameters["validation_fraction"])
        if fraction == 0 or (self.parameters["max_epochs"] == 0 and rows < 2):
            return 0
        if rows < 2:
            raise DataError(
                f"n_samples={rows}, but at least 2 rows are needed, one of them for validation; or use "
                f"{hint(validation_fraction=0)}."
            )
        return min(max(1, round(fraction * rows)), rows - 1, MOST_HELD_OUT)


def _described(column: ColumnSummary, rows: int) -> dict[str, Any]:
    found: dict[str, Any] = {"missing": column.missing / rows}
    dates = column.as_dates() if column.dtype == "text" and not column.declared else None
    column = column if dates is None else dates
    if column.dtype != "text":
        ends = [column.numbers.low, column.numbers.high]
        if column.dtype == "date" or column.dtype == "datetime":
            found["range"] = objects(np.array(ends), column.dtype).tolist()
        else:
            found["range"] = ends if column.dtype == "float" else list(map(int, ends))
    return found


def _as_json(value: Any) -> Any:
    return (
        [each if isinstance(each, (int, float)) else str(each) for each in value] if isinstance(value, list) else value
    )
