"""The second part of `made demo`: handwritten digits, as in Figure 3 of the paper."""

from __future__ import annotations

import time
from pathlib import Path

from made.cli.pictures import draw_pictures
from made.cli.printing import note, print_json, say

__all__ = ["demo_digits"]

EPOCHS = 200
MASKS = 10  # one for each row of the picture


def demo_digits(out: Path, seed: int, as_json: bool, quiet: bool) -> None:
    """Train on handwritten digits, compare with simpler models, and draw new digits."""
    import torch

    from made import MADE, mean_and_interval
    from made.baselines.bernoulli import BernoulliMixture
    from made.io import datasets
    from made.paper import figure_samples
    from made.queries.ensemble import Ensemble
    from made.queries.sampling import sample

    data = datasets.digits()
    start = time.perf_counter()
    model = MADE(
        hidden_sizes=(500,),
        masks=MASKS,
        conditioning=False,
        dropout=0.25,
        learning_rate=5e-3,
        schedule="constant",
        weight_decay=0.01,
        average=0.0,
        batch_size=100,
        max_epochs=EPOCHS,
        patience=20,
        random_state=seed,
        verbose=int(not (quiet or as_json)),
    ).fit(data.train, X_valid=data.valid)
    model.save(out / "model")
    draw_pictures(model, out / "model", data.image, quiet=True)

    independent = BernoulliMixture(1, seed=seed).fit(data.train, data.valid)
    mixture = BernoulliMixture((10, 20, 40, 80, 160), seed=seed).fit(data.train, data.valid)
    models = {
        "independent Bernoullis": torch.from_numpy(independent.log_prob(data.test).values),
        f"mixture of {len(mixture.prior_)} Bernoullis": torch.from_numpy(mixture.log_prob(data.test).values),
        f"MADE, {MASKS} masks": torch.from_numpy(model.score_samples(data.test)),
    }
    scores = {name: mean_and_interval(-log_p) for name, log_p in models.items()}

    numbers = [index // MASKS for index in range(100)]
    samples = sample(Ensemble(model.model_.network), 100, numbers=numbers, generator=seed).numpy()
    picture: Path | None = out / "samples.png"
    try:
        figure_samples.plot(
            samples, data.train[figure_samples.nearest(samples, data.train)], (8, 8), out / "samples.png"
        )
    except ImportError:
        picture = None

    seconds = time.perf_counter() - start
    if as_json:
        rows = [{"model": name, "test_nll": nll, "ci95": half} for name, (nll, half) in scores.items()]
        facts = {"dataset": "digits", "rows": rows, "epochs": model.n_epochs_, "seed": seed, "seconds": seconds}
        print_json(facts | {"picture": str(picture) if picture else None, "model": str(out / "model")})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Test negative log-likelihood of 300 handwritten digits, in nats (lower is better)")
    table.add_column("model")
    table.add_column("NLL", justify="right")
    table.add_column("95 % interval", justify="right")
    for name, (nll, half) in scores.items():
        table.add_row(name, f"{nll:.2f}", f"± {half:.2f}")
    Console().print(table)
    say(f"{model.n_epochs_} epochs, {seconds:.0f} s in all. The model is in {out / 'model'}; ask it:")
    say(f"  made evaluate {out / 'model'} digits:test")
    say(f"  made sample {out / 'model'} -n 5")
    if picture:
        say(f"100 new digits, a mask for each row, beside the nearest training rows: {picture}")
    else:
        note("No picture: install matplotlib (pip install 'made[plot]').")
