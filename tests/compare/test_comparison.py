"""Several systems on the same rows: the statistics to the digit, what is refused, and the command."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.neural_network import BernoulliRBM
from typer.testing import CliRunner

import made.baselines
from made.baselines import SYSTEMS, LogProb, System
from made.baselines.scikit import Scikit
from made.cli import app
from made.compare.comparison import (
    Difference,
    Result,
    Setting,
    compare,
    differences,
    overlaps,
    ranked,
    sentences,
    split,
    zeros_and_ones,
)
from made.compare.page import page, picture
from made.errors import DataError

ROWS = np.random.default_rng(0).integers(0, 2, (40, 12)).astype(np.uint8)


class Coins:
    """Each column by itself, as often one as in the training rows: exact, and a distribution."""

    size = 0

    def fit(self, train, valid, *, seconds=None):
        self.mean, self.size, self.seconds = (np.sum(train, axis=0) + 1) / (len(train) + 2), train.shape[1], seconds
        return self

    def log_prob(self, rows):
        rows = np.asarray(rows)
        return LogProb((rows * np.log(self.mean) + (1 - rows) * np.log1p(-self.mean)).sum(axis=1))

    def sample(self, n, *, seed=0):
        return (np.random.default_rng(seed).random((n, len(self.mean))) < self.mean).astype(np.uint8)


class Says(Coins):
    """Whatever it was told to say of any rows."""

    def __init__(self, values, kind="exact", standard_error=0.0):
        self.values, self.kind, self.standard_error = np.array(values, dtype=float), kind, standard_error

    def log_prob(self, rows):
        return LogProb(self.values, self.kind, self.standard_error)


class Fails(Coins):
    def fit(self, train, valid, *, seconds=None):
        raise RuntimeError("the dog ate it")


class Interrupted(Coins):
    def fit(self, train, valid, *, seconds=None):
        raise KeyboardInterrupt


class Clock:
    """A clock that goes on only when it is told to."""

    now = 100.0

    def __call__(self):
        return self.now


class Slow(Coins):
    """Needs so many seconds to train, but ends when it should, and some to score and to draw."""

    def __init__(self, clock, needs, score=0.0, draw=0.0):
        self.clock, self.needs, self.score, self.draw = clock, needs, score, draw

    def fit(self, train, valid, *, seconds=None):
        self.clock.now += self.needs if seconds is None else min(self.needs, seconds)
        return super().fit(train, valid, seconds=seconds)

    def log_prob(self, rows):
        self.clock.now += self.score
        return super().log_prob(rows)

    def sample(self, n, *, seed=0):
        self.clock.now += n * self.draw
        return super().sample(n, seed=seed)


def said(values, kind="exact", standard_error=0.0) -> Result:
    """The result of a system that says this of four test rows."""
    (result,) = compare({"it": Says(values, kind, standard_error)}, ROWS, ROWS, ROWS[:4])
    return result


def named(name: str, values, kind="exact", standard_error=0.0) -> Result:
    result = said(values, kind, standard_error)
    facts = {each: getattr(result, each) for each in result.__dataclass_fields__} | {"name": name, "title": name}
    return Result(**facts)


def test_the_interval_is_of_the_mean_and_an_estimate_makes_it_wider() -> None:
    exact = said([-1, -2, -3, -4])
    assert (exact.nll, exact.kind, exact.standard_error) == (2.5, "exact", 0)
    assert exact.ci95 == pytest.approx(1.2651744, abs=1e-6)  # 1.96 sqrt(5/3) / sqrt(4)
    estimate = said([-1, -2, -3, -4], "estimate", 0.3)
    assert estimate.nll == 2.5
    assert estimate.ci95 == pytest.approx(1.3951378, abs=1e-6)  # 1.96 sqrt(5/12 + 0.09)
    assert estimate.known == "estimate (s.e. 0.3)"
    assert said([-1, -2, -3, -4], "bound").known == "upper bound"
    assert said([-1, -2, -3, -4], "bound", 0.25).known == "upper bound (s.e. 0.25)"


def test_the_interval_is_that_of_the_rest_of_the_package() -> None:
    torch = pytest.importorskip("torch")
    from made import mean_and_interval

    result = said([-1.5, -2.25, -3, -9])
    assert (result.nll, result.ci95) == pytest.approx(mean_and_interval(-torch.tensor([-1.5, -2.25, -3, -9])))


def test_rows_tell_systems_apart_whose_intervals_overlap() -> None:
    best, other = named("best", [-1, -2, -3, -4]), named("other", [-1.5, -2.5, -2.9, -4.7])
    (found,) = differences([other, best])
    assert found == Difference("other", "best", pytest.approx(0.4), pytest.approx(0.3394820, abs=1e-6), True, "worse")
    # The standard errors of both are in the interval of the difference: 1.96 sqrt(0.03 + 0.04 + 0.01).
    unsure = [
        named("best", [-1, -2, -3, -4], "estimate", 0.2),
        named("other", [-1.5, -2.5, -2.9, -4.7], "estimate", 0.1),
    ]
    (found,) = differences(unsure)
    assert (found.ci95, found.verdict) == (pytest.approx(0.5543717, abs=1e-6), "not told apart")
    text = " ".join(sentences(unsure, 4))
    assert "Not told apart from it, row by row" in text
    assert "other by 0.40 ± 0.55" in text
    assert "95 % intervals that overlap: best with other." in text


def test_a_bound_that_looks_worse_is_not_known_to_be() -> None:
    best, bound = named("best", [-2, -2, -2, -2.1]), named("bound", [-9, -9, -9, -9.1], "bound")
    (found,) = differences([best, bound])
    assert (found.verdict, found.overlap) == ("unknown", True)  # it has no lower end
    assert "Not known to be worse" in " ".join(sentences([best, bound], 4))
    # One that looks better is better: the truth is lower still.
    better = named("better", [-1.9, -1.9, -1.9, -1.95], "bound")
    assert [(each.name, each.verdict) for each in differences([best, better])] == [("best", "worse")]
    assert "better, with an NLL of at most 1.9" in sentences([best, better], 4)[0]
    assert bound.facts()["direction"] == "the true NLL is this or lower"
    assert best.facts()["direction"] is None


def test_intervals_overlap_in_pairs() -> None:
    results = [
        named(name, [-m, -m - 0.1, -m + 0.1, -m]) for name, m in (("a", 4.0), ("b", 2.0), ("c", 2.1), ("d", 4.1))
    ]
    assert overlaps(results) == [("b", "c"), ("a", "d")]
    assert [each.name for each in ranked(results)] == ["b", "c", "a", "d"]
    assert "95 % intervals that overlap: b with c; a with d." in sentences(results, 4)
    assert "No two of the 95 % intervals overlap." in sentences(results[:2], 4)


def test_a_failure_does_not_lose_the_others() -> None:
    seen: list[str] = []
    systems = {"fails": Fails(), "coins": Coins(), "nan": Says([np.nan] * 40), "zero": Says([-1.0] * 39 + [-np.inf])}
    results = compare(systems, ROWS, ROWS, ROWS, report=lambda result: seen.append(result.name), titles={"coins": "C"})
    assert seen == [each.name for each in results] == list(systems)
    fails, coins, nan, zero = results
    assert fails.error == "RuntimeError: the dog ate it"
    assert np.isnan(fails.nll)
    assert fails.facts()["nll"] is None
    assert coins.error is None
    assert coins.title == "C"
    assert coins.parameters == 12
    assert 12 * 0.6 < coins.nll < 12 * 0.8
    assert "diverged: log p of test row 0 is nan." in nan.error
    assert "1 of the test rows, row 39 the first, have probability 0" in zero.error
    assert ranked(results)[0] is coins
    text = sentences(results, 40)
    assert text[0].startswith("Best: coins")
    assert text[-3:] == [f"{each.name} has no number: {each.error}" for each in (fails, nan, zero)]
    assert sentences([fails], 40) == ["fails has no number: RuntimeError: the dog ate it"]


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        (Says([-0.1, -0.1, -0.1, -0.1]), "sum to 3.62, above 1"),
        (Says([5, 5, 5, 900]), "above 1. Is it a density over real numbers?"),
        (Says([-0.1, -0.1, -0.1, -0.1], "bound"), "sum to 3.62, above 1"),
        (Says([-3, -3, -3, np.inf], "estimate", 0.1), "log p of test row 3 is inf"),
        (Says([-3, -3, -3]), "shape"),
        (Says([-3, -3, -3, -3], "guess"), "guess"),
        (Says([-3, -3, -3, -3], "exact", 0.1), "standard error"),
        (Says([-3, -3, -3, -3], "estimate", float("nan")), "standard error"),
    ],
)
def test_what_cannot_be_log_probabilities_is_refused(system, reason) -> None:
    (result,) = compare({"it": system}, ROWS, ROWS, ROWS[:4])
    assert reason in result.error
    assert np.isnan(result.nll)


def test_an_estimate_may_be_above_the_truth() -> None:
    assert said([-0.1, -0.1, -0.1, -0.1], "estimate", 0.1).nll == pytest.approx(0.1)


def test_a_log_prob_has_to_say_how_it_is_known() -> None:
    class Bare(Coins):
        def log_prob(self, rows):
            return np.full(len(rows), -9.0)

    (result,) = compare({"bare": Bare()}, ROWS, ROWS, ROWS)
    assert "LogProb" in result.error


def test_of_few_columns_all_states_are_added_up() -> None:
    class Half(Coins):
        def log_prob(self, rows):
            return LogProb(super().log_prob(rows).values - np.log(2))

    few = ROWS[:, :5]
    coins, half = compare({"coins": Coins(), "half": Half()}, few, few, few)
    assert coins.error is None
    assert "all 32 rows that there can be sum to 0.5, and should sum to 1" in half.error


def test_sampling_that_fails_does_not_lose_the_likelihood() -> None:
    class Mute(Coins):
        def sample(self, n, *, seed=0):
            raise NotImplementedError("it cannot draw")

    class Grey(Coins):
        def sample(self, n, *, seed=0):
            return np.full((n, 12), 0.5)

    for system, reason in ((Mute(), "it cannot draw"), (Grey(), "zeros and ones")):
        (result,) = compare({"it": system}, ROWS, ROWS, ROWS)
        assert result.error is None
        assert np.isnan(result.samples_per_second)
        assert reason in result.remark
        assert f"it: {result.remark}" in sentences([result], 40)


def test_time_that_is_left_over_is_left_to_others() -> None:
    clock, begun = Clock(), []
    systems = {"fast": Slow(clock, 2.0), "slow": Slow(clock, 900.0), "last": Slow(clock, 1.0)}
    results = compare(
        systems, ROWS, ROWS, ROWS, budget=60, clock=clock, begin=lambda name, allowed: begun.append((name, allowed))
    )
    assert begun == [("fast", 20.0), ("slow", 29.0), ("last", 29.0)]  # 60 / 3, 58 / 2, 29 / 1
    assert [system.seconds for system in systems.values()] == [20.0, 29.0, 29.0]
    assert [each.seconds for each in results] == [2.0, 29.0, 1.0]
    assert [each.stopped for each in results] == [False, True, False]
    assert any("may not have been done, of slow:" in each for each in sentences(results, 40))


def test_neither_scoring_nor_who_does_not_heed_the_time_takes_it_from_others() -> None:
    class Deaf(Slow):
        def fit(self, train, valid, *, seconds=None):
            return super().fit(train, valid)

    class Late(Slow):
        def fit(self, train, valid, *, seconds=None):
            self.clock.now += 4
            raise RuntimeError

    clock = Clock()
    systems = {"scores": Slow(clock, 900.0, score=70.0, draw=1.0), "deaf": Deaf(clock, 900.0)}
    systems |= {"fails": Late(clock, 0.0), "last": Slow(clock, 900.0)}
    results = compare(systems, ROWS, ROWS, ROWS, budget=60, clock=clock)
    assert [each.allowed for each in results] == [15.0, 15.0, 15.0, 26.0]  # what the third left is for the fourth
    assert [each.stopped for each in results] == [True, True, False, True]
    assert results[1].seconds == 900
    unlimited = compare({"only": Slow(clock, 900.0)}, ROWS, ROWS, ROWS, clock=clock)[0]
    assert (unlimited.seconds, unlimited.allowed, unlimited.stopped) == (900.0, None, False)


def test_speeds_are_rows_in_a_second() -> None:
    clock = Clock()
    (result,) = compare({"it": Slow(clock, 1.0, score=8.0, draw=0.01)}, ROWS, ROWS, ROWS, clock=clock)
    assert result.rows_per_second == pytest.approx(5)  # 40 rows in 8 seconds
    assert result.samples_per_second == pytest.approx(100)
    assert result.seconds == pytest.approx(1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"train": np.where(np.arange(480).reshape(40, 12) == 17, np.nan, 0.0)}, "'train', row 1, column 5: NaN"),
        ({"test": ROWS + 1}, "'test', row 0, column"),
        ({"valid": ROWS[:, :3]}, r"'valid' should have the shape \(rows, 12\)"),
        ({"test": ROWS[:1]}, "'test' has 1 row, but at least 2"),
        ({"train": ROWS[:1]}, "'train' has 1 row, but at least 2"),
        ({"test": ROWS[:0]}, "'test'"),
    ],
)
def test_rows_that_cannot_be_used_are_named(change, reason) -> None:
    with pytest.raises(DataError, match=reason):
        compare({"coins": Coins()}, **({"train": ROWS, "valid": ROWS, "test": ROWS} | change))


@pytest.mark.parametrize("budget", [0, -1, float("nan"), float("inf")])
def test_a_budget_is_above_zero(budget) -> None:
    with pytest.raises(ValueError, match="'budget' should be seconds above 0"):
        compare({"coins": Coins()}, ROWS, ROWS, ROWS, budget=budget)
    with pytest.raises(ValueError, match="'systems'"):
        compare({}, ROWS, ROWS, ROWS)


def test_constant_columns_are_no_trouble() -> None:
    rows = ROWS.copy()
    rows[:, 0], rows[:, 1] = 0, 1
    assert compare({"coins": Coins()}, rows, rows, rows)[0].error is None


def test_a_split_has_every_row_once_and_is_of_the_seed() -> None:
    for parts in (1, 2):
        drawn = split(57, parts, seed=3)
        assert [len(part) for part in drawn] == [57 - 5 * parts] + [5] * parts
        assert sorted(np.concatenate(drawn).tolist()) == list(range(57))
        assert all((one == other).all() for one, other in zip(drawn, split(57, parts, seed=3), strict=True))
        assert not (drawn[0] == split(57, parts, seed=4)[0]).all()
    with pytest.raises(DataError, match="1 row is too few"):
        split(1, 2, seed=0)
    with pytest.raises(DataError, match="19 rows are too few"):
        split(19, 2, seed=0)


def test_two_values_are_coded_in_sorted_order_the_same_in_all_tables() -> None:
    pandas = pytest.importorskip("pandas")
    one = pandas.DataFrame({"a": ["yes", "no"], "b": [True, False], "c": [0, 1], "d": [7, 7], "e": ["x", "x"]})
    # Other order of columns, and only one value of each: it means what it means in the other table.
    other = pandas.DataFrame({"e": ["x"], "d": [7], "c": [1], "b": [True], "a": ["yes"]})
    (first, second), meanings = zeros_and_ones({"one": one, "other": other})
    assert first.tolist() == [[1, 1, 0, 0, 0], [0, 0, 1, 0, 0]]
    assert second.tolist() == [[1, 1, 1, 0, 0]]
    assert meanings == {
        "column 0 ('a')": ("no", "yes"),
        "column 1 ('b')": (False, True),
        "column 3 ('d')": (7, 7),
        "column 4 ('e')": ("x", "x"),
    }
    with pytest.raises(DataError, match="other should have the same columns as the others, but 'a'"):
        zeros_and_ones({"one": one, "other": other.rename(columns={"a": "f"})})
    with pytest.raises(DataError, match="other has 4 columns, where others have 5"):
        zeros_and_ones({"one": one.to_numpy(), "other": other.iloc[:, :4].to_numpy()})
    with pytest.raises(DataError, match=r"column 0 .'a'. is text in one of the tables"):
        zeros_and_ones({"one": one, "other": other.assign(a=[1])})


def test_the_picture_marks_what_is_not_exact() -> None:
    exact, estimate = named("exact one", [-1, -2, -3, -4]), named("estimated", [-1, -2, -3, -5], "estimate", 0.3)
    bound = named("bounded", [-1, -2, -3, -6], "bound")
    drawn = picture([exact, estimate, bound])
    assert drawn.count("<circle") == 2
    assert '<circle class="exact"' in drawn
    assert '<circle class="estimate"' in drawn
    assert drawn.count('<path class="bound"') == 1
    assert "≈ 2.75 ± 1.77, estimate</text>" in drawn
    assert "≤ 3.00 ± 2.12, upper bound</text>" in drawn
    assert ">2.50 ± 1.27</text>" in drawn
    # Further right is a higher NLL.
    centres = [float(each) for each in re.findall(r'cx="([\d.]+)"', drawn)]
    assert all(one < other for one, other in pairwise(centres))
    assert picture([Result("bad", "bad", error="no")]) == ""


class Tags(HTMLParser):
    """What a page is made of, and whether all that is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_lets_nothing_in() -> None:
    evil = '<script>alert("1")</script>&\'"'
    results = [
        named(evil, [-1, -2, -3, -4]),
        named("other", [-1, -2, -3, -5], "estimate", 0.3),
        Result("bad", evil, error=f"failed with {evil}"),
    ]
    text = page(results, Setting(evil, 12, 40, 40, 4, budget=90, notes=(evil,)))
    tags = Tags(text)
    assert tags.open == []
    names = [tag for tag, _ in tags.seen]
    assert "script" not in names
    assert {"svg", "table", "style"} <= set(names)
    assert not [each for _, each in tags.seen if {"src", "href"} & each.keys()]  # nothing is loaded
    assert "url(" not in text
    assert "@import" not in text
    assert "1.5 minutes of time to train" in text
    assert "prefers-color-scheme: dark" in text
    assert "estimate (s.e.&nbsp;0.3)" in text
    assert "no number: failed with &lt;script&gt;" in text
    assert "not told apart" in text
    only = page([Result("bad", "bad", error="no")], Setting("x", 1, 2, 3, 4))
    assert Tags(only).open == []
    assert "no limit of time to train" in only


