"""Distribution augmentation (Jun et al., ICML 2020): training on images shifted by one pixel, as a condition.

A network that merely saw shifted images would assign them probability. One that is told the shift of each image shares
statistical strength with them, and is queried about images that are not shifted: its likelihood stays exact.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

__all__ = ["DIRECTIONS", "ImageShifts"]

DIRECTIONS = 8


class ImageShifts:
    """Random shifts of images by one pixel, horizontal, vertical or diagonal, padded with zeros.

    Arguments:
        image: height and width.
        ordering: the pixel of each column of a row.
        share: the share of rows that are shifted.

    Example:
        >>> shifts = ImageShifts((1, 3), np.arange(3), share=0.0)
        >>> shifts(torch.tensor([[1.0, 0.0, 1.0]]), torch.Generator())  # direction 0: not shifted
        (tensor([[1., 0., 1.]]), tensor([0]))
        >>> shifts.shift(torch.tensor([[1.0, 0.0, 1.0]]), torch.tensor([4]))
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
        shifted = [places[y : y + height, x : x + width].ravel()[ordering] for y, x in corners]
        self.sources, self.share = torch.from_numpy(np.stack(shifted)), share

    def __call__(self, x: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Shifted rows and the direction of each, 0 (not shifted) to 8. Shapes: (rows, D) to (rows, D) and (rows)."""
        directions = torch.randint(1, DIRECTIONS + 1, (len(x),), generator=generator)
        directions *= torch.rand(len(x), generator=generator) < self.share
        return self.shift(x, directions), directions

    def shift(self, x: Tensor, directions: Tensor) -> Tensor:
        """Rows shifted in the given directions. Shapes: (rows, D) and (rows) to (rows, D)."""
        return F.pad(x, (0, 1)).gather(1, self.sources.to(x.device)[directions])
