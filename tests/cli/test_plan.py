import pytest

from guardband import planning
from guardband.bands.cross_bounds import plus_missed
from guardband.bands.ranks import coverage_bound
from guardband.cli.bars import BAR, bars
from guardband.cli.plan import promised


def test_needs_are_those_of_planning(command):
    said = command("plan", "--level", "0.9", "--delta", "0.1", "--epsilon", "0.01", "--candidates", "10", "--json")
    found = [need["rows"] for need in said.json["needs"]]
    assert found == [
        planning.marginal_rows(0.9),
        planning.pac_rows(0.9, 0.1),
        planning.conformal_rows(0.9, 0.01, 0.1),
        planning.pav_rows(0.9, 0.01, 0.1),
        planning.pav_rows(0.9, 0.01, 0.1, 10),
        planning.theorem2_rows(0.01, 0.1, 10),
        planning.average_rows(0.9, 0.01, 10),
        planning.corollary_rows(0.9, 0.01, 10),
    ]
    assert said.err == ""


def test_groups_need_rows_each_and_in_all(command):
    """With the share of the smallest group; without one, groups have equal shares."""
    arguments = ("plan", "--groups", "12", "--epsilon", "0.05", "--delta", "0.1")
    said = command(*arguments, "--smallest-share", "0.02", "--json")
    each = [planning.group_rows(0.9, 12), planning.group_rows(0.9, 12, 0.1), planning.group_rows(0.9, 12, 0.1, 0.05)]
    assert [need["rows"] for need in said.json["group_needs"]] == each
    assert [need["in_all"] for need in said.json["group_needs"]] == [planning.rows_in_all(n, 0.02) for n in each]
    assert "needed for 90% in each of 12 groups" in command(*arguments).out
    equal = command(*arguments, "--json").json["group_needs"]
    assert [need["in_all"] for need in equal] == [planning.rows_in_all(n, 1 / 12) for n in each]
    assert command("plan", "--json").json["group_needs"] == []


def test_rows_give_ranks_bounds_and_lengths():
    marginal, pac = promised(0.9, 0.1, 1000)
    assert (marginal.rank, pac.rank) == (901, 913)
    assert pac.bound == coverage_bound(0.1, 913, 1000) >= 0.9
    assert marginal.expected == 901 / 1001
    assert 1 <= marginal.length < pac.length < 1.05
    assert promised(0.9, 0.1, 5)[0].length is None


def test_tables_and_plot_are_told_in_words(command):
    said = command("plan", "--rows", "20", "--rows", "300")
    assert "infinite: too few rows" in said.out
    assert "1.077 " + "█" * BAR in said.out
    assert "Calibration rows needed" not in said.out
    assert "Calibration rows needed" in command("plan").out


def test_bars_without_unicode():
    assert bars([("10", None), ("200", 1.2), ("3000", 1.1)], ascii_only=True).splitlines() == [
        "  10  infinite: too few rows",
        " 200  1.200 " + "#" * BAR,
        "3000  1.100 " + "#" * (BAR // 2),
    ]
    assert bars([("10", None)], ascii_only=False) == "10  infinite: too few rows"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--level", "90"], "Write 0.9 for 90%"),
        (["--delta", "0"], "delta must lie strictly between 0 and 1"),
        (["--epsilon", "2"], "epsilon must lie strictly between 0 and 1"),
        (["--smallest-share", "0.1"], "goes with --groups"),
        (["--groups", "3", "--smallest-share", "2"], "--smallest-share must be above 0 and at most 1"),
        (["--rows", "0"], "Invalid value for '--rows'"),
    ],
)
def test_what_cannot_be_is_one_line(command, arguments, words):
    assert words in command("plan", *arguments).complaint


def test_two_tails_need_the_rows_of_the_smaller_one(command):
    said = command("plan", "--tails", "0.02,0.08", "--delta", "0.1", "--json").json
    assert said["tails"] == [0.02, 0.08]
    assert [own["rows"] for own in said["tail_needs"]] == [49, planning.pac_rows(0.98, 0.05)]
    assert "Calibration rows needed for these tails" in command("plan", "--tails", "0.02,0.08").out
    assert "tails must add up to less than 1" in command("plan", "--tails", "0.6,0.6").complaint


def test_small_tables_are_told_of_cross_validation_and_what_it_proves(command):
    said = command("plan", "--rows", "100", "--rows", "5000")
    assert "consider guardband fit --calibration cv+" in said.out
    assert "at least 76.96% with 400 rows." in " ".join(said.out.split())
    (own,) = command("plan", "--rows", "100", "--rows", "5000", "--json").json["cross_validation"]
    assert own == {"rows": 400, "proved": 1 - plus_missed(361, [50] * 8)}
    assert "cv+" not in command("plan", "--rows", "5000").out


def test_a_risk_takes_the_place_of_a_level(command):
    said = command("plan", "--risk", "5", "--risk-cap", "100", "--level", "0.9")
    assert said.code == 2
    assert "--risk takes the place of a level. Remove --level" in said.complaint
