"""`made fit`: from data to a model in a folder."""

from __future__ import annotations

import inspect
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from made.cli.common import DATA, JSON, QUIET, command, fail, note, print_json, rows_for, usage
from made.cli.lists import kinds, place, whole_number
from made.cli.signals import signal_of
from made.display import shortened
from made.errors import Interrupted
from made.parameters import NETWORK, PARAMETERS, PRESETS, TRAINING, Parameter

if TYPE_CHECKING:
    from made.estimator import MADE

__all__ = ["fit", "own_validation", "parameters_in", "read_toml", "value_of"]

LARGEST_TOML = 1 << 20
TYPES: dict[str, Any] = {"float": float, "int": int, "flag": bool, "seed": int, "verbose": int}


def _option(name: str, parameter: Parameter) -> inspect.Parameter:
    """A parameter of the estimator as an option of the command: None if it is not given."""
    kebab = name.replace("_", "-")
    words = {"flag": [f"--{kebab}/--no-{kebab}"], "seed": ["--seed", "--random-state"]}.get(
        parameter.kind, [f"--{kebab}"]
    )
    default = parameter.default
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
    out: Annotated[Path, typer.Option("--out", help="The folder for the model.", show_default=False)],
    valid: Annotated[
        str | None, typer.Option("--valid", help="Rows to choose the epoch by, like DATA.", show_default=False)
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="A TOML file with parameters; options override it.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option("--preset", help=f"Parameters that go together, which others override: {', '.join(PRESETS)}."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what --out holds.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the model that --out holds.")] = False,
    image: Annotated[
        str | None, typer.Option("--image", help="The shape of a row that is an image, such as 28x28.")
    ] = None,
    as_json: JSON = False,
    quiet: QUIET = False,
    **options: Any,
) -> None:
    """Learn the distribution of a table, and keep it in a folder.

    A named set brings its own validation rows. What is being learned is kept in the folder all the time: in whatever
    way a run was stopped, --resume goes on with it, to the same weights.
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
        raise usage("'--resume' and '--overwrite' exclude each other.")

    # Loaded here, so that --help need not wait for torch.
    from made.estimator import MADE
    from made.model.folder import check_replaceable, is_begun
    from made.model.run import longer

    stored: dict[str, Any] = {}
    if resume and not is_begun(out):
        note(f"Note: there is nothing to go on with in {out}: training starts.", quiet)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        check_replaceable(out)
        if not resume and not overwrite:
            raise usage(f"{out} exists: go on with it (--resume), replace it (--overwrite), or choose another folder.")
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
    model._validate_params()
    rows, own_shape = rows_for(data, "train")
    names = getattr(rows, "column_names", [f"x{d}" for d in range(rows.shape[1])])
    for told in ("columns", "missing"):
        if isinstance(parameters.get(told), dict):
            setattr(model, told, {place(str(name), names): each for name, each in parameters[told].items()})
    own_valid = valid is not None
    valid = own_validation(data) if valid is None else valid
    valid_rows = None if valid is None else rows_for(valid, "valid")[0]
    shape = own_shape if shape is None else shape
    width = rows.shape[1]
    if shape is not None and shape[0] * shape[1] != width:
        raise usage(f"'--image' is {shape[0]}x{shape[1]}, {shape[0] * shape[1]} pixels, but there are {width} columns.")
    try:
        model._fit(rows, valid_rows, out, overwrite)
    except KeyboardInterrupt as stopped:
        text = str(stopped).partition(" Its state")[0] or "interrupted before the first update."
        words = ["made", "fit", data, "--out", str(out), *(["--valid", str(valid)] if own_valid else []), "--resume"]
        raise Interrupted(f"{text} To go on: {shlex.join(words)}", signal_of(stopped)) from None
    draw_pictures(model, out, shape, quiet)
    if as_json:
        print_json(summary(model, out))
        return
    nll = (
        "" if model.valid_nll_ is None else f" Validation NLL {model.valid_nll_:.3f} nats (epoch {model.best_epoch_})."
    )
    note(f"{model.n_epochs_} epochs.{nll} The model is in {out}.", quiet)


def summary(model: MADE, out: Path) -> dict[str, Any]:
    """What became of a fit."""
    scores = model.model_.config.scores
    return {"out": str(out), "finished": model.model_.finished, "epochs": model.n_epochs_, **scores}


def draw_pictures(model: MADE, out: Path, shape: tuple[int, int] | None, quiet: bool) -> None:
    """Put pictures into the model's folder, if there is matplotlib."""
    from importlib.util import find_spec

    from made.model.folder import add_files

    if find_spec("matplotlib") is None:
        note("No pictures: for them, install matplotlib (pip install 'made[plot]').", quiet)
        return
    from made.paper import pictures

    files: dict[str, Any] = {}
    if model.model_.history:
        files["learning_curve.png"] = lambda path: pictures.learning_curve(model.model_.history, path)
    if shape is not None:
        drawn = model.sample(100, random_state=model.model_.config.seed)
        rows = drawn if hasattr(drawn, "dtype") else drawn.to_pandas().to_numpy()
        files["samples.png"] = lambda path: pictures.samples(rows, shape, path)
    add_files(out, files)


