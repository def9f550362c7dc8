"""Shifts of images, against rolled pictures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from made.baselines.tied import DIRECTIONS, ImageShifts, TiedMADE


def test_moves_are_those_of_images() -> None:
    """In any ordering of the pixels: as a picture that is rolled, with zeros where it comes in again."""
    generator = torch.Generator().manual_seed(0)
    order, images = np.random.default_rng(0).permutation(12), torch.randint(2, (20, 3, 4), generator=generator).float()
    shifts, seen = ImageShifts((3, 4), order, share=0.6), set()
    for number in range(1, DIRECTIONS + 1):
        rows = shifts.shift(images.reshape(20, 12)[:, order], torch.full((20,), number))
        moved = rows[:, np.argsort(order)].reshape(20, 3, 4)
        for down, right in itertools.product((-1, 0, 1), repeat=2):
            expected = torch.roll(images, (down, right), dims=(1, 2))
            if down:
                expected[:, 0 if down > 0 else -1] = 0
            if right:
                expected[:, :, 0 if right > 0 else -1] = 0
            if torch.equal(moved, expected):
                seen.add((down, right))
    assert len(seen) == DIRECTIONS
    assert (0, 0) not in seen
    x = images.reshape(20, 12)[:, order].repeat(500, 1)
    rows, directions = shifts(x, generator)
    assert torch.equal(rows[directions == 0], x[directions == 0])
    share = directions.bincount().double() / len(directions)
    assert torch.allclose(share, torch.tensor([0.4] + [0.6 / 8] * 8, dtype=torch.float64), atol=0.02)
    with pytest.raises(ValueError, match="'image' should have 12 pixels"):
        ImageShifts((3, 3), order, share=0.5)
    with pytest.raises(ValueError, match="'moved' should be at least 0 and below 1"):
        ImageShifts((3, 4), order, share=1.0)
    with pytest.raises(ValueError, match="'image' should be the height and width"):
        TiedMADE(moved=0.5)
