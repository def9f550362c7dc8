"""What a stranger gives is answered, or refused in a sentence: every target of `tests/fuzz_targets.py`, for a moment.

MADE_FUZZ_EXAMPLES is the number of examples of each target, the same ones each time.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings

from fuzz_targets import LIMIT, TARGETS, bounded

EXAMPLES = int(os.environ.get("MADE_FUZZ_EXAMPLES", "300"))


@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.filterwarnings("ignore::made.errors.UnseenWarning")
@pytest.mark.parametrize("name", TARGETS)
def test_anything_is_answered_or_refused(name, monkeypatch) -> None:
    monkeypatch.setenv("MADE_MAX_BYTES", str(LIMIT))
    target, counts = TARGETS[name], [0, 0]

    @settings(max_examples=EXAMPLES)
    @given(target.given)
    def check(example) -> None:
        with bounded():
            counts[target.check(example)] += 1

    check()
    assert min(counts) > 0  # some are refused, and some are not
