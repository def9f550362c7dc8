"""Writing a model folder: the old model or the new one, whatever happens, and nothing foreign lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from command import run
from made import MADE
from made.errors import ModelError, QuestionError
from made.io.lock import LOCK, hold
from made.model.folder import Folder, add_files, commit
from made.model.manifest import Manifest, Written
from made.model.model import Model

ROWS = np.random.default_rng(0).integers(2, size=(40, 1)).repeat(3, axis=1)


@pytest.fixture(scope="module")
def model():
    return MADE(hidden_sizes=(4,), max_epochs=1, evaluation_masks=2, random_state=0).fit(ROWS)


def content(path: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path from there."""
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def with_foreign(path: Path) -> dict[str, bytes]:
    """Put a person's own files into a folder."""
    (path / "src" / "deep").mkdir(parents=True)
    (path / ".git").mkdir()
    (path / "nothing").mkdir()
    for name in (
        "notes.txt",
        "src/deep/main.py",
        ".git/HEAD",
        ".hidden",
        ".part-of-mine",
        ".lock",
        ".made-notes",
        "checkpoint-notes.txt",
        "checkpoint-1.safetensors.bak",
        "learning_curve.png.old",
    ):
        (path / name).write_text(f"{name} is mine")
    return content(path)


FOREIGN_MANIFESTS = {
    "not JSON": b"a web app",
    "empty": b"",
    "another JSON": b'{"name": "an app", "version": 3}',
    "like one of ours": b'{"format": 1, "finished": true, "files": {}, "sha256": "0"}\n',
    "other files": Manifest.of(True, {"notes.txt": Written(17, "0" * 64)}).text,
    "a newer format": b'{"format": 2}',
    "ours, but reformatted": json.dumps(json.loads(Manifest.of(True, {}).text)).encode(),
}


@pytest.mark.parametrize("text", FOREIGN_MANIFESTS.values(), ids=FOREIGN_MANIFESTS)
def test_a_folder_with_a_foreign_manifest_is_left_alone(model, tmp_path, text) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "manifest.json").write_bytes(text)
    before = with_foreign(tmp_path / "p")
    with pytest.raises(FileExistsError, match=r"So .*/p is not overwritten: choose another folder\."):
        model.save(tmp_path / "p")
    with pytest.raises((FileExistsError, ModelError)):
        MADE(max_epochs=1).fit(ROWS, resume_from=tmp_path / "p")
    with pytest.raises(FileExistsError):
        MADE(max_epochs=1).fit(ROWS, resume_from=tmp_path / "p", overwrite=True)
    assert content(tmp_path / "p") == before


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_manifest_that_is_no_file_is_left_alone(model, tmp_path, kind) -> None:
    (tmp_path / "p").mkdir()
    if kind == "folder":
        (tmp_path / "p" / "manifest.json").mkdir()
    else:
        model.save(tmp_path / "real")
        (tmp_path / "p" / "manifest.json").symlink_to(tmp_path / "real" / "manifest.json")
    before = with_foreign(tmp_path / "p")
    with pytest.raises(FileExistsError, match="is not overwritten"):
        model.save(tmp_path / "p")
    assert content(tmp_path / "p") == before


def test_foreign_files_beside_a_model_survive(model, tmp_path) -> None:
    path = tmp_path / "model"
    model.save(path)
    own = content(path)
    foreign = {name: text for name, text in with_foreign(path).items() if name not in own}
    model.save(path)
    assert content(path) == own | foreign
    assert (path / "nothing").is_dir()
    MADE(hidden_sizes=(5,), max_epochs=1, random_state=1).fit(ROWS, resume_from=path, overwrite=True)
    assert {name: text for name, text in content(path).items() if name in foreign} == foreign
    assert MADE.load(path).hidden_sizes == [5]


