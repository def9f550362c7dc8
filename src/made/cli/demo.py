"""`made demo`: a demonstration on data that comes with the package."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from made.cli.column_table import describe_columns, print_columns
from made.cli.errors import command, fail, usage
from made.cli.options import option
from made.cli.pages import draw_pictures, page_path, write_page
from made.cli.printing import mode, print_error, print_json, print_table, say

if TYPE_CHECKING:
    import pyarrow as pa

    from made.estimator import MADE

PENGUINS_EPOCHS = 80
SHOWN = 5  # rows of each table that is printed
QUESTIONS = (
    "species = Gentoo | flipper_length_mm > 205",
    "sex = male | species = Adelie and body_mass_g > 3800",
    "bill_length_mm > 45 | species = Chinstrap",
)
DIGITS_EPOCHS = 200
MASKS = 10  # one for each row of the picture of digits


class DemoPart(StrEnum):
    """The parts of the demo."""

    penguins = "penguins"
    digits = "digits"


@command
def demo(
    part: Annotated[
        DemoPart,
        Argument(
            metavar="PART",
            help="penguins: learn a table and query it; digits: a small version of Figure 3 of the paper.",
        ),
    ] = DemoPart.penguins,
    out: Annotated[Path, option("Folder for the model and all other files.")] = Path("demo"),
    seed: Annotated[int, option("Random seed.", min=0, max=2**32 - 1)] = 0,
) -> None:
    """Learn a table of penguins, fill its missing values, explain odd rows, answer questions, and write a report.

    `made demo digits` trains on handwritten digits instead, compares the model with simpler ones, and draws new digits.
    Both take less than a minute on two cores.
    """
    from made.model.folder import check_replaceable, is_model

    check_replaceable(out / "model")
    for file in ("filled.csv", "samples.png"):
        if (out / file).exists() and not is_model(out / "model"):
            raise usage(f"'--out': {out / file} was not written by `made demo`: choose another folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise fail(f"'--out': cannot write to {out}: {error.strerror or error}.", 3) from None
    (_penguins if part is DemoPart.penguins else _digits)(out, seed)


def _penguins(out: Path, seed: int) -> None:
    """Learn the table, fill its missing values, find its oddest rows, answer questions, write a report."""
    from made import MADE
    from made.io.datasets import table_file
    from made.io.read import read
    from made.io.write import Writer
    from made.report.measure import measure
    from made.report.page import page

    path, folder, start = page_path("report", str(out / "report.html"), "penguins"), out / "model", time.perf_counter()
    rows: pa.Table = read(str(table_file("penguins")))
    model = MADE(max_epochs=PENGUINS_EPOCHS, random_state=seed, verbose=int(mode.progress)).fit(rows)
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
    columns, answers = (
        describe_columns(model.model_.schema, model.observed_),
        [_answer(model, rows, each) for each in QUESTIONS],
    )
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
    _print_rows(title, ["row", "known", "filled in"], lines)
    say(f"The filled table is {out / 'filled.csv'} (made impute).\n")
    odd = [(str(each.row), f"{each.log_prob:.1f}", ", ".join(map(_reason, each.reasons[:2]))) for each in report.odd]
    _print_rows("The oddest rows, and likelier values given the rest (made explain):", ["row", "log p", "odd"], odd)
    shares = [f"{each['rows'] / each['of']:.2f} ({each['rows']} of {each['of']})" for each in answers]
    asked = [
        (each["question"], f"{each['probability']:.2f}", share) for each, share in zip(answers, shares, strict=True)
    ]
    _print_rows("Three questions, and how often it is so in the table:", ["P(...)", "model", "table"], asked)
    say(f"The report page is {path} ({seconds:.0f} s in all). Ask the model yourself:")
    say(f'  made ask {folder} "island = Dream | species = Adelie and sex = female"')
    say(f"  made sample {folder} -n 5 --given species=Gentoo\n  made predict {folder} penguins --target sex")


def _answer(model: MADE, rows: pa.Table, question: str) -> dict[str, Any]:
    """A question's answer by the model, and the frequency in the table."""
    import numpy as np

    answer, given = model.probability(question), question.partition("|")[2]
    holds, among = (int(np.nansum(model.model_.satisfied(each, rows))) for each in (question, given))
    return {
        "question": answer.question,
        "probability": answer.probability,
        "standard_error": answer.standard_error,
        "answer": str(answer),
        "rows": holds,
        "of": among,
    }


