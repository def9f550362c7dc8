"""`made fit` says what each column was taken for, and when training ended too early; `made info` names the kinds."""

from __future__ import annotations

import re

import pytest

from command import run, run_json

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


def test_a_seed_that_cannot_be_is_named_as_it_was_given(tmp_path) -> None:
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
