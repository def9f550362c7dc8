"""The least likely rows and the entries responsible."""

from __future__ import annotations

import numpy as np
import pytest

from made.report.rows import with_missing


def test_the_oddest_rows_are_the_least_likely_and_their_reasons_are_above_what_is_usual(report, model, table) -> None:
    log_prob = model.score_samples(table)
    assert [each.row for each in report.odd] == np.argsort(log_prob, kind="stable")[:3].tolist()
    surprise = model.surprise(table).to_pandas().to_numpy()
    for odd in report.odd:
        assert odd.log_prob == pytest.approx(log_prob[odd.row])
        assert odd.values == {name: value for name, value in table.to_pylist()[odd.row].items() if value is not None}
        above = [reason.surprise - reason.usual for reason in odd.reasons]
        assert above == sorted(above, reverse=True)
        for reason in odd.reasons:
            d = table.column_names.index(reason.column)
            assert reason.surprise == pytest.approx(surprise[odd.row, d], abs=1e-4)
            assert reason.usual == pytest.approx(np.nanmedian(surprise[:, d]), abs=1e-4)
            one = table.slice(odd.row, 1)
            if reason.probability is None:
                missing = with_missing(one, np.arange(5)[None] == d)
                expected = model.impute(missing, strategy="mode")[reason.column][0].as_py()
                assert reason.likeliest == pytest.approx(expected, rel=1e-4)
            else:
                probabilities = model.predict_proba(one, target=reason.column)[0]
                place = model.classes(reason.column).tolist().index(reason.value)
                assert reason.probability == pytest.approx(probabilities[place], abs=1e-5)
                assert reason.likeliest == model.classes(reason.column)[probabilities.argmax()]
