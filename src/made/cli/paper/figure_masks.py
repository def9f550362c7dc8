"""`made paper figure masks`: Figure 2."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from made.cli.errors import command
from made.cli.options import option
from made.cli.paper.shared import IMAGES, PICTURE, RESULTS, RUNS, SEED, picture_path, print_results, search_for
from made.cli.parsing import whole_numbers
from made.cli.printing import mode, note


@command
def masks(
    data: IMAGES = "binarized_mnist",
    masks: Annotated[str, option("Numbers of masks.")] = "1,2,4,8,16,32,64",
    batches: Annotated[str, option("Batch sizes.")] = "83,100,128",
    units: Annotated[int, option("Units of the hidden layer.", min=1)] = 500,
    epochs: Annotated[int, option("Maximum number of epochs of each point.", min=1)] = 1000,
    out: PICTURE = None,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
) -> None:
    """Figure 2: NLL against the number of masks, for several batch sizes.

    Points that are already in the results are not computed again.
    """
    from made.io import datasets
    from made.paper import figure_masks

    counts, sizes = whole_numbers("--masks", masks, least=1), whole_numbers("--batches", batches, least=1)
    picture = picture_path(out, results, "masks")
    with search_for("masks", results, runs, f"{epochs} epochs", seed) as search:
        rows = datasets.load(data)
        points = figure_masks.make(search, rows, masks=counts, batches=sizes, units=units, epochs=epochs)
    # Points of other commands belong to the same picture if the network is the same.
    every = [each for each in search.results.rows() if each["dataset"] == data and each["config"] is not None]
    figure_masks.plot([each for each in every if each["config"]["hidden_sizes"] == [units]], picture)
    if mode.progress:
        note(f"The picture is {picture}.")
    print_results(points)
