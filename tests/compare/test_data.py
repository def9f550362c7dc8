"""Tables as zeros and ones, and their split."""

from __future__ import annotations

import numpy as np
import pytest

from made.compare.data import split, zeros_and_ones
from made.errors import DataError


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
    with pytest.raises(DataError, match="other has 4 columns, but others have 5"):
        zeros_and_ones({"one": one.to_numpy(), "other": other.iloc[:, :4].to_numpy()})
    with pytest.raises(DataError, match=r"column 0 .'a'. is text in one of the tables"):
        zeros_and_ones({"one": one, "other": other.assign(a=[1])})
