"""The file of results: one result for each row, no lost writes."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from made.errors import DataError
from made.paper.results_file import FIELDS, ResultsFile


def test_a_row_of_a_set_is_in_the_record_once(tmp_path) -> None:
    record = ResultsFile(tmp_path / "new" / "some.json")
    assert record.rows() == []
    record.put({"dataset": "b", "row": "MADE", "test_nll": 2.0})
    record.put({"dataset": "a", "row": "MADE", "test_nll": 1.0})
    written = record.put({"dataset": "b", "row": "MADE", "test_nll": 3.0, "more": [1]})
    assert [(row["dataset"], row["test_nll"]) for row in record.rows()] == [("a", 1.0), ("b", 3.0)]
    assert record.get("b", "MADE") == written
    assert record.get("b", "ours") is None
    for row in json.loads(record.path.read_text()):
        assert set(FIELDS) <= set(row)
        assert row["seconds"] is None
        assert re.fullmatch(r"[0-9a-f]{10}\+?|unknown", row["commit"])


def test_two_processes_that_write_lose_nothing(tmp_path) -> None:
    path = tmp_path / "some.json"
    code = "import sys; from pathlib import Path; from made.paper.results_file import ResultsFile\n"
    code += "for i in range(15): ResultsFile(Path(sys.argv[1])).put({'dataset': sys.argv[2], 'row': str(i)})"
    both = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in "ab"]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    found = [(row["dataset"], row["row"]) for row in ResultsFile(path).rows()]
    assert found == [(name, str(i)) for name in "ab" for i in range(15)]


@pytest.mark.parametrize(("text", "said"), [("[{", "cannot be read"), ('{"a": 1}', "list"), ("[1]", "list")])
def test_a_damaged_record_is_refused_and_left_as_it_is(tmp_path, text, said) -> None:
    (tmp_path / "some.json").write_text(text)
    record = ResultsFile(tmp_path / "some.json")
    with pytest.raises(DataError, match=rf"some\.json .*{said}"):
        record.rows()
    with pytest.raises(DataError, match=said):
        record.put({"dataset": "a", "row": "b"})
    assert (tmp_path / "some.json").read_text() == text
