"""Training within a time budget, and failures."""

from __future__ import annotations

import numpy as np
import pytest

from made.baselines.scikit import Scikit
from made.compare.conclusions import ranked, sentences
from made.compare.evaluate import compare
from made.errors import DataError
from systems import ROWS, Clock, Coins, Fails, Says, Slow


@pytest.fixture(scope="module")
def some_fail():
    """Four systems, of which one does not fail, and the order in which they ended."""
    seen: list[str] = []
    systems = {"fails": Fails(), "coins": Coins(), "nan": Says([np.nan] * 40), "zero": Says([-1.0] * 39 + [-np.inf])}
    results = compare(systems, ROWS, ROWS, ROWS, done=lambda result: seen.append(result.name), titles={"coins": "C"})
    assert seen == [each.name for each in results] == list(systems)
    return results


def test_a_failure_does_not_lose_the_others(some_fail) -> None:
    coins = some_fail[1]
    assert (coins.error, coins.title, coins.parameters) == (None, "C", 12)
    assert 12 * 0.6 < coins.nll < 12 * 0.8
    assert ranked(some_fail)[0] is coins


def test_a_failure_has_a_reason_and_no_number(some_fail) -> None:
    fails, _, nan, zero = some_fail
    assert fails.error == "RuntimeError: the dog ate it"
    assert np.isnan(fails.nll)
    assert fails.facts()["nll"] is None
    assert "diverged: log p of test row 0 is nan." in nan.error
    assert "1 of the test rows, the first being row 39, have probability 0" in zero.error


def test_failures_come_last_in_the_conclusions(some_fail) -> None:
    fails, _, nan, zero = some_fail
    text = sentences(some_fail, 40)
    assert text[0].startswith("Best: coins")
    assert text[-3:] == [f"{each.name} failed: {each.error}" for each in (fails, nan, zero)]
    assert sentences([fails], 40) == ["fails failed: RuntimeError: the dog ate it"]


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


def test_unused_time_goes_to_the_other_systems() -> None:
    clock, begun = Clock(), []
    systems = {"fast": Slow(clock, 2.0), "slow": Slow(clock, 900.0), "last": Slow(clock, 1.0)}
    results = compare(
        systems, ROWS, ROWS, ROWS, budget=60, clock=clock, begin=lambda name, allowed: begun.append((name, allowed))
    )
    assert begun == [("fast", 20.0), ("slow", 29.0), ("last", 29.0)]  # 60 / 3, 58 / 2, 29 / 1
    assert [system.seconds for system in systems.values()] == [20.0, 29.0, 29.0]
    assert [each.seconds for each in results] == [2.0, 29.0, 1.0]
    assert [each.stopped for each in results] == [False, True, False]
    assert any("perhaps before convergence: slow." in each for each in sentences(results, 40))


def test_scoring_and_estimators_without_a_time_limit_do_not_use_the_budget() -> None:
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
        ({"test": ROWS[:1]}, "'test' has 1 row, but needs at least 2"),
        ({"train": ROWS[:1]}, "'train' has 1 row, but needs at least 2"),
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


def test_constant_columns_are_accepted() -> None:
    rows = ROWS.copy()
    rows[:, 0], rows[:, 1] = 0, 1
    assert compare({"coins": Coins()}, rows, rows, rows)[0].error is None


class OwnCoins(Coins):
    """The same as scikit-learn has it."""

    def fit(self, X):
        super().fit(X, X)
        self.mean_ = self.mean
        return self

    def score_samples(self, X):
        return self.log_prob(X).values


def test_an_estimator_without_a_time_limit_is_not_marked_as_stopped() -> None:
    begun: list[tuple[str, float | None]] = []
    systems = {"own": Scikit(OwnCoins()), "coins": Coins()}
    own, _ = compare(systems, ROWS, ROWS, ROWS, budget=60, begin=lambda *told: begun.append(told))
    assert (begun[0], own.allowed, own.stopped, own.error) == (("own", None), None, False, None)
    assert own.parameters == 12
