"""What a row gets does not depend on how many rows are predicted with it, nor on the number of threads."""

import numpy as np
import pytest
import torch

from guardband.learning.architecture import Architecture
from guardband.nn.heads import NestedTriples
from guardband.training.predict import BLOCK, predict
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
