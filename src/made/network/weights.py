r"""The names and shapes of the parameters: :math:`W^l, b^l, V, c`, direct connections A, conditioning weights U.

Layers are numbered: 0 is the input units, 1 to L the hidden ones, L + 1 the output units, and -1 the columns
themselves, one indicator each.
"""

from __future__ import annotations

from collections.abc import Sequence

from made.columns.group import Columns
from made.network.calibration import NUMBERS


def matrix_layers(depth: int, *, direct: bool = False, conditioning: bool = False) -> dict[str, tuple[int, int]]:
    """Each matrix of a network of ``depth`` hidden layers: its output layer and its input layer.

    Without hidden layers, V already is the direct connection of inputs and outputs, and there is no A.

    Example:
        >>> matrix_layers(2, direct=True)
        {'W1': (1, 0), 'W2': (2, 1), 'V': (3, 2), 'A': (3, 0)}
    """
    last = depth + 1
    matrices = {f"W{layer}": (layer, layer - 1) for layer in range(1, last)} | {"V": (last, depth)}
    if direct and depth:
        matrices["A"] = (last, 0)
    if conditioning:
        matrices |= {f"U{layer}": (layer, layer - 1 if layer > 1 else -1) for layer in range(1, last + 1)}
    return matrices


def weight_shapes(
    columns: Columns,
    hidden_sizes: Sequence[int],
    *,
    direct: bool = False,
    conditioning: bool = False,
    calibrate: bool = False,
) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter, and of the calibration, known without creating any.

    Example:
        >>> weight_shapes(Columns.binary(3), [8])
        {'b1': (8,), 'c': (3,), 'W1': (8, 3), 'V': (3, 8)}
    """
    depth = len(hidden_sizes)
    sizes = {-1: len(columns), **dict(enumerate((columns.inputs, *hidden_sizes, columns.outputs)))}
    shapes: dict[str, tuple[int, ...]] = {f"b{layer}": (sizes[layer],) for layer in range(1, depth + 1)}
    shapes["c"] = (sizes[depth + 1],)
    for name, (after, before) in matrix_layers(depth, direct=direct, conditioning=conditioning).items():
        shapes[name] = (sizes[after], sizes[before])
    return shapes | ({"calibration": (NUMBERS, len(columns))} if calibrate else {})
