"""A step as one CUDA graph: captured once for each shape of batch, then launched as a whole."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from guardband.exceptions import SlowTrainingWarning, warn

Shapes = tuple[torch.Size, ...]

WARM_UP = 3
CAPTURE_BYTES = 2**26
"""What a capture takes beyond the memory of its step: workspaces of libraries and the graph itself."""


class GraphedStep:
    """Runs a step of tensors: the first few of each shape as they are, the later ones as a captured graph.

    The early steps train like all others; they let libraries allocate what they allocate once. A step that
    cannot be captured, because it waits for the device or copies to the host, goes on as it is.
    """

    def __init__(self, step: Callable[..., None]) -> None:
        self._step = step
        self._seen: dict[Shapes, int] = {}
        self._graphs: dict[Shapes, tuple[torch.cuda.CUDAGraph, list[Tensor]]] = {}
        self._pool: Any = None
        self._possible = True
        self._step_bytes = 0

    def __call__(self, *inputs: Tensor) -> None:
        """Run the step."""
        shapes = tuple(t.shape for t in inputs)
        if shapes not in self._graphs and self._possible:
            seen = self._seen.get(shapes, 0)
            self._seen[shapes] = seen + 1
            if seen == WARM_UP - 1:
                return self._measured(inputs)
            if seen >= WARM_UP:
                self._capture(shapes, inputs)
        if shapes not in self._graphs:
            return self._step(*inputs)
        graph, static = self._graphs[shapes]
        for own, given in zip(static, inputs, strict=True):
            own.copy_(given, non_blocking=True)
        graph.replay()
        return None

    def _measured(self, inputs: tuple[Tensor, ...]) -> None:
        """Run the step as it is and note the memory that it takes."""
        torch.cuda.empty_cache()
        before = torch.cuda.memory_reserved()
        self._step(*inputs)
        self._step_bytes = max(self._step_bytes, torch.cuda.memory_reserved() - before)

    def _capture(self, shapes: Shapes, inputs: tuple[Tensor, ...]) -> None:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        needed = CAPTURE_BYTES + (self._step_bytes if self._pool is None else 0)  # later ones share the first one's
        if torch.cuda.mem_get_info()[0] < needed:
            # A capture that runs out of memory on its way does not give back what it took.
            return self._give_up("it would need more memory than there is")
        static, graph = [t.clone() for t in inputs], torch.cuda.CUDAGraph()
        collects, stream = gc.isenabled(), torch.cuda.current_stream()
        gc.disable()  # to free another graph meanwhile would end the capture
        try:
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                self._step(*static)
        except RuntimeError as error:
            torch.cuda.set_stream(stream)  # a capture that fails leaves its own behind
            torch.cuda.synchronize()
            cause = error.__context__ or error  # to end the capture then fails as well
            if isinstance(cause, RuntimeError) and out_of_memory(cause):
                raise cause from None
            self._give_up(str(cause).strip().split("\n")[0])
        else:
            self._pool = graph.pool()
            self._graphs[shapes] = (graph, static)
        finally:
            if collects:
                gc.enable()
        return None

    def _give_up(self, reason: str) -> None:
        self._possible = False
        warn(f"A training step is not captured as a CUDA graph and runs piece by piece: {reason}", SlowTrainingWarning)


def out_of_memory(error: RuntimeError) -> bool:
    """Whether an error says that memory ran out: torch has a class for it, but the driver and the CPU do not."""
    said = str(error)
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in said or "can't allocate memory" in said
