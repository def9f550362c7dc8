"""`made info`: what a model is."""

from __future__ import annotations

from made.cli.column_table import describe_columns, print_columns
from made.cli.errors import command
from made.cli.inputs import load
from made.cli.options import MODEL, SEED
from made.cli.printing import mode, print_json, say
from made.display import visible


@command
def info(folder: MODEL, seed: SEED = None) -> None:
    """Show what a model is: its columns and their kinds, its parameters, and how it was trained."""
    model = load(folder, quiet=True)
    config, best, nll = model.config, model.config.scores.get("best_epoch"), model.config.scores.get("valid_nll")
    columns, weights = describe_columns(model.schema), model.network.state_dict().values()
    facts = {
        "made": config.made,
        "finished": model.finished,
        "epochs": len(model.history),
        "best_epoch": best,
        "valid_nll": nll,
        "parameters": sum(weight.numel() for weight in weights),
        "rows": config.data.rows,
        "valid_rows": config.data.valid_rows,
        "columns": columns,
        "given": model.view.evidence,
        "dropped": list(model.schema.dropped),
        "settings": config.parameters,
    }
    if mode.json:
        print_json(facts)
        return
    validation = "" if nll is None else f", validation NLL {nll:.3f} in epoch {best}"
    say(f"{folder}: a model of made {config.made}, {'finished' if model.finished else 'not finished'}")
    say(f"rows        {config.data.rows} for training, {config.data.valid_rows} for validation")
    say(f"training    {len(model.history)} epochs{validation}")
    say(f"parameters  {facts['parameters']}")
    say(f"network     {model.network.extra_repr()}")
    for name, value in model.view.evidence.items():
        say(f"given       {visible(name)} = {visible(str(value))}")
    say(f"columns     {len(model.schema.fields)}")
    print_columns(columns, model.schema)
