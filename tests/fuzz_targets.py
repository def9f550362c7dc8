"""What is fuzzed: any bytes give an answer or one of made's own errors, and never another exception.

`tests/test_fuzz.py` runs each target for a moment, the same examples each time; `make fuzz` runs them for longer, with
new ones (`tests/fuzz.py`).
"""

from __future__ import annotations

import hashlib
import json
import math
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import safetensors.torch
from hypothesis import strategies as st

from fuzz_files import (
    LIMIT,
    check_file,
    csv_seeds,
    csv_text,
    mutated,
    npy,
    npy_seeds,
    npz,
    npz_seeds,
    or_refused,
    parquet_file,
    parquet_seeds,
    words,
)
from made import MADE
from made.model.manifest import FORMAT

__all__ = ["LIMIT", "MOST_SECONDS", "TARGETS", "Target", "bounded"]

# Of one execution, which should take milliseconds, and a few megabytes.
MOST_SECONDS = 20
MOST_MEMORY = 3 << 30
LINUX = sys.platform == "linux"


@dataclass(frozen=True)
class Target:
    """Something that takes what a stranger gives.

    Arguments:
        given: what is tried.
        check: raises if something else comes of it than an answer or an error of made; says whether it was an answer.
    """

    given: st.SearchStrategy[Any]
    check: Callable[[Any], bool]


def _too_long(number: int, frame: FrameType | None) -> NoReturn:
    raise TimeoutError(f"more than {MOST_SECONDS} seconds")


@contextmanager
def bounded() -> Iterator[None]:
    """An execution may not take for ever, nor all memory; the end of either is an exception."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if LINUX else 0
    handler = signal.signal(signal.SIGALRM, _too_long)
    try:
        if LINUX:
            resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY, before[1]))
        signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


# A model's folder.

# As JSON, so that each is a new one.
VALUES = [
    *words("null true false 0 1 -1 2 3 16 0.5 -0.5 1.0 1e-3 1e6 1e12 1e-320 1e300 -1e300 NaN Infinity"),
    *(str(2**31), str(2**62), str(2**63), str(-(2**63)), "99999999999", "1" + 400 * "0"),
    *words('"" "x" "auto" "int" "text" "date" "datetime" "numeric" "binary" "unlimited" "<other>" "float16" "uint8"'),
    *words('[] {} [1] [0] [0.5,1.5] ["a","b"] {"a":1} [[]] [1000000] "\\u0000" "mean"'),
    '"datetime64[ns, UTC]"',
]
KEYS = words("x curve center low step share spikes storage other missing ordered")


@cache
def model_files() -> dict[str, bytes]:
    """A small model of every kind of column."""
    numbers = {"size": np.arange(60) * 0.37 % 5, "count": np.arange(60) * 7 % 23, "often": np.arange(60) % 20 * 1.5}
    numbers["often"][:20] = 0.0
    numbers["size"][::9] = np.nan
    table = pa.table(
        {
            **numbers,
            "home": ["rent", "own", "other"] * 20,
            "in": [True, False] * 30,
            "day": pa.array((np.arange(60) * 37 % 700).tolist(), pa.int32()).cast(pa.date32()),
        }
    )
    missing = {"home": "category"}
    model = MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=2, random_state=0, missing=missing, unseen="other")
    with tempfile.TemporaryDirectory() as folder:
        model.fit(table).save(Path(folder) / "model")
        files = {file.name: file.read_bytes() for file in (Path(folder) / "model").iterdir()}
    return {name: content for name, content in files.items() if not name.startswith(("checkpoint-", "manifest"))}


def manifest(files: dict[str, bytes], finished: bool = True) -> bytes:
    """The manifest of these files, with digests that are right."""
    facts = {
        name: {"bytes": len(files[name]), "sha256": hashlib.sha256(files[name]).hexdigest()} for name in sorted(files)
    }
    body = {"format": FORMAT, "finished": finished, "files": facts}
    digest = hashlib.sha256(json.dumps(body).encode()).hexdigest()
    return (json.dumps(body | {"sha256": digest}, indent=2) + "\n").encode()


def paths(node: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where everything in a tree of JSON is."""
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [each for key, value in inner for each in ((*before, key), *paths(value, (*before, key)))]


