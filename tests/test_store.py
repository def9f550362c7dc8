"""The model folder: whole at every moment, and refused with a sentence when it is not what was written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil

import numpy as np
import pytest
import torch

from made import MADE, store
from made.errors import ModelError
from made.store import Folder, commit, read_tensors, replace_folder, tensors_file

ROWS = np.random.default_rng(0).integers(2, size=(40, 1)).repeat(3, axis=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "model"
    MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=2, random_state=0).fit(ROWS).save(path)
    return path


def test_a_folder_has_the_files_that_are_promised(folder) -> None:
    names = {file.name for file in folder.iterdir()}
    assert names >= {"config.json", "model.safetensors", "manifest.json", "history.jsonl", "README.md"}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == 1
    for name, facts in manifest["files"].items():
        content = (folder / name).read_bytes()
        assert facts == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert set(manifest["files"]) | {"manifest.json"} == names


def test_the_same_model_has_the_same_bytes(folder, tmp_path) -> None:
    MADE.load(folder).save(tmp_path / "again")
    for name in ("config.json", "model.safetensors", "README.md", "history.jsonl"):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_every_flipped_bit_is_noticed(folder, tmp_path) -> None:
    """Every bit of the manifest, and some of every other file."""
    generator = np.random.default_rng(0)
    for file in sorted(folder.iterdir()):
        content = file.read_bytes()
        places = (
            range(8 * len(content)) if file.name == "manifest.json" else generator.integers(8 * len(content), size=40)
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


def test_what_is_truncated_missing_or_foreign_is_refused(folder, tmp_path) -> None:
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
    with pytest.raises(ModelError, match="there is no such folder"):
        MADE.load(tmp_path / "nothing")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "manifest.json").write_text('{"name": "an app", "version": 3}')
    with pytest.raises(ModelError, match="damaged, or not of made"):
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
        {"data": 5},
        {"surplus": 1},
    ],
)
def test_a_config_is_not_believed(folder, tmp_path, values) -> None:
    if "surplus" in values:
        change = lambda content: json.dumps(json.loads(content) | values).encode()  # noqa: E731
    else:
        change = config_with(**values)
    with pytest.raises(ModelError) as error:
        MADE.load(rewrite(folder, tmp_path / "copy", **{"config.json": change}))
    assert "Traceback" not in str(error.value)


def test_weights_that_are_not_finite_are_refused(folder, tmp_path) -> None:
    tensors, _ = read_tensors(folder / "model.safetensors")
    tensors["V"][0, 0] = torch.nan
    copy = tmp_path / "copy"
    files = {name: (folder / name).read_bytes() for name in Folder.open(folder).files}
    commit(copy, files | {"model.safetensors": tensors_file(tensors)}, finished=True)
    with pytest.raises(ModelError, match="not finite"):
        MADE.load(copy)


def test_a_newer_format_is_refused_with_the_remedy(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(store, "FORMAT", 2)
    copy = rewrite(folder, tmp_path / "copy")
    monkeypatch.undo()
    with pytest.raises(ModelError, match=r"has format 2, .* reads formats up to 1.*upgrade made"):
        MADE.load(copy)


@pytest.mark.parametrize("name", ["../secret", "a/b", ".hidden", "manifest.json", ""])
def test_a_manifest_names_only_files_of_its_folder(folder, tmp_path, name) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    facts = json.loads((copy / "manifest.json").read_text())["files"]
    (tmp_path / "secret").write_bytes(b"x")
    facts[name] = {"bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    (copy / "manifest.json").write_bytes(store._manifest_text(True, facts))
    with pytest.raises(ModelError, match="damaged, or not of made"):
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
    commit(target, {"a": b"one"}, finished=True)

    def fail(path):
        path.write_bytes(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        commit(target, {"b": fail}, finished=True)
    assert Folder.open(target).files == {"a"}
    assert {file.name for file in target.iterdir()} == {"a", "manifest.json"}
    with pytest.raises(OSError, match="disk full"):
        replace_folder(target, {"b": fail})
    assert Folder.open(target).files == {"a"}
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_only_models_are_replaced(tmp_path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(FileExistsError, match="not of a model of made"):
        replace_folder(tmp_path / "mine", {"a": b""})
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="is a file"):
        replace_folder(tmp_path / "file", {"a": b""})
    (tmp_path / "empty").mkdir()
    replace_folder(tmp_path / "empty", {"a": b"one"})
    replace_folder(tmp_path / "empty", {"b": b"two"})
    assert Folder.open(tmp_path / "empty").files == {"b"}
