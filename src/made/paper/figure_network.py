"""The paper's Figure 1: an autoencoder, the masks of a connectivity, and the resulting MADE.

Each mask is drawn at the height of the connections that it masks, with the degrees that determine its entries beside
it. Connections are darker the higher the degree of the unit that they come from. All lengths are in inches.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from made.network.connectivity import Connectivity, Integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


EXAMPLE = Connectivity(np.array([3, 1, 2]), (np.array([2, 1, 2, 2]), np.array([1, 2, 2, 1])))

UNITS, LAYERS = 40, 6  # the largest legible layer, and the most hidden layers
LONGEST = 56  # characters of a conditional; longer ones give the number of columns instead of their names
INK, PALE = "#333333", "#a8a8a8"


def edges(
    connectivity: Connectivity, *, direct: bool = False, masked: bool = True
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The connections as pairs of units, each a pair of layer and index.

    Layer 0 is the inputs, the last one the outputs. ``direct`` adds the direct connections A, if there is a hidden
    layer to skip. With ``masked=False``, all connections of the autoencoder.

    Example:
        >>> edges(EXAMPLE)[:3]
        [((0, 1), (1, 0)), ((0, 2), (1, 0)), ((0, 1), (1, 1))]
        >>> len(edges(EXAMPLE)), len(edges(EXAMPLE, masked=False))
        (23, 40)
    """
    return [
        ((before, k), (after, j))
        for after, before, mask in _masks(connectivity, direct)
        for j, k in np.argwhere(mask if masked else np.ones_like(mask)).tolist()
    ]


