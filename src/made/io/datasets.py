"""Named datasets: embedded, from a folder, or downloaded once; verified whenever they are loaded.

A dataset is a file ``<name>.npz`` of the arrays train, valid and test, eight columns to a byte, and d, the number of
columns. It is looked for in the folder MADE_DATA, then in the cache (MADE_CACHE; default: ``made`` in the user's cache
folder). Otherwise it is downloaded from the code release of the paper, or from MADE_MIRROR if that is set.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from made.errors import DataError
from made.io.atomic import atomic
from made.io.read import read, shapes

__all__ = [
    "DIGESTS",
    "NAMES",
    "SPLITS",
    "TABLES",
    "Dataset",
    "DatasetInfo",
    "cache",
    "digits",
    "download",
    "known",
    "load",
    "split",
    "state",
    "table_file",
    "where",
]

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
    """What is known about a dataset before it is loaded.

    Arguments:
        columns, train, valid, test: numbers of columns and rows (Table 2 of the paper).
        about: a description in one line.
        image: the shape of a row that is an image.
        attached: whether the file is attached to the release instead of being in its repository.
    """

    columns: int
    train: int
    valid: int
    test: int
    about: str
    image: tuple[int, int] | None = None
    attached: bool = False


NAMES: dict[str, DatasetInfo] = {
    "digits": DatasetInfo(64, 1197, 300, 300, "handwritten digits of scikit-learn, binarised", image=(8, 8)),
    "adult": DatasetInfo(123, 5000, 1414, 26147, "people of the 1994 census of the United States, one-hot"),
    "connect4": DatasetInfo(126, 16000, 4000, 47557, "positions of the game Connect Four after eight moves, one-hot"),
    "dna": DatasetInfo(180, 1400, 600, 1186, "stretches of 60 letters of DNA, some of them splice junctions, coded"),
    "mushrooms": DatasetInfo(112, 2000, 500, 5624, "mushrooms, edible and poisonous, by their looks, one-hot"),
    "nips": DatasetInfo(500, 400, 100, 1240, "which of 500 words are in a paper of NIPS, volumes 0 to 12"),
    "ocr_letters": DatasetInfo(128, 32152, 10000, 10000, "handwritten letters", image=(16, 8)),
    "rcv1": DatasetInfo(150, 40000, 10000, 150000, "which of 150 words are in a news story of Reuters", attached=True),
    "web": DatasetInfo(300, 14000, 3188, 32561, "which of 300 keywords are in a page of the web"),
    "binarized_mnist": DatasetInfo(
        784, 50000, 10000, 10000, "MNIST's handwritten digits, binarised once, at random", image=(28, 28), attached=True
    ),
}

# Tables that come with the package as CSV files, without splits: all rows are for training.
TABLES: dict[str, DatasetInfo] = {
    "penguins": DatasetInfo(
        7, 344, 0, 0, "three species of penguins of Palmer Station, Antarctica: text, numbers, missing values"
    ),
}

# The sha256 of the bit-packed rows of a split, or of two, in sorted order: sources differ in the order of rows, and for
# web in how training and validation rows are divided. There was no copy of rcv1 to take digests of: only its shapes and
# entries are checked.
DIGESTS: dict[str, dict[str, str]] = {
    "adult": {
        "train": "05a2f2360f58bc94e6ce24da1c5a4d9b919f0f789f44b5732e5988a9660ecd7f",
        "valid": "089d992826f3d2b329cc297726eb11a4400e0cdf88281a31d0ddbcaa50b72ecc",
        "test": "da8f06c5dd0926c534fadf31e2a1f64d11ad783a18d839ad6e0d72c7a90a9b5f",
    },
    "connect4": {
        "train": "a0b72dd7af70828c0c06cd2f1d30f4c0a61b91aec9ebc0e98f29a0320faa7cfc",
        "valid": "f8532cade072a97566719907ed3f15ad158bb1e06103fb5720fdc8b2d449e611",
        "test": "e6529c6497b4e8683598a30168ec58809a6458ba8a07ea8cf7abf7ff6f5a6564",
    },
    "dna": {
        "train": "46918e88b24d5ddd4c81dabff6cd1808ba177b5c342adcf770840ccf1c7d3984",
        "valid": "1f67d901fdc3ce6df9469d25c81c9f9e9d96956ec15221ea21c9727cde0173f3",
        "test": "bb7d0812242a73e0e2765c9b59d0ff284dcdb89472833f3f7e7f2076e49f604f",
    },
    "mushrooms": {
        "train": "5f4228c538defab39785bd973842fda39a4c4a848acd2db643b7b34c90d406df",
        "valid": "da85fbc4cafc6272fce107af6e5197e2ef0c640e3fc695cbeb97b275f006e7bf",
        "test": "a71e27a4fb68c6b024d6d68f0f180e505f860cda5b0adb255ab51ce2a7ca934a",
    },
    "nips": {
        "train": "d4b4c83be88ae8c6517b17cc909c7b5efcf08db500e9f793a7a4f68eab0a84e2",
        "valid": "fd71de12e627994c65d070c58bb8dfacd351bb4c6c35094da931eb72ff705929",
        "test": "5d0ee2e65ce1fc8c5fd3af1b7c8eb8d76f3f76001ae3f659af5089382366b727",
    },
    "ocr_letters": {
        "train": "e918519b67bd266466ba9a5dd4328f24a0b39f2fc7bfc48076614906bb92e42b",
        "valid": "5bb2aafc08bdb335fa23f1638e52c254c490c7d2ab1c366871e089b0b86e37ca",
        "test": "4e8b68ccef3e2844a437411e91846d2c44e888fc7f4662c1d4d43b58fac26af4",
    },
    "web": {
        "train+valid": "aaa55ff66b41438dd2ed8939daf45e69f9f2d096a383be25cfe7730c0d8601dc",
        "test": "868e56f689bdf6d63fec74f45532bbfdccd54112f3ce52e4d5ce795e82393f69",
    },
    "binarized_mnist": {
        "train": "aae6de292e6b68d898acf52062a1ac62907fc7ab417c59582d6523a1da0f9a61",
        "valid": "d10b4edf2e0765693846b51a5895f81f69fa37b6459b7f665bfa9c8cc9723622",
        "test": "87ff96664646cc41575aeb3ae4fbbabc1475ca3d42be4659d7a829d9f22c845a",
    },
}


def digits() -> Dataset:
    """scikit-learn's handwritten digits, 8 x 8, binarised at half of the maximum; embedded.

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
        packed = {part: np.packbits(rows[part], axis=1) for part in SPLITS}
        with atomic(folder / f"{name}.npz") as handle:
            np.savez_compressed(
                handle, train=packed["train"], valid=packed["valid"], test=packed["test"], d=NAMES[name].columns
            )
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
