"""The atomic writer: a file is complete, or as it was."""

from __future__ import annotations

import os

import pytest

from made.io.atomic import PART, atomic, staged


@pytest.fixture
def link(tmp_path):
    (tmp_path / "x.csv").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "x.csv")
    return tmp_path / "link"


def test_a_file_is_replaced_behind_its_link(link) -> None:
    with atomic(str(link)) as handle:
        handle.write(b"new")
        handle.flush()
        assert link.read_text() == "old"
    assert (link.is_symlink(), link.read_text()) == (True, "new")
    assert sorted(os.listdir(link.parent)) == ["link", "x.csv"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(link) -> None:
    def fail() -> None:
        with atomic(link) as handle:
            handle.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert link.read_text() == "old"
    assert sorted(os.listdir(link.parent)) == ["link", "x.csv"]


def test_an_error_names_the_file_and_not_the_hidden_one(tmp_path) -> None:
    with pytest.raises(FileNotFoundError) as caught, atomic(tmp_path / "absent" / "x.csv"):
        pass
    assert caught.value.filename == str(tmp_path / "absent" / "x.csv")
    assert not PART.search(str(caught.value))


def test_a_new_file_has_the_permissions_of_any_other(tmp_path) -> None:
    (tmp_path / "other").touch()
    with atomic(tmp_path / "new"):
        pass
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_folder_is_not_replaced(tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder' exists and is not a file"), atomic(tmp_path / "folder"):
        pass


def test_what_a_writer_puts_beside_a_staged_file_is_removed(tmp_path) -> None:
    with staged(tmp_path) as content:
        assert PART.fullmatch(content.parent.name)
        content.with_name("beside").write_bytes(b"x")
        content.write_bytes(b"y")
        content.replace(tmp_path / "kept")
    assert os.listdir(tmp_path) == ["kept"]
