"""`python -m benchmarks.tables_page`: generates docs/tables-measured.md from results/tables.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.binary import PAPER
from benchmarks.binary import SETS as BINARY
from benchmarks.filling import FILLERS, wins
from benchmarks.measures import LITTLE
from benchmarks.synthesis import PUBLISHED
from benchmarks.tables_data import LABELS, SYNTHESIS
from benchmarks.tables_targets import Results, targets

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "tables.json"
PAGE = ROOT / "docs" / "tables-measured.md"
BESIDE = ("made", "LightGBM")
LABELLERS = ("made", "LightGBM", "logistic regression")
LOSSES = 3  # columns of a table that are named where we lose most

INTRODUCTION = """# Tables, measured

Generated from `results/tables.json`, which `python -m benchmarks.tables` measures (with `MADE_TABLES`,
`MADE_SYNTHESIS`, `MADE_DATA` and `MADE_DEBD` set); `python -m benchmarks.tables_page` regenerates the page, and a test
checks that it is up to date. One `MADE` with default parameters for each split of a table answers all questions here,
beside a specialist for each question. Nothing was selected by test rows.

Each table is split at random into four fifths for training and one fifth for testing. Figures are means over splits:
several for small tables, one for the others.
"""

SETTINGS = """## How it was measured

- Which columns are discrete is a rule of this benchmark: text, truth values, or at most 20 distinct numbers. RMSE and
  pinball loss are in standard deviations of the column's training rows.
- LightGBM: a model for each column, learning rate 0.05, up to 2,000 rounds, stopped after 50 without progress on a
  random tenth of the training rows; otherwise its defaults; text as categories. Intervals: a model for each quantile.
  Logistic regression: one-hot text, standardized numbers, missing values imputed with mean or mode.
