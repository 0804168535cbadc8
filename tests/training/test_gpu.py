"""What only a GPU shows: captured steps, streaming, lower precision, real shortage of memory."""

import copy
import time
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import guardband as gb
from guardband.nn import FullyConnected, IntervalLoss, TripleHead
from guardband.nn.tabular import TabularNetwork
from guardband.training.graph import GraphedStep
from guardband.training.predict import LONGEST, predict
from guardband.training.stack import Stack

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

CUDA = torch.device("cuda")
TAUS = (0.1, 0.2, 0.3, 0.4)
SETTINGS = {"epochs": 6, "learning_rate": 0.01, "weight_decay": 1e-3, "schedule": "cosine"}
KINDS = {
    "dense": lambda: FullyConnected(5, (16, 8)),
    "tanh": lambda: FullyConnected(5, (16,), activation="tanh"),
    "stacked": lambda: nn.Sequential(nn.Linear(5, 16), nn.LayerNorm(16), nn.ReLU(), TripleHead(16)),
    "with dropout": lambda: FullyConnected(5, (16, 8), dropout=0.2),
    "tabular": lambda: TabularNetwork(5, 3, (), (16, 8), "silu", 0.2, TripleHead),
    "normalised": lambda: nn.Sequential(nn.Linear(5, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), TripleHead(16)),
}


def data(n=5000):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 5, generator=generator)
    return x, x.sum(-1) + torch.randn(n, generator=generator)


def networks(kind, size=4):
    torch.manual_seed(0)
    return [KINDS[kind]().cuda() for _ in range(size)]


def train(kind, **settings):
    return gb.train(networks(kind), data(), [IntervalLoss(tau) for tau in TAUS], **(SETTINGS | settings))


