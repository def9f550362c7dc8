"""Open and write a model folder: plain files, replaced atomically, and a manifest with the SHA-256 of each.

**Whole at every moment.** New files are written under hidden names that carry their digest, ``.made-<SHA-256>-<name>``,
and the files of the manifest are moved aside to such names. Then the new manifest replaces the old one, in a single
rename. Then files are moved to their own names. A reader that does not find a file under its own name looks for it
under the hidden one, so that wherever a process is killed, the folder is the old model or the new one. The next write
cleans up after it.

**Nothing foreign is lost.** A file is moved or removed only if the manifest of the folder lists it and it still has
the listed digest, or if its name is one of the hidden names above. The manifest itself has to be, byte for byte, what
would be written, and to list only names from :data:`manifest.NAMES`. Other files and folders are left alone; a write
that would replace one is refused.

Everything that is read is checked first: names, sizes, and digests. Tensors are safetensors, the rest is JSON; nothing
in a folder can run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, TypeVar

from made.errors import ModelError
from made.io.atomic import PART, atomic, naming, staged, sync
from made.io.lock import hold
from made.model.manifest import LARGEST_JSON, MANIFEST, NAMES, Manifest, Written, parse_object

HISTORY = "history.jsonl"
WAIT = 60.0  # seconds, for another process that writes to the same folder

# The content of a file: bytes, or a function that writes them to a path.
Content: TypeAlias = bytes | Callable[[Path], None]
Loaded = TypeVar("Loaded")

# Hidden names that only this module gives, to files that are moved to or from their own names.
ASIDE = re.compile(rf"\.made-[0-9a-f]{{64}}-(?:{NAMES.pattern})")


@dataclass(frozen=True)
class Folder:
    """A model folder whose files match its manifest."""

    path: Path
    manifest: Manifest
    places: Mapping[str, Path]  # of each file

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, to_train: bool = True) -> Folder:
        """Open a folder and check its files; any problem is a :class:`~made.errors.ModelError`.

        The checkpoint of a finished model, which is several times as large as all else, is read only if it is
        ``to_train``; otherwise its size alone is compared.
        """
        path = Path(path)
        manifest, places = Manifest.read(path), {}
        for name, written in manifest.files.items():
            read = to_train or not (manifest.finished and name.startswith("checkpoint-"))
            places[name], hidden = path / name, path / _aside(name, written)
            if fault := written.fault(places[name], read=read):
                if written.fault(hidden, read=read):
                    raise ModelError(fault)
                places[name] = hidden
        return cls(path, manifest, places)

    @property
    def finished(self) -> bool:
        """Whether training came to its end."""
        return self.manifest.finished

    @property
    def version(self) -> int:
        """The version of the format."""
        return self.manifest.version

    @property
    def files(self) -> frozenset[str]:
        """The names of the files that count."""
        return frozenset(self.places)

    @property
    def checkpoint(self) -> Path | None:
        """The checkpoint, if there is one."""
        names = [name for name in self.files if name.startswith("checkpoint-")]
        if len(names) > 1:
            raise ModelError(f"{self.path} has {len(names)} checkpoints where one is allowed.")
        return self.places[names[0]] if names else None

    def file(self, name: str) -> Path:
        """The path of a required file."""
        if name not in self.files:
            what = "not a model of made" if self.files else "a run that has only just begun, and no model yet"
            raise ModelError(f"{self.path} is {what}: it has no {name}.")
        return self.places[name]

    def json(self, name: str) -> dict[str, Any]:
        """The JSON object in a file."""
        return parse_object(self.file(name).read_bytes(), f"{self.path / name}")


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a folder has a manifest, possibly a damaged or foreign one."""
    return (Path(path) / MANIFEST).is_file()


