"""A fleet: many networks trained as few squads, as many members at a time as cache and memory hold."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from guardband.training.batches import HeldOut
from guardband.training.deadline import Deadline
from guardband.training.division import Ids, divided
from guardband.training.graph import out_of_memory
from guardband.training.job import Job, taken
from guardband.training.members import State
from guardband.training.precision import matmul_precision
from guardband.training.shared import Stream
from guardband.training.squad import Squad, SquadState
from guardband.training.threads import allowed_threads, one_thread_each

HOST = torch.device("cpu")
Saved = list[dict[str, Any]]


@dataclass(frozen=True)
class _Record:
    """Members as they were after an epoch."""

    ids: Ids
    epoch: int
    state: SquadState


class Fleet:
    """Members that train side by side; what happens to one does not depend on the others but for rounding.

    On the CPU squads of fully connected networks run on threads of their own, one thread each: no operation
    waits for another thread, so that a busy machine slows them in proportion and no more. On a GPU squads
    that do not fit side by side take turns and wait on the host; a squad that does not fit alone is halved.
    """

    def __init__(self, job: Job, saved: Saved | None = None, saved_epoch: int = 0) -> None:
        """``saved`` is the state of a fleet like this after ``saved_epoch`` epochs."""
        self.size = job.size
        self._job = job
        parts = saved or []
        self._squad_ids: list[Ids] = [tuple(part["ids"]) for part in parts if "adam" in part] if parts else divided(job)
        self._gone: list[tuple[Ids, State]] = [
            (tuple(part["ids"]), _to(part["members"], job.device)) for part in parts if "adam" not in part
        ]
        self._records = [
            _Record(tuple(part["ids"]), saved_epoch, SquadState(**{k: v for k, v in part.items() if k != "ids"}))
            for part in parts
            if "adam" in part
        ]
        self._squads: dict[Ids, Squad] = {}
        self._epoch = saved_epoch
        self._can_wait = job.device.type == "cuda"
        self._take_turns = False
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._pool: ThreadPoolExecutor | None = None
        self._side_by_side = 1

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self._job.deadline.is_over

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Hold the threads and the precision that training needs; give them back afterwards."""
        with ExitStack() as held:
            held.enter_context(matmul_precision(self._job.recipe.precision, self._job.device))
            threads = min(allowed_threads(), len(self._squad_ids)) if self._job.in_threads else 1
            in_threads = self._job.engine in ("tabular", "stack") and threads > 1 and self._job.device.type == "cpu"
            if self._job.small or in_threads:
                held.enter_context(one_thread_each())
                if threads > 1:
                    self._pool = held.enter_context(ThreadPoolExecutor(threads, "guardband"))
                    self._side_by_side = threads
            try:
                yield
            except BaseException:
                self._stop.set()
                raise
            finally:
                self._pool, self._side_by_side = None, 1

    def epoch(self, epoch: int) -> None:
        """Train every member for one pass over its rows."""
        self._epoch = epoch
        self._each(lambda ids: self._train(ids, epoch))

    def losses(self, held_out: HeldOut | Stream) -> Tensor:
        """Return each member's mean loss on its own held-out rows, or on a loader's, ``(M,)`` on the CPU.

        Members that have been dismissed have none: their loss is infinite.
        """
        out = torch.full((self.size,), torch.inf)
        own = {ids: taken(held_out, ids) for ids in self._squad_ids}
        parts = self._each(lambda ids: (self._squads.get(ids) or self._revived(ids)).losses(own[ids]))
        for ids, losses in zip(self._squad_ids, parts, strict=True):
            out[list(ids)] = losses
        return out

    def snapshot(self) -> State:
        """Return a copy of all parameters and buffers, ``(M, ...)`` each."""
        if (
            self._squad_ids
            and self._squads.keys() == set(self._squad_ids)
            and len(self._squad_ids) + len(self._gone) == 1
        ):
            return self._squads[self._squad_ids[0]].snapshot()  # by positions it would wait for the device
        out: State = {}
        for ids, state in [(ids, self._state(ids).kept()) for ids in self._squad_ids] + self._gone:
            for name, t in state.items():
                whole = out.setdefault(name, t.new_empty((self.size, *t.shape[1:]), device=self._job.device))
                whole[list(ids)] = t.to(whole.device)
        return out

    def state(self) -> Saved:
        """Return all that a fleet like this needs to go on from here, on the host."""
        squads = [{"ids": list(ids), **vars(self._state(ids).to(HOST))} for ids in self._squad_ids]
        return squads + [{"ids": list(ids), "members": _to(state, HOST)} for ids, state in self._gone]

    def dismiss(self, finished: Tensor) -> None:
        """Train no further members that are finished, ``(M,)``, where that makes a squad half as large."""
        for ids in list(self._squad_ids):
            left = tuple(i for i in ids if not finished[i])
            if 2 * len(left) > len(ids):
                continue
            state, at = self._state(ids), self._squad_ids.index(ids)
            gone = [i for i in ids if i not in left]
            self._gone.append((tuple(gone), _to(state.take([ids.index(i) for i in gone]).kept(), self._job.device)))
            self._squads.pop(ids, None)
            self._squad_ids[at : at + 1] = [left] if left else []
            if left:
                self._records.append(_Record(left, self._epoch, state.take([ids.index(i) for i in left])))

    def _each(self, work: Callable[[Ids], Any]) -> list[Any]:
        if self._pool is None:
            return [work(ids) for ids in list(self._squad_ids)]
        return list(self._pool.map(work, list(self._squad_ids)))

    def _train(self, ids: Ids, epoch: int) -> None:
        try:
            if ids not in self._squads:
                self._squads[ids] = self._caught_up(ids, epoch)
            self._squads[ids].epoch(epoch, self._stop, self._turn(ids))
        except RuntimeError as error:
            others = [other for other in self._squads if other != ids] if self._can_wait else []
            no_smaller = len(ids) == 1 or self._job.loader is not None  # a loader gives its batches once
            if not out_of_memory(error) or (no_smaller and not others):
                raise
        else:
            if self._take_turns:
                self._park(ids, epoch)
            return
        self._make_room(ids, others, epoch)

    def _turn(self, ids: Ids) -> Deadline:
        """Return when a squad's epoch must end: squads that wait for this one get as much of the time that is left."""
        still = len(self._squad_ids) - self._squad_ids.index(ids)
        return self._job.deadline.share(1 / -(-still // self._side_by_side))

    def _make_room(self, ids: Ids, others: list[Ids], epoch: int) -> None:
        """Try again without the other squads on the device, or if there are none, with half of the members."""
        self._squads.pop(ids, None)
        if others:
            for other in others:
                self._park(other, epoch if self._squad_ids.index(other) < self._squad_ids.index(ids) else epoch - 1)
            self._take_turns = True
        self._free()
        if others:
            self._train(ids, epoch)
            return
        halves = ids[: len(ids) // 2], ids[len(ids) // 2 :]
        with self._lock:
            at = self._squad_ids.index(ids)
            self._squad_ids[at : at + 1] = halves
        for half in halves:
            self._train(half, epoch)

    def _park(self, ids: Ids, epoch: int) -> None:
        """Let a squad wait on the host until its next turn."""
        squad = self._squads.pop(ids)
        self._records = [record for record in self._records if record.ids != ids]
        self._records.append(_Record(ids, epoch, squad.state().to(HOST)))

    def _state(self, ids: Ids) -> SquadState:
        """Return a squad's state after the last epoch."""
        if ids in self._squads:
            return self._squads[ids].state()
        return next(record.state for record in self._records if record.ids == ids)

    def _revived(self, ids: Ids) -> Squad:
        squad = Squad(self._job.take(ids))
        squad.load(self._state(ids))
        return squad

    def _caught_up(self, ids: Ids, epoch: int) -> Squad:
        """Return a squad as it was before this epoch: from the latest record, or from the start, all epochs again."""
        squad, done = Squad(self._job.take(ids)), 0
        for record in sorted(self._records, key=lambda record: record.epoch):
            if set(ids) <= set(record.ids) and record.epoch < epoch:
                squad.load(record.state.take([record.ids.index(i) for i in ids]))
                done = record.epoch
        for past in range(done + 1, epoch):
            squad.epoch(past, self._stop)
        return squad

    def _free(self) -> None:
        gc.collect()
        if self._job.device.type == "cuda":
            torch.cuda.empty_cache()


def _to(state: State, device: torch.device) -> State:
    return {name: t.to(device) for name, t in state.items()}