# The command.


@pytest.fixture
def registry(monkeypatch, tmp_path):
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


class Guess(Coins):
    def log_prob(self, rows):
        return LogProb(super().log_prob(rows).values - 0.01, "estimate", 0.02)


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


def test_a_persons_table_of_yes_and_no_is_compared(registry) -> None:
    result = run("mine.csv", "--models", "guess, coins")
    assert "coded as 0 and 1, in sorted order: column 0 ('smoker'): no and yes" in result.stderr
    assert "of the 60 rows of mine.csv, 6 to choose by" in result.stderr
    assert "6 to be asked about" in result.stderr
    assert "with seed 0" in result.stderr
    assert re.search(r"coins: NLL \d.\d+ ± \d.\d+, exact; trained for", result.stderr)
    assert "estimate (s.e. 0.02)" in result.stdout
    assert re.search(r"≈ \d\.\d+ ± \d\.\d+", result.stdout)
    assert "≈ an estimate" in result.stdout
    assert "Best: coins" in result.stdout
    assert "Not told apart from it, row by row" in result.stdout
    assert "overlap: coins with guess." in result.stdout
    assert "6 test rows are few" in result.stdout
    text = (registry / "compare-mine.html").read_text()
    assert "independent &lt;coins&gt;" in text
    assert "column 0 (&#x27;smoker&#x27;): no and yes" in text
    run("mine.csv", "--models", "coins", "--quiet")  # a page of its own is replaced
    assert "guess" not in (registry / "compare-mine.html").read_text()


