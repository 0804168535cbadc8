from fractions import Fraction

import numpy as np
import pytest

from guardband.bands.levels import Levels


def test_neither_given_means_ninety_percent():
    assert Levels.of().confidence_level == 0.9


def test_alpha_is_subtracted_exactly():
    assert Levels.of(alpha=0.1).values == (Fraction(9, 10),)
    assert Levels.of(alpha=[0.1, 0.05]).values == (Fraction(9, 10), Fraction(19, 20))


@pytest.mark.parametrize("level", [0.9, np.float64(0.9), np.float32(0.9), Fraction(9, 10)])
def test_a_level_is_what_was_written_in_decimal(level):
    assert Levels.of(level).values == (Fraction(9, 10),)


def test_several_levels_stay_in_their_order():
    levels = Levels.of([0.95, 0.5])
    assert levels.confidence_level == (0.95, 0.5)
    assert not levels.scalar
    assert Levels.of(np.array([0.95, 0.5])) == levels


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.0, float("nan"), float("inf")])
def test_levels_outside_the_open_unit_interval_are_refused(level):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        Levels.of(level)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        Levels.of(alpha=level)


def test_percent_gets_a_hint():
    with pytest.raises(ValueError, match=r"found 90\. Write 0\.9 for 90%"):
        Levels.of(90)


def test_both_given_is_an_error():
    with pytest.raises(ValueError, match="not both"):
        Levels.of(0.9, 0.1)


@pytest.mark.parametrize(("given", "error"), [("0.9", TypeError), (True, TypeError), ([], ValueError)])
def test_other_things_are_no_levels(given, error):
    with pytest.raises(error):
        Levels.of(given)


def test_a_level_is_never_all():
    assert Levels.of(alpha=1e-30).floats[0] < 1


def test_a_level_named_twice_is_refused():
    with pytest.raises(ValueError, match="twice"):
        Levels.of([0.9, 0.9])


def test_an_array_of_no_dimension_is_one_level():
    assert Levels.of(np.array(0.9)) == Levels.of(0.9)


def test_an_array_of_one_level_is_the_level_as_it_is_written():
    assert Levels.of(np.array(0.8, dtype=np.float32)) == Levels.of(np.float32(0.8)) == Levels.of(0.8)


def test_floats_and_alphas_are_rounded_once_from_the_exact_levels():
    levels = Levels.of([0.9, 0.3, Fraction(1, 3)])
    assert levels.floats == (0.9, 0.3, 1 / 3)
    assert levels.alphas == (0.1, 0.7, float(Fraction(2, 3)))
    assert len(levels) == 3


def test_levels_include_themselves_and_some_of_them_but_no_others():
    levels = Levels.of([0.9, 0.5])
    assert levels.include(levels)
    assert levels.include(Levels.of(0.5))
    assert not levels.include(Levels.of([0.5, 0.6]))
    assert not Levels.of(0.5).include(levels)


@pytest.mark.parametrize(
    ("given", "hint"),
    [(1.5, " Write 0.015 for 1.5%."), (99.5, " Write 0.995 for 99.5%."), (1, ""), (100, ""), (100.5, ""), (0, "")],
)
def test_only_what_may_be_meant_as_percent_gets_a_hint(given, hint):
    with pytest.raises(ValueError, match="strictly between 0 and 1") as refused:
        Levels.of(given)
    assert str(refused.value) == f"confidence_level must lie strictly between 0 and 1, found {given}.{hint}"


@pytest.mark.parametrize("given", ["0.9", True, 1j])
def test_what_is_no_number_is_named_whole(given):
    with pytest.raises(TypeError, match="must be a number between 0 and 1") as refused:
        Levels.of(given)
    assert str(refused.value).endswith(f"found {given!r}.")
