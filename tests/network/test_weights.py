"""Names and shapes of weights are those that a network has."""

from __future__ import annotations

import pytest

from made import Binary, Categorical, Columns, Connectivities, Network
from made.network.weights import weight_shapes


@pytest.mark.parametrize("sizes", [(), (5,), (5, 7)])
@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("conditioning", [False, True])
@pytest.mark.parametrize("masks", [1, None])
def test_they_are_those_of_the_state_of_a_network(sizes, direct, conditioning, masks) -> None:
    columns = Columns([Binary(), Categorical(3), Categorical(4)])
    network = Network(columns, Connectivities(3, sizes, masks=masks), direct=direct, conditioning=conditioning)
    shapes = {name: tuple(weight.shape) for name, weight in network.state_dict().items()}
    assert weight_shapes(columns, sizes, direct=direct, conditioning=conditioning) == shapes
