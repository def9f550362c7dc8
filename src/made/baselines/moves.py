"""Images that are moved by a pixel, for a network that is told so: more to learn from, and the same to answer.

A network that only saw moved images as well would take them for likely. One that is told how each was moved can use
what they have in common with the others, and is asked about images that were not moved: its likelihood is as exact as
before (distribution augmentation; Jun et al., ICML 2020).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

__all__ = ["DIRECTIONS", "Moves"]

DIRECTIONS = 8


class Moves:
    """Some of the rows moved by a pixel, across or along a diagonal; what comes in from outside is zero.

    Arguments:
        image: the height and the width.
        ordering: of the pixels in a row.
        share: of rows that are moved.

    Example:
        >>> moves = Moves((1, 3), np.arange(3), share=0.0)
        >>> rows, directions = moves(torch.tensor([[1.0, 0.0, 1.0]]), torch.Generator())
        >>> rows, directions  # 0 is where it was
        (tensor([[1., 0., 1.]]), tensor([0]))
        >>> moves.move(torch.tensor([[1.0, 0.0, 1.0]]), torch.tensor([4]))
        tensor([[0., 1., 0.]])
    """

    def __init__(self, image: tuple[int, int], ordering: NDArray[np.intp], share: float) -> None:
        (height, width), pixels = image, len(ordering)
        if height * width != pixels:
            raise ValueError(f"'image' should have {pixels} pixels, as a row has, not {height} x {width}.")
        if not 0 <= share < 1:
            raise ValueError(f"'moved' should be at least 0 and below 1, not {share}.")
        places = np.pad(np.argsort(ordering).reshape(image), 1, constant_values=pixels)
        corners = sorted(((y, x) for y in range(3) for x in range(3)), key=lambda corner: corner != (1, 1))
        moved = [places[y : y + height, x : x + width].ravel()[ordering] for y, x in corners]
        self.sources, self.share = torch.from_numpy(np.stack(moved)), share

    def __call__(self, x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Rows, and how each was moved, from 0, not at all, to 8. Shapes: (rows, D) to (rows, D) and (rows)."""
        directions = torch.randint(1, DIRECTIONS + 1, (len(x),), generator=generator)
        directions *= torch.rand(len(x), generator=generator) < self.share
        return self.move(x, directions), directions

    def move(self, x: Tensor, directions: Tensor) -> Tensor:
        """Rows, each moved as it is told. Shapes: (rows, D) and (rows) to (rows, D)."""
        return F.pad(x, (0, 1)).gather(1, self.sources.to(x.device)[directions])
