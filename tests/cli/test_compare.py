"""The command `made compare`."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import made.baselines
from made.baselines import SYSTEMS, System
from made.cli import app
from made.compare.result import Result
from systems import ROWS, Coins, Fails, Guess, Interrupted, named


@pytest.fixture
def registry(monkeypatch, tmp_path):
    return prepared(monkeypatch, tmp_path)


def prepared(monkeypatch, tmp_path):
    """Fakes in place of the systems, in a folder with a person's files."""
    fakes = {
        "coins": System("independent <coins>", lambda seed: Coins()),
        "guess": System("a guess", lambda seed: Guess()),
        "fails": System("one that fails", lambda seed: Fails()),
    }
    monkeypatch.setattr(made.baselines, "SYSTEMS", fakes)
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).integers(0, 2, (60, 3))
    lines = [f"{'yes' if a else 'no'},{'True' if b else 'False'},{c}" for a, b, c in rows]
    (tmp_path / "mine.csv").write_text("smoker,tall,old\n" + "\n".join(lines) + "\n")
    np.save(tmp_path / "mine.npy", rows.astype(np.uint8))
    return tmp_path


def run(*arguments, code: int = 0):
    result = CliRunner().invoke(app, ["compare", *map(str, arguments)])
    if isinstance(result.exception, Exception) and code != 1:
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def test_help_needs_no_torch_and_names_every_system() -> None:
    code = (
        "import sys\nfrom made.cli import main\ntry: main()\n"
        "finally: assert not {'torch', 'sklearn', 'pyarrow', 'pydantic'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code, "compare", "--help"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert set(re.findall(r"--[a-z]+", result.stdout)) >= {
        *("--models", "--budget", "--valid", "--test", "--out", "--seed", "--json", "--quiet")
    }
    assert ", ".join(SYSTEMS) in " ".join(result.stdout.split())


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """The output of a comparison, and its page."""
    with pytest.MonkeyPatch.context() as patch:
        home = prepared(patch, tmp_path_factory.mktemp("compared"))
        return run("mine.csv", "--models", "guess, coins"), (home / "compare-mine.html").read_text()


def test_notes_say_how_rows_were_coded_and_split(compared) -> None:
    notes = compared[0].stderr
    assert "coded as 0 and 1, in sorted order: column 0 ('smoker'): no and yes" in notes
    assert re.search("of the 60 rows of mine.csv, 6 .* and 6 .* with seed 0", notes)


def test_each_model_is_reported_as_soon_as_it_is_done(compared) -> None:
    assert re.search(r"coins: NLL \d.\d+ ± \d.\d+, exact; trained for", compared[0].stderr)


def test_the_table_marks_an_estimate(compared) -> None:
    table = compared[0].stdout
    assert re.search(r"≈ \d\.\d+ ± \d\.\d+ +estimate", table)
    assert "(s.e. 0.02)" in table
    assert "≈ an estimate" in table


def test_the_conclusions_are_printed(compared) -> None:
    conclusions = compared[0].stdout
    assert "Best: coins" in conclusions
    assert "Not told apart from the best" in conclusions
    assert "Overlapping 95 % intervals: coins with guess." in conclusions
    assert "only 6 test rows" in conclusions


def test_the_page_has_names_and_notes_escaped(compared) -> None:
    assert "independent &lt;coins&gt;" in compared[1]
    assert "column 0 (&#39;smoker&#39;): no and yes" in compared[1]


def test_a_page_of_the_command_is_replaced(registry) -> None:
    for models in ("guess,coins", "coins"):
        run("mine.csv", "--models", models, "--quiet")
    assert "guess" not in (registry / "compare-mine.html").read_text()


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """What ``--json`` prints."""
    with pytest.MonkeyPatch.context() as patch:
        home = prepared(patch, tmp_path_factory.mktemp("facts"))
        result = run("mine.csv", "--json", "--out", "pages", "--seed", 1, "--budget", 2)
        assert (home / "pages" / "compare.html").exists()
        assert "trained for" not in result.stderr
        return json.loads(result.stdout)


def test_json_has_every_model(facts) -> None:
    coins, guess, fails = facts["models"]
    assert (coins["name"], coins["kind"], coins["standard_error"], coins["direction"]) == ("coins", "exact", 0, None)
    assert (guess["name"], guess["kind"], guess["standard_error"]) == ("guess", "estimate", 0.02)
    assert (fails["name"], fails["nll"], fails["error"]) == ("fails", None, "RuntimeError: the dog ate it")
    assert coins.keys() >= {"nll", "ci95", "seconds", "rows_per_second", "samples_per_second", "parameters", "stopped"}


