"""Several files as one table: paths, folders and globs, found, checked and read one after the other."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from made.errors import DataError
from made.io import ENDINGS, SUFFIXES
from made.io.checks import is_text
from made.io.read import stream

ROWS = 2**16  # of a piece
SHOWN = 5  # names in a message


def are_paths(X: object) -> bool:
    """Whether this is a path, or a list of paths, and not a table."""
    several = isinstance(X, (list, tuple)) and len(X) > 0
    return all(isinstance(each, (str, os.PathLike)) for each in (X if several else [X]))  # type: ignore[attr-defined]


@dataclass
class Files:
    """Files whose tables have the same columns, concatenated. Some of them may have no rows.

    Arguments:
        paths: the files.
        ignored: files of a folder that are not tables.

    Attributes:
        finished: the share of the bytes in files that have been read to the end.
    """

    paths: list[str]
    ignored: list[str] = field(default_factory=list)
    finished: float = 0.0
    _begun: Iterator[pa.Table | NDArray[Any]] | None = None

    @classmethod
    def of(cls, source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Files:
        """The files that a path stands for: a file, a folder of files, a glob such as ``data/*.parquet``, or a list.

        Files of a folder or a glob are in the order of their names. Of a folder, hidden files, folders and files whose
        names begin with an underscore are left out, and so are those that are not tables, which are ``ignored``.
        """
        found = cls([])
        for each in [source] if isinstance(source, (str, os.PathLike)) else source:
            found._add(os.fspath(each))
        if twice := [path for place, path in enumerate(found.paths) if path in found.paths[:place]]:
            raise DataError(f"{twice[0]!r} is given more than once: give each file once.")
        return found

    def _add(self, source: str) -> None:
        path = Path(source)
        if path.is_dir():
            files = sorted(each for each in path.iterdir() if each.is_file() and each.name[0] not in "._")
            tables = [str(each) for each in files if each.suffix.lower() in SUFFIXES]
            self.ignored += [str(each) for each in files if each.suffix.lower() not in SUFFIXES]
            if not tables:
                raise DataError(f"{source!r} is a folder without files that end in {ENDINGS}.")
            self.paths += tables
        elif os.path.lexists(source) or not re.search(r"[*?\[]", source):
            self.paths.append(source)  # reading it says what is wrong with it
        else:
            tables = sorted(each for each in glob.glob(source, recursive=True) if Path(each).is_file())
            if not tables:
                raise DataError(f"{source!r} matches no file.")
            self.paths += tables

    def signature(self) -> list[list[Any]]:
        """Names, sizes and times of change, which differ if a file has changed."""
        stats = [(os.path.abspath(path), os.stat(_on_disk(path))) for path in self.paths]
        return [[path, each.st_size, each.st_mtime_ns] for path, each in stats]

    def pieces(self) -> Iterator[pa.Table | NDArray[Any]]:
        """The rows in pieces, all with the columns of the first file, in its order."""
        begun, self._begun = self._begun, None
        yield from self._read() if begun is None else itertools.chain([self.first], begun)

    @cached_property
    def first(self) -> pa.Table | NDArray[Any]:
        """The first piece."""
        self._begun = self._read()
        return next(self._begun)

    @property
    def names(self) -> list[str]:
        """The names of the columns; x0, x1, ... for arrays."""
        return list(getattr(self.first, "column_names", [f"x{d}" for d in range(self.first.shape[1])]))

    def _read(self) -> Iterator[pa.Table | NDArray[Any]]:
        self.finished, done = 0.0, 0
        total = sum(os.stat(_on_disk(path)).st_size for path in self.paths if os.path.exists(_on_disk(path)))
        first = None
        for path in self.paths:
            for piece in stream(path, ROWS, may_be_empty=True):
                if first is None:
                    first = _FirstColumns(path, piece)
                yield first.arrange(path, piece)
            done += os.stat(_on_disk(path)).st_size
            self.finished = done / max(total, 1)
        if first is None:
            raise no_rows(self.paths)


def no_rows(paths: Sequence[str]) -> DataError:
    """The error of files that have no rows, all together: writers of many parts leave some of them empty."""
    if len(paths) == 1:
        return DataError(f"{paths[0]!r} has no rows.")
    return DataError(f"none of these {len(paths)} files has rows: {paths[0]!r} to {paths[-1]!r}.")


def _on_disk(path: str) -> str:
    """The file of a path that may name an array of an archive."""
    found = re.fullmatch(r"(.+\.npz):.*", path, flags=re.I | re.S)
    return found[1] if found else path


class _FirstColumns:
    """The columns of the first file, and where in a file the kind of each was first seen."""

    def __init__(self, path: str, piece: pa.Table | NDArray[Any]) -> None:
        self.path = path
        self.names = piece.column_names if isinstance(piece, pa.Table) else None
        self.width = piece.shape[1]
        self.families: dict[str, tuple[str, str]] = {}

    def arrange(self, path: str, piece: pa.Table | NDArray[Any]) -> pa.Table | NDArray[Any]:
        """A piece of a file with the columns in order; one that has others is refused."""
        if self.names is None or not isinstance(piece, pa.Table):
            if (self.names is None) == isinstance(piece, pa.Table):
                raise DataError(f"{path!r} and {self.path!r} cannot be one table: only one of them has column names.")
            if piece.shape[1:] != (self.width,):
                raise DataError(f"{path!r} has {piece.shape[1]} columns, but {self.path!r} has {self.width}.")
            return piece
        if piece.column_names != self.names:
            mine, theirs = set(self.names), set(piece.column_names)
            for names, has, lacks in ((mine - theirs, self.path, path), (theirs - mine, path, self.path)):
                if names:
                    shown = ", ".join(map(repr, sorted(names)[:SHOWN])) + (", ..." if len(names) > SHOWN else "")
                    raise DataError(
                        f"{has!r} has {shown}, which {lacks!r} lacks: files that are one table need the same columns."
                    )
            piece = piece.select(self.names)
        for column in piece.schema:
            family = _family(column.type)
            if family is None:
                continue
            before, where = self.families.setdefault(column.name, (family, path))
            if before != family:
                raise DataError(
                    f"column {column.name!r} has {family} in {path!r}, but {before} in {where!r}: convert one of them, "
                    "or leave the column out."
                )
        return piece


def _family(kind: pa.DataType) -> str | None:
    """What values of a type are; None if all are null."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind):
        return None
    return "text" if is_text(kind) else "times" if pa.types.is_temporal(kind) else "numbers"
