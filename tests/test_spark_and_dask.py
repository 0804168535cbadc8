"""The examples for Spark and for Dask in the docs give the intervals of one machine."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import guardband as gb
from guardband.data.artificial import PaperModel

PAGE = Path(__file__).parent.parent / "docs" / "ray.md"
NAMES = list("abcd")
ENDS = ["point", "lower", "upper"]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def frame():
    X, _ = PaperModel(n_features=4).draw(300, seed=1)
    return pd.DataFrame(X, columns=NAMES).assign(kind=np.where(X[:, 0] > 0.5, "high", "low"))


@pytest.fixture(scope="module")
def model(frame):
    _, y = PaperModel(n_features=4).draw(300, seed=1)
    return gb.IntervalRegressor(hidden=(8,), epochs=3, preset="fast", random_state=0).fit(frame, y)


def run_example(first_line, names):
    """Run the block of the page that begins with a line, and return what it calls ``found``."""
    (code,) = re.findall(rf"^```\n({re.escape(first_line)}\n.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), names)
    return names["found"]


def test_dask_predicts_each_partition_as_one_machine_does(model, frame, tmp_path, monkeypatch):
    dask = pytest.importorskip("dask.dataframe", reason="needs dask[dataframe]")
    monkeypatch.chdir(tmp_path)
    rows = dask.from_pandas(frame.assign(id=np.arange(len(frame))), npartitions=3)
    found = run_example("import guardband as gb\n\ndef with_intervals(part, path):", {"model": model, "rows": rows})
    found = found.compute(scheduler="synchronous")
    wanted = model.predict_interval(frame).to_pandas()
    assert list(found.columns) == [*frame.columns, "id", *ENDS]
    np.testing.assert_array_equal(found[ENDS], wanted)


def test_a_spark_udf_takes_a_level_and_predicts_as_one_machine_does(model, frame, tmp_path, monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason="needs pyspark and Java")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("mlflow", reason="needs mlflow")
    monkeypatch.chdir(tmp_path)
    local = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    spark = sql.SparkSession.builder.master("local[1]").config(map=local).getOrCreate()
    try:
        rows = spark.createDataFrame(frame.assign(id=np.arange(len(frame)))).repartition(3, "id")
        names = {"gb": gb, "model": model, "X": frame, "spark": spark, "rows": rows}
        found = run_example("import mlflow", names).toPandas().sort_values("id")
    finally:
        spark.stop()
    wanted = model.predict_interval(frame, confidence_level=0.8).to_pandas()
    assert list(found.columns) == [*frame.columns, "id", *ENDS]
    np.testing.assert_array_equal(found[ENDS], wanted)
