"""The parameters of :class:`made.MADE`: name, default and meaning, once for Python and for the command line.

This file imports nothing of weight, so that `made fit --help` need not wait for torch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["PARAMETERS", "PLAIN", "PRESETS", "Parameter"]


class Parameter(NamedTuple):
    """A parameter.

    Attributes:
        default: its value unless told.
        kind: how it is written on a command line.
        help: what it means.
        choices: what it may be, if that is a list of words.
    """

    default: Any
    kind: str
    help: str
    choices: tuple[str, ...] = ()


ACTIVATIONS = ("relu", "softplus", "tanh", "sigmoid", "leaky_relu", "elu", "selu", "gelu", "silu", "identity")
SCHEDULES = ("constant", "falling", "linear", "cosine")
OPTIMIZERS = ("adadelta", "adagrad", "adam", "adamw", "sgd")

NETWORK = {
    "hidden_sizes": Parameter((256, 256), "sizes", "Units K^l of each hidden layer, such as 500,500."),
    "masks": Parameter("unlimited", "masks", "How many masks: a number R that updates cycle through, or unlimited."),
    "resample": Parameter(
        "both", "choice", "What changes from mask to mask.", ("both", "ordering", "degrees", "neither")
    ),
    "ordering": Parameter("random", "choice", "The ordering m^0 of the first mask.", ("natural", "random")),
    "activation": Parameter("relu", "choice", "The activation g of hidden units.", ACTIVATIONS),
    "direct": Parameter("auto", "flag", "Direct connections A from inputs to outputs; auto: unless too many."),
    "conditioning": Parameter(False, "flag", "Connectivity conditioning weights U."),
    "residual": Parameter(True, "flag", "Join hidden layers of equal size by residual connections."),
    "signed": Parameter(True, "flag", "Code binary inputs as -1 and +1, so that 0 is what is not observed."),
    "standardized": Parameter(False, "flag", "Code binary inputs less their mean, and by their spread."),
    "dropout": Parameter(0.0, "float", "The probability with which a hidden unit is left out in training."),
    "input_dropout": Parameter(0.0, "float", "The probability with which an input unit is left out in training."),
    "bias": Parameter(
        "independent",
        "choice",
        "Where output biases begin: at zero, or as independent columns have them.",
        ("zero", "independent"),
    ),
    "initialization": Parameter("glorot", "choice", "How weights begin.", ("glorot", "orthogonal", "zero-output")),
}

TRAINING = {
    "optimizer": Parameter("adamw", "choice", "How weights are updated.", OPTIMIZERS),
    "learning_rate": Parameter(None, "float", "By default 1 (adadelta), 0.01 (adagrad), 0.004 (Adams), 0.1 (sgd)."),
    "schedule": Parameter("falling", "choice", "What becomes of the learning rate.", SCHEDULES),
    "epsilon": Parameter(None, "float", "What adadelta, adagrad (1e-6), the Adams (1e-8) add to a denominator."),
    "momentum": Parameter(None, "float", "Of sgd and the Adams (0.9); of adadelta, the decay of its averages (0.95)."),
    "weight_decay": Parameter("auto", "auto float", "Pulls weights, not biases, to zero; auto: 300 by the rows."),
    "clip": Parameter(1.0, "float", "The greatest norm of a gradient; 0 for no limit."),
    "average": Parameter(0.995, "float", "The decay of the moving average of weights that is kept; 0 for none."),
    "batch_size": Parameter("auto", "auto", "Rows in an update; auto: 32 to 500, by the number of rows."),
    "max_epochs": Parameter(80, "int", "The most passes over the rows; 0 for a model that is not trained."),
    "max_seconds": Parameter(None, "float", "The most seconds of training, looked at after each epoch."),
    "patience": Parameter(30, "int", "Epochs without progress on validation rows before training ends."),
    "validation_fraction": Parameter(0.1, "float", "The share of rows that choose the epoch, without other ones."),
    "mask_for": Parameter("update", "choice", "What gets a mask of its own.", ("update", "row")),
    "questions": Parameter(0.5, "float", "The share of an any-order model's updates with random holes and givens."),
    "segments": Parameter("auto", "auto", "Segments of an ordering, a pass for each; auto: a column each, if few."),
    "whole_rows": Parameter(0.0, "float", "The share of an any-order model's updates for whole rows, in one pass."),
    "validation_masks": Parameter(
        4, "int", "Masks that are averaged after each epoch, of an unlimited model or a longer list."
    ),
    "evaluation_masks": Parameter(16, "int", "Masks that an unlimited model averages in every answer."),
}

REST = {
    "columns": Parameter(
        "auto",
        "columns",
        "auto, or name=binary|categorical|ordinal|numeric|real|drop,...; an entry may be in double quotes.",
    ),
    "missing": Parameter("unobserved", "columns", "What is empty: unobserved, or category; or name=category,..."),
    "unseen": Parameter(
        "other",
        "choice",
        "Values that training never saw: an error, or unlikely (text: one more category).",
        ("error", "other"),
    ),
    "dtype": Parameter("float32", "choice", "The precision of the network.", ("float32", "float64")),
    "tensorboard": Parameter(None, "text", "A folder for the curves of TensorBoard."),
    "random_state": Parameter(None, "seed", "The seed of everything that is random."),
    "device": Parameter("cpu", "text", "The device that torch works on."),
    "verbose": Parameter(0, "verbose", "1 for a progress bar on a terminal."),
}

PARAMETERS: dict[str, Parameter] = NETWORK | TRAINING | REST

# What every recipe goes out from that was chosen before the defaults were what they are.
PLAIN: dict[str, Any] = {
    "hidden_sizes": (256,),
    "residual": False,
    "dropout": 0.1,
    "schedule": "constant",
    "weight_decay": 0.01,
    "clip": 1.0,
    "average": 0.99,
    "max_epochs": 500,
    "segments": 1,
}

# Parameters that go together, by name; what they gave is in docs/results.md and docs/experiments.md.
PRESETS: dict[str, dict[str, Any]] = {
    # The likelihood of whole rows, in one ordering: better than with unlimited masks, but few questions are answered.
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
    # Any question, each answered by as many passes as columns are asked for: better than in one, and slower.
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

# Those that the first models did not have, and what is true of these.
LATER: dict[str, Any] = {
    "signed": True,
    "standardized": False,
    "input_dropout": 0.0,
    "bias": "zero",
    "segments": 1,
    "whole_rows": 0.0,
    "max_seconds": None,
    "missing": "unobserved",
    "unseen": "error",
}
