"""Named data: the paper's facts, where a dataset comes from, and downloads that are right or leave nothing."""

from __future__ import annotations

import io
import os
import socket
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from made.errors import DataError
from made.io import datasets
from made.io.datasets import DIGESTS, NAMES, SPLITS, DatasetInfo, cache, digits, download, load, split, state, where

DATA = os.environ.get("MADE_DATA")
# pooch leaves it to the garbage collector to close a response that failed.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
needs_data = pytest.mark.skipif(not DATA, reason="MADE_DATA names no folder of the paper's data")

ROWS = np.random.default_rng(0).integers(0, 2, (9, 11), dtype=np.uint8)
PARTS = {"train": ROWS[:4], "valid": ROWS[4:6], "test": ROWS[6:]}


def released(**changes: np.ndarray) -> bytes:
    """A file as the release has them: its arrays are numbers of four bytes, and it has others too."""
    arrays = {f"{part}_data": rows.astype(np.float32) for part, rows in PARTS.items()}
    content = io.BytesIO()
    np.savez(content, **{**arrays, "inputsize": np.array(11), **changes})
    return content.getvalue()


def packed(d: int = 11, **changes: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.savez(content, **{part: np.packbits(rows, axis=1) for part, rows in {**PARTS, **changes}.items()}, d=d)
    return content.getvalue()


@pytest.fixture
def tiny(monkeypatch, tmp_path) -> str:
    """A dataset like the paper's, and an environment in which nothing is there."""
    monkeypatch.setitem(NAMES, "tiny", DatasetInfo(11, 4, 2, 3, "a test"))
    monkeypatch.setitem(DIGESTS, "tiny", {part: datasets._digest([rows]) for part, rows in PARTS.items()})
    for variable in ("MADE_DATA", "MADE_MIRROR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("MADE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return "tiny"


class Server:
    """Answers every request with ``content``, and counts them."""

    content: bytes = b""
    length: int | None = None  # that it claims, if not the true one
    status = 200
    paths: list[str]


@pytest.fixture
def server(monkeypatch, tiny) -> Iterator[Server]:
    answers = Server()
    answers.paths = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers.paths.append(self.path)
            self.send_response(answers.status)
            if answers.length != 0:
                self.send_header("Content-Length", str(answers.length or len(answers.content)))
            self.end_headers()
            try:
                self.wfile.write(answers.content)
            except OSError:
                return  # the client has had enough

        def log_message(self, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("MADE_MIRROR", f"http://127.0.0.1:{http.server_address[1]}/data/")
        yield answers
        http.shutdown()
        thread.join()


def same(data: datasets.Dataset) -> bool:
    splits = {"train": data.train, "valid": data.valid, "test": data.test}
    return all(rows.dtype == np.uint8 and (rows == PARTS[part]).all() for part, rows in splits.items())


def left(folder: os.PathLike[str]) -> list[str]:
    return os.listdir(folder) if os.path.exists(folder) else []


def test_the_facts_are_those_of_the_paper() -> None:
    assert {name: (fact.columns, fact.train, fact.valid, fact.test) for name, fact in NAMES.items()} == {
        "digits": (64, 1197, 300, 300),
        # Table 2
        "adult": (123, 5000, 1414, 26147),
        "connect4": (126, 16000, 4000, 47557),
        "dna": (180, 1400, 600, 1186),
        "mushrooms": (112, 2000, 500, 5624),
        "nips": (500, 400, 100, 1240),
        "ocr_letters": (128, 32152, 10000, 10000),
        "rcv1": (150, 40000, 10000, 150000),
        "web": (300, 14000, 3188, 32561),
        "binarized_mnist": (784, 50000, 10000, 10000),
    }
    assert all(np.prod(fact.image) == fact.columns for fact in NAMES.values() if fact.image)
    assert set(NAMES) - set(DIGESTS) == {"digits", "rcv1"}


def test_digits_are_what_the_facts_say(tiny) -> None:
    data, facts = load("digits"), NAMES["digits"]
    assert [len(data.train), len(data.valid), len(data.test)] == [facts.train, facts.valid, facts.test]
    assert data.train.shape[1] == facts.columns
    assert data.image == facts.image
    assert (data.test == digits().test).all()
    assert state("digits") == "embedded"
    assert where("digits") is None


@needs_data
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("digits", "rcv1")])
def test_the_papers_data_is_right(name) -> None:
    data, facts = load(name), NAMES[name]
    for part in SPLITS:
        rows = getattr(data, part)
        assert rows.shape == (getattr(facts, part), facts.columns)
        assert rows.dtype == np.uint8
        assert set(np.unique(rows)) == {0, 1}
    assert data.image == facts.image
    assert state(name) == "in MADE_DATA"


@needs_data
def test_unpacked_rightly_adult_has_a_known_likelihood() -> None:
    data = load("adult")
    p = (data.train.sum(axis=0) + 1) / (len(data.train) + 2)
    assert -(np.log(np.where(data.test, p, 1 - p))).sum(axis=1).mean() == pytest.approx(25.77, abs=0.005)


@needs_data
def test_a_single_changed_entry_is_detected(monkeypatch, tmp_path) -> None:
    data = load("dna")
    data.test[7, 7] ^= 1
    rows = {part: np.packbits(getattr(data, part), axis=1) for part in SPLITS}
    np.savez(tmp_path / "dna.npz", **rows, d=180)
    monkeypatch.setenv("MADE_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"dna.npz', test: these are not the rows of 'dna'\. Put the right file there"):
        load("dna")


def test_a_digest_is_of_the_rows_and_their_number_whatever_their_order() -> None:
    digest = datasets._digest
    assert digest([ROWS]) == digest([ROWS[::-1]]) == digest([ROWS[5:], ROWS[:5]])
    assert digest([ROWS]) != digest([ROWS[:, ::-1]])
    assert digest([ROWS]) != digest([np.concatenate([ROWS, ROWS[:1]])])


def test_a_split_comes_after_a_colon() -> None:
    assert split("adult:test") == ("adult", "test")
    assert split("adult") == ("adult", None)
    for wrong in ("adult:", "adult:all", "adult:test:test"):
        with pytest.raises(DataError, match=f"'{wrong}': after the colon should be one of train, valid, test"):
            split(wrong)


def test_an_unknown_name_is_refused_with_those_that_are_known(tiny, monkeypatch, tmp_path) -> None:
    (tmp_path / "secret.npz").write_bytes(packed())
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("MADE_DATA", str(tmp_path / "folder"))
    for wrong in ("nothing", "../secret", "", "adult.npz", str(tmp_path / "secret")):
        for function in (load, where, state):
            with pytest.raises(DataError, match=r"is not a dataset, .*: choose from digits, adult, connect4, dna"):
                function(wrong)
    for wrong in ("nothing", "digits"):
        with pytest.raises(DataError, match=f"'{wrong}' cannot be downloaded: choose from adult, connect4"):
            download(wrong)


def test_a_download_is_cached(server, tmp_path) -> None:
    assert state("tiny") == "to download"
    assert where("tiny") is None
    server.content = released()
    assert same(load("tiny"))
    assert state("tiny") == "cached"
    assert where("tiny") == tmp_path / "cache" / "tiny.npz"
    assert len(server.paths) == 1


def test_a_file_in_the_folder_is_not_downloaded(server, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("MADE_DATA", str(tmp_path))
    assert state("tiny") == "to download"
    for content in (packed(), released()):  # as ours, as the release's
        (tmp_path / "tiny.npz").write_bytes(content)
        assert state("tiny") == "in MADE_DATA"
        assert where("tiny") == tmp_path / "tiny.npz"
        assert same(load("tiny"))
    assert not server.paths


def test_a_folder_may_have_other_data(tiny, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("MADE_DATA", str(tmp_path))
    (tmp_path / "other-data_2.npz").write_bytes(packed())
    data = load("other-data_2")
    assert same(data)
    assert (data.name, data.image) == ("other-data_2", None)
    np.savez(tmp_path / "other.npz", train=ROWS, valid=ROWS, test=ROWS[:, :5])
    with pytest.raises(DataError, match=r"other.npz', test: there should be 11 columns, not 5"):
        load("other")
    np.savez(tmp_path / "other.npz", train=ROWS, valid=ROWS)
    with pytest.raises(DataError, match=r"other.npz' has no array 'test_data'"):
        load("other")


def test_a_folder_that_is_not_there_is_refused(tiny, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("MADE_DATA", str(tmp_path / "nothing"))
    with pytest.raises(DataError, match=r"MADE_DATA should name a folder, not '.*nothing'"):
        load("tiny")


def test_the_cache_is_in_the_cache_folder_of_the_user(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("MADE_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for base in ("", "relative/paths/are/ignored"):
        monkeypatch.setenv("XDG_CACHE_HOME", base)
        assert cache() == tmp_path / ".cache" / "made"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache() == tmp_path / "xdg" / "made"
    monkeypatch.setenv("MADE_CACHE", str(tmp_path / "mine"))
    assert cache() == tmp_path / "mine"


def test_addresses_are_those_of_the_release_or_of_the_mirror(monkeypatch, tiny) -> None:
    assert datasets._address("adult") == "https://github.com/mgermain/MADE/raw/ICML2015/datasets/adult.npz"
    assert datasets._address("rcv1") == "https://github.com/mgermain/MADE/releases/download/ICML2015/rcv1.npz"
    monkeypatch.setenv("MADE_MIRROR", "https://host/folder/")
    assert datasets._address("rcv1") == "https://host/folder/rcv1.npz"
    monkeypatch.setenv("MADE_MIRROR", "/etc")
    with pytest.raises(DataError, match="MADE_MIRROR should start with http"):
        download("adult")


@pytest.mark.parametrize("content", [released(), packed(), released(test_data=PARTS["test"][::-1])])
def test_what_is_downloaded_is_kept_packed(server, tmp_path, content) -> None:
    server.content = content
    path = download("tiny", progress=False)
    assert path == tmp_path / "cache" / "tiny.npz"
    assert left(tmp_path / "cache") == ["tiny.npz"]
    assert server.paths == ["/data/tiny.npz"]
    with np.load(path) as arrays:
        assert {key: arrays[key].shape for key in arrays} == {"train": (4, 2), "valid": (2, 2), "test": (3, 2), "d": ()}
    server.status = 500
    assert (load("tiny").train == PARTS["train"]).all()
    assert len(server.paths) == 1  # the second time, nobody is asked


def test_the_content_length_is_optional(server) -> None:
    server.content, server.length = released(), 0
    assert same(load("tiny"))


def test_a_terminal_shows_progress(server, monkeypatch, capsys) -> None:
    server.content = released()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    for shown in (True, False):
        download("tiny", progress=shown)
        captured = capsys.readouterr()
        assert ("tiny" in captured.err) == shown
        assert captured.out == ""


def bomb(name: str) -> bytes:
    content = io.BytesIO(released())
    with zipfile.ZipFile(content) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    members[name] += bytes(10_000_000)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (lambda: b"<html>", r"tiny.npz is damaged, or not a .npz file"),
        (lambda: released()[:-30], r"tiny.npz is damaged, or not a .npz file"),
        (
            lambda: released(valid_data=ROWS[:3]),
            r"tiny.npz, valid_data: the shape for 'tiny' is \(2, 11\), not \(3, 11\)",
        ),
        (lambda: released(test_data=ROWS[:3, :9]), r"test_data: the shape for 'tiny' is \(3, 11\), not \(3, 9\)"),
        (lambda: released(test_data=np.zeros((3000, 11), np.uint8)), r"test_data: the shape for 'tiny' is"),
        (lambda: packed(train=ROWS), r"train: the shape for 'tiny' is \(4, 2\), not \(9, 2\)"),
        (lambda: packed(d=10), r"there should be 11 columns, not 10"),
        (lambda: released(train_data=PARTS["train"] + 1), r"train_data: some entries are neither 0 nor 1"),
        (lambda: released(train_data=np.full((4, 11), np.nan)), r"train_data: some entries are neither 0 nor 1"),
        (lambda: released(train_data=np.full((4, 11), None)), r"has values of type object"),
        (lambda: released(train_data=1 - PARTS["train"]), r"tiny.npz, train: these are not the rows of 'tiny'"),
        (lambda: bomb("train_data.npy"), r"truncated or damaged: it claims \d+ bytes and has 10,000,"),
        (lambda: bytes(3_000_000), r"is more than the 1,049,\d\d\d bytes that 'tiny' can take"),
    ],
)
def test_invalid_downloads_are_not_cached(server, tmp_path, content: Callable[[], bytes], text) -> None:
    server.content = content()
    with pytest.raises(DataError, match=text) as error:
        load("tiny")
    assert "http://127.0.0.1" in str(error.value)
    assert str(tmp_path) not in str(error.value)
    assert left(tmp_path / "cache") == []


def test_a_failed_download_is_a_data_error(server, tmp_path, monkeypatch) -> None:
    remedy = r"\. MADE_DATA can name a folder with tiny.npz\.$"
    server.content, server.length = released(), len(released()) + 7
    with pytest.raises(DataError, match="could not be downloaded: .*7 more expected.*" + remedy):
        load("tiny")
    server.length, server.status = None, 404
    with pytest.raises(DataError, match="tiny.npz could not be downloaded: 404 Client Error: Not Found .*" + remedy):
        load("tiny")
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # it takes calls and says nothing
        monkeypatch.setattr(datasets, "_TIMEOUT", 0.1)
        monkeypatch.setenv("MADE_MIRROR", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        with pytest.raises(DataError, match="could not be downloaded: .*timed out.*" + remedy):
            load("tiny")
    with pytest.raises(DataError, match="could not be downloaded: .*refused.*" + remedy):
        load("tiny")
    monkeypatch.setenv("MADE_MIRROR", "http://no host")
    with pytest.raises(DataError, match="could not be downloaded: .*" + remedy):
        load("tiny")
    assert left(tmp_path / "cache") == []


def test_a_download_that_is_interrupted_leaves_nothing(server, tmp_path, monkeypatch) -> None:
    server.content = released()

    def interrupt(*args: object) -> None:
        assert left(tmp_path / "cache") != []
        raise KeyboardInterrupt

    for where_ in ("_rows", "_Meter.update"):
        with monkeypatch.context() as patch:
            patch.setattr(f"made.io.datasets.{where_}", interrupt)
            with pytest.raises(KeyboardInterrupt):
                load("tiny")
        assert left(tmp_path / "cache") == []
    assert same(load("tiny"))


def test_a_damaged_or_unwritable_cache_is_a_data_error(server, tmp_path, monkeypatch) -> None:
    server.content = released()
    path = download("tiny")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match=r"tiny.npz' is damaged, .* Put the right file there, or remove it\."):
        load("tiny")
    download("tiny")
    assert same(load("tiny"))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MADE_CACHE", str(tmp_path / "file" / "folder"))
    with pytest.raises(DataError, match=r"the cache '.*folder' cannot be used: .* MADE_CACHE can name another"):
        load("tiny")
