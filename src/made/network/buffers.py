"""Memory for large results and gradients that is used again."""

from __future__ import annotations

import math
import sys
import threading

import numpy as np
import torch
from torch import Tensor

__all__ = ["Buffers"]

_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


class _Piece:
    """One piece of memory, aligned to 64 bytes, and whether any tensor uses it."""

    def __init__(self, size: int, like: Tensor) -> None:
        self._owner = np.empty(size * like.element_size() + 64, dtype=np.uint8)
        start = -self._owner.ctypes.data % 64
        self.values = self._owner[start : start + size * like.element_size()].view(_NUMPY[like.dtype])
        self._references = self._count()  # by this object and by the view: whoever else holds it is a tensor

    def _count(self) -> int:
        return sys.getrefcount(self._owner)

    def unused(self) -> bool:
        return self._count() == self._references


class Buffers:
    """Large memory that is used again once nobody holds it.

    The operating system hands out large memory page by page, each cleared first, which takes longer than filling it:
    a gradient of 256 MB costs 0.1 s to allocate, in every step. So what was used is kept, and handed out again when
    all tensors that used it are gone. The reference count tells that, so nothing is ever shared.
    """

    def __init__(self, keep: int = 4, sizes: int = 16) -> None:
        self._keep, self._sizes = keep, sizes
        self._kept: dict[tuple[int, torch.dtype], list[_Piece]] = {}
        self._lock = threading.Lock()

    def empty(self, *shape: int, like: Tensor) -> Tensor:
        """Uninitialised memory of this shape, with the type and the device of ``like``."""
        size = math.prod(shape)
        if size < 2**14 or like.device.type != "cpu" or like.dtype not in _NUMPY:
            return like.new_empty(shape)
        with self._lock:  # nobody else may find the same piece unused
            key = (size, like.dtype)
            kept = self._kept[key] = self._kept.pop(key, [])  # the last used is the last in the dictionary
            if len(self._kept) > self._sizes:
                del self._kept[next(iter(self._kept))]
            piece = next((piece for piece in kept if piece.unused()), None)
            if piece is None:
                piece = _Piece(size, like)
                kept.append(piece)
                del kept[: -self._keep]
            return torch.from_numpy(piece.values.reshape(shape))

    def __reduce__(self) -> tuple[type[Buffers], tuple[int, int]]:
        return Buffers, (self._keep, self._sizes)  # a copy starts with nothing