- A ratio is the geometric mean over the columns of (ours + 0.01) / (LightGBM's + 0.01), so below 1 we are better.
- Short questions: P(a value of one column given a value of another), everything else unknown, for all ordered pairs of
  discrete columns and all values with at least 50 test rows. An error is the distance to the frequency among test rows
  beyond one standard error of that frequency. The training rows' own frequencies answer the same questions: where
  these are far off, too, it is by chance of the test rows. "By chance" is the mean error of the true probabilities.
- Calibration: expected calibration error of the most likely value, 15 bins of equal width, the mean over columns.
- Filling: values of test rows are removed at random, the same ones for all tools. The others see training rows and
  incomplete test rows together, in 4 rounds (IterativeImputer: up to 10): LightGBM and ExtraTrees with 100 trees;
  IterativeImputer with Bayesian ridge regression; miceforest without mean matching. We impute the mode of a discrete
  column and the mean of a number. Standard errors are of the difference to ours, by resampling test rows 400 times.
- Likelihood: nats, the mean over test rows. A number on a grid of step s counts as log mass - log s, so that finding
  the grid is no gain by itself; discrete columns count as masses.
- Synthetic rows: as many as training rows. C2ST by XGBoost with default parameters, three stratified folds,
  2 - 2 max(AUC, 0.5): 1 is indistinguishable; missing values of real rows stay. MLE: the AUC of the label on test rows
  by XGBoost trained on synthetic rows (published figures: the best of a grid of its parameters). Published: TabPC's
  repository, models trained on GPUs.
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


def number(value: float | None, digits: int = 3) -> str:
    """A number, or nothing."""
    return "" if value is None else f"{value:.{digits}f}"


def facts(results: Results) -> str:
    """The tables: rows, columns, epochs and seconds."""
    head = ("table", "training rows", "test rows", "splits", "discrete", "numeric", "epochs", "fit, s", "processor, s")
    lines = []
    for name in results.names:
        first = results.rows[name][0]
        counts = [first["rows"], first["test_rows"], len(results.rows[name]), first["discrete"], first["numeric"]]
        times = [results.get(name, *keys) for keys in (["epochs"], ["fit", "seconds"], ["fit", "processor_seconds"])]
        lines.append([name, *map(str, counts), *(number(each, 0) for each in times)])
    return table(head, lines)


def conditionals(results: Results) -> str:
    """A column given all others, and where we lose."""
    head = ("table", "log loss: ratio", "better on", "made", "LightGBM", "RMSE: ratio", "better on", "made", "LightGBM")
    lines, lost = [], []
    for name in results.names:
        line = [name]
        for key in ("log_loss", "rmse"):
            found = [each["conditionals"].get(key) for each in results.rows[name]]
            if found[0] is None:
                line += [""] * 4
                continue
            better, columns = (sum(each[count] for each in found) for count in ("better", "columns"))
            line += [number(results.get(name, "conditionals", key, "ratio")), f"{better} of {columns}"]
            line += bold([results.get(name, "conditionals", key, each) for each in BESIDE], 3, min)
        lines.append(line)
        columns_of = results.rows[name][0]["conditionals"]["columns"]
        ratios = {column: (ours + LITTLE) / (theirs + LITTLE) for column, (ours, theirs) in columns_of.items()}
        worst = [each for each in sorted(ratios, key=lambda each: -ratios[each])[:LOSSES] if ratios[each] > 1]
        lost += [f"{name}: " + ", ".join(f"{each} ({ratios[each]:.2f})" for each in worst)] if worst else []
    text = "## A column given all others\n\n" + table(head, lines)
    return text + "\nWe lose most, by the same ratio, in " + "; ".join(lost) + ".\n" if lost else text


def short(results: Results) -> str:
    """Short questions, beside the training rows' frequencies."""
    head = ("table", "questions", "made, mean", "training rows, mean", "by chance", "made, worst")
    head = (*head, "training rows, worst", "made, beyond 0.05", "training rows, beyond 0.05")
    lines, worst = [], []
    for name in results.names:
        rows = [each for each in results.rows[name] if each.get("short")]
        if not rows:
            continue
        line = [name, str(sum(each["short"]["questions"] for each in rows))]
        for key, digits in (("mean", 4), ("worst", 3)):
            line += bold([results.get(name, "short", each, key) for each in ("made", "training rows")], digits, min)
            line += [number(results.get(name, "short", "chance", "mean"), 4)] if key == "mean" else []
        line += [str(sum(each["short"]["beyond 0.05"][side] for each in rows)) for side in (0, 1)]
        lines.append(line)
        worst.append(f"- {name}: {rows[0]['short']['worst_questions'][0]}")
    return "## Short questions\n\n" + table(head, lines) + "\nThe worst answers:\n\n" + "\n".join(worst) + "\n"


def labels(results: Results) -> str:
    """AUC and log loss of the label."""
    parts = []
    for key, title, best in (("auc", "AUC", max), ("log_loss", "Log loss", min)):
        lines = [
            [name, *bold([results.get(name, "label", each, key) for each in LABELLERS], 3, best)]
            for name in results.names
        ]
        parts.append(f"{title}:\n\n" + table(("table", *LABELLERS), lines))
    return "## The label\n\n" + "\n".join(parts)


def intervals(results: Results) -> str:
    """Intervals, and the calibration of categories."""
    head = ("table", "coverage", "of LightGBM", "pinball: ratio", "calibration error", "of LightGBM")
    lines = []
    for name in results.names:
        cover = [number(results.get(name, "intervals", each, "coverage")) for each in BESIDE]
        gaps = bold([results.get(name, "conditionals", "ece", each) for each in BESIDE], 4, min)
        lines.append([name, *cover, number(results.get(name, "intervals", "pinball_ratio")), *gaps])
    return "## 90 % intervals and calibration\n\n" + table(head, lines)


def filling(results: Results) -> str:
    """Missing values: all tools, and in which cells ours is the best or close to it."""
    rows = [row for name in results.names for row in results.rows[name] if "filling" in row]
    if not rows:
        return ""
    won = {cell[:3]: cell[3] for cell in wins(rows)}
    tools = ("made", *FILLERS)
    parts = [
        f"## Filling missing values\n\nBest or within one standard error: {sum(won.values())} of {len(won)} cells.\n"
    ]
    for key, title, best in (
        ("accuracy", "Accuracy of categories", max),
        ("error", "Error of numbers, in standard deviations", min),
    ):
        lines = []
        for name, share, what in won:
            if what == key:
                values = [results.get(name, "filling", share, each, key) for each in tools]
                mark = "yes" if won[name, share, what] else "no"
                lines.append([f"{name}, {share}", *bold(values, 3, best), mark])
        parts.append(f"{title}:\n\n" + table(("missing", *tools, "best or close"), lines))
    return "\n".join(parts)


def likelihoods(results: Results, before: dict[str, float]) -> str:
    """The likelihood now and before."""
    lines = []
    for name in results.names:
        pair = [results.get(name, "likelihood", "made"), before.get(name)]
        error = results.get(name, "likelihood", "standard_error")
        lines.append([name, *bold(pair, 2, max), number(error, 2)])
    return "## Likelihood\n\n" + table(("table", "made", "before", "standard error"), lines)


def synthesis(content: dict[str, Any]) -> str:
    """Synthetic rows, beside published models."""
    rows = {row["table"]: row for row in content.get("synthesis", [])}
    if not rows:
        return ""
    parts = ["## Synthetic rows\n"]
    for name, row in rows.items():
        found = row["synthesis"]
        ours = [f"{found['c2st']:.3f}", number(found["mle"]), f"{row['fit']['seconds']:.0f}"]
        lines = [["made", *ours], ["real rows", "", number(found["mle_real"]), ""]]
        for model, (c2st, mle, seconds) in PUBLISHED[name].items():
            lines.append([model, f"{c2st:.3f}", f"{mle:.3f}", "" if seconds is None else f"{seconds} (GPU)"])
        telling = ", ".join(f"{column} {value:.3f}" for column, value in list(found["columns"].items())[:5])
        parts.append(
            f"{name}:\n\n"
            + table(("model", "C2ST", "MLE", "training, s"), lines)
            + f"\nThe columns that tell most by themselves, by AUC: {telling}. {found['missing_rows']:.1%} of the real "
            "training rows have missing values. Copies of training rows: "
            f"{found['copies_synthetic']:.1%} of synthetic rows, {found['copies_test']:.1%} of test rows; median "
            f"distance to the nearest: {found['nearest_synthetic']:.2f}, {found['nearest_test']:.2f}.\n"
        )
    return "\n".join(parts)


def binary(content: dict[str, Any]) -> str:
    """Binary sets."""
    rows = sorted(content.get("binary", []), key=lambda row: BINARY.index(row["set"]))
    if not rows:
        return ""
    head = ("set", "columns", "made", "mixture of Bernoullis", "ours", "HCLT", "best published", "fit, s")
    lines = []
    for row in rows:
        others = [row["references"].get(name) for name in head[3:7]]
        shown = bold([row["test_nll"], *others], 2, min)
        lines.append([row["set"], str(row["columns"]), *shown, f"{row['fit']['seconds']:.0f}"])
    return (
        '## Binary sets\n\nTest NLL in nats, `MADE()` with defaults. The row "ours" is this repository\'s best recipe '
        "for the paper's table ([results.md](results.md)).\n\n" + table(head, lines)
    )


def missing(content: dict[str, Any], results: Results) -> str:
    """What has not been measured yet."""
    absent = [name for name in LABELS if name not in results.names]
    absent += [name for name in SYNTHESIS if name not in {row["table"] for row in content.get("synthesis", [])}]
    absent += [f"{name} (binary)" for name in BINARY if name not in {row["set"] for row in content.get("binary", [])}]
    return f"Not measured yet: {', '.join(absent)}.\n" if absent else ""


def page(content: dict[str, Any]) -> str:
    """The page."""
    results = Results(content["tables"])
    before = {row["table"]: row["likelihood"]["made"] for row in content.get("before", []) if row["seed"] == 0}
    checks = targets(content, before, PAPER)
    met = sum(check.met for check in checks)
    lines = [[check.what, check.aim, check.found, "met" if check.met else "**missed**"] for check in checks]
    parts = [
        INTRODUCTION,
        facts(results),
        missing(content, results),
        f"## Who wins\n\n{met} of {len(checks)} targets are met.\n\n"
        + table(("question", "target", "measured", ""), lines),
        conditionals(results),
        short(results),
        labels(results),
        intervals(results),
        filling(results),
        likelihoods(results, before),
        synthesis(content),
        binary(content),
        SETTINGS,
    ]
    machine = content["machine"]
    rows = [row for part in ("tables", "synthesis", "binary") for row in content.get(part, [])]
    commits = ", ".join(dict.fromkeys(row["commit"] for row in rows))
    parts.append(
        f"Measured on: {machine['processor']}, {machine['cores']} cores, {machine['system']}, Python "
        f"{machine['python']}, torch {machine['torch']}; commits {commits}.\n"
    )
    return "\n".join(part for part in parts if part)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
