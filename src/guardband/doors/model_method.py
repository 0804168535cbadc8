"""Which methods suit what a model predicts, and what to do if one does not."""

from __future__ import annotations

from guardband.bands.predicted import Predicted, PredictedGaussian
from guardband.doors.outputs import Outputs
from guardband.methods.method import Method, Request

POINT, INTERVAL = "conf-fw", "conf-nn"
"""The methods for a model that predicts a point alone, and for one that predicts more."""


def check_method(method: Method, request: Request, outputs: Outputs | None) -> None:
    """Raise if a method needs something else than the model predicts, with what to use instead."""
    rule, is_point = method.rule(request), outputs == "point"
    instead, found = (POINT, "a point") if is_point else (INTERVAL, "bounds")
    if issubclass(rule.takes, PredictedGaussian):
        if outputs not in ("gaussian", "variance"):
            raise ValueError(
                f'method="{method.name}" needs a mean and a standard deviation, and this model predicts {found}. Use '
                f'method="{instead}", or pass a function that returns both, with outputs="gaussian".'
            )
    elif rule.candidates not in (None, 1):
        if isinstance(outputs, str):
            raise ValueError(
                f'method="{method.name}" chooses among intervals at several levels, and this model predicts '
                f'{"none" if is_point else "one"}. Use method="{instead}", or a model that predicts more quantiles.'
            )
    elif is_point and rule.takes is not Predicted:
        raise ValueError(
            f'method="{method.name}" needs more than the point that this model predicts. Use method="{POINT}", or pass '
            "residuals=(X, y), rows on which guardband learns how far off the model is."
        )


def other_columns(expected: int, what: str, found: int) -> str:
    """Return that a model predicts another number of columns than it is read as, and what to do about it."""
    if expected == 1:
        return (
            f"The model predicts {found} numbers for each row, and guardband reads one. Calibrate a model for each "
            'target. If these are bounds or quantiles of one target, pass outputs="bounds", "bands" or their levels.'
        )
    return (
        f"The model must predict {expected} numbers for each row, {what}, found {found}. Correct outputs=..., or the "
        "model."
    )
