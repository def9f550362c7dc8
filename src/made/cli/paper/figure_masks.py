"""`made paper figure masks`: Figure 2."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from made.cli.errors import command
from made.cli.options import JSON, QUIET
from made.cli.paper.figures import IMAGES, PICTURE, picture_path
from made.cli.paper.options import RESULTS, RUNS, SEED
from made.cli.paper.searches import print_results, search_for
from made.cli.parsing import whole_numbers
from made.cli.printing import note

__all__ = ["masks"]


@command
def masks(
    data: IMAGES = "binarized_mnist",
    masks: Annotated[str, typer.Option("--masks", help="Numbers of masks.")] = "1,2,4,8,16,32,64",
    batches: Annotated[str, typer.Option("--batches", help="Batch sizes.")] = "83,100,128",
    units: Annotated[int, typer.Option("--units", min=1, help="Units of the hidden layer.")] = 500,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Maximum number of epochs of each point.")] = 1000,
    out: PICTURE = None,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Figure 2: NLL against the number of masks, for several batch sizes.

    Points that are already in the results are not computed again.
    """
    from made.io import datasets
    from made.paper import figure_masks

    counts, sizes = whole_numbers("--masks", masks, least=1), whole_numbers("--batches", batches, least=1)
    picture = picture_path(out, results, "masks")
    with search_for("masks", results, runs, f"{epochs} epochs", seed, as_json, quiet) as search:
        rows = datasets.load(data)
        points = figure_masks.make(search, rows, masks=counts, batches=sizes, units=units, epochs=epochs)
    # Points of other commands belong to the same picture if the network is the same.
    every = [each for each in search.results.rows() if each["dataset"] == data and each["config"] is not None]
    figure_masks.plot([each for each in every if each["config"]["hidden_sizes"] == [units]], picture)
    note(f"The picture is {picture}.", quiet or as_json)
    print_results(points, as_json)
