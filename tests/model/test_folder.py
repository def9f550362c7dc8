"""The model folder: whole at every moment, and refused with a sentence when it is not what was written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil

import numpy as np
import pytest
import torch

from made import MADE
from made.errors import ModelError
from made.model import manifest
from made.model.checkpoint import read_tensors, tensors_file
from made.model.config import Config
from made.model.folder import Folder, commit, replace_folder
from made.model.manifest import Manifest, Written

ROWS = np.random.default_rng(0).integers(2, size=(40, 1)).repeat(3, axis=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "model"
    small = {"hidden_sizes": (4,), "evaluation_masks": 2, "random_state": 0}
    MADE(**small, schedule="falling", max_epochs=1).fit(ROWS).save(path)
    return path


def test_a_folder_has_the_files_that_are_promised(folder) -> None:
    names = {file.name for file in folder.iterdir()}
    assert names >= {"config.json", "model.safetensors", "manifest.json", "history.jsonl", "README.md"}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == 6
    for name, facts in manifest["files"].items():
        content = (folder / name).read_bytes()
        assert facts == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert set(manifest["files"]) | {"manifest.json"} == names


def test_the_same_model_has_the_same_bytes(folder, tmp_path) -> None:
    MADE.load(folder).save(tmp_path / "again")
    for name in ("config.json", "model.safetensors", "README.md", "history.jsonl"):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_a_flipped_bit_of_any_byte_is_noticed(folder, tmp_path) -> None:
    """A bit of every byte of the manifest, and some of every other file."""
    generator = np.random.default_rng(0)
    for file in sorted(folder.iterdir()):
        content = file.read_bytes()
        places = (
            range(0, 8 * len(content), 9)
            if file.name == "manifest.json"
            else generator.integers(8 * len(content), size=40)
        )
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        for place in places:
            broken = bytearray(content)
            broken[place // 8] ^= 1 << (place % 8)
            (copy / file.name).write_bytes(broken)
            with pytest.raises(ModelError) as error:
                Folder.open(copy)
            assert "\n" not in str(error.value)
        (copy / file.name).write_bytes(content)
        Folder.open(copy)


def test_truncated_missing_and_foreign_files_are_refused(folder, tmp_path) -> None:
    for file in sorted(folder.iterdir()):
        for size in {0, 1, file.stat().st_size // 2, file.stat().st_size - 1}:
            copy = tmp_path / f"{file.name}-{size}"
            shutil.copytree(folder, copy)
            os.truncate(copy / file.name, size)
            with pytest.raises(ModelError, match=r"damaged|not what it should be|SHA-256"):
                MADE.load(copy)
        (copy / file.name).unlink()
        with pytest.raises(ModelError, match=r"missing|not a model of made"):
            MADE.load(copy)
    with pytest.raises(ModelError, match="no such folder"):
        MADE.load(tmp_path / "nothing")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "manifest.json").write_text('{"name": "an app", "version": 3}')
    with pytest.raises(ModelError, match="damaged, or was not written by made"):
        MADE.load(tmp_path / "foreign")


def rewrite(folder, target, **changes):
    """A copy whose config or manifest says something else, with every digest right."""
    files = {}
    for name in json.loads((folder / "manifest.json").read_text())["files"]:
        content = (folder / name).read_bytes()
        files[name] = changes[name](content) if name in changes else content
    commit(target, files, finished=True)
    return target


def config_with(**values):
    def change(content: bytes) -> bytes:
        config = json.loads(content)
        for name, value in values.items():
            (config if name in config else config["parameters"])[name] = value
        return json.dumps(config).encode()

    return change


@pytest.mark.parametrize(
    "values",
    [
        {"hidden_sizes": [10**9]},
        {"hidden_sizes": [5]},
        {"hidden_sizes": [1] * 10**6},
        {"evaluation_masks": 10**11},
        {"validation_masks": 10**11},
        {"batch_size": 10**30},
        {"segments": 0},
        {"masks": 2**30},
        {"hidden_sizes": "many"},
        {"masks": -1},
        {"masks": None},
        {"seed": "zero"},
        {"columns": []},
        {"columns": [{"name": "a"}] * 3},
        {"activation": "exec"},
        {"dropout": 7},
        {"dtype": "load"},
        {"digest": "0" * 64},
        {"ordering": ["natural"]},
        {"named": "yes"},
        {"seed": -1},
        {"seed": True},
        {"seed": 2**63},
        {"made": 1},
        {"target": 0},
        {"dropped": {"a": 0.5}},
        {"scores": {"valid_nll": "low"}},
        {"data": 5},
        {"data": {"rows": 0, "valid_rows": 0, "sha256": ""}},
        {"data": {"rows": 1, "valid_rows": -1, "sha256": ""}},
        {"data": {"rows": 1, "sha256": ""}},
        {"surplus": 1},
    ],
)
def test_a_forged_config_is_refused(folder, tmp_path, values) -> None:
    if "surplus" in values:
        change = lambda content: json.dumps(json.loads(content) | values).encode()  # noqa: E731
    else:
        change = config_with(**values)
    with pytest.raises(ModelError) as error:
        MADE.load(rewrite(folder, tmp_path / "copy", **{"config.json": change}))
    assert "Traceback" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda config: config | {"seed": "zero"},
            r"its config: 'seed' should be a whole number from 0 .*, not 'zero'",
        ),
        (lambda config: config | {"surplus": 1}, r"its config should not have 'surplus'"),
        (lambda config: config | {"data": {}}, r"its data lacks 'rows'"),
        (lambda config: {"made": "1"}, r"its config lacks 'seed'"),
    ],
)
def test_the_entry_of_a_config_that_is_wrong_is_named(folder, tmp_path, change, said) -> None:
    rewritten = {"config.json": lambda content: json.dumps(change(json.loads(content))).encode()}
    with pytest.raises(ModelError, match=f"copy is not a valid model: {said}"):
        MADE.load(rewrite(folder, tmp_path / "copy", **rewritten))


def test_a_config_is_written_as_it_was_read(folder) -> None:
    content = (folder / "config.json").read_bytes()
    assert Config.from_json(json.loads(content)).to_json() == json.loads(content)
    assert MADE.load(folder).model_.files()["config.json"] == content


def test_weights_that_are_not_finite_are_refused(folder, tmp_path) -> None:
    tensors, _ = read_tensors(folder / "model.safetensors")
    tensors["V"][0, 0] = torch.nan
    copy = tmp_path / "copy"
    files = {name: (folder / name).read_bytes() for name in Folder.open(folder).files}
    commit(copy, files | {"model.safetensors": tensors_file(tensors)}, finished=True)
    with pytest.raises(ModelError, match="must be finite"):
        MADE.load(copy)


@pytest.mark.parametrize("name", ["W1", "V", "c"])
def test_weights_that_would_overflow_are_refused(folder, tmp_path, name) -> None:
    """They are finite, but what is computed with them is not."""
    tensors, _ = read_tensors(folder / "model.safetensors")
    files = {file: (folder / file).read_bytes() for file in ("config.json", "README.md", "history.jsonl")}
    tensors[name] = tensors[name] + 1e38
    commit(tmp_path / "copy", files | {"model.safetensors": tensors_file(tensors)}, finished=True)
    with pytest.raises(ModelError, match=f"{name} has weights above 1e"):
        MADE.load(tmp_path / "copy")


def test_a_newer_format_is_refused_with_the_remedy(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(manifest, "FORMAT", 7)
    copy = rewrite(folder, tmp_path / "copy")
    monkeypatch.undo()
    with pytest.raises(ModelError, match=r"has format 7, .* reads formats up to 6.*upgrade made"):
        MADE.load(copy)


@pytest.mark.parametrize("name", ["../secret", "a/b", ".hidden", "manifest.json", "", "thesis.tex", "config.json.bak"])
def test_a_manifest_names_only_files_of_its_folder(folder, tmp_path, name) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (tmp_path / "secret").write_bytes(b"x")
    listed = Folder.open(copy).manifest.files | {name: Written.of(tmp_path / "secret")}
    (copy / "manifest.json").write_bytes(Manifest.of(True, listed).text)
    with pytest.raises(ModelError, match="damaged, or was not written by made"):
        Folder.open(copy)


def test_a_link_is_not_followed(folder, tmp_path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "config.json").rename(tmp_path / "elsewhere")
    (copy / "config.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="missing"):
        Folder.open(copy)


def test_a_failed_write_leaves_what_was_there(tmp_path) -> None:
    target = tmp_path / "model"
    commit(target, {"config.json": b"one"}, finished=True)

    def fail(path):
        path.write_bytes(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        commit(target, {"README.md": b"two", "config.json": fail}, finished=True)
    with pytest.raises(OSError, match="disk full"):
        replace_folder(target, {"config.json": b"two", "README.md": fail})
    with pytest.raises(OSError, match="disk full"):
        replace_folder(tmp_path / "other", {"README.md": fail})
    assert (target / "config.json").read_bytes() == b"one"
    assert Folder.open(target).files == {"config.json"}
    assert {file.name for file in target.iterdir()} == {"config.json", "manifest.json"}
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_only_models_are_replaced(tmp_path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(FileExistsError, match=r"not of a model of made, such as thesis.tex, .*another folder"):
        replace_folder(tmp_path / "mine", {"README.md": b""})
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="is a file"):
        replace_folder(tmp_path / "file", {"README.md": b""})
    (tmp_path / "empty").mkdir()
    replace_folder(tmp_path / "empty", {"README.md": b"one"})
    replace_folder(tmp_path / "empty", {"config.json": b"two"})
    assert {file.name for file in (tmp_path / "empty").iterdir()} == {"config.json", "manifest.json"}


def with_checkpoint(folder, target, change):
    """An unfinished folder, whose checkpoint was changed, with every digest right."""
    source = next(folder.glob("checkpoint-*"))
    tensors, facts = read_tensors(source)
    change(tensors, facts)
    commit(target, {source.name: tensors_file(tensors, facts)}, finished=False)
    return target


def set_parameter(name, value):
    return lambda tensors, facts: facts["config"]["parameters"].__setitem__(name, value)


def set_state(name, value):
    return lambda tensors, facts: facts["state"].__setitem__(name, value)


@pytest.mark.parametrize(
    "change",
    [
        set_parameter("activation", "foo"),
        set_parameter("dtype", "nn"),
        set_parameter("dropout", "x"),
        set_parameter("hidden_sizes", [10**9]),
        set_parameter("masks", 10**30),
        set_state("update", "x"),
        set_state("update", -5),
        set_state("update", 10**9),
        set_state("loss", "x"),
        set_state("waited", None),
        set_state("seconds", "q"),
        set_state("finalists", [[float("nan"), 0]]),
        set_state("history", [{"number": "x"}]),
        lambda tensors, facts: [tensors.pop(name) for name in list(tensors) if name.startswith("weights.")],
        lambda tensors, facts: [tensors.pop(name) for name in list(tensors) if name.startswith("average.")],
        lambda tensors, facts: [tensors.pop(name) for name in list(tensors) if name.startswith("optimizer.")],
        lambda tensors, facts: tensors.update({"optimizer.zz.exp": torch.zeros(3)}),
        lambda tensors, facts: tensors["weights.c"].fill_(torch.nan),
        lambda tensors, facts: tensors["best0.c"].fill_(torch.inf),
        lambda tensors, facts: tensors.update({name: tensor.double() for name, tensor in tensors.items()}),
        lambda tensors, facts: tensors.update({"weights.c": tensors["weights.c"].to(torch.float8_e5m2)}),
        lambda tensors, facts: facts.pop("config"),
    ],
)
def test_a_forged_checkpoint_is_refused(folder, tmp_path, change) -> None:
    """It is refused when it is loaded, or at the latest when it is gone on from."""
    copy = with_checkpoint(folder, tmp_path / "copy", change)
    with pytest.raises(ModelError):  # noqa: PT012
        MADE.load(copy)
        small = {"hidden_sizes": (4,), "evaluation_masks": 2, "random_state": 0}
        MADE(**small, schedule="falling", max_epochs=2).fit(ROWS, resume_from=copy)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "history.jsonl"])
def test_a_file_that_the_manifest_does_not_name_does_not_count(folder, tmp_path, name) -> None:
    files = {each: (folder / each).read_bytes() for each in Folder.open(folder).files}
    commit(tmp_path / "copy", {each: content for each, content in files.items() if each != name}, finished=True)
    (tmp_path / "copy" / name).write_bytes(files[name])
    with pytest.raises(ModelError, match=f"has no {name}"):
        MADE.load(tmp_path / "copy")


def test_weights_of_another_precision_are_refused(folder, tmp_path) -> None:
    tensors, _ = read_tensors(folder / "model.safetensors")
    files = {name: (folder / name).read_bytes() for name in Folder.open(folder).files}
    large = {name: 1e300 * tensor.double() for name, tensor in tensors.items()}
    commit(tmp_path / "copy", files | {"model.safetensors": tensors_file(large)}, finished=True)
    with pytest.raises(ModelError, match="of another dtype"):
        MADE.load(tmp_path / "copy")
    broken = rewrite(folder, tmp_path / "text", **{"history.jsonl": lambda content: b"\xff\xfe" + content})
    with pytest.raises(ModelError):
        MADE.load(broken)


def test_all_files_have_the_same_permissions(folder) -> None:
    assert len({file.stat().st_mode for file in folder.iterdir()}) == 1


def test_a_run_without_a_checkpoint_starts_from_scratch(tmp_path) -> None:
    """Killed between the first file and the first checkpoint."""
    commit(tmp_path / "run", {}, finished=False)
    (tmp_path / "run" / "history.jsonl").write_text("")
    with pytest.raises(ModelError, match="only just begun"):
        MADE.load(tmp_path / "run")
    model = MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=2, random_state=0)
    model.fit(ROWS, resume_from=tmp_path / "run")
    assert MADE.load(tmp_path / "run").n_epochs_ == 1
