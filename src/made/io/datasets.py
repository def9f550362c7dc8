"""Named datasets: embedded, from a folder, or downloaded once; verified whenever they are loaded.

A dataset is a file ``<name>.npz`` of the arrays train, valid and test, eight columns to a byte, and d, the number of
columns. It is looked for in the folder MADE_DATA, then in the cache (MADE_CACHE; default: ``made`` in the user's cache
folder). Otherwise it is downloaded from the code release of the paper, or from MADE_MIRROR if that is set.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from made.errors import DataError
from made.io.atomic import atomic
from made.io.read import read, shapes

SPLITS = ("train", "valid", "test")

_RELEASE = "https://github.com/mgermain/MADE"  # the paper's; its tag is ICML2015
_TIMEOUT = 30  # seconds without a byte
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Dataset:
    """Training, validation and test rows; ``image`` is the shape of a row that is an image."""

    name: str
    train: NDArray[np.uint8]
    valid: NDArray[np.uint8]
    test: NDArray[np.uint8]
    image: tuple[int, int] | None = None


@dataclass(frozen=True)
class DatasetInfo:
    """The facts about a dataset that need no download; ``columns`` and rows as in Table 2 of the paper."""

    columns: int
    train: int
    valid: int
    test: int
    about: str
    image: tuple[int, int] | None = None  # the shape of a row that is an image
    attached: bool = False  # whether the file is attached to the release instead of being in its repository

    def __post_init__(self) -> None:
        object.__setattr__(self, "image", self.image and tuple(self.image))


_FACTS = json.loads(Path(__file__).with_name("datasets.json").read_text())
# The sha256 of the bit-packed rows of a split, or of two, in sorted order: sources differ in the order of rows, and for
# web in how training and validation rows are divided. There was no copy of rcv1 to take digests of: only its shapes and
# entries are checked.
DIGESTS: dict[str, dict[str, str]] = {name: facts.pop("sha256") for name, facts in _FACTS.items() if "sha256" in facts}
_INFOS = {name: DatasetInfo(**facts) for name, facts in _FACTS.items()}
NAMES = {name: info for name, info in _INFOS.items() if info.test}
# Tables that come with the package as CSV files, without splits: all rows are for training.
TABLES = {name: info for name, info in _INFOS.items() if not info.test}


def digits() -> Dataset:
    """scikit-learn's handwritten digits, 8 x 8, binarized at half of the maximum; embedded.

    Example:
        >>> data = digits()
        >>> data.train.shape, data.valid.shape, data.test.shape
        ((1197, 64), (300, 64), (300, 64))
    """
    from sklearn.datasets import load_digits

    rows = (load_digits().data >= 8).astype(np.uint8)
    # The original is ordered by writer: shuffled once, the same everywhere.
    rows = rows[np.argsort(np.random.Philox(key=0).random_raw(len(rows)), kind="stable")]
    return Dataset("digits", rows[:1197], rows[1197:1497], rows[1497:], image=(8, 8))


def load(name: str) -> Dataset:
    """A dataset by its name: one of ``NAMES``, or a file of the same form in MADE_DATA."""
    if name == "digits":
        return digits()
    path = where(name) or download(name)
    try:
        rows = _rows(path, name)
    except DataError as error:
        raise DataError(f"{error} Put the right file there, or remove it.") from None
    return Dataset(name, rows["train"], rows["valid"], rows["test"], NAMES[name].image if name in NAMES else None)


def table_file(name: str) -> Path | None:
    """The CSV file of a table that comes with the package; None if there is no table of this name.

    Example:
        >>> str(table_file("penguins")).endswith("penguins.csv"), table_file("adult")
        (True, None)
    """
    return Path(__file__).with_name(f"{name}.csv") if name in TABLES else None


def split(source: str) -> tuple[str, str | None]:
    """The name of a dataset and of a split, if there is one.

    Example:
        >>> split("adult:test"), split("adult")
        (('adult', 'test'), ('adult', None))
    """
    name, colon, part = source.partition(":")
    if colon and part not in SPLITS:
        raise DataError(f"{source!r}: after the colon should be one of {', '.join(SPLITS)}, not {part!r}.")
    return name, part or None


def where(name: str) -> Path | None:
    """The file that a dataset would be loaded from; None if it is embedded or not downloaded yet."""
    folder = _folder()
    if folder and re.fullmatch(r"[\w-]+", name) and name != "digits":
        path = folder / f"{name}.npz"
        if path.is_file():
            return path
    if name not in NAMES:
        raise DataError(f"{name!r} is not a dataset, nor in the folder MADE_DATA: choose from {', '.join(NAMES)}.")
    path = cache() / f"{name}.npz"
    return path if path.is_file() else None


def known(name: str) -> bool:
    """Whether there is a dataset of this name."""
    try:
        where(name)
    except DataError:
        return False
    return True


def state(name: str) -> str:
    """Where a dataset is: embedded, in MADE_DATA, cached, or to download."""
    path = where(name)
    if path is None:
        return "embedded" if name == "digits" else "to download"
    return "in MADE_DATA" if path.parent == _folder() else "cached"


def cache() -> Path:
    """The folder for downloads, which may not exist yet."""
    if chosen := os.environ.get("MADE_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "made"


def download(name: str, *, progress: bool = True) -> Path:
    """Download a dataset into the cache, verified, and give its file; a cached copy is replaced."""
    if name == "digits" or name not in NAMES:
        names = ", ".join(other for other in NAMES if other != "digits")
        raise DataError(f"{name!r} cannot be downloaded: choose from {names}.")
    address, folder = _address(name), cache()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".") as temporary:
            path = Path(temporary) / "download.npz"
            with path.open("wb") as handle:
                _fetch(name, address, handle, progress)
            try:
                rows = _rows(path, name)
            except DataError as error:
                raise DataError(str(error).replace(repr(str(path)), address)) from None
        packed: dict[str, Any] = {part: np.packbits(rows[part], axis=1) for part in SPLITS}
        with atomic(folder / f"{name}.npz") as handle:
            np.savez_compressed(handle, **packed, d=NAMES[name].columns)
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"the cache {str(folder)!r} cannot be used: {reason}. MADE_CACHE can name another.") from None
    return folder / f"{name}.npz"


def _folder() -> Path | None:
    text = os.environ.get("MADE_DATA")
    if text and not Path(text).is_dir():
        raise DataError(f"MADE_DATA should name a folder, not {text!r}.")
    return Path(text) if text else None


def _address(name: str) -> str:
    if mirror := os.environ.get("MADE_MIRROR"):
        if not mirror.startswith(("http://", "https://")):
            raise DataError(f"MADE_MIRROR should start with http:// or https://, not be {mirror!r}.")
        return f"{mirror.rstrip('/')}/{name}.npz"
    inside = "releases/download/ICML2015" if NAMES[name].attached else "raw/ICML2015/datasets"
    return f"{_RELEASE}/{inside}/{name}.npz"


class _Meter:
    """Progress of a download, in the form that pooch wants, which ends it when it exceeds a number of bytes."""

    def __init__(self, name: str, address: str, most: int, shown: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), disable=not shown)
        self._task = self._bar.add_task(name, total=None)
        self._name, self._address, self._most, self._got = name, address, most, 0
        self.total: int | None = None
        self._bar.start()

    def update(self, size: int) -> None:
        self._got += size
        if self._got > self._most:
            raise DataError(f"{self._address} is more than the {self._most:,} bytes that {self._name!r} can take.")
        self._bar.update(self._task, total=self.total or None, completed=self._got)

    def reset(self) -> None:
        self._got = 0

    def close(self) -> None:
        self._bar.stop()


def _fetch(name: str, address: str, handle: BinaryIO, progress: bool) -> None:
    from pooch import HTTPDownloader
    from requests import RequestException

    info = NAMES[name]
    # Eight bytes for each entry, uncompressed, and room for the names of arrays.
    most = (info.train + info.valid + info.test) * info.columns * 8 + (1 << 20)
    meter = _Meter(name, address, most, progress and sys.stderr.isatty())
    options = {"timeout": _TIMEOUT, "headers": {"User-Agent": "made"}}
    try:
        HTTPDownloader(progressbar=meter, chunk_size=_CHUNK, **options)(address, handle, None)
    except (RequestException, OSError) as error:
        reason = str(error) or type(error).__name__
    else:
        return
    finally:
        meter.close()
    raise DataError(f"{address} could not be downloaded: {reason}. MADE_DATA can name a folder with {name}.npz.")


def _rows(path: Path, name: str) -> dict[str, NDArray[np.uint8]]:
    """The verified splits of a file, bit-packed as here or plain as in the release."""
    claims, info = shapes(path), NAMES.get(name)
    packed = {*SPLITS, "d"} <= claims.keys()
    rows: dict[str, NDArray[np.uint8]] = {}
    for part in SPLITS:
        key = part if part in claims else f"{part}_data"
        if info:
            expected = (getattr(info, part), -(-info.columns // 8) if packed else info.columns)
            if claims.get(key, expected) != expected:  # before it is loaded
                raise DataError(f"{str(path)!r}, {key}: the shape for {name!r} is {expected}, not {claims[key]}.")
        array = np.asarray(read(f"{path}:{key}"))
        if not ((array == 0) | (array == 1)).all():
            raise DataError(f"{str(path)!r}, {key}: some entries are neither 0 nor 1.")
        rows[part] = array.astype(np.uint8, copy=False)
    columns = info.columns if info else rows["train"].shape[1]
    if wrong := [part for part in SPLITS if rows[part].shape[1] != columns]:
        count = rows[wrong[0]].shape[1]
        raise DataError(f"{str(path)!r}, {wrong[0]}: there should be {columns} columns, not {count}.")
    for parts, digest in DIGESTS.get(name, {}).items():
        if _digest(rows[part] for part in parts.split("+")) != digest:
            raise DataError(f"{str(path)!r}, {parts}: these are not the rows of {name!r}.")
    return rows


def _digest(parts: Iterable[NDArray[np.uint8]]) -> str:
    """The sha256 of rows regardless of their order, which differs between sources."""
    rows = sorted(row.tobytes() for part in parts for row in np.packbits(part, axis=1))
    return hashlib.sha256(b"".join(rows)).hexdigest()
