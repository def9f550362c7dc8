"""`made fit` says what each column was taken for, and when training ended too early; `made info` names the kinds."""

from __future__ import annotations

import re

import pytest

from command import run, run_json
from made.io.datasets import table_file

SMALL = ("--hidden-sizes", "8", "--evaluation-masks", "1", "--validation-masks", "1")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit")
    return run("fit", "penguins", "--out", folder / "model", "--max-epochs", 2, *SMALL), folder / "model"


def test_the_kind_the_values_and_the_missing_share_of_every_column_are_printed(fitted) -> None:
    stdout = fitted[0].stdout
    assert re.search(r"species +categorical +3: Adelie, Chinstrap, Gentoo +\n", stdout)
    assert re.search(r"body_mass_g +numeric +2,700 to 6,300, multiples of 25 +0\.6 %", stdout)
    assert re.search(r"sex +categorical +2: female, male +3\.2 %", stdout)


def test_info_names_the_kinds(fitted) -> None:
    stdout = run("info", fitted[1]).stdout
    assert re.search(r"bill_depth_mm +numeric +multiples of 0\.1 *\n", stdout)
    assert re.search(r"island +categorical +3: Biscoe, Dream, Torgersen", stdout)


def test_training_that_was_still_improving_says_how_to_train_longer(fitted, tmp_path) -> None:
    assert "still improving" in fitted[0].stderr
    command = re.search(r"To train longer: made (.*)", fitted[0].stderr)[1].split()
    assert command[-3:] == ["--resume", "--max-epochs", "4"]
    facts = run_json(*command)
    assert facts["epochs"] == 4
    assert facts["columns"][6] == {
        "name": "sex",
        "kind": "categorical",
        "values": ["female", "male"],
        "missing": 11 / 344,
    }
    assert facts["columns"][4]["range"] == [172, 231]


def test_quiet_prints_nothing(tmp_path) -> None:
    result = run("fit", "penguins", "--out", tmp_path / "model", "--max-epochs", 1, *SMALL, "--quiet")
    assert (result.stdout, result.stderr) == ("", "")


def test_a_dropped_column_is_dropped_from_validation_rows_too(tmp_path) -> None:
    fit = ("fit", "digits", "--out", tmp_path / "model", "--max-epochs", 1, *SMALL, "--columns", "x1=drop")
    assert [each["name"] for each in run_json(*fit)["columns"]][:2] == ["x0", "x2"]


def test_an_invalid_seed_is_named_by_its_option(tmp_path) -> None:
    said = run("fit", "digits", "--out", tmp_path / "model", "--seed", -1, code=2).stderr
    assert said == "Error: '--seed' should be a whole number from 0 to 2**32 - 1, not -1.\n"


def test_a_value_that_training_never_saw_is_noted_when_samples_are_given_it(fitted) -> None:
    drawn = run("sample", fitted[1], "-n", 3, "--given", "species=Foo")
    assert drawn.stdout.count("<other>") == 3
    assert drawn.stderr == "Note: values that training never saw: 3 of 'species'. They are very unlikely.\n"
    assert run("sample", fitted[1], "--given", "species=Adelie").stderr == ""


def test_of_a_wide_table_the_first_columns_are_printed(tmp_path) -> None:
    stdout = run("fit", "digits", "--out", tmp_path / "model", "--max-epochs", 1, *SMALL).stdout
    assert "... and 34 more columns, 64 in all." in stdout
    assert len(re.findall(r"^ x\d+ ", stdout, re.MULTILINE)) == 30


def test_an_image_of_columns_that_are_not_numbers_is_refused_before_training(tmp_path) -> None:
    (tmp_path / "rows.csv").write_text("a,b,c\n" + "0,1,x\n1,0,y\n0,0,x\n1,1,y\n" * 5)
    fit = ("fit", tmp_path / "rows.csv", "--out", tmp_path / "model", "--max-epochs", 1, *SMALL, "--image")
    assert "'c'" in run(*fit, "1x3", code=2).stderr
    assert not (tmp_path / "model").exists()
    run(*fit, "1x2", "--columns", "c=drop")
    assert (tmp_path / "model" / "samples.png").exists()


@pytest.fixture
def halves(tmp_path):
    """The penguins in two files of a folder, beside one that is no table."""
    lines = table_file("penguins").read_text().splitlines(keepends=True)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "1.csv").write_text("".join(lines[:170]))
    (folder / "2.csv").write_text("".join([lines[0], *lines[170:]]))
    (folder / "notes.txt").write_text("no table")
    return folder


def test_a_folder_and_files_are_read_as_one_table(halves, tmp_path) -> None:
    fit = ("--max-epochs", 1, *SMALL, "--json")
    said = run("fit", halves, "--out", tmp_path / "a", *fit)
    assert said.stderr == f"Note: files that are not tables are ignored: {halves / 'notes.txt'}.\n"
    run("fit", halves / "1.csv", halves / "2.csv", "--out", tmp_path / "b", *fit)
    run("fit", "penguins", "--out", tmp_path / "c", *fit)
    assert len({(tmp_path / name / "model.safetensors").read_bytes() for name in "abc"}) == 1


def test_the_size_of_the_codes_of_a_large_table_is_announced(halves, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("made.model.fit_data.IN_MEMORY", 0)
    said = run("fit", f"{halves}/*.csv", "--out", tmp_path / "model", "--max-epochs", 0, *SMALL).stderr
    assert re.search(r"The codes of 344 rows take 0\.0 GiB in .*\.made-codes, which is removed at the end\.", said)
    assert not (tmp_path / "model" / ".made-codes").exists()


def test_files_that_are_not_one_table_are_refused(halves, tmp_path) -> None:
    said = run("fit", f"{halves}/*.parquet", "--out", tmp_path / "model", code=3).stderr
    assert said == f"Error: '{halves}/*.parquet' matches no file.\n"
    said = run("fit", halves / "1.csv", "-", "--out", tmp_path / "model", code=2).stderr
    assert said == "Error: '-' is not a file, and cannot be one table with others.\n"
