"""The peers: a textbook masked network, and zuko's, with the same connectivities as ours."""

from __future__ import annotations

from itertools import pairwise

import torch
import zuko.nn
from torch import Tensor, nn
from torch.nn import functional as F

from made import Connectivity


class MaskedLinear(nn.Linear):
    """The textbook's layer: W times a stored mask, in each pass."""

    mask: Tensor

    def __init__(self, before: int, after: int) -> None:
        super().__init__(before, after)
        self.register_buffer("mask", torch.ones(after, before))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.mask * self.weight, self.bias)


def textbook(columns: int, hidden_sizes: tuple[int, ...]) -> nn.Sequential:
    """A masked autoencoder of such layers."""
    sizes = (columns, *hidden_sizes, columns)
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [MaskedLinear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def zuko_mlp(columns: int, hidden_sizes: tuple[int, ...]) -> nn.Sequential:
    """zuko's masked network, its masks from the adjacency of the natural ordering."""
    adjacency = torch.ones(columns, columns, dtype=torch.bool).tril(-1)
    return zuko.nn.MaskedMLP(adjacency, hidden_features=list(hidden_sizes), activation=nn.ReLU)


def set_masks(peer: nn.Sequential, connectivity: Connectivity) -> None:
    """Rebuild the stored masks."""
    layers = [layer for layer in peer if hasattr(layer, "mask")]
    degrees = [torch.from_numpy(each) for each in connectivity.degrees]
    for layer, (before, after) in zip(layers, pairwise(degrees), strict=True):
        layer.mask.copy_(after[:, None] >= before[None, :])


def log_prob(peer: nn.Sequential, rows: Tensor) -> Tensor:
    """log p of each row."""
    return -F.binary_cross_entropy_with_logits(peer(rows), rows, reduction="none").sum(dim=1)
