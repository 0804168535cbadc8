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
def comparison(stored):
    return compare(stored)


def test_the_stored_summary_is_what_the_program_says_of_the_stored_cells(stored, comparison):
    assert (PAPER / "summary.md").read_text() == summary_of(comparison, judge(stored), None)


def test_the_page_shows_the_stored_summary():
    shown = BLOCK.search(PAGE.read_text())
    assert shown is not None
    assert shown.group().strip() == (PAPER / "summary.md").read_text().strip(), "copy paper/summary.md into the page"


def test_most_points_of_figure_1_differ_from_the_printed_ones(comparison):
    found = agreement(comparison).set_index(["figure", "methods"])
    points, differ = found.loc[("1 (tuned)", "the other six"), ["points", "differ"]]
    assert (points, differ) == (174, 99)


def test_the_stored_page_has_every_claim_and_both_settings_of_the_artificial_data(stored):
    page = (PAPER / "index.html").read_text()
    for words in ("How far the curves agree", "simulation (plain)", "Figure 1, no weight decay"):
        assert words in page
    assert len(re.findall("class='claim", page)) == len(judge(stored))
