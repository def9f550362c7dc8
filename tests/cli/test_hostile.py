"""Every command against bad files, arguments, streams, disks and signals: a sentence, a code, and nothing left behind.

Most of it runs in this process, because starting another takes seconds. A command without a row here fails a test.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import typer

from made import MADE
from made.cli import app, process, signals
from made.cli.errors import EXIT_CODES
from made.model.model import Model

resource = pytest.importorskip("resource")

LONG = "a" * 300
FIT = ["--hidden-sizes", "4", "--evaluation-masks", "1", "--max-epochs", "1"]
ROWS = 40


@dataclass(frozen=True)
class Row:
    """What is tried of a command.

    Attributes:
        good: arguments with which it works; none if that takes too long here, or data that may be absent.
        prints: whether it then prints something on standard output.
        bad: arguments with which it does not, and the exit code.
        writes: arguments with which it writes a file of more than a few bytes.
    """

    good: list[str] | None
    bad: list[tuple[list[str], int]]
    prints: bool = True
    writes: list[str] = field(default_factory=list)


def of_table(*more: str) -> list[tuple[list[str], int]]:
    """Bad data, for a command that takes a model and a table."""
    files = ["missing.csv", "empty.csv", "header.csv", "latin1.csv", "ragged.csv", "folder.csv", "junk.parquet"]
    files += ["cut.npy", "junk.npz", "nothing", "lacks.csv", "words.csv", f"{LONG}.csv", "\udcff.csv", "junk.csv", "-"]
    bad = [(["MODEL", file, *more], 3) for file in files]
    bad += [([model, "good.csv", *more], 4) for model in ("nothing", "folder.csv", "good.csv", "DAMAGED", LONG)]
    return [*bad, (["MODEL"], 2), (["MODEL", "good.csv", *more, "--seed", "²"], 2)]


TO_FILE = [(["MODEL", "good.csv", "--out", out], 3) for out in ("folder.csv", "x.pdf", f"{LONG}.csv", "none/x.csv")]
CORPUS = {
    "fit": Row(
        ["good.csv", "--out", "new", *FIT, "--quiet"],
        [
            (["missing.csv", "--out", "x"], 3),
            (["junk.csv", "--out", "x"], 3),
            (["latin1.csv", "--out", "x"], 3),
            (["good.csv"], 2),
            (["good.csv", "--out", "MODEL"], 2),
            (["good.csv", "--out", "full", "--overwrite"], 2),
            (["good.csv", "--out", "good.csv"], 2),
            (["good.csv", "--out", "good.csv/x", *FIT], 3),
            (["good.csv", "--out", LONG, *FIT], 3),
            (["good.csv", "--out", "x", "--image", "²x²"], 2),
            (["good.csv", "--out", "x", "--image", "9" * 5000 + "x1"], 2),
            (["good.csv", "--out", "x", "--columns", "legs"], 2),
            (["good.csv", "--out", "x", "--columns", "legs=numeric,weight"], 2),
            (["good.csv", "--out", "x", "--columns", "legs=numeric\nweight=real"], 2),
            (["good.csv", "--out", "x", "--hidden-sizes", "²"], 2),
            (["good.csv", "--out", "x", "--hidden-sizes", "9" * 5000], 2),
            (["good.csv", "--out", "x", "--config", "missing.toml"], 3),
            (["good.csv", "--out", "x", "--config", "folder.csv"], 3),
            (["good.csv", "--out", "x", "--config", "latin1.csv"], 3),
            (["good.csv", "--out", "x", "--config", "deep.toml"], 3),
            (["good.csv", "--out", "x", "--config", "huge.toml"], 3),
            (["good.csv", "--out", "x", "--config", LONG], 3),
            (["good.csv", "--out", "x", "--config", "five.toml"], 2),
            (["good.csv", "--out", "x", "--config", "types.toml"], 2),
            (["good.csv", "--out", "x", "--preset", "odd"], 2),
        ],
        prints=False,
        writes=["good.csv", "--out", "new", *FIT, "--quiet"],
    ),
    "tune": Row(
        ["good.csv", "--out", "search", "--trials", "1", "--config", "tiny.toml", "--quiet"],
        [
            (["missing.csv", "--out", "x"], 3),
            (["good.csv", "--out", "good.csv"], 2),
            (["good.csv", "--out", "full"], 2),
            (["good.csv", "--out", "x", "--space", "missing.toml"], 3),
            (["good.csv", "--out", "x", "--space", "deep.toml"], 3),
            (["good.csv", "--out", "x", "--space", "five.toml"], 2),
            (["good.csv", "--out", "x", "--config", "five.toml"], 2),
            (["good.csv", "--out", "x", "--timeout", "nan", "--config", "tiny.toml"], 2),
            (["good.csv", "--out", "x", "--jobs", "100000"], 2),
        ],
    ),
    "compare": Row(
        ["bits.npy", "--models", "bernoulli", "--out", "page.html", "--quiet"],
        [
            (["missing.csv"], 3),
            (["good.csv", "--models", "bernoulli"], 3),
            (["bits.npy", "--models", "nothing"], 2),
            (["bits.npy", "--models", "no.module:Thing"], 2),
            (["bits.npy", "--budget", "nan"], 2),
            (["bits.npy", "--out", "good.csv"], 2),
            (["bits.npy", "--out", "own.html"], 2),
            (["bits.npy", "--out", "good.csv/x.html"], 3),
            (["bits.npy", "--valid", "missing.npy", "--models", "bernoulli"], 3),
        ],
        writes=["bits.npy", "--models", "bernoulli", "--out", "page.html", "--quiet"],
    ),
    "evaluate": Row(["MODEL", "good.csv"], [*of_table(), (["MODEL", "good.csv", "--given", "²"], 2)]),
    "score": Row(
        ["MODEL", "good.csv"],
        [
            *of_table(),
            *TO_FILE,
            (["MODEL", "good.csv", "--given", "wings"], 2),
            (["MODEL", "good.csv", "--given", ","], 2),
            (["MODEL", "incomplete.csv", "--given", "legs"], 2),
            (["MODEL", "good.csv", "--masks", "0"], 2),
            (["MODEL", "good.csv", "--on-error", "hope"], 2),
        ],
        writes=["MODEL", "good.csv", "--out", "new.csv"],
    ),
    "ask": Row(
        ["MODEL", "legs = 4", "weight > 5 | kind = cat"],
        [
            (["nothing", "legs = 4"], 4),
            (["MODEL", "wings = 2"], 2),
            (["MODEL", "legs = ²"], 2),
            (["MODEL", "(" * 100], 2),
            (["MODEL", "legs = 4 and " * 100_000], 2),
            (["MODEL", "\x1b[31m"], 2),
            (["MODEL", "\udcff = 3"], 2),
            (["MODEL"], 2),
            (["MODEL", "legs = 4", "--samples", "1e9"], 2),
            (["MODEL", "legs = 4", "--samples", "1000000000"], 2),
        ],
    ),
    "sample": Row(
        ["MODEL", "-n", "3"],
        [
            (["nothing"], 4),
            *((["MODEL", "--temperature", text], 2) for text in ("1e-45", "1e300", "nan", "inf", "-1", "0", "cold")),
            *((["MODEL", "--given", text], 2) for text in ("a=b\nc=3", "x" * 140_000, "legs", "=", "²=4", "wings=2")),
            (["MODEL", "--given", "legs=hundred"], 3),
            (["MODEL", "--given", "weight=nan"], 3),
            (["MODEL", "--count", "9" * 5000], 2),
            (["MODEL", "--out", "none/x.csv"], 3),
            (["MODEL", "--out", f"{LONG}.parquet"], 3),
        ],
        writes=["MODEL", "-n", "50", "--out", "new.parquet"],
    ),
    "impute": Row(
        ["MODEL", "incomplete.csv"],
        [
            *of_table(),
            *TO_FILE,
            (["MODEL", "incomplete.csv", "--strategy", "guess"], 2),
            (["MODEL", "incomplete.csv", "--draws", "5"], 2),
            (["MODEL", "incomplete.csv", "--draws", "1000000000", "--stack"], 2),
            (["MODEL", "incomplete.csv", "--uncertainty", "-"], 2),
            (["MODEL", "incomplete.csv", "--uncertainty", "none/x.csv"], 3),
            (["MODEL", "incomplete.csv", "--out", "x.npy"], 3),
        ],
        writes=["MODEL", "incomplete.csv", "--out", "new.csv", "--uncertainty", "sure.csv"],
    ),
    "predict": Row(
        ["MODEL", "incomplete.csv", "--target", "kind", "--quiet"],
        [
            *(each for each in of_table("--target", "weight") if "ragged.csv" not in each[0]),
            (["MODEL", "good.csv", "--target", "²"], 2),
            (["MODEL", "good.csv", "--target", "99"], 2),
            (["MODEL", "good.csv", "--target", "9" * 5000], 2),
            (["MODEL", "good.csv", "--target", "kind", "--out", "none/x.csv"], 3),
        ],
        writes=["MODEL", "good.csv", "--target", "weight", "--out", "new.csv", "--quiet"],
    ),
    "denoise": Row(
        ["MODEL", "good.csv", "--quiet"],
        [
            *of_table(),
            *TO_FILE,
            (["MODEL", "good.csv", "--error", "nan"], 2),
            (["MODEL", "good.csv", "--error", "2"], 2),
            (["MODEL", "good.csv", "--column-error", "legs=often"], 2),
            (["MODEL", "good.csv", "--column-error", "wings=0.5"], 2),
            (["MODEL", "good.csv", "--changes", "-"], 2),
        ],
        writes=["MODEL", "good.csv", "--out", "new.csv", "--quiet"],
    ),
    "explain": Row(
        ["MODEL", "good.csv"], [*of_table(), *TO_FILE], writes=["MODEL", "good.csv", "--out", "new.csv", "--quiet"]
    ),
    "sql": Row(
        ["MODEL", "SELECT kind, model_logp(t) AS logp FROM 'good.csv' t"],
        [
            *(
                (["MODEL", query], 2)
                for query in ("", "selec", "SELECT model_logp(²)", "\x1b[31m", "SELECT 1, (" * 100)
            ),
            *((["MODEL", f"FROM '{file}'"], 3) for file in ("missing.csv", "junk.parquet", f"{LONG}.csv")),
            *(([model, "SELECT 1"], 4) for model in ("nothing", "folder.csv", "good.csv", "DAMAGED", LONG)),
            (["MODEL", "SELECT model_logp(t) FROM 'words.csv' t"], 3),
            (["MODEL", "SELECT model_probability('wings = 2')"], 2),
            (["MODEL", "SELECT * FROM model_sample(0)"], 2),
            (["MODEL"], 2),
            (["MODEL", "SELECT 1", "--name", "²"], 2),
            (["MODEL", "MODEL", "SELECT 1"], 2),
            (["MODEL", "SELECT 1 AS a", "--out", "none/x.csv"], 3),
            (["MODEL", "SELECT 1 AS a", "--out", "x.pdf"], 3),
        ],
        writes=["MODEL", "FROM model_sample(50)", "--out", "new.csv"],
    ),
    "mcp": Row(None, [*(([model], 4) for model in ("nothing", "folder.csv", "good.csv", "DAMAGED", LONG)), ([], 2)]),
    "serve": Row(None, [*(([model], 4) for model in ("nothing", "folder.csv", "good.csv", "DAMAGED", LONG)), ([], 2)]),
    "report": Row(
        ["MODEL", "good.csv", "--out", "page.html", "--quiet"],
        [
            *of_table(),
            (["MODEL", "good.csv", "--out", "own.html"], 2),
            (["MODEL", "good.csv", "--out", "x.pdf"], 2),
            (["MODEL", "good.csv", "--samples", "1000000000000"], 2),
            (["MODEL", "good.csv", "--out", "good.csv/x.html"], 3),
            (["MODEL", "good.csv", "--out", f"{LONG}.html"], 3),
        ],
        writes=["MODEL", "good.csv", "--out", "page.html", "--quiet"],
    ),
    "export": Row(
        ["MODEL", "--onnx", "new.onnx"],
        [
            *(([model, "--onnx", "x.onnx"], 4) for model in ("nothing", "folder.csv", "good.csv", "DAMAGED", LONG)),
            (["MODEL"], 2),
            (["MODEL", "--onnx", "x.onnx", "--column", "wings"], 2),
            (["MODEL", "--onnx", "x.onnx", "--column", "weight", "--quantiles", "2"], 2),
            (["MODEL", "--onnx", "x.onnx", "--masks", "0"], 2),
            (["MODEL", "--onnx", "none/x.onnx"], 3),
            (["MODEL", "--onnx", f"{LONG}.onnx"], 3),
        ],
        prints=False,
        writes=["MODEL", "--onnx", "new.onnx"],
    ),
    "info": Row(["MODEL"], [(["nothing"], 4), (["DAMAGED"], 4), (["good.csv"], 4), ([LONG], 4), (["\udcff"], 4)]),
    "demo": Row(None, [(["--out", "good.csv"], 3), (["dogs"], 2), (["--out", LONG], 3), (["--seed", "²"], 2)]),
    "data list": Row([], [(["more"], 2)]),
    "data get": Row(
        ["digits"],
        [(["nothing"], 3), (["../../etc/passwd"], 3), ([LONG], 3), (["\x1b[31m"], 3), ([], 2)],
        prints=False,
    ),
    "paper report": Row(
        ["--results", "folder.csv", "--out", "page.md", "--quiet"],
        [
            (["--results", "missing"], 3),
            (["--results", "folder.csv", "--out", "good.csv/page.md"], 3),
            (["--results", "folder.csv", "--out", "page.md", "--check"], 3),
        ],
        prints=False,
    ),
    "paper table uci": Row(
        None,
        [
            (["--row", "nothing"], 2),
            (["--grid", "all"], 2),
            (["--data", "nothing", "--results", "results", "--runs", "runs"], 3),
            (["--data", "adult", "--results", "good.csv"], 3),
        ],
    ),
    "paper table mnist": Row(
        None, [(["--row", "nothing"], 2), (["--rate", "nan"], 2), (["--width", "0"], 2), (["--results", "good.csv"], 3)]
    ),
    "paper table baselines": Row(None, [(["--row", "nothing"], 2), (["--data", "adult", "--runs", "good.csv"], 3)]),
    "paper table complexity": Row(None, [(["--quick", "--results", "good.csv"], 3)]),
    "paper figure masks": Row(
        None,
        [
            (["--masks", "²"], 2),
            (["--masks", "9" * 5000], 2),
            (["--batches", "0"], 2),
            (["--out", "x.gif"], 2),
            (["--out", "good.csv/x.png"], 3),
        ],
    ),
    "paper figure samples": Row(None, [(["--masks", "1000"], 2), (["--results", "results", "--runs", "runs"], 2)]),
    "paper figure network": Row(
        ["--results", "results", "--quiet"],
        [
            (["--ordering", "²"], 2),
            (["--ordering", "1,1"], 2),
            (["--columns", "1000000000"], 2),
            (["--columns", "3", "--hidden-sizes", "999999999"], 2),
            (["--hidden", "9" * 5000], 2),
            (["--names", "a", "--results", "results"], 2),
            (["--results", "good.csv"], 3),
        ],
    ),
}
# What any option of any command may be given.
NASTY = ["", "²", "nan", "-1", "1e400", "9" * 5000, "\udcff\x1b[31m", "a=b\nc=3", LONG]


COMMAND = typer.main.get_command(app)


def leaves(command=COMMAND, path=()):
    if not hasattr(command, "commands"):
        yield " ".join(path), command
    for name, each in getattr(command, "commands", {}).items():
        yield from leaves(each, (*path, name))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model, good tables, and bad ones."""
    path = tmp_path_factory.mktemp("hostile")
    random = np.random.default_rng(0)
    table = {
        "kind": random.choice(["cat", "dog"], ROWS),
        "weight": random.normal(5, 1, ROWS).round(3),
        "legs": random.integers(3, 5, ROWS),
    }
    lines = ["kind,weight,legs", *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    (path / "good.csv").write_text("\n".join(lines) + "\n")
    (path / "incomplete.csv").write_text("kind,weight,legs\ncat,,\n,5.5,4\ndog,6.5,3\n")
    (path / "lacks.csv").write_text("kind,color\ncat,red\n")
    (path / "words.csv").write_text("kind,weight,legs\ncat,5,4\ncat,5,four\n")
    (path / "empty.csv").write_text("")
    (path / "header.csv").write_text("kind,weight,legs\n")
    (path / "latin1.csv").write_bytes(b"kind,weight,legs\ncat,5,4\nd\xf6g,5,4\n")
    (path / "ragged.csv").write_text("kind,weight,legs\ncat,5,4\ncat,5\n")
    (path / "junk.csv").write_bytes(random.bytes(500))
    (path / "junk.parquet").write_bytes(b"PAR1" + random.bytes(500) + b"PAR1")
    (path / "junk.npz").write_bytes(b"PK\x03\x04" + random.bytes(500))
    np.save(path / "bits.npy", random.integers(0, 2, (ROWS, 4)))
    (path / "cut.npy").write_bytes((path / "bits.npy").read_bytes()[:-9])
    (path / "own.html").write_text("<p>my own page</p>")
    (path / "folder.csv").mkdir()
    (path / "full").mkdir()
    (path / "full" / "thesis.tex").write_text("")
    (path / "five.toml").write_text("hidden_sizes = 5\n")
    (path / "types.toml").write_text('hidden_sizes = [4]\nmax_epochs = "many"\n')
    (path / "deep.toml").write_text("columns = " + "[" * 5000 + "]" * 5000 + "\n")
    (path / "huge.toml").write_text("#" * (2 << 20))
    (path / "tiny.toml").write_text("hidden_sizes = [4]\nmax_epochs = 1\nevaluation_masks = 1\n")
    MADE(hidden_sizes=(4,), evaluation_masks=1, max_epochs=1, random_state=0).fit(pa.table(table)).save(path / "MODEL")
    MADE.load(path / "MODEL").save(path / "DAMAGED")
    (path / "DAMAGED" / "config.json").write_bytes((path / "DAMAGED" / "config.json").read_bytes()[:-20])
    return path


@pytest.fixture
def here(files, tmp_path, monkeypatch):
    """A folder of one test's own, with links to the files, and for temporary files a folder that is empty."""
    for each in files.iterdir():
        (tmp_path / each.name).symlink_to(each)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MADE_DEBUG", raising=False)
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("MADE_DATA", str(tmp_path / "data"))
    # The same for every run here, and most of the time that a command takes.
    monkeypatch.setattr(typer.main, "get_command", lambda app: COMMAND)
    return tmp_path


class Stream(io.TextIOWrapper):
    """A standard stream that keeps what is written to it."""

    def __init__(self, content: bytes = b"") -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8", errors="backslashreplace", write_through=True)

    @property
    def text(self) -> str:
        return self.buffer.getvalue().decode(errors="replace")


def run(*words, stdin=b"", stdout=None):
    """Run a command in this process: its exit code, standard output and standard error."""
    out, err = Stream() if stdout is None else stdout, Stream()
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = None if stdin is None else Stream(stdin), out, err
    try:
        code = process.run([str(word) for word in words])
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
    assert "Traceback" not in err.text
    assert "internal error" not in err.text
    assert "\x1b" not in err.text
    return code, out.text if isinstance(out, Stream) else "", err.text


def left(path) -> list[str]:
    """What a command should have removed: files that are not complete, and temporary folders."""
    return [str(file) for file in path.rglob("*") if ".part" in file.name or file.parent.name == "tmp"]


def names(path) -> set[str]:
    return {str(file) for file in path.rglob("*")}


def test_every_command_is_tested_here() -> None:
    assert {name for name, _ in leaves()} == set(CORPUS)


@pytest.mark.parametrize("name", list(CORPUS))
def test_bad_arguments_and_files_are_a_sentence_and_a_code(here, name) -> None:
    before = names(here)
    for words, expected in CORPUS[name].bad:
        code, out, err = run(*name.split(), *words)
        assert code == expected, (words, err)
        assert out == "", words
        assert len(err) < 8000
        assert left(here) == [], words
    allowed = {"results", "runs"} if name.startswith("paper") else set()
    new = {each for each in names(here) - before if not allowed & set(each.split(os.sep))}
    assert new == set()


@pytest.mark.parametrize("name", list(CORPUS))
def test_any_option_may_be_given_anything(here, name) -> None:
    """What is wrong with it is said; whatever the code, it is a documented one, and not a bug's."""
    command, row = dict(leaves())[name], CORPUS[name]
    slow = name.startswith("paper") or name in ("demo", "tune", "compare", "fit")
    base = max(row.bad, key=lambda each: each[1])[0] if slow else row.good or []  # nothing that would take long
    for option in command.params:
        if not option.opts[0].startswith("--") or getattr(option, "is_flag", False) or option.opts[0] == "--help":
            continue
        for text in NASTY:
            if name in ("demo", "paper table complexity") and option.opts[0] in ("--out", "--results"):
                continue  # any name is a good one, and then it works for minutes
            code, _, err = run(*name.split(), *base, f"{option.opts[0]}={text}")
            assert code in EXIT_CODES, (option.opts[0], text)
            assert code not in (1, 130, 143), (option.opts[0], text, err)
    assert left(here) == []


@pytest.mark.parametrize("name", [name for name, row in CORPUS.items() if row.good is not None])
def test_json_is_json_and_nothing_else(here, name) -> None:
    code, out, err = run(*name.split(), *CORPUS[name].good, "--json")
    assert code == 0, err
    assert json.loads(out) is not None
    assert left(here) == []


@pytest.mark.parametrize("name", [name for name, row in CORPUS.items() if row.good is not None])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_any_command_with_its_code(here, name, number) -> None:
    class Interrupting(Stream):
        def write(self, text: str) -> int:
            signal.raise_signal(number)
            return super().write(text)

    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        with signals.handled():
            code, out, err = run(*name.split(), *CORPUS[name].good, "--json", stdout=Interrupting())
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
    assert code == 128 + number
    assert len(err.strip().splitlines()) == 1, err
    assert out == ""
    assert left(here) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("name", [name for name, row in CORPUS.items() if row.good is not None])
def test_standard_output_on_a_full_disk_is_3(here, name) -> None:
    with open("/dev/full", "w") as full:
        code, _, err = run(*name.split(), *CORPUS[name].good, *([] if CORPUS[name].prints else ["--json"]), stdout=full)
    assert code == 3, err
    assert "o space left on device" in err


@pytest.mark.parametrize("name", [name for name, row in CORPUS.items() if row.writes])
def test_a_file_that_cannot_be_written_in_full_does_not_appear(here, name) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limit[1]))
    try:
        code, _, err = run(*name.split(), *CORPUS[name].writes)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert code == 3, err
    assert left(here) == []
    assert not list(here.glob("new.*"))
    assert not (here / "page.html").exists()


