import xml.dom.minidom

import numpy as np

import guardband as gb
from guardband.audit.evidence import Evidence
from guardband.report.document import document
from guardband.report.figures import write_figures
from guardband.report.schema import checked
from judged import evidence_of
from report_cases import case
from reported import documents, put


def test_figures_are_written_alike_each_time_and_none_without_rows(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    model = gb.IntervalRegressor(hidden=(8,), epochs=2, network="plain", random_state=0).fit(X, X.sum(1))
    own = document(model, evidence_of(400)) | {"response": "price $ and $x^$"}
    first, second = (write_figures(own, tmp_path / name) for name in ("a", "b"))
    names = ["intervals", "coverage-by-width", "levels", "widths"]
    assert [path.name for path in first] == [f"{name}.{kind}" for name in names for kind in ("svg", "png")]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert write_figures(document(model, None), tmp_path / "c") == []


def test_coverage_over_time_has_a_figure_if_a_time_is_known(tmp_path):
    written = [path.name for path in write_figures(case("time"), tmp_path)]
    assert "coverage-over-time.svg" in written
    svg = (tmp_path / "coverage-over-time.svg").read_text()
    xml.dom.minidom.parseString(svg)
    assert "By month of sold" in svg


def test_widths_that_do_not_vary_have_no_figure(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    y = X.sum(1) + rng.standard_normal(300)
    model = gb.IntervalRegressor("conf-fw", hidden=(8,), epochs=2, network="plain", random_state=0).fit(
        X[:200], y[:200]
    )
    written = write_figures(document(model, Evidence.of(model, X[200:], y[200:])), tmp_path)
    assert [path.name for path in written if path.suffix == ".svg"] == ["intervals.svg", "levels.svg"]


def test_names_of_any_kind_are_drawn_as_they_are(tmp_path):
    names = ["\n" * 50, r"$\frac{", r"\$x$", "a\x00b\ud800", "\x1b[0m<&--]]>", "long " * 200, "$x_{1" * 3]
    own = documents()["conf-nn"] | {"response": "\x00$a$\ud800<" * 9}
    at = next(i for i, family in enumerate(own["audit"]["families"]) if family["key"] == "width")
    for i, name in enumerate(names):
        own = put(own, ("audit", "families", at, "strata", i, "label"), name)
    for written in write_figures(own, tmp_path):
        if written.suffix == ".svg":
            xml.dom.minidom.parse(str(written))


def test_numbers_at_the_end_of_their_range_are_drawn(tmp_path):
    own = documents()["conf-nn"]
    rows, n = own["rows"], len(own["rows"]["row"])
    ends = {"lower": [[-1.7e308] * n] * len(rows["levels"]), "upper": [[1.7e308] * n] * len(rows["levels"])}
    wide = own["widths"] | {"edges": [0.0] * len(own["widths"]["counts"]) + [1.79e308]}
    assert len(write_figures(checked(own | {"rows": rows | ends, "widths": wide}), tmp_path)) == 8
