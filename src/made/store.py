"""The model folder: plain files, and a manifest that says which of them count, how long they are, and their SHA-256.

A file is written beside its place, flushed, and renamed into it. The manifest comes last: until it is in place, the one
before it holds, and so do the files that it names, because no file that it names is ever written over. So a folder is
whole at every moment, wherever a process is killed. While a model is trained, the manifest names a checkpoint alone,
each under a new name; in the end, the model's own files.

Everything that is read is checked first: names, sizes, digests, and that a manifest is to the letter what would be
written. Tensors are safetensors, the rest is JSON; nothing in a folder can run.
"""

from __future__ import annotations

import ctypes
import glob
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from made.errors import ModelError, QuestionError

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "FORMAT",
    "Folder",
    "check_replaceable",
    "commit",
    "is_begun",
    "is_model",
    "only_writer",
    "read_tensors",
    "replace_folder",
    "tensors_file",
]

FORMAT = 1
MANIFEST = "manifest.json"
LARGEST_JSON = 256 * 2**20
OURS = ("config.json", "model.safetensors", "README.md", "learning_curve.png", "samples.png")

Content: TypeAlias = bytes | Callable[[Path], None]


@dataclass(frozen=True)
class Folder:
    """A model folder that was checked: its manifest is right, and every file is what the manifest says.

    Attributes:
        path: where it is.
        finished: whether training came to its end.
        files: the names of the files that count.
    """

    path: Path
    finished: bool
    files: frozenset[str]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Folder:
        """Check a folder; whatever is wrong with it is a :class:`~made.errors.ModelError`."""
        path = Path(path)
        manifest = _read_manifest(path)
        for name, facts in manifest["files"].items():
            _check_file(path / name, facts["bytes"], facts["sha256"])
        return cls(path, manifest["finished"], frozenset(manifest["files"]))

    @property
    def checkpoint(self) -> Path | None:
        """The checkpoint, if there is one."""
        names = [name for name in self.files if name.startswith("checkpoint-")]
        if len(names) > 1:
            raise ModelError(f"{self.path} has {len(names)} checkpoints where one is allowed.")
        return self.path / names[0] if names else None

    def file(self, name: str) -> Path:
        """A file that has to be there."""
        if name not in self.files:
            what = "not a model of made" if self.files else "a run that has only just begun, and no model yet"
            raise ModelError(f"{self.path} is {what}: it has no {name}.")
        return self.path / name

    def json(self, name: str) -> dict[str, Any]:
        """A file of JSON, which has to be an object."""
        return parse_object(self.file(name).read_bytes(), f"{self.path / name}")


def parse_object(text: bytes | str, where: str) -> dict[str, Any]:
    """JSON from a file, which has to be an object, and is refused with a sentence if it is not."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ModelError(f"{where} is not what it should be: it is damaged, or not of made.")
    return value


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether made has written a folder at this place; it may be damaged, or of a run that has only just begun."""
    return (Path(path) / MANIFEST).is_file()


def is_begun(path: str | os.PathLike[str]) -> bool:
    """Whether there is a model, or a state of training, at this place; what is damaged is refused."""
    return is_model(path) and bool(_read_manifest(Path(path))["files"])


def _manifest_text(finished: bool, files: Mapping[str, Mapping[str, Any]]) -> bytes:
    body = {"format": FORMAT, "finished": finished, "files": {name: dict(files[name]) for name in sorted(files)}}
    digest = hashlib.sha256(json.dumps(body).encode()).hexdigest()
    return (json.dumps(body | {"sha256": digest}, indent=2) + "\n").encode()


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise ModelError(f"{path}: there is no such folder.")
    file = path / MANIFEST
    if file.is_symlink() or not file.is_file():
        raise ModelError(f"{path} is not a model of made: there is no {MANIFEST} in it.")
    if file.stat().st_size > LARGEST_JSON:
        raise ModelError(f"{file} is too large to be one of made.")
    text = file.read_bytes()
    manifest = parse_object(text, str(file))
    version = manifest.get("format")
    if isinstance(version, int) and not isinstance(version, bool) and version > FORMAT:
        raise ModelError(
            f"{path} has format {version}, but this version of made reads formats up to {FORMAT}: it was written by a "
            "newer one, or its manifest is damaged. Remedy: upgrade made."
        )
    files = manifest.get("files")
    sound = version == FORMAT and isinstance(manifest.get("finished"), bool) and isinstance(files, dict)
    for name, facts in files.items() if sound and isinstance(files, dict) else ():
        sound &= bool(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name)) and name != MANIFEST
        sound &= isinstance(facts, dict) and isinstance(facts.get("bytes"), int)
        sound &= isinstance(facts, dict) and isinstance(facts.get("sha256"), str)
    if not sound or _manifest_text(manifest["finished"], manifest["files"]) != text:
        raise ModelError(f"{file} is damaged, or not of made.")
    return manifest


