import pytest

from notebook_html import MEAN, shown
from promised import certificate
from reported import grouped_evidence

MARGINAL = certificate("marginal", "conf-nn", 0.9, 1000, rank=901, notes=("Something else.",))


def test_the_promise_comes_first_then_figures_then_what_is_not_promised():
    text = shown(MARGINAL).text
    parts = [
        MARGINAL.promise.headline("conf-nn"),
        "Confidence level 90%",
        "1,000 calibration rows",
        "901 of 1,000",
        "Expected coverage at least 90",
        "Coverage, with 90% confidence at least 88.77%",
        "Not promised",
        MARGINAL.promise.not_promised()[-1],
        "Something else.",
    ]
    places = [text.find(part) for part in parts]
    assert places == sorted(places)
    assert places[0] == 0
    assert all(line in text for line in str(MARGINAL).splitlines())


@pytest.mark.parametrize(
    "own",
    [
        certificate("pac", "conf-nn", (0.9, 0.5), 50, rank=(51, 30), delta=0.05, whole_line=(True, False)),
        certificate("pav", "pav", 0.9, 1000, rank=900, delta=0.1, tau=0.08, covered=907),
        certificate("none", "bayes", 0.9, 50),
    ],
    ids=lambda own: own.kind,
)
def test_every_kind_has_a_card(own):
    found = shown(own)
    assert found.text.startswith(own.promise.headline(own.method))
    assert found.count("div", **{"class": "guardband card promised"}) == own.promise.binding


def test_infinite_intervals_are_called_so():
    own = certificate("marginal", "conf-nn", (0.9, 0.5), 8, rank=(9, 5), whole_line=(True, False))
    assert "more than 8: too few rows 5 of 8" in shown(own).text
    assert "Intervals are infinite finite" in shown(own).text
    assert "Expected coverage 100% at least 55.55%" in shown(own).text


def test_words_from_outside_are_escaped():
    assert MEAN in shown(certificate("marginal", MEAN, 0.9, 1000, rank=901, notes=(MEAN,))).text
    assert MEAN in shown(certificate("none", "bayes", 0.9, 10, reason=MEAN)).text


def test_each_group_has_a_line_with_its_rows_rank_bound_width_and_cost():
    own = grouped_evidence(few=("station",))[0].certificate
    text = shown(own).text
    assert "Promise for each group." in text
    line = next(line for line in own.groups if line.name == "district = old town")
    assert f"district = old town {line.n_calibration} {line.rank} " in text
    assert "district = station 5 too few rows infinite" in text
    assert "within a part of one" in text
    assert "The promise is about all rows together" not in text


def test_of_many_groups_twelve_are_shown():
    own = grouped_evidence([f"<b>shop {i}" for i in range(20)], 900)[0].certificate
    html = shown(own)
    assert html.text.count("district = <b>shop") >= 12
    assert "8 more groups: see" in html.text
    assert html.count("b") == 0
