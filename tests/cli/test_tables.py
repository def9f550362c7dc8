"""Questions about tables on the command line: predict, denoise, how sure it is, and tables of any length."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from command import run, run_json
from data_files import write
from made import MADE
from made.cli import app
from made.io.read import read
from made.io.write import Writer

FAST = ["--hidden-sizes", "64,64", "--evaluation-masks", "2", "--learning-rate", "0.01", "--seed", 0]
RANDOM = np.random.default_rng(0)
SPECIES = RANDOM.choice(["cat", "dog, big", "hen"], size=300)
TABLE = pd.DataFrame(
    {
        "species": SPECIES,
        "weight": (3 + 15 * (SPECIES == "dog, big") + RANDOM.random(300)).round(2),
        "legs": 4 - 2 * (SPECIES == "hen"),
        "tame": (SPECIES != "hen") ^ (RANDOM.random(300) < 0.1),
        "age": RANDOM.integers(0, 40, 300),
    }
)
MISSING = TABLE.astype(object).mask(np.random.default_rng(1).random(TABLE.shape) < 0.15)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a table, one with missing values, and a model."""
    path = tmp_path_factory.mktemp("tables")
    TABLE.to_csv(path / "whole.csv", index=False)
    MISSING.to_csv(path / "missing.csv", index=False)
    pyarrow.parquet.write_table(read(path / "missing.csv"), path / "missing.parquet", row_group_size=100)
    run("fit", path / "whole.csv", "--out", path / "model", *FAST, "--quiet")
    return path


@pytest.fixture
def in_blocks(monkeypatch) -> None:
    """Blocks of a few rows, so that a small table has many."""
    monkeypatch.setattr("made.queries.batches.ROWS_AT_A_TIME", 32)
    monkeypatch.setattr("made.io.csv_blocks.BLOCK", 256)


@pytest.mark.parametrize("command", ["predict", "denoise", "impute"])
def test_help_needs_no_torch(command) -> None:
    code = (
        "import sys\nfrom made.cli import main\ntry: main()\n"
        "finally: assert not {'torch', 'sklearn', 'pyarrow', 'pydantic'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code, command, "--help"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert {"--json", "--quiet", "--seed", "--out"} <= set(re.findall(r"--[a-z-]+", result.stdout))


def test_a_column_with_values_is_predicted(home, tmp_path) -> None:
    out = tmp_path / "predicted.csv"
    said = run("predict", home / "model", home / "whole.csv", "--target", "tame", "--out", out).stderr
    assert re.search(r"tame: log loss [\d.]+, accuracy [\d.]+, auc [\d.]+; 300 rows with a known value", said)
    table = pyarrow.csv.read_csv(out)
    assert table.column_names == ["tame", "p(False)", "p(True)"]
    expected = MADE.load(home / "model").predict_proba(TABLE, target="tame")
    assert table["p(True)"].to_numpy() == pytest.approx(expected[:, 1], abs=1e-6)
    assert table["tame"].to_pylist() == (expected[:, 1] > 0.5).tolist()
    facts = run_json("predict", home / "model", home / "whole.csv", "--target", "tame")
    assert facts["scores"]["auc"] == pytest.approx(roc_auc_score(TABLE["tame"], [row[2] for row in facts["rows"]]))


def test_a_column_with_three_values_is_predicted_in_json(home) -> None:
    facts = run_json("predict", home / "model", home / "whole.csv", "--target", "species")
    assert facts["columns"] == ["species", "p(cat)", "p(dog, big)", "p(hen)"]
    assert facts["target"] == "species"
    scores = facts["scores"]
    right = np.array([row[0] for row in facts["rows"]]) == TABLE["species"]
    assert scores["accuracy"] == pytest.approx(right.mean())
    truth = [row[1 + ["cat", "dog, big", "hen"].index(kind)] for row, kind in zip(facts["rows"], SPECIES, strict=True)]
    assert scores["log_loss"] == pytest.approx(-np.log(truth).mean(), abs=1e-5)
    assert "auc" not in scores


def test_a_column_of_numbers_is_predicted(home) -> None:
    facts = run_json("predict", home / "model", home / "missing.csv", "--target", "weight")
    assert facts["columns"] == ["mean", "standard_deviation", "q05", "median", "q95"]
    rows = np.array(facts["rows"])
    assert rows.shape == (300, 5)
    assert (rows[:, 2] <= rows[:, 3]).all()
    assert (rows[:, 3] <= rows[:, 4]).all()
    known = MISSING["weight"].notna().to_numpy()
    errors = rows[known, 0] - MISSING["weight"][known].astype(float)
    assert facts["scores"]["rows"] == known.sum()
    assert facts["scores"]["rmse"] == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-4)
    assert np.isfinite(facts["scores"]["mean_log_density"])


