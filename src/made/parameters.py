"""The parameters of :class:`made.MADE`: how each is written, its constraint and its help text.

Defaults stand in the signature of ``MADE`` and nowhere else; :func:`defaults` reads them from there. This file imports
nothing heavy, so that `made fit --help` need not wait for torch.
"""

from __future__ import annotations

import ast
import math
import numbers
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple


class Bounds(NamedTuple):
    """The range of a number; ``closed`` names the ends that belong to it, as in scikit-learn's ``Interval``."""

    low: float
    high: float | None = None
    closed: Literal["left", "both", "neither"] = "left"

    def contain(self, value: float) -> bool:
        """Whether a number lies inside."""
        above = value > self.low if self.closed == "neither" else value >= self.low
        high = math.inf if self.high is None else self.high
        return above and (value <= high if self.closed == "both" else value < high)

    def __str__(self) -> str:
        if self.closed == "both":
            return f"from {self.low} to {self.high}"
        low = f"{'above' if self.closed == 'neither' else 'at least'} {self.low}"
        return low if self.high is None else f"{low} and below {self.high}"


class Parameter(NamedTuple):
    """A parameter.

    Attributes:
        kind: how it is written on a command line.
        help: what it means.
        choices: its values, if these are a list of words.
        bounds: the range of its values, if these are numbers.
        optional: whether it may be ``None``.
    """

    kind: str
    help: str
    choices: tuple[str, ...] = ()
    bounds: Bounds | None = None
    optional: bool = False

    @property
    def whole(self) -> bool:
        """Whether a number has to be whole."""
        return self.kind in ("int", "auto", "masks", "sizes", "verbose")

    @property
    def word(self) -> str | None:
        """The word that may stand in place of a number or a flag."""
        return {"masks": "unlimited", "auto": "auto", "auto float": "auto", "auto flag": "auto", "sizes": "auto"}.get(
            self.kind
        )

    def problem(self, value: Any) -> str | None:
        """What is wrong with a value, as the end of a sentence; ``None`` if nothing is."""
        if self._allows(value):
            return None
        if self.choices:
            what = f"one of {', '.join(self.choices)}"
        elif self.bounds is not None:
            what = f"{'a whole number' if self.whole else 'a number'} {self.bounds}"
            what = f"a list of whole numbers {self.bounds}, one for each layer" if self.kind == "sizes" else what
        else:
            what = {"flag": "True or False", "auto flag": "True or False", "text": "a text or a path"}.get(
                self.kind, "a kind, or a kind for each column, or for some by name"
            )
        alternatives = [repr(each) for each, there in ((self.word, self.word), (None, self.optional)) if there]
        return f"should be {', or '.join([what, *alternatives])}, not {value!r}."

    def _allows(self, value: Any) -> bool:
        if (value is None and self.optional) or (isinstance(value, str) and value == self.word):
            return True
        if self.choices:
            return isinstance(value, str) and value in self.choices
        if self.kind == "sizes":
            return hasattr(value, "__iter__") and not isinstance(value, str) and all(map(self._is_number, value))
        if self.bounds is not None:
            return self._is_number(value)
        if self.kind in ("flag", "auto flag"):
            return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")
        if self.kind == "text":
            return isinstance(value, (str, os.PathLike))
        return self.kind == "seed" or isinstance(value, (str, Mapping)) or hasattr(value, "__len__")

    def _is_number(self, value: Any) -> bool:
        number = numbers.Integral if self.whole else numbers.Real
        if isinstance(value, bool) and self.kind != "verbose":
            return False
        try:
            return isinstance(value, number) and self.bounds is not None and self.bounds.contain(float(value))
        except OverflowError:  # a whole number above the largest float
            return False


