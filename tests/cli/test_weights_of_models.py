"""A model whose intervals depend on a column of weights reads that column in every command."""

import copy

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv


@pytest.fixture
def weighed(small_model, tmp_path):
    """Return the table with a column of weights, and the files of both it and a model that was calibrated by them."""
    rng = np.random.default_rng(0)
    table = small_model.table.append_column("w", pa.array(rng.random(len(small_model.table)) + 0.1))
    price = pa.array(1.01 * table["price"].to_numpy())  # so these rows did not train the model
    table = table.set_column(table.column_names.index("price"), "price", price)
    csv.write_csv(table, tmp_path / "weighed.csv")
    model = copy.copy(small_model.model).calibrate(table.drop_columns("price"), table["price"], weights="w")
    model.save(tmp_path / "weighed.guardband")
    return model, table, tmp_path / "weighed.csv", tmp_path / "weighed.guardband"


def test_a_command_predicts_and_audits_by_the_weights_in_a_column(command, weighed, small_model, tmp_path):
    model, table, path, place = weighed
    assert command("predict", place, path, "-o", tmp_path / "out.csv").code == 0
    found = csv.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(found["upper"], model.predict_interval(table).upper, rtol=1e-12)
    run = command("predict", place, small_model.path, "-o", tmp_path / "none.csv")
    assert run.code == 2
    assert "has no column 'w', which holds the weight of each row" in run.complaint
