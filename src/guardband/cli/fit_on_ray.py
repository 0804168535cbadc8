"""``guardband fit --ray``: what does not apply is refused, and a fit on Ray is told of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardband.cli.console import Speaker

if TYPE_CHECKING:
    from guardband.doors.table import IntervalRegressor

GIB = 2**30


def refuse_on_ray(**given: Any) -> None:
    """Raise if something is asked for that a fit on Ray has no way to do."""
    for option, value in given.items():
        if value not in (None, False):
            raise ValueError(f"{option} cannot be used with --ray. Remove one of them.")


def fit_on_ray(
    model: IntervalRegressor,
    paths: list[str],
    target: list[str],
    drop: list[str],
    address: str,
    memory: float | None,
    checkpoints: str | None,
    skip_corrupt: bool,
    output: Path,
    speaker: Speaker,
) -> None:
    """Fit on Ray, write the model, and say what it promises."""
    from guardband.ray.cluster import connected
    from guardband.ray.fitting import asked, fit

    default, given = type(model)().get_params(deep=False), model.get_params(deep=False)
    params = {name: value for name, value in given.items() if value != default[name] and name != "verbose"}
    asked(params)
    with speaker.doing("Starting Ray"), connected(address), speaker.doing(f"Training on {len(paths):,} files"):
        limit = None if memory is None else max(1, int(memory * GIB))
        named = target if len(target) > 1 else target[0]
        fitted = fit(
            paths,
            target=named,
            drop=drop,
            memory_limit=limit,
            checkpoints=checkpoints,
            skip_corrupt=skip_corrupt,
            **params,
        )
    fitted.save(output)
    speaker.tell(str(fitted.certificate_))
    speaker.tell(f"\nModel: {output}")
    what = "check the promise on" if model.calibration == "split" else "look at the coverage of"
    speaker.tell(f"Next:  {what} files that were not used: guardband audit.")
    speaker.tell_json(
        {
            "model": str(output),
            "target": target if len(target) > 1 else target[0],
            "features": [str(name) for name in fitted.feature_names_in_],
            "certificate": fitted.certificate_.to_dict(),
            "certificate_in_words": str(fitted.certificate_),
        }
    )
