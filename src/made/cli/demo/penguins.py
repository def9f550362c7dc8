"""The first part of `made demo`: a table with text, numbers and missing values."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from made.cli.column_table import describe_columns, print_columns
from made.cli.html_pages import page_path, write_page
from made.cli.printing import cell, print_json, say

if TYPE_CHECKING:
    import pyarrow as pa

    from made.estimator import MADE

__all__ = ["demo_penguins"]

EPOCHS = 80
SHOWN = 5  # rows of each table that is printed
QUESTIONS = (
    "species = Gentoo | flipper_length_mm > 205",
    "sex = male | species = Adelie and body_mass_g > 3800",
    "bill_length_mm > 45 | species = Chinstrap",
)


def demo_penguins(out: Path, seed: int, as_json: bool, quiet: bool) -> None:
    """Learn the table, fill its missing values, find its oddest rows, answer questions, write a report."""
    from made import MADE
    from made.io.datasets import table_file
    from made.io.read import read
    from made.io.write import Writer
    from made.report.measure import measure
    from made.report.page import page as page_of

    page = page_path("report", str(out / "report.html"), "penguins")
    start = time.perf_counter()
    rows: pa.Table = read(str(table_file("penguins")))
    model = MADE(max_epochs=EPOCHS, random_state=seed, verbose=int(not (quiet or as_json))).fit(rows)
    model.save(out / "model")
    learned = time.perf_counter() - start
    filled = model.impute(rows, strategy="mean")
    with Writer(str(out / "filled.csv")) as writer:
        writer.write(filled)
    missing = _missing(rows)
    report = measure(model.model_, rows, top=SHOWN, seed=seed, name=str(out / "model"), data="penguins")
    write_page(page, page_of(report))
    answers = [_answer(model, rows, question) for question in QUESTIONS]
    seconds = time.perf_counter() - start
    if as_json:
        print_json(
            {
                "dataset": "penguins",
                "rows": rows.num_rows,
                "columns": describe_columns(model.model_.schema, rows),
                "missing": sum(len(names) for names in missing.values()),
                "epochs": model.n_epochs_,
                "valid_nll": model.valid_nll_,
                "filled": [
                    {"row": row, **{name: filled[name][row].as_py() for name in names}}
                    for row, names in missing.items()
                ],
                "oddest": [{"row": each.row, "log_prob": each.log_prob, "values": each.values} for each in report.odd],
                "answers": answers,
                "model": str(out / "model"),
                "filled_table": str(out / "filled.csv"),
                "page": str(page),
                "seed": seed,
                "seconds": seconds,
            }
        )
        return
    say(f"Palmer penguins: {rows.num_rows} rows; the kind of each column was inferred:")
    print_columns(describe_columns(model.model_.schema, rows), model.model_.schema)
    say(f"Learned in {learned:.0f} s: {model.n_epochs_} epochs. The model is in {out / 'model'}.\n")
    _print_filled(filled, missing)
    say(f"The filled table is {out / 'filled.csv'} (made impute).\n")
    _print_odd(report)
    _print_answers(answers)
    say(f"The report page is {page} ({seconds:.0f} s in all). Ask the model yourself:")
    say(f'  made ask {out / "model"} "island = Dream | species = Adelie and sex = female"')
    say(f"  made sample {out / 'model'} -n 5 --given species=Gentoo")
    say(f"  made predict {out / 'model'} penguins --target sex")


def _missing(rows: pa.Table) -> dict[int, list[str]]:
    """The names of the columns without a value, by row."""
    found: dict[int, list[str]] = {}
    for name in rows.column_names:
        for row, value in enumerate(rows[name].is_null().to_pylist()):
            if value:
                found.setdefault(row, []).append(name)
    return dict(sorted(found.items()))


def _answer(model: MADE, rows: pa.Table, question: str) -> dict[str, Any]:
    """A question's answer by the model, and the frequency in the table."""
    from made.ask.parser import parse

    query = parse(question, model.model_.schema.fields)
    answer = model.probability(question)
    given, both = _count(rows, question.partition("|")[2]), _count(rows, question.replace("|", " and "))
    return {
        "question": str(query),
        "probability": answer.probability,
        "standard_error": answer.standard_error,
        "answer": str(answer),
        "rows": both,
        "of": given,
    }


def _count(rows: pa.Table, condition: str) -> int:
    """How many rows fulfil comparisons joined by ``and``; a missing value fulfils none."""
    import pyarrow.compute as pc

    for part in condition.split(" and "):
        name, sign, value = part.split()
        if sign == ">":
            rows = rows.filter(pc.greater(rows[name], float(value)))
        else:
            rows = rows.filter(pc.equal(rows[name], value))
    return int(rows.num_rows)


def _table(title: str, *columns: str) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _print_filled(filled: pa.Table, missing: dict[int, list[str]]) -> None:
    from rich.console import Console

    count = sum(len(names) for names in missing.values())
    table = _table(f"The {count} missing values are filled, given the rest of their rows:", "row", "known", "filled in")
    for row in sorted(missing, key=lambda row: (-len(missing[row]), row))[:SHOWN]:
        values = {name: f"{name}={_short(filled[name][row].as_py())}" for name in filled.column_names}
        known = [text for name, text in values.items() if name not in missing[row]]
        table.add_row(str(row), cell(", ".join(known)), cell(", ".join(values[name] for name in missing[row])))
    Console().print(table)


def _print_odd(report: Any) -> None:
    from rich.console import Console

    table = _table("The oddest rows, and likelier values given the rest (made explain):", "row", "log p", "odd")
    for each in report.odd:
        reasons = [
            f"{reason.column}={_short(reason.value)}"
            + (f" (likeliest: {_short(reason.likeliest)})" if reason.likeliest not in (None, reason.value) else "")
            for reason in each.reasons[:2]
        ]
        table.add_row(str(each.row), f"{each.log_prob:.1f}", cell(", ".join(reasons)))
    Console().print(table)


def _print_answers(answers: list[dict[str, Any]]) -> None:
    from rich.console import Console

    table = _table("Three questions, and how often it is so in the table:", "P(...)", "model", "table")
    for each in answers:
        share = f"{each['rows'] / each['of']:.2f} ({each['rows']} of {each['of']})"
        table.add_row(cell(each["question"]), f"{each['probability']:.2f}", share)
    Console().print(table)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
