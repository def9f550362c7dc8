"""Answers of a cluster, written in parts: however a command was stopped, the same command continues it."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from command import run, run_json
from made import MADE
from made.errors import ClusterError
from made.io.read import read

RAY = ("--ray", "10.0.0.1:6379")
COMMANDS = [("score",), ("impute",), ("predict", "--target", "b"), ("explain",), ("sample", "-n", "40")]
ROWS = 45
STOPPED, LOST = KeyboardInterrupt(), ClusterError("the cluster is gone.")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A model, and two files of rows."""
    path = tmp_path_factory.mktemp("parts")
    random = np.random.default_rng(0)
    state = random.integers(3, size=ROWS).astype(float)
    columns = {"a": state, "b": (state + random.integers(2, size=ROWS)) % 3, "c": random.normal(size=ROWS).round(2)}
    table = pa.table(
        {name: pa.array(np.where(random.random(ROWS) < 0.2, np.nan, each)) for name, each in columns.items()}
    )
    (path / "rows").mkdir()
    for number, part in enumerate((table.slice(0, 25), table.slice(25))):
        parquet.write_table(part, path / "rows" / f"{number}.parquet")
    MADE(hidden_sizes=(8,), evaluation_masks=2, max_epochs=1, random_state=0).fit(table).save(path / "model")
    return path


class Cluster:
    """Answers where the command is given, in the order of the blocks, up to a block in which all fails.

    Attributes:
        asked: the files and the numbers of the blocks that were asked for.
        fails: after how many of them, and how.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.fails: tuple[int, BaseException] | None = None

    def __call__(self, address, question, folder, sources, begin=(0, 0), note=None, end=None):
        ask = question.open(folder)
        for file, source in enumerate(sources):
            for number, rows in enumerate(question.blocks(source)):
                if (file, number) < tuple(begin):
                    continue
                if self.fails is not None and len(self.asked) == self.fails[0]:
                    raise self.fails[1]
                self.asked.append((file, number))
                yield ask(file, number, rows)


@pytest.fixture
def cluster(monkeypatch) -> Cluster:
    """Blocks of 4 rows, parts of 3 blocks."""
    found = Cluster()
    monkeypatch.setattr("made.distributed.ray_data.answers_on_ray", found)
    monkeypatch.setattr("made.queries.batches.ROWS_AT_A_TIME", 4)
    monkeypatch.setattr("made.cli.parts.BLOCKS", 3)
    return found


def words(home, command) -> list[str]:
    name, *options = command
    return [name, home / "model", *([] if name == "sample" else [home / "rows"]), *options]


def parts(folder) -> list[pa.Table]:
    return [read(path) for path in sorted(folder.glob("part-*"))]


def same(table: pa.Table, other: pa.Table) -> bool:
    return table.to_pandas().equals(other.to_pandas())  # where missing values are


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_the_parts_are_the_answers_without_a_cluster_in_their_order(home, tmp_path, cluster, command, suffix) -> None:
    run(*words(home, command), "--out", tmp_path / f"one{suffix}")
    out = tmp_path / f"parts{suffix}"
    run(*words(home, command), "--out", out, *RAY)
    assert [len(part) for part in parts(out)][:3] == [12, 12, 9 if command[0] != "sample" else 12]
    assert same(pa.concat_tables(parts(out), promote_options="permissive"), read(tmp_path / f"one{suffix}"))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(("blocks", "error"), [(0, STOPPED), (2, LOST), (3, STOPPED), (7, LOST)])
def test_the_same_command_continues_after_the_last_part(home, tmp_path, cluster, command, blocks, error) -> None:
    out = tmp_path / "parts"
    run(*words(home, command), "--out", tmp_path / "whole", *RAY)
    everything, cluster.asked = cluster.asked, []
    cluster.fails = (blocks, error)
    run(*words(home, command), "--out", out, *RAY, code=130 if error is STOPPED else 3)
    cluster.fails, cluster.asked = None, []
    run(*words(home, command), "--out", out, *RAY)
    assert cluster.asked == everything[blocks - blocks % 3 :]
    assert all(map(same, parts(out), parts(tmp_path / "whole")))
    assert len(parts(out)) == len(parts(tmp_path / "whole"))
    cluster.asked = []
    assert run_json(*words(home, command), "--out", out, *RAY)["parts"] == len(parts(out))
    assert cluster.asked == []  # it is finished


def test_what_a_process_that_was_killed_has_left_is_removed(home, tmp_path, cluster) -> None:
    out = tmp_path / "parts"
    cluster.fails = (7, LOST)
    run(*words(home, ("score",)), "--out", out, *RAY, code=3)
    left = out / f".made-{'0' * 32}.part"
    left.mkdir()
    (left / "part-000002.parquet").write_bytes(b"half a par")
    cluster.fails = None
    run(*words(home, ("score",)), "--out", out, *RAY)
    assert not left.exists()
    assert sum(map(len, parts(out))) == ROWS


def test_a_folder_with_other_content_is_refused(home, tmp_path, cluster) -> None:
    out = tmp_path / "parts"
    cluster.fails = (4, LOST)
    run(*words(home, ("impute", "--seed", "1")), "--out", out, *RAY, code=3)
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def refused(*command) -> str:
        return run(*command, "--out", out, *RAY, code=2).stderr

    assert "the answers of another question" in refused(*words(home, ("impute", "--seed", "2")))
    assert "the answers of another table" in refused("impute", home / "model", home / "rows" / "0.parquet", "--seed", 1)
    state = json.loads(before["_made.json"])
    for damaged in (b"", b"{}", b"[]", json.dumps(state | {"place": 3}).encode()):
        (out / "_made.json").write_bytes(damaged)
        assert "_made.json is damaged" in refused(*words(home, ("impute", "--seed", "1")))
    (out / "_made.json").unlink()
    assert "has no parts of this command" in refused(*words(home, ("impute", "--seed", "1")))
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {
        name: content for name, content in before.items() if name != "_made.json"
    }
