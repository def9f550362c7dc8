"""The number of threads that a computation takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["SMALL", "single_thread"]

SMALL = 10**8  # multiply-adds of a pass, up to which a second thread costs more than it saves


@contextmanager
def single_thread(condition: bool = True) -> Iterator[None]:
    """Use one thread if the condition holds: for small work, synchronising threads takes longer than computing."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if condition else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
