"""An ensemble checks masks and segments once, for every query."""

from __future__ import annotations

import pytest

from made import Connectivities, Ensemble, Network


def network(masks: int | None) -> Network:
    return Network(3, Connectivities(3, (4,), masks=masks))


@pytest.mark.parametrize(
    ("masks", "asked", "numbers"),
    [(None, None, list(range(16))), (None, 2, [0, 1]), (4, None, [0, 1, 2, 3]), (4, [2, 1], [2, 1]), (1, None, [0])],
)
def test_masks_are_counted_or_named(masks, asked, numbers) -> None:
    assert Ensemble(network(masks), asked).numbers == numbers


@pytest.mark.parametrize("asked", [0, [], [-1], 5])
def test_masks_that_do_not_exist_are_refused(asked) -> None:
    with pytest.raises(ValueError, match="'masks'"):
        Ensemble(network(4), asked)


@pytest.mark.parametrize("segments", [0, 1.5, True])
def test_segments_are_whole_numbers(segments) -> None:
    with pytest.raises(ValueError, match="'segments' should be a whole number"):
        Ensemble(network(None), segments=segments)


def test_segments_need_any_order() -> None:
    with pytest.raises(ValueError, match="'segments' above 1 needs a network of unlimited masks"):
        Ensemble(network(4), segments=2)


def test_the_same_network_under_other_masks() -> None:
    ensemble = Ensemble(network(None), 4, segments=3)
    other = ensemble.with_masks([7])
    assert other.network is ensemble.network
    assert (other.numbers, other.segments) == ([7], 3)