def test_json_has_the_conclusions(facts) -> None:
    assert (facts["best"], facts["finished"], facts["overlaps"]) == ("coins", True, [["coins", "guess"]])
    (difference,) = facts["differences"]
    assert difference["nll"] == pytest.approx(0.01)
    assert difference["ci95"] == pytest.approx(1.96 * 0.02)
    assert difference["verdict"] == "not told apart"


def test_json_has_the_setting(facts) -> None:
    assert (facts["columns"], facts["train"], facts["valid"], facts["test"]) == (3, 48, 6, 6)
    assert (facts["seed"], facts["budget"], facts["data"]) == (1, 120, "mine.csv")
    assert facts["page"] == "pages/compare.html"


@pytest.mark.parametrize(
    ("arguments", "sizes"),
    [
        (["mine.csv", "--test", "mine.csv"], (54, 6, 60)),
        (["mine.csv", "--test", "mine.csv", "--valid", "mine.csv"], (60, 60, 60)),
        (["mine.npy"], (48, 6, 6)),
        (["parts.npz"], (40, 9, 7)),
        (["digits"], (1197, 300, 300)),
        (["digits:test"], (240, 30, 30)),
    ],
)
def test_where_validation_and_test_rows_come_from(registry, arguments, sizes) -> None:
    np.savez(registry / "parts.npz", train=ROWS, valid=ROWS[:9], test=ROWS[:7])
    facts = json.loads(run(*arguments, "--json", "--models", "coins").stdout)
    assert (facts["train"], facts["valid"], facts["test"]) == sizes


def test_rows_that_are_neither_coded_nor_divided_need_no_note(registry) -> None:
    np.savez(registry / "parts.npz", train=ROWS, valid=ROWS[:9], test=ROWS[:7])
    assert json.loads(run("parts.npz", "--json", "--models", "coins").stdout)["notes"] == []
    (note,) = json.loads(run("mine.npy", "--json", "--models", "coins").stdout)["notes"]
    assert "drawn at random" in note


def test_a_page_is_written_unless_json_is_asked_for(registry) -> None:
    assert json.loads(run("digits:test", "--json", "--models", "coins").stdout)["page"] is None
    assert not list(registry.glob("*.html"))
    run("digits:test", "--models", "coins", "--quiet")
    assert {path.name for path in registry.glob("*.html")} == {"compare-digits-test.html"}


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["mine.csv", "--models", "coins,oracle"], 2, "there is no 'oracle'; the names are coins, guess, fails"),
        (["mine.csv", "--models", " , "], 2, "--models"),
        (["mine.csv", "--models", "nothing.here:Model"], 2, "ModuleNotFoundError"),
        (["mine.csv", "--models", "collections:Nothing"], 2, "AttributeError"),
        (["mine.csv", "--models", "collections:Counter"], 2, "should have the methods fit and score_samples"),
        (["mine.csv", "--budget", "-1"], 2, "--budget"),
        (["mine.csv", "--budget", "nan"], 2, "--budget"),
        (["mine.csv", "--seed", "-1"], 2, "--seed"),
        (["mine.csv", "--out", "thesis.html"], 2, "is not a page of `made compare`"),
        (["mine.csv", "--out", "mine.csv"], 2, "--out"),
        (["mine.csv", "--test", "absent.csv"], 3, "does not exist"),
        (["nothing"], 3, "neither a file nor a named dataset"),
        (["missing.csv"], 3, "missing.csv, row 1 (counted from 0), column 1 ('tall'): a missing value"),
        (["pets.csv"], 3, "column 0 ('pet') has 3 values ('cat', 'dog', 'fish'), but only columns with two values"),
        (["ages.csv"], 3, "column 1 ('age') has 30 values (0, 1, 2, ...)"),
        (["one.csv"], 3, "1 row is too few"),
        (["empty.csv"], 3, "no rows"),
        (["mine.csv", "--test", "one.csv"], 3, "the same columns"),
        (["mine.csv", "--models", "fails"], 5, "none of the models has an NLL"),
    ],
)
def test_every_error_is_a_sentence(registry, arguments, code, reason) -> None:
    (registry / "missing.csv").write_text("smoker,tall\nyes,1\nno,\n" + "yes,0\n" * 30)
    (registry / "pets.csv").write_text("pet,tall\n" + "cat,1\ndog,0\nfish,1\n" * 10)
    (registry / "ages.csv").write_text("tall,age\n" + "".join(f"1,{age}\n" for age in range(30)))
    (registry / "one.csv").write_text("a,b\n0,1\n")
    (registry / "empty.csv").write_text("")
    (registry / "thesis.html").write_text("<p>years of work</p>")
    before = {path.name for path in registry.iterdir()}
    result = run(*arguments, code=code)
    assert reason in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert (registry / "thesis.html").read_text() == "<p>years of work</p>"
    if code != 5:
        assert result.stdout == ""
        assert {path.name for path in registry.iterdir()} == before