def test_rows_may_lack_what_is_predicted(home, tmp_path) -> None:
    MISSING.drop(columns="species").to_csv(tmp_path / "lacks.csv", index=False)
    result = run("predict", home / "model", tmp_path / "lacks.csv", "--target", "species")
    assert "known" not in result.stderr
    assert result.stdout == run("predict", home / "model", home / "missing.csv", "--target", "species").stdout
    strange = MISSING.copy()
    strange.loc[:9, "species"] = "horse"
    strange.to_csv(tmp_path / "strange.csv", index=False)
    result = run("predict", home / "model", tmp_path / "strange.csv", "--target", "species")
    assert "10 rows have a value of 'species' that the model does not know" in result.stderr
    assert len(result.stdout.splitlines()) == 301
    result = run("predict", home / "model", tmp_path / "strange.csv", "--target", "age")
    assert "values that training never saw: 10 of 'species'" in result.stderr


def test_arrays_are_predicted_and_cleaned(tmp_path) -> None:
    rows = np.random.default_rng(0).integers(2, size=(60, 1)).repeat(3, axis=1)
    MADE(hidden_sizes=(8,), max_epochs=5, random_state=0).fit(rows).save(tmp_path / "model")
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "lacks.npy", rows[:, :2])
    whole = run("predict", tmp_path / "model", tmp_path / "rows.npy", "--target", "2").stdout
    assert run("predict", tmp_path / "model", tmp_path / "lacks.npy", "--target", "x2").stdout == whole
    facts = run_json("denoise", tmp_path / "model", tmp_path / "rows.npy", "--out", tmp_path / "clean.npy")
    assert facts["method"] == "exact"
    assert np.load(tmp_path / "clean.npy").shape == (60, 3)


def test_each_filled_entry_has_a_line(home, tmp_path) -> None:
    run("impute", home / "model", home / "missing.csv", "--out", tmp_path / "full.csv",
        "--uncertainty", tmp_path / "sure.csv")  # fmt: skip
    full, sure = pd.read_csv(tmp_path / "full.csv", dtype=str), pd.read_csv(tmp_path / "sure.csv")
    missing = MISSING.isna().to_numpy()
    assert sure.columns.tolist() == [
        "row", "column", "value", "probability", "entropy", "standard_deviation", "low", "high"
    ]  # fmt: skip
    assert len(sure) == missing.sum()
    places = [(row, TABLE.columns[d]) for row, d in zip(*missing.nonzero(), strict=True)]
    assert list(zip(sure["row"], sure["column"], strict=True)) == places
    for line in sure.itertuples():
        assert full[line.column][line.row] == str(line.value)
        numeric = line.column in ("weight", "age")
        assert np.isnan(line.probability) == numeric
        assert np.isnan(line.standard_deviation) == (not numeric)
        if not numeric:
            assert 0 < line.probability <= 1
    run("impute", home / "model", home / "whole.csv", "--out", tmp_path / "same.csv", "--uncertainty",
        tmp_path / "none.parquet")  # fmt: skip
    assert pyarrow.parquet.read_table(tmp_path / "none.parquet").num_rows == 0


def test_draws_can_be_stacked(home, tmp_path) -> None:
    arguments = ("impute", home / "model", home / "missing.csv", "--draws", 3)
    run(*arguments, "--out", tmp_path / "many.csv")
    stacked = run(*arguments, "--stack", "--uncertainty", tmp_path / "sure.csv").stdout
    (tmp_path / "stack.csv").write_text(stacked)
    table = pd.read_csv(tmp_path / "stack.csv")
    assert table.columns.tolist() == ["row", "draw", *TABLE.columns]
    assert table["row"].tolist() == np.repeat(np.arange(300), 3).tolist()
    for draw in (1, 2, 3):
        alone = pd.read_csv(tmp_path / f"many-{draw}.csv")
        assert table[table["draw"] == draw].drop(columns=["row", "draw"]).reset_index(drop=True).equals(alone)
    assert pd.read_csv(tmp_path / "sure.csv")["draw"].tolist()[:3] == [1, 2, 3]


