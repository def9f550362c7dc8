"""The numbers of a report, and conclusions from them in words."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from made.columns.bins import Histogram
from made.hints import hint
from made.report.column import ColumnComparison
from made.report.dependence import Dependence
from made.report.odd import OddRow
from made.report.privacy import Privacy
from made.report.questions import ShortQuestions

FEW_EPOCHS = 100


@dataclass(frozen=True)
class Training:
    """How the model was trained.

    Attributes:
        epochs: number, training NLL and validation NLL of each epoch.
        best_epoch, valid_nll: of the weights that were kept.
        parameters: number of weights and biases.
        settings: the parameters of the estimator.
    """

    rows: int
    valid_rows: int
    epochs: tuple[tuple[int, float, float], ...]
    best_epoch: int | None
    valid_nll: float | None
    finished: bool
    parameters: int
    masks: int
    settings: dict[str, Any]

    def sentence(self) -> str:
        """A conclusion in words."""
        if not self.epochs:
            return "The model is not trained: it has its initial weights."
        if not self.finished:
            return "Training is not finished: these are the best weights so far."
        if self.best_epoch is None:
            return f"The model was trained for {len(self.epochs)} epochs, without validation rows."
        last = self.epochs[-1][0]
        text = f"The best epoch is {self.best_epoch} of {self.epochs[0][0]} to {last}"
        if self.improving:
            return f"{text}: training ended while it was still improving; longer training may help."
        return f"{text}."

    @property
    def improving(self) -> bool:
        """Whether the limit of epochs or of time ended training, rather than early stopping."""
        if not self.epochs or self.best_epoch is None:
            return not self.epochs
        last, seconds = self.epochs[-1][0], self.settings.get("max_seconds")
        limited = len(self.epochs) >= self.settings.get("max_epochs", 0) or seconds is not None
        return limited and last - self.best_epoch <= max(2, last // 20)

    def remedy(self) -> str:
        """A remedy for underfitting."""
        if not self.finished:
            return "finish the training"
        if self.improving:
            seconds, most = self.settings.get("max_seconds"), self.settings.get("max_epochs", 0)
            if seconds is not None and len(self.epochs) < most:
                return f"train for longer, {hint(max_seconds=2 * seconds)}"
            return f"train for longer, {hint(max_epochs=max(2 * most, FEW_EPOCHS))}"
        sizes = tuple(2 * size for size in self.settings.get("hidden_sizes", ())) or (256,)
        return f"use a larger network, {hint(hidden_sizes=sizes)}"


@dataclass(frozen=True)
class LikelihoodComparison:
    """Mean NLL of rows and of samples in nats, half-widths of their 95 % intervals, and the distributions of log p.

    Samples get the missing values of rows before they are scored; otherwise the two would not be comparable.
    """

    nll: float
    ci95: float
    sampled_nll: float
    sampled_ci95: float
    log_prob: Histogram

    def sentence(self) -> str:
        """A conclusion in words."""
        interval = "" if math.isnan(self.ci95) else f" ± {self.ci95:.2f} (95 % interval)"
        text = f"The rows have an NLL of {self.nll:.2f}{interval} nats, samples from the model {self.sampled_nll:.2f}"
        gap, room = self.nll - self.sampled_nll, math.hypot(self.ci95, self.sampled_ci95)
        if math.isnan(room):
            return f"{text}."
        if abs(gap) <= room:
            return f"{text}: the rows look like samples from the model."
        if gap > 0:
            return f"{text}: the rows are less likely, so they have structure that the model has not learned."
        return f"{text}: the rows are more likely, so the model is broader than the data, or has memorized these rows."


@dataclass(frozen=True)
class Report:
    """A model compared with rows, a sample of the ``rows_in_data``; ``made`` is the version of this package.

    ``kinds`` are warnings about the kinds of columns; there is ``privacy`` if there are held-out rows.
    """

    made: str
    model: str
    data: str
    seed: int
    rows: int
    rows_in_data: int
    samples: int
    notes: tuple[str, ...]
    columns: tuple[ColumnComparison, ...]
    dependence: Dependence
    likelihood: LikelihoodComparison
    training: Training
    odd: tuple[OddRow, ...]
    questions: ShortQuestions
    kinds: tuple[str, ...]
    privacy: Privacy | None = None

    def facts(self) -> dict[str, Any]:
        """All numbers, for JSON."""
        return {**asdict(self), "unit": "nats", "warnings": self.warnings(), "conclusions": self.sentences()}

    def warnings(self) -> list[str]:
        """Problems, each with its remedy."""
        remedy = self.training.remedy()
        found = [self.questions.warning(self.training.settings.get("pairs", 0.0), remedy)]
        leaks = None if self.privacy is None else self.privacy.warning()
        return [*self.kinds, *filter(None, [*found, self.dependence.warning(remedy), leaks])]

    def sentences(self) -> list[str]:
        """The conclusions in words."""
        pairs = [self.dependence.sentence()] if self.dependence.pairs else []
        private = [] if self.privacy is None else [self.privacy.sentence()]
        return [self.likelihood.sentence(), self._columns(), *pairs, *private, self.training.sentence()]

    def _columns(self) -> str:
        known = [each for each in self.columns if each.distance is not None]
        if not known:
            return "No value is observed in these rows."
        differ = [each for each in known if each.differs]
        if not differ:
            return "In no column do samples differ from the rows by more than chance."
        far = max(differ, key=lambda each: each.distance or 0.0)
        count = f"{len(differ)} of {len(known)} columns" if len(known) > 1 else "the only column"
        most = f"most in {far.name}: distance {far.distance:.3f}, threshold {far.chance:.3f}"
        return f"In {count}, samples differ from the rows by more than chance, {most}."
