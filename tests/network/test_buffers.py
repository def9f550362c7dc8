"""Buffers are reused only when no tensor holds them."""

from __future__ import annotations

import copy
import gc

import torch

from made.network.buffers import Buffers


def test_memory_is_reused_only_when_no_tensor_holds_it() -> None:
    buffers, like = Buffers(), torch.empty(0)
    first = buffers.empty(1000, 1000, like=like)
    first.fill_(1)
    second = buffers.empty(1000, 1000, like=like)
    assert second.data_ptr() != first.data_ptr()
    address, view = first.data_ptr(), first.view(-1)[5:]
    del first
    assert buffers.empty(1000, 1000, like=like).data_ptr() != address  # a view still holds it
    assert view.eq(1).all()
    del view
    gc.collect()
    assert buffers.empty(1000, 1000, like=like).data_ptr() == address
    assert buffers.empty(1000, 1000, like=like).data_ptr() % 64 == 0


def test_memory_is_bounded_and_not_copied() -> None:
    buffers = Buffers(keep=2)
    held = [buffers.empty(2**15, like=torch.empty(0)) for _ in range(10)]
    kept = sum(len(each) for each in buffers._kept.values())
    assert kept == 2
    assert len({each.data_ptr() for each in held}) == 10
    assert not copy.deepcopy(buffers)._kept
    for rows in range(100, 200):
        buffers.empty(rows, 1000, like=torch.empty(0))
    assert len(buffers._kept) <= 16