def test_json_is_all_there_is(registry) -> None:
    result = run("mine.csv", "--json", "--out", "pages", "--seed", 1, "--budget", 2)
    facts = json.loads(result.stdout)
    assert [each["name"] for each in facts["models"]] == ["coins", "guess", "fails"]
    coins, guess, fails = facts["models"]
    assert (coins["kind"], coins["standard_error"], coins["direction"]) == ("exact", 0, None)
    assert (guess["kind"], guess["standard_error"]) == ("estimate", 0.02)
    assert fails["nll"] is None
    assert fails["error"] == "RuntimeError: the dog ate it"
    assert coins.keys() >= {"nll", "ci95", "seconds", "rows_per_second", "samples_per_second", "parameters", "stopped"}
    assert facts["best"] == "coins"
    assert facts["finished"] is True
    assert facts["overlaps"] == [["coins", "guess"]]
    (difference,) = facts["differences"]
    assert difference["nll"] == pytest.approx(0.01)
    assert difference["ci95"] == pytest.approx(1.96 * 0.02)
    assert difference["verdict"] == "not told apart"
    assert (facts["columns"], facts["train"], facts["valid"], facts["test"]) == (3, 48, 6, 6)
    assert (facts["seed"], facts["budget"], facts["data"]) == (1, 120, "mine.csv")
    assert facts["page"] == "pages/compare.html"
    assert (registry / "pages" / "compare.html").exists()
    assert "trained for" not in result.stderr


