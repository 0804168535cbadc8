"""What a row gets does not depend on how many rows are predicted with it, nor on the number of threads."""

import numpy as np
import pytest
import torch

from guardband.learning.architecture import Architecture
from guardband.nn.heads import NestedTriples
from guardband.training import predict as module
from guardband.training.predict import BLOCK, LONGEST, predict, predict_parts, rows_at_a_time
from guardband.training.stack import stack

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def members():
    shape = Architecture((256, 256, 256), "silu", 0.0, "softplus", None, tabular=True, numbers=4)
    networks = [shape.build(4, NestedTriples.of([0.1]), seed, CPU) for seed in range(2)]
    return stack(networks, torch.zeros(2, 4))


@pytest.mark.parametrize("threads", [1, 2, 3, 6])
def test_a_block_alone_is_the_same_to_the_last_bit(members, threads):
    x = np.random.default_rng(0).standard_normal((2 * BLOCK + 7, 4)).astype(np.float32)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        whole = predict(members, x, CPU)
        for n in (1, 1000, BLOCK):
            np.testing.assert_array_equal(predict(members, x[:n], CPU), whole[:, :n])
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("n", [0, 1, BLOCK, 5 * BLOCK + 1])
def test_every_row_is_asked_for_once_and_comes_in_order(members, threads, n, monkeypatch):
    asked = []

    def rows(some):
        asked.extend(range(n)[some])
        return np.arange(n, dtype=np.float32)[some, None].repeat(4, 1)

    monkeypatch.setattr(module, "allowed_threads", lambda: threads)
    monkeypatch.setattr(module, "_outputs", lambda members, x, *others: x[None])
    parts = list(predict_parts(members, n, rows, CPU, lambda outputs: outputs[0, :, 0]))
    np.testing.assert_array_equal(np.concatenate([part for part, _ in parts]), np.arange(n))
    assert sorted(asked) == list(range(n))
    assert sum(count for _, count in parts) == n


def test_what_fails_on_a_thread_fails_here(members, monkeypatch):
    def rows(some):
        if some.start:
            raise ValueError("a cell is wrong")
        return np.zeros((BLOCK, 4), dtype=np.float32)

    monkeypatch.setattr(module, "allowed_threads", lambda: 3)
    with pytest.raises(ValueError, match="a cell is wrong"):
        list(predict_parts(members, 9 * BLOCK, rows, CPU, lambda outputs: outputs))


def test_few_parts_are_under_way_at_the_same_time(members, monkeypatch):
    begun = []

    def rows(some):
        begun.append(some.start)
        return np.zeros((len(range(n)[some]), 4), dtype=np.float32)

    n, threads = 100 * LONGEST, 2
    monkeypatch.setattr(module, "allowed_threads", lambda: threads)
    monkeypatch.setattr(module, "_outputs", lambda members, x, *others: x[None])
    parts = predict_parts(members, n, rows, CPU, lambda outputs: None)
    next(parts)
    assert len(begun) <= 2 * threads + 1
    parts.close()


def test_a_gpu_multiplies_more_rows_at_a_time_in_whole_blocks(members):
    gpu = torch.device("cuda", 0)
    assert rows_at_a_time(members, CPU) == BLOCK
    assert rows_at_a_time(members, gpu) == LONGEST
    for size in (1, 8, 24, 100, 1000):
        members.size, before = size, members.size
        rows = rows_at_a_time(members, gpu)
        members.size = before
        assert rows % BLOCK == 0
        assert rows == BLOCK or rows * size <= 2**16
