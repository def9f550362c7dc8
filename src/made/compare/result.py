"""The setting of a comparison, and the result of one system."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from made.baselines.protocol import SIGNS, Floats, LikelihoodKind

BinaryRows = NDArray[np.uint8]  # zeros and ones; shape (rows, columns)

STOPPED = 0.9  # of its time limit: training that took longer may have been cut off


@dataclass(frozen=True)
class Setting:
    """The data of a comparison: name, number of columns and of rows in each part; seed, and seconds of training."""

    data: str
    columns: int
    train: int
    valid: int
    test: int
    seed: int = 0
    budget: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """The result of one system; unknown numbers are NaN.

    Attributes:
        name: the short name on the command line.
        title: the name for display.
        nll: mean NLL of the test rows, in nats; an upper bound if ``kind`` is ``"bound"``.
        ci95: half-width of the 95 % interval of ``nll``, over test rows and over draws of an estimate.
        kind: ``"exact"``, ``"estimate"`` or ``"bound"``.
        standard_error: of ``nll`` due to estimation; 0 if nothing is estimated.
        seconds: training time.
        allowed: the time limit of training, in seconds; None for no limit.
        rows_per_second: scoring speed, with all test rows in one call.
        samples_per_second: sampling speed, with many samples in one call.
        parameters: number of learned parameters; None if unknown.
        epochs: number of passes over the training rows, if the system has epochs.
        error: why there is no NLL; None if there is one.
        remark: an additional remark.
        log_prob: log p of each test row, for paired differences.
    """

    name: str
    title: str
    nll: float = math.nan
    ci95: float = math.nan
    kind: LikelihoodKind | None = None
    standard_error: float = math.nan
    seconds: float = math.nan
    allowed: float | None = None
    rows_per_second: float = math.nan
    samples_per_second: float = math.nan
    parameters: int | None = None
    epochs: int | None = None
    error: str | None = None
    remark: str | None = None
    log_prob: Floats = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    @property
    def stopped(self) -> bool:
        """Whether the time limit may have ended training."""
        return self.allowed is not None and self.seconds >= STOPPED * self.allowed

    @property
    def known(self) -> str:
        """How the NLL was obtained: exact, estimate or upper bound, with the standard error if there is one."""
        error = f" (s.e. {self.standard_error:.2g})" if self.standard_error > 0 else ""
        if self.kind == "estimate":
            return f"estimate{error or ' (s.e. unknown)'}"
        return f"upper bound{error}" if self.kind == "bound" else str(self.kind or "")

    def shown(self, places: int) -> str:
        """The NLL with a number of decimals, after a sign if it is an estimate or a bound.

        Example:
            >>> Result("some", "some", 1.5, kind="bound").shown(2)
            '≤ 1.50'
        """
        return f"{SIGNS[self.kind or 'exact']}{self.nll:.{places}f}"

    def facts(self) -> dict[str, Any]:
        """Everything but ``log_prob``, for JSON; unknown numbers are None."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "log_prob"}
        known = {name: value if value == value else None for name, value in values.items()}
        direction = "the true NLL is this or lower" if self.kind == "bound" else None
        return known | {"direction": direction, "stopped": self.stopped}
