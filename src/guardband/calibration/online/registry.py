"""Online rules by word."""

from __future__ import annotations

from guardband.calibration.online.aci import AdaptiveLevel
from guardband.calibration.online.recent import Recent
from guardband.calibration.online.rule import OnlineRule
from guardband.calibration.online.scale_free import ScaleFree
from guardband.calibration.online.tracking import Tracking
from guardband.words import listed

RULES: dict[str, type[OnlineRule]] = {own.word: own for own in (AdaptiveLevel, ScaleFree, Tracking, Recent)}


def rule_named(rule: str | OnlineRule) -> OnlineRule:
    """Return the rule of that word, or the object itself."""
    if isinstance(rule, OnlineRule):
        return rule
    if not isinstance(rule, str) or rule not in RULES:
        raise ValueError(f"rule must be one of {listed(list(RULES))}, or an OnlineRule, found {rule!r}.")
    return RULES[rule]()
