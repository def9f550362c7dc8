"""`made paper figure network`: Figure 1."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from made.cli.errors import command, usage
from made.cli.options import flag, option
from made.cli.paper.shared import PICTURE, RESULTS, SEED, picture_path, typed, writable
from made.cli.parsing import whole_numbers
from made.cli.printing import mode, note, print_json, say

if TYPE_CHECKING:
    from made.network.connectivity import Connectivity

LARGEST_LAYER = 1000  # units of a layer that is drawn
LIMITS = {"min": 1, "max": LARGEST_LAYER}


@command
def network(
    ordering: Annotated[str | None, option("Position of each column, from 1.", "3,1,2")] = None,
    hidden: Annotated[str | None, option("Degrees of the hidden units, layer by layer.", "2,1,2,2;1,2,2,1")] = None,
    columns: Annotated[
        int | None,
        option("Number of columns of a random connectivity, instead of --ordering and --hidden.", "none", **LIMITS),
    ] = None,
    hidden_sizes: Annotated[str | None, option("Hidden layers of the random connectivity.", "8,8")] = None,
    mask: Annotated[int | None, option("Number of the random connectivity; --seed is its seed.", "0", min=0)] = None,
    direct: Annotated[bool, flag("--direct", "Draw direct connections.")] = False,
    names: Annotated[str | None, option("Names of the columns, such as a,b,c.", "x1,x2,...")] = None,
    out: PICTURE = None,
    results: RESULTS = Path("results"),
    seed: SEED = 0,
) -> None:
    """Figure 1: an autoencoder, the masks of a connectivity, and the resulting MADE.

    Default: the paper's example. Give another ordering and degrees, or draw a random connectivity.
    """
    from made.network.connectivity import Connectivities
    from made.paper import figure_network
    from made.paper.results_file import ResultsFile

    if columns is None:
        for name, value in (("--hidden-sizes", hidden_sizes), ("--mask", mask)):
            if value is not None:
                raise usage(f"'{name}' is for a random connectivity: give its number of columns, too (--columns).")
        drawn = _connectivity(ordering, hidden)
    else:
        for name, text in (("--ordering", ordering), ("--hidden", hidden)):
            if text is not None:
                raise usage(f"'{name}' and '--columns' exclude each other: with --columns, the connectivity is random.")
        sizes = whole_numbers("--hidden-sizes", "8,8" if hidden_sizes is None else hidden_sizes, least=1, empty=True)
        if max(sizes, default=0) > LARGEST_LAYER:
            raise usage(f"'--hidden-sizes' should be at most {LARGEST_LAYER} units each, not {hidden_sizes}.")
        drawn = Connectivities(columns, tuple(sizes), masks=None, ordering="random", seed=seed)[mask or 0]
    called = None if names is None else [name.strip() for name in names.split(",")]
    writable(results, "--results")
    picture, start = picture_path(out, results, "network"), time.perf_counter()
    try:
        figure_network.plot(drawn, picture, names=called, direct=direct)
    except ValueError as error:
        raise usage(str(error).replace("'names'", "'--names'")) from None
    config = {"ordering": drawn.ordering.tolist(), "hidden": [degrees.tolist() for degrees in drawn.hidden]}
    facts = {
        "row": "figure network",
        "masks": 1,
        "config": config | {"direct": direct, "names": called},
        "seed": None if columns is None else seed,
        "seconds": round(time.perf_counter() - start, 3),
        "command": typed(),
        "picture": str(picture),
    }
    result = ResultsFile(results / "network.json").put(facts)
    if mode.json:
        print_json([result])
        return
    say(drawn.describe(called, direct=direct))
    note(f"The picture is {picture}.")


def _connectivity(ordering: str | None, hidden: str | None) -> Connectivity:
    """The paper's example, with another ordering or other degrees."""
    import numpy as np

    from made.network.connectivity import Connectivity
    from made.paper.figure_network import EXAMPLE

    positions, degrees = EXAMPLE.ordering, list(EXAMPLE.hidden)
    if ordering is not None:
        positions = np.array(whole_numbers("--ordering", ordering, least=1))
        if sorted(positions.tolist()) != list(range(1, len(positions) + 1)):
            raise usage(f"'--ordering' should have each position from 1 to {len(positions)} once, not be {ordering!r}.")
    if hidden is not None:
        layers = hidden.split(";") if hidden.strip() else []
        degrees = [np.array(whole_numbers("--hidden", layer, least=0)) for layer in layers]
    if degrees and max(int(layer.max()) for layer in degrees) >= len(positions):
        allowed = f"degrees from 0 to {len(positions) - 1}, below the number of columns"
        raise usage(f"'--hidden' should have {allowed}, not be {'2,1,2,2;1,2,2,1' if hidden is None else hidden!r}.")
    return Connectivity(positions, tuple(degrees))
