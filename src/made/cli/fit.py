"""`made fit`: learn the distribution of a table, and save the model in a folder."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from made.cli.column_table import describe_columns, print_columns
from made.cli.errors import command, usage, with_options
from made.cli.inputs import training_rows
from made.cli.options import FILES, RAY, VALID, flag, option
from made.cli.pages import draw_pictures
from made.cli.parsing import place, whole_number
from made.cli.printing import mode, note, print_json
from made.cli.process import quick_imports
from made.cli.signals import signal_of
from made.cli.training_options import parameters_in, value_of
from made.cli.workers import (
    check_worker,
    joined_workers,
    restarted,
    run_on_ray,
    run_workers,
    starts_workers,
)
from made.display import shortened
from made.distributed.environment import is_worker
from made.errors import Interrupted
from made.parameters import NETWORK, PARAMETERS, PRESETS, TRAINING, Parameter, defaults

if TYPE_CHECKING:
    from made.estimator import MADE
    from made.training.workers import Workers

TYPES: dict[str, Any] = {"float": float, "int": int, "flag": bool, "auto flag": bool, "seed": int, "verbose": int}


def _option(name: str, parameter: Parameter) -> Any:
    """The annotation of an option for a parameter of the estimator: None if it is not given."""
    kebab = name.replace("_", "-")
    both = [f"--{kebab}/--no-{kebab}"]
    words = {"flag": both, "auto flag": both, "seed": ["--seed", "--random-state"]}.get(parameter.kind, [f"--{kebab}"])
    default = defaults()[name]
    shown = ",".join(map(str, default)) if isinstance(default, tuple) else str(default).lower()
    shown = {"seed": "0", "verbose": "1"}.get(parameter.kind, shown)
    text = parameter.help if not parameter.choices else f"{parameter.help} One of {', '.join(parameter.choices)}."
    unset = default is None and parameter.kind != "seed"
    section = "Network" if name in NETWORK else "Training" if name in TRAINING else "Table and computation"
    option = Option(*words, help=text, show_default=False if unset else shown, rich_help_panel=section)
    return Annotated[TYPES.get(parameter.kind, str) | None, option]


@partial(with_options, options={name: _option(name, each) for name, each in PARAMETERS.items()}, default=None)
@command
def fit(
    data: FILES,
    out: Annotated[Path, option("Folder for the model.", False)],
    valid: VALID = None,
    config: Annotated[Path | None, option("TOML file of parameters; options override it.", "none")] = None,
    preset: Annotated[
        str | None,
        option(f"Named set of parameters, overridden by --config and options. One of {', '.join(PRESETS)}.", "none"),
    ] = None,
    resume: Annotated[bool, flag("--resume", "Resume the training in --out.")] = False,
    overwrite: Annotated[bool, flag("--overwrite", "Replace the model in --out.")] = False,
    image: Annotated[str | None, option("Shape of the images, if rows are images, such as 28x28.", "none")] = None,
    workers: Annotated[
        int | None,
        option(
            "Number of processes that train together, on this machine or on the cluster of --ray.", "1", min=1, max=256
        ),
    ] = None,
    ray: RAY = None,
    **options: Any,
) -> None:
    """Learn the distribution of a table, and save the model in a folder.

    The folder holds checkpoints during training: however a run was stopped, --resume continues it and ends with the
    same weights. If one of several workers is killed, all of them are restarted, and resume the run.
    Files are read piece by piece. The codes of a large table go to memory-mapped files in the folder, which are removed
    at the end.
    """
    check_worker(workers, overwrite)
    if preset is not None and preset not in PRESETS:
        raise usage(f"'--preset' should be one of {', '.join(PRESETS)}, not {preset!r}.")
    chosen = {name: value for name, value in options.items() if value is not None}
    given = PRESETS.get(preset or "", {}) | parameters_in(config) | chosen
    parameters = {name: value_of(name, value) for name, value in given.items()}
    shape = _shape(image)
    if resume and overwrite:
        raise usage("'--resume' and '--overwrite' exclude each other: choose one.")

    if ray is not None and not is_worker():
        run_on_ray(ray, workers or 1, data, out)
        return
    if starts_workers(workers):
        run_workers(workers or 1, data, out)
        return
    with joined_workers(out) as (team, folder):
        resume, overwrite = (True, False) if restarted(team) else (resume, overwrite)
        _fit(data, folder, valid, parameters, resume, overwrite, shape, team)


def _fit(
    data: Sequence[str],
    out: Path,
    valid: str | None,
    parameters: dict[str, Any],
    resume: bool,
    overwrite: bool,
    shape: tuple[int, int] | None,
    team: Workers,
) -> None:
    with quick_imports():
        from made.estimator import MADE
    from made.model.folder import check_replaceable, is_begun
    from made.model.run import longer
    from made.tables.schema import dropped

    with team.together():
        stored: dict[str, Any] = {}
        if resume and not is_begun(out):
            note(f"Note: {out} has no run to resume: training starts from scratch.")
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            check_replaceable(out)
            if not resume and not overwrite:
                raise usage(f"{out} exists: resume it (--resume), replace it (--overwrite), or choose another folder.")
            if resume and is_begun(out):
                before = MADE.load(out)
                stored = before.get_params(deep=False)
                if before.model_.finished and not longer(stored | parameters, stored):
                    remedy = "To train longer, raise --max-epochs or --max-seconds."
                    note(f"{out} is finished: {before.n_epochs_} epochs. {remedy}")
                    if mode.json:
                        print_json(_facts(before, out))
                    return
        parameters = {"random_state": 0, "verbose": 1} | stored | parameters | ({} if mode.progress else {"verbose": 0})
        model = MADE(**parameters)
        model.check_parameters()
        rows, valid_rows, own_shape = training_rows(data, valid)
        first = getattr(rows, "first", rows)  # of files, the first piece
        names = getattr(first, "column_names", [f"x{d}" for d in range(first.shape[1])])
        for told in ("columns", "missing"):
            if isinstance(parameters.get(told), dict):
                setattr(model, told, {place(str(name), names): each for name, each in parameters[told].items()})
        without = dropped(model.columns)
        if shape is not None:
            _check_image(shape, first, without)
        elif not without:
            shape = own_shape
    words = ["made", "fit", *data, "--out", str(out), *(["--valid", valid] if valid is not None else [])]
    again = shlex.join([*words, *(["--workers", str(team.count)] if team.count > 1 else [])])
    try:
        model.fit(rows, X_valid=valid_rows, resume_from=out, overwrite=overwrite, workers=team)
    except KeyboardInterrupt as stopped:
        text = stopped.message if isinstance(stopped, Interrupted) else "interrupted before the first update."
        raise Interrupted(f"{text} To resume: {again} --resume", signal_of(stopped)) from None
    if team.rank:
        return
    if not draw_pictures(model, out, shape):
        note("No pictures: install matplotlib (pip install 'made[plot]').")
    columns, facts = describe_columns(model.model_.schema, model.observed_), _facts(model, out)
    if mode.json:
        print_json(facts | {"columns": columns})
        return
    if not mode.quiet:
        print_columns(columns, model.model_.schema)
    nll, best = model.valid_nll_, model.best_epoch_
    validation = "" if nll is None else f" Validation NLL {nll:.3f} nats (epoch {best})."
    note(f"{model.n_epochs_} epochs.{validation} The model is in {out}.")
    if facts["still_improving"]:
        longer_still = f"{again} --resume --max-epochs {2 * model.n_epochs_}"
        note(f"The validation NLL was still improving when training ended. To train longer: {longer_still}")


def _facts(model: MADE, out: Path) -> dict[str, Any]:
    """The outcome of a fit, for JSON."""
    epochs, best = model.n_epochs_, model.best_epoch_
    facts = {"out": str(out), "finished": model.model_.finished, "epochs": epochs, **model.model_.config.scores}
    # If the best epoch is among the last 5 %, more epochs would probably help.
    return facts | {"still_improving": best is not None and epochs > 0 and epochs - best <= max(1, epochs // 20)}


def _shape(image: str | None) -> tuple[int, int] | None:
    if image is None:
        return None
    sides = [whole_number(part) for part in image.lower().split("x")]
    if len(sides) != 2 or not all(sides):
        raise usage(f"'--image' should be height x width, such as 28x28, not {shortened(image, 80)!r}.")
    return sides[0] or 0, sides[1] or 0


def _check_image(shape: tuple[int, int], rows: Any, without: Sequence[str | int]) -> None:
    """Raise an error unless the columns, except those that are dropped, can be the pixels of an image."""
    from pyarrow import types

    pixels, width = shape[0] * shape[1], rows.shape[1] - len(without)
    if pixels != width:
        raise usage(f"'--image' is {shape[0]}x{shape[1]}, {pixels} pixels, but there are {width} columns.")
    numbers = (types.is_boolean, types.is_integer, types.is_floating, types.is_null)
    for index, field in enumerate(getattr(rows, "schema", ())):
        if not {index, field.name} & set(without) and not any(holds(field.type) for holds in numbers):
            raise usage(f"'--image' needs columns of numbers, but {shortened(field.name, 80)!r} has other values.")
