"""The numbers on the page about the reproduction are those that the program computes from the stored run."""

import re
from pathlib import Path

import pytest

from guardband.experiments.reproduce.claims import judge
from guardband.experiments.reproduce.compare import agreement, compare
from guardband.experiments.reproduce.folder import Folder
from guardband.experiments.reproduce.summary import summary_of

ROOT = Path(__file__).parents[3]
PAPER = ROOT / "paper"
PAGE = ROOT / "docs" / "reproduction.md"
BLOCK = re.compile(r"(?<=<!-- summary: begin -->\n).*?(?=<!-- summary: end -->)", re.DOTALL)


@pytest.fixture(scope="module")
def stored():
    return Folder(PAPER).tables()


@pytest.fixture(scope="module")
def claims(stored):
    return judge(stored)


@pytest.fixture(scope="module")
def comparison(stored):
    return compare(stored)


def test_the_stored_summary_is_what_the_program_says_of_the_stored_cells(claims, comparison):
    assert (PAPER / "summary.md").read_text() == summary_of(comparison, claims, None)


def test_the_page_shows_the_stored_summary():
    shown = BLOCK.search(PAGE.read_text())
    assert shown is not None
    assert shown.group().strip() == (PAPER / "summary.md").read_text().strip(), "copy paper/summary.md into the page"


def test_most_points_of_figure_1_differ_from_the_printed_ones(comparison):
    found = agreement(comparison).set_index(["figure", "methods"])
    points, differ = found.loc[("1 (tuned)", "the other six"), ["points", "differ"]]
    assert (points, differ) == (174, 99)
    assert f"{differ} of {points} points differ" in " ".join(PAGE.read_text().split())


def test_the_stored_page_has_every_claim_and_both_settings_of_the_artificial_data(claims):
    page = (PAPER / "index.html").read_text()
    for words in ("How far the curves agree", "simulation (plain)", "Figure 1, no weight decay"):
        assert words in page
    assert len(re.findall("class='claim", page)) == len(claims)


@pytest.mark.parametrize(
    ("on_the_page", "by_the_program"),
    [
        ("conf-nn after 2 to 9 passes", "simulation (plain): conf-nn 2 to 9 passes"),
        ("stops after 3 to 13 passes", "house (paper): conf-nn 3 to 13 passes"),
        ("takes 20 to 58 passes", "simulation (tuned): conf-nn 20 to 58 passes"),
        ("coverage falls to 73%", "100 passes over-fit: they change coverage by -0.1457"),
        (
            "ideal interval and covers 92.6%",
            "length 1.349 (0.034) times the oracle's, coverage 0.926",
        ),
        ("43% longer and covers 93.9%", "length 1.428 (0.040) times the oracle's, coverage 0.939"),
        (
            "covers 89.5%",
            "for beta'x below 1.5 length 1.097 (0.007) times the oracle's, coverage 0.895",
        ),
        ("pav 90.3%", "pav (tuned): for beta'x below 1.5 length 1.119 (0.013) times the oracle's, coverage 0.903"),
        ("conf-nn has 1.054 and pav 1.097 times", "conf-nn 1.054 times the shortest, place 4; pav 1.097 times"),
        ("within 5% (1.015), but pav is not (1.064)", "conf-nn 1.015 times the shortest, place 3; pav 1.064 times"),
        ("8.5% shorter than conf-fw on bike", "bike (full): conf-nn is 0.915"),
        ("8% longer on traffic", "traffic (full): conf-nn is 1.079"),
        (
            "to 69 months, and conf-fw has 83",
            "68.5. conf-fw was not trained in this setting; it has 82.8",
        ),
    ],
)
def test_figures_in_the_words_of_the_page_are_the_programs(claims, on_the_page, by_the_program):
    assert on_the_page in " ".join(PAGE.read_text().split())
    assert any(by_the_program in line for claim in claims for line in claim.words)