def test_standard_input_without_a_table_or_a_question_is_refused(here) -> None:
    for content in (b"", b"\xff\xfe\x00", b"kind,weight,legs\n", b"PAR1junk", b"\x93NUMPYjunk", b"PK\x03\x04junk"):
        code, out, _ = run("score", "MODEL", "-", stdin=content)
        assert code == 3
        assert out == ""
        assert left(here) == []
    for content, code in ((b"", 2), (b"# nothing\n", 2), (b"legs = 4\n\xff\n", 3), (b"legs = 4\nwings = 2\n", 2)):
        assert run("ask", "MODEL", stdin=content)[0] == code
    assert run("ask", "MODEL", stdin=None)[0] == 2
    assert run("score", "MODEL", "-", stdin=None)[0] == 3
    assert run("ask", "MODEL", stdin=b"legs = 4\nkind = cat\n")[0] == 0


def test_an_internal_error_is_a_sentence_that_names_made_debug(here, monkeypatch) -> None:
    def broken(*args, **options):
        raise KeyError("oops")

    monkeypatch.setattr(Model, "sample", broken)
    code, err = _failing("sample", "MODEL")
    assert code == 1
    assert err.startswith("Error: internal error: KeyError: 'oops'. Please report it; MADE_DEBUG=1")
    assert "Traceback" not in err
    monkeypatch.setenv("MADE_DEBUG", "1")
    code, err = _failing("sample", "MODEL")
    assert code == 1
    assert "Traceback" in err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(28, "No space left on device", "x.csv"), 3, "'x.csv': no space left on device."),
        (FileNotFoundError(2, "No such file or directory", "x.csv"), 3, "no such file"),
        (MemoryError(), 3, "not enough memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 3, "not enough memory"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), 3, "can't decode"),
        (OverflowError("int too large to convert to float"), 3, "a number is too large"),
        (RecursionError(), 3, "nested too deeply"),
        (pa.ArrowInvalid("odd bytes"), 3, "odd bytes."),
        (pa.ArrowNotImplementedError("no such type"), 3, "no such type."),
        (ImportError("install it"), 2, "install it"),
        (ZeroDivisionError("x"), 1, "internal error"),
        (ValueError("x"), 1, "internal error"),
        (KeyboardInterrupt(), 130, "interrupted."),
    ],
)
def test_the_errors_of_libraries_have_a_code(here, monkeypatch, error, code, said) -> None:
    def broken(*args, **options):
        raise error

    monkeypatch.setattr(Model, "sample", broken)
    found, err = _failing("sample", "MODEL")
    assert found == code
    assert said in err
    assert "Traceback" not in err


