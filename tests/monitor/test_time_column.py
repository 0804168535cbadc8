import numpy as np
import pandas as pd
import pytest

import guardband as gb


@pytest.mark.parametrize("by_name", [True, False])
def test_the_column_of_times_always_moves_and_is_not_called_a_change(by_name):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.standard_normal(1600), "day": rng.random(1600)})
    y = X["size"].to_numpy() + rng.standard_normal(1600)
    model = gb.IntervalRegressor(hidden=(8,), epochs=3, random_state=0).fit(X[:800], y[:800])
    new = X[800:]
    alone, timed = gb.Monitor(model), gb.Monitor(model)
    in_order = new.sort_values("day")
    alone.update(y[in_order.index], X=in_order)
    timed.update(y[800:], X=new, time="day" if by_name else new["day"])
    assert [own.name for own in alone.finding().columns] == ["day"]
    assert timed.finding().columns == ()
    assert alone.evidence == timed.evidence
