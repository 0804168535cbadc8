"""Which members of a fleet form a squad: equal numbers of rows, and no more members than cache and memory hold."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
from torch import nn

from guardband.training.squad import Squad
from guardband.training.task import Task

Ids = tuple[int, ...]

CACHE_BYTES = 2**20
"""A squad's widest layer on the CPU is to stay near a core's own cache."""
CORES = os.cpu_count() or 1
TRIED = 16
"""Members whose memory is measured together: it is counted in blocks, and libraries take some once for all."""
MEMORY_SHARE = 0.8
"""Of a GPU's free memory, for a squad."""


def plan(task: Task) -> list[Ids]:
    """Return the squads. They depend on shapes and on the machine, never on the number of threads in use."""
    if task.loader is not None:
        return [tuple(range(task.size))]
    kinds: dict[int, list[int]] = {}
    for i, draw in enumerate(task.draws):
        kinds.setdefault(len(draw.index), []).append(i)
    return [squad for same in kinds.values() for squad in _cut(task, same, _most(task, same))]


def _cut(task: Task, members: Sequence[int], most: int) -> list[Ids]:
    """Return the members in squads of at most ``most``: whole groups that share their rows, or parts of one."""
    groups: list[list[int]] = []
    for i in members:
        if groups and task.draws[groups[-1][0]] is task.draws[i]:
            groups[-1].append(i)
        else:
            groups.append([i])
    squads: list[list[int]] = []
    last = 0
    for group in groups:
        pieces = max(-(-len(group) // most), _fewest(task, group, len(groups)))
        for piece in range(pieces):
            part = group[piece * len(group) // pieces : (piece + 1) * len(group) // pieces]
            if pieces == 1 and len(part) == last and len(squads[-1]) + len(part) <= most:
                squads[-1] += part
            else:
                squads.append(part)
            last = len(part) if pieces == 1 else 0
    return [tuple(squad) for squad in squads]


def _fewest(task: Task, group: Sequence[int], groups: int) -> int:
    """Return how many squads a group should be at least for all cores to have work, of two members if they are many."""
    if task.device.type == "cuda" or not task.in_threads or groups >= CORES:
        return 1
    return max(1, min(CORES // groups, max(2, len(group) // 2), len(group)))


def _most(task: Task, members: Sequence[int]) -> int:
    """Return how many members a squad may have: by cache on the CPU, by a member's measured memory on a GPU."""
    if task.device.type == "cuda":
        free = torch.cuda.mem_get_info(task.device)[0]
        return max(1, int(MEMORY_SHARE * free / _member_bytes(task, members[:TRIED])))
    if task.engine == "stack" and task.in_threads and not task.small:
        return -(-len(members) // CORES)
    if task.engine != "dense":
        return len(members)
    linear = (module for module in task.networks[members[0]].modules() if isinstance(module, nn.Linear))
    return max(1, CACHE_BYTES // (4 * max(module.out_features for module in linear) * task.batch_size))


def _member_bytes(task: Task, members: Sequence[int]) -> int:
    """Return the device memory that a member takes: measured on a step of some, a kept copy added."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved(task.device)
    try:
        squad = Squad(task.take(members))
        with torch.random.fork_rng(devices=[task.device]):
            squad.try_gradients()
    except torch.OutOfMemoryError:
        if len(members) > 1:
            return _member_bytes(task, members[: len(members) // 2])
        raise
    torch.cuda.synchronize(task.device)
    taken = torch.cuda.memory_reserved(task.device) - before
    return (taken + sum(p.nbytes for p in squad.members.parameters())) // len(members) + 1
