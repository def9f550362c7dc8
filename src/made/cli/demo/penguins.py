"""The first part of `made demo`: a table with text, numbers and missing values."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from made.cli.column_table import describe_columns, print_columns
from made.cli.pages import page_path, write_page
from made.cli.printing import mode, print_json, print_table, say

if TYPE_CHECKING:
    import pyarrow as pa

    from made.estimator import MADE

EPOCHS = 80
SHOWN = 5  # rows of each table that is printed
QUESTIONS = (
    "species = Gentoo | flipper_length_mm > 205",
    "sex = male | species = Adelie and body_mass_g > 3800",
    "bill_length_mm > 45 | species = Chinstrap",
)


def demo_penguins(out: Path, seed: int) -> None:
    """Learn the table, fill its missing values, find its oddest rows, answer questions, write a report."""
    from made import MADE
    from made.io.datasets import table_file
    from made.io.read import read
    from made.io.write import Writer
    from made.report.measure import measure
    from made.report.page import page

    path, folder, start = page_path("report", str(out / "report.html"), "penguins"), out / "model", time.perf_counter()
    rows: pa.Table = read(str(table_file("penguins")))
    model = MADE(max_epochs=EPOCHS, random_state=seed, verbose=int(mode.progress)).fit(rows)
    model.save(folder)
    learned = time.perf_counter() - start
    filled = model.impute(rows, strategy="mean")
    with Writer(str(out / "filled.csv")) as writer:
        writer.write(filled)
    # The columns without a value, by row.
    absent = {row: [name for name, value in each.items() if value is None] for row, each in enumerate(rows.to_pylist())}
    missing = {row: names for row, names in absent.items() if names}
    count = sum(map(len, missing.values()))
    report = measure(model.model_, rows, top=SHOWN, seed=seed, name=str(folder), data="penguins")
    write_page(path, page(report))
    columns, answers = describe_columns(model.model_.schema, rows), [_answer(model, rows, each) for each in QUESTIONS]
    seconds = time.perf_counter() - start
    if mode.json:
        facts = {
            "dataset": "penguins",
            "rows": rows.num_rows,
            "columns": columns,
            "missing": count,
            "epochs": model.n_epochs_,
            "valid_nll": model.valid_nll_,
            "filled": [
                {"row": row, **{name: filled[name][row].as_py() for name in names}} for row, names in missing.items()
            ],
            "oddest": [{"row": each.row, "log_prob": each.log_prob, "values": each.values} for each in report.odd],
            "answers": answers,
            "model": str(folder),
            "filled_table": str(out / "filled.csv"),
            "page": str(path),
            "seed": seed,
            "seconds": seconds,
        }
        print_json(facts)
        return
    say(f"Palmer penguins: {rows.num_rows} rows; the kind of each column was inferred:")
    print_columns(columns, model.model_.schema)
    say(f"Learned in {learned:.0f} s: {model.n_epochs_} epochs. The model is in {folder}.\n")
    lines = []
    for row in sorted(missing, key=lambda row: (-len(missing[row]), row))[:SHOWN]:
        values = {name: f"{name}={_short(filled[name][row].as_py())}" for name in filled.column_names}
        known = [text for name, text in values.items() if name not in missing[row]]
        lines.append((str(row), ", ".join(known), ", ".join(values[name] for name in missing[row])))
    title = f"The {count} missing values are filled, given the rest of their rows:"
    _print(title, ["row", "known", "filled in"], lines)
    say(f"The filled table is {out / 'filled.csv'} (made impute).\n")
    odd = [(str(each.row), f"{each.log_prob:.1f}", ", ".join(map(_reason, each.reasons[:2]))) for each in report.odd]
    _print("The oddest rows, and likelier values given the rest (made explain):", ["row", "log p", "odd"], odd)
    shares = [f"{each['rows'] / each['of']:.2f} ({each['rows']} of {each['of']})" for each in answers]
    asked = [
        (each["question"], f"{each['probability']:.2f}", share) for each, share in zip(answers, shares, strict=True)
    ]
    _print("Three questions, and how often it is so in the table:", ["P(...)", "model", "table"], asked)
    say(f"The report page is {path} ({seconds:.0f} s in all). Ask the model yourself:")
    say(f'  made ask {folder} "island = Dream | species = Adelie and sex = female"')
    say(f"  made sample {folder} -n 5 --given species=Gentoo\n  made predict {folder} penguins --target sex")


def _answer(model: MADE, rows: pa.Table, question: str) -> dict[str, Any]:
    """A question's answer by the model, and the frequency in the table."""
    from made.ask.parser import parse

    answer = model.probability(question)
    return {
        "question": str(parse(question, model.model_.schema.fields)),
        "probability": answer.probability,
        "standard_error": answer.standard_error,
        "answer": str(answer),
        "rows": _count(rows, question.replace("|", " and ")),
        "of": _count(rows, question.partition("|")[2]),
    }


def _count(rows: pa.Table, condition: str) -> int:
    """How many rows fulfil comparisons joined by ``and``; a missing value fulfils none."""
    import pyarrow.compute as pc

    for part in condition.split(" and "):
        name, sign, value = part.split()
        rows = rows.filter(pc.greater(rows[name], float(value)) if sign == ">" else pc.equal(rows[name], value))
    return int(rows.num_rows)


def _print(title: str, columns: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    print_table(title, columns, lines, simple=True, title_justify="left")


def _reason(reason: Any) -> str:
    likeliest = "" if reason.likeliest in (None, reason.value) else f" (likeliest: {_short(reason.likeliest)})"
    return f"{reason.column}={_short(reason.value)}{likeliest}"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
