"""Rows that belong together, through the ways in: no entity on two sides, certificates, files, audits."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import guardband as gb
from guardband.audit.evidence import Evidence
from guardband.data.entities import entities_from
from guardband.data.table import read_table

COUNT = 60
FAST = {"preset": "fast", "max_epochs": 3, "random_state": 0, "verbose": False}


pytestmark = pytest.mark.filterwarnings("ignore::guardband.DependentRowsWarning")


def patients(seed=0, count=COUNT, prefix="p"):
    """Rows of patients with an effect of their own, half of which their name and their age tell."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(count), rng.integers(1, 12, count))
    X = pd.DataFrame({"x": rng.normal(size=len(who)), "age": rng.normal(size=count)[who]})
    X.insert(0, "patient", [f"{prefix}{own}" for own in who])
    return X, X["x"] + rng.normal(size=count)[who] + 0.3 * rng.normal(size=len(who))


@pytest.fixture(scope="module")
def model():
    X, y = patients()
    return gb.IntervalRegressor(split_by="patient", **FAST).fit(X, y)


def test_no_patient_is_on_two_sides(model):
    X, _ = patients()
    training, calibration = model.fitted_.training_entities, model.fitted_.calibration_entities
    assert not np.isin(training, calibration).any()
    assert len(training) + len(calibration) == X["patient"].nunique()
    assert model.certificate_.n_calibration == len(calibration) == COUNT // 4
    assert model.certificate_.promise.n_rows == len(model.fitted_.calibration_prints)


@pytest.mark.parametrize("split_by", ["patient", ["patient", "age"], lambda X: X["patient"]])
def test_copies_are_stopped_by_patients_that_they_did_not_see(split_by, monkeypatch):
    from guardband.learning import learn

    seen = []
    kept = learn.folds_of
    monkeypatch.setattr(learn, "folds_of", lambda draw, *how: seen.append((draw, kept(draw, *how))) or seen[-1][1])
    X, y = patients()
    gb.IntervalRegressor(split_by=split_by, calibration_size=None, **FAST).fit(X, y)
    ((_, folds),) = seen
    who = X["patient"].to_numpy()
    for held_out, rest in folds:
        assert not set(who[held_out.index]) & set(who[rest.index])
        assert len(held_out.index) > 0


@pytest.mark.parametrize("epochs", ["early", "cv"])
def test_a_single_network_is_stopped_by_patients_that_it_did_not_see(epochs, monkeypatch):
    from guardband.training import epochs as training

    X, y = patients()
    who, divided = X["patient"].to_numpy(), []
    kept = training._folds_of_entities

    def folds(draw, *how):
        out = kept(draw, *how)
        divided.extend(set(who[held_out.index]) & set(who[rest.index]) for held_out, rest in out)
        return out

    monkeypatch.setattr(training, "_folds_of_entities", folds)
    options = {"network": "plain", "max_epochs": 2, "random_state": 0, "verbose": False}
    gb.IntervalRegressor(split_by="patient", epochs=epochs, calibration_size=None, **options).fit(X, y)
    assert divided
    assert not any(divided)


def test_text_that_names_patients_is_not_learnt_from(model):
    X, _ = patients(1)
    other = X.assign(patient="nobody")
    np.testing.assert_array_equal(model.predict(X), model.predict(other))


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_a_prediction_does_not_need_text_that_names_patients(model, library):
    X, y = patients(1)
    lacking = X.drop(columns="patient")
    new = {"pandas": lambda: lacking, "polars": lambda: pl.from_pandas(lacking), "arrow": lambda: pa.table(lacking)}
    np.testing.assert_array_equal(model.predict(new[library]()), model.predict(X))
    bands, expected = model.predict_interval(new[library]()), model.predict_interval(X)
    np.testing.assert_array_equal(bands.upper, expected.upper)
    np.testing.assert_array_equal(bands.unlike, expected.unlike)
    with pytest.raises(ValueError, match=r"lacks 1 of the model's 3 columns: 'age'"):
        model.predict(lacking.drop(columns="age"))
    for needs_patients in (model.calibrate, lambda X, y: Evidence.of(model, X, y)):
        with pytest.raises(ValueError, match=r"lacks 1 of the model's 3 columns: 'patient'"):
            needs_patients(lacking, y)


