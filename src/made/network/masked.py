r"""The parameters and one pass: (rows, connectivity) to output units.

The paper's equations 6, 7, 11 and 14 for L layers, with optional residual connections:

.. math::
    h^0 &= x \\
    h^l &= g(b^l + (W^l \odot M^{W^l}) h^{l-1} + (U^l \odot M^{W^l}) 1) \quad [+\; h^{l-1} \text{ if joined}] \\
    \text{outputs} &= c + (V \odot M^V) h^L + (A \odot M^A) x + (U^{L+1} \odot M^V) 1

A row may have *given* columns and *missing values*. Every unit of the first layer and every direct connection sees a
given column, whatever its degree; nothing sees a missing value, whose 1 in the indicator of the first layer becomes 0.
So rows that differ in what is given and what is missing share one connectivity and one pass.

Tables are (rows, columns), but inside a pass units come first, (units, rows), as in the paper's :math:`W x`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from made.columns.base import Column
from made.columns.group import Columns
from made.network.buffers import Buffers
from made.network.calibration import adjustments, calibrated
from made.network.connectivity import Connectivities, Connectivity
from made.network.dropout import drop_out
from made.network.layout import DENSE, Layout, MaskedLayout, SingleLayout, SortedLayout, StoredLayout
from made.network.threads import Threads
from made.network.weights import matrix_layers, weight_shapes

MOST_STORED = 2**24  # entries of stored masks

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu_,
    "softplus": F.softplus,
    "tanh": torch.tanh_,
    "sigmoid": torch.sigmoid_,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "selu": F.selu,
    "gelu": F.gelu,
    "silu": F.silu,
    "identity": lambda units: units,
}


class Network(nn.Module):
    r"""A masked autoencoder.

    Parameters have the paper's names: ``W1`` to ``WL``, ``V``, the direct connections ``A``, the conditioning weights
    ``U1`` to ``U(L+1)``, the biases ``b1`` to ``bL`` and ``c``. Large matrices of only one connectivity are stored
    packed (see :mod:`made.network.staircase`); in ``state_dict()`` they are always in full, units in their own order.

    Arguments:
        columns: the columns, or the number of them if all are binary.
        connectivities: the family of connectivities; the sizes of the hidden layers are there.
        activation: g, by name, one of ``ACTIVATIONS``.
        direct: add direct connections A from inputs to outputs (without hidden layers, V already is that).
        conditioning: add connectivity conditioning weights U.
        dropout: the probability of dropping a hidden unit in training.
        input_dropout: the probability of dropping an input unit in training; its column is still predicted.
        initialization: ``"glorot"``, ``"orthogonal"``, or ``"zero-output"``: glorot, but V starts at zero like A and U,
            so that outputs start at their biases.
        calibrate: whether :attr:`calibration` adjusts output units, except in training; for any-order networks only.
        seed: the seed of the initial weights. Default: the seed of the connectivities.

    Example:
        >>> network = Network(3, Connectivities(3, (4, 4), ordering="random", seed=1), direct=True)
        >>> network
        Network(3-4-4-3, Columns(3 x Binary(signed=False)), activation=relu, direct, masks=1)
        >>> network(torch.tensor([[0.0, 1.0, 1.0]])).shape
        torch.Size([1, 3])
        >>> print(network.dependencies())
        p(x3)
        p(x1 | x3)
        p(x2 | x1, x3)
    """

    c: Tensor
    calibration: Tensor | None

    def __init__(
        self,
        columns: Columns | Sequence[Column] | int,
        connectivities: Connectivities,
        *,
        activation: str = "relu",
        direct: bool = False,
        conditioning: bool = False,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        initialization: Literal["glorot", "orthogonal", "zero-output"] = "glorot",
        calibrate: bool = False,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        if isinstance(columns, int):
            columns = Columns.binary(columns)
        elif not isinstance(columns, Columns):
            columns = Columns(columns)
        if len(columns) != connectivities.columns:
            raise ValueError(
                f"'connectivities' is for {connectivities.columns} columns, but 'columns' has {len(columns)}."
            )
        if activation not in ACTIVATIONS:
            raise ValueError(f"'activation' should be one of {', '.join(ACTIVATIONS)}, not {activation!r}.")
        for name, share in (("dropout", dropout), ("input_dropout", input_dropout)):
            if not 0 <= share < 1:
                raise ValueError(f"'{name}' should be at least 0 and below 1, not {share}.")
        if initialization not in ("glorot", "orthogonal", "zero-output"):
            raise ValueError(f"'initialization' should be glorot, orthogonal or zero-output, not {initialization!r}.")
        if calibrate and not connectivities.any_order:
            raise ValueError("'calibrate' needs unlimited masks with resampled orderings.")
        if connectivities.groups != columns.groups:
            raise ValueError("'columns' and 'connectivities' should have the same exclusive groups.")
        self.columns, self.connectivities, self.activation = columns, connectivities, activation
        self.conditioning, self.dropout, self.input_dropout = conditioning, dropout, input_dropout
        self.sizes = (columns.inputs, *connectivities.hidden_sizes, columns.outputs)
        self.depth = len(connectivities.hidden_sizes)
        self.direct = direct and self.depth > 0
        self.workspace = Buffers()
        self.threads = Threads()
        self._layouts: dict[object, Layout] = {}

        self.matrices = matrix_layers(self.depth, direct=direct, conditioning=conditioning)
        options = {"direct": direct, "conditioning": conditioning, "calibrate": calibrate}
        self.shapes = weight_shapes(columns, connectivities.hidden_sizes, **options)
        sizes = [math.prod(self.shapes[name]) for name in self.matrices]
        self._small, self._weights = max(sizes) <= DENSE, sum(sizes)
        self.packed = connectivities.single and not self._small  # the form of the matrices
        self.register_buffer("calibration", torch.zeros(self.shapes["calibration"]) if calibrate else None)
        ends = np.arange(len(columns) + 1)
        self._input_bounds: list[int] = np.searchsorted(columns.input_columns, ends).tolist()
        self._output_bounds: list[int] = np.searchsorted(columns.output_columns, ends).tolist()
        for layer in range(1, self.depth + 1):
            self.register_parameter(f"b{layer}", nn.Parameter(torch.zeros(self.shapes[f"b{layer}"])))
        self.register_parameter("c", nn.Parameter(columns.initial()))
        generator = torch.Generator().manual_seed(connectivities.seed if seed is None else seed)
        for name in self.matrices:
            dense = torch.zeros(self.shapes[name])
            if name[0] in ("W" if initialization == "zero-output" else "WV"):
                initialize = nn.init.orthogonal_ if initialization == "orthogonal" else nn.init.xavier_uniform_
                initialize(dense, generator=generator)
            self.register_parameter(name, nn.Parameter(self._pack(name, dense)))

    def extra_repr(self) -> str:
        family = self.connectivities
        parts = ["-".join(map(str, self.sizes)), str(self.columns), f"activation={self.activation}"]
        parts += [word for word in ("direct", "conditioning") if getattr(self, word)]
        parts += ["residual"] if family.residual else []
        parts += [f"{word}={getattr(self, word)}" for word in ("dropout", "input_dropout") if getattr(self, word)]
        parts += [f"masks={'unlimited' if family.masks is None else family.masks}"]
        return ", ".join(parts)

    def in_double(self) -> Network:
        """The network in double precision: a copy of its weights, unless they are doubles; all else is shared."""
        if self.c.dtype == torch.float64:
            return self
        twin = copy.copy(self)
        weights = {name: nn.Parameter(each.detach().double(), False) for name, each in self.named_parameters()}
        buffers = {name: None if each is None else each.double() for name, each in self._buffers.items()}
        vars(twin).update(_parameters=weights, _buffers=buffers, workspace=Buffers())
        return twin

    def start_independent(self, values: Tensor, observed: Tensor | None = None) -> None:
        """Initialize the output biases c to independent columns. Shapes: (rows, columns), twice."""
        with torch.no_grad():
            self.c.copy_(self.columns.independent(values, observed))

    def input_units(self, column: int) -> slice:
        """The input units of a column."""
        return slice(*self._input_bounds[column : column + 2])

    def output_units(self, column: int) -> slice:
        """The output units of a column."""
        return slice(*self._output_bounds[column : column + 2])

    def slower(self) -> dict[str, float]:
        """Divisors of the learning rate, for the matrices that need a lower one: the conditioning weights U.

        U is multiplied by ones, so that all weights of a unit have the same gradient, and their sum, which is what
        matters, would move many times as far in an update as a bias does.
        """
        return {name: self.shapes[name][1] ** 0.5 for name in self.matrices if name[0] == "U"}

    def dependencies(self, number: int = 0) -> str:
        """The product of conditionals under connectivity ``number``, with the columns that each depends on."""
        return self.connectivities[number].describe(self.columns.names, direct=self.direct)

    def layout(self, connectivity: int | Connectivity = 0, *, rows: int = 1, packed: bool = False) -> Layout:
        """The layout of a pass under a connectivity, or the number of one.

        For more than 1000 ``rows``, or if ``packed``, it has a packed copy of the current weights: faster, but not
        differentiable (unless the network itself is :attr:`packed`).
        """
        layout = self._without_weights(connectivity, packed or (rows > 1000 and not self.stores(connectivity)))
        weights: dict[str, Tensor] = {name: getattr(self, name) for name in self.matrices}
        with torch.no_grad():
            if not isinstance(layout, SortedLayout):
                layout.weights = weights
            elif self.packed:
                layout.hold(weights, self.matrices)
            else:
                layout.weights = {name: layout.stairs(self.matrices[name]).pack(each) for name, each in weights.items()}
        return layout

    def _without_weights(self, connectivity: int | Connectivity, packed: bool = False) -> Layout:
        """A layout without weights."""
        family = self.connectivities
        key: object = None
        form: type[Layout] = SortedLayout if packed else Layout
        if isinstance(connectivity, int) and connectivity < 0:
            raise ValueError(f"the number of a connectivity should be at least 0, not {connectivity}.")
        if family.single:
            if isinstance(connectivity, Connectivity) and not connectivity.equals(family[0]):
                raise ValueError("'connectivity' is not the one that this network of a single mask is stored for.")
            key, form = ("packed", SortedLayout) if self.packed or packed else ("stored", SingleLayout)
        elif isinstance(connectivity, int) and family.masks is not None and not packed and sum(self.sizes) < 5000:
            # Small layouts of a finite list are cached: making one takes a tenth of a small network's update.
            key, form = connectivity % family.masks, MaskedLayout if self._small else Layout
        elif not packed and self.stores(connectivity):
            key, form = connectivity, StoredLayout
        layout = self._layouts.get(key)
        if layout is None or (layout.dtype, layout.device) != (self.c.dtype, self.c.device):
            connectivity = family[connectivity] if isinstance(connectivity, int) else connectivity
            with torch.inference_mode(False):  # a layout made in evaluation may be reused in training
                layout = form(self.columns, connectivity, self.workspace, self.c)
            if key is not None:
                self._layouts[key] = layout
        return layout

    def stores(self, connectivity: int | Connectivity) -> bool:
        """Whether the mask is stored: one of those for whole rows, or the only one, if the network is small."""
        if self.connectivities.single:
            return not self.packed
        whole_rows = self.connectivities.whole_rows
        return isinstance(connectivity, int) and connectivity < whole_rows and whole_rows * self._weights <= MOST_STORED

    def stored_masks(self, number: int) -> dict[str, Tensor]:
        """The masks of the matrices of a connectivity that is stored."""
        layout = self._without_weights(number)
        return {name: layout.mask(matrix) for name, matrix in self.matrices.items()}

    def forward(self, rows: Tensor, connectivity: int | Connectivity = 0, *, given: Tensor | None = None) -> Tensor:
        """The output units. Shapes: (rows, columns) to (rows, outputs).

        Arguments:
            rows: the values, NaN for a missing one.
            connectivity: a connectivity, or its number.
            given: flags of the given entries, (rows, columns).
        """
        values, missing = self.columns.check(rows, self.c)
        if given is not None and (given.dtype != torch.bool or given.shape != values.shape):
            raise ValueError(f"'given' should be flags, true or false, of the shape {tuple(values.shape)}.")
        layout = self.layout(connectivity)
        outputs = self.run(
            layout,
            layout.arrange(values),
            observed=None if missing is None else layout.arrange(~missing),
            given=None if given is None else layout.arrange(given),
            dropout=self.training,
        )
        return layout.restore(outputs, self.depth + 1)

    def run(
        self,
        layout: Layout,
        values: Tensor,
        *,
        observed: Tensor | None = None,
        given: Tensor | None = None,
        units: Tensor | None = None,
        dropout: bool = False,
        generator: torch.Generator | None = None,
        coupled: bool = True,
    ) -> Tensor:
        """One pass, on columns in the order of the layout. Shapes: (rows, columns) to (rows, outputs).

        Arguments:
            layout: a layout of this network.
            values: the coded values, any allowed one for a missing value.
            observed: flags of the entries that are not missing; ``None`` for all.
            given: flags of the given entries; ``None`` for none.
            units: the input units of the values, if they have been computed in advance.
            dropout: whether to drop units at random.
            generator: the random generator of dropout.
            coupled: whether the logits of exclusive groups are coupled (:mod:`made.columns.exclusive`).
        """
        x, seen = self.inputs(layout, values, observed, units)
        if dropout:
            x = drop_out(x, self.input_dropout, generator, rows=0)
        from_given = self.from_given(layout, x, seen, given)
        if given is not None:
            x, seen = x * ~layout.columns.per_unit(given), seen * ~given.t()
        x = h = x.t()
        for layer in range(1, self.depth + 1):
            offset = self.offset(layout, layer, seen, from_given)
            y = ACTIVATIONS[self.activation](layout.product((layer, layer - 1), layout.weights[f"W{layer}"], h, offset))
            if dropout:
                y = drop_out(y, self.dropout, generator, rows=1)
            h = h + y if self.joined(layer) else y
        last = self.depth + 1
        offset = self.offset(layout, last, seen, from_given)
        y = layout.product((last, self.depth), layout.weights["V"], h, offset)
        if self.direct:
            y = layout.product((last, 0), layout.weights["A"], x, y)
        if self.current_calibration is not None:
            y = self.rescaled(layout, y, self.count_seen(layout, seen, given))
        if not coupled or self.columns.coupling is None:
            return y.t()
        flags = (None if table is None else layout.restore(table) for table in (observed, given))
        y = self.columns.coupled(layout.restore(y.t(), last), layout.restore(values), *flags)
        return layout.sort(last, y.t()).t()

    @property
    def current_calibration(self) -> Tensor | None:
        """The calibration, if it adjusts anything and the network is not in training mode."""
        return None if self.training or self.calibration is None or not self.calibration.any() else self.calibration

    def rescaled(self, layout: Layout, y: Tensor, seen: Tensor) -> Tensor:
        """Output units of a pass, (outputs, rows), calibrated by how many columns are seen, (columns, rows or 1)."""
        assert self.calibration is not None
        of_columns = adjustments(layout.arrange(self.calibration).unsqueeze(2), seen, len(self.columns))
        units = self.c, self.columns.log_widths.to(self.c)
        c, log_widths = (layout.sort(self.depth + 1, each).unsqueeze(1) for each in units)
        scale, shift = (layout.columns.per_output(each) for each in of_columns)
        return calibrated(y, c, scale, shift, log_widths)

    def count_seen(self, layout: Layout, seen: Tensor, given: Tensor | None) -> Tensor:
        """How many columns each column sees in a pass: the given ones, and those observed before it."""
        before = layout.count_before(seen)
        return before if given is None else before + given.sum(dim=1)

    def joined(self, layer: int) -> bool:
        """Whether a residual connection joins this hidden layer to the one before."""
        return self.connectivities.residual and layer > 1 and self.sizes[layer] == self.sizes[layer - 1]

    def inputs(
        self, layout: Layout, values: Tensor, observed: Tensor | None, units: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The input units, (rows, inputs), and the indicator of observed columns, (columns, rows) or (columns, 1)."""
        x = layout.columns.encode(values) if units is None else units
        if observed is None:
            return x, values.new_ones(len(layout.columns), 1)
        return x * layout.columns.per_unit(observed), observed.t().to(values.dtype)

    def from_given(self, layout: Layout, x: Tensor, seen: Tensor, given: Tensor | None) -> dict[int, Tensor]:
        """The contribution of given columns to each layer that sees the input: dense products, whatever the degrees."""
        if given is None:
            return {}
        if not self.connectivities.any_order:
            raise ValueError("'given' needs a network of unlimited masks with resampled orderings.")
        x = layout.restore(x * layout.columns.per_unit(given), 0).t()
        parts = {1: self.get_parameter("W1" if self.depth else "V") @ x}
        if self.conditioning:
            parts[1] = parts[1] + self.get_parameter("U1") @ layout.restore(seen.t() * given).t()
        if self.direct:
            parts[self.depth + 1] = self.get_parameter("A") @ x
        return {layer: layout.sort(layer, part) for layer, part in parts.items()}

    def offset(self, layout: Layout, layer: int, seen: Tensor, from_given: Mapping[int, Tensor]) -> Tensor:
        """All terms of a layer but its products with units: bias, conditioning, and the given columns."""
        offset = layout.sort(layer, getattr(self, "c" if layer > self.depth else f"b{layer}")).unsqueeze(1)
        if self.conditioning:
            ones = seen if layer == 1 else offset.new_ones(self.sizes[layer - 1], 1)
            offset = layout.product(self.matrices[f"U{layer}"], layout.weights[f"U{layer}"], ones, offset)
        return offset + from_given[layer] if layer in from_given else offset

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_layouts": {}}  # a copy has its own weights

    def _pack(self, name: str, dense: Tensor) -> Tensor:
        """A matrix as it is stored."""
        if not self.connectivities.single:
            return dense
        layout, matrix = self._without_weights(0), self.matrices[name]
        return layout.stairs(matrix).pack(dense) if isinstance(layout, SortedLayout) else dense * layout.mask(matrix)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        layout = self._without_weights(0)
        if isinstance(layout, SortedLayout):
            for name, matrix in self.matrices.items():
                destination[prefix + name] = layout.stairs(matrix).unpack(self.get_parameter(name).detach())

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        state_dict = dict(state_dict)
        for name in self.matrices:
            dense = state_dict.get(prefix + name)
            if isinstance(dense, Tensor) and dense.shape == self.shapes[name]:
                state_dict[prefix + name] = self._pack(name, dense.to(self.c.device))
        super()._load_from_state_dict(state_dict, prefix, *args)