def test_ctrl_c_shows_what_is_done(registry, monkeypatch) -> None:
    late = made.baselines.SYSTEMS | {"late": System("interrupted", lambda seed: Interrupted())}
    monkeypatch.setattr(made.baselines, "SYSTEMS", late)
    result = run("mine.csv", "--models", "coins,late", code=130)
    assert "Best: coins" in result.stdout
    assert "stopped: 1 of 2 models were done." in result.stderr
    assert "independent &lt;coins&gt;" in (registry / "compare-mine.html").read_text()
    facts = json.loads(run("mine.csv", "--models", "coins,late", "--json", code=130).stdout)
    assert facts["finished"] is False
    result = run("mine.csv", "--models", "late", "--json", code=130)
    assert "before any model was done" in result.stderr
    assert result.stdout == ""


def test_on_a_terminal_a_clock_runs_while_it_trains(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    command = importlib.import_module("made.cli.compare")
    with command._progress(2, []) as (begin, line):
        begin("coins", 61.0)
        line(named("coins", [-1, -2, -3, -4]))
        begin("guess", None)
        line(Result("guess", "guess", error="it [red]failed[/red]"))
    shown = capsys.readouterr().err
    assert "coins: NLL 2.500 ± 1.265, exact" in shown
    assert "guess: it [red]failed[/red]" in shown


OWN = """
import numpy as np


class Half:
    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def score_samples(self, X):
        return np.full(len(X), -np.log(2.0) * self.n_features_in_)

    def sample(self, n_samples=1):
        return np.random.default_rng(0).integers(0, 2, (n_samples, self.n_features_in_))
"""


def test_any_estimator_with_score_samples_can_be_compared(registry) -> None:
    (registry / "own_models_of_mine.py").write_text(OWN)
    facts = json.loads(run("mine.csv", "--json", "--models", "own_models_of_mine:Half,coins").stdout)
    assert {each["name"]: each["title"] for each in facts["models"]} == {
        "own_models_of_mine:Half": "Half",
        "coins": "independent <coins>",
    }
    half = next(each for each in facts["models"] if each["title"] == "Half")
    assert half["nll"] == pytest.approx(3 * np.log(2))
    assert half["kind"] == "exact"


OWN_DENSITY = """
import numpy as np
from made.baselines import LogProb


class Careful:
    def fit(self, train, valid, *, seconds=None):
        self.size = train.shape[1]
        return self

    def log_prob(self, rows):
        return LogProb(np.full(len(rows), -np.log(2.0) * self.size - 0.5), "bound", 0.125)

    def sample(self, n, *, seed=0):
        return np.random.default_rng(seed).integers(0, 2, (n, self.size))
"""


def test_a_system_of_the_baseline_protocol_can_be_compared(registry) -> None:
    (registry / "own_density_of_mine.py").write_text(OWN_DENSITY)
    result = run("mine.csv", "--models", "own_density_of_mine:Careful,coins")
    assert "upper bound (s.e. 0.12)" in result.stdout
    assert "≤ an upper bound: the true NLL is this or lower" in result.stdout
    assert "Not known to be worse than the best" in result.stdout
    assert '<path class="bound"' in (registry / "compare-mine.html").read_text()
    facts = json.loads(run("mine.csv", "--json", "--models", "own_density_of_mine:Careful,coins").stdout)
    bound = facts["models"][-1]
    assert (bound["kind"], bound["standard_error"]) == ("bound", 0.125)
    assert bound["direction"] == "the true NLL is this or lower"
    assert facts["differences"][0]["verdict"] == "unknown"