@st.composite
def mutated_json(draw: st.DrawFn, content: bytes) -> bytes:
    """JSON of which a few values are other ones, gone, twice there, or swapped with a neighbour."""
    tree = json.loads(content)
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        places = paths(tree)
        if not places:
            break
        *above, key = draw(st.sampled_from(places))
        node = tree
        for each in above:
            node = node[each]
        match draw(st.sampled_from(["set", "set", "set", "set", "number", "delete", "add", "swap"])):
            case "set":
                node[key] = json.loads(draw(st.sampled_from(VALUES)))
            case "number" if type(node[key]) in (int, float) and abs(node[key]) < 2**63:
                change = draw(st.sampled_from([-1, 1, 0.5, 1e6, -1e6, 1e18]))
                node[key] = node[key] * change if draw(st.booleans()) else node[key] + change
            case "delete":
                del node[key]
            case "add" if isinstance(node, dict):
                node[draw(st.sampled_from(KEYS))] = json.loads(draw(st.sampled_from(VALUES)))
            case "add":
                node.insert(key, json.loads(draw(st.sampled_from([*VALUES, json.dumps(node[key])]))))
            case "swap":
                other = draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
                node[key], node[other] = node[other], node[key]
    return json.dumps(tree).encode()


@st.composite
def odd_weights(draw: st.DrawFn, file: str) -> bytes:
    """Weights of which one is another number, or of another type or shape."""
    tensors = safetensors.torch.load(model_files()[file])
    name = draw(st.sampled_from(sorted(tensors)))
    scale = draw(st.sampled_from([0.0, -1.0, 1e3, 1e10, 1e30, 3e38, math.nan, math.inf]))
    match draw(st.sampled_from(["scale", "one", "type", "shape", "gone", "more"])):
        case "scale":
            tensors[name] = tensors[name] * scale
        case "one":
            tensors[name].flatten()[draw(st.integers(0, tensors[name].numel() - 1))] = scale
        case "type":
            tensors[name] = tensors[name].double()
        case "shape":
            tensors[name] = tensors[name].flatten()
        case "gone":
            del tensors[name]
        case "more":
            tensors["x"] = tensors[name].clone()
    return safetensors.torch.save(tensors)


@st.composite
def folder(draw: st.DrawFn) -> dict[str, bytes]:
    """A model's folder in which one file is another one, with a manifest that agrees, or does not."""
    files = dict(model_files())
    match draw(st.sampled_from(["config", "config", "config", "config", "bytes", "weights", "history", "manifest"])):
        case "config":
            files["config.json"] = draw(mutated_json(files["config.json"]))
        case "bytes":
            name = draw(st.sampled_from(sorted(files)))
            files[name] = draw(mutated(lambda: [model_files()[name]]))
        case "weights":
            file = draw(st.sampled_from(["model.safetensors", "missing.safetensors"]))
            files[file] = draw(odd_weights(file))
        case "history":
            lines = files["history.jsonl"].splitlines(keepends=True)
            files["history.jsonl"] = draw(mutated_json(lines[0])) + b"\n"
        case "manifest":
            whole = manifest(files)
            return files | {"manifest.json": draw(mutated_json(whole) | mutated(lambda: [whole]))}
    return files | {"manifest.json": manifest(files, draw(st.sampled_from([True, True, True, False])))}


def check_folder(files: dict[str, bytes]) -> bool:
    """It loads, and draws and scores finite numbers, or it is refused."""
    path = Path(tempfile.mkdtemp())
    try:
        for name, content in files.items():
            (path / name).write_bytes(content)

        def answer() -> None:
            model = MADE.load(path)
            or_refused(lambda: check_scores(model, model.sample(1, missing=True)))
            or_refused(lambda: check_scores(model, scored_row()))

        return or_refused(answer)
    finally:
        shutil.rmtree(path)


