"""`docs/results.md`: the paper's numbers beside ours, generated from the JSON of the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from made.baselines.protocol import SIGNS
from made.errors import DataError
from made.paper import published
from made.paper.results_file import FIELDS, ResultsFile

Row = Mapping[str, Any]

# The files of the results, and the command that produces each.
NAMES = {
    "uci": "made paper table uci",
    "mnist": "made paper table mnist",
    "baselines": "made paper table baselines",
    "masks": "made paper figure masks",
    "samples": "made paper figure samples",
    "complexity": "made paper table complexity",
    "claims": "python -m benchmarks.claims",
    "network": "made paper figure network",
}
OURS = ("MADE", "MADE mask sampling", "ours", "any-order")
BASELINES = tuple(model for model in published.UCI if not model.startswith("MADE"))
MNIST_SET, WIDTH = "binarized_mnist", 8000

HEAD = """# Results

Generated from the JSON in `results` by `made paper report`, with the paper's numbers beside ours; a test checks that it
is up to date. NLL is the mean negative log-likelihood of the test rows in nats: lower is better. ± is half of its 95 %
confidence interval. Configurations are selected by validation rows; test rows are evaluated once."""

EXPONENTS = """\
D columns, K units in each of L hidden layers (the paper's table stops at two), R masks, each with its own
ordering. Seconds are processor time for 100 rows on one thread. The exponent is that of a power law
fitted to the times, ± its standard error; theory is the same for the number of multiply-adds. Times grow
more slowly where fixed costs matter, and where large matrix products run at a higher rate than small ones."""


def results_page(results: Path, link: str = "../results") -> str:
    """The page, as Markdown, of a folder of JSON and figures; ``link`` is the path of this folder in links."""
    rows = {name: _rows(results / f"{name}.json") for name in NAMES}
    for row in rows["baselines"]:
        rows["uci" if row["dataset"] in published.UCI_SETS else "mnist"].append(row)
    page = [HEAD]
    if not rows["baselines"]:
        page.append(f"Other systems are not measured yet: run `{NAMES['baselines']}`.")

    def picture(title: str, name: str) -> list[str]:
        return [f"![{title}]({link}/{name}.png)"] if (results / f"{name}.png").exists() else []

    for title, name, write in (
        ("Table 4: binary UCI sets", "uci", _table_4),
        ("Table 6: binarized MNIST", "mnist", _table_6),
        ("More than four orderings favour two layers", "mnist", _layers),
        ("Figure 2: the number of masks", "masks", _figure_2),
        ("Figure 3: samples", "samples", _figure_3),
        ("Table 1: complexity", "complexity", _table_1),
        ("The claims of speed", "claims", _claims),
    ):
        said = [*write(rows[name]), *picture(title, name)] if rows[name] else []
        page += [f"## {title}", *(said or [f"Not measured yet: run `{NAMES[name]}`."])]
    page.append("## Figure 1: the masks of a connectivity")
    page += picture("Figure 1", "network") or [f"Not plotted yet: run `{NAMES['network']}`."]
    return "\n\n".join(page) + "\n"


def _rows(path: Path) -> list[dict[str, Any]]:
    """The results of a file; those of the tables only if they have a test NLL."""
    rows = ResultsFile(path).rows()
    if path.stem not in ("uci", "mnist", "baselines", "masks"):
        return rows
    done = [row for row in rows if row["test_nll"] is not None]
    for row in done:
        if missing := [field for field in FIELDS if row[field] is None]:
            raise DataError(f"{path} has a result without {missing[0]!r}: reproduce it, or remove it.")
    return done


def _table_4(rows: Sequence[Row]) -> list[str]:
    sets, here = published.UCI_SETS, {(row["dataset"], row["row"]): row for row in rows}
    models = [*(model for model in BASELINES if any(row == model for _, row in here)), *OURS]
    notes = ["The best of each column is bold; ≈ is an estimate, ≤ an upper bound; the interval includes their error."]
    lines: list[tuple[str, str, list[tuple[float, str] | None]]] = []
    for model, numbers in published.UCI.items():
        halves = list(published.INTERVALS.get(model, [None] * len(sets)))
        for (who, name), nll in published.SUPPLEMENT.items():
            if who == model:
                place = sets.index(name)
                other, own = _interval(nll, halves[place]), f"{numbers[place]:.2f}"
                notes.append(f"The paper's supplement has {other} for {model} on {name}, its Table 4 {own}.")
                halves[place] = None
        lines.append((model, "paper", [(nll, _interval(nll, half)) for nll, half in zip(numbers, halves, strict=True)]))
    for model in models:
        found = [here.get((name, model)) for name in sets]
        lines.append((model, "here", [None if row is None else (row["test_nll"], _nll(row)) for row in found]))
    best = [min(round(cell[0], 2) for _, _, cells in lines if (cell := cells[place])) for place in range(len(sets))]

    def shown(cell: tuple[float, str] | None, least: float) -> str:
        return "" if cell is None else f"**{cell[1]}**" if round(cell[0], 2) == least else cell[1]

    body = [[model, whose, *map(shown, cells, best)] for model, whose, cells in lines]
    empty = [name for name in sets if name in published.ABSENT and not any(each == name for each, _ in here)]
    notes += [f"Our rows of {name} are empty: {published.ABSENT[name]}." for name in empty]
    return [
        _markdown(("model", "from", *sets), body, right=range(2, 2 + len(sets))),
        " ".join(notes),
        *_gap([(name, here.get((name, "ours")), here.get((name, "any-order"))) for name in sets]),
        *_details([here[name, model] for name in sets for model in models if (name, model) in here], "uci"),
    ]


def _table_6(rows: Sequence[Row]) -> list[str]:
    here = {row["row"]: row for row in rows if row["dataset"] == MNIST_SET}
    numbers = [published.MNIST[model] for model in published.MNIST_TRACTABLE]
    exact = [row["test_nll"] for row in here.values() if (row.get("kind") or "exact") == "exact"]
    best = min(round(nll, 2) for nll in [*numbers, *exact])

    def bold(nll: float, text: str) -> str:
        return f"**{text}**" if round(nll, 2) == best and not text.startswith(("≈", "≤")) else text

    body = []
    for model in (*published.MNIST, *(each for each in OURS if each not in published.UCI)):
        theirs, mine = "", here.get(model)
        if model in published.MNIST:
            nll = published.MNIST[model]
            theirs = _interval(nll, published.MNIST_INTERVALS.get(model))
            theirs = bold(nll, theirs) if model in published.MNIST_TRACTABLE else f"≈ {theirs}"
        ours = ["", "", ""]
        if mine is not None:
            ours = [bold(mine["test_nll"], _nll(mine)), _units(mine), f"{_parameters(mine).get('max_epochs', '')}"]
        body.append([model, theirs, *ours])
    text = "The best exact number is bold; ≈ is an estimate, ≤ an upper bound. "
    text += f"The paper's MADE has {WIDTH} units in each layer"
    sizes = [_parameters(row)["hidden_sizes"] for model, row in here.items() if model.startswith("MADE")]
    if narrow := sorted({size for each in sizes for size in each if size != WIDTH}):
        who = "some rows have" if any(WIDTH in each for each in sizes) else "it has"
        text += f"; here {who} {_and(narrow)}, as the table says, and the two columns are not of the same model there"
    return [
        _markdown(("model", "paper", "here", "units here", "most epochs here"), body, right=(1, 2, 4)),
        f"{text}.",
        *(_valid_parts(row) for row in here.values() if row.get("valid_parts")),
        *_gap([(MNIST_SET, here.get("ours"), here.get("any-order"))]),
        *_details([here[model] for model in (*published.MNIST, *OURS) if model in here], "mnist"),
    ]


def _valid_parts(row: Row) -> str:
    """What the parts of a deep machine bring."""
    parts, estimate = row["valid_parts"], f", {row['valid_nll']:.2f} as estimated" * (row["kind"] == "estimate")
    said = (
        f"{parts['rbm']:.2f} as the RBM that it starts as, {parts['bound']:.2f} by the bound of both layers{estimate}"
    )
    return f"{row['row']} on validation rows: {said}."


def _gap(sets: Sequence[tuple[str, Row | None, Row | None]]) -> list[str]:
    """The cost of any-order models, where both rows are measured."""
    body = []
    for name, ours, other in sets:
        if ours is not None and other is not None:
            least, most = ours["test_nll"], other["test_nll"]
            orderings = describe_orderings(other["config"].get("parameters", {}))
            body.append([name, f"{least:.2f}", f"{most:.2f}", f"{100 * (most / least - 1):+.2f} %", orderings])
    said = (
        "The gap between the any-order model, which can condition on any columns, and ours, in percent of the NLL of "
        "ours, and the orderings in which whole rows were scored. A share of the updates used the natural one "
        "(`whole_rows`); all but a share used the scan of the image (`any_order`)."
    )
    table = _markdown(("set", "ours", "any-order", "gap", "orderings"), body, right=(1, 2, 3))
    return [said, table] if body else []


def describe_orderings(parameters: Mapping[str, Any]) -> str:
    """The orderings in which an any-order model scores whole rows."""
    count = parameters.get("evaluation_masks", parameters.get("orderings", 1 if "hidden_size" in parameters else None))
    if count is None:
        return ""
    if parameters.get("ordering") == "walk":
        return "a scan of the image" if count == 1 else f"{count} scans of the image"
    natural = parameters.get("ordering") == "natural"
    random = "a random one" if count - natural == 1 else f"{count - natural} random ones"
    return ", ".join([*["the natural one"] * natural, *[random] * (count > natural)])


def _details(rows: Sequence[Row], name: str) -> list[str]:
    """How each number was produced."""
    body = []
    for row in rows:
        facts = [f"{row['valid_nll']:.2f}", _nll(row), f"{row['epochs']}", f"{row['seconds']:.0f}", f"{row['seed']}"]
        tried = f"{len(row.get('tried') or [None])}"
        words = [str(row["config"].get("name", "")), str(row.get("budget") or ""), tried, str(row["masks"])]
        command = f"`{row['command']}`" if row.get("command") else ""
        body.append([row["dataset"], row["row"], *words, *facts, row["commit"] or "", command])
    head = ("set", "row", "configuration", "budget", "tried", "masks", "valid NLL", "test NLL", "epochs", "seconds")
    said = (
        f"How our numbers were produced; all parameters are in `results/{name}.json`, those of the other systems in "
        "`results/baselines.json`. Epochs and seconds are those of the selected configuration, summed over networks."
    )
    table = _markdown((*head, "seed", "commit", "command"), body, right=range(4, 11))
    return [said, table] if body else []


def _layers(rows: Sequence[Row]) -> list[str]:
    here = {row["row"]: row for row in rows if row["dataset"] == MNIST_SET}
    body, said = [], []
    for masks in ("1 mask", "32 masks"):
        names = [f"MADE {layers}hl ({masks})" for layers in (1, 2)]
        theirs, (one, two) = [published.MNIST[name] for name in names], [here.get(name) for name in names]
        mine = ("" if row is None else _nll(row) for row in (one, two))
        body.append([masks, *(f"{nll:.2f}" for nll in theirs), *mine])
        if one is None or two is None:
            said.append(f"With {masks}, not both are measured here yet.")
        elif {_units(one)} != set(_units(two).split(" x ")):
            sizes = f"one layer has {_units(one)} units here, and two have {_units(two)}"
            said.append(f"With {masks}, {sizes}: no comparison.")
        else:
            gain, wide = one["test_nll"] - two["test_nll"], (one["ci95"] or 0) + (two["ci95"] or 0)
            said.append(
                f"With {masks}, two layers are {abs(gain):.2f} nats {'better' if gain > 0 else 'worse'} here"
                f"{' (the intervals overlap)' if abs(gain) < wide else ''}, and {abs(theirs[0] - theirs[1]):.2f} "
                f"{'better' if theirs[0] > theirs[1] else 'worse'} in the paper."
            )
    head = ("masks", "1 layer, paper", "2 layers, paper", "1 layer, here", "2 layers, here")
    claim = '"When more than four orderings were used, the deeper variant of MADE always yielded better results."'
    return [f"The paper: {claim}", _markdown(head, body, right=range(1, 5)), " ".join(said)]


def _figure_2(rows: Sequence[Row]) -> list[str]:
    points = {(row["masks"], row["config"]["batch_size"], row["dataset"], _units(row)): row for row in rows}
    parts = []
    for dataset, units in sorted({key[2:] for key in points}):
        some = {key[:2]: row for key, row in points.items() if key[2:] == (dataset, units)}
        batches, most = sorted({key[1] for key in some}), {row["config"]["max_epochs"] for row in some.values()}
        body = [
            [f"{masks}", *(_nll(some[masks, batch]) if (masks, batch) in some else "" for batch in batches)]
            for masks in sorted({key[0] for key in some})
        ]
        epochs = sorted({row["epochs"] for row in some.values()})
        between = f"{epochs[0]} to {epochs[-1]}" if len(epochs) > 1 else f"{epochs[0]}"
        parts += [
            f"{dataset}, one hidden layer of {units} units, at most {_and(sorted(most))} epochs ({between} were run); "
            "only the number of masks and the batch size differ.",
            _markdown(("masks", *(f"batches of {each}" for each in batches)), body, right=range(len(batches) + 1)),
        ]
    return [*parts, "The paper plots this without numbers; according to its text, one layer is best at about 8 masks."]


def _figure_3(rows: Sequence[Row]) -> list[str]:
    return [
        f"{row['samples']} samples of `{row['config']['name']}` ({row['dataset']}, seed {row['seed']}), each row "
        f"of ten with its own mask, beside their nearest training rows, from which they differ in "
        f"{row['nearest']:.1f} columns on average; test rows differ in {row['nearest_of_test']:.1f} from theirs; "
        f"{row['copies'] or 'none'} of the samples {'is a copy' if row['copies'] == 1 else 'are copies'}."
        for row in rows
    ]


def _table_1(rows: Sequence[Row]) -> list[str]:
    parts = complexity_tables(rows)
    if rows[0].get("budget") == "quick":
        parts.append(f"These networks were tiny (--quick) and the times are meaningless: run `{NAMES['complexity']}`.")
    return parts


def complexity_tables(rows: Sequence[Row]) -> list[str]:
    """The results of Table 1: the paper's formulas, and the measured exponents."""
    formulas = [(row["row"], f"`{row['formula']}`", row["measured"] or "") for row in rows if "formula" in row]
    body = []
    for each in (row["series"] for row in rows if "series" in row):
        fixed = [f"{name} = {value}" for name, value in each["fixed"].items() if name in "DKLR"]
        power, seconds = "2^" if each["name"].startswith("2^") else "", each["seconds"]
        sizes = f"{power}{each['sizes'][0]} to {power}{each['sizes'][-1]}"
        times, exponent = f"{seconds[0]:.4f} to {seconds[-1]:.4f}", f"{each['exponent']:.2f} ± {each['stderr']:.2f}"
        rest = ", ".join([*fixed, *["direct"] * each["fixed"]["direct"]])
        body.append((each["name"], sizes, rest, times, exponent, f"{each['theory']:.2f}"))
    where = rows[0]["machine"]
    return [
        _markdown(("model", "time of an exact NLL", "measured below"), formulas),
        EXPONENTS,
        _markdown(("what grows", "from, to", "the rest", "seconds", "exponent, measured", "theory"), body),
        f"Measured on: {where['processor']}, {where['threads']} of {where['cores']} cores, {where['system']}, "
        f"Python {where['python']}, torch {where['torch']}.",
    ]


def _claims(rows: Sequence[Row]) -> list[str]:
    body = []
    for row in rows:
        ratio = f"{row['ratio']['median']:.1f} ({row['ratio']['low']:.1f} to {row['ratio']['high']:.1f})"
        times = ", ".join(f"{name} {seconds:.3f}" for name, seconds in row["medians"].items())
        body.append([row["row"], row["paper"], ", ".join(row["medians"]), ratio, times])
    head = ("work", "the paper, on a GPU", "compared", "times as fast", "seconds")
    said = (
        "784 columns; log p of 1000 rows; a step of 100 rows, 500 of which make an epoch. Times are medians of "
        "interleaved runs in one process, with quartiles in brackets: how many times as fast the first is as the "
        "second. [baselines.md](baselines.md#the-papers-claims-of-speed) explains why some claims do not hold here."
    )
    return [_markdown(head, body, right=(3,)), said]


def _nll(row: Row) -> str:
    return SIGNS[row.get("kind") or "exact"] + _interval(row["test_nll"], row["ci95"])


def _interval(nll: float, half: float | None) -> str:
    return f"{nll:.2f}" if half is None else f"{nll:.2f} ± {half:.2f}"


def _parameters(row: Row) -> dict[str, Any]:
    """The estimator's parameters, of one network or of an ensemble."""
    config: dict[str, Any] = row["config"]
    parameters: dict[str, Any] = config.get("parameters", config)
    return parameters


def _units(row: Row) -> str:
    parameters = _parameters(row)
    sizes = parameters.get("hidden_sizes") or [parameters.get("hidden_size", parameters.get("components", ""))]
    return " x ".join(map(str, sizes))


def _and(values: Iterable[object]) -> str:
    words = list(map(str, values))
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    rule = ["---:" if place in set(right) else "---" for place in range(len(head))]
    escaped = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *escaped))
