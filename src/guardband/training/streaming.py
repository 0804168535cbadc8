"""Rows that do not fit on the device stay on the host; batches are gathered and sent ahead of their steps."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from guardband.training.batches import Batch, Draw, Rows

AHEAD = 3
"""Batches on their way at a time: one in use, one that has come, one that is being gathered."""


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
        order = torch.stack([draw.order(epoch) for draw in self.draws])
        sent: queue.Queue[_Sent | BaseException | None] = queue.Queue(AHEAD)
        stop = threading.Event()
        sender = threading.Thread(target=self._send, args=(order, sent, stop), daemon=True)
        sender.start()
        try:
            while (item := sent.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item.arrived()
        finally:
            stop.set()
            while sender.is_alive():
                _drain(sent)
                sender.join(0.01)

    def batch(self, *pieces: Tensor) -> Batch:
        """Return the pieces as a batch."""
        return Batch(*pieces)

    def steps(self) -> int:
        """Return the number of steps in an epoch."""
        return -(-len(self.draws[0].index) // self.batch_size)

    def _send(self, order: Tensor, sent: queue.Queue[_Sent | BaseException | None], stop: threading.Event) -> None:
        try:
            stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
            for part in order.tensor_split(self.steps(), dim=1):
                if stop.is_set():
                    return
                batch = self.rows.at(part, self.size)
                sent.put(_Sent.to(self.device, [t for t in (batch.x, batch.y, batch.weight) if t is not None], stream))
            sent.put(None)
        except BaseException as error:  # raised where the batches are used
            sent.put(error)


@dataclass(frozen=True)
class _Sent:
    """Tensors on their way to the device, with the event that says they have come."""

    tensors: tuple[Tensor, ...]
    event: torch.cuda.Event | None

    @classmethod
    def to(cls, device: torch.device, tensors: Sequence[Tensor], stream: torch.cuda.Stream | None) -> _Sent:
        if stream is None:
            return cls(tuple(tensors), None)
        with torch.cuda.stream(stream):
            moved = tuple(t.pin_memory().to(device, non_blocking=True) for t in tensors)
            event = torch.cuda.Event()
            event.record(stream)
        return cls(moved, event)

    def arrived(self) -> tuple[Tensor, ...]:
        """Return the tensors, for use on the current stream."""
        if self.event is not None:
            current = torch.cuda.current_stream()
            current.wait_event(self.event)
            for t in self.tensors:
                t.record_stream(current)
        return self.tensors


def _drain(sent: queue.Queue[_Sent | BaseException | None]) -> None:
    try:
        while True:
            sent.get_nowait()
    except queue.Empty:
        return