def check_scores(model: MADE, rows: Any) -> None:
    scores = model.score_samples(rows)
    assert np.isfinite(scores).all(), f"log p is {scores}"


@cache
def scored_row() -> pa.Table:
    day = pa.array([100], pa.int32()).cast(pa.date32())
    return pa.table({"size": [0.37], "count": [7], "often": [0.0], "home": ["own"], "in": [True], "day": day})


# Questions.

WORDS = [
    *words("size count often home in day `in` \"home\" `day` nothing x0 rent 'own' own is missing null inf nan"),
    *words("0 1 7 -1.5 1e308 1e999 2024-03-01 9999-12-31 0000-00-00 true 'a''b' \u00b2"),
    *words("= != < <= > >= == <> \u2264 in between and or not | ( ) { } [ ] , ' \" ` % ;"),
    *("\x00", "\n", "\u202e", "nn" * 400),
]
ASKED = [
    "size > 1.5",
    "count between 3 and 9 and home in {rent, own} | `in` = true",
    "not (size < 1 or 2 <= count < 5) | day >= 1970-06-01",
    "home is missing or often = 0",
    "often = 1.5 | count = 7",
    "1 < size <= 3 | home != 'rent' and day < 1971-01-01",
    "`in` = false and (count in {1, 2, 3} or size > 4.5)",
]


@st.composite
def question(draw: st.DrawFn) -> str:
    """Words of the language in any order, or a question with some of its words or characters changed."""
    if draw(st.booleans()):
        return " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=14)))
    text = draw(st.sampled_from(ASKED))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(text)))
        match draw(st.sampled_from(["insert", "delete", "word", "swap", "repeat", "nest"])):
            case "insert":
                text = text[:place] + draw(st.text(max_size=3)) + text[place:]
            case "delete":
                text = text[:place] + text[place + draw(st.integers(1, 8)) :]
            case "word":
                words = text.split()
                if words:
                    words[place % len(words)] = draw(st.sampled_from(WORDS))
                text = " ".join(words)
            case "swap":
                words = text.split()
                other = draw(st.integers(0, max(len(words) - 1, 0)))
                if words:
                    place %= len(words)
                    words[place], words[other] = words[other], words[place]
                text = " ".join(words)
            case "repeat":
                text = f" {draw(st.sampled_from(['and', 'or', '|', ',']))} ".join([text] * draw(st.integers(1, 4)))
            case "nest":
                count = draw(st.integers(1, 60))
                text = draw(st.sampled_from(["not ", "("])) * count + text + draw(st.sampled_from(["", ")" * count]))
    return text


@cache
def asked_model() -> MADE:
    path = Path(tempfile.mkdtemp())
    try:
        for name, content in (model_files() | {"manifest.json": manifest(model_files())}).items():
            (path / name).write_bytes(content)
        return MADE.load(path)
    finally:
        shutil.rmtree(path)


def check_question(text: str) -> bool:
    """A probability, or a refusal that says why."""
    model = asked_model()

    def answer() -> None:
        found = model.probability(text, samples=64, random_state=0)
        assert 0 <= found.probability <= 1, found
        assert found.standard_error >= 0, found
        assert str(found)

    return or_refused(answer)


TARGETS = {
    "csv": Target(csv_text() | mutated(csv_seeds), check_file(".csv")),
    "npy": Target(npy() | mutated(npy_seeds), check_file(".npy")),
    "npz": Target(npz() | mutated(npz_seeds), check_file(".npz")),
    "parquet": Target(parquet_file() | mutated(parquet_seeds), check_file(".parquet")),
    "folder": Target(folder(), check_folder),
    "question": Target(question(), check_question),
}
