"""`python -m benchmarks.tables`: one model for all queries of a real table, beside a specialised tool for each.

Commands:
    measure: fit `MADE` on one table (default parameters, or those of `--set`), measure what `--what` says, print it.
    compare: print the results of several runs of `measure --out` side by side.
    specialists: fit the specialists of tables that are not on disk yet (`benchmarks/specialists.py`).
    binary: fit `MADE` on binary sets, and print its NLL beside those of other models (`benchmarks/binary.py`).
    Without a command: measure everything that `results/tables.json` does not have of this version of the source, and
        write that file and `docs/tables-measured.md` after each table.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console

import made
from benchmarks import binary
from benchmarks.filling import fill_all
from benchmarks.measures import WHAT, lines, measure
from benchmarks.specialists import Specialists, cache_folder
from benchmarks.tables_data import LABELS, SYNTHESIS, Split, read
from benchmarks.tables_page import PAGE, RESULTS, page
from benchmarks.tables_targets import Results
from made import MADE
from made.io.atomic import atomic
from made.paper.provenance import machine_info, source_commit

__all__ = ["LABELS", "main", "read"]

# Small tables have few rows to test: their figures are means over several splits.
SPLITS = {"penguins": 5, "house_votes": 5}
ANSWERING = ("columns", "network", "queries", "tables", "training", "model")  # packages that answers depend on


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """The return value of a function, its seconds, and its processor seconds."""
    begin, busy = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = work()
    seconds = {"seconds": time.perf_counter() - begin, "processor_seconds": time.process_time() - busy}
    return result, {name: round(value, 3) for name, value in seconds.items()}


def parameters(settings: list[str]) -> dict[str, Any]:
    """Parameters of MADE from NAME=VALUE; a value is a Python literal, or text."""
    found = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    return found


def fit_or_load(
    split: Split, seed: int, settings: dict[str, Any], folder: Path | None
) -> tuple[MADE, dict[str, float]]:
    """A model of the training rows and the seconds of its training; kept in a folder, if one is given."""
    if folder is not None and (folder / "seconds.json").exists():
        return MADE.load(folder), json.loads((folder / "seconds.json").read_text())
    model, seconds = timed(lambda: MADE(**({"random_state": seed} | settings)).fit(split.train))
    if folder is not None:
        model.save(folder)
        (folder / "seconds.json").write_text(json.dumps(seconds))
    return model, seconds


def run(
    name: str,
    seed: int,
    what: list[str],
    *,
    valid: bool = False,
    settings: dict[str, Any],
    models: Path | None = None,
    sampling: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Fit a model to one split of a table (or load it from the folder ``models``), and measure it."""
    split = Split.of(name, seed, valid=valid)
    folder = None if models is None else models / name / split.part
    model, seconds = fit_or_load(split, seed, settings, folder)
    row: dict[str, Any] = {"table": name, "seed": seed, "part": "valid" if valid else "test", "commit": source_commit()}
    row |= {"settings": settings, "rows": len(split.train), "test_rows": len(split.test)}
    row |= {"discrete": len(split.discrete), "numeric": len(split.numeric)}
    row |= {"epochs": model.n_epochs_, "best_epoch": model.best_epoch_, "fit": seconds}
    found, seconds = timed(lambda: measure(model, split, what, seed, sampling))
    return row | found | {"measured": seconds}


