"""The table of random streams: models depend on every number in it."""

from __future__ import annotations

from made import streams


def test_no_two_uses_share_a_stream() -> None:
    """But for the trials of a search, which no model depends on."""
    numbers = [value for name, value in vars(streams).items() if name.isupper() and name != "TRIAL"]
    assert sorted(numbers) == list(range(16))


def test_the_numbers_of_a_stream_never_change() -> None:
    drawn = streams.philox(3, streams.CONNECTIVITY, number=5, part=2).random_raw(3)
    assert drawn.tolist() == [15307097649980461399, 3528032135994082757, 6467310626961652843]


def test_the_bits_of_a_stream_never_change() -> None:
    assert streams.random_bits(3, streams.WHOLE_ROW, 5) == 5235018240823851217