ACTIVATIONS = ("relu", "softplus", "tanh", "sigmoid", "leaky_relu", "elu", "selu", "gelu", "silu", "identity")
SCHEDULES = ("constant", "falling", "linear", "cosine")
OPTIMIZERS = ("adadelta", "adagrad", "adam", "adamw", "sgd")
POSITIVE = Bounds(0, None, "neither")
COUNT = Bounds(1)
SHARE = Bounds(0, 1, "both")
PROBABILITY = Bounds(0, 1)

NETWORK = {
    "hidden_sizes": Parameter(
        "sizes",
        "Number of units K^l of each hidden layer, such as 500,500; auto: 256,256, more for many binary columns.",
        bounds=COUNT,
    ),
    "masks": Parameter(
        "masks", "Number of masks R that updates cycle through and queries average, or unlimited.", bounds=COUNT
    ),
    "resample": Parameter("choice", "What changes from mask to mask.", ("both", "ordering", "degrees", "neither")),
    "ordering": Parameter(
        "choice",
        "Ordering m^0 of the first mask; selected: half of the masks for whole rows have the likeliest of many; auto: "
        "selected, or natural or random for tables of many columns.",
        ("auto", "natural", "random", "selected"),
    ),
    "activation": Parameter("choice", "Activation g of hidden units.", ACTIVATIONS),
    "direct": Parameter(
        "auto flag", "Direct connections A from inputs to outputs; auto: if they have up to 2**25 weights."
    ),
    "conditioning": Parameter("flag", "Connectivity conditioning weights U."),
    "residual": Parameter("flag", "Residual connections between hidden layers of equal size."),
    "signed": Parameter(
        "auto flag",
        "Code binary inputs as -1 and +1, so that 0, a masked or missing input, is neither; auto: with a mean of 0, "
        "if all columns are binary.",
    ),
    "standardized": Parameter("flag", "Standardize binary inputs; better for any-order models if ones are rare."),
    "dropout": Parameter(
        "auto float",
        "Dropout probability of hidden units; auto: 0 to 0.3, more for many columns.",
        bounds=PROBABILITY,
    ),
    "input_dropout": Parameter("float", "Dropout probability of input units.", bounds=PROBABILITY),
    "bias": Parameter(
        "choice", "Initial output biases: zero, or those of independent columns.", ("zero", "independent")
    ),
    "initialization": Parameter(
        "choice", "Initial weights; zero-output is glorot with V = 0.", ("glorot", "orthogonal", "zero-output")
    ),
}

