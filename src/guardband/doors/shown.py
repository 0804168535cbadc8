"""How models look in a notebook: their promise, or what to do next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from guardband.bands.certificate_card import model_card
from guardband.words import level_name

if TYPE_CHECKING:
    from guardband.bands.certificate import Certificate
    from guardband.doors.fitted import Fitted
    from guardband.doors.guarded_model import GuardedModel
    from guardband.doors.network import GuardedNetwork
    from guardband.methods.method import Request

NOT_FITTED = "This model is not fitted yet. Call fit(X, y)."
NOT_CALIBRATED = (
    "This model is trained but not calibrated. Call calibrate(X, y) with rows that did not train it, to get intervals."
)


class PromiseBelowDiagram:
    """Adds the promise of an estimator below the diagram that scikit-learn draws of it.

    A pipeline or a search draws its steps itself, and is not changed. If scikit-learn is set to show text instead of
    diagrams, text is shown.
    """

    fitted_: Fitted

    def _repr_mimebundle_(self, **asked: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**asked)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._promise_html()
        return bundle

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram = super()._repr_html_  # type: ignore[misc]  # raises AttributeError if text is to be shown
        return lambda: diagram() + self._promise_html()

    def _promise_html(self) -> str:
        name = type(self).__name__
        if not hasattr(self, "fitted_"):
            return model_card(name, [], None, NOT_FITTED)
        calibrated = self.fitted_.calibrated
        if calibrated is None:
            return model_card(name, [], None, NOT_CALIBRATED)
        return model_card(name, [], calibrated.certificate)


def guarded_model_html(guarded: GuardedModel) -> str:
    """Return the HTML of a calibrated model."""
    return model_card("Calibrated model", guarded.made_by(), guarded.certificate)


def guarded_network_html(guarded: GuardedNetwork) -> str:
    """Return the HTML of a calibrated network."""
    names = [type(network).__name__ for network in guarded.networks]
    weights = sum(weight.numel() for weight in guarded.networks.parameters())
    network = names[0] if len(names) == 1 else f"{len(names)} networks"
    return model_card("Calibrated network", [("Network", network), ("Weights", f"{weights:,}")], guarded.certificate)


def band_calibrator_html(certificate: Certificate | None, method: str, request: Request) -> str:
    """Return the HTML of a calibrator, with what it was asked for as long as it is not calibrated."""
    if certificate is not None:
        return model_card("BandCalibrator", [], certificate)
    next_step = (
        "Not calibrated yet. Call fit(lower, point, upper, y) with predictions for rows that did not train the model, "
        "and the true values of these rows."
    )
    levels = ", ".join(map(level_name, request.levels.floats))
    given = request.given()
    if request.tails is not None:
        given["tails"] = tuple(map(float, request.tails))
    settings = {"method": method, **({} if request.risk is not None else {"confidence level": levels}), **given}
    return model_card("BandCalibrator", [(name, str(value)) for name, value in settings.items()], None, next_step)