def is_begun(path: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a model or a checkpoint; a damaged one is refused."""
    return is_model(path) and bool(Manifest.read(Path(path)).files)


def manifest_text(path: str | os.PathLike[str]) -> bytes | None:
    """The bytes of the manifest, to detect changes; ``None`` if there is none."""
    try:
        return (Path(path) / MANIFEST).read_bytes()
    except OSError:
        return None


def real_path(path: str | os.PathLike[str]) -> Path:
    """The folder that a path or a link points to."""
    return Path(os.path.realpath(path))


def check_replaceable(path: Path, names: Iterable[str] | None = None) -> None:
    """Refuse to replace anything that made did not write.

    That is a file; a folder that has files, other than hidden ones, but no manifest; and a folder with a file under one
    of the ``names`` (default: all that a run may write) that its manifest does not list, or lists with another digest.
    """
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file, and is not overwritten: choose another folder.")
    if not path.is_dir():
        return
    manifest = _manifest_of_ours(path)
    if manifest is None:
        if foreign := sorted(file.name for file in path.iterdir() if not file.name.startswith(".")):
            raise FileExistsError(
                f"{path} has files that are not of a model of made, such as {foreign[0]}, and is not overwritten: "
                "choose another folder."
            )
        return
    if names is None:
        names = sorted(file.name for file in path.iterdir() if NAMES.fullmatch(file.name))
    for name in names:
        if os.path.lexists(path / name):
            _check_ours(path / name, manifest.files.get(name))


def _check_ours(file: Path, written: Written | None) -> None:
    if written is None or written.fault(file):
        what = "was not written by made" if written is None else "has changed since made wrote it"
        raise FileExistsError(
            f"{file} {what}, and is not overwritten: move it elsewhere, or choose another folder for the model."
        )


def _manifest_of_ours(path: Path) -> Manifest | None:
    """The manifest of a folder before it is written to, if it has one; a foreign one is refused."""
    if not os.path.lexists(path / MANIFEST):
        return None
    try:
        manifest = Manifest.read(path)
    except ModelError as error:
        raise FileExistsError(f"{error} So {path} is not overwritten: choose another folder.") from None
    history = path / HISTORY
    if not manifest.finished and HISTORY not in manifest.files and _is_history(history):
        # Earlier versions wrote to the history during training without listing it.
        return replace(manifest, finished=False, files={**manifest.files, HISTORY: Written.of(history)})
    return manifest


def _is_history(file: Path) -> bool:
    """Whether a file is a line of JSON for each epoch; the last line may be cut off."""
    if file.is_symlink() or not file.is_file() or file.stat().st_size > LARGEST_JSON:
        return False
    *lines, last = file.read_bytes().split(b"\n")
    start = b'{"epoch": '
    try:
        epochs = [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        return False
    sound = all(isinstance(epoch, dict) and {"epoch", "updates", "valid_nll"} <= epoch.keys() for epoch in epochs)
    return sound and last[: len(start)] == start[: len(last)]


def replace_folder(path: Path, files: Mapping[str, Content], *, finished: bool = True) -> None:
    """Write a model to a folder that is empty or holds a model, under the lock of the folder."""
    path = real_path(path)
    check_replaceable(path, ())  # digests are compared under the lock: another process may be writing now
    with hold(path, wait=WAIT):
        commit(path, files, finished=finished)


def add_files(path: Path, files: Mapping[str, Content]) -> None:
    """Add files to the folder of a model."""
    path = real_path(path)
    with hold(path, wait=WAIT):
        manifest = Manifest.read(path)
        commit(path, files, finished=manifest.finished, keep=manifest.files.keys() - files.keys())


def packed(save: Callable[[Path], None]) -> dict[str, bytes]:
    """The files that are saved to a folder, by name, for a copy that another tool keeps."""
    with TemporaryDirectory(prefix="made-") as folder:
        save(Path(folder))
        return {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir()) if _belongs(file.name)}


def unpacked(files: Mapping[str, bytes], load: Callable[[Path], Loaded]) -> Loaded:
    """What is loaded from a folder that has these files."""
    if wrong := [name for name in files if not _belongs(name)]:
        raise ModelError(f"a model folder has no file {wrong[0]!r}: this is not a copy of a model.")
    with TemporaryDirectory(prefix="made-") as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        return load(Path(folder))


def _belongs(name: str) -> bool:
    return name == MANIFEST or NAMES.fullmatch(name) is not None


def commit(path: Path, files: Mapping[str, Content], *, finished: bool, keep: Iterable[str] = ()) -> None:
    """Replace all files of a folder but those to ``keep``, atomically: if this fails or is killed, nothing has changed.

    The folder is created if absent; no other process may write to it meanwhile (:func:`made.io.lock.hold`).
    """
    if wrong := [name for name in files if not NAMES.fullmatch(name)]:
        raise ValueError(f"'files' should be some that a model folder can have, not {wrong[0]!r}.")
    path.mkdir(parents=True, exist_ok=True)
    check_replaceable(path, files)
    _put_in_order(path)
    before = _manifest_of_ours(path)
    old = {} if before is None else before.files
    try:
        new = {name: old[name] for name in keep}
        leaving = old.keys() - new.keys()
        for name, content in files.items():
            with naming(path / name), staged(path) as part:
                part.write_bytes(content) if isinstance(content, bytes) else content(part)
                sync(part)
                new[name] = Written.of(part)
                part.replace(path / _aside(name, new[name]))
        with atomic(path / MANIFEST) as manifest:
            manifest.write(Manifest.of(finished, new).text)
            for name in leaving:
                if name in files and os.path.lexists(path / name):
                    _check_ours(path / name, old[name])
                if not old[name].fault(path / name):
                    (path / name).rename(path / _aside(name, old[name]))
            sync(path)
    finally:
        _put_in_order(path)


def _put_in_order(path: Path) -> None:
    """Move the files of the manifest to their own names, and clean up after an interrupted write."""
    manifest = Manifest.read(path) if os.path.lexists(path / MANIFEST) else None
    needed = set()
    for name, written in {} if manifest is None else manifest.files.items():
        hidden = path / _aside(name, written)
        if not hidden.exists():
            continue
        if not os.path.lexists(path / name):
            hidden.rename(path / name)
        elif written.fault(path / name):  # a foreign file stays; ours is read from its hidden name
            needed.add(hidden.name)
    for file in list(path.iterdir()):
        if file.is_symlink() or file.name in needed:
            continue
        if file.is_file() and (ASIDE.fullmatch(file.name) or PART.fullmatch(file.name)):
            file.unlink(missing_ok=True)
        elif file.is_dir() and PART.fullmatch(file.name):
            shutil.rmtree(file, ignore_errors=True)


def _aside(name: str, written: Written) -> str:
    """The hidden name of a file."""
    return f".made-{written.sha256}-{name}"
