"""`made paper figure samples`: Figure 3."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from made.cli.errors import command, usage
from made.cli.options import option
from made.cli.paper.shared import IMAGES, PICTURE, RESULTS, RUNS, SEED, picture_path, typed, writable
from made.cli.printing import mode, note, print_json, say

PER_ROW = 10  # samples in a row of the figure


@command
def samples(
    model: Annotated[Path | None, option("Folder of a model.", "the best of `made paper table mnist`")] = None,
    data: IMAGES = "binarized_mnist",
    masks: Annotated[int, option(f"Number of masks, each for a row of {PER_ROW} samples.", min=1, max=100)] = 10,
    out: PICTURE = None,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
) -> None:
    """Figure 3: samples, a mask for each row of them, beside the nearest training rows."""
    from made.io import datasets
    from made.model.model import Model
    from made.paper import figure_samples
    from made.paper.results_file import ResultsFile
    from made.queries.sampling import sample

    writable(results, "--results")
    picture = picture_path(out, results, "samples")
    image = datasets.NAMES[data].image if data in datasets.NAMES else None
    if image is None:
        raise usage(f"'--data': {data} is not a dataset of images: choose one, such as binarized_mnist.")
    folder = _best(results, runs, data) if model is None else model
    start = time.perf_counter()
    fitted = Model.load(folder)
    network, width = fitted.network, image[0] * image[1]
    if len(network.columns) != width or any(column.kind != "binary" for column in network.columns):
        raise usage(f"'--model': {folder} is not a model of the {width} binary columns of {data}: choose one that is.")
    rows, family = datasets.load(data), network.connectivities
    if family.masks is not None and len(family.numbers()) < masks:
        note(f"Note: this model has only {len(family.numbers())} masks; rows share them.")
    numbers = [index // PER_ROW for index in range(masks * PER_ROW)]
    drawn = sample(fitted.ensemble, len(numbers), numbers=numbers, generator=seed).numpy()
    neighbours = rows.train[figure_samples.nearest(drawn, rows.train)]
    differing = (drawn != neighbours).sum(axis=1)
    of_test = (rows.test != rows.train[figure_samples.nearest(rows.test, rows.train)]).sum(axis=1)
    figure_samples.plot(drawn, neighbours, image, picture, per_row=PER_ROW)
    facts = {
        "dataset": data,
        "row": "figure samples",
        "valid_nll": fitted.config.scores.get("valid_nll"),
        "masks": fitted.config.parameters["masks"],
        "config": {"name": folder.name, "model": str(folder)},
        "seed": seed,
        "epochs": len(fitted.history),
        "seconds": round(time.perf_counter() - start, 3),
        "command": typed(),
        "picture": str(picture),
        "samples": len(drawn),
        "nearest": float(differing.mean()),
        "nearest_of_test": float(of_test.mean()),
        "copies": int((differing == 0).sum()),
    }
    result = ResultsFile(results / "samples.json").put(facts)
    if mode.json:
        print_json([result])
        return
    near = f"in {differing.mean():.1f} columns on average, test rows in {of_test.mean():.1f}"
    say(f"{len(drawn)} samples of {folder} differ from the nearest training row {near}. The picture is {picture}.")


def _best(results: Path, runs: Path, data: str) -> Path:
    """The folder of the best model of Table 6, by its validation rows."""
    from made.paper.grid_search import run_folder
    from made.paper.results_file import ResultsFile
    from made.paper.table_mnist import ROWS as KNOWN

    path = results / "mnist.json"
    rows = [each for each in ResultsFile(path).rows() if each.get("dataset") == data and each.get("row") in KNOWN]
    known = [each for each in rows if each.get("config") and each.get("valid_nll") is not None]
    if not known:
        remedy = "make one (made paper table mnist), or name its folder"
        raise usage(f"'--model': {path} names no model of {data}: {remedy}.")
    best = min(known, key=lambda each: float(each["valid_nll"]))
    return run_folder(runs, data, best["config"]["name"], best["seed"])