TRAINING = {
    "optimizer": Parameter("choice", "Optimizer.", OPTIMIZERS),
    "learning_rate": Parameter(
        "auto float",
        "Learning rate; auto: 0.001 to 0.004 (adamw), 0.004 (adam), 0.01 (adagrad), 0.1 (sgd), 1 (adadelta).",
        bounds=POSITIVE,
        optional=True,
    ),
    "schedule": Parameter(
        "choice", "Learning-rate schedule; falling: half after 30 epochs, a tenth after 90.", SCHEDULES
    ),
    "epsilon": Parameter(
        "float",
        "Term added to the denominator. Default: 1e-6 (adadelta, adagrad), 1e-8 (adam, adamw).",
        bounds=POSITIVE,
        optional=True,
    ),
    "momentum": Parameter(
        "float",
        "Momentum of sgd, beta_1 of adam and adamw (default: 0.9); rho of adadelta (0.95).",
        bounds=PROBABILITY,
        optional=True,
    ),
    "weight_decay": Parameter(
        "auto float",
        "Weight decay (biases are exempt); auto: stronger for fewer rows and more direct connections, at most 1.",
        bounds=Bounds(0),
    ),
    "adaptive_decay": Parameter("flag", "Decay weights less for columns that follow from others."),
    "clip": Parameter("float", "Maximum norm of the gradient; 0 for no limit.", bounds=POSITIVE, optional=True),
    "average": Parameter(
        "float", "Decay of the moving average of the weights; 0 for none.", bounds=PROBABILITY, optional=True
    ),
    "batch_size": Parameter("auto", "Rows in an update; auto: 32 to 500, a fortieth of the rows.", bounds=COUNT),
    "max_epochs": Parameter(
        "auto",
        "Maximum number of passes over the rows; auto: 15 to 600, fewer for larger tables; 0 for an untrained model.",
        bounds=Bounds(0),
    ),
    "max_seconds": Parameter(
        "float", "Maximum training time in seconds, checked after each epoch.", bounds=POSITIVE, optional=True
    ),
    "patience": Parameter("int", "Epochs without progress on validation rows before early stopping.", bounds=COUNT),
    "validation_fraction": Parameter(
        "float", "Share of rows for validation, if no validation rows are given; 0 for none.", bounds=PROBABILITY
    ),
    "mask_for": Parameter("choice", "Whether to draw a mask for each update or for each row.", ("update", "row")),
    "questions": Parameter(
        "float", "Share of an any-order model's updates with random missing and given entries.", bounds=SHARE
    ),
    "segments": Parameter(
        "auto",
        "Number of segments of an ordering, with a pass for each; auto: one for each column, if there are at most 128.",
        bounds=COUNT,
    ),
    "whole_rows": Parameter(
        "auto float",
        "Share of an any-order model's updates for the likelihood of whole rows in one pass; auto: a half.",
        bounds=SHARE,
    ),
    "whole_row_masks": Parameter(
        "auto",
        "Number of masks for whole rows; auto: as many as a query averages, fewer for many columns.",
        bounds=COUNT,
    ),
    "incomplete_rows": Parameter(
        "float", "Share of the rows in updates for whole rows of which random entries are hidden.", bounds=SHARE
    ),
    "nearly_complete": Parameter(
        "float", "Share of the rows in all other updates of which only one to three entries are hidden.", bounds=SHARE
    ),
    "pairs": Parameter(
        "float", "Weight of questions with one given column, whose answers are counted in the rows.", bounds=Bounds(0)
    ),
    "number_weight": Parameter(
        "float",
        "Weight of numeric columns in the loss, if there are other columns, too.",
        bounds=Bounds(0, closed="neither"),
    ),
    "exclusive": Parameter(
        "choice",
        "Groups of binary columns of which at most one is 1; auto: found among neighbours, if all columns are binary.",
        ("auto", "none"),
    ),
    "calibrate": Parameter("flag", "Calibrate the distribution of each column on the validation rows."),
    "validation_masks": Parameter("int", "Maximum number of masks to average after each epoch.", bounds=COUNT),
    "evaluation_masks": Parameter("int", "Number of masks that a query averages if masks are unlimited.", bounds=COUNT),
}

REST = {
    "columns": Parameter(
        "columns",
        "auto, or kinds by name, such as age=numeric,job=drop: binary, categorical, ordinal, numeric, real, drop. Put "
        "an entry that has a comma in double quotes.",
    ),
    "missing": Parameter(
        "columns", "What a missing value is: unobserved, or a category of its own; or name=category,..."
    ),
    "unseen": Parameter(
        "choice",
        "Values that training never saw: refuse them (error), or score them as very unlikely (other).",
        ("error", "other"),
    ),
    "extrapolate": Parameter("flag", "Let the predicted mean of a number lie beyond all numbers in training."),
    "dtype": Parameter("choice", "Precision of the network.", ("float32", "float64")),
    "tensorboard": Parameter("text", "Folder for TensorBoard logs.", optional=True),
    "random_state": Parameter("seed", "Seed of all random numbers.", optional=True),
    "device": Parameter("text", "Device of torch, such as cpu or cuda."),
    "verbose": Parameter("verbose", "1 for a progress bar on a terminal.", bounds=Bounds(0)),
}

PARAMETERS: dict[str, Parameter] = NETWORK | TRAINING | REST


