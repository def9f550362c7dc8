"""The memory layout of one pass: the order of the units, and the masked products.

Layers are numbered as in :mod:`made.network.weights`; a matrix is the pair (layer it leads to, layer it comes from).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from made.columns.group import Columns
from made.network.buffers import Buffers
from made.network.connectivity import Connectivity, Integers
from made.network.gathered import Grouped, gathered_product
from made.network.products import addmm, by_onednn
from made.network.staircase import (
    Sorted,
    Staircase,
    compared_product,
    cut_degrees,
    exact_degrees,
    masked_product,
    staircase_product,
)

DENSE = 2**19  # weights of a matrix, up to which masking all of it at once takes less time than skipping zeros
GATHERED = 2**21  # weights of a matrix, from which gathering them saves more time than it takes, if MKL multiplies
BY_ONEDNN = 8  # times as many, if oneDNN does: products take half the time, and gathering as long as before


def _degrees(columns: Columns, connectivity: Connectivity) -> dict[int, Integers]:
    """The degree of every unit; all units of a column share its degree."""
    inputs, *hidden, outputs = connectivity.degrees
    layers = [inputs[columns.input_columns], *hidden, outputs[columns.output_columns]]
    return {-1: inputs, **dict(enumerate(layers))}


class Layout:
    """Units in their own order, masks computed on the fly: for few rows, and for training.

    ``weights`` are the matrices by name, in the form that :meth:`product` takes; :meth:`made.Network.layout` sets them.

    Arguments:
        columns: the columns of the table.
        connectivity: the connectivity of the pass.
        buffers: memory for results and gradients.
        like: a tensor of the dtype and device to work with.
    """

    def __init__(self, columns: Columns, connectivity: Connectivity, buffers: Buffers, like: Tensor) -> None:
        self.columns, self.connectivity, self.buffers = columns, connectivity, buffers
        self.weights: dict[str, Tensor] = {}
        self.dtype, self.device, self._like = like.dtype, like.device, like.detach()[:0].clone()
        self._of_units = degrees = _degrees(columns, connectivity)
        self._ranges = {layer: (each.min(), each.max()) for layer, each in degrees.items()}
        self._degrees = {layer: exact_degrees(each, like) for layer, each in degrees.items()}
        self._grouped: dict[int, Grouped] = {}

    def _group(self, layer: int) -> Grouped:
        if layer not in self._grouped:
            cuts = cut_degrees(int(self.connectivity.ordering.max()), max(map(len, self._of_units.values())))
            self._grouped[layer] = Grouped(self._of_units[layer], cuts, self._degrees[layer].new_empty(0))
        return self._grouped[layer]

    sorted = False

    def product(self, matrix: tuple[int, int], weight: Tensor, x: Tensor, add: Tensor) -> Tensor:
        r""":math:`a + (W \odot M)\, x`. x is (units, rows), a is (units, rows) or (units, 1)."""
        after, before = matrix
        (lowest, highest), (first, last) = self._ranges[after], self._ranges[before]
        if highest < first:  # no connection
            return add.expand(len(weight), x.shape[1]).clone()
        if lowest >= last:  # all connections
            return addmm(add, weight, x)
        if x.shape[1] >= 32 and weight.numel() >= GATHERED * (BY_ONEDNN if by_onednn() else 1):
            return gathered_product(weight, x, add, self._group(before), self._group(after), self.buffers)
        return compared_product(weight, x, add, self._degrees[before], self._degrees[after], self.buffers)

    def mask(self, matrix: tuple[int, int]) -> Tensor:
        """The mask of a matrix: 1 for a connection, otherwise 0."""
        after, before = (self._degrees[layer] for layer in matrix)
        mask = self.buffers.empty(len(after), len(before), like=self._like)
        return torch.ge(after.unsqueeze(1), before, out=mask)

    def sort(self, layer: int, units: Tensor) -> Tensor:
        """Units of a layer (the first axis) from their own order to the order of the pass."""
        return units

    def arrange(self, table: Tensor) -> Tensor:
        """Columns of a table (the last axis) from their own order to the order of the pass."""
        return table

    def restore(self, table: Tensor, layer: int = -1) -> Tensor:
        """Columns, or the units of a layer (the last axis), from the order of the pass to their own."""
        return table

    def count_before(self, flags: Tensor) -> Tensor:
        """The number of flagged columns before each column in the ordering. Shapes: (columns, rows) to the same."""
        order, first = self._order
        counts = nn.functional.pad(flags.index_select(0, order).cumsum(dim=0), (0, 0, 1, 0))
        return counts.index_select(0, first)

    @cached_property
    def _order(self) -> tuple[Tensor, Tensor]:
        """The columns by their places in the ordering, and for each how many there are before it."""
        ordering = self.arrange(torch.from_numpy(self.connectivity.ordering).to(self.device))
        places, order = ordering.sort(stable=True)
        return order, torch.searchsorted(places, ordering)


class MaskedLayout(Layout):
    """Units in their own order, matrices masked at once: for small networks of a finite list of masks."""

    def product(self, matrix: tuple[int, int], weight: Tensor, x: Tensor, add: Tensor) -> Tensor:
        return masked_product(weight, self.mask(matrix), x, add, self.buffers)


class StoredLayout(Layout):
    """Units in their own order, masks stored: for the few masks of a small network that most passes take."""

    def __init__(self, columns: Columns, connectivity: Connectivity, buffers: Buffers, like: Tensor) -> None:
        super().__init__(columns, connectivity, buffers, like)
        self._outputs = len(connectivity.degrees) - 1
        self._masks: dict[tuple[int, int], Tensor] = {}

    def product(self, matrix: tuple[int, int], weight: Tensor, x: Tensor, add: Tensor) -> Tensor:
        masked = weight * self.mask(matrix)
        if matrix[0] == self._outputs:
            return addmm(add, masked, x)
        return addmm(add.t(), x.t(), masked.t()).t()  # hidden units row after row: their products are faster

    def mask(self, matrix: tuple[int, int]) -> Tensor:
        if matrix not in self._masks:
            with torch.inference_mode(False):
                self._masks[matrix] = super().mask(matrix).clone()
        return self._masks[matrix]


class SingleLayout(StoredLayout):
    """The same for the only mask of a small network."""

    def product(self, matrix: tuple[int, int], weight: Tensor, x: Tensor, add: Tensor) -> Tensor:
        return masked_product(weight, self.mask(matrix), x, add, self.buffers)


class SortedLayout(Layout):
    """Units sorted by degree, weights packed: for many rows, and for a network of one connectivity.

    ``columns`` are in the order of the pass, and so are the values that it takes and the units that it returns.
    """

    sorted = True

    def __init__(self, columns: Columns, connectivity: Connectivity, buffers: Buffers, like: Tensor) -> None:
        self.connectivity, self.buffers = connectivity, buffers
        self.weights = {}
        self.dtype, self.device = like.dtype, like.device
        degrees = _degrees(columns, connectivity)
        self.cuts = cut_degrees(int(connectivity.ordering.max()), max(len(each) for each in degrees.values()))
        self.layers = {layer: Sorted(each, self.cuts, like) for layer, each in degrees.items()}
        self.columns = columns.permuted(np.argsort(connectivity.ordering, kind="stable").tolist())
        self._stairs: dict[tuple[int, int], Staircase] = {}
        self._stored: tuple[tuple[int, ...], list[Tensor], list[Tensor]] = ((), [], [])

    def hold(self, weights: dict[str, Tensor], matrices: dict[str, tuple[int, int]]) -> None:
        """Take packed weights as they are stored, with zeros where masked: an optimizer or a user may have written."""
        pointers = tuple(weight.data_ptr() for weight in weights.values())
        if self._stored[0] != pointers:
            corners: list[Tensor] = []
            masks: list[Tensor] = []
            for name, weight in weights.items():
                stairs = self.stairs(matrices[name])
                corners += stairs.corners(stairs.matrices(weight.data))
                masks += stairs.corner_masks
            self._stored = pointers, corners, masks
        torch._foreach_mul_(*self._stored[1:])
        self.weights = weights

    def stairs(self, matrix: tuple[int, int]) -> Staircase:
        """The staircase of a matrix."""
        if matrix not in self._stairs:
            after, before = matrix
            self._stairs[matrix] = Staircase(self.layers[before], self.layers[after])
        return self._stairs[matrix]

    def product(self, matrix: tuple[int, int], weight: Tensor, x: Tensor, add: Tensor) -> Tensor:
        return staircase_product(weight, x, add, self.stairs(matrix), self.buffers)

    def sort(self, layer: int, units: Tensor) -> Tensor:
        return units.index_select(0, self.layers[layer].order)

    def arrange(self, table: Tensor) -> Tensor:
        return table.index_select(-1, self.layers[-1].order)

    def restore(self, table: Tensor, layer: int = -1) -> Tensor:
        return table.index_select(-1, self.layers[layer].inverse)
