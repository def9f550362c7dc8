"""`made demo`: train on handwritten digits, compare, and draw new ones."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

EPOCHS = 200
MASKS = 10  # one for each row of the picture


def demo(
    out: Annotated[Path, typer.Option(help="The folder for the picture.")] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, help="The seed of everything that is random.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Train on handwritten digits, compare with simpler models, and draw new digits."""
    # Loaded here, so that --help need not wait for torch.
    import torch

    from made import Connectivities, Network, log_prob, mean_and_interval, sample
    from made.baselines.bernoulli import BernoulliMixture
    from made.datasets import digits
    from made.paper import figure_samples
    from made.training import Epoch, Recipe, train

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"cannot write there: {error}", param_hint="'--out'") from None
    data = digits()
    start = time.perf_counter()
    family = Connectivities(64, (500,), masks=MASKS, ordering="random", seed=seed)
    network = Network(64, family, direct=True, dropout=0.25)
    columns = (
        TextColumn("epoch {task.completed}"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet or as_json or not sys.stderr.isatty()) as progress:
        task = progress.add_task("training", total=EPOCHS)

        def report(epoch: Epoch) -> None:
            text = f"NLL: training {epoch.train_nll:.2f}, validation {epoch.valid_nll:.2f}, best {epoch.best_nll:.2f}"
            progress.update(task, completed=epoch.number + 1, description=text)

        history = train(
            network,
            data.train,
            data.valid,
            Recipe(learning_rate=5e-3, weight_decay=0.01, max_epochs=EPOCHS, patience=20, seed=seed),
            report=report,
        )

    independent = BernoulliMixture(1, seed=seed).fit(data.train, data.valid)
    mixture = BernoulliMixture(10, 20, 40, 80, 160, seed=seed).fit(data.train, data.valid)
    models = {
        "independent Bernoullis": torch.from_numpy(independent.log_prob(data.test)),
        f"mixture of {len(mixture.prior_)} Bernoullis": torch.from_numpy(mixture.log_prob(data.test)),
        f"MADE, {MASKS} masks": log_prob(network, data.test),
    }
    scores = {name: mean_and_interval(-log_p) for name, log_p in models.items()}

    numbers = [index // MASKS for index in range(100)]
    samples = sample(network, 100, numbers=numbers, generator=seed).numpy()
    picture: Path | None = out / "samples.png"
    try:
        figure_samples.draw(
            samples, data.train[figure_samples.nearest(samples, data.train)], (8, 8), out / "samples.png"
        )
    except ImportError:
        picture = None

    seconds = time.perf_counter() - start
    if as_json:
        rows = [{"model": name, "test_nll": nll, "ci95": half} for name, (nll, half) in scores.items()]
        result = {"dataset": "digits", "rows": rows, "epochs": len(history), "seed": seed, "seconds": seconds}
        print(json.dumps(result | {"picture": str(picture) if picture else None}, indent=2))
        return
    table = Table(title="Test negative log-likelihood of 300 handwritten digits, in nats (lower is better)")
    table.add_column("model")
    table.add_column("NLL", justify="right")
    table.add_column("95 % interval", justify="right")
    for name, (nll, half) in scores.items():
        table.add_row(name, f"{nll:.2f}", f"± {half:.2f}")
    output = Console()
    output.print(table)
    output.print(f"{len(history)} epochs, {seconds:.0f} s in all.")
    if picture:
        output.print(f"100 new digits, each row of them by a mask of its own, beside their nearest ones: {picture}")
    else:
        output.print("No picture: for that, install matplotlib (pip install 'made\\[plot]').")