def test_labels_may_come_apart_from_the_table():
    X, y = patients()
    own = gb.IntervalRegressor(**FAST).fit(X[["x", "age"]], y, entities=X["patient"])
    assert own.certificate_.n_calibration == COUNT // 4
    assert "rows drawn at random, one from each new entity," in str(own.certificate_)


def test_patients_that_trained_cannot_calibrate():
    X, y = patients()
    own = gb.IntervalRegressor(split_by="patient", calibration_size=None, **FAST).fit(X, y)
    fresh, outcome = patients(1, prefix="q")
    assert own.calibrate(fresh, outcome).certificate_.n_calibration == COUNT
    again = fresh.assign(patient=np.where(fresh["patient"] == "q3", "p3", fresh["patient"]))
    with pytest.raises(gb.OverlapError, match=r"1 of 60 values of 'patient'.*Calibrate on rows of new ones"):
        own.calibrate(again, outcome)


@pytest.mark.parametrize("arguments", [{}, {"guarantee": "pac"}, {"method": "pav"}, {"method": "cqr"}])
def test_a_saved_model_keeps_its_entities(arguments, tmp_path):
    X, y = patients()
    own = gb.IntervalRegressor(split_by="patient", confidence_level=0.8, **arguments, **FAST).fit(X, y)
    own.save(tmp_path / "m.guardband")
    again = gb.load(tmp_path / "m.guardband")
    assert again.certificate_ == own.certificate_
    assert again.certificate_.promise.entity == "'patient'"
    np.testing.assert_array_equal(again.fitted_.training_entities, own.fitted_.training_entities)
    np.testing.assert_array_equal(again.predict_interval(X).upper, own.predict_interval(X).upper)


def test_a_function_of_ones_own_is_to_be_brought_again(tmp_path):
    X, y = patients()
    own = gb.IntervalRegressor(split_by=lambda X: X["patient"], **FAST).fit(X, y)
    own.save(tmp_path / "m.guardband")
    with pytest.raises(gb.ModelFileError, match="split_by"):
        gb.load(tmp_path / "m.guardband")
    assert gb.load(tmp_path / "m.guardband", split_by=lambda X: X["patient"]).certificate_ == own.certificate_


def test_an_audit_takes_one_row_of_each_and_knows_those_it_has_seen(model):
    X, y = patients(1, prefix="q")
    evidence = Evidence.of(model, X, y)
    assert (evidence.n, evidence.drawn_from, evidence.seen_entities) == (COUNT, (len(X), "'patient'"), 0)
    X, y = patients()
    assert Evidence.of(model, X, y).seen_entities == COUNT


