"""Places of calibration rows: probabilities and selections keep what they promise."""

import numpy as np
import pytest

from guardband.bands.placement import ByQuantiles, ByResidual, ByScale
from guardband.bands.units import Units
from guardband.calibration import places as module
from guardband.calibration.calibrated import Unit
from guardband.calibration.places import CalibratedPlaces, event_of
from guardband.data.entities import Entities, entities_of_labels
from laws import SIGNIFICANCE, total_count_band

UNITS = Units()


def noisy(n, rng):
    """Return predictions, a point and a wrong scale, and true values that often miss them."""
    point = rng.normal(size=n)
    return np.column_stack([point, np.exp(rng.normal(size=n))]), point + rng.standard_t(3, size=n)


def calibrated(n, rng, placement=None):
    predictions, y = noisy(n, rng)
    return CalibratedPlaces.of("test", placement or ByScale(), predictions, y)


@pytest.mark.parametrize("side", ["above", "below"])
@pytest.mark.parametrize("u", [0.1, 0.5])
def test_a_p_value_has_its_exact_law_where_the_value_is_the_true_one(side, u):
    """The worst case of the promise: each row is compared with its own outcome, which it does not exceed."""
    n, m, replications, small = 29, 40, 300, 0
    rng = np.random.default_rng(0)
    for _ in range(replications):
        own = calibrated(n, rng)
        predictions, y = noisy(m, rng)
        stated = own.probability(predictions, UNITS, **{"above": None, "below": None, side: y}).values
        small += int((1 - stated <= u + 1e-12).sum())
    low, high = total_count_band(SIGNIFICANCE, replications, m, round(u * (n + 1)), n)
    assert low <= small <= high


def test_probabilities_above_and_below_leave_out_at_most_the_rows_at_the_value():
    rng = np.random.default_rng(1)
    own = calibrated(50, rng)
    predictions, _ = noisy(30, rng)
    above = own.probability(predictions, UNITS, 0.3, None).values
    below = own.probability(predictions, UNITS, None, 0.3).values
    np.testing.assert_allclose(above + below, 50 / 51)
    np.testing.assert_allclose(below, own.distribution(predictions, UNITS).cdf(0.3))


def p_values_by_definition(own, predictions, c, side):
    """Return Jin & Candès' p-values with their clipped score, row by row."""
    out = []
    sign = 1 if side == "above" else -1
    for new in predictions:
        at = (c - new[0]) / new[1]
        count = 0
        for place, known in zip(own.kept_places, own.kept, strict=True):
            y, limit = known[0] + known[1] * place, (c - known[0]) / known[1]
            count += sign * y <= sign * c and sign * limit <= sign * at
        out.append((1 + count) / (len(own.kept) + 1))
    return out


@pytest.mark.parametrize("side", ["above", "below"])
def test_a_selection_has_the_p_values_of_the_clipped_score(side):
    rng = np.random.default_rng(2)
    own = calibrated(40, rng)
    predictions, _ = noisy(25, rng)
    asked = {"above": None, "below": None, side: 0.2}
    found = own.select(predictions, UNITS, **asked, fdr=0.2)
    np.testing.assert_allclose(found.p_values, p_values_by_definition(own, predictions, 0.2, side))
    stated = own.probability(predictions, UNITS, **asked).values
    assert (found.p_values <= 1 - stated + 1e-12).all()


@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("side", ["above", "below"])
def test_the_false_discovery_rate_is_held(n, side):
    """The share of wrong rows lies between 0 and 1: Hoeffding's limit at 1e-6 for its mean."""
    rng, q, replications, wrong = np.random.default_rng(3), 0.2, 400, 0.0
    for _ in range(replications):
        own = calibrated(n, rng)
        predictions, y = noisy(30, rng)
        found = own.select(predictions, UNITS, **{"above": None, "below": None, side: 0.0}, fdr=q)
        is_wrong = y <= 0 if side == "above" else y >= 0
        wrong += (found.mask & is_wrong).sum() / max(1, len(found))
    assert wrong / replications <= q + np.sqrt(np.log(1e6) / (2 * replications))


def test_rows_that_tie_are_counted_against_a_selection():
    own = CalibratedPlaces.of("test", ByResidual(), np.zeros((9, 1)), np.zeros(9))
    found = own.select(np.zeros((3, 1)), UNITS, 0.0, None, 0.1)
    assert (found.p_values == 1).all()
    assert (own.probability(np.zeros((3, 1)), UNITS, 0.0, None).values == 0).all()
    assert (own.probability(np.zeros((3, 1)), UNITS, None, 0.0).values == 0).all()


