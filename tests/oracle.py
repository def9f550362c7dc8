"""What the tests share: small random networks, all their worlds, and a slow, dense oracle that stores every mask."""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from unittest.mock import patch

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from made import Binary, Categorical, Columns, Connectivities, Connectivity, Network
from made.network.masked import ACTIVATIONS


def worlds(columns: Columns) -> Tensor:
    """Every state of the columns, in float64."""
    values = [range(2 if isinstance(kind, Binary) else kind.k) for kind in columns]
    return torch.tensor(list(itertools.product(*values)), dtype=torch.float64)


def structured(count: int = 400, columns: int = 5, seed: int = 0) -> np.ndarray:
    """Binary rows whose last two columns copy the first two, with some noise."""
    random = np.random.default_rng(seed)
    rows = (random.random((count, columns)) < 0.3).astype(np.uint8)
    rows[:, -2:] = rows[:, :2] ^ (random.random((count, 2)) < 0.1)
    return rows


def chi_square(drawn: np.ndarray, probabilities: np.ndarray) -> float:
    """By how many standard deviations the frequencies of all binary states, by a chi-square test, are off."""
    codes = drawn.astype(np.int64) @ (1 << np.arange(drawn.shape[1])[::-1])
    observed, expected = np.bincount(codes, minlength=len(probabilities)), len(drawn) * probabilities
    likely = expected > 5
    freedom = int(likely.sum())
    return float((((observed - expected) ** 2 / expected)[likely].sum() - freedom) / np.sqrt(2 * freedom))


def randomize(network: Network, seed: int = 0, scale: float = 1.0) -> Network:
    """The network in float64, with every parameter drawn at random, conditioning weights and biases too."""
    generator = torch.Generator().manual_seed(seed)
    network = network.double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(0, scale, generator=generator)
        if network.calibration is not None:
            network.eval().calibration.normal_(0, 1, generator=generator)
    return network


def blind(family: Connectivities) -> Connectivity:
    """No column sees another, but all see the given ones: every column is at position 1."""
    zeros = tuple(np.zeros(size, dtype=np.int64) for size in family.hidden_sizes)
    return Connectivity(np.ones(family.columns, dtype=np.int64), zeros)


def packing(large: bool = True) -> AbstractContextManager[object]:
    """Networks that are made in this context are treated as large ones: those of a single connectivity are packed."""
    return patch("made.network.masked.DENSE", 0 if large else 2**19)


@st.composite
def networks(draw: st.DrawFn, masks: object = None, kinds: int = 5) -> Network:
    """Any architecture: depth 0 to 3, U and A on and off, residual, any ordering, binary and categorical mixed."""
    binary = st.one_of(st.builds(Binary, st.booleans()), st.builds(Binary, share=st.floats(0.001, 0.999)))
    columns = Columns(
        draw(st.lists(st.one_of(binary, st.builds(Categorical, st.integers(1, 4))), min_size=1, max_size=kinds))
    )
    size = st.integers(1, 9)
    sizes = draw(st.one_of(st.lists(size, max_size=3), st.builds(lambda k, n: [k] * n, size, st.integers(2, 3))))
    family = Connectivities(
        len(columns),
        tuple(sizes),
        masks=draw(st.sampled_from([1, 2, 3, None])) if masks is None else (None if masks == "unlimited" else masks),
        ordering=draw(st.sampled_from(["natural", "random"])),
        resample="both" if masks == "unlimited" else draw(st.sampled_from(["both", "ordering", "degrees", "neither"])),
        residual=draw(st.booleans()),
        seed=draw(st.integers(0, 2**40)),
    )
    with packing(draw(st.booleans())):
        network = Network(
            columns,
            family,
            activation=draw(st.sampled_from([name for name in ACTIVATIONS if name != "identity"])),
            direct=draw(st.booleans()),
            conditioning=draw(st.booleans()),
            calibrate=family.any_order and draw(st.booleans()),
        )
    return randomize(network, draw(st.integers(0, 1000)))


@dataclass
class Dense:
    """The paper's equations with a stored mask for each matrix; the same columns are given, or missing, in all rows.

    The ordering is (given, asked, missing): a unit of the first layer sees the given columns, the asked ones up to
    its degree, and no missing one.
    """

    network: Network
    connectivity: Connectivity
    given: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    missing: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    masked: bool = True
    weights: dict[str, Tensor] = field(default_factory=dict)

    def outputs(self, rows: Tensor) -> Tensor:
        """Output units, (rows, outputs), every matrix multiplied by its mask."""
        network, columns = self.network, self.network.columns
        count = len(columns)
        given = self.given if len(self.given) else np.zeros(count, dtype=bool)
        missing = self.missing if len(self.missing) else np.zeros(count, dtype=bool)
        state = network.state_dict() | self.weights
        inputs, *hidden, outputs = self.connectivity.degrees
        # The effective degree of a column as an input: 0 if all may see it, beyond everything if none may.
        effective = np.where(given, 0, np.where(missing, 10**6, inputs))
        layers = [effective[columns.input_columns], *hidden, outputs[columns.output_columns]]

        def matrix(name: str, after: np.ndarray, before: np.ndarray) -> Tensor:
            mask = torch.from_numpy(after[:, None] >= before[None, :])
            return state[name] * mask if self.masked else state[name]

        x = columns.encode(rows).T
        h, last = x, network.depth + 1
        for layer in range(1, last + 1):
            after, before = layers[layer], layers[layer - 1]
            y = state["c" if layer == last else f"b{layer}"][:, None]
            y = y + matrix("V" if layer == last else f"W{layer}", after, before) @ h
            if network.conditioning:
                before = effective if layer == 1 else before
                y = y + matrix(f"U{layer}", after, before).sum(1, keepdim=True)
            if layer == last:
                y = y + matrix("A", after, layers[0]) @ x if network.direct else y
                return self._calibrated(y.T, effective, outputs)
            y = ACTIVATIONS[network.activation](y.clone())
            joined = network.connectivities.residual and layer > 1 and len(layers[layer]) == len(layers[layer - 1])
            h = h + y if joined else y
        raise AssertionError

    def _calibrated(self, units: Tensor, effective: np.ndarray, outputs: np.ndarray) -> Tensor:
        network, others = self.network, len(outputs) - 1
        if network.calibration is None or network.training or not others:
            return units
        first = np.searchsorted(network.columns.output_columns, np.arange(others + 1))
        for unit, column in enumerate(network.columns.output_columns):
            seen = sum(effective[other] <= outputs[column] for other in range(others + 1) if other != column)
            alpha, beta, gamma, delta = network.calibration[:, column].tolist()
            scale = np.exp(np.clip(seen / others * (alpha + beta / 2 ** (others - seen)), -4, 4))
            shift = np.clip(seen / others * (gamma + delta / 2 ** (others - seen)), -4, 4)
            shift *= unit - first[column] in network.columns[column].log_widths
            bias = network.c[unit]
            units = units.index_copy(1, torch.tensor([unit]), bias + scale * (units[:, [unit]] - bias) + shift)
        return units

    def log_factors(self, rows: Tensor) -> Tensor:
        return self.network.columns.log_prob(self.outputs(rows), rows)


def integral(density, cuts) -> float:
    """The integral of a vectorized density over all cuts, by 40 Gauss-Legendre nodes between each two."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    low, high = np.asarray(cuts)[:-1, None], np.asarray(cuts)[1:, None]
    points = torch.from_numpy((low + high) / 2 + (high - low) / 2 * nodes)
    return float((density(points.flatten()).reshape(points.shape).numpy() * weights * (high - low) / 2).sum())
