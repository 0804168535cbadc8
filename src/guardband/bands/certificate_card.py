"""A certificate as a card, for notebooks: the promise, its figures, and what is not promised."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from guardband.bands.promise import DELTA
from guardband.markup import rendered
from guardband.words import at_least, confidence_name, level_name, number, signed_percent

if TYPE_CHECKING:
    from guardband.bands.certificate import Certificate

CONTAIN = {"both": "Intervals contain", "lower": "At or above lower bounds", "upper": "At or below upper bounds"}


MOST_GROUPS = 12


def certificate_card(certificate: Certificate) -> str:
    """Return the HTML of a certificate."""
    return rendered("certificate.html", **promise_view(certificate))


def promise_view(certificate: Certificate) -> dict[str, Any]:
    """Return what the template ``promise.html`` shows of a certificate."""
    promise = certificate.promise
    return {
        "binding": promise.binding,
        "headline": promise.headline(certificate.method),
        "figures": _figures(certificate),
        "groups": _groups(certificate)[:MOST_GROUPS],
        "more_groups": max(0, len(certificate.groups) - MOST_GROUPS),
        "not_promised": promise.not_promised(),
        "notes": certificate.notes if promise.binding else (),
        "text": str(certificate).splitlines(),
    }


def model_card(
    title: str,
    settings: Iterable[tuple[str, str]],
    certificate: Certificate | None,
    next_step: str = "",
) -> str:
    """Return the HTML of a model: its promise, or what to do next if there is none yet."""
    view = {"binding": False} if certificate is None else promise_view(certificate)
    return rendered("model.html", title=title, settings=list(settings), next_step=next_step, **view)


def _figures(certificate: Certificate) -> list[tuple[str, list[str]]]:
    """Return figures by name, one for each level where they depend on it."""
    promise = certificate.promise
    levels = [level_name(level) for level in promise.confidence_level]
    out = [("Confidence level", levels)] if promise.is_of_coverage else []
    out.append(("Method", [certificate.method]))
    out.append(("Calibration", [promise.counted]))
    for part in promise.statements():
        if part.group is None and part.promise.rank is not None and part.promise.counts_rows_inside:
            own = [_contained(rank, part.promise.n_calibration) for rank in part.promise.rank]
            out.append((CONTAIN[part.side], own))
    if promise.binding:
        delta = DELTA if promise.delta is None else promise.delta
        bounds = promise.coverage_bound(delta) if promise.is_of_coverage else ()
        if not promise.is_of_coverage:
            out += [(name, [words]) for name, words in promise.risk_figures()]
        elif promise.is_of_new_rows:
            out.append(("Expected coverage", _each(_at_least, promise.expected_coverage())))
            out.append((f"Coverage, with {confidence_name(delta)} confidence", _each(_at_least, bounds)))
        else:
            out.append(("Coverage of rows so far", _each(_at_least, bounds)))
        out.append(("Assumes", [certificate.assumption]))
        if certificate.in_time is not None:
            out.append(("Split", [certificate.in_time.in_brief()]))
    if any(promise.whole_line):
        out.append(("Intervals are", ["infinite" if whole else "finite" for whole in promise.whole_line]))
    return out


def _groups(certificate: Certificate) -> list[tuple[str, ...]]:
    """Return a line for each group: calibration rows, how many had to be inside, bound, mean width and its cost."""
    sides = {"both": "", "lower": ", lower bounds", "upper": ", upper bounds"}
    lines: list[tuple[str, ...]] = []
    for own in certificate.groups:
        n, ranks = own.n_calibration, _tuple(own.rank)
        finite = all(rank <= n for rank in ranks)
        width = " / ".join(map(number, _tuple(own.mean_width)))
        lines.append(
            (
                own.name + sides[own.side],
                f"{n:,}",
                " / ".join(f"{rank:,}" for rank in ranks) if finite else "too few rows",
                " / ".join(at_least(bound) for bound in _tuple(own.coverage_bound)) if finite else "",
                width or ("" if finite else "infinite"),
                " / ".join(signed_percent(cost) for cost in _tuple(own.cost)),
            )
        )
    return lines


def _tuple(values: Any) -> tuple[Any, ...]:
    return () if values is None else values if isinstance(values, tuple) else (values,)


def _contained(rank: int, count: int) -> str:
    return f"{rank:,} of {count:,}" if rank <= count else f"more than {count:,}: too few rows"


def _at_least(share: float) -> str:
    return "100%" if share >= 1 else f"at least {at_least(share)}"


def _each(words: Callable[[float], str], values: Iterable[float]) -> list[str]:
    return [words(value) for value in values]