def test_of_rows_that_belong_together_one_counts():
    rng = np.random.default_rng(4)
    predictions, y = noisy(60, rng)
    own = CalibratedPlaces.of("test", ByScale(), predictions, y, entities_of_labels(np.arange(60) // 3, 60))
    assert len(own.places) == 20
    assert own.certificate.n_calibration == 20
    assert "20 calibration entities" in str(own.certificate)
    assert "rows drawn at random, one from each new entity, lies at or below" in str(own.certificate)
    assert "drew one row from each entity (60 rows in all)" in str(own.certificate)
    assert "must not share" in str(own.select(predictions, UNITS, 0.0, None, 0.1).certificate)


def test_places_do_not_depend_on_the_blocks_in_which_they_are_computed(monkeypatch):
    whole = calibrated(100, np.random.default_rng(5))
    monkeypatch.setattr(module, "ROWS_AT_A_TIME", 7)
    np.testing.assert_array_equal(calibrated(100, np.random.default_rng(5)).places, whole.places)


def test_of_many_rows_some_are_kept_to_select_by(monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 30)
    rng = np.random.default_rng(5)
    own = calibrated(100, rng)
    assert len(own.places) == 100
    assert own.kept.shape == (30, 2)
    np.testing.assert_array_equal(ByScale().place(own.kept, own.kept[:, 0]), 0.0)
    assert np.isin(own.kept_places, own.places).all()
    assert own.select(own.kept, UNITS, 0.0, None, 0.1).certificate.n_calibration == 30


def test_places_come_back_from_arrays_and_others_are_refused():
    own = calibrated(12, np.random.default_rng(6))
    fields = {"method": "test", "placement": ByScale()}
    again = CalibratedPlaces.from_arrays(own.to_arrays(), **fields)
    assert again.certificate == own.certificate
    for name, wrong in (
        ("places", own.places[::-1]),
        ("places", own.places[:-1]),
        ("places", np.where(np.arange(12) == 3, np.nan, own.places)),
        ("kept", own.kept[:, :1]),
        ("kept", np.full_like(own.kept, np.inf)),
        ("kept_places", own.kept_places + 1),
        ("kept_places", own.kept_places[:5]),
        ("places", own.places.astype(np.float32)),
    ):
        with pytest.raises(ValueError, match="places of its calibration rows"):
            CalibratedPlaces.from_arrays(own.to_arrays() | {name: wrong}, **fields)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"above": None, "below": None}, "Pass above=... or below=..."),
        ({"above": 1.0, "below": 1.0}, "one of the two"),
        ({"above": np.nan, "below": None}, "must be a number, found NaN"),
        ({"above": [1.0, 2.0], "below": None}, "one for each of 5 rows"),
    ],
)
def test_values_that_cannot_be_are_refused(asked, said):
    own = calibrated(12, np.random.default_rng(7))
    with pytest.raises(ValueError, match=said):
        own.probability(own.kept[:5], UNITS, **asked)


def test_a_selection_needs_one_value_and_a_rate():
    own = calibrated(12, np.random.default_rng(8))
    with pytest.raises(ValueError, match="one number"):
        own.select(own.kept[:2], UNITS, [1.0, 2.0], None, 0.1)
    with pytest.raises(ValueError, match="fdr must lie strictly between 0 and 1"):
        own.select(own.kept[:2], UNITS, 1.0, None, 1.5)


def test_quantiles_by_too_few_levels_still_keep_their_promise():
    """The law does not depend on the placement: one that is quite wrong does."""
    rng, n, m, replications, inside = np.random.default_rng(9), 24, 30, 300, 0
    placement = ByQuantiles.of((0.4, 0.5, 0.6))

    def wrong(count):
        point = rng.normal(size=(count, 1))
        return point + np.sort(rng.random((count, 3)), axis=1), point[:, 0] + rng.exponential(size=count)

    for _ in range(replications):
        own = CalibratedPlaces.of("test", placement, *wrong(n))
        predictions, y = wrong(m)
        inside += int((y <= own.distribution(predictions, UNITS).quantile(0.8)).sum())
    low, high = total_count_band(SIGNIFICANCE, replications, m, 20, n)
    assert low <= inside <= high


def whole_numbers(y):
    """Return places that are true values themselves, with ties."""
    return CalibratedPlaces.of("test", ByResidual(), np.zeros((len(y), 1)), np.array(y, dtype=float))


