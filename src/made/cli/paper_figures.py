"""`made paper figure`: the paper's figures, made again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from made.cli.common import JSON, QUIET, command, note, print_json, say, usage
from made.cli.lists import whole_number
from made.cli.paper_pieces import RESULTS, RUNS, SEED, search_of, show, typed, writable
from made.display import shortened

if TYPE_CHECKING:
    from made.network.connectivity import Connectivity

__all__ = ["figure"]

figure = typer.Typer(no_args_is_help=True, help="The figures: masks, samples, network.", rich_markup_mode=None)

PER_ROW = 10  # samples of Figure 3
MOST_UNITS = 1000  # of a layer that is drawn
PICTURE = Annotated[
    Path | None,
    typer.Option("--out", help="The picture: .png, .svg or .pdf; a .png beside the results unless told."),
]
IMAGES = Annotated[str, typer.Option("--data", help="A set.")]


@figure.command()
@command
def masks(
    data: IMAGES = "binarized_mnist",
    masks: Annotated[str, typer.Option("--masks", help="The numbers of masks.")] = "1,2,4,8,16,32,64",
    batches: Annotated[str, typer.Option("--batches", help="The sizes of batches.")] = "83,100,128",
    units: Annotated[int, typer.Option("--units", min=1, help="Units of the hidden layer.")] = 500,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="The most epochs of a point.")] = 1000,
    out: PICTURE = None,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Figure 2: NLL against the number of masks, for three sizes of batches.

    Points that are there already are not made again: then this only draws.
    """
    from made.io import datasets
    from made.paper import figure_masks

    counts, sizes = _numbers("--masks", masks, least=1), _numbers("--batches", batches, least=1)
    picture = _picture(out, results, "masks")
    with search_of("masks", results, runs, f"{epochs} epochs", seed, as_json, quiet) as search:
        rows = datasets.load(data)
        points = figure_masks.make(search, rows, masks=counts, batches=sizes, units=units, epochs=epochs)
    # Points of other commands belong to the same picture if the network is the same.
    every = [each for each in search.record.rows() if each["dataset"] == data and each["config"] is not None]
    figure_masks.draw([each for each in every if each["config"]["hidden_sizes"] == [units]], picture)
    note(f"The picture is {picture}.", quiet or as_json)
    show(points, as_json)


@figure.command()
@command
def samples(
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", help="A model's folder; the best one of `table mnist` unless told.", show_default=False
        ),
    ] = None,
    data: IMAGES = "binarized_mnist",
    masks: Annotated[
        int, typer.Option("--masks", min=1, max=100, help=f"Rows of {PER_ROW} samples, each by a mask of its own.")
    ] = 10,
    out: PICTURE = None,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Figure 3: samples, each row of them by a mask of its own, beside the training rows that are nearest to them."""
    from made.columns.discrete import Binary
    from made.estimator import MADE
    from made.io import datasets
    from made.paper import figure_samples
    from made.paper.record import Record
    from made.queries.sampling import sample

    writable(results, "--results")
    picture, record = _picture(out, results, "samples"), Record(results / "samples.json")
    image = datasets.NAMES[data].image if data in datasets.NAMES else None
    if image is None:
        raise usage(f"'--data': {data} is no set of images: choose one, such as binarized_mnist.")
    folder = _best(results, runs, data) if model is None else model
    start = time.perf_counter()
    fitted = MADE.load(folder)
    network, width = fitted.model_.network, image[0] * image[1]
    if len(network.columns) != width or not all(isinstance(column, Binary) for column in network.columns):
        raise usage(f"'--model': {folder} is no model of {width} binary columns, such as {data} has; name one of them.")
    rows, family = datasets.load(data), network.connectivities
    if family.masks is not None and len(family.numbers()) < masks:
        note(f"Note: this model has no more than {len(family.numbers())} masks; rows share them.", quiet)
    numbers = [index // PER_ROW for index in range(masks * PER_ROW)]
    drawn = sample(network, len(numbers), numbers=numbers, segments=fitted._segments(), generator=seed).numpy()
    neighbours = rows.train[figure_samples.nearest(drawn, rows.train)]
    differing = (drawn != neighbours).sum(axis=1)
    of_test = (rows.test != rows.train[figure_samples.nearest(rows.test, rows.train)]).sum(axis=1)
    figure_samples.draw(drawn, neighbours, image, picture, per_row=PER_ROW)
    scores = fitted.model_.config.scores
    result = record.put(
        {
            "dataset": data,
            "row": "figure samples",
            "valid_nll": scores.get("valid_nll"),
            "masks": fitted.masks,
            "config": {"name": folder.name, "model": str(folder)},
            "seed": seed,
            "epochs": fitted.n_epochs_,
            "seconds": round(time.perf_counter() - start, 3),
            "command": typed(),
            "picture": str(picture),
            "samples": len(drawn),
            "nearest": float(differing.mean()),
            "nearest_of_test": float(of_test.mean()),
            "copies": int((differing == 0).sum()),
        }
    )
    if as_json:
        print_json([result])
        return
    say(
        f"{len(drawn)} samples of {folder} differ from the nearest training row in {result['nearest']:.1f} columns on "
        f"average, test rows in {result['nearest_of_test']:.1f}. The picture is {picture}."
    )


@figure.command()
@command
def network(
    ordering: Annotated[
        str | None,
        typer.Option("--ordering", help="The position of each column, from 1.", show_default="3,1,2"),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option("--hidden", help="The degrees of hidden units, layer by layer.", show_default="2,1,2,2;1,2,2,1"),
    ] = None,
    columns: Annotated[
        int | None,
        typer.Option(
            "--columns",
            min=1,
            max=MOST_UNITS,
            help="Instead of these, a random connectivity of so many columns.",
            show_default=False,
        ),
    ] = None,
    hidden_sizes: Annotated[
        str | None, typer.Option("--hidden-sizes", help="Units of its hidden layers.", show_default="8,8")
    ] = None,
    mask: Annotated[
        int | None, typer.Option("--mask", min=0, help="Its number; --seed is its seed.", show_default="0")
    ] = None,
    direct: Annotated[bool, typer.Option("--direct", help="Draw direct connections, too.")] = False,
    names: Annotated[
        str | None, typer.Option("--names", help="Names of the columns, such as a,b,c.", show_default="x1,x2,...")
    ] = None,
    out: PICTURE = None,
    results: RESULTS = Path("results"),
    seed: SEED = 0,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Figure 1: an autoencoder, the masks of a connectivity, and the MADE that they make of it.

    The paper's example unless told, another ordering and degrees, or a random connectivity.
    """
    from made.network.connectivity import Connectivities
    from made.paper import figure_network
    from made.paper.record import Record

    if columns is None:
        for option, value in (("--hidden-sizes", hidden_sizes), ("--mask", mask)):
            if value is not None:
                raise usage(f"'{option}' is of a random connectivity: give its number of columns, too (--columns).")
        drawn = _connectivity(ordering, hidden)
    else:
        for option, text in (("--ordering", ordering), ("--hidden", hidden)):
            if text is not None:
                raise usage(f"'{option}' and '--columns' exclude each other: that of --columns is random.")
        sizes = _numbers("--hidden-sizes", "8,8" if hidden_sizes is None else hidden_sizes, least=1, empty=True)
        if max(sizes, default=0) > MOST_UNITS:
            raise usage(f"'--hidden-sizes' should be at most {MOST_UNITS} units each, to be drawn, not {hidden_sizes}.")
        drawn = Connectivities(columns, tuple(sizes), masks=None, ordering="random", seed=seed)[mask or 0]
    called = None if names is None else [name.strip() for name in names.split(",")]
    writable(results, "--results")
    picture, start = _picture(out, results, "network"), time.perf_counter()
    try:
        figure_network.draw(drawn, picture, names=called, direct=direct)
    except ValueError as error:
        raise usage(str(error).replace("'names'", "'--names'")) from None
    config = {"ordering": drawn.ordering.tolist(), "hidden": [degrees.tolist() for degrees in drawn.hidden]}
    result = Record(results / "network.json").put(
        {
            "row": "figure network",
            "masks": 1,
            "config": config | {"direct": direct, "names": called},
            "seed": None if columns is None else seed,
            "seconds": round(time.perf_counter() - start, 3),
            "command": typed(),
            "picture": str(picture),
        }
    )
    if as_json:
        print_json([result])
        return
    say(drawn.describe(called, direct=direct))
    note(f"The picture is {picture}.", quiet)


