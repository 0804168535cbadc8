from __future__ import annotations

import pytest

from guardband.bands.certificate import Certificate
from guardband.bands.cross_promise import CrossPromise, CvMinmaxPromise, CvPlusPromise
from guardband.bands.promise import Promise

BOTH = [CvPlusPromise, CvMinmaxPromise]


def _promise(kind: type[CrossPromise], n: int = 400, folds: int = 8, **more: object) -> CrossPromise:
    rank = (361,) if n == 400 else (n + 1,)
    own = {"confidence_level": (0.9,), "n_calibration": n, "rank": rank, "whole_line": (rank[0] > n,)}
    return kind(**own | {"fold_sizes": (n // folds,) * folds} | more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", BOTH)
def test_a_promise_survives_json(kind: type[CrossPromise]) -> None:
    own = Certificate("conf-nn", _promise(kind), True)
    assert Certificate.from_dict(own.to_dict()) == own
    assert Promise.kinds[kind.kind] is kind


@pytest.mark.parametrize("kind", BOTH)
def test_it_says_what_is_proved_what_is_typical_and_what_is_neither(kind: type[CrossPromise]) -> None:
    own = _promise(kind)
    text = str(Certificate("conf-nn", own, True))
    proved, here = own.expected_coverage()[0], own.coverage_bound(0.1)[0]
    assert f"at least {int(10_000 * proved) / 100:g}% of new rows" in text
    assert "Typical is" in text
    assert "that is not proved" in text
    assert f"at least {int(10_000 * here) / 100:g}%, with 90% confidence" in text
    assert "400 rows for calibration, in 8 folds" in text
    assert not own.is_testable
    assert "split" in own.why_untestable()


def test_minmax_promises_more() -> None:
    plus, minmax = (_promise(kind) for kind in BOTH)
    assert plus.expected_coverage()[0] < minmax.expected_coverage()[0] < 0.9
    assert plus.coverage_bound(0.1)[0] < minmax.coverage_bound(0.1)[0]


@pytest.mark.parametrize("kind", BOTH)
def test_infinite_intervals_cover_all(kind: type[CrossPromise]) -> None:
    own = _promise(kind, n=8, folds=2)
    assert own.expected_coverage() == own.coverage_bound(0.1) == (1.0,)
    assert "The intervals are infinite." in str(Certificate("conf-nn", own, True))


def test_several_levels_stand_side_by_side() -> None:
    own = _promise(CvPlusPromise, confidence_level=(0.9, 0.5), rank=(361, 201), whole_line=(False, False))
    text = str(Certificate("conf-nn", own, False))
    assert "76.96% / 0.44%" in text
    assert "about 90% / 50%" in text
    assert "the level itself" in text
    assert "Nothing useful is proved at 50%." in text
    assert "Nothing useful" not in own.headline("conf-nn")


def test_it_says_that_nothing_useful_is_proved() -> None:
    own = _promise(CvPlusPromise, confidence_level=(0.5,), rank=(201,))
    assert "Nothing useful is proved at this level." in own.headline("conf-nn")
    assert own.unproved() == (0.5,)
    assert not _promise(CvMinmaxPromise, confidence_level=(0.5,), rank=(201,)).unproved()