def own_validation(data: str) -> str | None:
    """The validation rows that come with a named set."""
    from made.io import datasets

    if data == "-" or Path(data).exists():
        return None
    name, chosen = datasets.split(data)
    return f"{name}:valid" if chosen in (None, "train") and datasets.known(name) else None


def read_toml(option: str, path: Path) -> dict[str, Any]:
    """A small TOML file, with - in its names taken as _."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_TOML + 1)
        if len(text) > LARGEST_TOML:
            raise ValueError(f"it has more than {LARGEST_TOML:,} bytes")
        content = tomllib.loads(text.decode())
    except RecursionError:
        raise fail(f"'{option}': {path} cannot be read: it is nested too deeply.", 3) from None
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error).rstrip(".")
        raise fail(f"'{option}': {path} cannot be read: {reason}.", 3) from None
    return {name.replace("-", "_"): value for name, value in content.items()}


def parameters_in(path: Path | None) -> dict[str, Any]:
    """The parameters that a file has; none without a file."""
    if path is None:
        return {}
    content = read_toml("--config", path)
    if "seed" in content:
        content["random_state"] = content.pop("seed")
    if unknown := [name for name in content if name not in PARAMETERS]:
        raise usage(f"'--config': {path} has {unknown[0]!r}, but the parameters are {', '.join(PARAMETERS)}.")
    return content


def value_of(name: str, value: Any) -> Any:
    """An option's text as the estimator takes it."""
    kind = PARAMETERS[name].kind
    option = f"'--{name.replace('_', '-')}'"
    if kind == "sizes":
        parts = [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        if not isinstance(parts, (list, tuple)):
            raise usage(f"{option} should be a list of whole numbers such as [500, 500], not {value!r}.")
        try:
            sizes = tuple(int(part) for part in parts)
        except (TypeError, ValueError):
            sizes = ()
        if [str(size) for size in sizes] != [str(part).strip() for part in parts]:
            raise usage(f"{option} should be whole numbers such as 500,500, not {shortened(str(value), 80)!r}.")
        return sizes
    if kind in ("masks", "auto", "auto float") and isinstance(value, str):
        word, what, number = {
            "masks": ("unlimited", "a whole number", int),
            "auto": ("auto", "a whole number", int),
            "auto float": ("auto", "a number", float),
        }[kind]
        try:
            return word if value == word else number(value)
        except ValueError:
            raise usage(f"{option} should be {what}, or {word}, not {shortened(value, 80)!r}.") from None
    if name == "clip" and value == 0:
        return None
    if kind == "columns" and isinstance(value, str) and "=" in value:
        return kinds(option.strip("'"), value)
    return value


def _shape(image: str | None) -> tuple[int, int] | None:
    if image is None:
        return None
    sides = [whole_number(part) for part in image.lower().split("x")]
    if len(sides) != 2 or not all(sides):
        raise usage(f"'--image' should be height x width, such as 28x28, not {shortened(image, 80)!r}.")
    return sides[0] or 0, sides[1] or 0
