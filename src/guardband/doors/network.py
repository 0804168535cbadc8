"""Door 2: your own network, calibrated."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from guardband.bands.certificate import Certificate
from guardband.bands.levels import Level, Levels
from guardband.calibration.calibrated import Calibrated
from guardband.calibration.conformal import Guarantee
from guardband.calibration.pav import Average, PavRule
from guardband.calibration.rule import OnInsufficient
from guardband.data.target import read_target
from guardband.doors.bands import refuse_crossing
from guardband.methods.method import Method, Wish
from guardband.methods.registry import method_named
from guardband.training.batches import pair


class GuardedNetwork(nn.Module):
    """A calibrated network: ``(n, ...) -> (n, 3)``, lower, point, upper; ``(n, 3, L)`` for several levels.

    The setting is a buffer and the certificate a part of the state, so that ``state_dict`` carries both.
    Arithmetic is in the network's own precision, rounded outward.
    """

    setting: Tensor

    def __init__(self, networks: Sequence[nn.Module], calibrated: Calibrated) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.certificate = calibrated.certificate
        self._rule = calibrated.rule
        self.register_buffer("setting", torch.from_numpy(calibrated.setting).to(_device(networks[0])))
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        """Return the calibrated bands."""
        bands = torch.stack([network(x) for network in self.networks])
        lower, point, upper = self._rule.ends(bands, self.setting, torch)
        out = torch.stack([lower, point[:, None].expand_as(lower), upper], dim=1)
        return out[:, :, 0] if self._rule.levels.scalar else out

    def train(self, mode: bool = True) -> GuardedNetwork:
        """Stay in eval mode: with dropout on, this would not be the network that was calibrated."""
        return super().train(False)

    def get_extra_state(self) -> Tensor:
        """Return the certificate as bytes, which every store of tensors can keep."""
        return torch.frombuffer(bytearray(json.dumps(self.certificate.to_dict()).encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        """Set the certificate from a state; one of another method, rule, grid size or level is refused."""
        loaded = Certificate.from_dict(json.loads(bytes(state.tolist())))
        for name in ("method", "confidence_level", "rule", "candidates"):
            if getattr(loaded, name) != getattr(self.certificate, name):
                raise ValueError(
                    f"A state must come from a network calibrated in the same way: {name} is "
                    f"{getattr(self.certificate, name)!r} here, found {getattr(loaded, name)!r}."
                )
        self.certificate = loaded


def calibrate(
    network: nn.Module | Sequence[nn.Module],
    loader: Iterable[Any],
    method: str | Method = "conf-nn",
    *,
    confidence_level: Level | Sequence[Level] | None = None,
    alpha: Level | Sequence[Level] | None = None,
    guarantee: Guarantee = "marginal",
    delta: float = 0.1,
    joint: bool = False,
    taus: Sequence[float] | None = None,
    rule: PavRule = "fixed-sequence",
    average: Average | None = None,
    on_insufficient: OnInsufficient = "inf",
) -> GuardedNetwork:
    """Return a calibrated copy of a network that puts out bands ``(n, 3)``, in eval mode.

    ``loader`` gives pairs ``(x, y)`` of rows that no training has seen; only one number per row is kept.
    pav takes a list of networks, one per entry of ``taus``; high-q and neg-ll one of candidates. neg-ll and bayes take
    bands mean - deviation, mean, mean + deviation. The copy keeps later training of the original from voiding the
    promise unseen.
    """
    wish = Wish(
        levels=Levels.of(confidence_level, alpha),
        guarantee=guarantee,
        delta=float(delta),
        joint=joint,
        taus=taus,
        rule=rule,
        average=average,
        on_insufficient=on_insufficient,
    )
    chosen = method_named(method)
    networks = [network] if isinstance(network, nn.Module) else list(network)
    chosen.check(wish)
    order = chosen.order(wish, len(networks))
    copies = [copy.deepcopy(networks[i]).eval().requires_grad_(False) for i in order]
    selected = chosen.rule(wish)
    statistics = [selected.statistic(bands, y) for bands, y in _held_out(copies, loader)]
    if not any(map(len, statistics)):
        raise ValueError("The loader must give at least one calibration row, found none.")
    return GuardedNetwork(copies, Calibrated.by(selected, selected.summarise(statistics)))


@torch.no_grad()
def _held_out(networks: Sequence[nn.Module], loader: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    """Give the bands ``(K, n, 3)`` and responses ``(n,)`` of each batch, in float64."""
    first_row = 0
    for item in loader:
        x, y = pair(item)
        outputs = [network(x.to(_device(network))) for network in networks]
        for out in outputs:
            found = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            if found != (len(y), 3):
                raise ValueError(
                    f"The network must put out (n, 3) = lower, point, upper for n = {len(y)} rows, found {found}: "
                    "end it with gb.nn.TripleHead."
                )
        bands = torch.stack(outputs).double().cpu().numpy()
        refuse_crossing(bands, first_row)
        yield bands, read_target(y, len(y), first_row)
        first_row += len(y)


def _device(network: nn.Module) -> torch.device:
    parameter = next(network.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device
