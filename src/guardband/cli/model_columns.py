"""The models that commands take from a file, and the columns that each of them needs of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guardband.data.kinds import Kind
from guardband.doors.read_once import AnyPath

if TYPE_CHECKING:
    from guardband.doors.bands import BandCalibrator
    from guardband.doors.table_model import TableModel

    Model = TableModel | BandCalibrator

PYTHON_ONLY = {
    "model": (
        "{path} holds a calibration without its model, which only Python can bring: gb.load(path, model=...). On the "
        "command line, write the model's predictions to a table and use `guardband calibrate`."
    ),
    "network": (
        "{path} holds a network whose code only Python can bring: gb.load(path, network=...). On the command line, "
        "write its predictions to a table and use `guardband calibrate`."
    ),
    "distribution": (
        "{path} holds a DistributionCalibrator, which only Python uses: gb.load(path). On the command line, use a "
        "model or a rule."
    ),
    "online": (
        "{path} holds the state of an OnlineCalibrator, which only Python uses: gb.load(path). On the command line, "
        "use a model or a rule."
    ),
}

ADD = "Add {0}, or fit a model without {0}."
WRITE = "Write the predictions to the table under {}."


@dataclass(frozen=True)
class ModelColumns:
    """The columns that a model takes, in its order; those that ``may_lack`` can be absent.

    ``groups`` are those that say which group a row belongs to, and ``weights`` the one of its weight. ``named`` says
    whether the model knows them by name, and ``otherwise`` what to do if one is not there, or several.
    """

    names: list[str] | None
    kinds: Sequence[Kind]
    named: bool
    otherwise: tuple[str, str]
    groups: tuple[str, ...] = ()
    unlearnt: Any = None
    weights: str | None = None

    @classmethod
    def of(cls, model: Model) -> ModelColumns:
        """Return the columns of a table's model, or those with predictions of a rule."""
        from guardband.data.encoder import TableEncoder
        from guardband.doors.bands import BandCalibrator

        if isinstance(model, BandCalibrator):
            bounds: dict[str, Kind] = dict.fromkeys(model.columns.names, "number")
            groups, weights = _groups_of_rule(model), _weights_of_rule(model)
            known = bounds | {name: kind for name, kind in groups.items() if name not in bounds}
            known |= {} if weights is None else {weights: "number"}
            words = (WRITE.format("this name"), WRITE.format("these names"))
            return cls(list(known), list(known.values()), True, words, tuple(groups), weights=weights)
        encoder = model.fitted_.learned.encoder
        plain: list[Kind] = ["number"] * model.n_features_in_
        kinds = encoder.kinds if isinstance(encoder, TableEncoder) else plain
        own = list(getattr(model, "feature_names_in_", [])) or None
        grouping = model.fitted_.grouping
        needed = () if grouping is None else tuple(grouping.column_names)
        learnt, weights, otherwise = len(kinds), _weights_of_model(model), (ADD.format("it"), ADD.format("them"))
        if own is not None and weights is not None and weights not in own:
            own, kinds = [*own, weights], [*kinds, "number"]
        return cls(
            own, kinds, own is not None, otherwise, needed, lambda names: encoder.unlearnt(names[:learnt]), weights
        )

    def may_lack(self, names: list[str]) -> Any:
        """Return which of these columns may be absent."""
        return () if self.unlearnt is None else [own for own in self.unlearnt(names) if own not in self.groups]


def _groups_of_rule(rule: BandCalibrator) -> dict[str, Kind]:
    """Return the columns that say which group a row belongs to, and what each is; refuse labels from Python."""
    if rule.grouping is None:
        return {}
    if rule.grouping.by is None:
        raise ValueError(
            "The rule was given the groups of its rows in Python, and no column of a table says them. Make a rule with "
            "guardband calibrate --group COL."
        )
    return {column.name: column.kind for column in rule.grouping.columns}


def _weights_of_rule(rule: BandCalibrator) -> str | None:
    """Return the column that holds the weights of new rows, None if they need none; refuse weights from Python."""
    if rule.weighting is None or "weight" not in rule.calibration_.rule.uses_of_new:
        return None
    if rule.weighting.column is None:
        raise ValueError(
            "The rule was given the weights of its rows in Python, and no column of a table holds them. Make a rule "
            "with guardband calibrate --weights COL."
        )
    return rule.weighting.column


def _weights_of_model(model: TableModel) -> str | None:
    """Return the column that holds the weights of new rows, None if they need none or Python says them."""
    calibrated, weighting = model.fitted_.calibrated, model.fitted_.weighting
    if weighting is None or calibrated is None or "weight" not in calibrated.rule.uses_of_new:
        return None
    return weighting.column


def load_for_tables(path: AnyPath, device: str = "auto") -> Model:
    """Return the model or the rule in a file; what needs code that only Python can bring is refused."""
    from guardband.doors.file_format import read
    from guardband.doors.model_file import load_to_predict
    from guardband.exceptions import ModelFileError

    try:
        return load_to_predict(path, device)
    except ModelFileError:
        kind = read(path)[0]["kind"]  # which raises the same error if it lies in the file itself
        if kind in PYTHON_ONLY:
            raise ValueError(PYTHON_ONLY[kind].format(path=path)) from None
        raise


def calibrate_again(model: Model, X: Any, y: Any, entities: Any, split_by: Sequence[str]) -> Model:
    """Return a model or a rule, calibrated on other rows."""
    from guardband.doors.bands import BandCalibrator

    if isinstance(model, BandCalibrator):
        model.fit_table(X, y, model.columns, entities=entities, split_by=split_by, groups=model.grouping)
        return model
    from guardband.doors.table import IntervalRegressor

    return IntervalRegressor.restored(model).calibrate(X, y, entities=entities)
