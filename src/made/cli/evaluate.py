"""`made evaluate`: the mean negative log-likelihood of rows."""

from __future__ import annotations

import math

from made.cli.errors import command
from made.cli.inputs import load, stream_rows
from made.cli.on_error import RowFilter
from made.cli.options import DATA, GIVEN, MASKS, MODEL, SEED
from made.cli.parsing import columns
from made.cli.printing import mode, print_json, say


@command
def evaluate(folder: MODEL, data: DATA, given: GIVEN = None, masks: MASKS = None, seed: SEED = None) -> None:
    """Print the mean negative log-likelihood (NLL) of rows, with its 95 % interval.

    By default, the test rows of a named dataset are evaluated.
    """
    import numpy as np
    import torch

    from made.queries.batches import counted_from
    from made.queries.likelihood import mean_and_interval

    model = load(folder, masks)
    names, parts, row_filter = columns("--given", given, model), [], RowFilter(model)
    for first, rows in stream_rows(data, model):
        with counted_from(first):
            parts.append(row_filter.log_probs(rows, names))
    log_p = np.concatenate(parts)
    nll, half = mean_and_interval(-torch.from_numpy(log_p))
    count = len(model.masks)
    asked = len(model.schema.fields) - len(set(names or []))
    bits = nll / math.log(2) / max(asked, 1)
    if mode.json:
        print_json({"nll": nll, "ci95": half, "rows": len(log_p), "masks": count, "bits_per_column": bits})
        return
    interval = "" if math.isnan(half) else f" ± {half:.3f} (95 %)"
    say(f"NLL {nll:.3f}{interval} nats, {bits:.4f} bits per column; {len(log_p)} rows, {count} masks.")
