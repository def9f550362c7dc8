"""The training of the paper's original code (tag ICML2015 of mgermain/MADE), transcribed in NumPy, beside ours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
import torch

from made import Connectivities, Connectivity, Network
from made.training.config import TrainingConfig
from made.training.trainer import Trainer
from oracle import structured

RATE, EPSILON, BATCH, EPOCHS = 0.05, 1e-6, 20, 3
ROWS, VALID = structured(300, 12).astype(float), structured(200, 12, seed=1).astype(float)


class Original:
    """The original's network: a matrix for each layer, (units before, units after), biases, and direct connections.

    Its update is one of Adagrad with a single accumulator for each weight, epsilon below the root, and a constant rate.
    """

    def __init__(self, network: Network) -> None:
        state = {name: weight.double().numpy() for name, weight in network.state_dict().items()}
        layers = range(1, network.depth + 1)
        self.W = [state[name].T.copy() for name in (*(f"W{layer}" for layer in layers), "V")]
        self.b = [state[name].copy() for name in (*(f"b{layer}" for layer in layers), "c")]
        self.D = state["A"].T.copy()
        self.sums = [np.zeros_like(weight) for weight in self.weights]

    @property
    def weights(self) -> list[np.ndarray]:
        return [*self.W, *self.b, self.D]

    @staticmethod
    def masks(connectivity: Connectivity) -> list[np.ndarray]:
        """Those of all layers and, last, of the direct connections; inputs count from 1 and outputs from 0."""
        degrees = [connectivity.ordering, *connectivity.hidden, connectivity.ordering - 1]
        pairs = [*itertools.pairwise(degrees), (degrees[0], degrees[-1])]
        return [(before[:, None] <= after[None, :]).astype(float) for before, after in pairs]

    def layers(self, x: np.ndarray, masks: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Inputs, hidden layers, and the activations of the outputs before the sigmoid."""
        found = [x]
        for W, b, mask in zip(self.W[:-1], self.b[:-1], masks, strict=False):
            found.append(np.maximum(found[-1] @ (W * mask) + b, 0.0))
        return [*found, found[-1] @ (self.W[-1] * masks[-2]) + self.b[-1] + x @ (self.D * masks[-1])]

    def log_prob(self, x: np.ndarray, connectivity: Connectivity) -> np.ndarray:
        logits = self.layers(x, self.masks(connectivity))[-1]
        return -np.logaddexp(0, (1 - 2 * x) * logits).sum(axis=1)

    def learn(self, x: np.ndarray, connectivity: Connectivity) -> float:
        """One update; returns the loss before it, the mean NLL of the rows."""
        loss, masks = -self.log_prob(x, connectivity).mean(), self.masks(connectivity)
        *hidden, logits = self.layers(x, masks)
        error = (1 / (1 + np.exp(-logits)) - x) / len(x)
        of_D, of_W, of_b = x.T @ error * masks[-1], [], []
        for layer in reversed(range(len(self.W))):
            of_W.append(hidden[layer].T @ error * masks[layer])
            of_b.append(error.sum(axis=0))
            if layer:
                activations = hidden[layer - 1] @ (self.W[layer - 1] * masks[layer - 1]) + self.b[layer - 1]
                slopes = activations >= 0  # of Theano's maximum(a, 0), 1 at zero, where torch's ReLU has 0
                error = error @ (self.W[layer] * masks[layer]).T * slopes
        gradients = [*reversed(of_W), *reversed(of_b), of_D]
        for weight, total, gradient in zip(self.weights, self.sums, gradients, strict=True):
            total += gradient**2
            weight -= RATE / np.sqrt(total + EPSILON) * gradient
        return float(loss)

    def valid_nll(self, x: np.ndarray, connectivities: Iterable[Connectivity]) -> float:
        """Under the ensemble: the mean of probabilities."""
        each = np.stack([self.log_prob(x, connectivity) for connectivity in connectivities])
        return float(-(np.logaddexp.reduce(each) - math.log(len(each))).mean())


def curves(network: Network, orders: Iterable[np.ndarray]) -> tuple[list[float], list[float]]:
    """The losses and the validation NLLs of the original's epochs, with rows in these orders."""
    original, family, numbers = Original(network), network.connectivities, itertools.count()
    losses, scores = [], []
    for order in orders:
        batches = [order[first : first + BATCH] for first in range(0, len(ROWS), BATCH)]
        losses.append(np.mean([original.learn(ROWS[batch], family[next(numbers)]) for batch in batches]))
        scores.append(original.valid_nll(VALID, family))
    return losses, scores


def untrained(sizes: tuple[int, ...], masks: int, initialization: str = "glorot") -> Network:
    family = Connectivities(ROWS.shape[1], sizes, masks=masks, ordering="random", seed=3)
    return Network(ROWS.shape[1], family, direct=True, initialization=initialization).double()


def trainer_of(network: Network) -> Trainer:
    config = TrainingConfig("adagrad", RATE, epsilon=EPSILON, batch_size=BATCH, max_epochs=EPOCHS, validation_masks=64)
    return Trainer(network, torch.from_numpy(ROWS), torch.from_numpy(VALID), config)


@pytest.mark.parametrize("initialization", ["glorot", "orthogonal"])
@pytest.mark.parametrize(("sizes", "masks"), [((40,), 1), ((40,), 4), ((30, 20), 1), ((30, 20), 4)])
def test_updates_are_those_of_the_original(sizes, masks, initialization) -> None:
    network = untrained(sizes, masks, initialization)
    with torch.no_grad():  # above zero, where the slopes of both ReLUs agree
        for layer in range(1, network.depth + 1):
            getattr(network, f"b{layer}").fill_(1e-9)
    trainer = trainer_of(network)
    losses, scores = curves(network, (trainer._order(epoch).numpy() for epoch in range(EPOCHS)))
    history = trainer.run()
    assert [epoch.train_nll for epoch in history] == pytest.approx(losses, rel=1e-9)
    assert [epoch.valid_nll for epoch in history] == pytest.approx(scores, rel=1e-9)


@pytest.mark.parametrize("masks", [1, 4])
def test_curves_are_close_with_rows_in_the_order_of_the_file(masks) -> None:
    """The original never shuffles rows, and its ReLU has another slope at zero, where units without inputs begin."""
    network = untrained((40,), masks)
    _, scores = curves(network, [np.arange(len(ROWS))] * EPOCHS)
    assert [epoch.valid_nll for epoch in trainer_of(network).run()] == pytest.approx(scores, rel=0.03)
