"""Which members of a fleet form a squad: equal numbers of rows, and no more members than cache and memory hold."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
from torch import nn

from guardband.training.job import Job
from guardband.training.squad import Squad

Ids = tuple[int, ...]

CACHE_BYTES = 2**20
"""A squad's widest layer on the CPU is to stay near a core's own cache."""
CORES = os.cpu_count() or 1
TRIED = 16
"""Members whose memory is measured together: it is counted in blocks, and libraries take some once for all."""
MEMORY_SHARE = 0.8
"""Of a GPU's free memory, for a squad."""


def divided(job: Job) -> list[Ids]:
    """Return the squads. They depend on shapes and on the machine, never on the number of threads in use."""
    if job.loader is not None or job.squads == "one":
        return [tuple(range(job.size))]
    kinds: dict[int, list[int]] = {}
    for i, draw in enumerate(job.draws):
        kinds.setdefault(len(draw.index), []).append(i)
    return [squad for same in kinds.values() for squad in _cut(job, same, _most(job, same))]


def _cut(job: Job, members: Sequence[int], most: int) -> list[Ids]:
    """Return the members in squads of at most ``most``: whole groups that share their rows, or parts of one."""
    groups: list[list[int]] = []
    for i in members:
        if groups and job.draws[groups[-1][0]] is job.draws[i]:
            groups[-1].append(i)
        else:
            groups.append([i])
    squads: list[list[int]] = []
    last = 0
    for group in groups:
        pieces = max(-(-len(group) // most), _fewest(job, group, len(groups)))
        for piece in range(pieces):
            part = group[piece * len(group) // pieces : (piece + 1) * len(group) // pieces]
            if pieces == 1 and len(part) == last and len(squads[-1]) + len(part) <= most:
                squads[-1] += part
            else:
                squads.append(part)
            last = len(part) if pieces == 1 else 0
    return [tuple(squad) for squad in squads]


def _fewest(job: Job, group: Sequence[int], groups: int) -> int:
    """Return how many squads a group should be at least for all cores to have work, of two members if they are many."""
    if job.device.type == "cuda" or not job.in_threads or groups >= CORES:
        return 1
    return max(1, min(CORES // groups, max(2, len(group) // 2), len(group)))


def _most(job: Job, members: Sequence[int]) -> int:
    """Return how many members a squad may have: by cache on the CPU, by a member's measured memory on a GPU."""
    if job.device.type == "cuda":
        free = torch.cuda.mem_get_info(job.device)[0]
        return max(1, int(MEMORY_SHARE * free / _member_bytes(job, members[:TRIED])))
    if job.engine in ("tabular", "stack") and job.in_threads and not job.small:
        return -(-len(members) // CORES)
    if job.engine != "dense":
        return len(members)
    linear = (module for module in job.networks[members[0]].modules() if isinstance(module, nn.Linear))
    return max(1, CACHE_BYTES // (4 * max(module.out_features for module in linear) * job.recipe.batch_size))


def _member_bytes(job: Job, members: Sequence[int]) -> int:
    """Return the device memory that a member takes: measured on a step of some, a kept copy added."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved(job.device)
    try:
        squad = Squad(job.take(members))
        with torch.random.fork_rng(devices=[job.device]):
            squad.try_gradients()
    except torch.OutOfMemoryError:
        if len(members) > 1:
            return _member_bytes(job, members[: len(members) // 2])
        raise
    torch.cuda.synchronize(job.device)
    taken = torch.cuda.memory_reserved(job.device) - before
    return (taken + sum(p.nbytes for p in squad.members.parameters())) // len(members) + 1
