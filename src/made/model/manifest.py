"""manifest.json of a model folder: the names, sizes and SHA-256 digests of its files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from made.errors import ModelError

# 2: numbers are encoded between knots; 3: points by their magnitudes, too; 4: groups of exclusive columns; 5: binary
# inputs with a mean of 0.
FORMAT = 6  # All formats are read.
MANIFEST = "manifest.json"
LARGEST_JSON = 256 * 2**20

# Every file that a model folder can have, beside the manifest.
NAMES = re.compile(
    r"config\.json|model\.safetensors|missing\.safetensors|history\.jsonl|README\.md|learning_curve\.png|samples\.png"
    r"|checkpoint-[0-9]{1,20}\.safetensors"
)


@dataclass(frozen=True)
class Written:
    """Size and digest of a file when it was written."""

    bytes: int
    sha256: str

    @classmethod
    def of(cls, file: Path) -> Written:
        """Size and digest of a file now."""
        with file.open("rb") as stream:
            return cls(file.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest())

    def fault(self, file: Path, *, read: bool = True) -> str | None:
        """What is wrong with the file, as a sentence; without ``read``, only its size is compared."""
        if file.is_symlink() or not file.is_file():
            return f"{file} is missing: the model is incomplete."
        if file.stat().st_size != self.bytes:
            return f"{file} has {file.stat().st_size} bytes where {self.bytes} were written: it is damaged."
        if read and Written.of(file) != self:
            return f"{file} is not what was written: its SHA-256 differs from the manifest's."
        return None


@dataclass(frozen=True)
class Manifest:
    """The manifest of a folder."""

    finished: bool  # whether training came to its end
    files: dict[str, Written]  # the files that count, by name
    text: bytes  # as it is on disk
    version: int

    @classmethod
    def of(cls, finished: bool, files: Mapping[str, Written], version: int | None = None) -> Manifest:
        """A manifest that lists these files."""
        version = FORMAT if version is None else version
        listed = {name: asdict(files[name]) for name in sorted(files)}
        body = {"format": version, "finished": finished, "files": listed}
        digest = hashlib.sha256(json.dumps(body).encode()).hexdigest()
        text = json.dumps(body | {"sha256": digest}, indent=2) + "\n"
        return cls(finished, dict(files), text.encode(), version)

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read the manifest of a folder; any problem with it is a :class:`~made.errors.ModelError`."""
        if not path.exists():
            raise ModelError(f"{path}: no such folder.")
        file = path / MANIFEST
        if file.is_symlink() or not file.is_file():
            raise ModelError(f"{path} is not a model folder: it has no {MANIFEST}.")
        if file.stat().st_size > LARGEST_JSON:
            raise ModelError(f"{file} is too large to be a manifest.")
        text = file.read_bytes()
        content = parse_object(text, str(file))
        version = content.get("format")
        if isinstance(version, int) and not isinstance(version, bool) and version > FORMAT:
            raise ModelError(
                f"{path} has format {version}, but this version of made reads formats up to {FORMAT}: it was written "
                "by a newer one, or its manifest is damaged. Remedy: upgrade made."
            )
        files, finished = content.get("files"), content.get("finished")
        if type(version) is int and version > 0 and isinstance(finished, bool) and isinstance(files, dict):
            listed = {name: _written(facts) for name, facts in files.items() if NAMES.fullmatch(name)}
            found = cls.of(finished, {name: each for name, each in listed.items() if each is not None}, version)
            if found.text == text:
                return found
        raise ModelError(f"{file} is damaged, or was not written by made.")


def _written(facts: Any) -> Written | None:
    """An entry of an untrusted manifest; ``None`` if it is malformed."""
    if not isinstance(facts, dict) or facts.keys() != {"bytes", "sha256"} or type(facts["bytes"]) is not int:
        return None
    digest = facts["sha256"]
    sound = isinstance(digest, str) and re.fullmatch(r"[0-9a-f]{64}", digest) and facts["bytes"] >= 0
    return Written(facts["bytes"], digest) if sound else None


def parse_object(text: bytes | str, where: str) -> dict[str, Any]:
    """Parse a JSON object from an untrusted file."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ModelError(f"{where} is damaged, or was not written by made.")
    return value
