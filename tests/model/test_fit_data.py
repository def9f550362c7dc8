"""Tables in files: the model of the same rows in memory, memory-mapped codes, and what is left of them."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from forks import Forks
from made import MADE
from made.errors import DataError, ParameterError
from made.io.files import Files
from made.model import code_files, fit_data
from made.model.encode import draw_apart
from made.tables import summary
from made.tables.stream import TableStream
from made.training import order

ROWS = 300
SMALL: dict[str, Any] = {"hidden_sizes": (16,), "max_epochs": 2, "random_state": 0, "evaluation_masks": 1}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    random = np.random.default_rng(0)
    return pa.table(
        {
            "real": random.normal(size=ROWS),
            "kind": pa.array(random.choice(["p", "q", "r"], ROWS), mask=random.random(ROWS) < 0.1),
            "count": random.integers(0, 4, ROWS),
            "amount": pa.array(np.rint(random.exponential(50, ROWS)), mask=random.random(ROWS) < 0.2),
        }
    )


@pytest.fixture
def files(tmp_path: Path, table: pa.Table) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for number, begin in enumerate((0, 100, 250)):
        parquet.write_table(table.slice(begin, (100, 150, 50)[number]), folder / f"part{number}.parquet")
    return folder


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables in files are large."""
    monkeypatch.setattr(fit_data, "IN_MEMORY", 0)


def bits(model: MADE) -> dict[str, Any]:
    """All that a model is, without times."""
    weights = {name: value.numpy().tobytes() for name, value in model.model_.network.state_dict().items()}
    config = model.model_.config.to_json()
    scores = {name: value for name, value in config["scores"].items() if name != "seconds"}
    missing = model.model_.missingness
    return weights | config | {"scores": scores, "missing": missing and missing.weights.numpy().tobytes()}


@pytest.mark.parametrize(("missing", "valid"), [("unobserved", False), ("category", True)])
def test_the_same_bits_from_memory_and_from_disk(
    files: Path, table: pa.Table, missing: str, valid: bool, on_disk: None
) -> None:
    options = SMALL | {"missing": missing}
    rows, held_out = (table.slice(0, 250), table.slice(250)) if valid else (table, None)
    paths = sorted(files.iterdir())
    whole = MADE(**options).fit(rows, X_valid=held_out)
    streamed = MADE(**options).fit(paths[:2] if valid else files, X_valid=paths[2] if valid else None)
    assert bits(streamed) == bits(whole)
    assert streamed.sample(3).equals(whole.sample(3))


