"""Checks that every reader and writer shares: size limits, column names, column types, file suffixes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from made.errors import DataError
from made.io import ENDINGS, SUFFIXES
from made.io.time_zones import zone_of


def limit_bytes() -> int:
    """The most bytes that a table may take in memory: the environment variable MADE_MAX_BYTES; default: 4 GiB."""
    text = os.environ.get("MADE_MAX_BYTES") or str(4 << 30)
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) < 1:
        raise DataError(f"MADE_MAX_BYTES should be a whole number of bytes, at least 1, not {text!r}.")
    return int(text)


def check_size(size: int, name: str) -> None:
    """Refuse what would take more memory than the limit."""
    if size > (limit := limit_bytes()):
        raise DataError(
            f"{name} would take {size:,} bytes, more than the limit of {limit:,}: MADE_MAX_BYTES raises it."
        )


def check_names(names: Sequence[str], name: str) -> None:
    """Refuse a table without columns, or with two columns of the same name."""
    if twice := [column for column, count in Counter(names).items() if count > 1]:
        raise DataError(f"{name} has {twice[0]!r} more than once in its header: are these the names of its columns?")
    if not names:
        raise DataError(f"{name} has no columns.")


def check_types(schema: pa.Schema, name: str) -> None:
    """Refuse nested and binary columns, and times in an unknown time zone."""
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind) or is_text(kind)):
            raise DataError(f"{name}, column {field.name!r}: {field.type} is not a type of numbers, text or dates.")
        if pa.types.is_timestamp(kind) and kind.tz is not None and zone_of(kind.tz) is None:
            raise DataError(f"{name}, column {field.name!r}: the time zone {kind.tz!r} is not known here.")


def is_text(kind: pa.DataType) -> bool:
    """Whether a column type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def suffix_of(path: Path) -> str:
    """The suffix of a file name, in lower case; an unsupported one is refused."""
    if (suffix := path.suffix.lower()) not in SUFFIXES:
        raise DataError(f"{str(path)!r} should end in {ENDINGS}, or be '-' for standard input or output.")
    return suffix


@contextmanager
def parsing(name: str, kind: str) -> Iterator[None]:
    """Turn any exception that a library raises over a malformed file into a :class:`~made.errors.DataError`."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # hostile bytes can raise anything
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise DataError(f"{name} is damaged, or not a {kind} file: {reason}.") from None
