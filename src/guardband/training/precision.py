"""The precision of products: what a recipe may ask for, and what is fast where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch

Precision = Literal["float32", "tf32", "bf16"]
CPU_FLAGS = Path("/proc/cpuinfo")


def has_fast_bf16(device: torch.device) -> bool:
    """Whether products of 16-bit numbers are faster there than those of 32-bit ones."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and _cpu_has_bf16()


def _cpu_has_bf16() -> bool:
    asked = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    if asked is not None:
        return bool(asked())
    # The function is private. Without it Linux knows; elsewhere products stay at 32 bits.
    return CPU_FLAGS.exists() and "avx512_bf16" in CPU_FLAGS.read_text().split()


@contextmanager
def matmul_precision(precision: Precision, device: torch.device) -> Iterator[None]:
    """Let products of 32-bit numbers use TF32, or not, whatever the caller's setting."""
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]