@pytest.fixture
def noisy(tmp_path) -> pd.DataFrame:
    """A hundred rows, two of them with a wrong entry, which are in a file, too."""
    noisy = TABLE.head(100).copy()
    noisy.loc[3, "legs"] = 6 - noisy.loc[3, "legs"]
    noisy.loc[5, "weight"] = 21 - noisy.loc[5, "weight"].round()
    noisy.to_csv(tmp_path / "noisy.csv", index=False)
    return noisy


def test_noisy_rows_are_cleaned_and_changes_listed(home, tmp_path, noisy) -> None:
    arguments = ("denoise", home / "model", tmp_path / "noisy.csv", "--error", 0.1, "--changes", tmp_path / "c.csv")
    result = run(*arguments, "--out", tmp_path / "clean.csv")
    changes, clean = pd.read_csv(tmp_path / "c.csv"), pd.read_csv(tmp_path / "clean.csv")
    assert re.search(rf"{len(changes)} of 500 entries were changed \(local optimum\)", result.stderr)
    assert clean.columns.tolist() == TABLE.columns.tolist()
    assert clean.loc[3, "legs"] == TABLE.loc[3, "legs"]
    different = {(row, name) for name in TABLE for row in np.flatnonzero(clean[name] != noisy[name])}
    assert (3, "legs") in different
    assert different == set(zip(changes["row"], changes["column"], strict=True))
    assert changes["standard_error"].isna().all()


def test_the_mean_of_noisy_rows_is_an_estimate(home, tmp_path, noisy) -> None:
    arguments = ("denoise", home / "model", tmp_path / "noisy.csv", "--error", 0.1, "--changes", tmp_path / "c.csv")
    facts = run_json(*arguments, "--mean", "--column-error", "legs=0.3, age=0", "--out", tmp_path / "mean.csv")
    changes = pd.read_csv(tmp_path / "c.csv")
    assert (facts["method"], facts["entries"], facts["changed"]) == ("Gibbs sampling", 500, len(changes))
    assert 0 < facts["standard_error"] < 0.5
    assert (changes["probability_wrong"] > 0.5).all()
    assert (pd.read_csv(tmp_path / "mean.csv")["age"] == noisy["age"]).all()


@pytest.mark.parametrize("name", ["missing.csv", "missing.parquet"])
def test_a_table_in_pieces_gets_the_same_answers(home, tmp_path, in_blocks, name) -> None:
    """Files that are read in blocks give what Python gives for the table at once, to the digit."""
    model, table = MADE.load(home / "model"), read(home / name)
    run("score", home / "model", home / name, "--out", tmp_path / "scores.npy")
    assert np.array_equal(np.load(tmp_path / "scores.npy").ravel(), model.score_samples(table))
    for strategy in ("sample", "mode"):
        run("impute", home / "model", home / name, "--out", tmp_path / "full.csv", "--strategy", strategy)
        write(model.impute(table, strategy=strategy), tmp_path / "at_once.csv")
        assert (tmp_path / "full.csv").read_text() == (tmp_path / "at_once.csv").read_text()
    out = run("predict", home / "model", home / name, "--target", "species").stdout
    assert len(out.splitlines()) == 301
    assert run_json("evaluate", home / "model", home / name)["rows"] == 300


@pytest.mark.parametrize("name", ["missing.csv", "missing.parquet"])
def test_the_least_likely_rows_of_a_table_in_pieces_are_those_of_all_of_it(home, tmp_path, in_blocks, name) -> None:
    model, table = MADE.load(home / "model"), read(home / name)
    run("explain", home / "model", home / name, "--out", tmp_path / "odd.parquet")
    assert pd.read_parquet(tmp_path / "odd.parquet").equals(model.surprise(table).to_pandas())
    facts = run_json("explain", home / "model", home / name, "--top", 5)["rows"]
    assert [fact["row"] for fact in facts] == np.argsort(model.score_samples(table), kind="stable")[:5].tolist()
    for fact in facts:
        seen = {key: value for key, value in table.slice(fact["row"], 1).to_pylist()[0].items() if value is not None}
        assert {key: fact["values"][key] for key in seen} == seen


