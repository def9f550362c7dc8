"""The command line, as a person would type it: what it prints, what it leaves, and what its exit code says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch
from typer.testing import CliRunner

from command import run, run_json
from made import MADE
from made.cli import app
from made.cli.commands import COMMANDS, GROUPS
from made.parameters import PARAMETERS

FAST = ["--hidden-sizes", "8", "--evaluation-masks", "2", "--max-epochs", "2", "--schedule", "falling"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a table of text, numbers and missing values, and a model of it."""
    path = tmp_path_factory.mktemp("cli")
    generator = np.random.default_rng(0)
    species = generator.choice(["cat", "dog, big", 'say "hi"'], size=120)
    weight = [
        f"{4 + 5 * (kind != 'cat') + value:.2f}" for kind, value in zip(species, generator.random(120), strict=True)
    ]
    table = pa.table(
        {
            "species, kind": species,
            "weight": pa.array([None if i % 9 == 0 else float(w) for i, w in enumerate(weight)]),
            "legs": pa.array([None if i % 7 == 0 else int(n) for i, n in enumerate(generator.integers(3, 5, 120))]),
        }
    )
    pyarrow.csv.write_csv(table, path / "animals.csv")
    pyarrow.parquet.write_table(table, path / "animals.parquet")
    run("fit", path / "animals.csv", "--out", path / "model", *FAST, "--quiet")
    return path


