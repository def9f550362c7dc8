"""`made fit`: learn the distribution of a table, and save the model in a folder."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from made.cli.column_table import describe_columns, print_columns
from made.cli.errors import command, usage
from made.cli.libraries import quick_imports
from made.cli.options import DATA, JSON, QUIET, VALID
from made.cli.parsing import place, whole_number
from made.cli.pictures import draw_pictures
from made.cli.printing import note, print_json
from made.cli.rows import own_validation, read_rows
from made.cli.signals import signal_of
from made.cli.training_options import parameters_in, value_of
from made.display import shortened
from made.errors import Interrupted
from made.parameters import NETWORK, PARAMETERS, PRESETS, TRAINING, Parameter, defaults

if TYPE_CHECKING:
    from made.estimator import MADE

__all__ = ["fit"]

TYPES: dict[str, Any] = {"float": float, "int": int, "flag": bool, "auto flag": bool, "seed": int, "verbose": int}


def _option(name: str, parameter: Parameter) -> inspect.Parameter:
    """A parameter of the estimator as an option of the command: None if it is not given."""
    kebab = name.replace("_", "-")
    both = [f"--{kebab}/--no-{kebab}"]
    words = {"flag": both, "auto flag": both, "seed": ["--seed", "--random-state"]}.get(parameter.kind, [f"--{kebab}"])
    default = defaults()[name]
    shown = ",".join(map(str, default)) if isinstance(default, tuple) else str(default).lower()
    shown = {"seed": "0", "verbose": "1"}.get(parameter.kind, shown)
    text = parameter.help if not parameter.choices else f"{parameter.help} One of {', '.join(parameter.choices)}."
    panel = "Network" if name in NETWORK else "Training" if name in TRAINING else None
    option = typer.Option(*words, help=text, show_default=False if default is None else shown, rich_help_panel=panel)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[TYPES.get(parameter.kind, str) | None, option],
    )


def _with_parameters(function: Callable[..., None]) -> Callable[..., None]:
    """The function, with an option for every parameter of the estimator in place of its ``**options``."""
    signature = inspect.signature(function, eval_str=True)
    own = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    options = [_option(name, parameter) for name, parameter in PARAMETERS.items()]
    own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    function.__signature__ = signature.replace(parameters=own + options)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in own + options}
    return function


@_with_parameters
@command
def fit(
    data: DATA,
    out: Annotated[Path, typer.Option("--out", help="Folder for the model.", show_default=False)],
    valid: VALID = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="TOML file of parameters; options override it.", show_default="none")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help=f"Named set of parameters, overridden by --config and options. One of {', '.join(PRESETS)}.",
            show_default="none",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the training in --out.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the model in --out.")] = False,
    image: Annotated[
        str | None, typer.Option("--image", help="Shape of rows that are images, such as 28x28.", show_default="none")
    ] = None,
    as_json: JSON = False,
    quiet: QUIET = False,
    **options: Any,
) -> None:
    """Learn the distribution of a table, and save the model in a folder.

    The folder holds checkpoints during training: however a run was stopped, --resume continues it, to the same weights.
    """
    if preset is not None and preset not in PRESETS:
        raise usage(f"'--preset' should be one of {', '.join(PRESETS)}, not {preset!r}.")
    given = (
        PRESETS.get(preset or "", {})
        | parameters_in(config)
        | {name: value for name, value in options.items() if value is not None}
    )
    parameters = {name: value_of(name, value) for name, value in given.items()}
    shape = _shape(image)
    if resume and overwrite:
        raise usage("'--resume' and '--overwrite' exclude each other: choose one.")

    with quick_imports():
        from made.estimator import MADE
    from made.model.folder import check_replaceable, is_begun
    from made.model.run import longer
    from made.tables.schema import dropped

    stored: dict[str, Any] = {}
    if resume and not is_begun(out):
        note(f"Note: {out} has no run to resume: training starts from scratch.", quiet)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        check_replaceable(out)
        if not resume and not overwrite:
            raise usage(f"{out} exists: resume it (--resume), replace it (--overwrite), or choose another folder.")
        if resume and is_begun(out):
            before = MADE.load(out)
            stored = before.get_params(deep=False)
            if before.model_.finished and not longer(stored | parameters, stored):
                remedy = "To train longer, raise --max-epochs or --max-seconds."
                note(f"{out} is finished: {before.n_epochs_} epochs. {remedy}", quiet)
                if as_json:
                    print_json(summary(before, out))
                return
    parameters = {"random_state": 0, "verbose": 1} | stored | parameters | ({"verbose": 0} if quiet or as_json else {})
    model = MADE(**parameters)
    model.check_parameters()
    rows, own_shape = read_rows(data, "train")
    names = getattr(rows, "column_names", [f"x{d}" for d in range(rows.shape[1])])
    for told in ("columns", "missing"):
        if isinstance(parameters.get(told), dict):
            setattr(model, told, {place(str(name), names): each for name, each in parameters[told].items()})
    own_valid = valid is not None
    valid = own_validation(data) if valid is None else valid
    valid_rows = None if valid is None else read_rows(valid, "valid")[0]
    without = dropped(model.columns)
    if shape is not None:
        _check_image(shape, rows, without)
    elif not without:
        shape = own_shape
    again = shlex.join(["made", "fit", data, "--out", str(out), *(["--valid", str(valid)] if own_valid else [])])
    try:
        model.fit(rows, X_valid=valid_rows, resume_from=out, overwrite=overwrite)
    except KeyboardInterrupt as stopped:
        text = stopped.message if isinstance(stopped, Interrupted) else "interrupted before the first update."
        raise Interrupted(f"{text} To resume: {again} --resume", signal_of(stopped)) from None
    draw_pictures(model, out, shape, quiet)
    columns = describe_columns(model.model_.schema, rows)
    if as_json:
        print_json(summary(model, out) | {"columns": columns})
        return
    if not quiet:
        print_columns(columns, model.model_.schema)
    nll = (
        "" if model.valid_nll_ is None else f" Validation NLL {model.valid_nll_:.3f} nats (epoch {model.best_epoch_})."
    )
    note(f"{model.n_epochs_} epochs.{nll} The model is in {out}.", quiet)
    if _still_improving(model):
        note(
            "The validation NLL was still improving when training ended. To train longer: "
            f"{again} --resume --max-epochs {2 * model.n_epochs_}",
            quiet,
        )


def summary(model: MADE, out: Path) -> dict[str, Any]:
    """The outcome of a fit, for JSON."""
    scores = model.model_.config.scores
    facts = {"out": str(out), "finished": model.model_.finished, "epochs": model.n_epochs_, **scores}
    return facts | {"still_improving": _still_improving(model)}


def _still_improving(model: MADE) -> bool:
    """Whether the best epoch is among the last 5 %, so that more epochs would probably help."""
    epochs, best = model.n_epochs_, model.best_epoch_
    return best is not None and epochs > 0 and epochs - best <= max(1, epochs // 20)


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
