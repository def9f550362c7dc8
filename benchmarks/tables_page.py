"""`python -m benchmarks.tables_page`: generates docs/tables-measured.md from results/tables.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "tables.json"
PAGE = ROOT / "docs" / "tables-measured.md"

TABLES = ("penguins", "house_votes", "attrition", "credit_data", "wa_churn")
IMPUTERS = ("made", "SimpleImputer", "KNNImputer", "IterativeImputer")
LABELLERS = ("made", "logistic regression", "gradient boosting", "gradient boosting, stopped early")
BOOSTERS = LABELLERS[2:]
# The aims: the largest ratio of errors, the largest gap in AUC to boosting, and the seconds for wa_churn.
ERROR, AUC, FIT, IMPUTE = 1.1, 0.02, 60, 5

INTRODUCTION = """# Tables, measured

Generated from `results/tables.json`, which `python -m benchmarks.tables` measures (with `MADE_TABLES` set); `python -m
benchmarks.tables_page` regenerates the page, and a test checks that it is up to date. One `MADE` with default
parameters for each split of a table answers all queries here. Nothing was selected by test rows.

Each table is split at random into four fifths for training and one fifth for testing. Figures are means over splits:
two for small tables, one for the others. In penguins and house_votes, which have few test rows, differences of a point
or two of accuracy are chance.
"""

SETTINGS = """## How it was measured

All tools use the column types that `MADE` infers from the training rows. Values of test rows are removed at random, the
same ones for all tools. Other settings of scikit-learn are its defaults:

- Imputation: one-hot categories, standardised numbers. SimpleImputer: the most frequent category, the mean. KNNImputer:
  5 neighbours among the training rows. IterativeImputer: Bayesian ridge regression, 10 rounds, on training rows and
  incomplete test rows together; one-hot without the first value of each category. Ours: `impute(strategy="mean")`.
- The error of numbers is the root mean squared error over the column's standard deviation, averaged over columns;
  accuracy is over all removed categories.
- Gradient boosting: HistGradientBoostingClassifier, 100 rounds; "stopped early" selects the best of 500 rounds by a
  tenth of the training rows, and is also used for each column. Text is one-hot. Logistic regression: missing values
  imputed with mean or mode, standardised numbers.
- Independent columns are of the same kinds as ours, each fitted alone. The Gaussian mixture has full covariances and 1
  to 32 components, selected by a tenth of the training rows; for it and for a `MADE` of the numbers alone, uniform
  noise of a column's resolution is added, so that all are densities.
- There are as many new rows as training rows. Distances: of columns, total variation of categories and
  Kolmogorov-Smirnov of numbers; of pairs, the difference of Cramér's V; averaged. The nearest training row is by
  standardised and one-hot columns, the median; a copy is a row at distance 0. The same is given for test rows, which
  are real.
"""


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column left-aligned, the others right-aligned."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *lines)) + "\n"


def bold(values: Sequence[float | None], digits: int, best: Callable[..., float]) -> list[str]:
    """Formatted numbers, the best in bold; empty for None."""
    shown = [None if value is None else f"{value:.{digits}f}" for value in values]
    known = [text for text in shown if text is not None]
    top = f"{best(map(float, known)):.{digits}f}" if known else ""
    return ["" if text is None else f"**{text}**" if text == top else text for text in shown]


class Results:
    """The results by table, averaged over splits."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.names = list(dict.fromkeys(row["table"] for row in rows))
        self.rows = {name: [row for row in rows if row["table"] == name] for name in self.names}

    def get(self, name: str, *keys: str) -> float | None:
        """The mean over splits of the value under these keys, or None."""
        found = []
        for value in self.rows[name]:
            for key in keys:
                value = value.get(key) if value is not None else None
            if value is not None:
                found.append(float(value))  # type: ignore[arg-type]
        return sum(found) / len(found) if found else None

    def shares(self, name: str) -> list[str]:
        return list(self.rows[name][0]["impute"])


def aims(results: Results) -> str:
    """Whether each table meets each aim, and by how much."""
    lines = []
    for name in results.names:
        accuracy, error = [], []
        for share in results.shares(name):
            right = {each: results.get(name, "impute", share, each, "accuracy") for each in IMPUTERS}
            off = {each: results.get(name, "impute", share, each, "error") for each in IMPUTERS}
            others = max(value for each, value in right.items() if each != "made" and value is not None)
            accuracy.append((right["made"] or 0.0) - others)
            known = [value for value in off.values() if value is not None]
            if known and off["made"] is not None:
                error.append(off["made"] / min(known))
        areas = [results.get(name, "label", each, "auc") or 0.0 for each in ("made", *BOOSTERS)]
        behind = max(areas[1:]) - areas[0]
        lines.append(
            [
                name,
                verdict([each >= 0 for each in accuracy], [f"{each:+.3f}" for each in accuracy]),
                verdict([each <= ERROR for each in error], [f"{each:.2f}" for each in error]) if error else "",
                verdict([behind <= AUC], [f"{-behind:+.3f}"]),
            ]
        )
    shares = ", ".join(results.shares(results.names[0]))
    words = (
        f"Imputation ({shares} of values missing): the accuracy of categories should be the best (shown: minus that of "
        f"the best other tool); the error of numbers at most {ERROR:g} times the best. Predicting the label: the AUC "
        f"at most {AUC:g} below the better gradient boosting.\n\n"
    )
    speed = ""
    if "wa_churn" in results.names:
        fit, busy = (results.get("wa_churn", "fit", key) or 0.0 for key in ("seconds", "processor_seconds"))
        longest = max(
            results.get("wa_churn", "impute", share, "made", "seconds") or 0.0 for share in results.shares("wa_churn")
        )
        met = verdict([fit < FIT], [f"{fit:.0f} s"])
        filled = verdict([longest < IMPUTE], [f"{longest:.1f} s"])
        speed = (
            f"\nSpeed: wa_churn should be fitted in less than {FIT} seconds: {met} ({busy:.0f} s of processor time on "
            f"one thread of a busy machine); and its test rows imputed in less than {IMPUTE}: {filled}.\n"
        )
    head = ("table", "accuracy of categories", "error of numbers", "AUC of the label")
    return "## Aims\n\n" + words + table(head, lines) + speed


