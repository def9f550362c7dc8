"""`made info`: what a model is."""

from __future__ import annotations

from made.cli.errors import command
from made.cli.models import load
from made.cli.options import JSON, MODEL, QUIET, SEED
from made.cli.printing import print_json, say

__all__ = ["info"]


@command
def info(model: MODEL, seed: SEED = None, as_json: JSON = False, quiet: QUIET = False) -> None:
    """What a model is: its columns, its parameters, how it was trained."""
    made = load(model, quiet=True)
    stored, config = made.model_, made.model_.config
    facts = {
        "made": config.made,
        "finished": stored.finished,
        "epochs": made.n_epochs_,
        "best_epoch": made.best_epoch_,
        "valid_nll": made.valid_nll_,
        "parameters": sum(weight.numel() for weight in stored.network.state_dict().values()),
        "rows": config.data.rows,
        "valid_rows": config.data.valid_rows,
        "columns": [
            {"name": field.name, "kind": field.kind} | ({"values": list(field.values)} if field.values else {})
            for field in stored.schema.fields
        ],
        "settings": config.parameters,
    }
    if as_json:
        print_json(facts)
        return
    from made.tables.facts import KINDS

    kinds = ", ".join(
        f"{sum(field.kind == kind for field in stored.schema.fields)} {kind}"
        for kind in KINDS
        if any(field.kind == kind for field in stored.schema.fields)
    )
    state = "finished" if stored.finished else "not finished"
    nll = "" if made.valid_nll_ is None else f", validation NLL {made.valid_nll_:.3f} in epoch {made.best_epoch_}"
    say(f"{model}: a model of made {config.made}, {state}")
    say(f"columns     {len(stored.schema.fields)} ({kinds})")
    say(f"rows        {facts['rows']} to train on, {facts['valid_rows']} to choose by")
    say(f"training    {made.n_epochs_} epochs{nll}")
    say(f"parameters  {facts['parameters']}")
    say(f"network     {stored.network.extra_repr()}")
