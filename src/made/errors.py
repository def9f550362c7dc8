"""What can go wrong, by whose fault it is. Every message is a sentence for the person who reads it."""

from __future__ import annotations

__all__ = ["DataError", "Diverged", "Interrupted", "ModelError", "QuestionError"]


class DataError(ValueError):
    """Data that cannot be used: a value that is not allowed, a file that is not what it says."""


class ModelError(ValueError):
    """A model folder that cannot be used: damaged, foreign, or of a newer version."""


class QuestionError(ValueError):
    """A question that cannot be asked of this model, or is not well put."""


class Diverged(ArithmeticError):  # noqa: N818
    """Training met a loss or a gradient that is not finite."""


class Interrupted(KeyboardInterrupt):
    """Training was stopped from outside, and its state is saved."""
