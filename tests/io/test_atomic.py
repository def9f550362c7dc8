"""The atomic writer: a file is complete, or as it was."""

from __future__ import annotations

import os

import pytest

from made.io.atomic import atomic


def test_a_file_is_complete_or_as_it_was(tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("old")
    (tmp_path / "link").symlink_to(path)

    def fail() -> None:
        with atomic(tmp_path / "link") as handle:
            handle.write(b"new")
            assert path.read_text() == "old"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert sorted(os.listdir(tmp_path)) == ["link", "x.csv"]
    assert path.read_text() == "old"
    with atomic(str(tmp_path / "link")) as handle:
        handle.write(b"new")
    assert path.read_text() == "new"
    assert (tmp_path / "link").is_symlink()
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    os.umask(mask := os.umask(0))
    return mask