def _failing(*words) -> tuple[int, str]:
    before, err = sys.stderr, Stream()
    sys.stderr = err
    try:
        return process.run(list(words)), err.text
    finally:
        sys.stderr = before


def test_the_exit_codes_are_in_the_help(here) -> None:
    _, out, _ = run("--help")
    said = " ".join(out.split())
    assert all(f"{code} {meaning}" in said for code, meaning in EXIT_CODES.items())


@pytest.fixture
def start():
    """Start a command as a process of its own, which does not outlive the test."""
    started = []

    def start(*words, shell=""):
        command = [sys.executable, "-m", "made", *words]
        command = ["bash", "-c", f'exec "$@" {shell}', "bash", *command] if shell else command
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, text=True, **pipes))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.communicate()


@pytest.mark.parametrize("delay", [0.5, 0.8])
def test_a_signal_in_the_middle_of_imports_ends_a_process(here, start, delay) -> None:
    early = start("info", "MODEL")
    time.sleep(delay)
    early.send_signal(signal.SIGINT)
    _, err = early.communicate(timeout=120)
    assert (early.returncode, err) == (130, "interrupted.\n")


def test_commands_work_with_closed_standard_streams(here, start) -> None:
    process = start("score", "MODEL", "good.csv", "--out", "scores.csv", shell="0<&- 1>&- 2>&-")
    assert (process.wait(120), *process.communicate()) == (0, "", "")
    assert len((here / "scores.csv").read_text().splitlines()) == ROWS + 1


