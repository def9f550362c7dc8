"""Uniform random numbers, and the dtype in which probabilities are summed."""

from __future__ import annotations

import torch
from torch import Tensor


def double(like: Tensor) -> torch.dtype:
    """Double precision, or the dtype of ``like`` on a device that has none."""
    return like.dtype if like.device.type == "mps" else torch.float64


def uniform(*shape: int, like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Uniform random numbers in double precision, above 0, which would draw values of almost no probability.

    Example:
        >>> uniform(2, 3, like=torch.empty(0), generator=torch.Generator().manual_seed(0)).dtype
        torch.float64
    """
    dtype = double(like)
    numbers = torch.rand(shape, generator=generator, dtype=dtype, device=like.device)
    return numbers.clamp_(min=torch.finfo(dtype).eps / 4)