@pytest.mark.parametrize("n", [1, 9, 19, 40])
def test_the_certificate_of_quantiles_has_the_ranks_of_five_levels(n):
    promise = whole_numbers(range(n)).certificate.promise
    ranks = [-(-5 * share * (n + 1) // 100) for share in (1, 5, 10, 15, 19)]
    assert promise.confidence_level == (0.05, 0.25, 0.5, 0.75, 0.95)
    assert list(promise.rank) == ranks
    assert list(promise.whole_line) == [k > n for k in ranks]
    assert promise.n_calibration == n
    assert not whole_numbers(range(n)).certificate.scalar


def test_stated_probabilities_count_places_with_ties_against_them():
    own, values = whole_numbers([1, 2, 2, 2, 3, 5]), np.array([0.0, 1.0, 2.0, 2.5, 3.0, 5.0, 6.0])
    at = np.zeros((len(values), 1))
    above = own.probability(at, UNITS, values, None)
    below = own.probability(at, UNITS, None, values)
    assert (above.values * 7).round(9).tolist() == [6, 5, 2, 2, 1, 0, 0]  # places above the value
    assert (below.values * 7).round(9).tolist() == [0, 0, 1, 4, 4, 5, 6]
    assert above.certificate.promise.event == "above a value of each row"
    assert above.certificate.promise.confidence_level == (0.9,)
    assert above.certificate.promise.n_calibration == 6
    assert (
        own.probability(at, UNITS, None, 300000).certificate.promise.event == "below 300000" == event_of("below", 3e5)
    )


@pytest.mark.parametrize("side", ["above", "below"])
def test_p_values_of_a_selection_count_ties_against_it(side):
    """Calibration rows that are at the value themselves are not beyond it; those whose limit equals a row's count."""
    rng = np.random.default_rng(9)
    known, y = rng.integers(-2, 3, (40, 1)) / 1.0, rng.integers(-3, 4, 40) / 1.0
    own = CalibratedPlaces.of("test", ByResidual(), known, y)
    new = np.arange(-3.0, 4.0)[:, None]
    found = own.select(new, UNITS, **{"above": None, "below": None, side: 1.0}, fdr=0.3)
    sign = 1 if side == "above" else -1
    wanted = [
        (1 + sum(sign * b <= sign and sign * a >= sign * row for a, b in zip(known[:, 0], y, strict=True))) / 41
        for row in new[:, 0]
    ]
    assert found.p_values.tolist() == wanted
    promise = found.certificate.promise
    assert (promise.confidence_level, promise.n_calibration, promise.n_asked) == ((0.7,), 40, 7)
    assert promise.n_selected == found.mask.sum()
    assert promise.whole_line == (False,)
    assert promise.event == f"{side} 1"
    # Benjamini & Hochberg: all up to the last whose p-value is at most its share of the rate
    order = np.sort(found.p_values)
    last = max((i + 1 for i in range(7) if order[i] <= 0.3 * (i + 1) / 7), default=0)
    assert found.mask.sum() == sum(p <= (order[last - 1] if last else -1) for p in found.p_values)


def test_rows_that_are_kept_are_drawn_once_and_stay_with_their_places(monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 30)
    rng = np.random.default_rng(10)
    predictions, y = noisy(100, rng)
    own = CalibratedPlaces.of("test", ByScale(), predictions, y)
    chosen = np.sort(np.random.default_rng(0).permutation(100)[:30])
    np.testing.assert_array_equal(own.kept, predictions[chosen])
    np.testing.assert_array_equal(own.kept_places, ByScale().place(predictions, y)[chosen])
    np.testing.assert_array_equal(own.places, np.sort(ByScale().place(predictions, y)))
    again = CalibratedPlaces.from_arrays(own.to_arrays(), method="test", placement=ByScale())
    np.testing.assert_array_equal(again.kept, own.kept)
    exactly = CalibratedPlaces.of("test", ByScale(), predictions[:30], y[:30])
    np.testing.assert_array_equal(exactly.kept, predictions[:30])


def test_of_entities_the_rows_in_all_are_told_and_notes_are_kept():
    rng = np.random.default_rng(11)
    predictions, y = noisy(60, rng)
    entities = entities_of_labels(np.arange(60) // 3, 60)
    own = CalibratedPlaces.of("test", ByScale(), predictions, y, entities, ("a note",))
    rows = entities.one_row_each(y)
    assert own.unit == Unit("entity", 60)
    np.testing.assert_array_equal(own.kept, predictions[rows])
    np.testing.assert_array_equal(own.kept_places, ByScale().place(predictions[rows], y[rows]))
    for certificate in (own.certificate, own.select(predictions, UNITS, 0.0, None, 0.1).certificate):
        assert "a note" in certificate.notes
        assert certificate.promise.n_calibration == 20
        assert certificate.promise.n_rows == 60


@pytest.mark.parametrize("n", [1, 2])
def test_few_places_come_back_from_arrays(n):
    own = calibrated(n, np.random.default_rng(12))
    fields = {"method": "test", "placement": ByScale()}
    assert CalibratedPlaces.from_arrays(own.to_arrays(), **fields).certificate == own.certificate
    for name, wrong in (
        ("places", np.empty(0)),
        ("places", own.places[None]),
        ("kept_places", own.kept_places[None]),
        ("kept_places", np.empty(0)),
        ("kept", own.kept.astype(np.float32)),
        ("kept_places", np.full(n, np.nan)),
    ):
        with pytest.raises(ValueError, match="places of its calibration rows"):
            CalibratedPlaces.from_arrays(own.to_arrays() | {name: wrong}, **fields)


class WholeNumbers(Units):
    """Outcomes are whole numbers: to lie below 3 is to lie at or below 2."""

    def to_work(self, y, strictly=False):
        return np.ceil(y) - 1 if strictly else np.floor(y)


def test_only_to_lie_below_a_value_leaves_out_the_value_itself():
    own = whole_numbers(range(10))
    at = np.zeros((1, 1))
    for above, below in ((3.0, None), (2.5, None), (None, 3.0), (None, 2.5)):
        found = own.probability(at, WholeNumbers(), above, below).values[0]
        wanted = np.ceil(below) - 1 if above is None else 9 - np.floor(above)
        assert found * 11 == pytest.approx(wanted)


def test_a_stated_probability_and_its_event_are_told_in_full():
    own = whole_numbers(range(10))
    assert own.probability_certificate("x").promise.whole_line == (False,)
    assert event_of("above", 0.123456789012345) == "above 0.123456789012345"
    with pytest.raises(ValueError, match="select compares all rows with one value"):
        own.select(np.zeros((10, 1)), UNITS, np.zeros(10), None, 0.1)


def test_places_that_tie_or_are_near_come_back_and_none_at_all_do_not():
    fields = {"method": "test", "placement": ByResidual()}
    for y in ([1, 2, 2, 2], [1.0, 1.5, 1.75]):
        own = whole_numbers(y)
        assert CalibratedPlaces.from_arrays(own.to_arrays(), **fields).certificate == own.certificate
    near = whole_numbers([1.0, 1.5, 1.75])
    wrong = {"places": near.places[[0, 2, 1]], "kept": near.kept, "kept_places": near.kept_places}
    empty = {"places": np.empty(0), "kept": np.empty((0, 1)), "kept_places": np.empty(0)}
    for arrays in (wrong, empty):
        with pytest.raises(ValueError, match="places of its calibration rows"):
            CalibratedPlaces.from_arrays(arrays, **fields)


def test_the_rows_to_select_from_must_not_share_an_entity():
    entities = Entities(np.repeat(np.arange(6), 2), "storm")
    own = CalibratedPlaces.of("test", ByResidual(), np.zeros((12, 1)), np.arange(12.0), entities)
    assert own.select(np.zeros((3, 1)), UNITS, 0.0, None, 0.1).certificate.notes == (
        "The rows to select from must not share a storm with each other.",
    )


def test_one_number_that_is_none_is_refused_wherever_it_is():
    own = whole_numbers(range(10))
    with pytest.raises(ValueError, match="above must be a number, found NaN"):
        own.probability(np.zeros((3, 1)), UNITS, [0.0, np.nan, 1.0], None)
    fields, arrays = {"method": "test", "placement": ByResidual()}, own.to_arrays()
    for name, wrong in (("places", np.nan), ("kept_places", np.nan), ("kept", np.inf), ("kept_places", 0.5)):
        one = arrays[name].copy()
        one.flat[-1] = wrong
        with pytest.raises(ValueError, match="places of its calibration rows"):
            CalibratedPlaces.from_arrays(arrays | {name: one}, **fields)


def test_a_place_that_is_none_is_refused_where_no_prediction_is_kept(monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 3)
    arrays = {
        "places": np.array([0.0, 1.0, 2.0, 3.0]),
        "kept": np.zeros((3, 1)),
        "kept_places": np.array([2.0, 0.0, 1.0]),
    }
    fields = {"method": "test", "placement": ByResidual()}
    assert len(CalibratedPlaces.from_arrays(arrays, **fields).places) == 4
    with pytest.raises(ValueError, match="places of its calibration rows do not fit"):
        CalibratedPlaces.from_arrays(arrays | {"places": np.array([0.0, 1.0, 2.0, np.nan])}, **fields)


def test_the_value_of_an_event_has_fifteen_digits():
    assert event_of("below", 2 / 3) == "below 0.666666666666667"
    assert module.MOST_KEPT == 50_000  # a file with more rows keeps the predictions of so many
