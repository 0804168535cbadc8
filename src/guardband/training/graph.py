"""A step as one CUDA graph: captured once for each shape of batch, then launched as a whole."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from guardband.exceptions import SlowTrainingWarning, warn

Step = Callable[..., None]
WARM_UP = 3


def out_of_memory(error: RuntimeError) -> bool:
    """Whether an error says that memory ran out: torch has a class for it, but the driver and the CPU do not."""
    said = str(error)
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in said or "can't allocate memory" in said


class GraphedStep:
    """Runs a step of tensors: the first few of each shape as they are, the later ones as a captured graph.

    The early steps train like all others; they let libraries allocate what they allocate once. A step that
    cannot be captured, because it waits for the device or copies to the host, goes on as it is.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._seen: dict[tuple[torch.Size, ...], int] = {}
        self._graphs: dict[tuple[torch.Size, ...], tuple[torch.cuda.CUDAGraph, list[Tensor]]] = {}
        self._pool: Any = None
        self._possible = True

    def __call__(self, *inputs: Tensor) -> None:
        """Run the step."""
        shape = tuple(t.shape for t in inputs)
        if self._possible and shape not in self._graphs and self._seen.get(shape, 0) >= WARM_UP:
            self._capture(shape, inputs)
        if shape in self._graphs:
            graph, static = self._graphs[shape]
            for own, given in zip(static, inputs, strict=True):
                own.copy_(given, non_blocking=True)
            graph.replay()
        else:
            self._seen[shape] = self._seen.get(shape, 0) + 1
            self._step(*inputs)

    def _capture(self, shape: tuple[torch.Size, ...], inputs: tuple[Tensor, ...]) -> None:
        static, graph = [t.clone() for t in inputs], torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        collects = gc.isenabled()
        gc.disable()  # to free another graph meanwhile would end the capture
        try:
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                self._step(*static)
        except RuntimeError as error:
            if out_of_memory(error):
                raise
            self._possible = False
            torch.cuda.synchronize()
            reason = str(error).strip().split("\n")[0]
            warn(
                f"A training step cannot be captured as a CUDA graph and runs piece by piece: {reason}",
                SlowTrainingWarning,
            )
            return
        finally:
            if collects:
                gc.enable()
        self._pool = graph.pool()
        self._graphs[shape] = (graph, static)
