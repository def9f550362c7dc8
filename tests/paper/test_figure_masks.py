"""Figure 2."""

from __future__ import annotations

from made.paper import figure_masks


def test_figure_2_has_a_point_for_each_number_of_masks_and_size_of_batches(small, search, tmp_path, looks) -> None:
    points = figure_masks.make(search, small, masks=(1, 2), batches=(20, 50), units=5, epochs=1)
    assert [(each["config"]["batch_size"], each["masks"]) for each in points] == [(20, 1), (20, 2), (50, 1), (50, 2)]
    assert figure_masks.make(search, small, masks=(1, 2), batches=(20, 50), units=5, epochs=1) == points
    assert looks == [50] * 4
    figure_masks.plot(points, tmp_path / "masks.png")
    assert (tmp_path / "masks.png").read_bytes().startswith(b"\x89PNG")
