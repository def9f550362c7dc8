"""The table of random streams: models depend on every number in it."""

from __future__ import annotations

import pytest

from made import streams
from made.training import objective

NAMES = ("DROPOUT", "QUERY", "ORDERINGS", "WHOLE_ROW", "WHOLE_ROW_MASK", "ENTRIES", "CALIBRATION", "WEIGHTS", "MISSING")


def test_no_two_uses_share_a_stream() -> None:
    """But for the trials of a search, which no model depends on."""
    numbers = [value for name, value in vars(streams).items() if name.isupper() and name != "TRIAL"]
    assert sorted(numbers) == list(range(14))


@pytest.mark.parametrize("name", NAMES)
def test_training_has_the_numbers_of_the_table(name) -> None:
    assert getattr(objective, name) == getattr(streams, name)


def test_the_numbers_of_a_stream_never_change() -> None:
    drawn = streams.philox(3, streams.CONNECTIVITY, number=5, part=2).random_raw(3)
    assert drawn.tolist() == [15307097649980461399, 3528032135994082757, 6467310626961652843]
