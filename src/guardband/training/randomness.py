"""What is random in training depends on a member's seed, the epoch and the step, never on its company.

Dropout modules are taken over: they draw from a key of the member and the step. What a network's own code draws, as
``torch.nn.functional.dropout`` does, cannot be: there torch's generators are seeded before each member runs.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from guardband.nn.keyed import Keyed, mixed
from guardband.training.batches import generator_states, generators_kept, generators_lock
from guardband.training.inputs import Inputs, call

DROPOUTS = {nn.Dropout: None, nn.Dropout1d: 2, nn.Dropout2d: 0, nn.Dropout3d: 4}
"""Modules that are taken over; for those that drop whole channels the axes of an input without an axis of rows."""
TRIED = 3
"""Threads of the caller's may draw meanwhile, and it must not look as if a network did."""
STEPS = np.uint64(0x9E3779B97F4A7C15)


class KeyedDropout(nn.Dropout, Keyed):
    """Any of torch's dropout modules, drawing from a key; the rate in 65536ths."""

    unbatched: int | None
    """None to drop single numbers; for channels see ``DROPOUTS``."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x, in training with some numbers or channels at zero and the others enlarged."""
        if not self.training:
            return x
        shape, kept = x.shape, min(65535, round(65536 * (1 - self.p)))
        if self.unbatched is not None:
            stacked = 0 if self.key is None else self.key.ndim
            axes = stacked + (1 if x.ndim - stacked == self.unbatched else 2)
            shape = torch.Size([*x.shape[:axes], *[1] * (x.ndim - axes)])
        keep = self.random_numbers(shape, torch.int16, x.device) < kept - 32768
        factor = keep.to(x.dtype) * (65536 / max(1, kept))
        return x.mul_(factor) if self.inplace else x * factor


def take_over(network: nn.Module, keys: Tensor) -> dict[str, Keyed]:
    """Let the dropout modules of a network draw from these keys, and return them by name. They are changed in place."""
    keyed: dict[str, Keyed] = {}
    for name, module in network.named_modules():
        if type(module) in DROPOUTS and module.p > 0:
            unbatched = DROPOUTS[type(module)]
            module.__class__ = KeyedDropout  # whoever holds the module, and its hooks, go on as before
            module.unbatched = unbatched
        if isinstance(module, Keyed):
            module.keep_keys(keys.view_as(keys), len(keyed))  # one tensor in two places would count as tied weights
            keyed[name] = module
    return keyed


def step_keys(seeds: Sequence[int], epoch: int, steps: range) -> Tensor:
    """Return the keys of some steps of an epoch, ``(S, M)``, for members with these seeds."""
    members = mixed(np.array([seed % 2**64 for seed in seeds], dtype=np.uint64) * STEPS + np.uint64(epoch))
    numbers = np.arange(steps.start + 1, steps.stop + 1, dtype=np.uint64)[:, None]
    return torch.from_numpy(mixed(members + STEPS * numbers).view(np.int64))


def needs_seeds(network: nn.Module, example: Inputs, device: torch.device) -> bool:
    """Whether a step of a network draws from torch's generators even if its dropout modules are taken over.

    Or whether it runs them again in the backward pass, as activation checkpoints do: they would draw anew. What
    cannot be tried on a batch ``(n, ...)`` counts as random.
    """
    return all(_draws(network, example, device) for _ in range(TRIED))


def _draws(network: nn.Module, example: Inputs, device: torch.device) -> bool:
    tried = copy.deepcopy(network).train()
    keyed = take_over(tried, torch.zeros((), dtype=torch.int64, device=device)).values()
    with generators_lock, generators_kept(device), torch.enable_grad():
        before = generator_states(device)
        try:
            outputs = call(tried, example)
            calls = [module.calls for module in keyed]
            if outputs.requires_grad:
                outputs.sum().backward()
        except Exception:  # whatever a user's code raises: training will show it
            return True
        drew = any(not a.equal(b) for a, b in zip(before, generator_states(device), strict=True))
        return drew or calls != [module.calls for module in keyed]