def _check_file(file: Path, size: int, sha256: str) -> None:
    if file.is_symlink() or not file.is_file():
        raise ModelError(f"{file} is missing: the model is not whole.")
    if file.stat().st_size != size:
        raise ModelError(f"{file} has {file.stat().st_size} bytes where {size} were written: it is damaged.")
    if _sha256(file) != sha256:
        raise ModelError(f"{file} is not what was written: its SHA-256 differs from the manifest's.")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def commit(path: Path, files: Mapping[str, Content], *, finished: bool, keep: Iterable[str] = ()) -> None:
    """Make these files what the folder holds: all of them, or, if this is killed, what it held before.

    Arguments:
        path: the folder, made if it is not there.
        files: what to write, by name: bytes, or a function that writes to a path. No name may be one that the
            folder's manifest has now, unless the bytes are the same.
        finished: whether training came to its end.
        keep: the names of files of the folder that go on to count, as they are.
    """
    path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        _write(path / name, content)
    facts = {}
    for name in (*files, *keep):
        facts[name] = {"bytes": (path / name).stat().st_size, "sha256": _sha256(path / name)}
    _write(path / MANIFEST, _manifest_text(finished, facts))
    # What no manifest names any more, and what a killed process left.
    for file in path.iterdir():
        if (file.name in OURS or file.name.startswith(("checkpoint-", ".part-"))) and file.name not in facts:
            file.unlink(missing_ok=True)


def _write(file: Path, content: Content) -> None:
    part = file.with_name(f".part-{secrets.token_hex(8)}")
    try:
        if isinstance(content, bytes):
            part.write_bytes(content)
        else:
            content(part)
        with part.open("rb") as stream:
            os.fsync(stream.fileno())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    _flush_folder(file.parent)


def _flush_folder(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # not every system opens folders
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_folder(path: Path, files: Mapping[str, Content], *, finished: bool = True) -> None:
    """Write a whole new folder beside its place, and rename it there; only a model, or nothing, may be there."""
    check_replaceable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.part-{secrets.token_hex(8)}")
    try:
        commit(new, files, finished=finished)
        if not path.exists() or not any(path.iterdir()):
            new.rename(path)
        elif not _exchange(new, path):
            old = path.with_name(f".{path.name}.part-{secrets.token_hex(8)}")
            path.rename(old)
            new.rename(path)
        _flush_folder(path.parent)
    finally:
        # What was there before, and what a killed process left.
        for other in path.parent.glob(f"{glob.escape('.' + path.name)}.part-*"):
            shutil.rmtree(other, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places at once, where the system can; otherwise there is a moment without either."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(rename(here, os.fsencode(one.absolute()), here, os.fsencode(other.absolute()), exchange) == 0)


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Hold a folder against other processes that would train in it; the system lets go when a process dies."""
    if fcntl is None:
        yield
        return
    lock = path / ".lock"
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise QuestionError(f"{path} is being trained in by another process: wait for it, or stop it.") from None
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def check_replaceable(path: Path) -> None:
    """Refuse a place where something is that made did not write."""
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file, and is not written over.")
    foreign = (
        [file for file in path.iterdir() if not file.name.startswith((".part-", ".lock"))] if path.is_dir() else []
    )
    if foreign and not is_model(path):
        raise FileExistsError(f"{path} has files that are not of a model of made, and is not written over.")


def tensors_file(tensors: Mapping[str, Tensor], facts: Mapping[str, Any] | None = None) -> Content:
    """Tensors, and facts for JSON, as the content of a safetensors file; the same ones give the same bytes."""
    metadata = {"format": "pt"} if facts is None else {"facts": json.dumps(facts)}

    def write(path: Path) -> None:
        path.touch()
        mode = path.stat().st_mode
        try:
            safetensors.torch.save_file(
                {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path, metadata
            )
        except safetensors.SafetensorError as error:
            raise OSError(f"{path.parent} cannot be written to: {error}.") from None
        path.chmod(mode)  # as all files are made here, not as safetensors makes its own

    return write


def read_tensors(
    file: Path, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> tuple[dict[str, Tensor], dict[str, Any] | None]:
    """The tensors of a file, whose names and shapes, if told, are compared before any is loaded; and the facts.

    All of them have to be float32 or float64, and finite.
    """
    try:
        with safetensors.safe_open(file, framework="pt") as reader:
            names = list(reader.keys())
            if shapes is not None:
                found = {name: tuple(reader.get_slice(name).get_shape()) for name in names}
                if found != dict(shapes):
                    wrong = sorted(name for name in found.keys() | shapes if found.get(name) != shapes.get(name))
                    raise ModelError(f"{file} does not fit its config.json: {', '.join(wrong)}.")
            facts = (reader.metadata() or {}).get("facts")
            tensors = {name: reader.get_tensor(name) for name in names}
    except safetensors.SafetensorError as error:
        raise ModelError(f"{file} cannot be read: {error}.") from None
    for name, tensor in tensors.items():
        if tensor.dtype not in (torch.float32, torch.float64) or not bool(tensor.isfinite().all()):
            raise ModelError(f"{file}: {name} is not of finite numbers, float32 or float64.")
    return tensors, None if facts is None else parse_object(facts, str(file))
