"""The second part of `made demo`: handwritten digits, as in Figure 3 of the paper."""

from __future__ import annotations

import time
from pathlib import Path

from made.cli.pages import draw_pictures
from made.cli.printing import mode, print_error, print_json, print_table, say

EPOCHS = 200
MASKS = 10  # one for each row of the picture


def demo_digits(out: Path, seed: int) -> None:
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
        verbose=int(mode.progress),
    ).fit(data.train, X_valid=data.valid)
    folder, picture = out / "model", out / "samples.png"
    model.save(folder)
    drawn = draw_pictures(model, folder, data.image)

    independent = BernoulliMixture(1, seed=seed).fit(data.train, data.valid)
    mixture = BernoulliMixture((10, 20, 40, 80, 160), seed=seed).fit(data.train, data.valid)
    log_probs = {
        "independent Bernoullis": independent.log_prob(data.test).values,
        f"mixture of {len(mixture.prior_)} Bernoullis": mixture.log_prob(data.test).values,
        f"MADE, {MASKS} masks": model.score_samples(data.test),
    }
    scores = {name: mean_and_interval(-torch.from_numpy(log_p)) for name, log_p in log_probs.items()}
    if drawn:
        numbers = [index // MASKS for index in range(100)]
        samples = sample(Ensemble(model.model_.network), 100, numbers=numbers, generator=seed).numpy()
        nearest = data.train[figure_samples.nearest(samples, data.train)]
        figure_samples.plot(samples, nearest, (8, 8), picture)

    seconds = time.perf_counter() - start
    if mode.json:
        rows = [{"model": name, "test_nll": nll, "ci95": half} for name, (nll, half) in scores.items()]
        facts = {"dataset": "digits", "rows": rows, "epochs": model.n_epochs_, "seed": seed, "seconds": seconds}
        print_json(facts | {"picture": str(picture) if drawn else None, "model": str(folder)})
        return
    print_table(
        "Test negative log-likelihood of 300 handwritten digits, in nats (lower is better)",
        ["model", "NLL", "95 % interval"],
        [(name, f"{nll:.2f}", f"± {half:.2f}") for name, (nll, half) in scores.items()],
        right=["NLL", "95 % interval"],
    )
    say(f"{model.n_epochs_} epochs, {seconds:.0f} s in all. The model is in {folder}; ask it:")
    say(f"  made evaluate {folder} digits:test\n  made sample {folder} -n 5")
    if drawn:
        say(f"100 new digits, a mask for each row, beside the nearest training rows: {picture}")
    else:
        print_error("No picture: install matplotlib (pip install 'made[plot]').")
