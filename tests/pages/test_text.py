"""Text and numbers as pages show them."""

from __future__ import annotations

import numpy as np

from made.pages.text import clip, printable, short


def test_control_characters_and_surrogates_are_replaced() -> None:
    assert printable("a\ud800b") == "a�b"
    assert printable("\x1b[31m") == "�[31m"
    assert printable("tab\tand\nline") == "tab\tand\nline"


def test_a_text_is_clipped_to_its_width() -> None:
    assert clip("x" * 10**6, 10) == "x" * 9 + "…"
    assert clip("a\n\t b", 10) == "a b"
    assert clip("e\u0301" * 5, 5) == "e\u0301" * 5  # combining characters have no width


def test_a_number_of_any_size_is_short() -> None:
    assert short(-0.5) == "\N{MINUS SIGN}0.5"
    assert max(len(short(x)) for x in 10.0 ** np.arange(-320, 309) * -1.23456) <= 11
