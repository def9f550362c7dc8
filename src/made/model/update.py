"""Updating a fitted model with new rows of the same columns, mixed with rows sampled from the model.

A network that is trained on new rows alone forgets the old ones (catastrophic forgetting). So it is also trained on
rows sampled from the model before the update, which represent the rows that it was fitted on; each part is weighted by
its number of rows. The result interpolates between the weights before and after, with the share that is best for rows
held out of both parts.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from made.errors import QuestionError
from made.model.config import Data, data_digest
from made.model.model import Model
from made.model.prepare import training_config
from made.parameters import check_integer
from made.queries.ensemble import Ensemble
from made.queries.imputation import draw
from made.queries.likelihood import score
from made.queries.missingness import draw_incomplete
from made.training.missingness import learn_missingness
from made.training.trainer import Trainer
from made.training.weights import RowWeights

EPOCHS = 20
LEAST_DRAWN, DRAWN = 2_000, 3  # rows, and a multiple of the new ones
HELD_OUT = 7  # every 7th row is for validation
SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)  # of the weights after training, mixed with those before


def updated(
    model: Model,
    codes: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
    *,
    epochs: int = EPOCHS,
    replay: bool = True,
) -> Model:
    """The model after training on more rows; ``model`` itself does not change.

    Arguments:
        model: the model, with all its columns.
        codes: the new rows, (rows, columns).
        weights: how often each of them counts. Default: once.
        epochs: the number of passes over the new and the drawn rows.
        replay: whether rows drawn from the model stand for those that it was fitted on.
    """
    epochs = check_integer("epochs", epochs, 1)
    if model.config.view is not None:
        raise QuestionError("a view of a model cannot be trained: update the model that it is a view of.")
    seed, known = model.config.seed, model.config.data.rows
    often = np.ones(len(codes)) if weights is None else weights
    rows, counts = codes, often
    if replay:
        drawn = _drawn(model, min(known, max(LEAST_DRAWN, DRAWN * len(codes))))
        rows = np.concatenate([codes, drawn])
        counts = np.concatenate([often, np.full(len(drawn), known / len(drawn))])
    apart = np.zeros(len(rows), dtype=np.bool_)
    if model.config.parameters["validation_fraction"] and len(rows) > HELD_OUT:
        apart[np.random.default_rng(seed).permutation(len(rows))[::HELD_OUT]] = True
    digest = hashlib.sha256(f"{model.config.data.sha256} {data_digest(codes, often[:, None])}".encode()).hexdigest()
    data = Data(rows=known + round(float(often.sum())), valid_rows=int(apart.sum()), sha256=digest)
    config = replace(model.config, data=data)
    settings = replace(training_config(config), max_epochs=epochs)
    network = copy.deepcopy(model.network).train()
    valid = rows[apart][RowWeights(counts[apart]).order(0, seed)] if apart.any() else None
    trainer = Trainer(network, rows[~apart], valid, settings, weights=RowWeights(counts[~apart]))
    trainer.run()
    nll = trainer.choose()
    network.eval()
    config = config.with_scores(trainer, nll)
    ensemble = config.ensemble(network)
    if apart.any():
        nll = _choose_share(model, ensemble, rows[apart], counts[apart])
    return replace(
        model,
        config=config.with_scores(trainer, nll),
        ensemble=ensemble,
        history=trainer.state.history,
        finished=True,
        state=None,
        missingness=learn_missingness(ensemble, trainer.counted(), seed),
    )


def _drawn(model: Model, count: int) -> NDArray[np.float64]:
    """Rows of the model, with missing values as its training rows had them."""
    nothing, generator = np.full((count, len(model.schema.fields)), np.nan), model.generator()
    if model.missingness is None or not len(model.missingness.columns):
        return draw(model.ensemble, nothing, generator)
    return draw_incomplete(model.ensemble, nothing, model.missingness, generator)


def _choose_share(model: Model, ensemble: Ensemble, rows: NDArray[np.float64], counts: NDArray[np.float64]) -> float:
    """Mix the weights before and after training, in the share that is best for validation rows; return their NLL.

    One of the shares is 0, so that uninformative rows do no harm.
    """
    before, after = model.network.state_dict(), copy.deepcopy(ensemble.network.state_dict())
    scores = {}
    for share in SHARES:
        _mix(ensemble, before, after, share)
        scores[share] = float(np.average(-score(ensemble, rows), weights=counts))
    best = min(scores, key=scores.__getitem__)
    _mix(ensemble, before, after, best)
    return scores[best]


def _mix(ensemble: Ensemble, before: Mapping[str, Tensor], after: Mapping[str, Tensor], share: float) -> None:
    mixed = {name: torch.lerp(before[name], each, share) for name, each in after.items()}
    ensemble.network.load_state_dict(mixed)
