"""Degrees and orderings: the paper's rules, and the same numbers everywhere and for ever."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import Connectivities, Connectivity


def test_masks_are_those_of_figure_1() -> None:
    figure = Connectivity(np.array([3, 1, 2]), (np.array([2, 1, 2, 2]), np.array([1, 2, 2, 1])))
    first, second, output = (mask.astype(int).tolist() for mask in figure.masks())
    assert first == [[0, 1, 1], [0, 1, 0], [0, 1, 1], [0, 1, 1]]
    assert second == [[0, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 0, 0]]
    assert output == [[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 1]]


FAMILIES = st.builds(
    Connectivities,
    st.integers(1, 9),
    st.lists(st.integers(1, 12), max_size=3).map(tuple),
    st.sampled_from([1, 2, 5, None]),
    st.sampled_from(["natural", "random"]),
    st.sampled_from(["both", "ordering", "degrees", "neither"]),
    st.booleans(),
    st.integers(0, 2**63 - 1),
)


@given(FAMILIES, st.integers(0, 6), st.sampled_from([0, 1]))
def test_degrees_follow_the_paper(family, number, lowest) -> None:
    connectivity, low = family.draw(number, lowest=lowest), min(lowest, family.columns - 1)
    assert sorted(connectivity.ordering) == list(range(1, family.columns + 1))
    assert [len(degrees) for degrees in connectivity.hidden] == list(family.hidden_sizes)
    for layer, degrees in enumerate(connectivity.hidden):
        assert low <= degrees.min() <= degrees.max() <= family.columns - 1
        if family.residual and layer and len(degrees) == len(connectivity.hidden[layer - 1]):
            assert (degrees == connectivity.hidden[layer - 1]).all()
        low = degrees.min()


@given(FAMILIES, st.integers(0, 6), st.sampled_from([0, 1]))
def test_no_output_depends_on_its_own_column_or_a_later_one(family, number, lowest) -> None:
    """The autoregressive property, equation 10."""
    connectivity = family.draw(number, lowest=lowest)
    later = connectivity.ordering[:, None] <= connectivity.ordering[None, :]
    assert not connectivity.dependencies(direct=True)[later].any()


@given(FAMILIES, st.integers(0, 6))
def test_a_connectivity_is_a_function_of_the_seed_and_its_number(family, number) -> None:
    assert replace(family).draw(number).equals(family.draw(number))
    assert family[number].equals(family[number if family.masks is None else number % family.masks])


@given(FAMILIES, st.integers(0, 6))
def test_only_what_is_resampled_changes(family, number) -> None:
    if family.resample in ("degrees", "neither"):
        assert (family[number].ordering == family[0].ordering).all()
    if family.resample in ("ordering", "neither"):
        assert all((a == b).all() for a, b in zip(family[number].hidden, family[0].hidden, strict=True))
    if family.ordering == "natural":
        assert (family[0].ordering == np.arange(1, family.columns + 1)).all()


def test_degrees_are_uniform_and_orderings_too() -> None:
    family = Connectivities(6, (60_000,), ordering="random")
    counts = np.bincount(family[0].hidden[0], minlength=6)
    assert counts[0] == 0
    assert np.abs(counts[1:] - 12_000).max() < 5 * np.sqrt(12_000)
    family = Connectivities(4, (), masks=None, ordering="random")
    orderings = [tuple(family[number].ordering.tolist()) for number in range(4800)]
    counts = np.array([orderings.count(each) for each in set(orderings)])
    assert len(counts) == 24
    assert np.abs(counts - 200).max() < 5 * np.sqrt(200)


def test_a_list_of_masks_is_that_many_masks() -> None:
    family = Connectivities(30, (40,), masks=32, ordering="random")
    seen = {family[number].ordering.tobytes() + family[number].hidden[0].tobytes() for number in range(320)}
    assert len(seen) == 32
    assert family.numbers() == list(range(32))
    assert len(list(family)) == 32


def test_numbers_never_change() -> None:
    """Models on disk depend on these: a change of any platform or version must not change them."""
    family = Connectivities(5, (4, 3), masks=None, ordering="random", seed=7)
    assert family[3].ordering.tolist() == [3, 4, 1, 5, 2]
    assert [degrees.tolist() for degrees in family[3].hidden] == [[3, 4, 4, 2], [4, 2, 3]]
    assert family.digest() == "a67b02f3cd012b91daf19da3f3204d33a9aecdd202ec0c13c7bd4c97f07adf80"


def test_with_last_moves_columns_and_keeps_their_order() -> None:
    connectivity = Connectivity(np.array([3, 1, 5, 2, 4]))
    moved = connectivity.with_last(np.array([True, True, False, False, False]))
    assert moved.ordering.tolist() == [5, 4, 3, 1, 2]


def test_many_masks_store_nothing() -> None:
    family = Connectivities(784, (8000, 8000), masks=32, ordering="random")
    assert not [value for value in vars(family).values() if isinstance(value, np.ndarray)]


def test_dependencies_are_described() -> None:
    family = Connectivities(3, (50,))
    assert family[0].describe(["a", "b", "c"]) == "p(a)\np(b | a)\np(c | a, b)"
    assert Connectivities(1, (3,))[0].describe() == "p(x1)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": 0}, "'columns' should be a whole number, at least 1, not 0"),
        ({"columns": 2, "masks": 0}, "'masks' should be a whole number, at least 1, or None for unlimited, not 0"),
        ({"columns": 2, "hidden_sizes": (3, 0)}, "'hidden_sizes' should be whole numbers"),
        ({"columns": 2, "ordering": "raster"}, "'ordering' should be one of natural, random, not 'raster'"),
        ({"columns": 2, "resample": "all"}, "'resample' should be one of both"),
        ({"columns": 2, "seed": -1}, "'seed' should be a whole number, at least 0"),
        ({"columns": 2, "seed": 2**63}, r"'seed' should be below 2\*\*63"),
        ({"columns": 2.0}, "'columns' should be a whole number, at least 1, not 2.0"),
        ({"columns": 2, "hidden_sizes": (4.7,)}, "'hidden_sizes' should be whole numbers"),
        ({"columns": 2, "hidden_sizes": 8}, "'hidden_sizes' should be whole numbers"),
    ],
)
def test_bad_arguments_are_named(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        Connectivities(**arguments)


GROUPED = Connectivities(6, (30,), masks=None, ordering="natural", groups=(3, 1, 2))


def test_columns_of_a_group_share_a_position() -> None:
    assert GROUPED.positions == 3
    assert GROUPED[0].ordering.tolist() == [1, 1, 1, 2, 3, 3]
    orderings = {tuple(GROUPED[number].ordering.tolist()) for number in range(100)}
    assert orderings == {(a, a, a, b, c, c) for a, b, c in permutations((1, 2, 3))}
    for lowest in (0, 1):
        assert set(GROUPED.draw(0, lowest=lowest).hidden[0].tolist()) == set(range(lowest, 3))


def test_a_group_sees_what_comes_before_it_and_itself_in_order() -> None:
    seen = GROUPED[0].dependencies(direct=True)
    assert seen.astype(int).tolist() == [
        [0, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 1, 1, 1, 0],
    ]


def test_a_group_moves_to_the_end_as_a_whole() -> None:
    moved = GROUPED[0].with_last(np.array([False, True, False, False, False, False]))
    assert moved.ordering.tolist() == [3, 3, 3, 1, 2, 2]
    assert GROUPED.count_positions(np.array([True, True, False, False, False, True])) == 2


def test_wrong_groups_are_refused() -> None:
    with pytest.raises(ValueError, match=r"add up to 6, not \(3, 1\)"):
        Connectivities(6, masks=None, groups=(3, 1))
    with pytest.raises(ValueError, match="unlimited masks"):
        Connectivities(6, masks=1, groups=(3, 3))