def furthest(a, b):
    return max(
        (p.float() - q.float()).abs().max().item()
        for one, other in zip(a, b, strict=True)
        for p, q in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def held_out_losses(nets):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(5000, 5, generator=generator)
    y = (x.sum(-1) + torch.randn(5000, generator=generator)).cuda()
    with torch.no_grad():
        return IntervalLoss(TAUS).cuda()(torch.stack([net(x.cuda()) for net in nets]), y)


@pytest.mark.parametrize("kind", KINDS)
def test_a_captured_step_trains_as_the_plain_one(kind, monkeypatch):
    captured = train(kind)
    assert furthest(captured, train(kind)) == 0
    replays = []
    real = GraphedStep._capture
    monkeypatch.setattr(GraphedStep, "_capture", lambda self, *given: (replays.append(1), real(self, *given)))
    train(kind, epochs=1)
    assert replays
    monkeypatch.setattr("guardband.training.graph.WARM_UP", 10**9)
    assert furthest(captured, train(kind)) < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_together_is_alone(kind):
    together = train(kind, seed=[0, 1, 2, 3])
    alone = [
        gb.train(net, data(), IntervalLoss(tau), seed=i, **SETTINGS)
        for i, (net, tau) in enumerate(zip(networks(kind), TAUS, strict=True))
    ]
    assert furthest(together, alone) < 1e-5


class Functional(nn.Module):
    """Draws random numbers that nothing outside can take over."""

    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(5, 8), TripleHead(8)

    def forward(self, x):
        return self.head(nn.functional.dropout(self.first(x).relu(), 0.3, self.training))


def test_networks_that_draw_by_themselves_are_together_as_alone_and_say_why_they_are_slow():
    torch.manual_seed(0)
    nets = [Functional().cuda() for _ in range(3)]
    alone = copy.deepcopy(nets[1])
    with pytest.warns(gb.SlowTrainingWarning, match="draws random numbers"):
        gb.train(nets, data(), IntervalLoss(0.1), seed=[4, 5, 6], **SETTINGS)
    with pytest.warns(gb.SlowTrainingWarning, match="not captured as a CUDA graph.*draws random numbers"):
        gb.train(alone, data(), IntervalLoss(0.1), seed=5, **SETTINGS)
    assert furthest([nets[1]], [alone]) < 1e-5


@pytest.mark.parametrize("kind", ["dense", "stacked"])
def test_streamed_rows_train_as_resident_ones(kind, monkeypatch):
    """With weights, responses of their own, and two groups of networks."""
    x, y = data()
    given = (x, torch.stack([y, -y, y + 1, 2 * y]), torch.rand(len(x), generator=torch.Generator().manual_seed(2)))
    settings = SETTINGS | {"rows": [*[torch.arange(4000)] * 2, *[torch.arange(1000, 5000)] * 2]}
    resident = gb.train(networks(kind), given, IntervalLoss(TAUS), **settings)
    monkeypatch.setattr("guardband.doors.training_table.RESIDENT_SHARE", 0.0)
    streamed = gb.train(networks(kind), given, IntervalLoss(TAUS), **settings)
    assert furthest(resident, streamed) < 1e-5


def test_losses_rates_and_limits_of_their_own_in_one_graph():
    losses = [IntervalLoss(0.1), IntervalLoss(0.2, power=2), IntervalLoss(0.3, point="mean"), IntervalLoss(0.4)]
    own = {
        "learning_rate": [0.01, 0.02, 0.005, 0.01],
        "clip": [None, 0.1, 0.5, None],
        "schedule": [None, "cosine", None, "cosine"],
        "epochs": [5, 5, 3, 4],
    }
    together = gb.train(networks("dense"), data(), losses, **own)
    for i, net in enumerate(networks("dense")):
        alone = gb.train(net, data(), losses[i], **{name: values[i] for name, values in own.items()})
        assert furthest([together[i]], [alone]) < 1e-5


def test_a_loader_of_changing_sizes():
    sizes = [100, 37, 64] * 5 + [4]
    x, y = data(sum(sizes))
    batches = list(zip(x.split(sizes), y.split(sizes), strict=True))
    together = gb.train(networks("dense"), batches, IntervalLoss(TAUS), epochs=4, learning_rate=0.01)
    for i, net in enumerate(networks("dense")):
        alone = gb.train(net, batches, IntervalLoss(TAUS[i]), epochs=4, learning_rate=0.01)
        assert furthest([together[i]], [alone]) < 1e-5


@pytest.mark.parametrize("kind", ["dense", "stacked"])
def test_a_stopped_run_goes_on_to_the_same_result(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("guardband.training.checkpoint.SECONDS_BETWEEN", 0.0)
    expected = train(kind)

    def stop(epoch):
        if epoch == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(kind, checkpoint=tmp_path, after_epoch=stop)
    assert furthest(expected, train(kind, checkpoint=tmp_path)) < 1e-5


def test_the_callers_random_state_and_stream_are_left_alone():
    before = torch.cuda.get_rng_state()
    train("with dropout", epochs=1)
    gb.train(FullyConnected(5, dropout=0.1), data(), IntervalLoss(0.1), epochs=1)  # on the CPU
    assert torch.cuda.get_rng_state().equal(before)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


@pytest.mark.parametrize(("precision", "tolerance"), [("tf32", 0.02), ("bf16", 0.02)])
@pytest.mark.parametrize("kind", ["dense", "stacked"])
def test_lower_precision_ends_near(kind, precision, tolerance):
    before = torch.get_float32_matmul_precision()
    rough = train(kind, precision=precision)
    assert torch.get_float32_matmul_precision() == before
    torch.testing.assert_close(held_out_losses(rough), held_out_losses(train(kind)), rtol=tolerance, atol=0)


class Waits(nn.Module):
    """Looks at a number on the host in every step, which a graph cannot."""

    def __init__(self):
        super().__init__()
        self.head = TripleHead(5)

    def forward(self, x):
        return self.head(x * (1.0 if x.sum().item() > -1e9 else 0.0))


def test_a_step_that_waits_for_the_device_runs_piece_by_piece_and_says_so():
    net = Waits().cuda()
    start = copy.deepcopy(net)
    with pytest.warns(gb.SlowTrainingWarning, match="not captured as a CUDA graph.*captur"):
        gb.train(net, data(), IntervalLoss(0.1), **SETTINGS)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    plain = start.head.cuda()
    gb.train(plain, data(), IntervalLoss(0.1), **SETTINGS)
    assert furthest([net.head], [plain]) < 1e-5


def test_out_of_memory_halves_the_fleet_and_goes_on(monkeypatch):
    """All of the device's memory but a little is taken, and the division believes there is plenty."""
    monkeypatch.setattr("guardband.training.division.MEMORY_SHARE", 1e3)
    torch.manual_seed(0)
    nets = [nn.Sequential(nn.Linear(5, 4000), nn.LayerNorm(4000), TripleHead(4000)).cuda() for _ in range(64)]
    expected = gb.train(copy.deepcopy(nets[:2]), data(2000), IntervalLoss(0.1), epochs=2, batch_size=1000)
    torch.cuda.empty_cache()
    free = torch.cuda.mem_get_info()[0]
    hog = torch.empty(free - 3 * 2**30, dtype=torch.uint8, device="cuda")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gb.SlowTrainingWarning)  # a capture may find too little memory
            gb.train(nets, data(2000), IntervalLoss(0.1), epochs=2, batch_size=1000)
    finally:
        del hog
        torch.cuda.empty_cache()
    assert furthest(nets[:2], expected) < 1e-5


def test_early_stopping_on_the_device():
    settings = {"epochs": 30, "validation": 0.2, "patience": 3, "learning_rate": 0.01}
    together = gb.train(networks("dense"), data(), [IntervalLoss(tau) for tau in TAUS], **settings)
    for net, start, tau in zip(together, networks("dense"), TAUS, strict=True):
        assert furthest([net], [gb.train(start, data(), IntervalLoss(tau), **settings)]) < 1e-5


def test_the_step_of_a_hundred_networks_is_not_a_hundred_steps():
    x, y = data(20_000)

    def seconds(size):
        torch.manual_seed(0)
        nets = [FullyConnected(5, (64,)).cuda() for _ in range(size)]
        gb.train(nets, (x, y), IntervalLoss(0.1), epochs=1)
        torch.cuda.synchronize()
        started = time.perf_counter()
        gb.train(nets, (x, y), IntervalLoss(0.1), epochs=10)
        torch.cuda.synchronize()
        return time.perf_counter() - started

    assert seconds(100) < 10 * seconds(1)


def test_what_a_row_gets_does_not_depend_on_its_neighbours():
    members, x = Stack(networks("tabular", 2)), data(3 * LONGEST + 7)[0].numpy()
    whole = predict(members, x, CUDA)
    for n in (1, LONGEST, LONGEST + 1):
        np.testing.assert_array_equal(predict(members, x[:n], CUDA), whole[:, :n])
    own = predict(members, x[:2000], torch.device("cuda", torch.cuda.current_device()))
    np.testing.assert_array_equal(own, whole[:, :2000])


def test_what_a_gpu_predicts_is_what_a_processor_does_but_for_rounding():
    nets, x = networks("tabular", 2), data()[0].numpy()
    there = predict(Stack(nets), x, CUDA)
    here = predict(Stack([net.cpu() for net in nets]), x, torch.device("cpu"))
    np.testing.assert_allclose(there, here, rtol=1e-3, atol=1e-4)
