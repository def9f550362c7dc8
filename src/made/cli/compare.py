"""`made compare`: train several density estimators on the same rows, and compare their test likelihoods."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from made.cli.errors import command, usage
from made.cli.inputs import read_rows
from made.cli.options import DATA, VALID, option, page_option
from made.cli.pages import page_path, write_page
from made.cli.printing import mode, note, print_json, print_table, progress_lines, say
from made.cli.signals import signal_of
from made.display import visible
from made.errors import Interrupted

if TYPE_CHECKING:
    from made.baselines.protocol import Density
    from made.compare.result import BinaryRows, Result, Setting

MOST_CODED = 5  # columns whose coding is listed in a note


@command
def compare(
    data: DATA,
    models: Annotated[
        str | None,
        option(
            "Comma-separated names: bernoulli, mixture, fvsbn, nade, eonade, eonade2, made, made-masks, "
            "tied, rbm, dbn, dbm, darn, darn-noise; all; or package.module:Class, with fit and score_samples as "
            "in scikit-learn.",
            "the first nine, whose likelihoods are exact",
        ),
    ] = None,
    budget: Annotated[float, option("Minutes for training all models together; 0 for no limit.")] = 10,
    valid: VALID = None,
    test: Annotated[str | None, option("Test rows, like DATA.", "the test split, or a random tenth")] = None,
    out: Annotated[str | None, page_option("compare")] = None,
    seed: Annotated[int, option("Random seed.", min=0, max=2**31)] = 0,
) -> None:
    """Train several models on binary rows, and compare the likelihoods of test rows.

    Columns of two values, such as yes and no, are coded as 0 and 1.
    """
    if not 0 <= budget < float("inf"):
        raise usage(f"'--budget' should be a number of minutes, or 0 for no limit, not {budget}.")
    path = None if out is None and mode.json else page_path("compare", out, data)
    systems, titles = _systems(models, seed)

    from made import MADE
    from made.compare import evaluate
    from made.compare.result import Setting
    from made.errors import Diverged

    rows, notes = _rows(data, valid, test, seed)
    for each in notes:
        note(f"Note: {each}")
    sizes = {part: len(each) for part, each in rows.items()}
    columns, seconds = rows["train"].shape[1], 60 * budget or None
    setting = Setting(data=data, columns=columns, **sizes, seed=seed, budget=seconds, notes=tuple(notes))
    # Torch loads parts of itself on first use, which should count for no model: train a tiny one.
    MADE(hidden_sizes=(2,), evaluation_masks=1, max_epochs=1, random_state=0).fit([[0, 1], [1, 0]] * 10)
    results: list[Result] = []
    stopped = 0
    try:
        with _progress(len(systems), results) as (begin, done):
            parts = (rows["train"], rows["valid"], rows["test"])
            evaluate.compare(systems, *parts, budget=seconds, seed=seed, titles=titles, begin=begin, done=done)
    except KeyboardInterrupt as interrupted:
        stopped = signal_of(interrupted)
    if results:
        if path is not None:
            from made.compare.page import page

            write_page(path, page(results, setting))
        if mode.json:
            written = None if path is None else str(path)
            print_json(_facts(results, setting) | {"finished": not stopped, "page": written})
        else:
            _show(results, setting)
            note(f"The page is {path}.")
    if stopped:
        count = f": {len(results)} of {len(systems)} models were" if results else " before any model was"
        raise Interrupted(f"stopped{count} done.", stopped)
    if all(each.error for each in results):
        raise Diverged("none of the models has an NLL.")


def _facts(results: Sequence[Result], setting: Setting) -> dict[str, Any]:
    """The outcome of a comparison, for JSON."""
    from dataclasses import asdict

    from made.compare.conclusions import differences, overlaps, ranked, sentences

    order = ranked(results)
    return {
        **asdict(setting),
        "unit": "nats",
        "models": [each.facts() for each in order],
        "best": None if order[0].error else order[0].name,
        "differences": [asdict(each) for each in differences(results)],
        "overlaps": overlaps(results),
        "conclusions": sentences(results, setting.test),
    }


def _show(results: Sequence[Result], setting: Setting) -> None:
    from made.compare.conclusions import decimals, ranked, sentences
    from made.compare.page import duration, speed

    order = ranked(results)
    places = decimals([each.ci95 for each in order])
    numbers = ["NLL and 95 %\ninterval", "seconds\nto train", "rows\nscored/s", "samples\n/s", "parameters"]
    lines = [
        [each.name, "none"]
        if each.error
        else [
            each.name,
            f"{each.shown(places)} ± {each.ci95:.{places}f}",
            each.known,
            duration(each.seconds) + ("*" if each.stopped else ""),
            speed(each.rows_per_second),
            speed(each.samples_per_second) or "none",
            f"{each.parameters:,}" if each.parameters else "not known",
        ]
        for each in order
    ]
    title = f"Test NLL of {setting.data} in nats (lower is better)"
    columns = ["model", numbers[0], "likelihood", *numbers[1:]]
    print_table(title, columns, lines, right=numbers, simple=True, least_width=120)
    kinds = {each.kind for each in order}
    for mark, there in (
        ("* training reached its time limit", any(each.stopped for each in order)),
        ("≈ an estimate; its standard error (s.e.) is in the interval, too", "estimate" in kinds),
        ("≤ an upper bound: the true NLL is this or lower", "bound" in kinds),
    ):
        if there:
            say(mark)
    say("")
    for sentence in sentences(results, setting.test):
        say(sentence)


def _systems(models: str | None, seed: int) -> tuple[dict[str, Density], dict[str, str]]:
    """The unfitted models and their titles. Those without a time limit come last, so that others have had theirs."""
    from made.baselines import SYSTEMS

    exact = [name for name, system in SYSTEMS.items() if system.exact]
    words = exact if models is None else [word.strip() for word in models.split(",") if word.strip()]
    if "all" in words:
        words = [*SYSTEMS, *(word for word in words if word != "all")]
    if unknown := [word for word in words if word not in SYSTEMS and ":" not in word]:
        raise usage(
            f"'--models': there is no {unknown[0]!r}; the names are {', '.join(SYSTEMS)}; or package.module:Class."
        )
    if not words:
        raise usage(f"'--models' should have at least one name, of {', '.join(SYSTEMS)}.")
    # In the order of SYSTEMS: the fast ones come first, and leave time to others.
    systems = {name: system.factory(seed) for name, system in SYSTEMS.items() if name in words}
    titles = {name: SYSTEMS[name].title for name in systems}
    for word in dict.fromkeys(words):
        if word not in SYSTEMS:
            systems[word], titles[word] = _foreign(word, seed), word.rpartition(":")[2]
    return systems, titles


def _foreign(word: str, seed: int) -> Density:
    """A model of the user, by its module and class."""
    from importlib import import_module

    module, _, name = word.partition(":")
    sys.path.insert(0, os.getcwd())  # the user's module may be in the working directory
    try:
        entered = getattr(import_module(module), name)()
        if "random_state" in getattr(entered, "get_params", dict)():
            entered.set_params(random_state=seed)
    except Exception as error:  # foreign code may raise anything
        raise usage(f"'--models': {word} cannot be constructed: {type(error).__name__}: {error}.") from None
    finally:
        sys.path.pop(0)
    if hasattr(entered, "fit") and hasattr(entered, "score_samples"):
        from made.baselines.scikit import Scikit

        return Scikit(entered)
    if all(hasattr(entered, method) for method in ("fit", "log_prob", "sample")):
        density: Density = entered
        return density
    raise usage(f"'--models': {word} should have the methods fit and score_samples, or fit, log_prob and sample.")


def _rows(data: str, valid: str | None, test: str | None, seed: int) -> tuple[dict[str, BinaryRows], list[str]]:
    """The rows ``train``, ``valid`` and ``test``, and notes about them."""
    from made.compare.data import split, zeros_and_ones

    parts: dict[str, Any] = _own_parts(data) or {"train": read_rows(data, "train")[0]}
    for part, source in (("valid", valid), ("test", test)):
        if source is not None:
            parts[part] = read_rows(source, part)[0]
    sources = {"train": data, "valid": valid or data, "test": test or data}
    called = {part: data if len(parts) == 1 else f"{sources[part]} ({part})" for part in parts}
    coded, meanings = zeros_and_ones({called[part]: rows for part, rows in parts.items()})
    rows, notes = dict(zip(parts, coded, strict=True)), []
    if meanings:
        spelt = [f"{label}: {low} and {high}" for label, (low, high) in list(meanings.items())[:MOST_CODED]]
        more = f"; and {len(meanings) - MOST_CODED} more columns" if len(meanings) > MOST_CODED else ""
        notes.append(f"coded as 0 and 1, in sorted order: {'; '.join(spelt)}{more}.")
    if missing := [part for part in ("valid", "test") if part not in rows]:
        every = rows["train"]
        drawn = split(len(every), len(missing), seed)
        rows |= {part: every[which] for part, which in zip(["train", *missing], drawn, strict=True)}
        words = {"valid": "for validation (or give --valid)", "test": "for testing (or give --test)"}
        counts = " and ".join(f"{len(rows[part]):,} {words[part]}" for part in missing)
        notes.append(f"of the {len(every):,} rows of {data}, {counts} are drawn at random, with seed {seed}.")
    return rows, notes


def _own_parts(data: str) -> dict[str, Any] | None:
    """The splits of a named dataset, or of an archive of the same form."""
    from made.io import datasets
    from made.io.read import read, shapes

    path = Path(data)
    if path.is_file() and path.suffix.lower() == ".npz" and set(datasets.SPLITS) <= shapes(path).keys():
        return {part: read(f"{data}:{part}") for part in datasets.SPLITS}
    if data == "-" or path.exists() or path.suffix or ":" in data or not datasets.known(data):
        return None
    found = datasets.load(data)
    return {part: getattr(found, part) for part in datasets.SPLITS}


@contextmanager
def _progress(
    count: int, results: list[Result]
) -> Iterator[tuple[Callable[[str, float | None], None], Callable[[Result], None]]]:
    """Keep each result, with a line about it on standard error, and a clock if that is a terminal."""
    from rich.markup import escape
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), TimeElapsedColumn(), TextColumn("{task.fields[most]}"))
    with progress_lines(SpinnerColumn(), *columns, transient=True) as (progress, write):
        task, begun = progress.add_task("", total=None, most=""), 0

        def begin(name: str, allowed: float | None) -> None:
            nonlocal begun
            begun += 1
            most = "" if allowed is None else f"of at most {int(allowed) // 60}:{int(allowed) % 60:02} to train"
            progress.reset(task, description=escape(visible(f"{name} ({begun} of {count})")), most=most)

        def done(result: Result) -> None:
            results.append(result)
            nll = "" if result.error else f"NLL {result.shown(3)} ± {result.ci95:.3f}, {result.known}"
            write(f"{result.name}: {result.error or f'{nll}; trained for {result.seconds:.1f} s'}")

        yield begin, done
