"""The result of a search: its trials, the best parameters, and their files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

from made.io.atomic import atomic
from made.tuning.space import Space, estimator_values


@dataclass(frozen=True)
class Trial:
    """One set of parameters, and its outcome.

    Attributes:
        number: its number; the parameters are a function of the seed, this number and the trials before.
        params: the searched parameters, as the estimator takes them.
        valid_nll: the NLL of the validation rows; of an incomplete trial, the best so far, if any.
        epochs, seconds: its duration.
        state: ``"complete"``, ``"pruned"`` (worse than the others), ``"failed"``, or ``"waiting"`` (to be retried).
        reason: why it failed.
    """

    number: int
    params: dict[str, Any]
    valid_nll: float | None
    epochs: int
    seconds: float
    state: str
    reason: str | None = None


@dataclass(frozen=True)
class Tuned:
    """The result of a search: trials by number, of ``wanted``; ``fixed`` are the parameters that were not searched."""

    folder: Path
    trials: list[Trial]
    wanted: int
    space: Space
    fixed: dict[str, Any]
    seed: int

    def top(self, count: int) -> list[Trial]:
        """The best trials, the best first."""
        complete = [trial for trial in self.trials if trial.state == "complete" and trial.valid_nll is not None]
        return sorted(complete, key=lambda trial: (trial.valid_nll, trial.number))[:count]

    @property
    def best(self) -> Trial | None:
        """The complete trial with the lowest NLL, or None."""
        return next(iter(self.top(1)), None)

    @property
    def best_nll(self) -> float:
        """The lowest validation NLL; NaN if no trial is complete."""
        best = self.best
        return math.nan if best is None or best.valid_nll is None else best.valid_nll

    @property
    def best_params(self) -> dict[str, Any]:
        """All parameters of the best trial: ``MADE(**best_params)`` reproduces it."""
        return {**self.fixed, **(self.best.params if self.best else {}), "random_state": self.seed}

    @property
    def finished(self) -> int:
        """The number of trials that are not waiting."""
        return len(self.trials) - self.count("waiting")

    def count(self, state: str) -> int:
        """The number of trials in a state."""
        return sum(trial.state == state for trial in self.trials)

    def write(self, command: str) -> None:
        """Write trials.json; best.toml, if a trial is complete; and search.png, if matplotlib is installed."""
        with atomic(self.folder / "trials.json") as stream:
            stream.write((json.dumps([asdict(trial) for trial in self.trials], indent=2) + "\n").encode())
        if self.best is None:
            return
        score = f"number {self.best.number}: NLL {self.best_nll:.4f} nats on the validation rows"
        lines = [f"# The best of {self.finished} trials, {score}. To reproduce it:"]
        lines.append(f"#   {' '.join(command.splitlines())}")
        for name, value in self.best_params.items():
            if name in ("clip", "average") and value is None:
                value = 0
            if value is not None:
                lines.append(f"{'seed' if name == 'random_state' else name} = {_toml(value)}")
        with atomic(self.folder / "best.toml") as stream:
            stream.write(("\n".join(lines) + "\n").encode())
        if find_spec("matplotlib") is not None:
            with atomic(self.folder / "search.png") as stream:
                _plot(self, stream)


def _toml(value: Any) -> str:
    """A parameter value in TOML.

    Example:
        >>> print(_toml({"a b": ["low", "high"], "c": 1e-5}))
        {"a b" = ["low", "high"], "c" = 1e-05}
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(str(key))} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value).replace("\x7f", "\\u007f")  # otherwise JSON and TOML escape in the same way


def _plot(tuned: Tuned, stream: BinaryIO) -> None:
    """The NLL of each trial in order, with the best so far; and against the value of each parameter."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    known = [trial for trial in tuned.trials if trial.valid_nll is not None and trial.state in ("complete", "pruned")]
    complete = {trial.number: trial.valid_nll or 0.0 for trial in known if trial.state == "complete"}
    scores = sorted(complete.values())
    # A few trials are often far above all others, and would flatten the rest.
    top = scores[-1] if len(scores) < 10 else scores[len(scores) * 3 // 4]
    margin = 0.08 * (top - scores[0]) + 1e-9
    columns = min(4, len(tuned.space))
    lines = -(-len(tuned.space) // columns)
    figure = Figure(figsize=(max(7.0, 2.6 * columns), 3.2 + 2.2 * lines), layout="constrained")
    grid = figure.add_gridspec(1 + lines, columns, height_ratios=[1.4] + [1.0] * lines)

    def dots(axis: Any, places: Sequence[float]) -> None:
        for state, style in (("complete", {"color": "C0"}), ("pruned", {"color": "C7", "alpha": 0.6, "marker": "x"})):
            some = [(at, trial.valid_nll) for at, trial in zip(places, known, strict=True) if trial.state == state]
            axis.scatter([at for at, _ in some], [nll for _, nll in some], s=14, label=state, **style)
        axis.grid(alpha=0.3)

    above = figure.add_subplot(grid[0, :])
    dots(above, [trial.number for trial in known])
    best = list(accumulate(complete.values(), min))
    above.step(list(complete), best, where="post", color="black", label="best so far")
    above.xaxis.set_major_locator(MaxNLocator(integer=True))
    above.set_xlabel("trial")
    above.set_ylabel("validation NLL in nats")
    above.legend(loc="upper right")
    for index, (name, entry) in enumerate(tuned.space.items()):
        axis = figure.add_subplot(grid[1 + index // columns, index % columns], sharey=above)
        values = [trial.params[name] for trial in known]
        if isinstance(entry, list):
            words = [_word(estimator_values({name: choice})[name]) for choice in entry]
            dots(axis, [words.index(_word(value)) for value in values])
            axis.set_xticks(range(len(words)), words, rotation=30 if max(map(len, words)) > 4 else 0, fontsize=7)
            axis.set_xlim(-0.5, len(words) - 0.5)
        else:
            dots(axis, values)
            axis.set_xscale("log" if entry["log"] else "linear")
        axis.set_title(name, fontsize=9)
    above.set_ylim(scores[0] - margin, top + margin)
    figure.savefig(stream, dpi=120, format="png")


def _word(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value).lower()