def test_an_empty_list_says_that_rows_stand_alone():
    X, y = patients()
    twice, outcome = pd.concat([X, X]), pd.concat([y, y])
    own = gb.IntervalRegressor(split_by=[], **FAST).fit(twice, outcome)
    assert own.certificate_.promise.entity is None
    assert own.certificate_.n_calibration == -(-len(twice) // 4)


def test_repeated_rows_stay_together_and_are_told():
    X, y = patients()
    twice, outcome = pd.concat([X, X], ignore_index=True), pd.concat([y, y], ignore_index=True)
    with pytest.warns(gb.RepeatedRowsWarning, match=f"{len(X):,} of {2 * len(X):,} rows"):
        own = gb.IntervalRegressor(**FAST).fit(twice, outcome)
    assert not np.isin(own.fitted_.training_prints, own.fitted_.calibration_prints).any()
    assert own.certificate_.promise.n_rows == 2 * own.certificate_.n_calibration
    assert "new rows that repeat no row of the table fall inside" in str(own.certificate_)


def test_rows_of_a_repeated_table_cannot_calibrate_or_judge_it():
    X, y = patients()
    with pytest.warns(gb.RepeatedRowsWarning):
        own = gb.IntervalRegressor(calibration_size=None, **FAST).fit(pd.concat([X] * 4), pd.concat([y] * 4))
    with pytest.raises(gb.OverlapError, match="also occur in the training rows"):
        own.calibrate(X, y)
    own.calibrate(*patients(1, prefix="q"))
    evidence = Evidence.of(own, X, y)
    assert evidence.used_before == len(X) > evidence.used_by_chance


def test_near_copies_are_known_again_in_later_tables():
    rng = np.random.default_rng(0)
    plots = rng.normal(size=(300, 4))

    def harvests(times, own=plots):
        return np.tile(own, (times, 1)), np.tile(own[:, 0], times) + rng.normal(size=times * len(own))

    with pytest.warns(gb.RepeatedRowsWarning, match="600 of 900 rows have the inputs of another row"):
        own = gb.IntervalRegressor(calibration_size=None, **FAST).fit(*harvests(3))
    with pytest.raises(gb.OverlapError, match="combination of inputs"):
        own.calibrate(*harvests(1))
    own.calibrate(*harvests(1, rng.normal(size=(300, 4))))
    assert "one from each new combination of inputs," in str(own.certificate_)
    assert Evidence.of(own, *harvests(1)).seen_entities == 300


def test_drift_counts_entities():
    X, y = patients()
    own = gb.IntervalRegressor(split_by="patient", **FAST).fit(X, y)
    assert own.fitted_.reference.columns[1].count == len(own.fitted_.training_entities)
    calibrated = own.calibration_
    assert len(calibrated.rule.calibration_scores(calibrated.summary)) == own.certificate_.n_calibration


def test_repeated_calibration_rows_count_once(model):
    X, y = patients(1, prefix="q")
    own = gb.IntervalRegressor(calibration_size=None, **FAST).fit(*patients())
    with pytest.warns(gb.RepeatedRowsWarning):
        own.calibrate(pd.concat([X] * 4), pd.concat([y] * 4))
    assert own.certificate_.n_calibration == len(X)


def test_bands_from_anywhere_take_entities():
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    who = np.repeat(np.arange(100), 4)
    ones = np.ones(400)
    rule = gb.BandCalibrator("conf-nn").fit(-ones, 0 * ones, ones, y, entities=who)
    assert rule.certificate.n_calibration == 100
    assert rule.transform([-1.0], [0.0], [1.0]).upper[0] > 1
    assert (
        gb.BandCalibrator("conf-nn", guarantee="pac").fit(-ones, 0 * ones, ones, y, entities=who).certificate.rank == 95
    )


@pytest.mark.parametrize("split_by", [0, 1, [0], {"patient"}])
def test_split_by_must_name_columns(split_by):
    X, y = patients()
    with pytest.raises(ValueError, match="split_by must be the name of a column"):
        gb.IntervalRegressor(split_by=split_by, **FAST).fit(X.to_numpy(), y)


def test_two_ways_to_say_what_rows_belong_to_are_one_too_many():
    X, y = patients()
    with pytest.raises(ValueError, match="give one of them"):
        gb.IntervalRegressor(split_by="patient", **FAST).fit(X, y, entities=X["patient"])


def test_an_audit_of_a_model_that_was_given_labels_needs_them(tmp_path):
    X, y = patients()
    own = gb.IntervalRegressor(**FAST).fit(X[["x", "age"]], y, entities=X["patient"])
    fresh, outcome = patients(1, prefix="q")
    with pytest.raises(ValueError, match="Pass entities= here too"):
        Evidence.of(own, fresh, outcome)
    assert Evidence.of(own, fresh, outcome, entities=fresh["patient"]).n == COUNT
    assert Evidence.of(own, X, y, entities=X["patient"]).seen_entities == COUNT


def test_entities_of_a_wrong_shape_are_refused():
    X, y = patients()
    with pytest.raises(ValueError, match="entities must have one label for each"):
        gb.IntervalRegressor(**FAST).fit(X, y, entities=[1, 2])


def test_the_function_sees_the_table_as_it_was_given():
    X, _ = patients()
    assert len(entities_from(read_table(X), X, lambda given: given["patient"].str[0]).every) == 1