def _numbers(option: str, text: str, least: int, empty: bool = False) -> list[int]:
    """Whole numbers with commas between them."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    numbers = [number for part in parts if (number := whole_number(part)) is not None and number >= least]
    if (not parts and not empty) or len(numbers) < len(parts):
        raise usage(
            f"'{option}' should be whole numbers, at least {least}, such as 1,2,4, not {shortened(text, 80)!r}."
        )
    return numbers


def _connectivity(ordering: str | None, hidden: str | None) -> Connectivity:
    """The paper's example, but for what is told."""
    import numpy as np

    from made.network.connectivity import Connectivity
    from made.paper.figure_network import EXAMPLE

    positions, degrees = EXAMPLE.ordering, list(EXAMPLE.hidden)
    if ordering is not None:
        positions = np.array(_numbers("--ordering", ordering, least=1))
        if sorted(positions.tolist()) != list(range(1, len(positions) + 1)):
            raise usage(f"'--ordering' should have each position from 1 to {len(positions)} once, not be {ordering!r}.")
    if hidden is not None:
        layers = hidden.split(";") if hidden.strip() else []
        degrees = [np.array(_numbers("--hidden", layer, least=0)) for layer in layers]
    if degrees and max(int(layer.max()) for layer in degrees) >= len(positions):
        raise usage(
            f"'--hidden' should have degrees from 0 to {len(positions) - 1}, below the number of columns, not be "
            f"{'2,1,2,2;1,2,2,1' if hidden is None else hidden!r}."
        )
    return Connectivity(positions, tuple(degrees))


def _best(results: Path, runs: Path, data: str) -> Path:
    """The folder of the best model of Table 6, by its validation rows."""
    from made.paper.record import Record
    from made.paper.search import folder_of
    from made.paper.table_mnist import ROWS as KNOWN

    path = results / "mnist.json"
    known = [each for each in Record(path).rows() if each.get("dataset") == data and each.get("row") in KNOWN]
    known = [each for each in known if each.get("config") and each.get("valid_nll") is not None]
    if not known:
        raise usage(
            f"'--model': {path} names no model of {data}: make one (made paper table mnist), or name its folder."
        )
    best = min(known, key=lambda each: float(each["valid_nll"]))
    return folder_of(runs, data, best["config"]["name"], best["seed"])


def _picture(out: Path | None, results: Path, name: str) -> Path:
    """The file for a picture, in a folder that is there, if there is something to draw with."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise usage("a picture needs matplotlib: pip install 'made[plot]'.")
    path = results / f"{name}.png" if out is None else out
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise usage(f"'--out' should end in .png, .svg or .pdf, not be {path.name!r}.")
    writable(path.parent, "--results" if out is None else "--out")
    if path.exists() and not path.is_file():
        raise usage(f"'--out': {path} is there, and not a file: choose another name.")
    return path