def check_integer(name: str, value: Any, least: int) -> int:
    """A whole number, at least ``least``; ``name`` is the name of the argument.

    Example:
        >>> check_integer("count", 0, least=1)
        Traceback (most recent call last):
        ...
        ValueError: 'count' should be a whole number, at least 1, not 0.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"'{name}' should be a whole number, at least {least}, not {value!r}.")
    return int(value)


@cache
def defaults() -> dict[str, Any]:
    """The defaults in the signature of ``MADE``, read from its source: to import it would take seconds.

    Example:
        >>> defaults()["patience"]
        60
    """
    tree = ast.parse((Path(__file__).parent / "estimator" / "made.py").read_text())
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "MADE")
    methods = (node for node in next(classes).body if isinstance(node, ast.FunctionDef))
    arguments = next(node for node in methods if node.name == "__init__").args
    values = (ast.literal_eval(value) for value in arguments.kw_defaults if value is not None)
    return dict(zip((each.arg for each in arguments.kwonlyargs), values, strict=True))


# Legacy defaults, pinned for the presets below and for the results in docs/results.md.
PLAIN: dict[str, Any] = {
    "hidden_sizes": (256,),
    "signed": True,
    "ordering": "random",
    "residual": False,
    "dropout": 0.1,
    "schedule": "constant",
    "weight_decay": 0.01,
    "adaptive_decay": False,
    "clip": 1.0,
    "average": 0.99,
    "max_epochs": 500,
    "patience": 30,
    "segments": 1,
    "whole_rows": 0.0,
    "incomplete_rows": 0.0,
    "nearly_complete": 0.0,
    "pairs": 0.0,
    "number_weight": 1.0,
    "evaluation_masks": 16,
    "learning_rate": None,
    "initialization": "glorot",
    "calibrate": False,
    "exclusive": "none",
}

# Named sets of parameters; their results are in docs/results.md and docs/experiments.md.
PRESETS: dict[str, dict[str, Any]] = {
    # Likelihoods of whole rows, in one ordering: better than with unlimited masks, but few other queries are answered.
    "density": PLAIN
    | {
        "hidden_sizes": (500, 500),
        "masks": 1,
        "ordering": "natural",
        "residual": True,
        "signed": False,
        "dropout": 0.3,
        "learning_rate": 2e-3,
        "schedule": "cosine",
        "weight_decay": 0.0,
        "clip": 5.0,
        "max_epochs": 100,
    },
    # Any query, with a pass for each column that is asked for: better than in one pass, and slower.
    "any-order": PLAIN
    | {
        "hidden_sizes": (500,),
        "masks": "unlimited",
        "conditioning": True,
        "residual": True,
        "learning_rate": 2e-3,
        "schedule": "cosine",
        "weight_decay": 0.0,
        "clip": 5.0,
        "segments": 1000,
        "max_epochs": 200,
    },
    # The paper's own settings for its UCI tables.
    "paper": PLAIN
    | {
        "hidden_sizes": (500,),
        "signed": False,
        "bias": "zero",
        "dropout": 0.0,
        "optimizer": "adadelta",
        "momentum": 0.95,
        "epsilon": 1e-7,
        "weight_decay": 0.0,
        "clip": None,
        "average": None,
        "batch_size": 100,
        "max_epochs": 2000,
        "questions": 0.0,
    },
}

# Parameters that model folders of earlier versions lack, and the values that these models have.
LATER: dict[str, Any] = {
    "signed": True,
    "standardized": False,
    "input_dropout": 0.0,
    "bias": "zero",
    "segments": 1,
    "whole_rows": 0.0,
    "whole_row_masks": "auto",
    "incomplete_rows": 0.0,
    "nearly_complete": 0.0,
    "pairs": 0.0,
    "number_weight": 1.0,
    "adaptive_decay": False,
    "max_seconds": None,
    "missing": "unobserved",
    "unseen": "error",
    "extrapolate": True,
    "calibrate": False,
    "exclusive": "none",
}