def measure_command(words: list[str]) -> None:
    """Print measurements of one table: a few lines on standard error, and JSON on standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables measure")
    parser.add_argument(
        "--table", default="wa_churn", help=f"one of {', '.join(LABELS | SYNTHESIS)}; or several, by ','"
    )
    parser.add_argument(
        "--what", default=",".join(WHAT[:5]), help=f"which of {', '.join(WHAT)} (default: the first five)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the split and of the model (default: 0)")
    parser.add_argument("--valid", action="store_true", help="inner validation rows instead of test rows")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of MADE")
    parser.add_argument("--sample", action="append", default=[], metavar="NAME=VALUE", help="an argument of sample")
    parser.add_argument("--out", type=Path, help="a JSON file of results, to which this one is added")
    parser.add_argument("--models", type=Path, help="a folder that keeps the fitted models, or has them already")
    chosen = parser.parse_args(words)
    for name in chosen.table.split(","):
        row = run(
            name,
            chosen.seed,
            chosen.what.split(","),
            valid=chosen.valid,
            settings=parameters(chosen.set),
            models=chosen.models,
            sampling=parameters(chosen.sample),
        )
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        fit = row["fit"]
        console.print(
            f"{name}, seed {chosen.seed}, {row['part']} rows {row['test_rows']}: fitted in {fit['seconds']} s"
        )
        for line in lines(row):
            console.print("  " + line, markup=False)
        print(json.dumps(row), flush=True)
        add(row, chosen.out)


def specialists_command(words: list[str]) -> None:
    """Fit the specialists that are not on disk."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables specialists")
    parser.add_argument("--table", default=",".join(LABELS), help="default: the five tables")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--filling", action="store_true", help="fill missing values, instead of predicting columns")
    chosen = parser.parse_args(words)
    for name in chosen.table.split(","):
        for valid in (True, False):
            specialists = Specialists(Split.of(name, chosen.seed, valid=valid), chosen.seed)
            seconds = fill_all(specialists) if chosen.filling else specialists.precompute()
            part = "valid" if valid else "test"
            Console(stderr=True).print(f"{name}, seed {chosen.seed}, {part}: {seconds:.0f} s, in {cache_folder()}")


def binary_command(words: list[str]) -> None:
    """Print the NLL of binary sets: a line on standard error, and JSON on standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables binary")
    parser.add_argument("--data", default=",".join(binary.SETS), help=f"default: {', '.join(binary.SETS)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--valid", action="store_true", help="score validation rows only")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of MADE")
    parser.add_argument("--out", type=Path, help="a JSON file of results, to which this one is added")
    chosen = parser.parse_args(words)
    for name in chosen.data.split(","):
        found = binary.measure(name, chosen.seed, parameters(chosen.set), valid=chosen.valid)
        Console(stderr=True, highlight=False, soft_wrap=True).print(binary.line(found), markup=False)
        print(json.dumps(found), flush=True)
        add(found, chosen.out)


FIGURES = {
    "log loss ratio": ("conditionals", "log_loss", "ratio"),
    "RMSE ratio": ("conditionals", "rmse", "ratio"),
    "ECE": ("conditionals", "ece", "made"),
    "short, mean": ("short", "made", "mean"),
    "short, worst": ("short", "made", "worst"),
    "label AUC": ("label", "made", "auc"),
    "label log loss": ("label", "made", "log_loss"),
    "coverage": ("intervals", "made", "coverage"),
    "pinball ratio": ("intervals", "pinball_ratio"),
    "log-likelihood": ("likelihood", "made"),
    "C2ST": ("synthesis", "c2st"),
    "MLE": ("synthesis", "mle"),
    "fit, processor s": ("fit", "processor_seconds"),
}


def compare_command(words: list[str]) -> None:
    """Print the figures of the same tables and seeds in files that `measure --out` wrote, side by side."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables compare")
    parser.add_argument("files", type=Path, nargs="+")
    files = [json.loads(file.read_text()) for file in parser.parse_args(words).files]
    for key in dict.fromkeys((row["table"], row["seed"], row["part"]) for row in files[0]):
        print(f"{key[0]}, seed {key[1]}, {key[2]} rows")
        results = [
            Results([row for row in rows if (row["table"], row["seed"], row["part"]) == key][-1:]) for rows in files
        ]
        for name, keys in FIGURES.items():
            found = [each.get(key[0], *keys) if key[0] in each.names else None for each in results]
            if any(value is not None for value in found):
                print(f"  {name:18}" + "".join(f"{'' if value is None else f'{value:.4f}':>12}" for value in found))