@pytest.mark.parametrize(
    "command",
    [
        "score {model} {table}",
        "impute {model} {table}",
        "predict {model} {table} --target legs",
        "denoise {model} {table}",
        "evaluate {model} {table}",
        "explain {model} {table} --json",
        "sample {model}",
        "info {model} --json",
        "ask {model} legs=3",
    ],
)
def test_a_query_imports_nothing_that_it_does_not_need(home, command) -> None:
    """Or a query of ten rows would take several times as long."""
    words = [word.format(model=home / "model", table=home / "animals.csv") for word in command.split()]
    code = (
        "import sys\nfrom made.cli import main\ntry: main()\n"
        "finally: print('imported', *sorted(sys.modules), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code, *words, "--quiet"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    imported = set(result.stderr.rpartition("imported")[2].split())
    assert "torch" in imported
    assert not imported & {"sklearn", "scipy", "pandas", "polars", "matplotlib", "PIL", "jinja2", "rich", "optuna"}
    assert not imported & {"filelock", "pooch", "requests", "sympy", "torch._dynamo", "torch._inductor", "torch.onnx"}
    # Neither the estimator, which is for Python, nor another command.
    assert "made.estimator" not in imported
    others = {"fit", "tune", "compare", "score", "impute", "predict", "report", "paper"} - {words[0]}
    assert not imported & {f"made.cli.{other}" for other in others}


def test_a_fit_imports_no_compiler(home) -> None:
    """As the optimizers of torch do: it would take longer than the fit of a small table."""
    code = "import sys\nfrom made.cli import main\ntry: main()\nfinally: assert 'torch._dynamo' not in sys.modules"
    words = ["fit", home / "animals.csv", "--out", home / "another", "--max-epochs", "2", "--quiet"]
    subprocess.run([sys.executable, "-c", code, *words], check=True)


def test_a_wrong_folder_is_refused_before_torch_is_imported(tmp_path) -> None:
    code = "import sys\nfrom made.cli import main\ntry: main()\nfinally: assert 'torch' not in sys.modules"
    words = [sys.executable, "-c", code, "score", tmp_path / "nothing", "penguins"]
    result = subprocess.run(words, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (4, f"Error: {tmp_path / 'nothing'}: no such folder.\n")


def test_the_estimator_imports_scikit_learn_and_what_it_needs_itself() -> None:
    code = (
        "import sys, made; made.MADE; assert not {'pydantic', 'filelock', 'rich', 'typer', 'jinja2', 'matplotlib', "
        "'pooch', 'torch._dynamo', 'sympy'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "command", ["fit", "evaluate", "score", "sample", "impute", "explain", "info", "demo", "data list"]
)
def test_help_needs_no_torch_and_every_command_has_the_common_options(command) -> None:
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys\nfrom made.cli import main\ntry: main()\n"
            "finally: assert not {'torch', 'sklearn', 'pyarrow', 'pydantic'} & set(sys.modules)",
            *command.split(),
            "--help",
        ],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert {"--json", "--quiet", "--seed"} <= set(re.findall(r"--[a-z-]+", result.stdout))
    if command == "fit":
        for name, parameter in PARAMETERS.items():
            option = {"random_state": "seed"}.get(name, name).replace("_", "-")
            assert f"--{option}" in result.stdout, name
            assert parameter.help
        sections = re.findall(r"^([A-Z][a-z ]+):", result.stdout, re.M)
        assert sections == ["Usage", "Arguments", "Options", "Network", "Training", "Table and computation"]


def test_the_help_has_a_line_for_each_command_that_is_not_cut_off() -> None:
    text = subprocess.run([sys.executable, "-m", "made", "--help"], capture_output=True, text=True, check=True).stdout
    lines = dict(re.findall(r"^  ([a-z]+)  +(.+)$", text.partition("Commands:")[2].partition("Exit codes:")[0], re.M))
    assert list(lines) == [*COMMANDS, *GROUPS]
    assert not [line for line in lines.values() if line.endswith("...")]
    assert re.search(r"^ +130  stopped by SIGINT", text, re.M)


def test_fit_writes_a_model_and_pictures(home) -> None:
    files = {file.name for file in (home / "model").iterdir()}
    assert files >= {"config.json", "model.safetensors", "manifest.json", "history.jsonl", "README.md"}
    assert (home / "model" / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    lines = [json.loads(line) for line in (home / "model" / "history.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [0, 1]


def test_info_says_what_a_model_is(home) -> None:
    facts = run_json("info", home / "model")
    assert facts["finished"] is True
    assert facts["epochs"] == 2
    assert facts["parameters"] > 0
    assert [column["name"] for column in facts["columns"]] == ["species, kind", "weight", "legs"]
    assert [column["kind"] for column in facts["columns"]] == ["categorical", "numeric", "binary"]
    assert "finished" in run("info", home / "model").stdout


@pytest.mark.parametrize("name", ["animals.csv", "animals.parquet"])
def test_evaluate_prints_the_nll_of_rows(home, name) -> None:
    facts = run_json("evaluate", home / "model", home / name)
    assert facts.keys() >= {"nll", "ci95", "rows", "masks", "bits_per_column"}
    assert facts["rows"] == 120
    assert facts["masks"] == 2
    assert facts["bits_per_column"] == pytest.approx(facts["nll"] / np.log(2) / 3)
    said = run("evaluate", home / "model", home / name).stdout
    assert said.startswith(f"NLL {facts['nll']:.3f} ± {facts['ci95']:.3f} (95 %) nats, ")


def test_the_nll_is_the_mean_of_the_scores(home) -> None:
    scores = run("score", home / "model", home / "animals.csv").stdout.splitlines()
    assert scores[0] == "log_prob"
    nll = run_json("evaluate", home / "model", home / "animals.csv")["nll"]
    assert -np.mean(list(map(float, scores[1:]))) == pytest.approx(nll, abs=1e-5)


def test_the_number_of_masks_is_an_option(home) -> None:
    few, many = (run_json("evaluate", home / "model", home / "animals.csv", "--masks", count) for count in (1, 5))
    assert (few["masks"], many["masks"]) == (1, 5)
    assert few["nll"] != many["nll"]


def test_standard_input_is_a_file_too(home, forks, tmp_path) -> None:
    streams = {"stdin": home / "animals.csv", "stdout": tmp_path / "out", "stderr": tmp_path / "log"}
    assert forks.wait(forks.command("evaluate", home / "model", "-", "--json", **streams)) == 0
    found = json.loads((tmp_path / "out").read_text())
    assert found["nll"] == run_json("evaluate", home / "model", home / "animals.csv")["nll"]


def test_samples_are_rows_of_the_table(home, tmp_path) -> None:
    run("sample", home / "model", "-n", 50, "--out", tmp_path / "new.csv", "--seed", 3)
    text = (tmp_path / "new.csv").read_text()
    assert text.splitlines()[0] == '"species, kind",weight,legs'
    for line in text.splitlines()[1:]:
        assert re.fullmatch(r'(cat|"dog, big"|"say ""hi"""),-?[\d.e+-]+,[34]', line), line
    run("sample", home / "model", "-n", 5, "--out", tmp_path / "new.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "new.parquet").num_rows == 5


def test_samples_follow_from_the_seed(home) -> None:
    first, again, other = (run("sample", home / "model", "-n", 50, "--seed", seed).stdout for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_samples_have_the_given_values(home) -> None:
    facts = run_json("sample", home / "model", "-n", 4, "--given", '"species, kind=dog, big", legs=4')
    assert facts["columns"] == ["species, kind", "weight", "legs"]
    assert [row[0] for row in facts["rows"]] == ["dog, big"] * 4
    assert [row[2] for row in facts["rows"]] == [4] * 4


def test_missing_values_are_filled(home, tmp_path) -> None:
    before = pyarrow.csv.read_csv(home / "animals.csv").to_pylist()
    for strategy in ("sample", "mode", "mean"):
        run("impute", home / "model", home / "animals.csv", "--out", tmp_path / "full.csv", "--strategy", strategy)
        after = pyarrow.csv.read_csv(tmp_path / "full.csv").to_pylist()
        for old, new in zip(before, after, strict=True):
            assert all(value is not None for value in new.values())
            assert all(new[name] == value for name, value in old.items() if value is not None)


def test_several_imputed_tables_are_written_to_several_files(home, tmp_path) -> None:
    run("impute", home / "model", home / "animals.csv", "--out", tmp_path / "many.csv", "--draws", 2)
    assert (tmp_path / "many-1.csv").read_text() != (tmp_path / "many-2.csv").read_text()
    assert "needs" in run("impute", home / "model", home / "animals.csv", "--draws", 2, code=2).stderr


def test_a_condition_is_counted_beside_its_probability(home) -> None:
    animals = pyarrow.csv.read_csv(home / "animals.csv").to_pandas()
    name = animals.columns[0]
    value = animals[name].dropna().iloc[0]
    question = f"`{name}` = {value!r}"
    (answer,) = run_json("ask", home / "model", question, "--data", home / "animals.csv")["answers"]
    assert answer["rows"] == animals[name].notna().sum()
    assert answer["frequency"] == (animals[name] == value).sum() / answer["rows"]
    assert "in the rows:" in run("ask", home / "model", question, "--data", home / "animals.csv").stdout


def test_the_oddest_rows_are_explained(home, tmp_path) -> None:
    facts = run_json("explain", home / "model", home / "animals.csv", "--top", 5)["rows"]
    assert len(facts) == 5
    scores = run_json("score", home / "model", home / "animals.csv")["log_prob"]
    assert [fact["row"] for fact in facts] == np.argsort(scores, kind="stable")[:5].tolist()
    for fact in facts:
        above = [value - fact["usual"][name] for name, value in fact["surprise"].items()]
        assert above == sorted(above, reverse=True)
        assert sum(fact["surprise"].values()) >= fact["nll"] - 1e-4
    run("explain", home / "model", home / "animals.csv", "--out", tmp_path / "all.csv")
    assert pyarrow.csv.read_csv(tmp_path / "all.csv").shape == (120, 3)
    assert "least likely" in run("explain", home / "model", home / "animals.csv").stdout


def test_named_datasets_have_their_own_validation_rows(tmp_path) -> None:
    facts = run_json("fit", "digits", "--out", tmp_path / "model", *FAST, "--masks", "4")
    assert facts["finished"]
    assert run_json("info", tmp_path / "model")["valid_rows"] == 300
    assert (tmp_path / "model" / "samples.png").exists()
    assert run_json("evaluate", tmp_path / "model", "digits")["rows"] == 300
    assert run_json("evaluate", tmp_path / "model", "digits:train")["rows"] == 1197
    names = [each["name"] for each in json.loads(run("data", "list", "--json").stdout)]
    assert {"digits", "penguins"} <= set(names)
    assert "binarized_mnist" in names
    assert run_json("data", "get", "digits")["columns"] == 64


def test_parameters_come_from_options_before_a_file(home, tmp_path) -> None:
    (tmp_path / "recipe.toml").write_text(
        'hidden_sizes = [6, 6]\nmax-epochs = 1\noptimizer = "adadelta"\nresidual = true\n'
    )
    run("fit", home / "animals.csv", "--out", tmp_path / "model", "--config", tmp_path / "recipe.toml",
        "--max-epochs", 2, "--no-direct", "--columns", "legs=numeric", "--quiet")  # fmt: skip
    facts = run_json("info", tmp_path / "model")
    settings = facts["settings"]
    assert settings["hidden_sizes"] == [6, 6]
    assert settings["optimizer"] == "adadelta"
    assert settings["residual"] is True
    assert settings["direct"] is False
    assert facts["epochs"] == 2
    assert facts["columns"][2]["kind"] == "numeric"


def test_an_unknown_parameter_in_a_file_is_named(tmp_path) -> None:
    (tmp_path / "wrong.toml").write_text("layers = 3\n")
    wrong = run("fit", "digits", "--out", tmp_path / "x", "--config", tmp_path / "wrong.toml", code=2)
    assert "'layers'" in wrong.stderr


@pytest.fixture
def out(home, tmp_path) -> Path:
    """A folder with a finished run of two epochs."""
    run("fit", home / "animals.csv", "--out", tmp_path / "model", *FAST, "--quiet")
    return tmp_path / "model"


def test_a_finished_run_is_not_trained_again(home, out) -> None:
    before = (out / "model.safetensors").read_bytes()
    refused = run("fit", home / "animals.csv", "--out", out, *FAST, code=2)
    assert "--resume" in refused.stderr
    done = run("fit", home / "animals.csv", "--out", out, "--resume")
    assert "is finished" in done.stderr
    assert (out / "model.safetensors").read_bytes() == before


def test_more_epochs_continue_a_run_as_if_it_had_not_stopped(home, out, tmp_path) -> None:
    run("fit", home / "animals.csv", "--out", out, "--resume", "--max-epochs", 4, "--quiet")
    assert run_json("info", out)["epochs"] == 4
    whole = tmp_path / "whole"
    run("fit", home / "animals.csv", "--out", whole, *FAST, "--max-epochs", 4, "--resume", "--quiet")  # nothing there
    assert (out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_a_run_is_resumed_with_its_own_parameters_only(home, out) -> None:
    other = run("fit", home / "animals.csv", "--out", out, "--resume", "--max-epochs", 6, "--dropout", 0.5, code=2)
    assert "dropout" in other.stderr
    run("fit", home / "animals.csv", "--out", out, *FAST, "--max-epochs", 1, "--overwrite", "--quiet")
    assert run_json("info", out)["epochs"] == 1


def test_a_folder_of_other_files_is_not_overwritten(home, tmp_path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    run("fit", home / "animals.csv", "--out", tmp_path / "mine", "--overwrite", code=2)
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_an_overwritten_model_stays_until_all_arguments_are_checked(home, tmp_path) -> None:
    out = tmp_path / "model"
    run("fit", home / "animals.csv", "--out", out, *FAST, "--quiet")
    before = run_json("info", out)
    (tmp_path / "bad.csv").write_text("a\nb,c\n")
    run("fit", tmp_path / "nothing.csv", "--out", out, "--overwrite", code=3)
    run("fit", tmp_path / "bad.csv", "--out", out, "--overwrite", code=3)
    run("fit", home / "animals.csv", "--out", out, "--overwrite", "--dropout", 3, code=2)
    assert run_json("info", out) == before


def test_an_untrained_model_can_be_trained(home, tmp_path) -> None:
    out = tmp_path / "model"
    run("fit", home / "animals.csv", "--out", out, *FAST, "--max-epochs", 0, "--quiet")
    assert run_json("sample", out, "-n", 3)["columns"]
    run("fit", home / "animals.csv", "--out", out, "--max-epochs", 2, "--resume", "--quiet")
    run("fit", home / "animals.csv", "--out", tmp_path / "whole", *FAST, "--quiet")
    assert (out / "model.safetensors").read_bytes() == (tmp_path / "whole" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("container", ["pandas", "polars", "torch", "objects"])
def test_models_of_any_container_are_sampled(tmp_path, container) -> None:
    frame = pd.DataFrame({"a": ["x", "y"] * 20, "2021": [1.5, 2.5, 3.5, 0.1] * 10})
    rows = {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "torch": torch.tensor([[0.0, 1.0], [1.0, 0.0]] * 20),
        "objects": frame.to_numpy(dtype=object),
    }[container]
    MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=2).fit(rows).save(tmp_path / "model")
    lines = run("sample", tmp_path / "model", "-n", 4, "--seed", 0).stdout.splitlines()
    assert len(lines) == 5
    assert lines[0] == ("a,2021" if container in ("pandas", "polars") else "x0,x1")
    assert len(run_json("sample", tmp_path / "model", "-n", 4)["rows"]) == 4
    if container == "pandas":
        drawn = run_json("sample", tmp_path / "model", "-n", 4, "--given", "2021=1.5")["rows"]
        assert [row[1] for row in drawn] == [1.5] * 4


def test_an_interrupted_run_prints_how_to_resume_and_resumes(home, forks, tmp_path) -> None:
    out = tmp_path / "model"
    arguments = ["fit", str(home / "animals.csv"), "--out", str(out), "--hidden-sizes", "8", "--schedule", "falling"]
    arguments += ["--valid", str(home / "animals.csv")]
    process = forks.command(*arguments, "--max-epochs", 100_000, "--patience", 100_000, stderr=tmp_path / "log")
    while not list(out.glob("checkpoint-*")):
        time.sleep(0.05)
    os.kill(process, 2)
    assert forks.wait(process) == 130
    said = (tmp_path / "log").read_text()
    assert f"made fit {home / 'animals.csv'} --out {out} --valid {home / 'animals.csv'} --resume" in said
    assert "Traceback" not in said
    facts = run_json("info", out)
    assert facts["finished"] is False
    assert run_json("evaluate", out, home / "animals.csv")["rows"] == 120
    run(*arguments[:4], *arguments[6:], "--resume", "--max-epochs", facts["epochs"] + 1, "--quiet")
    assert run_json("info", out)["finished"] is True


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["fit"], 2, "DATA"),
        (["fit", "digits", "--out", "X", "--speed", "5"], 2, "--speed"),
        (["fit", "digits", "--out", "X", "--hidden-sizes", "many"], 2, "--hidden-sizes"),
        (["fit", "digits", "--out", "X", "--hidden-sizes", "0"], 2, "--hidden-sizes"),
        (["fit", "digits", "--out", "X", "--masks", "few"], 2, "--masks"),
        (["fit", "digits", "--out", "X", "--device", "abacus"], 2, "device"),
        (["fit", "digits", "--out", "X", "--columns", "foo=numeric"], 2, "foo"),
        (["fit", "digits", "--out", "X", "--columns", "x1=odd"], 2, "odd"),
        (["fit", "digits", "--out", "X", "--dropout", "2"], 2, "dropout"),
        (["fit", "digits", "--out", "X", "--optimizer", "lion"], 2, "optimizer"),
        (["fit", "digits", "--out", "X", "--optimizer", "adagrad", "--momentum", "0.5"], 2, "momentum"),
        (["fit", "digits", "--out", "X", "--image", "7x7"], 2, "--image"),
        (["fit", "digits", "--out", "X", "--resume", "--overwrite"], 2, "exclude"),
        (["fit", "nothing", "--out", "X"], 3, "neither a file nor a named dataset"),
        (["fit", "nothing.csv", "--out", "X"], 3, "does not exist"),
        (["fit", "digits:last", "--out", "X"], 3, "last"),
        (["fit", "EMPTY.csv", "--out", "X"], 3, "EMPTY.csv"),
        (["fit", "digits", "--out", "X", "--optimizer", "sgd", "--learning-rate", "1e37"], 5, "not finite"),
        (["info", "NOTHING"], 4, "no such folder"),
        (["evaluate", "MODEL", "WRONG.csv"], 3, "heavy"),
        (["evaluate", "MODEL", "LACKS.csv"], 3, "legs"),
        (["evaluate", "MODEL", "animals.csv", "--given", "wings"], 2, "wings"),
        (["sample", "MODEL", "--given", "legs"], 2, "--given"),
        (["sample", "MODEL", "--given", "legs=hundred"], 3, "hundred"),
        (["sample", "MODEL", "--temperature", "0"], 2, "--temperature"),
        (["sample", "MODEL", "-n", "0"], 2, "--count"),
        (["sample", "MODEL", "--seed", "5000000000"], 2, "--seed"),
        (["impute", "MODEL", "animals.csv", "--strategy", "guess"], 2, "--strategy"),
        (["evaluate", "DAMAGED", "animals.csv"], 4, "SHA-256"),
        (["data", "get", "nothing"], 3, "nothing"),
        (["data", "list", "--speed"], 2, "--speed"),
    ],
)
def test_every_error_is_a_sentence_and_a_code(home, tmp_path, monkeypatch, arguments, code, said) -> None:
    for file in ("animals.csv",):
        (tmp_path / file).write_bytes((home / file).read_bytes())
    (tmp_path / "EMPTY.csv").write_text("")
    (tmp_path / "WRONG.csv").write_text('"species, kind",weight,legs\ncat,heavy,4\n')
    (tmp_path / "LACKS.csv").write_text('"species, kind",weight\ncat,5\n')
    for name in ("MODEL", "DAMAGED"):
        (tmp_path / name).mkdir()
        for file in (home / "model").iterdir():
            content = file.read_bytes()
            if name == "DAMAGED" and file.name == "config.json":
                content = content.replace(b'"seed": 0', b'"seed": 1')
            (tmp_path / name / file.name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.output
    if code in (2, 3):
        assert not (tmp_path / "X").exists()


def test_a_closed_pipe_is_not_an_error(home, forks, tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    sample = ("sample", home / "model", "-n", 20_000)
    process = forks.command(*sample, stdout=tmp_path / "pipe", stderr=tmp_path / "log")
    with (tmp_path / "pipe").open() as pipe:
        assert pipe.readline().startswith('"species, kind"')
    assert forks.wait(process) == 0
    assert (tmp_path / "log").read_text() == ""


def test_the_version_is_printed() -> None:
    assert re.fullmatch(r"made \d+\.\d+\.\d+\n", run("--version").stdout)


def test_the_console_script_is_there() -> None:
    script = Path(sys.prefix) / "bin" / "made"
    if not script.exists():
        pytest.skip("made is not installed in this environment")
    assert "Turn a table" in subprocess.run([script, "--help"], capture_output=True, text=True, check=True).stdout
