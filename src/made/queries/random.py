"""Uniform random numbers, a generator for each block of rows, and the dtype in which probabilities are summed."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

STEP = 0x9E3779B1  # odd, so that the seeds of 2**32 blocks differ


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


def of_block(generator: torch.Generator, number: int, file: int = 0) -> torch.Generator:
    """The random generator of a block of rows: a function of its position and of a base generator, which is unchanged.

    It does not depend on other blocks or on the process. The first block continues the base generator.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> torch.rand(1, generator=of_block(generator, 0)) == torch.rand(1, generator=generator)
        tensor([True])
    """
    state = generator.get_state()
    own = torch.Generator(generator.device)
    if not number and not file:
        own.set_state(state)
        return own
    digest = hashlib.sha256(state.numpy().tobytes() + file.to_bytes(8, "little")).digest()
    return own.manual_seed((int.from_bytes(digest[:4], "little") + number * STEP) % 2**32)