def plot(connectivity: Connectivity, path: Path, *, names: Sequence[str] | None = None, direct: bool = False) -> None:
    """Write the figure as PNG, SVG or PDF, by the suffix of the path."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"'path' should end in .png, .svg or .pdf, not be {path.name!r}.")
    make_figure(connectivity, names=names, direct=direct).savefig(path, dpi=150)


def make_figure(connectivity: Connectivity, *, names: Sequence[str] | None = None, direct: bool = False) -> Figure:
    """The figure; its three axes are the autoencoder, the masks and MADE.

    Arguments:
        connectivity: the ordering and the degrees to draw.
        names: the names of the columns; default: x₁, x₂ and so on.
        direct: whether to add the direct connections A, dashed, beside the hidden layers that they skip.
    """
    from matplotlib.figure import Figure

    layout = _Layout(connectivity, direct)
    columns = len(connectivity.ordering)
    if names is not None and len(names) != columns:
        raise ValueError(f"'names' should have {columns} names, one for each column, not {len(names)}.")
    digits = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    inputs = [f"x{d + 1}".translate(digits) for d in range(columns)] if names is None else _plain(names)
    outputs = [rf"$\hat{{x}}_{{{d + 1}}}$" for d in range(columns)] if names is None else inputs
    conditionals = _conditionals(connectivity, inputs, direct)

    top = layout.height + layout.radius + _room(conditionals, layout.pitch(-1))[0] + 0.65
    bottom = layout.radius + _room(inputs, layout.pitch(0))[0] + 0.6
    space, dashed = 0.5, "; dashed: directly" if layout.lane else ""
    panels = {
        "Autoencoder": (layout.width, r"$\times$", f"every output sees every input{dashed}"),
        "Masks": (layout.masks_width, "=", "white: 1, connected; black: 0, masked"),
        "MADE": (layout.width, "", "numbers: positions of columns, degrees of hidden units"),
    }
    width = space + sum(width + space for width, _, _ in panels.values())
    figure = Figure(figsize=(width, top + bottom))
    figure.set_layout_engine("none")  # whatever the default of the reader is
    left = space
    for title, (across, sign, note) in panels.items():
        axis = figure.add_axes((left / width, 0, across / width, 1))
        axis.set(xlim=(0, across), ylim=(-bottom, top))
        axis.set_axis_off()
        style: dict[str, Any] = {"ha": "center", "va": "center", "color": INK}
        axis.text(across / 2, top - 0.3, title, size=14, weight="bold", **style)
        axis.text(across + space / 2, top - 0.3, sign, size=14, **style)
        axis.text(across / 2, 0.25 - bottom, note, size=9, **style)
        left += across + space
    _plot_network(figure.axes[0], layout, inputs, outputs, masked=False)
    _plot_masks(figure.axes[1], layout)
    _plot_network(figure.axes[2], layout, inputs, conditionals, masked=True)
    return figure


def _masks(connectivity: Connectivity, direct: bool) -> list[tuple[int, int, NDArray[np.bool_]]]:
    """The masks, each after the numbers of its output layer and its input layer."""
    masks = [(layer + 1, layer, mask) for layer, mask in enumerate(connectivity.masks())]
    if direct and connectivity.hidden:
        positions = connectivity.ordering
        masks.append((len(masks), 0, positions[:, None] > positions[None, :]))
    return masks


def _conditionals(connectivity: Connectivity, names: Sequence[str], direct: bool) -> list[str]:
    """The factor of each column."""
    factors = connectivity.describe(names, direct=direct).splitlines()
    given = connectivity.dependencies(direct=direct).sum(axis=1).tolist()
    each = [factors[position - 1] for position in connectivity.ordering.tolist()]
    return [
        factor if len(factor) <= LONGEST else f"p({name} | {count} columns)"
        for factor, name, count in zip(each, names, given, strict=True)
    ]


def _plain(names: Sequence[str]) -> list[str]:
    """Names on one line, truncated, with dollars escaped, which would start a formula."""
    names = [" ".join(name.split()) for name in names]
    return [(name if len(name) <= 24 else name[:23] + "…").replace("$", r"\$") for name in names]


def _room(labels: Sequence[str], pitch: float) -> tuple[float, int]:
    """The height that labels take, and their rotation, so that they do not overlap."""
    from matplotlib.textpath import TextPath

    # A full stop after each, because empty text has no outline.
    widest = max(float(TextPath((0, 0), f"{label}.", size=10).vertices[:, 0].max()) for label in labels) / 72
    return (widest + 0.15, 90) if widest + 0.08 > pitch else (0.3, 0)


class _Layout:
    """Positions and sizes: the inputs at height 0, each layer above the one before."""

    def __init__(self, connectivity: Connectivity, direct: bool) -> None:
        hidden, ordering = connectivity.hidden, connectivity.ordering
        layers: list[tuple[Sized, int, str]] = [(hidden, LAYERS, "hidden layers"), (ordering, UNITS, "columns")]
        layers += [(each, UNITS, f"units in hidden layer {number}") for number, each in enumerate(hidden, 1)]
        for each, most, what in layers:
            if len(each) > most:
                raise ValueError(
                    f"'connectivity' has {len(each)} {what}, but a figure of more than {most} would not be legible: "
                    "plot a smaller network."
                )
        self.connectivity, self.direct = connectivity, direct
        # The labels of the units: positions in the ordering, and degrees of hidden units.
        self.numbers: tuple[Integers, ...] = (ordering, *hidden, ordering)
        self.largest = max(map(len, self.numbers))
        self.layers_width = max(3.6, self.largest * float(np.clip(6 / self.largest, 0.32, 0.8)))
        # Each input has a lane beside the layers for its direct connections: the distance between lanes.
        self.lane = min(0.12, 1.6 / len(ordering)) if direct and hidden else 0.0
        self.width = self.layers_width + self.lane * len(ordering)
        self.radius = min(0.2, 0.38 * self.layers_width / self.largest)
        self.cell = float(np.clip(2 / self.largest, 0.08, 0.22))  # the side of an entry of a mask
        # Between layers: room for a mask, and for connections that are not too flat.
        self.gap = max(1.3, self.cell * self.largest + 0.6, 0.22 * self.layers_width)
        self.height = self.gap * (len(self.numbers) - 1)
        both = self.mask_width(len(self.numbers[-2])) + (self.mask_width(len(ordering)) if self.lane else 0)
        self.masks_width = max(2.7, self.mask_width(self.largest), both)

    def mask_width(self, units: int) -> float:
        """The width of a mask with ``units`` columns, with its labels."""
        return max(1.6, self.cell * units + 0.4)

    def pitch(self, layer: int) -> float:
        """The distance between units of a layer."""
        return min(1.2, self.layers_width / len(self.numbers[layer]))

    def places(self, layer: int) -> NDArray[np.float64]:
        """The centres of the units of a layer. Shape: (units, 2)."""
        count = len(self.numbers[layer])
        across = self.layers_width / 2 + (np.arange(count) - (count - 1) / 2) * self.pitch(layer)
        return np.column_stack([across, np.full(count, layer * self.gap)])


def _plot_network(axis: Axes, layout: _Layout, inputs: Sequence[str], outputs: Sequence[str], *, masked: bool) -> None:
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Circle

    columns = len(layout.numbers[0])
    shades = colormaps["Blues"](0.2 + 0.7 * np.arange(columns + 1) / columns)
    places = [layout.places(layer).tolist() for layer in range(len(layout.numbers))]
    lines, colors, styles = [], [], []
    # Dark connections are drawn last: they are fewer, and would be hidden by the others.
    connections = edges(layout.connectivity, direct=layout.direct, masked=masked)
    for before, after in sorted(connections, key=lambda edge: int(layout.numbers[edge[0][0]][edge[0][1]])):
        line = [places[layer][unit] for layer, unit in (before, after)]
        skips = after[0] - before[0] > 1
        if skips:
            lane = layout.layers_width + layout.lane * (before[1] + 0.5)
            line[1:1] = [(lane, layout.gap / 2), (lane, layout.height - layout.gap / 2)]
        lines.append(line)
        colors.append(shades[layout.numbers[before[0]][before[1]]] if masked else PALE)
        styles.append("dashed" if skips else "solid")
    width = float(np.clip(12 / layout.largest, 0.3, 1.4))
    axis.add_collection(LineCollection(lines, colors=colors, linestyles=styles, linewidths=width))
    for layer, numbers in enumerate(layout.numbers):
        for (x, y), number in zip(places[layer], numbers.tolist(), strict=True):
            color = shades[number] if masked else "white"
            axis.add_patch(Circle((x, y), layout.radius, facecolor=color, edgecolor=INK, linewidth=0.8, zorder=3))
            ink = "white" if number > columns / 2 else INK
            style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "size": 54 * layout.radius, "color": ink}
            axis.text(x, y, str(number) if masked else "", zorder=4, **style)
    for labels, layer, side in ((inputs, 0, -1), (outputs, len(places) - 1, 1)):
        style = {"ha": "center", "va": "bottom" if side > 0 else "top", "size": 10, "color": INK}
        style["rotation"] = _room(labels, layout.pitch(layer))[1]
        for label, (x, y) in zip(labels, places[layer], strict=True):
            axis.text(x, y + side * (layout.radius + 0.08), label, **style)


def _plot_masks(axis: Axes, layout: _Layout) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    cell, last = layout.cell, len(layout.numbers) - 1
    for after, before, mask in _masks(layout.connectivity, layout.direct):
        rows, columns = mask.shape
        x, y = layout.masks_width / 2, (after - 0.5) * layout.gap
        if layout.lane and after == last:  # two masks side by side
            other = layout.numbers[0 if before else -2]
            x += layout.mask_width(len(other)) / 2 * (-1 if before else 1)
        name = f"{{W^{after}}}" if after < last else "V" if before == last - 1 else "A"
        left, low, top = x - columns * cell / 2, y - rows * cell / 2, y + rows * cell / 2
        corners = [(left + k * cell, top - (j + 1) * cell) for j in range(rows) for k in range(columns)]
        squares = PatchCollection([Rectangle(corner, cell, cell) for corner in corners])
        squares.set(facecolors=["white" if one else "black" for one in mask.ravel()], edgecolors=PALE, linewidths=0.5)
        axis.add_collection(squares)
        axis.text(x, top + 0.12, f"$M^{name}$: row {'>' if after == last else '≥'} column", ha="center", size=10)
        if cell < 0.12:  # degrees would not fit
            continue
        for j, degree in enumerate(layout.numbers[after].tolist()):
            axis.text(left - 0.05, top - (j + 0.5) * cell, str(degree), ha="right", va="center_baseline", size=7)
        for k, degree in enumerate(layout.numbers[before].tolist()):
            axis.text(left + (k + 0.5) * cell, low - 0.04, str(degree), ha="center", va="top", size=7)
