"""Cuts: numbers at which another column jumps."""

import numpy as np
import pytest

from made import MADE, Numeric
from made.tables.cuts import LEAST_ROWS, MOST_CUTS, find_cuts, jumps

GENERATOR = np.random.default_rng(0)
NUMBERS = np.sort(GENERATOR.lognormal(8, 0.7, 3000))


def test_all_limits_of_a_tariff_are_found() -> None:
    limits = np.quantile(NUMBERS, [0.1, 0.35, 0.6, 0.62, 0.9])
    found = find_cuts(NUMBERS, [np.digitize(NUMBERS, limits)])
    assert len(found) == len(limits)
    for cut, limit in zip(found, limits, strict=True):
        assert np.array_equal(np.less(NUMBERS, cut), np.less(NUMBERS, limit))


def test_noise_has_no_cuts() -> None:
    others = [GENERATOR.integers(2 + each, size=len(NUMBERS)) for each in range(20)]
    assert find_cuts(NUMBERS, others) == []


def test_a_gradual_change_has_no_cuts() -> None:
    rising = (GENERATOR.random(len(NUMBERS)) < np.linspace(0.1, 0.9, len(NUMBERS))).astype(int)
    assert find_cuts(NUMBERS, [rising]) == []


def test_a_noisy_jump_is_found_where_it_is() -> None:
    after = np.arange(len(NUMBERS)) >= 1000
    noisy = (GENERATOR.random(len(NUMBERS)) < np.where(after, 0.9, 0.1)).astype(int)
    (cut,) = find_cuts(NUMBERS, [noisy])
    assert abs(np.less(NUMBERS, cut).sum() - 1000) < 30


def test_missing_values_do_not_take_part() -> None:
    numbers, values = NUMBERS.copy(), (np.arange(len(NUMBERS)) >= 1000).astype(np.intp)
    numbers[::7], values[::5] = np.nan, -1
    (cut,) = find_cuts(numbers, [values])
    assert NUMBERS[990] < cut < NUMBERS[1010]


def test_the_order_of_rows_does_not_matter() -> None:
    order, values = GENERATOR.permutation(len(NUMBERS)), np.digitize(NUMBERS, [2000.0, 4000.0])
    assert find_cuts(NUMBERS[order], [values[order]]) == find_cuts(NUMBERS, [values])


def test_a_cut_lies_between_different_numbers() -> None:
    whole = np.sort(GENERATOR.integers(10, size=2000)).astype(np.float64)
    assert find_cuts(whole, [(whole >= 4).astype(np.intp)]) == [3.5]


def test_small_tables_have_no_cuts() -> None:
    numbers = np.arange(LEAST_ROWS - 1.0)
    assert jumps(numbers, (numbers >= 100).astype(np.intp)) == []


def test_a_column_has_at_most_so_many_cuts() -> None:
    numbers = np.arange(10_000.0)
    assert len(find_cuts(numbers, [(numbers // 400).astype(np.intp)])) == MOST_CUTS


def test_a_category_that_is_a_function_of_a_number_is_learned() -> None:
    numbers = GENERATOR.permutation(NUMBERS)[:1500]
    limits = np.quantile(NUMBERS, [0.3, 0.34, 0.6, 0.63])
    rows = np.column_stack([numbers, np.digitize(numbers, limits)])
    model = MADE(max_epochs=20, random_state=0).fit(rows[:1200])
    settings = model.model_.schema.fields[0].column.to_json()
    assert len(settings["cuts"]) == len(limits)
    asked = rows[1200:].copy()
    asked[:, 1] = np.nan
    assert (model.predict(asked, target=1) == rows[1200:, 1]).mean() > 0.97


@pytest.mark.parametrize("cuts", [[2.0, 1.0], [1.0, 1.0], [float("nan")], list(range(300))])
def test_forged_cuts_are_refused(cuts: list[float]) -> None:
    with pytest.raises(ValueError, match="'cuts' should be"):
        Numeric.from_json(Numeric(0.0, 1.0).to_json() | {"cuts": cuts})
