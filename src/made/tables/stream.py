"""A table in files, read piece by piece in every pass over it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property

from made.errors import MadeError
from made.io.files import Files
from made.tables.table import Table


class TableStream:
    """The rows of files as tables, one piece in memory at a time.

    Arguments:
        files: the files.
        without: columns to drop, and
        kept: the number of others, if it is known; see :meth:`Table.of`.
    """

    def __init__(self, files: Files, without: Collection[str | int] = (), kept: int | None = None) -> None:
        self.files, self.without, self.kept = files, without, kept

    @cached_property
    def head(self) -> Table:
        """A table with these columns."""
        return Table.of(self.files.first, self.without, self.kept).template()

    def pieces(self) -> Iterator[Table]:
        """All rows, piece by piece; errors name the row in all of them."""
        first = 0
        for piece in self.files.pieces():
            try:
                table = Table.of(piece, self.without, self.kept)
            except MadeError as error:
                raise error.after(first) from None
            yield table
            first += table.rows
