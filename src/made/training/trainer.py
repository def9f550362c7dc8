"""The training loop: updates, validation, early stopping, and a state to resume from exactly.

The paper's procedure: mini-batches, one mask for each update, and after each epoch the likelihood of validation rows
under the ensemble; when it has not risen for ``patience`` epochs, training ends with the best weights. The order of
the rows in epoch e, and the mask, the query and the dropout of update t are functions of (seed, e) and (seed, t): a run
that is stopped anywhere and resumed from its :class:`State` ends with the same bits.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from made.columns.group import Rows
from made.errors import DataError, Diverged, Interrupted
from made.hints import hint
from made.network.masked import Network
from made.network.threads import SMALL, single_thread
from made.queries.ensemble import Ensemble
from made.queries.evidence import Evidence
from made.training.calibrate import calibrate
from made.training.config import TrainingConfig, learning_rate_at, make_optimizer
from made.training.decay import EPOCHS, AdaptiveDecay
from made.training.mixing import better_by_column, weigh_masks
from made.training.objective import Objective, Questions
from made.training.order import epoch_rows, row_order
from made.training.signals import signals
from made.training.state import FINALISTS, Epoch, State, unpacked
from made.training.threads import update_threads
from made.training.validation import by_few_masks, validation_nll
from made.training.weights import RowWeights
from made.training.workers import ALONE, Workers

PREPARED = 2**26  # numbers
TOGETHER = 16  # updates whose questions are drawn at once
LEAST_SECONDS = 0.5  # between two checkpoints


class Trainer:
    """A run of training.

    Arguments:
        network: the network, which ends with the weights of its best epoch.
        rows: the training rows; an any-order model also learns from rows with missing values.
        valid: the validation rows; without any, the weights of the last epoch are kept.
        config: the training configuration.
        state: a state to resume from.
        weights: how often each of the rows counts. Default: once.
        workers: the processes that train together, each with the same arguments. Default: this one alone.
    """

    def __init__(
        self,
        network: Network,
        rows: Rows | Evidence,
        valid: Rows | Evidence | None,
        config: TrainingConfig,
        state: State | None = None,
        weights: RowWeights | None = None,
        workers: Workers = ALONE,
    ) -> None:
        Ensemble(network, segments=config.segments)  # refuses what the network does not support
        if (config.whole_rows > 0) != (network.connectivities.whole_rows > 0):
            raise ValueError(
                "'whole_rows' should be above 0 in the training config if and only if it is in the connectivities."
            )
        if workers.count > 1 and config.mask_for == "row" and (network.dropout or network.input_dropout):
            raise ValueError("dropout with a mask for each row (mask_for='row') is for one worker.")
        # Epochs are compared by all masks alike; their weights come last.
        network.connectivities = dataclasses.replace(network.connectivities, weights=())
        self.network, self.config, self.weights, self.workers = network, config, weights, workers
        self.data = Evidence.of(network, rows)
        self.rows = epoch_rows(len(self.data)) if weights is None else weights.rows  # of an epoch
        self.valid = None if valid is None else Evidence.of(network, valid)
        for name, evidence in (("rows", self.data), ("valid", self.valid)):
            if evidence is not None and len(evidence) == 0:
                raise DataError(f"'{name}' should have at least one row.")
        if self.data.observed is not None and not network.connectivities.any_order:
            row, column = (~self.data.observed).nonzero()[0].tolist()
            raise DataError(
                f"column {column} ('{network.columns.names[column]}') has a missing value, but only a model with "
                "unlimited masks and resampled orderings can learn from missing values "
                f"({hint(masks='unlimited')}); otherwise impute them first.",
                row=row,
                column=network.columns.names[column],
            )
        # Input units and targets do not change: they are computed once, if they fit into memory.
        if len(self.data) * (network.columns.inputs + network.columns.outputs) <= PREPARED:
            self.data = self.data.prepared(network)
            self.valid = None if self.valid is None else self.valid.prepared(network)
        self.objective = Objective(network, config, self.data, None if weights is None else weights.values)
        self.parameters = dict(network.named_parameters())
        self.small = sum(weight.numel() for weight in self.parameters.values()) * config.batch_size <= SMALL
        self.decay = AdaptiveDecay.of(network, config, self.valid)
        self.optimizer = make_optimizer(
            self.parameters,
            config.optimizer,
            config.learning_rate,
            config.epsilon,
            config.momentum,
            0.0 if self.decay else config.weight_decay,
            network.slower(),
        )
        self.average = self._copy() if config.average else None
        self._drawn: tuple[tuple[int, int], list[Questions]] = (-1, -1), []
        self.best: list[dict[str, Tensor]] = []
        self.state = State()
        if state is not None:
            try:
                self._restore(state)
            except KeyError as error:
                raise ValueError(f"the state belongs to another network: it lacks {error}.") from None
        self.start = self._copy() if not self.best else None  # the last finite weights before the first epoch ends

    def counted(self) -> Evidence:
        """The training rows, repeated by their weights."""
        if self.weights is None:
            return self.data
        return self.data[torch.from_numpy(self.weights.order(0, self.config.seed)).to(self.data.values.device)]

    @property
    def updates_per_epoch(self) -> int:
        return -(-self.rows // self.config.batch_size)

    @property
    def finished(self) -> bool:
        """Whether training has ended."""
        return self.share >= 1 or self.state.waited >= self.config.patience

    @property
    def share(self) -> float:
        """The completed share of the updates, or of the time, of the run."""
        updates = self.config.max_epochs * self.updates_per_epoch
        share = self.state.update / updates if updates else 1.0
        history, most = self.state.history, self.config.max_seconds
        return share if most is None or not history else max(share, history[-1].seconds / most)

    def run(
        self,
        *,
        keep: Callable[[State], None] | None = None,
        report: Callable[[Epoch], None] = lambda epoch: None,
        tick: Callable[[int], None] = lambda updates: None,
    ) -> list[Epoch]:
        """Train to the end.

        Arguments:
            keep: writes a checkpoint; called for at most a twentieth of the time, and when a signal (Ctrl-C, SIGTERM)
                ends the run. Without it, signals are not handled.
            report: called after each epoch.
            tick: called after each update with the number of updates.

        Returns:
            The epochs.
        """
        self.network.train()
        rows, size = self.rows, self.config.batch_size
        begin, kept, price = time.perf_counter() - self.state.seconds, time.perf_counter(), 0.0
        workers = self.workers.count
        with single_thread(self.small), signals(keep is not None or workers > 1) as stop:
            threads = update_threads(self.objective, list(self.parameters.values()), self.data[: -(-size // workers)])
            while not self.finished:
                left = rows - self.state.update % self.updates_per_epoch * size
                with threads.timed(-(-min(size, left) // workers)):
                    stop_of_any = self._update(stop)
                if self.state.update % self.updates_per_epoch == 0:
                    self.state.seconds = time.perf_counter() - begin
                    report(self._end_of_epoch())
                tick(self.state.update)
                now, stopped = time.perf_counter(), stop_of_any if workers > 1 else stop
                if keep is not None and (stopped or now - kept >= max(LEAST_SECONDS, 20 * price)):
                    self.state.seconds = now - begin
                    keep(self.snapshot())
                    kept, price = time.perf_counter(), time.perf_counter() - now
                if stopped:
                    raise Interrupted(
                        f"training was stopped after {self.state.update} updates, {len(self.state.history)} epochs.",
                        *stop[:1],
                    )
            if keep is not None:
                keep(self.snapshot())
        return self.state.history

    def choose(self) -> float:
        """Give the network the best weights, calibrate it, weigh its masks; return the validation NLL, or NaN."""
        with single_thread(self.small):
            nll = self._choose()
            if self.network.calibration is None or self.valid is None or not len(self.valid) or not self.best:
                return nll
            family = self.network.connectivities
            weights = torch.zeros(family.whole_rows, dtype=torch.float64)
            if self.workers.rank == 0:
                calibrate(self.network, self.valid, self.config)
                found = weigh_masks(self.network, self.valid)
                weights[: len(found)] = weights.new_tensor(found)
            self.workers.copy_first(self.network.calibration)
            self.workers.copy_first(weights)
            if weights.any():
                self.network.connectivities = dataclasses.replace(family, weights=tuple(weights.tolist()))
            if family.orders and self.workers.rank == 0:
                self.by_column = better_by_column(self.network, self.valid, self.config.seed)
            self.by_column = bool(self.workers.of_first(self.by_column))
            return self._validate(self.config.evaluation_masks)

    def _choose(self) -> float:
        self.network.eval()
        if self.valid is None or not self.best:
            if self.average is not None:
                self._load(self.average)
            return self._validate(self.config.evaluation_masks)
        scores = []
        for weights in self.best:
            self._load(weights)
            scores.append(self._validate(self.config.evaluation_masks))
        self.chosen = int(np.argmin(scores))
        self._load(self.best[self.chosen])
        return scores[self.chosen]

    chosen = 0
    by_column = False  # whether new rows should be drawn a column at a time

    @property
    def best_epoch(self) -> int | None:
        """The number of the epoch whose weights were chosen."""
        return self.state.finalists[self.chosen][1] if self.state.finalists else None

    def snapshot(self) -> State:
        """The current state; its tensors are not copies."""
        if not all(bool(weight.isfinite().all()) for weight in self.parameters.values()):
            raise self._diverged("a weight")
        tensors = {f"weights.{name}": weight.detach() for name, weight in self.parameters.items()}
        for name, weight in self.parameters.items():
            for key, value in self.optimizer.state[weight].items():
                if isinstance(value, Tensor):
                    tensors[f"optimizer.{name}.{key}"] = value
        for label, weights in [("average", self.average), *((f"best{i}", each) for i, each in enumerate(self.best))]:
            tensors |= {f"{label}.{name}": weight for name, weight in (weights or {}).items()}
        if self.decay is not None:
            tensors["decay"] = self.decay.factors
        self.state.tensors = tensors
        return self.state

    def _restore(self, state: State) -> None:
        self.state = dataclasses.replace(state, history=list(state.history), finalists=list(state.finalists))
        groups: dict[str, dict[str, Tensor]] = {}
        tensors = dict(unpacked(self.network, state.tensors))
        if self.decay is not None:
            self.decay.restore(tensors.pop("decay", None))
        for key, value in tensors.items():
            label, _, name = key.partition(".")
            groups.setdefault(label, {})[name] = value.to(self.network.c.device)
        for label in [label for label in groups if label != "optimizer"]:
            if {name: value.shape for name, value in groups[label].items()} != {
                name: value.shape for name, value in self.parameters.items()
            }:
                raise ValueError("the state belongs to another network.")
            groups[label] = {name: groups[label][name] for name in self.parameters}
        if state.update and not groups.get("optimizer"):
            raise ValueError("the state has no state of the optimizer.")
        if len(state.history) != state.update // self.updates_per_epoch:
            raise ValueError("the epochs of the state do not match its updates.")
        self._load(groups["weights"])
        for key, value in groups.get("optimizer", {}).items():
            name, _, what = key.partition(".")
            self.optimizer.state[self.parameters[name]][what] = value.clone()
        if self.average is not None:
            self.average = groups["average"]
        self.best = [groups[f"best{i}"] for i in range(len(state.finalists))]

    def _copy(self) -> dict[str, Tensor]:
        return {name: weight.detach().clone() for name, weight in self.parameters.items()}

    def _load(self, weights: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, weight in self.parameters.items():
                weight.copy_(weights[name])

    def _order(self, epoch: int) -> Tensor:
        """The order of the rows in an epoch."""
        if getattr(self, "_epoch", None) != epoch:
            seed = self.config.seed
            rows = row_order(len(self.data) if self.weights is None else self.rows, epoch, seed)
            if self.weights is not None:
                rows = torch.from_numpy(self.weights.order(epoch, seed))[rows]
            self._epoch, self._rows = epoch, rows.to(self.data.values.device)
        return self._rows

    def _questions(self, epoch: int, position: int) -> Questions:
        """What an update asks of the rows of this worker; :data:`TOGETHER` of them are drawn at a time."""
        number, place = divmod(position, TOGETHER)
        if self._drawn[0] != (epoch, number):
            first, size = number * TOGETHER, self.config.batch_size
            rows = self._order(epoch)[first * size : (first + TOGETHER) * size]
            own, update = self.workers.places(len(rows), size), epoch * self.updates_per_epoch + first
            self._drawn = (epoch, number), self.objective.batches(self.data, rows, update, own)
        return self._drawn[1][place]

    def _update(self, stop: Sequence[int] = ()) -> bool:
        """One update; returns whether a worker was asked to ``stop``: all of them then stop after the same one."""
        config, update = self.config, self.state.update
        epoch, position = divmod(update, self.updates_per_epoch)
        batch, rows = self._questions(epoch, position), min(config.batch_size, self.rows - position * config.batch_size)
        rate = learning_rate_at(config.schedule, self.share, update / self.updates_per_epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * rate
        for weight in self.parameters.values():
            weight.grad = None
        before = epoch * self.rows + position * config.batch_size
        loss, nll, counted = self.objective.differentiate(batch, update, before, self.workers, rows)
        gradients = [weight.grad for weight in self.parameters.values() if weight.grad is not None]
        told, stopped = torch.zeros_like(loss) if nll is None else nll, len(stop)
        if self.workers.count > 1:
            counts = loss.new_tensor([counted, stopped])
            self.workers.add([*gradients, loss, told := told * counted, counts])
            counted, stopped = counts.int().tolist()
            told = told / max(counted, 1)
        norms = torch._foreach_norm(gradients)  # noqa: SLF001
        value, reported, *sizes = torch.stack([loss, told, *norms]).tolist()
        size = math.hypot(*sizes)
        if not math.isfinite(value) or not math.isfinite(size):
            raise self._diverged("the gradient" if math.isfinite(value) else "the loss")
        if config.clip is not None and size > config.clip:
            torch._foreach_mul_(gradients, config.clip / size)
        if self.decay is not None:
            self.decay.shrink(self.optimizer.param_groups[0]["lr"])
        self.optimizer.step()
        if self.average is not None and config.average:
            decay = min(config.average, (1 + update) / (10 + update))
            with torch.no_grad():
                torch._foreach_lerp_(list(self.average.values()), list(self.parameters.values()), 1 - decay)
        self.state.update += 1
        if counted:
            self.state.loss += reported * rows
            self.state.rows += rows
        return bool(stopped)

    def _end_of_epoch(self) -> Epoch:
        state, number = self.state, len(self.state.history)
        self.network.eval()
        own = self._copy() if self.average is not None else None
        if self.average is not None:
            self._load(self.average)
        nll = self._validate(self.config.validation_masks, quick=True)
        if self.decay is not None and number % EPOCHS == EPOCHS - 1:
            self.decay.measure()
            self.workers.copy_first(factors := self.decay.factors)
            self.decay.set(factors)
        state.seconds = self.workers.of_first(state.seconds)  # on which the end of the run may depend
        if self.valid is not None:
            if not math.isfinite(nll):
                raise self._diverged("the likelihood of the validation rows")
            best_before = state.finalists[0][0] if state.finalists else math.inf
            state.waited = 0 if nll < best_before else state.waited + 1
            place, most = (
                sum(other <= nll for other, _ in state.finalists),
                FINALISTS if by_few_masks(self.network, self.config) else 1,
            )
            if place < most:
                state.finalists.insert(place, (nll, number))
                self.best.insert(place, self._copy())
                del state.finalists[most:], self.best[most:]
            self.start = None
        elif all(bool(weight.isfinite().all()) for weight in self.parameters.values()):
            self.start = self._copy()
        if own is not None:
            self._load(own)
        self.network.train()
        best = state.finalists[0][0] if state.finalists else math.nan
        rate = self.optimizer.param_groups[0]["lr"]
        train_nll = state.loss / state.rows if state.rows else math.nan
        state.history.append(Epoch(number, state.update, train_nll, nll, best, rate, round(state.seconds, 3)))
        state.loss, state.rows = 0.0, 0
        return state.history[-1]

    def _validate(self, masks: int, quick: bool = False) -> float:
        return validation_nll(self.objective, self.valid, masks, quick=quick, workers=self.workers)

    def _diverged(self, what: str) -> Diverged:
        """The error, after the last finite weights have been restored."""
        update, epoch = self.state.update, self.state.update // self.updates_per_epoch
        if self.best:
            self._load(self.best[0])
            kept = f"the weights of epoch {self.state.finalists[0][1]} are kept"
        else:
            if self.start is not None:
                self._load(self.start)
            kept = "the weights of the last epoch" if self.state.history else "the weights it began with"
            kept += " are kept"
        self.network.eval()
        return Diverged(
            f"update {update} (epoch {epoch}): {what} is not finite; {kept}. Remedy: a lower 'learning_rate', or "
            "'clip' to limit the gradient."
        )
