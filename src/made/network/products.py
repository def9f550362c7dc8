"""Products of matrices without gradients, by the faster of the two libraries that torch has for them."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

# Rows and columns of the right matrix, and how many numbers it has, from which oneDNN is used: the choice, and so the
# bits of a result, does not depend on how the rows of the left matrix are divided. Where they are not, they count, too.
LEAST_SIDE, LEAST = 64, 2**13
STRIP = 2**19  # numbers of a result that is written to given memory; as many as fit into the cache of a core


@cache
def by_onednn() -> bool:
    """Whether oneDNN is faster than MKL, which multiplies in torch but does not use AVX-512 on processors of AMD."""
    cpuinfo = Path("/proc/cpuinfo")
    processor = platform.processor()
    if cpuinfo.exists():
        with cpuinfo.open() as file:
            processor = file.read(1000)  # of the first core
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512" and torch.backends.mkldnn.is_available()
    return wide and "AuthenticAMD" in processor and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def mm(a: Tensor, b: Tensor, out: Tensor | None = None, *, whole: bool = False, by_rows: bool = False) -> Tensor:
    """The product of two matrices, written to ``out`` if it is given.

    Arguments:
        whole: whether a is never divided.
        by_rows: whether a new result has to be in memory row after row.
    """
    if not _by_onednn(a, b, whole):
        return torch.mm(a, b, out=out)
    if out is None:
        return _product(a, b, by_rows or b.numel() >= a.numel())
    a, b, result = (a, b, out) if _has_rows(out) else (b.t(), a.t(), out.t())
    height = max(1, STRIP // b.shape[1]) if out.numel() > STRIP else a.shape[0]
    for some, part in zip(a.split(height), result.split(height), strict=True):
        part.copy_(_product(some, b, True))
    return out


def addmm(add: Tensor, a: Tensor, b: Tensor, out: Tensor | None = None, *, whole: bool = False) -> Tensor:
    """The product of two matrices, added to ``add``, and written to ``out`` if it is given."""
    if not _by_onednn(a, b, whole):
        return torch.addmm(add, a, b, out=out)
    by_rows = b.numel() >= a.numel() if out is None else _has_rows(out)
    if out is None and by_rows and add.shape == (1, b.shape[1]):
        return _product(a, b, True, add[0].contiguous())  # oneDNN takes a bias as if it were contiguous
    return torch.add(add, _product(a, b, by_rows), out=out)


def add_product_(to: Tensor, a: Tensor, b: Tensor, *, whole: bool = False) -> None:
    """Add the product of two matrices in place."""
    _ = to.add_(_product(a, b, _has_rows(to))) if _by_onednn(a, b, whole) else to.addmm_(a, b)


def _by_onednn(a: Tensor, b: Tensor, whole: bool) -> bool:
    (inner, columns), rows = b.shape, a.shape[0]
    if inner < LEAST_SIDE or columns < LEAST_SIDE or (whole and rows < LEAST_SIDE) or inner * columns < LEAST:
        return False
    if not by_onednn():
        return False
    recorded = torch.is_grad_enabled() and (a.requires_grad or b.requires_grad)
    return not recorded and a.dtype == b.dtype == torch.float32 and a.device.type == "cpu"


def _has_rows(matrix: Tensor) -> bool:
    """Whether a matrix is in memory row after row."""
    return matrix.stride(1) == 1


def _product(a: Tensor, b: Tensor, by_rows: bool, bias: Tensor | None = None) -> Tensor:
    """The product of two matrices, in memory row after row or column after column; ``bias`` is added to each row."""
    x, weight = (a, b.t()) if by_rows else (b.t(), a)
    if not (weight.is_contiguous() or weight.t().is_contiguous()):
        weight = weight.contiguous()  # of another layout, oneDNN takes a thousand times as long
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")  # noqa: SLF001
    return result if by_rows else result.t()