def test_other_files_bring_their_own_rows(registry) -> None:
    facts = json.loads(run("mine.csv", "--json", "--models", "coins", "--test", "mine.csv").stdout)
    assert (facts["train"], facts["valid"], facts["test"]) == (54, 6, 60)
    facts = json.loads(
        run("mine.csv", "--json", "--models", "coins", "--test", "mine.csv", "--valid", "mine.csv").stdout
    )
    assert (facts["train"], facts["valid"], facts["test"]) == (60, 60, 60)
    facts = json.loads(run("mine.npy", "--json", "--models", "coins").stdout)
    assert (facts["train"], facts["valid"], facts["test"]) == (48, 6, 6)
    assert not [each for each in facts["notes"] if "coded" in each]
    np.savez(registry / "parts.npz", train=ROWS, valid=ROWS[:9], test=ROWS[:7])
    facts = json.loads(run("parts.npz", "--json", "--models", "coins").stdout)
    assert (facts["train"], facts["valid"], facts["test"], facts["notes"]) == (40, 9, 7, [])
    facts = json.loads(run("digits", "--json", "--models", "coins").stdout)
    assert (facts["train"], facts["valid"], facts["test"], facts["columns"]) == (1197, 300, 300, 64)
    facts = json.loads(run("digits:test", "--json", "--models", "coins").stdout)
    assert (facts["train"], facts["valid"], facts["test"]) == (240, 30, 30)
    assert facts["page"] is None
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
        (["nothing"], 3, "neither a file nor a named set"),
        (["holes.csv"], 3, "holes.csv, row 1 (counted from 0), column 1 ('tall'): nothing is there"),
        (["pets.csv"], 3, "column 0 ('pet') has 3 values ('cat', 'dog', 'fish'), but columns of two values"),
        (["ages.csv"], 3, "column 1 ('age') has 30 values (0, 1, 2, ...)"),
        (["one.csv"], 3, "1 row is too few"),
        (["empty.csv"], 3, "no rows"),
        (["mine.csv", "--test", "one.csv"], 3, "the same columns"),
        (["mine.csv", "--models", "fails"], 5, "none of the models has a number"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(registry, arguments, code, reason) -> None:
    (registry / "holes.csv").write_text("smoker,tall\nyes,1\nno,\n" + "yes,0\n" * 30)
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
    with command._progress(2, shown=True) as (begin, line):
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


def test_anything_with_score_samples_can_be_entered(registry) -> None:
    (registry / "own_models_of_mine.py").write_text(OWN)
    facts = json.loads(run("mine.csv", "--json", "--models", "own_models_of_mine:Half,coins").stdout)
    assert {each["name"]: each["title"] for each in facts["models"]} == {
        "own_models_of_mine:Half": "Half",
        "coins": "independent <coins>",
    }
    half = next(each for each in facts["models"] if each["title"] == "Half")
    assert half["nll"] == pytest.approx(3 * np.log(2))
    assert half["kind"] == "exact"


class Disguised:
    """A density of real numbers that shows neither by its name nor by its sum over the rows of a test."""

    def fit(self, X):
        self.mixture_ = GaussianMixture(reg_covar=1e-2, random_state=0).fit(X)
        return self

    def score_samples(self, X):
        return self.mixture_.score_samples(X)


def test_what_only_looks_like_a_likelihood_is_refused() -> None:
    systems = {
        "coins": Coins(),
        "density": Scikit(GaussianMixture(reg_covar=1e-2)),
        "disguised": Scikit(Disguised()),
        "pseudo": Scikit(BernoulliRBM(n_components=4, n_iter=2, random_state=0)),
    }
    coins, density, disguised, pseudo = compare(systems, ROWS, ROWS, ROWS)
    assert coins.error is None
    assert "density of a row of real numbers" in density.error
    for refused in (disguised, pseudo):
        assert refused.error.startswith("tried on 8 of the columns: these are no probabilities of rows")
        assert "those of all 256 rows that there can be sum to" in refused.error
    # Not for nothing: on all columns its numbers look right, and better than they could be.
    scores = Scikit(Disguised()).fit(ROWS, ROWS).log_prob(ROWS).values
    assert np.exp(scores).sum() < 1
    assert -scores.mean() < coins.nll


def test_what_cannot_be_told_to_end_is_not_said_to_have_been_stopped() -> None:
    begun: list[tuple[str, float | None]] = []
    systems = {"own": Scikit(OwnCoins()), "coins": Coins()}
    own, _ = compare(systems, ROWS, ROWS, ROWS, budget=60, begin=lambda *told: begun.append(told))
    assert (begun[0], own.allowed, own.stopped, own.error) == (("own", None), None, False, None)
    assert own.parameters == 12


class OwnCoins(Coins):
    """The same as scikit-learn has it."""

    def fit(self, X):
        super().fit(X, X)
        self.mean_ = self.mean
        return self

    def score_samples(self, X):
        return self.log_prob(X).values


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


def test_a_system_that_says_how_its_likelihood_is_known_can_be_entered(registry) -> None:
    (registry / "own_density_of_mine.py").write_text(OWN_DENSITY)
    result = run("mine.csv", "--models", "own_density_of_mine:Careful,coins")
    assert "upper bound (s.e. 0.12)" in result.stdout
    assert "≤ an upper bound: the true NLL is this or lower" in result.stdout
    assert "Not known to be worse than it, because only an upper bound is known" in result.stdout
    assert '<path class="bound"' in (registry / "compare-mine.html").read_text()
    facts = json.loads(run("mine.csv", "--json", "--models", "own_density_of_mine:Careful,coins").stdout)
    bound = facts["models"][-1]
    assert (bound["kind"], bound["standard_error"]) == ("bound", 0.125)
    assert bound["direction"] == "the true NLL is this or lower"
    assert facts["differences"][0]["verdict"] == "unknown"
