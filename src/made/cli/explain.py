"""`made explain`: the least likely rows, and the entries responsible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from made.cli.asking import Asking
from made.cli.errors import command
from made.cli.inputs import load
from made.cli.on_error import RowFilter, spread
from made.cli.options import DATA, MASKS, MODEL, ON_ERROR, OUT, RAY, SAFE_CSV, SEED, OnError, option
from made.cli.output import Output
from made.cli.printing import mode, print_json, print_table
from made.cli.questions import RowQuestion
from made.errors import UnseenWarning

if TYPE_CHECKING:
    import torch

MOST_ENTRIES = 4


@dataclass(frozen=True, kw_only=True)
class Surprises(RowQuestion):
    """The surprise of every entry."""

    def tables(self, row_filter: RowFilter, rows: Any, random: torch.Generator) -> dict[str, Any]:
        rows, parts = row_filter.answers(rows, row_filter.model.surprise, blank=True)
        return {"surprise": spread(parts, len(rows), list(row_filter.model.schema.names))}


@dataclass(frozen=True, kw_only=True)
class LeastLikely(RowQuestion):
    """The least likely rows of a block: their numbers, their NLL, and the rows themselves."""

    top: int

    def tables(self, row_filter: RowFilter, rows: Any, random: torch.Generator) -> dict[str, Any]:
        import numpy as np

        log_p = row_filter.log_probs(rows, None).astype(np.float64)
        seen = ~np.isnan(log_p)
        odd = log_p.argsort(kind="stable")[: min(self.top, seen.sum())]  # NaN is last
        # A copy, so that the rest of the block can be freed.
        return {"row": odd, "nll": -log_p[odd], "rows": rows.take(odd) if hasattr(rows, "column_names") else rows[odd]}


@command
def explain(
    folder: MODEL,
    data: DATA,
    out: OUT = None,
    top: Annotated[int, option("Number of rows to show.", min=1)] = 10,
    on_error: ON_ERROR = OnError.stop,
    safe_csv: SAFE_CSV = False,
    masks: MASKS = None,
    ray: RAY = None,
    seed: SEED = None,
) -> None:
    """Find the least likely rows, and the entries responsible.

    The surprise of an entry is -log p(x_d | x_<d) in nats, the mean over masks. Entries are ranked by their surprise
    above what is usual in the column, the median over rows drawn from the model. With --out, the surprise of every
    entry of every row is written instead.
    """
    import numpy as np

    model = load(folder, masks)
    names, skip = list(model.schema.names), on_error is OnError.skip
    if out is not None:
        asking = Asking(Surprises(masks=masks, skip=skip), model, folder, data, ray)
        asking.write({"surprise": Output(out, names, safe_csv)})
        return
    asking = Asking(LeastLikely(masks=masks, skip=skip, top=top), model, folder, data, ray)
    oddest = list[tuple[int, float, Any]]()  # the number, the NLL and the values of rows
    for answer in asking.answers():
        first, rows = asking.tally.rows - answer.rows, answer.tables["rows"]
        for place, (row, nll) in enumerate(zip(answer.tables["row"], answer.tables["nll"], strict=True)):
            one = rows.slice(place, 1) if hasattr(rows, "column_names") else rows[place : place + 1]
            oddest.append((first + int(row), float(nll), one))
        oddest = sorted(oddest, key=lambda each: (-each[1], each[0]))[:top]
    usual = model.usual_surprise()
    found: list[dict[str, Any]] = []
    for row, nll, one in oddest:
        with UnseenWarning.ignored():  # counted when the rows were scored
            surprise = model.surprise_matrix(one)[0]
        ranked = [int(d) for d in np.argsort(-np.nan_to_num(surprise - usual, nan=-np.inf), kind="stable")]
        ranked = [d for d in ranked if not np.isnan(surprise[d])]
        framed = hasattr(one, "column_names")
        values = {names[d]: one[names[d]][0].as_py() if framed else one[0, d].item() for d in ranked}
        surprises = {names[d]: float(surprise[d]) for d in ranked}
        as_usual = {names[d]: float(usual[d]) for d in ranked}
        found.append({"row": row, "nll": nll, "surprise": surprises, "usual": as_usual, "values": values})
    if mode.json:
        print_json({"rows": found} | asking.facts())
        return
    asking.tally.note()
    lines = []
    for each in found:
        excess = {name: value - each["usual"][name] for name, value in list(each["surprise"].items())[:MOST_ENTRIES]}
        entries = [f"{name}={each['values'][name]} (+{value:.1f})" for name, value in excess.items() if value >= 0.05]
        entries = entries or ["none by itself"]
        lines.append([str(each["row"]), f"{each['nll']:.2f}", ", ".join(entries)])
    rows_seen = asking.tally.rows - asking.tally.skipped
    title = f"The {len(found)} least likely of {rows_seen} rows (row 0 is the first); nats above what is usual"
    print_table(title, ["row", "NLL", "surprising entries"], lines, right=["row", "NLL"])
