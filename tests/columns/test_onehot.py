"""Columns that exclude each other: found in real groups only, coded without loss, and still one distribution."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made.columns.onehot import Exclusive, neighbour_rank
from made.errors import DataError


def one_hot(sizes: tuple[int, ...], rows: int, seed: int, none: bool = True) -> np.ndarray:
    """Rows of groups in which none or one is 1."""
    random = np.random.default_rng(seed)
    blocks = [np.eye(size + 1, dtype=np.int64)[random.integers(0 if none else 1, size + 1, rows), 1:] for size in sizes]
    return np.concatenate(blocks, axis=1)


@given(st.lists(st.integers(2, 5), min_size=1, max_size=5), st.integers(0, 100))
def test_groups_are_found_and_coded_without_loss(sizes, seed) -> None:
    rows = one_hot(tuple(sizes), 2000, seed)
    groups = Exclusive.find(rows)
    assert groups.sizes == tuple(sizes)
    codes, allowed = groups.encode(rows)
    assert allowed.all()
    assert np.array_equal(groups.decode(codes), rows)
    assert codes.max(axis=0).tolist() == sizes


def test_independent_columns_and_rare_ones_are_left_alone() -> None:
    random = np.random.default_rng(0)
    assert Exclusive.find(random.random((2000, 8)) < 0.3).sizes == (1,) * 8
    rare = random.random((500, 30)) < 0.01  # rarely 1 at all, so that they are hardly ever 1 together
    assert Exclusive.find(rare).sizes == (1,) * 30


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3).filter(lambda sizes: sum(sizes) <= 7), st.integers(0, 50))
def test_all_rows_sum_to_one(sizes, seed) -> None:
    """Those that codes can say, by any distribution of codes, and those that they cannot."""
    groups = Exclusive(tuple(np.cumsum([0, *sizes]).tolist()), rows=7)
    rows = np.array(list(itertools.product((0, 1), repeat=sum(sizes))))
    codes, allowed = groups.encode(rows)
    tables = [np.random.default_rng(seed + g).dirichlet(np.ones(size + 1)) for g, size in enumerate(sizes)]
    log_codes = sum(np.log(table[codes[:, g].astype(int)]) for g, table in enumerate(tables))
    total = np.exp(groups.log_prob(log_codes, allowed))
    assert total.sum() == pytest.approx(1)
    assert len(rows) == allowed.sum() or total[~allowed].sum() == pytest.approx(1 / 9)


def test_what_is_not_a_table_of_zeros_and_ones_is_refused() -> None:
    with pytest.raises(DataError, match="zeros and ones"):
        Exclusive.find([[0, 2]])
    with pytest.raises(DataError, match="zeros and ones, without missing values"):
        Exclusive.find([[0.0, np.nan]])
    with pytest.raises(DataError, match="should have 3 columns, not 2"):
        Exclusive((0, 3), 10).encode([[0, 1]])


def test_the_rank_of_neighbours_is_that_of_a_slow_count() -> None:
    rows = one_hot((3, 1, 2, 4, 1), 300, 0)
    rows[:, 3] = rows[:, 0] ^ (np.random.default_rng(1).random(300) < 0.2)
    sizes, groups = (3, 1, 2, 4, 1), np.repeat(np.arange(5), (3, 1, 2, 4, 1))
    squared = np.corrcoef(rows.T) ** 2
    near = {
        (a, b): squared[groups == a][:, groups == b].sum() / min(sizes[a], sizes[b]) for a in range(5) for b in range(5)
    }
    ranks = [np.mean([near[a, b] < near[a, a + 1] for b in range(5) if b not in (a, a + 1)]) for a in range(4)]
    assert neighbour_rank(rows.T @ rows, 300, sizes) == pytest.approx(np.mean(ranks))


def test_the_rank_of_neighbours_is_a_half_if_all_are_alike() -> None:
    assert neighbour_rank(np.diag([50.0] * 6) + 25 * (1 - np.eye(6)), 100, [1] * 6) == 0.5
    assert neighbour_rank(np.zeros((6, 6)), 100, [1] * 6) == 0.5  # no column is ever 1