def add(row: dict[str, Any], out: Path | None) -> None:
    """Add a result to a JSON file."""
    if out is not None:
        rows = json.loads(out.read_text()) if out.exists() else []
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps([*rows, row], indent=1) + "\n")


def everything(words: list[str]) -> None:
    """Measure what the results do not have of this version of the source, and regenerate the page after each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument("--only", default="tables,synthesis,binary", help="parts (default: tables,synthesis,binary)")
    parser.add_argument("--names", help="some tables or sets of these parts (default: all)")
    parser.add_argument("--missing", action="store_true", help="keep results of other versions of the source")
    parser.add_argument("--sample", action="append", default=[], metavar="NAME=VALUE", help="an argument of sample")
    parser.add_argument("--models", type=Path, help="a folder that keeps the fitted models, or has them already")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the results go")
    chosen = parser.parse_args(words)
    known, sampling = read_results(chosen.out), parameters(chosen.sample)
    for part, name, seed in jobs(chosen.only.split(","), chosen.names.split(",") if chosen.names else None):
        rows = [row for row in known.get(part, []) if identity(part, row) == (name, seed)]
        if any(chosen.missing or row.get("source") == source_hash() for row in rows):
            continue
        if part == "binary":
            row = binary.measure(name, seed, {})
        else:
            what = ["synthesis", "likelihood"] if part == "synthesis" else list(WHAT[:6])
            row = run(name, seed, what, settings={}, models=chosen.models, sampling=sampling)
        Console(stderr=True, highlight=False).print_json(json.dumps(row))
        keep(part, row | {"source": source_hash()}, chosen.out)


@cache
def source_hash() -> str:
    """A hash of the source that answers depend on: a result of another version is measured again."""
    folder = Path(made.__file__).parent
    answering = sorted(file for name in ANSWERING for file in (folder / name).rglob("*.py"))
    files = [*answering, folder / "estimator" / "made.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def jobs(parts: list[str], names: list[str] | None = None) -> list[tuple[str, str, int]]:
    """Everything to be measured: the part of the results, the name of the table or set, the seed."""
    found = [("tables", name, seed) for name in LABELS for seed in range(SPLITS.get(name, 1))]
    found += [("synthesis", name, 0) for name in SYNTHESIS] + [("binary", name, 0) for name in binary.SETS]
    return [each for each in found if each[0] in parts and (names is None or each[1] in names)]


def identity(part: str, row: dict[str, Any]) -> tuple[str, int]:
    """The name of the table or set of a result, and its seed."""
    return row["set" if part == "binary" else "table"], row["seed"]


def read_results(out: Path) -> dict[str, Any]:
    """The results so far."""
    return dict(json.loads(out.read_text())) if out.exists() else {}


def keep(part: str, row: dict[str, Any], out: Path) -> None:
    """Replace the result of the same table and seed, and regenerate the page."""
    content = read_results(out)
    order = [each[1:] for each in jobs([part])]
    rows = [each for each in content.get(part, []) if identity(part, each) != identity(part, row)]
    rows = sorted([*rows, row], key=lambda each: order.index(identity(part, each)))
    content = {"machine": machine_info(), "before": [], "tables": []} | content | {part: rows}
    with atomic(out) as file:
        file.write((json.dumps(content, indent=1) + "\n").encode())
    if out == RESULTS:
        PAGE.write_text(page(content))


def main() -> None:
    """One of the commands, or everything."""
    commands = {
        "measure": measure_command,
        "compare": compare_command,
        "specialists": specialists_command,
        "binary": binary_command,
    }
    words = sys.argv[1:]
    if words and words[0] in commands:
        commands[words[0]](words[1:])
    else:
        everything(words)


if __name__ == "__main__":
    main()