def test_the_command_line_overwrites_models_only(model, tmp_path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    fit = ("fit", str(tmp_path / "rows.npy"), "--out", str(tmp_path / "p"), "--overwrite", "--max-epochs", "1")
    fit += ("--hidden-sizes", "4", "--quiet")
    (tmp_path / "p").mkdir()
    for name in ("README.md", "config.json", "checkpoint-notes.txt"):
        (tmp_path / "p" / name).write_text("mine")
    before = content(tmp_path / "p")
    said = run(*fit, code=2).stderr
    assert "README.md" in said
    assert "choose another folder" in said
    assert content(tmp_path / "p") == before
    shutil.rmtree(tmp_path / "p")
    model.save(tmp_path / "p")
    (tmp_path / "p" / "checkpoint-notes.txt").write_text("mine")
    run(*fit)
    assert (tmp_path / "p" / "checkpoint-notes.txt").read_text() == "mine"
    assert MADE.load(tmp_path / "p").random_state == 0


@pytest.mark.parametrize("name", ["README.md", "model.safetensors", "checkpoint-2.safetensors"])
def test_a_file_of_the_model_that_has_changed_is_not_written_over(model, tmp_path, name) -> None:
    """It may be what somebody wrote there. The remedy works: without the file, the folder is replaced."""
    path = tmp_path / "model"
    model.save(path)
    assert name in Folder.open(path).files
    (path / name).write_bytes(b"mine")
    before = content(path)
    with pytest.raises(FileExistsError, match=rf"{name} has changed since made wrote it, .* move it elsewhere"):
        model.save(path)
    with pytest.raises(FileExistsError, match=rf"{name} has changed since made wrote it"):
        MADE(max_epochs=1).fit(ROWS, resume_from=path, overwrite=True)
    assert content(path) == before
    (path / name).unlink()
    model.save(path)
    MADE.load(path)


def test_a_foreign_file_under_a_name_of_ours_is_not_written_over(model, tmp_path) -> None:
    path = tmp_path / "run"
    commit(path, {}, finished=False)  # a run that has only begun
    for name in ("README.md", "history.jsonl", "samples.png", "checkpoint-7.safetensors"):
        (path / name).write_text("mine")
        with pytest.raises(FileExistsError, match=f"{name} was not written by made"):
            MADE(max_epochs=1).fit(ROWS, resume_from=path)
        assert (path / name).read_text() == "mine"
        (path / name).unlink()
    (path / "README.md").mkdir()
    with pytest.raises(FileExistsError, match=r"README\.md was not written by made"):
        model.save(path)


def test_a_forged_manifest_removes_only_what_has_its_digest(tmp_path) -> None:
    path = tmp_path / "p"
    path.mkdir()
    (path / "config.json").write_text("mine")
    (path / "manifest.json").write_bytes(Manifest.of(True, {"config.json": Written(4, "0" * 64)}).text)
    commit(path, {"README.md": b"a card"}, finished=True)
    assert (path / "config.json").read_text() == "mine"


def test_a_history_of_an_earlier_version_is_ours(tmp_path) -> None:
    """It was written during training without being listed."""
    model = MADE(hidden_sizes=(4,), max_epochs=2, evaluation_masks=2, random_state=0)
    model.fit(ROWS, resume_from=tmp_path / "whole")
    lines = (tmp_path / "whole" / "history.jsonl").read_bytes()
    commit(tmp_path / "run", {}, finished=False)
    (tmp_path / "run" / "history.jsonl").write_bytes(lines[:-20])
    model.fit(ROWS, resume_from=tmp_path / "run")
    assert len((tmp_path / "run" / "history.jsonl").read_bytes().splitlines()) == 2


def test_a_link_to_a_folder_is_followed(model, tmp_path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "far" / "model")
    for _ in range(2):
        model.save(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert MADE.load(tmp_path / "far" / "model").n_epochs_ == 1
    MADE(hidden_sizes=(4,), max_epochs=1).fit(ROWS, resume_from=tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()


def test_one_process_at_a_time_writes_to_a_folder(model, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("made.model.run.WAIT", 0.01)
    monkeypatch.setattr("made.model.folder.WAIT", 0.01)
    path = tmp_path / "run"
    with hold(path, wait=0):
        assert [file.name for file in path.iterdir()] == [LOCK]
        with pytest.raises(QuestionError, match="by another process: wait for it"):
            MADE(hidden_sizes=(4,), max_epochs=1).fit(ROWS, resume_from=path)
        with pytest.raises(QuestionError, match="by another process: wait for it"):
            model.save(path)
    assert not path.exists()  # as it was before
    model.save(path)
    assert not (path / LOCK).exists()


def test_a_lock_file_that_is_not_ours_is_refused(tmp_path) -> None:
    (tmp_path / LOCK).write_text("mine")
    with pytest.raises(QuestionError, match=r"\.made\.lock is not a lock"), hold(tmp_path, wait=0):
        pass
    assert (tmp_path / LOCK).read_text() == "mine"


def test_files_are_added_to_a_model(model, tmp_path) -> None:
    model.save(tmp_path / "model")
    before = Folder.open(tmp_path / "model").manifest.files
    add_files(tmp_path / "model", {"samples.png": b"a picture"})
    after = Folder.open(tmp_path / "model").manifest.files
    assert {name: each for name, each in after.items() if name != "samples.png"} == before


def test_a_model_is_read_while_it_is_replaced(model, tmp_path, monkeypatch) -> None:
    """What was read of the old one does not count."""
    path = tmp_path / "model"
    model.save(path)
    other = MADE(hidden_sizes=(6,), max_epochs=1, random_state=0).fit(ROWS)
    load, count = Folder.open, 0

    def replaced(*args, **options):
        nonlocal count
        found = load(*args, **options)
        count += 1
        if count == 1:
            other.save(path)
        return found

    monkeypatch.setattr(Folder, "open", replaced)
    found = Model.load(path, to_train=True)
    assert found.network.c.shape == other.model_.network.c.shape
    assert found.config.parameters["hidden_sizes"] == [6]
    assert count == 2


def test_a_checkpoint_is_read_only_to_resume(model, tmp_path) -> None:
    path = tmp_path / "model"
    model.save(path)
    file = next(path.glob("checkpoint-*"))
    file.write_bytes(bytes(file.stat().st_size))
    MADE.load(path)
    with pytest.raises(ModelError, match="SHA-256"):
        MADE(hidden_sizes=(4,), max_epochs=2, evaluation_masks=2, random_state=0).fit(ROWS, resume_from=path)


# A process saves over a folder, and ends itself before its n-th operation on files; for every n there is.
SCRIPT = """
import itertools, os, shutil, signal, sys
from pathlib import Path
from made.model.folder import Folder, replace_folder
target, how = Path(sys.argv[1]), sys.argv[2]
OLD = {"config.json": b"old", "README.md": b"same", "checkpoint-1.safetensors": b"1", "samples.png": b"picture"}
NEW = {"config.json": b"new", "README.md": b"same", "checkpoint-2.safetensors": b"2"}

def slowly(path):
    beside = path.with_name(".tmp1")  # as safetensors writes
    beside.write_bytes(b"2")
    beside.rename(path)
FOREIGN = {"notes.txt": b"mine", "checkpoint-notes.txt": b"mine", ".part-1": b"mine", "src/main.py": b"mine"}
EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.scandir", "os.listdir", "fcntl.flock")
os.fsync = lambda file: None  # slow, and of no matter while the system runs

def end_at(operation):
    count = itertools.count()
    def hook(event, arguments):
        if event in EVENTS and next(count) == operation:
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise SystemExit(143)
    sys.addaudithook(hook)

def found():
    folder = Folder.open(target)
    return {name: folder.file(name).read_bytes() for name in folder.files}

seen = []
for operation in itertools.count():
    shutil.rmtree(target, ignore_errors=True)
    replace_folder(target, OLD)
    (target / "src").mkdir()
    for name, text in FOREIGN.items():
        (target / name).write_bytes(text)
    child = os.fork()
    if child == 0:
        end_at(operation)
        try:
            replace_folder(target, NEW | {"checkpoint-2.safetensors": slowly})
        except SystemExit:
            os._exit(143)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    whole = found()
    assert whole in (OLD, NEW), (operation, whole)
    assert all((target / name).read_bytes() == text for name, text in FOREIGN.items()), operation
    seen.append(whole == NEW)
    replace_folder(target, NEW)
    assert found() == NEW
    left = {str(file.relative_to(target)) for file in target.rglob("*") if file.is_file()}
    assert left == {*NEW, *FOREIGN, "manifest.json"}, (operation, left)
    if status == 0:
        break
    assert status == (-9 if how == "kill" else 143), status
assert seen == sorted(seen), "new, and then old again"
print(len(seen), sum(seen))
"""


@pytest.mark.parametrize("how", ["kill", "raise"])
def test_a_save_that_is_ended_anywhere_leaves_the_old_model_or_the_new_one(tmp_path, how) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, tmp_path / "model", how], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ends, new = map(int, done.stdout.split())
    assert ends > 30
    assert 1 < new < ends


WRITERS = """
import sys
from pathlib import Path
from made.model.folder import replace_folder
for number in range(40):
    text = f"{sys.argv[2]} {number}".encode()
    names = ("config.json", "README.md", f"checkpoint-{number}.safetensors")
    replace_folder(Path(sys.argv[1]), dict.fromkeys(names, text))
"""


def test_processes_that_save_to_one_path_wait_for_each_other(tmp_path) -> None:
    path = tmp_path / "model"
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITERS, path, name], stderr=subprocess.PIPE, text=True)
        for name in ("one", "two", "three")
    ]
    for process in processes:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    found = Folder.open(path)
    assert len({found.file(name).read_bytes() for name in found.files}) == 1
    assert content(path).keys() == {*found.files, "manifest.json"}
