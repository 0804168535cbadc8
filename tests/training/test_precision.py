import sys

import pytest
import torch

from guardband.training import precision
from guardband.training.precision import has_fast_bf16

CPU = torch.device("cpu")


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_without_torchs_private_question_linux_answers_the_same(monkeypatch):
    expected = has_fast_bf16(CPU)
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported", raising=False)
    assert has_fast_bf16(CPU) == expected


@pytest.mark.parametrize(("flags", "expected"), [("flags : avx512f avx512_bf16 sse", True), ("flags : avx512f", False)])
def test_linux_is_asked_for_the_flag(monkeypatch, tmp_path, flags, expected):
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported", raising=False)
    monkeypatch.setattr(precision, "CPU_FLAGS", tmp_path / "cpuinfo")
    assert not has_fast_bf16(CPU)
    (tmp_path / "cpuinfo").write_text(flags)
    assert has_fast_bf16(CPU) is expected


def test_other_devices_have_none():
    assert not has_fast_bf16(torch.device("meta"))
