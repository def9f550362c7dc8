"""Figure 1: what is drawn is what the masks say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import Connectivities, Connectivity
from made.paper.figure_network import EXAMPLE, edges, make_figure, plot


def lines(axis) -> list[np.ndarray]:
    """The corners of every connection in a panel."""
    from matplotlib.collections import LineCollection

    (collection,) = (each for each in axis.collections if isinstance(each, LineCollection))
    return collection.get_segments()


def texts(axis) -> list[str]:
    return [text.get_text() for text in axis.texts if text.get_text()]


@given(
    columns=st.integers(1, 7),
    sizes=st.lists(st.integers(1, 9), max_size=4),
    direct=st.booleans(),
    seed=st.integers(0, 99),
)
def test_edges_are_the_ones_of_the_masks(columns, sizes, direct, seed) -> None:
    connectivity = Connectivities(columns, tuple(sizes), ordering="random", seed=seed)[0]
    every = edges(connectivity, direct=direct)
    assert len(set(every)) == len(every)
    masks = connectivity.masks()
    for layer, mask in enumerate(masks):
        chosen = {(j, k) for (before, k), (after, j) in every if (before, after) == (layer, layer + 1)}
        assert chosen == set(map(tuple, np.argwhere(mask).tolist()))
    skipping = columns * (columns - 1) // 2 if direct and sizes else 0
    assert len(every) == sum(int(mask.sum()) for mask in masks) + skipping
    # and to follow them from the inputs is to find what each output depends on
    reached = {(0, d): {d} for d in range(columns)}
    for before, after in sorted(every):
        reached[after] = reached.get(after, set()) | reached.get(before, set())
    paths = connectivity.dependencies(direct=direct)
    for d in range(columns):
        assert reached.get((len(masks), d), set()) == set(np.flatnonzero(paths[d]).tolist())


def test_an_autoencoder_has_all_connections() -> None:
    assert len(edges(EXAMPLE)) == 23
    assert len(edges(EXAMPLE, masked=False)) == 3 * 4 + 4 * 4 + 4 * 3
    assert len(edges(EXAMPLE, direct=True, masked=False)) == 3 * 4 + 4 * 4 + 4 * 3 + 3 * 3


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("sizes", [(), (12,), (4, 9, 2)])
def test_every_connection_is_one_line(sizes, direct) -> None:
    pytest.importorskip("matplotlib")
    connectivity = Connectivities(8, sizes, ordering="random")[0]
    left, _, right = make_figure(connectivity, direct=direct).axes
    assert len(lines(right)) == len(edges(connectivity, direct=direct))
    assert len(lines(left)) == len(edges(connectivity, direct=direct, masked=False))
    bent = 8 * 7 // 2 if direct and sizes else 0  # around the layers that they skip
    assert sum(len(line) > 2 for line in lines(right)) == bent


def test_the_example_is_that_of_the_paper() -> None:
    pytest.importorskip("matplotlib")
    left, middle, right = make_figure(EXAMPLE).axes
    assert [word for word in texts(right) if word.startswith("p(")] == ["p(x₁ | x₂, x₃)", "p(x₂)", "p(x₃ | x₂)"]
    assert [word for word in texts(right) if word.isdecimal()] == list("312" + "2122" + "1221" + "312")
    assert [word for word in texts(right) if word.startswith("x")] == ["x₁", "x₂", "x₃"]
    assert not [word for word in texts(left) if word.isdecimal()]
    white = [int((squares.get_facecolor()[:, 0] == 1).sum()) for squares in middle.collections]
    assert white == [7, 10, 6]
    assert [word.partition(":")[0] for word in texts(middle) if "row" in word] == ["$M^{W^1}$", "$M^{W^2}$", "$M^V$"]


@pytest.mark.parametrize("connectivity", [EXAMPLE, Connectivities(8, (12, 12, 12))[0], Connectivities(25, (40,))[0]])
def test_labels_and_units_do_not_overlap(connectivity) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = make_figure(connectivity, direct=True)
    renderer = FigureCanvasAgg(figure).get_renderer()
    _, middle, right = figure.axes
    in_units = [text for text in right.texts if text.get_text().isdecimal()]
    things = [each for axis in figure.axes for each in (*axis.texts, *axis.patches) if each not in in_units]
    boxes = [thing.get_window_extent(renderer) for thing in things]
    boxes += [grid.get_datalim(middle.transData).transformed(middle.transData) for grid in middle.collections]
    low, high = np.array([box.extents.reshape(2, 2) for box in boxes]).swapaxes(0, 1)
    low, high = low[(low < high).all(axis=1)], high[(low < high).all(axis=1)]  # the rest is empty
    assert (low >= 0).all()
    assert (high <= [figure.bbox.width, figure.bbox.height]).all()
    overlapping = ((low[:, None] < high[None, :]) & (low[None, :] < high[:, None])).all(axis=2)
    assert overlapping.sum() == len(low)  # each with itself


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_file_is_written(ending, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"figure.{ending}"
    plot(
        EXAMPLE, path, names=["animal", "weight $x_", "a name that is much too long to be written in full"], direct=True
    )
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert path.read_bytes().startswith(start)


def test_a_conditional_that_is_too_long_says_how_many_columns_are_given() -> None:
    pytest.importorskip("matplotlib")
    connectivity = Connectivity(np.arange(1, 31))
    words = texts(make_figure(connectivity).axes[2])
    assert "p(x₃ | x₁, x₂)" in words
    assert "p(x₃₀ | 29 columns)" in words


@pytest.mark.parametrize(
    ("connectivity", "options", "said"),
    [
        (Connectivities(41)[0], {}, "'connectivity' has 41 columns, but a figure of more than 40"),
        (Connectivities(3, (4, 50))[0], {}, "'connectivity' has 50 units in hidden layer 2, but"),
        (Connectivities(3, (4,) * 7)[0], {}, "'connectivity' has 7 hidden layers, but a figure of more than 6"),
        (EXAMPLE, {"names": ["a", "b"]}, "'names' should have 3 names, one for each column, not 2"),
        (EXAMPLE, {"path": "figure.txt"}, r"'path' should end in .png, .svg or .pdf, not be 'figure.txt'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(connectivity, options, said, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match=said):
        plot(connectivity, tmp_path / options.get("path", "figure.png"), names=options.get("names"))
    assert not list(tmp_path.iterdir())
