"""Squads in processes of their own: threads of one process wait for each other between the operations of a step."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
import torch

from guardband.training.division import Ids, divided
from guardband.training.job import Job, Trained
from guardband.training.threads import allowed_threads

MULTI_THREADED = r"This process .* is multi-threaded"
"""Python 3.12 warns of forks beside threads. The processes here compute on one thread and never meet the others."""
Message = tuple[str, Any]
"""A kind, "epoch", "trained" or "failed", and what belongs to it."""


def processes_for(job: Job) -> int:
    """Return how many processes may train the squads of a job, 1 if this process must do it.

    A forked process starts in milliseconds and shares all rows. On other systems than Linux it would load torch again,
    which takes longer than most tables train. From a thread beside others, a fork could copy a lock that is held.
    """
    forks = (
        job.squads == "processes"
        and sys.platform == "linux"
        and job.device.type == "cpu"
        and job.engine in ("tabular", "dense")
        and job.rows is not None
        and job.after_epoch is None
        and job.together is None
        and not job.checkpoint.wanted
        and threading.current_thread() is threading.main_thread()
        and not multiprocessing.current_process().daemon
    )
    return min(allowed_threads(), len(divided(job))) if forks else 1


def train_in_processes(job: Job, processes: int) -> Trained:
    """Return the trained members, to the bit as they would be in this process.

    Members of different squads share nothing, so that each squad may run through all of its epochs by itself. A squad
    whose process died, or could not be started, is trained here.
    """
    squads, trained = divided(job), {}
    reached = [0] * len(squads)
    for i, (kind, what) in _messages(job, squads, processes):
        if kind == "failed":
            raise what
        if kind == "trained":
            trained[i] = what
        else:
            phase, reached[i], epochs = what
            job.progress(phase, min(reached[j] for j in range(len(squads)) if j not in trained), epochs)
    for i in range(len(squads)):
        if i not in trained:
            trained[i] = _arrays(_alone(job, squads, i).train())
    return _joined(job.size, squads, [trained[i] for i in range(len(squads))])


def _alone(job: Job, squads: Sequence[Ids], i: int, processes: int = 1) -> Job:
    """Return the job of one squad; squads that wait for this one get as much of the time that is left."""
    waiting = -(-(len(squads) - i) // processes)
    return replace(job.take(squads[i]), squads="one", deadline=job.deadline.share(1 / waiting))


def _arrays(trained: Trained) -> Trained:
    """Return the same with arrays in place of tensors, which a pipe carries by value."""
    state: dict[str, Any] = {name: t.numpy() for name, t in trained.state.items()}
    return replace(trained, state=state)


def _joined(size: int, squads: Sequence[Ids], parts: Sequence[Trained]) -> Trained:
    """Return the members of all squads in their places."""
    first = parts[0].state
    state = {name: np.empty((size, *array.shape[1:]), array.dtype) for name, array in first.items()}
    epochs, losses = [0] * size, [0.0] * size
    for ids, part in zip(squads, parts, strict=True):
        for name, array in part.state.items():
            state[name][list(ids)] = array
        for place, i in enumerate(ids):
            epochs[i], losses[i] = part.epochs[place], part.losses[place]
    return Trained({name: torch.from_numpy(own) for name, own in state.items()}, tuple(epochs), tuple(losses))


def _messages(job: Job, squads: Sequence[Ids], processes: int) -> Iterator[tuple[int, Message]]:
    """Yield what the processes say of each squad until all have ended, however they ended.

    Each begins with a squad, and is given the next one when that is trained. They share nothing that one of them could
    hold when it dies.
    """
    following = iter(range(processes, len(squads)))
    with _started(job, squads, processes) as open_pipes:
        while open_pipes:
            ready: list[Any] = wait(open_pipes)
            for pipe in ready:
                try:
                    i, message = pipe.recv()
                except (EOFError, OSError):  # it has ended, perhaps in the middle of a message
                    open_pipes.remove(pipe)
                    continue
                if message[0] == "trained":
                    with suppress(OSError):
                        pipe.send(next(following, None))
                yield i, message


@contextmanager
def _started(job: Job, squads: Sequence[Ids], processes: int) -> Iterator[list[Connection]]:
    """Start the processes and give this end of each one's pipe; none is left behind."""
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe() for _ in range(processes)]
    every = [
        context.Process(target=_work, args=(job, squads, processes, pipes, k), daemon=True) for k in range(processes)
    ]
    try:
        for process in every:
            with suppress(OSError), warnings.catch_warnings():  # too little memory, or too many processes
                warnings.filterwarnings("ignore", MULTI_THREADED, DeprecationWarning)
                process.start()
        for _, there in pipes:
            there.close()
        yield [here for here, _ in pipes]
    finally:
        for process in every:
            if process.pid is not None:
                process.kill()
                process.join()
        for pipe in (end for pair in pipes for end in pair):
            pipe.close()


def _work(job: Job, squads: Sequence[Ids], processes: int, pipes: list[Any], k: int) -> None:
    """Train squad ``k``, then one squad after another as they are given, and tell of each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process decides
    threading.Thread(target=_end_with_first_process, daemon=True).start()
    for own, (_, there) in enumerate(pipes):
        if own != k:
            there.close()  # or nobody would notice that the other process has died
    pipe, i = pipes[k][1], k
    while i is not None:
        progress = lambda *done, i=i: pipe.send((i, ("epoch", done)))  # noqa: E731
        try:
            trained = _arrays(replace(_alone(job, squads, i, processes), progress=progress).train())
        except Exception as error:
            pipe.send((i, ("failed", _told(error))))
            return
        pipe.send((i, ("trained", trained)))
        i = pipe.recv()


def _end_with_first_process() -> None:
    """End this process as soon as the first one has died, also in the middle of a long epoch."""
    first = multiprocessing.parent_process()
    assert first is not None
    first.join()
    os._exit(1)


def _told(error: Exception) -> Exception:
    """Return an error as it can be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
