"""What a model is, in plain values: for the page, for clients and for assistants."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from made.model.card import card
from made.model.conditionals import Conditional, Conditionals
from made.model.model import Model

__all__ = ["columns", "distributions", "info"]


def info(model: Model) -> dict[str, Any]:
    """What a model is, how it was trained, its parameters and its card."""
    config, scores = model.config, model.config.scores
    return {
        "made": config.made,
        "finished": model.finished,
        "any_order": model.ensemble.any_order,
        "target": config.target,
        "columns": len(model.schema.fields),
        "dropped": list(model.schema.dropped),
        "rows": config.data.rows,
        "valid_rows": config.data.valid_rows,
        "epochs": len(model.history),
        "best_epoch": scores.get("best_epoch"),
        "valid_nll": scores.get("valid_nll"),
        "weights": sum(weight.numel() for weight in model.network.state_dict().values()),
        "masks": len(model.masks),
        "network": model.network.extra_repr(),
        "settings": config.parameters,
        "history": [asdict(epoch) for epoch in model.history],
        "card": card(config.to_json(), model.schema, model.history),
    }


def columns(model: Model) -> list[dict[str, Any]]:
    """What each column is: its kind, its values if they are listed, otherwise the spacing of its numbers."""
    return [
        {
            "name": field.name,
            "kind": field.kind,
            "dtype": field.dtype,
            "values": list(field.labels()) if field.listed else [],
            "missing": field.missing,
            "other": field.other > 0,
            "ordered": field.ordered,
            "step": 0.0 if field.listed else field.column.grid[1],
            "about": field.about(),
        }
        for field in model.schema.fields
    ]


def distributions(found: Conditionals) -> dict[str, Any]:
    """Distributions of columns, in the order of the model."""
    return {"log_prob": found.log_prob, "columns": [_distribution(*each) for each in found.columns.items()]}


def _distribution(name: str, column: Conditional) -> dict[str, Any]:
    facts = {key: getattr(column, key) for key in ("kind", "values", "probabilities", "edges", "scale")}
    facts |= {key: getattr(column, key) for key in ("below", "above", "missing")}
    return {"name": name} | facts | {key: getattr(column, key) for key in ("mean", "standard_deviation", "quantiles")}