def test_a_process_that_is_terminated_leaves_no_part_of_a_file(here, forks) -> None:
    process = forks.command("sample", "MODEL", "-n", 100_000_000, "--out", "new.csv", stderr=here / "log")
    _until(lambda: list(here.glob("*.part")))
    os.kill(process, signal.SIGTERM)
    assert (forks.wait(process), (here / "log").read_text()) == (143, "terminated.\n")
    assert not (here / "new.csv").exists()
    assert left(here) == []


def test_a_training_that_is_terminated_can_be_resumed(here, forks) -> None:
    endless = ("--max-epochs", 1_000_000, "--patience", 1_000_000)
    fit = ("fit", "good.csv", "--out", "run", "--hidden-sizes", 4, *endless)
    process = forks.command(*fit, stderr=here / "log")
    _until(lambda: list((here / "run").glob("checkpoint-*")))
    os.kill(process, signal.SIGTERM)
    assert forks.wait(process) == 143
    assert "To resume: made fit good.csv --out run --resume" in (here / "log").read_text()
    assert json.loads(run("info", "run", "--json")[1])["finished"] is False
    assert left(here) == []


def _until(there, seconds=120.0) -> None:
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_demo_ends_with_a_signal(here, monkeypatch) -> None:
    """It trains in memory, where there is no state to keep."""

    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("made.training.trainer.Trainer._update", stop)
    code, out, err = run("demo", "--out", "demo", "--quiet")
    assert (code, out, err) == (130, "", "interrupted.\n")