def verdict(met: Sequence[bool], shown: Sequence[str]) -> str:
    """Met or missed, with the values."""
    word = "met" if all(met) else "missed" if not any(met) else f"missed {met.count(False)} of {len(met)}"
    return f"{word} ({', '.join(shown)})"


def page(content: dict[str, Any]) -> str:
    """The page."""
    results = Results(content["rows"])
    parts = [INTRODUCTION]
    head = ("table", "training rows", "test rows", "splits", "columns", "numeric columns", "epochs", "fit, seconds")
    facts = []
    for name in results.names:
        first = results.rows[name][0]
        counts = [first["rows"], first["test_rows"], len(results.rows[name]), first["columns"], first["numbers"]]
        epochs, busy = results.get(name, "epochs"), results.get(name, "fit", "processor_seconds")
        facts.append([name, *map(str, counts), f"{epochs:.0f}", f"{busy:.0f}"])
    missing = [name for name in TABLES if name not in results.names]
    parts.append(table(head, facts))
    if missing:
        parts.append(f"Not measured yet: {', '.join(missing)} (use `--tables {','.join(missing)}`).\n")
    parts.append(aims(results))

    lines = []
    for name in results.names:
        for share in results.shares(name):
            right = [results.get(name, "impute", share, each, "accuracy") for each in IMPUTERS]
            lines.append([f"{name}, {share}", *bold(right, 3, max)])
    parts.append("## Imputation\n\nAccuracy of categories:\n\n" + table(("missing", *IMPUTERS), lines))
    lines = []
    for name in results.names:
        for share in results.shares(name):
            off = [results.get(name, "impute", share, each, "error") for each in IMPUTERS]
            if off[0] is not None:
                lines.append([f"{name}, {share}", *bold(off, 3, min)])
    parts.append("Error of numbers, in standard deviations:\n\n" + table(("missing", *IMPUTERS), lines))
    lines = []
    for name in results.names:
        for share in results.shares(name):
            busy = [results.get(name, "impute", share, each, "processor_seconds") or 0.0 for each in IMPUTERS]
            lines.append([f"{name}, {share}", *(f"{each:.2f}" for each in busy)])
    parts.append(
        "Processor seconds; those of the other tools include fitting, ours do not:\n\n"
        + table(("missing", *IMPUTERS), lines)
    )

    each_column = ("made", "gradient boosting for each column")
    lines = [
        [name, *bold([results.get(name, "log_loss", each) for each in each_column], 3, min)] for name in results.names
    ]
    parts.append(
        "## Predicting a column from all others\n\nMean log loss over the categorical columns: one model against one "
        "classifier for each column:\n\n" + table(("table", *each_column), lines)
    )
    for key, title, best in (("auc", "AUC", max), ("log_loss", "Log loss", min)):
        lines = [
            [name, *bold([results.get(name, "label", each, key) for each in LABELLERS], 3, best)]
            for name in results.names
        ]
        parts.append(f"{title} of the label:\n\n" + table(("table", *LABELLERS), lines))

    keys = ("made", "independent columns"), ("made, numbers", "Gaussian mixture, numbers")
    lines = []
    for name in results.names:
        pairs = [bold([results.get(name, "likelihood", each) for each in pair], 2, max) for pair in keys]
        lines.append([name, *pairs[0], *pairs[1]])
    parts.append(
        "## Likelihood\n\nMean log-likelihood of test rows in nats; higher is better:\n\n"
        + table(("table", *keys[0], *keys[1]), lines)
    )

    lines = []
    for name in results.names:
        found = {key: results.get(name, "synthetic", key) or 0.0 for key in results.rows[name][0]["synthetic"]}
        areas = [f"{found[f'auc, learned from {rows} rows']:.3f}" for rows in ("new", "real")]
        beside = [
            f"{found[f'{key}, new rows']:.{digits}f} / {found[f'{key}, test rows']:.{digits}f}"
            for key, digits in (("columns", 3), ("pairs", 3), ("nearest", 2), ("copies", 3))
        ]
        lines.append([name, " / ".join(areas), *beside])
    head = ("table", "AUC, trained on new / real", "columns", "pairs", "nearest training row", "copies")
    parts.append(
        "## New rows\n\nAUC of the label by gradient boosting trained on new rows and on real rows; distances to the "
        "training rows, of new rows / of test rows:\n\n" + table(head, lines)
    )
    machine = content["machine"]
    parts.append(
        SETTINGS + f"\nMeasured on: {machine['processor']}, {machine['cores']} cores, {machine['system']}, Python "
        f"{machine['python']}, torch {machine['torch']}, one thread, on a busy machine; commits "
        f"{', '.join(dict.fromkeys(row['commit'] for row in content['rows']))}.\n"
    )
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