def test_rows_drawn_in_pieces_are_those_drawn_at_once(home, tmp_path, in_blocks) -> None:
    run("sample", home / "model", "-n", 100, "--out", tmp_path / "new.csv", "--seed", 1)
    write(MADE.load(home / "model").sample(100, random_state=1), tmp_path / "at_once.csv")
    assert (tmp_path / "new.csv").read_text() == (tmp_path / "at_once.csv").read_text()


def test_memory_is_bounded_by_a_block(home, tmp_path, in_blocks, monkeypatch) -> None:
    """Each block is written before the next one is read, and none is larger than it should be."""
    events: list[tuple[str, int]] = []
    stream, write_piece = files_stream(), Writer.write

    def watched(source, rows, **options):
        for piece in stream(source, rows, **options):
            events.append(("read", len(piece)))
            yield piece

    def writing(self, piece):
        events.append(("write", len(piece)))
        write_piece(self, piece)

    monkeypatch.setattr("made.io.read.stream", watched)
    monkeypatch.setattr(Writer, "write", writing)
    for arguments in (
        ["score", home / "model", home / "missing.csv"],
        ["impute", home / "model", home / "missing.csv"],
        ["predict", home / "model", home / "missing.csv", "--target", "age"],
        ["denoise", home / "model", home / "missing.csv"],
        ["explain", home / "model", home / "missing.csv"],
    ):
        events.clear()
        run(*arguments, "--out", tmp_path / "out.csv")
        assert events == [(what, size) for size in [32] * 9 + [12] for what in ("read", "write")]
    events.clear()
    run("sample", home / "model", "-n", 70, "--out", tmp_path / "out.csv")
    assert events == [("write", 32), ("write", 32), ("write", 6)]


def files_stream():
    from made.io.read import stream

    return stream


def test_integer_columns_may_be_filled_with_real_numbers(home, tmp_path, in_blocks) -> None:
    """A column that looks whole in a file, where the model knows it is not, has one type in all blocks."""
    table = MISSING.assign(weight=["3" if row > 2 else "" for row in range(300)])
    table.to_csv(tmp_path / "x.csv", index=False)
    run("impute", home / "model", tmp_path / "x.csv", "--out", tmp_path / "full.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "full.parquet")["weight"].type == pa.float64()


def test_errors_name_the_row_of_the_file(home, tmp_path, in_blocks) -> None:
    wrong = MISSING.astype({"weight": object})
    wrong.loc[200, "weight"] = "heavy"
    wrong.to_csv(tmp_path / "wrong.csv", index=False)
    (tmp_path / "out.csv").write_text("before")
    said = run("score", home / "model", tmp_path / "wrong.csv", "--out", tmp_path / "out.csv", code=3).stderr
    assert "row 200" in said
    assert "heavy" in said
    assert (tmp_path / "out.csv").read_text() == "before"
    run("impute", home / "model", tmp_path / "wrong.csv", "--out", tmp_path / "new.csv", code=3)
    assert not (tmp_path / "new.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["predict", "MODEL", "DATA"], 2, "--target"),
        (["predict", "MODEL", "DATA", "--target", "wings"], 2, "wings"),
        (["predict", "MODEL", "DATA", "--target", "legs", "--out", "x.txt"], 3, "should end in"),
        (["predict", "MODEL", "no.csv", "--target", "legs"], 3, "does not exist"),
        (["denoise", "MODEL", "DATA", "--error", "1"], 2, "'error' should be a probability"),
        (["denoise", "MODEL", "DATA", "--error", "much"], 2, "--error"),
        (["denoise", "MODEL", "DATA", "--column-error", "legs"], 2, "--column-error"),
        (["denoise", "MODEL", "DATA", "--column-error", "legs=few"], 2, "should be a probability"),
        (["denoise", "MODEL", "DATA", "--column-error", "wings=0.1"], 2, "wings"),
        (["denoise", "MODEL", "DATA", "--changes", "-"], 2, "--changes"),
        (["impute", "MODEL", "DATA", "--uncertainty", "-"], 2, "--uncertainty"),
        (["impute", "MODEL", "DATA", "--draws", "2", "--strategy", "mode"], 2, "--strategy sample"),
        (["impute", "MODEL", "DATA", "--out", "no/such/folder.csv"], 3, "cannot be written"),
    ],
)
def test_every_error_is_a_sentence_and_a_code(home, arguments, code, said) -> None:
    names = {"MODEL": str(home / "model"), "DATA": str(home / "missing.csv")}
    result = CliRunner().invoke(app, [names.get(each, each) for each in arguments])
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.output
