"""`made explain`: the rows that are least likely, and the entries that make them so."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

from made.cli.errors import command
from made.cli.inputs import load
from made.cli.on_error import RowFilter, spread
from made.cli.options import DATA, MASKS, MODEL, ON_ERROR, OUT, SAFE_CSV, SEED, OnError, option
from made.cli.output import Output
from made.cli.printing import mode, print_json, print_table
from made.errors import UnseenWarning

REFERENCE = 500  # rows that are drawn from the model
MOST_ENTRIES = 4


@command
def explain(
    folder: MODEL,
    data: DATA,
    out: OUT = None,
    top: Annotated[int, option("How many rows to show.", min=1)] = 10,
    on_error: ON_ERROR = OnError.stop,
    safe_csv: SAFE_CSV = False,
    masks: MASKS = None,
    seed: SEED = None,
) -> None:
    """Find the least likely rows, and the entries that make them so.

    The surprise of an entry is -log p(x_d | x_<d) in nats, the mean over masks. Entries are ranked by their surprise
    above what is usual in the column, the median over rows drawn from the model. With --out, the surprise of every
    entry of every row is written instead.
    """
    import numpy as np

    model = load(folder, masks)
    names, row_filter = list(model.schema.names), RowFilter(model, on_error)
    if out is not None:
        with Output(out, names, safe_csv) as output:
            for _, rows, parts in row_filter.stream(data, model.surprise, blank=True):
                output.write(spread(parts, len(rows), names))
            output.facts = row_filter.facts()
        row_filter.note()
        return
    count, oddest = 0, list[tuple[int, float, Any]]()  # the number, the NLL and the values of rows
    for first, rows, scored in row_filter.stream(data, model.score_samples):
        for places, log_p in scored:
            for index in log_p.astype(np.float64).argsort(kind="stable")[:top].tolist():
                row = int(places[index])
                # A copy, so that the rest of the batch can be freed.
                one = rows.take([row]) if hasattr(rows, "column_names") else rows[row : row + 1].copy()
                oddest.append((first + row, -float(log_p[index]), one))
            oddest = sorted(oddest, key=lambda each: (-each[1], each[0]))[:top]
        count += len(rows)
    drawn = np.asarray(model.surprise(model.sample(REFERENCE, random_state=0)), dtype=np.float64)
    usual = np.nan_to_num(np.nanmedian(np.where(np.isnan(drawn).all(axis=0), 0.0, drawn), axis=0))
    found: list[dict[str, Any]] = []
    for row, nll, one in oddest:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenWarning)  # counted when the rows were scored
            surprise = np.asarray(model.surprise(one), dtype=np.float64)[0]
        ranked = [int(d) for d in np.argsort(-np.nan_to_num(surprise - usual, nan=-np.inf), kind="stable")]
        ranked = [d for d in ranked if not np.isnan(surprise[d])]
        framed = hasattr(one, "column_names")
        values = {names[d]: one[names[d]][0].as_py() if framed else one[0, d].item() for d in ranked}
        surprises = {names[d]: float(surprise[d]) for d in ranked}
        as_usual = {names[d]: float(usual[d]) for d in ranked}
        found.append({"row": row, "nll": nll, "surprise": surprises, "usual": as_usual, "values": values})
    if mode.json:
        print_json({"rows": found} | row_filter.facts())
        return
    row_filter.note()
    lines = []
    for each in found:
        excess = {name: value - each["usual"][name] for name, value in list(each["surprise"].items())[:MOST_ENTRIES]}
        entries = [f"{name}={each['values'][name]} (+{value:.1f})" for name, value in excess.items() if value >= 0.05]
        entries = entries or ["none by itself"]
        lines.append([str(each["row"]), f"{each['nll']:.2f}", ", ".join(entries)])
    rows_seen = count - row_filter.skipped
    title = f"The {len(found)} least likely of {rows_seen} rows (row 0 is the first); nats above what is usual"
    print_table(title, ["row", "NLL", "surprising entries"], lines, right=["row", "NLL"])
