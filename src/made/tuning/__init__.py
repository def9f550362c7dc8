"""Hyperparameter search by validation likelihood: resumable, pruned, parallel. Needs optuna (the extra `tune`)."""

from __future__ import annotations

try:
    from made.tuning.result import Trial, Tuned
    from made.tuning.search import load, tune
    from made.tuning.space import default_space
except ModuleNotFoundError as error:
    if error.name != "optuna":
        raise
    raise ImportError("a search needs a package: pip install 'made[tune]'.") from None

__all__ = ["Trial", "Tuned", "default_space", "load", "tune"]
