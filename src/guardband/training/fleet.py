"""A fleet: many networks trained as few squads, as many members at a time as cache and memory hold."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from guardband.training.batches import HeldOut
from guardband.training.graph import out_of_memory
from guardband.training.members import State
from guardband.training.squad import Squad
from guardband.training.task import Precision, Task
from guardband.training.threads import allowed_threads, one_thread_each

CACHE_BYTES = 2**20
"""A squad's widest layer on the CPU is to stay near a core's own cache."""
SMALL_STEP = 2**25
"""Multiplications in a step's forward pass below which a second thread costs more than it brings."""
MEMORY_SHARE = 0.8

Saved = list[dict[str, Any]]


class Fleet:
    """Members that train side by side; what happens to one does not depend on which others there are.

    On the CPU squads of fully connected networks run on threads of their own, one thread each: no operation
    waits for another thread, so that a busy machine slows them in proportion and no more. How members are
    divided depends on their shapes alone, never on the number of threads. Out of memory, a squad is halved.
    """

    def __init__(self, task: Task, saved: Saved | None = None, saved_epoch: int = 0) -> None:
        self.size = task.size
        self._task = task
        self._saved, self._saved_epoch = saved, saved_epoch
        self._plan = _plan(task) if saved is None else [tuple(part["ids"]) for part in saved if "adam" in part]
        self._gone = [(tuple(part["ids"]), part["members"]) for part in saved or [] if "adam" not in part]
        self._squads: dict[tuple[int, ...], Squad] = {}
        self._stop = threading.Event()
        self._pool: ThreadPoolExecutor | None = None

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Hold the threads and the precision that training needs; give them back afterwards."""
        with ExitStack() as held:
            held.enter_context(_matmul_precision(self._task.precision, self._task.device))
            if self._runs_on_one_thread():
                threads = min(allowed_threads(), len(self._plan)) if self._task.engine == "dense" else 1
                held.enter_context(one_thread_each())
                if threads > 1:
                    self._pool = held.enter_context(ThreadPoolExecutor(threads, "guardband"))
            try:
                yield
            except BaseException:
                self._stop.set()
                raise
            finally:
                self._pool = None

    def epoch(self, epoch: int) -> None:
        """Train every member for one pass over its rows."""
        self._each(lambda ids: self._run(ids, epoch))

    def losses(self, held_out: HeldOut) -> Tensor:
        """Return each member's mean loss on its own held-out rows, or on a loader's, ``(M,)`` on the CPU.

        Members that have been dismissed have none: their loss is infinite.
        """
        out = torch.full((self.size,), torch.inf)
        own = {ids: [held_out[i] for i in ids] if isinstance(held_out, tuple) else held_out for ids in self._plan}
        parts = self._each(lambda ids: self._squads[ids].losses(own[ids]))
        for ids, losses in zip(self._plan, parts, strict=True):
            out[list(ids)] = losses
        return out

    def snapshot(self) -> State:
        """Return a copy of all parameters and buffers, ``(M, ...)`` each."""
        parts = [(ids, self._squads[ids].members.snapshot()) for ids in self._plan] + self._gone
        if len(parts) == 1:  # by positions it would wait for the device
            return parts[0][1]
        out: State = {}
        for ids, state in parts:
            for name, t in state.items():
                out.setdefault(name, t.new_empty((self.size, *t.shape[1:])))[list(ids)] = t
        return out

    def state(self) -> Saved:
        """Return all that a fleet like this needs to go on from here."""
        squads = [{"ids": list(ids), **self._squads[ids].state()} for ids in self._plan]
        return squads + [{"ids": list(ids), "members": state} for ids, state in self._gone]

    def dismiss(self, finished: Tensor) -> None:
        """Train no further those of the members, ``(M,)``, that are finished, where that makes a squad half as large."""
        for ids in list(self._plan):
            left = tuple(i for i in ids if not finished[i])
            if 2 * len(left) > len(ids):
                continue
            squad, place = self._squads.pop(ids), self._plan.index(ids)
            state = squad.state()
            gone = [place for place, i in enumerate(ids) if i not in left]
            members = {name: t[gone] for name, t in state["members"].items()}
            self._gone.append((tuple(ids[place] for place in gone), members))
            self._plan[place : place + 1] = [left] if left else []
            if left:
                self._squads[left] = Squad(self._task.take(left))
                self._squads[left].load(state, [ids.index(i) for i in left])

    def _each(self, work: Callable[[tuple[int, ...]], Any]) -> list[Any]:
        if self._pool is None:
            return [work(ids) for ids in list(self._plan)]
        return list(self._pool.map(work, list(self._plan)))

    def _run(self, ids: tuple[int, ...], epoch: int) -> None:
        try:
            if ids not in self._squads:
                self._squads[ids] = self._caught_up(ids, epoch)
            self._squads[ids].epoch(epoch, self._stop)
        except RuntimeError as error:
            if not out_of_memory(error) or len(ids) == 1:
                raise
        else:
            return
        self._squads.pop(ids, None)
        gc.collect()
        if self._task.device.type == "cuda":
            torch.cuda.empty_cache()
        halves = ids[: len(ids) // 2], ids[len(ids) // 2 :]
        place = self._plan.index(ids)
        self._plan[place : place + 1] = halves
        for half in halves:
            self._run(half, epoch)

    def _caught_up(self, ids: tuple[int, ...], epoch: int) -> Squad:
        """Return a squad as it was before this epoch: from what was saved, or from the start, all epochs again."""
        squad, done = Squad(self._task.take(ids)), 0
        for part in self._saved or []:
            if set(ids) <= set(part["ids"]):
                squad.load(part, [part["ids"].index(i) for i in ids])
                done = self._saved_epoch
        for past in range(done + 1, epoch):
            squad.epoch(past, self._stop)
        return squad

    def _runs_on_one_thread(self) -> bool:
        task = self._task
        table = task.rows is not None and task.rows.x.ndim == 2
        return task.device.type == "cpu" and table and _numbers(task.networks[0]) * task.batch_size < SMALL_STEP


def _plan(task: Task) -> list[tuple[int, ...]]:
    """Return which members form a squad: equal numbers of rows, and no more than cache and memory hold."""
    if task.loader is not None:
        return [tuple(range(task.size))]
    kinds: dict[int, list[int]] = {}
    for i, draw in enumerate(task.draws):
        kinds.setdefault(len(draw.index), []).append(i)
    return [squad for same in kinds.values() for squad in _cut(task, same, _most(task, same))]


def _cut(task: Task, members: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """Return the members in squads of at most ``most``: whole groups that share their rows, or parts of one."""
    groups: list[list[int]] = []
    for i in members:
        if groups and task.draws[groups[-1][0]] is task.draws[i]:
            groups[-1].append(i)
        else:
            groups.append([i])
    squads: list[list[int]] = []
    for group in groups:
        pieces = -(-len(group) // most)
        for piece in range(pieces):
            part = group[piece * len(group) // pieces : (piece + 1) * len(group) // pieces]
            alike = squads and pieces == 1 and len(squads[-1]) % len(part) == 0 and len(squads[-1]) + len(part) <= most
            if alike:
                squads[-1] += part
            else:
                squads.append(part)
    return [tuple(squad) for squad in squads]


def _most(task: Task, members: Sequence[int]) -> int:
    """Return how many members a squad may have: by cache on the CPU, by a member's measured memory on a GPU."""
    network = task.networks[members[0]]
    if task.device.type == "cuda":
        return max(1, int(MEMORY_SHARE * torch.cuda.mem_get_info(task.device)[0] / _member_bytes(task, members[0])))
    if task.engine != "dense":
        return len(members)
    widest = max(module.out_features for module in network.modules() if isinstance(module, nn.Linear))
    return max(1, CACHE_BYTES // (4 * widest * task.batch_size))


def _member_bytes(task: Task, member: int) -> int:
    """Return the device memory that one member takes: measured on a step, moments and a kept copy added."""
    torch.cuda.synchronize(task.device)
    before = torch.cuda.memory_allocated(task.device)
    torch.cuda.reset_peak_memory_stats(task.device)
    squad = Squad(task.take([member]))
    with torch.random.fork_rng(devices=[task.device]):
        squad.try_gradients()
    torch.cuda.synchronize(task.device)
    peak = torch.cuda.max_memory_allocated(task.device) - before
    return peak + sum(p.nbytes for p in squad.members.parameters())


def _numbers(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


@contextmanager
def _matmul_precision(precision: Precision, device: torch.device) -> Iterator[None]:
    """Let products of 32-bit numbers use TF32, or not, whatever the caller's setting."""
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