def test_the_same_bits_of_a_long_table(
    files: Path, table: pa.Table, on_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample for the schema, and an epoch that is a part of a pass."""
    monkeypatch.setattr(summary, "LEAST", 64)
    monkeypatch.setattr(summary, "NUMBERS", 64)
    monkeypatch.setattr(order, "SORTED", 100)
    monkeypatch.setattr(fit_data, "MOST_HELD_OUT", 7)
    streamed, whole = MADE(**SMALL).fit(str(files / "*.parquet")), MADE(**SMALL).fit(table)
    assert bits(streamed) == bits(whole)
    assert [epoch.updates for epoch in streamed.model_.history] == [4, 8]
    assert streamed.model_.config.data.valid_rows == 7


def test_missing_shares_and_ranges_are_described(files: Path, table: pa.Table) -> None:
    observed = MADE(**SMALL | {"max_epochs": 0}).fit(files).observed_
    assert observed[1] == {"missing": pytest.approx(table["kind"].null_count / ROWS)}
    assert observed[2] == {"missing": 0, "range": [0, 3]}


class Stop(KeyboardInterrupt):
    """Stands for Ctrl-C."""


def stopped(files: Path, model: Path) -> None:
    def stop(epoch: Any) -> None:
        assert (model / ".made-codes" / "about.json").is_file()
        raise Stop

    with pytest.raises(Stop):
        MADE(**SMALL).fit(files, resume_from=model, after_epoch=stop)


def test_an_interrupted_run_keeps_its_codes_and_resumes_from_them(
    files: Path, tmp_path: Path, on_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bits(MADE(**SMALL).fit(files))
    model = tmp_path / "model"
    stopped(files, model)
    monkeypatch.setattr(fit_data.FitData, "_summarize", lambda self: pytest.fail("the table was read again"))
    resumed = MADE(**SMALL).fit(files, resume_from=model)
    assert bits(resumed) == whole
    assert not (model / ".made-codes").exists()


def test_codes_of_other_rows_or_damaged_ones_are_not_taken(
    files: Path, table: pa.Table, tmp_path: Path, on_disk: None
) -> None:
    model = tmp_path / "model"
    stopped(files, model)
    about = model / ".made-codes" / "about.json"
    sound = about.read_bytes()

    def taken() -> bool:
        rows = TableStream(Files.of(files))
        found = fit_data.FitData(rows, None, MADE(**SMALL).get_params(), 0, folder=model)
        found.close(keep=True)
        return found.resumed

    assert taken()
    for damage in (b"{", b"[]", b"{}", sound[:-9]):
        about.write_bytes(damage)
        assert not taken()
    assert taken()
    (model / ".made-codes" / "train.values").write_bytes(b"short")
    assert not taken()
    parquet.write_table(table.slice(250, 49), files / "part2.parquet")
    assert not taken()


def test_a_disk_without_room_is_refused_before_anything_is_written(
    files: Path, tmp_path: Path, on_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_files.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 9))  # type: ignore[attr-defined]
    with pytest.raises(DataError, match=r"do not fit on the disk of '.*model': 6,000 bytes are needed, and 9 are free"):
        MADE(**SMALL).fit(files, resume_from=tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_disk_that_fills_while_codes_are_written(
    files: Path, tmp_path: Path, on_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that was there stays as it was, and the codes are removed."""
    model = tmp_path / "model"
    before = bits(MADE(**SMALL).fit(files, resume_from=model))

    def full(self: Any, values: Any, observed: Any) -> None:
        with self.files.writing():
            (self.files.path / "train.values").write_bytes(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(code_files.FilePair, "add", full)
    with pytest.raises(DataError, match=r"do not fit on the disk of .*: no space left on device"):
        MADE(**SMALL | {"max_epochs": 3}).fit(files, resume_from=model)
    assert not (model / ".made-codes").exists()
    assert bits(MADE.load(model)) == before


@pytest.mark.parametrize("in_memory", [False, True])
def test_what_a_run_leaves_that_is_killed_while_codes_are_written_is_removed(
    files: Path, table: pa.Table, tmp_path: Path, on_disk: None, forks: Forks, in_memory: bool
) -> None:
    whole, model = bits(MADE(**SMALL).fit(files)), tmp_path / "model"
    killed = f"""
import os, signal
from pathlib import Path
from made import MADE
from made.model import code_files, fit_data
fit_data.IN_MEMORY = 0
add = code_files.FilePair.add
def kill(self, *rows):
    add(self, *rows)
    os.kill(os.getpid(), signal.SIGKILL)
code_files.FilePair.add = kill
MADE(**{SMALL!r}).fit({str(files)!r}, resume_from=Path({str(model)!r}))
"""
    assert forks.wait(forks.start(killed, stderr=tmp_path / "log")) == -signal.SIGKILL
    assert (model / ".made-codes" / "train.values").exists()
    (model / ".made-codes" / "letter.txt").write_text("dear")
    again = MADE(**SMALL).fit(table if in_memory else files, resume_from=model)
    assert bits(again) == whole
    assert [file.name for file in (model / ".made-codes").iterdir()] == ["letter.txt"]


def test_foreign_files_with_the_names_of_codes_are_not_overwritten(files: Path, tmp_path: Path, on_disk: None) -> None:
    codes = tmp_path / "model" / ".made-codes"
    codes.mkdir(parents=True)
    (codes / "train.values").write_text("dear")
    with pytest.raises(FileExistsError, match=r"train\.values was not written by made, and is not overwritten"):
        MADE(**SMALL).fit(files, resume_from=tmp_path / "model")
    assert {file.name: file.read_text() for file in codes.iterdir()} == {"train.values": "dear"}


def test_a_foreign_folder_is_not_written_to(files: Path, tmp_path: Path, on_disk: None) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(FileExistsError, match="not of a model of made"):
        MADE(**SMALL).fit(files, resume_from=tmp_path / "mine")
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_a_target_and_weights_are_for_tables_in_memory(files: Path) -> None:
    with pytest.raises(ParameterError, match="for tables in memory"):
        MADE(**SMALL).fit(files, y=np.zeros(ROWS))


def test_foreign_files_of_a_folder_are_left_out_with_a_warning(files: Path) -> None:
    (files / "notes.txt").write_text("no table")
    with pytest.warns(UserWarning, match="not tables are ignored: .*notes.txt"):
        MADE(**SMALL | {"max_epochs": 0}).fit(files)


def test_rows_apart_are_those_with_the_least_random_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = np.random.Philox(key=5, counter=[0, 0, 0, 4]).random_raw(1000)
    monkeypatch.setattr("made.model.encode.CHUNK", 64)
    assert draw_apart(1000, 100, 5).tolist() == sorted(np.argsort(bits, kind="stable")[:100].tolist())
