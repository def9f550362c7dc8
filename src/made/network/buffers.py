"""Reusable memory for large results and gradients."""

from __future__ import annotations

import math
import sys
import threading

import numpy as np
import torch
from torch import Tensor

_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


class _Piece:
    """A block of memory, aligned to 64 bytes, that knows whether a tensor uses it."""

    def __init__(self, size: int, like: Tensor) -> None:
        self._owner = np.empty(size * like.element_size() + 64, dtype=np.uint8)
        start = -self._owner.ctypes.data % 64
        self.values = self._owner[start : start + size * like.element_size()].view(_NUMPY[like.dtype])
        self._references = self._count()  # by this object and the view; any other is a tensor's

    def _count(self) -> int:
        return sys.getrefcount(self._owner)

    def unused(self) -> bool:
        return self._count() == self._references


class Buffers:
    """A pool of large buffers, each reused once no tensor holds it any more.

    The operating system provides large memory page by page, each cleared first, which takes longer than filling it: a
    gradient of 256 MB costs 0.1 s to allocate, in every update. A buffer is handed out again when its reference count
    shows that all tensors using it are gone, so that nothing is ever shared.

    Arguments:
        keep: the number of buffers kept of each size.
        sizes: the number of sizes kept, the most recent ones.
    """

    def __init__(self, keep: int = 4, sizes: int = 16) -> None:
        self._keep, self._sizes = keep, sizes
        self._kept: dict[tuple[int, torch.dtype], list[_Piece]] = {}
        self._lock = threading.Lock()

    def empty(self, *shape: int, like: Tensor) -> Tensor:
        """An uninitialized tensor of this shape, with the dtype and device of ``like``."""
        return self._of_shape(shape, shape, like)

    def units(self, units: int, rows: int, like: Tensor) -> Tensor:
        """The same of the shape (units, rows), in memory row after row: products of such matrices are faster."""
        return self._of_shape((units, rows), (rows, units), like)

    def _of_shape(self, shape: tuple[int, ...], in_memory: tuple[int, ...], like: Tensor) -> Tensor:
        size = math.prod(shape)
        if size < 2**14 or like.device.type != "cpu" or like.dtype not in _NUMPY:
            return like.new_empty(shape) if shape is in_memory else like.new_empty_strided(shape, (1, shape[0]))
        with self._lock:  # another thread must not find the same piece unused
            key = (size, like.dtype)
            kept = self._kept[key] = self._kept.pop(key, [])  # the most recently used size is last
            if len(self._kept) > self._sizes:
                del self._kept[next(iter(self._kept))]
            piece = next((piece for piece in kept if piece.unused()), None)
            if piece is None:
                piece = _Piece(size, like)
                kept.append(piece)
                del kept[: -self._keep]
            array = piece.values.reshape(in_memory)
            return torch.from_numpy(array if shape is in_memory else array.T)

    def __reduce__(self) -> tuple[type[Buffers], tuple[int, int]]:
        return Buffers, (self._keep, self._sizes)  # a copy starts empty
