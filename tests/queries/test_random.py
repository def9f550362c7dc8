"""Random numbers of blocks of rows."""

from __future__ import annotations

import torch

from made.queries.random import of_block


def test_blocks_have_numbers_of_their_own_whoever_draws_them_first() -> None:
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()
    places = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]
    drawn = {place: torch.rand(100, generator=of_block(generator, *place)) for place in places}
    again = {place: torch.rand(100, generator=of_block(generator, *place)) for place in reversed(places)}
    assert all(torch.equal(drawn[place], again[place]) for place in places)
    assert len({float(numbers[0]) for numbers in drawn.values()}) == len(places)
    assert torch.equal(generator.get_state(), before)
    assert torch.equal(drawn[0, 0], torch.rand(100, generator=generator))
    assert not torch.equal(torch.rand(100, generator=of_block(generator, 1)), drawn[1, 0])  # its state is another now


def test_no_two_blocks_of_a_file_share_a_seed() -> None:
    generator = torch.Generator().manual_seed(0)
    assert len({of_block(generator, number).initial_seed() for number in range(1, 2000)}) == 1999