def _print_rows(title: str, columns: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    print_table(title, columns, lines, simple=True, title_justify="left")


def _reason(reason: Any) -> str:
    likeliest = "" if reason.likeliest in (None, reason.value) else f" (likeliest: {_short(reason.likeliest)})"
    return f"{reason.column}={_short(reason.value)}{likeliest}"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _digits(out: Path, seed: int) -> None:
    """Train on handwritten digits, compare with simpler models, and draw new digits."""
    import torch

    from made import MADE, mean_and_interval
    from made.baselines.bernoulli import BernoulliMixture
    from made.io import datasets
    from made.paper import figure_samples
    from made.queries.ensemble import Ensemble
    from made.queries.sampling import sample

    data = datasets.digits()
    start = time.perf_counter()
    model = MADE(
        hidden_sizes=(500,),
        masks=MASKS,
        conditioning=False,
        dropout=0.25,
        learning_rate=5e-3,
        schedule="constant",
        weight_decay=0.01,
        average=0.0,
        batch_size=100,
        max_epochs=DIGITS_EPOCHS,
        patience=20,
        random_state=seed,
        verbose=int(mode.progress),
    ).fit(data.train, X_valid=data.valid)
    folder, picture = out / "model", out / "samples.png"
    model.save(folder)
    drawn = draw_pictures(model, folder, data.image)

    independent = BernoulliMixture(1, seed=seed).fit(data.train, data.valid)
    mixture = BernoulliMixture((10, 20, 40, 80, 160), seed=seed).fit(data.train, data.valid)
    log_probs = {
        "independent Bernoullis": independent.log_prob(data.test).values,
        f"mixture of {len(mixture.prior_)} Bernoullis": mixture.log_prob(data.test).values,
        f"MADE, {MASKS} masks": model.score_samples(data.test),
    }
    scores = {name: mean_and_interval(-torch.from_numpy(log_p)) for name, log_p in log_probs.items()}
    if drawn:
        numbers = [index // MASKS for index in range(100)]
        samples = sample(Ensemble(model.model_.network), 100, numbers=numbers, generator=seed).numpy()
        nearest = data.train[figure_samples.nearest(samples, data.train)]
        figure_samples.plot(samples, nearest, (8, 8), picture)

    seconds = time.perf_counter() - start
    if mode.json:
        rows = [{"model": name, "test_nll": nll, "ci95": half} for name, (nll, half) in scores.items()]
        facts = {"dataset": "digits", "rows": rows, "epochs": model.n_epochs_, "seed": seed, "seconds": seconds}
        print_json(facts | {"picture": str(picture) if drawn else None, "model": str(folder)})
        return
    print_table(
        "Test negative log-likelihood of 300 handwritten digits, in nats (lower is better)",
        ["model", "NLL", "95 % interval"],
        [(name, f"{nll:.2f}", f"± {half:.2f}") for name, (nll, half) in scores.items()],
        right=["NLL", "95 % interval"],
    )
    say(f"{model.n_epochs_} epochs, {seconds:.0f} s in all. The model is in {folder}; ask it:")
    say(f"  made evaluate {folder} digits:test\n  made sample {folder} -n 5")
    if drawn:
        say(f"100 new digits, a mask for each row, beside the nearest training rows: {picture}")
    else:
        print_error("No picture: install matplotlib (pip install 'made[plot]').")
