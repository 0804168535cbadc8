"""Rows that do not fit on the device stay on the host; batches are gathered and sent ahead of their steps."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from guardband.training.batches import Batch, Draw, Rows, orders, steps_of
from guardband.training.inputs import map_tensors, tensors_in

AHEAD = 3
"""Loads that wait for their steps; one more is in use, and one is being gathered."""
LOAD_STEPS, LOAD_BYTES = 16, 2**26
"""Steps whose batches are gathered and sent as one load, and its size: threads and copies cost more than few rows."""

Sent = tuple[list[int], tuple[Tensor, ...], torch.cuda.Event | None]
"""A load: the sizes of its batches, its tensors, and the event of their arrival."""


@dataclass(frozen=True)
class StreamedBatches:
    """Rows on the host. A thread gathers each step's rows and sends them while the device works on earlier ones."""

    rows: Rows
    draws: Sequence[Draw]
    size: int
    batch_size: int
    device: torch.device

    def pieces(self, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """Yield the inputs, responses and perhaps weights of each step, on the device."""
        order = orders(self.draws, epoch)
        sent: queue.Queue[Sent | BaseException | None] = queue.Queue(AHEAD)
        stop = threading.Event()
        sender = threading.Thread(target=self._send, args=(order, sent, stop), daemon=True)
        sender.start()
        try:
            while (item := sent.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                sizes, tensors, event = item
                parts = (torch.split(t, sizes, dim=1) for t in _arrived(tensors, event))
                yield from zip(*parts, strict=True)
        finally:
            stop.set()
            while sender.is_alive():
                while not sent.empty():
                    sent.get_nowait()
                sender.join(0.01)

    def batch(self, *pieces: Tensor) -> Batch:
        """Return the pieces as a batch."""
        rest = iter(pieces)
        return Batch(map_tensors(self.rows.x, lambda _: next(rest)), *rest)

    def steps(self) -> int:
        """Return the number of steps in an epoch."""
        return steps_of(self.draws, self.batch_size)

    def _send(self, order: Tensor, sent: queue.Queue[Sent | BaseException | None], stop: threading.Event) -> None:
        try:
            road = _Road(self.device)
            parts = torch.tensor_split(order, self.steps(), dim=1)
            step_bytes = parts[0].numel() * sum(t[0].nbytes for t in self.rows.inputs)
            steps = max(1, min(LOAD_STEPS, LOAD_BYTES // max(1, step_bytes)))
            for first in range(0, len(parts), steps):
                if stop.is_set():
                    return
                load = parts[first : first + steps]
                sizes = [part.shape[1] for part in load]
                sent.put((sizes, *road.send(self.rows, torch.cat(load, dim=1), self.size)))
            sent.put(None)
        except BaseException as error:  # raised where the batches are used
            sent.put(error)


class _Road:
    """Sends batches to the device by a stream of its own, through pinned memory that is used again in turn."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._slots: list[tuple[list[Tensor], torch.cuda.Event]] = []
        self._turn = 0

    def send(self, rows: Rows, index: Tensor, size: int) -> tuple[tuple[Tensor, ...], torch.cuda.Event | None]:
        """Return the tensors of a batch on their way."""
        if self._stream is None:
            return _tensors(rows.at(index, size)), None
        n = index.numel()
        if len(self._slots) < AHEAD:
            room = [torch.empty((n, *t.shape[1:]), dtype=t.dtype, pin_memory=True) for t in rows.inputs]
            self._slots.append((room, _event()))  # no later load is larger
        room, left = self._slots[self._turn % AHEAD]
        self._turn += 1
        left.synchronize()  # the copy that last left from this slot has been made
        tensors = _tensors(rows.at(index, size, [t[:n] for t in room]))
        with torch.cuda.stream(self._stream):
            moved = tuple(t.to(self._device, non_blocking=True) for t in tensors)
            left.record(self._stream)
            arrived = _event()
            arrived.record(self._stream)
        return moved, arrived


def _tensors(batch: Batch) -> tuple[Tensor, ...]:
    return tuple(t for t in (*tensors_in(batch.x), batch.y, batch.weight) if t is not None)


def _event() -> torch.cuda.Event:
    return torch.cuda.Event()  # type: ignore[no-untyped-call]


def _arrived(tensors: tuple[Tensor, ...], event: torch.cuda.Event | None) -> tuple[Tensor, ...]:
    """Return the tensors for use on the current stream, which waits until they have come."""
    if event is not None:
        current = torch.cuda.current_stream()
        current.wait_event(event)
        for t in tensors:
            t.record_stream(current)
    return tensors
