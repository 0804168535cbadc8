"""``gb.train``: one network or a fleet, from a loader or from tensors."""

import copy
import json
import os
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import guardband as gb
from guardband.nn import AbsoluteLoss, FullyConnected, GaussianLoss, IntervalLoss, PearceLoss, TripleHead

N, D = 300, 3


def data(n=N):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, D, generator=generator)
    return x, x.sum(-1) + 0.3 * torch.randn(n, generator=generator)


def loader():
    return DataLoader(TensorDataset(*data(256)), batch_size=64)


def network(seed=0, hidden=(16,), **settings):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return FullyConnected(D, hidden, **settings)


def point(seed=0, outputs=1):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(D, 8), nn.ReLU(), nn.Linear(8, outputs))


class Recurrent(nn.Module):
    """``vmap`` has no rule for an LSTM."""

    def __init__(self, seed):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.cells, self.head = nn.LSTM(1, 4, batch_first=True), TripleHead(4)

    def forward(self, x):
        return self.head(self.cells(x[:, :, None])[0][:, -1])


def assert_same(a, b, tolerance=1e-5):
    for one, other in zip(a, b, strict=True):
        for name, value in one.state_dict().items():
            torch.testing.assert_close(other.state_dict()[name], value, atol=tolerance, rtol=tolerance)


def test_train_lowers_the_loss_in_place_and_ends_in_eval_mode():
    net, loss = network(), IntervalLoss(0.1)
    x, y = loader().dataset.tensors
    before = loss(net(x), y).item()
    assert gb.train(net, loader(), loss, epochs=20, learning_rate=0.01) is net
    assert loss(net(x), y).item() < before / 2
    assert not net.training


@pytest.mark.parametrize("form", ["loader", "tensors"])
def test_training_is_that_of_a_plain_loop_over_the_same_batches(form):
    x, y = data(256)
    net, plain, loss = network(), network(), IntervalLoss(0.1)
    batches = [(x[i : i + 64], y[i : i + 64]) for i in range(0, 256, 64)]
    epochs = 5
    if form == "loader":
        gb.train(net, batches, loss, epochs=epochs, learning_rate=0.01)
        passes = [batches] * epochs
    else:
        gb.train(net, (x, y), loss, epochs=epochs, learning_rate=0.01, batch_size=64, seed=7)
        from guardband.training.batches import Draw

        orders = [Draw(torch.arange(256), 7).order(epoch) for epoch in range(1, epochs + 1)]
        passes = [[(x[part], y[part]) for part in order.split(64)] for order in orders]
    optimiser = torch.optim.Adam(plain.parameters(), lr=0.01)
    for one_pass in passes:
        for xb, yb in one_pass:
            optimiser.zero_grad()
            loss(plain(xb), yb).backward()
            optimiser.step()
    assert_same([plain], [net])


class Hidden(nn.Module):
    """A network whose layers cannot be seen."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


ARCHITECTURES = {
    "dense": lambda seed: network(seed, (16, 8)),
    "relu": lambda seed: network(seed, ordering="relu"),
    "tanh": lambda seed: network(seed, activation="tanh"),
    "stacked": lambda seed: Hidden(network(seed, activation="tanh")),
    "in a row": Recurrent,
}


@pytest.mark.filterwarnings("ignore:.*cannot be trained together")
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_fleet_gives_each_network_what_training_it_alone_gives(kind):
    """Own start, level, rows, targets, order, rate, schedule, decay, clipping and number of epochs."""
    build, (x, y) = ARCHITECTURES[kind], data()
    targets = torch.stack([y, -y, y + 1, 2 * y])
    weight = torch.rand(N, generator=torch.Generator().manual_seed(1))
    own = {
        "rows": [torch.arange(200), torch.arange(200), torch.arange(50, 250), torch.arange(N) % 2 == 0],
        "epochs": [6, 6, 4, 5],
        "learning_rate": [0.01, 0.01, 0.02, 0.005],
        "weight_decay": [0.0, 1e-2, 0.0, 1e-3],
        "clip": [None, 0.1, None, 0.5],
        "schedule": [None, "cosine", None, lambda progress: 1 - progress / 2],
        "seed": [0, 0, 1, 2],
    }
    losses = [IntervalLoss(0.1), IntervalLoss(0.3, power=2), IntervalLoss(0.2, point="mean"), IntervalLoss(0.05)]
    fleet = gb.train([build(i) for i in range(4)], (x, targets, weight), losses, batch_size=50, **own)
    for i in range(4):
        settings = {name: values[i] for name, values in own.items()}
        alone = gb.train(build(i), (x, targets[i], weight), losses[i], batch_size=50, **settings)
        assert_same([alone], [fleet[i]])


@pytest.mark.parametrize("kind", ["dense", "stacked"])
def test_each_network_stops_early_by_itself(kind):
    build, (x, y) = ARCHITECTURES[kind], data()
    settings = {"validation": 0.3, "epochs": 40, "patience": 3, "learning_rate": 0.03}
    taus = [0.5, 0.1, 0.02]
    fleet = gb.train([build(i) for i in range(3)], (x, y), [IntervalLoss(tau) for tau in taus], **settings)
    for i, tau in enumerate(taus):
        assert_same([gb.train(build(i), (x, y), IntervalLoss(tau), **settings)], [fleet[i]])


def test_validation_keeps_the_best_epoch():
    x, y = data()
    held_out = (x[200:], y[200:])
    seen, loss = [], IntervalLoss(0.1)
    net = network()

    def note(epoch):
        with torch.no_grad():
            seen.append(loss(net(held_out[0]), held_out[1]).item())

    gb.train(
        net, (x[:200], y[:200]), loss, validation=held_out, epochs=60, patience=5, learning_rate=0.05, after_epoch=note
    )
    with torch.no_grad():
        kept = loss(net(held_out[0]), held_out[1]).item()
    assert kept == pytest.approx(min(seen), rel=1e-6)
    assert len(seen) == seen.index(min(seen)) + 6 < 60


def test_validation_from_a_loader():
    x, y = data()
    settings = {"epochs": 30, "patience": 3, "learning_rate": 0.05}
    batches = [(x[i : i + 50], y[i : i + 50]) for i in range(0, 200, 50)]
    a = gb.train(network(), batches, IntervalLoss(0.1), validation=[(x[200:], y[200:])], **settings)
    b = gb.train(network(), batches, IntervalLoss(0.1), validation=(x[200:], y[200:]), **settings)
    assert_same([a], [b], 0)


def test_networks_and_losses_of_every_kind_in_one_call():
    x, y = data()
    networks = [network(0), point(1), point(2, 2), point(3, 2), network(4), point(5)]
    losses = [IntervalLoss(0.1), AbsoluteLoss(), GaussianLoss(), PearceLoss(0.1, 20), IntervalLoss(0.2), AbsoluteLoss()]
    starts = [copy.deepcopy(net) for net in networks]
    gb.train(networks, (x, y), losses, epochs=4, learning_rate=0.01)
    for start, loss, net in zip(starts, losses, networks, strict=True):
        assert_same([gb.train(start, (x, y), loss, epochs=4, learning_rate=0.01)], [net])


def test_many_networks_see_one_loader():
    networks = gb.train([network(i) for i in range(3)], loader(), IntervalLoss([0.1, 0.2, 0.3]), epochs=3)
    for i, tau in enumerate([0.1, 0.2, 0.3]):
        assert_same([gb.train(network(i), loader(), IntervalLoss(tau), epochs=3)], [networks[i]])


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(*data(100), strict=True))


def test_a_loader_of_a_stream_that_does_not_know_its_length():
    settings = {"epochs": 3, "learning_rate": 0.01, "schedule": "cosine"}
    stream = gb.train([network(0), network(1)], DataLoader(Stream(), batch_size=32), IntervalLoss(0.1), **settings)
    assert_same([gb.train(network(1), DataLoader(Stream(), batch_size=32), IntervalLoss(0.1), **settings)], [stream[1]])


class Several(nn.Module):
    """Takes a table, and a category for each row."""

    def __init__(self, seed):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.names, self.head = nn.Embedding(5, 2), TripleHead(D + 2)

    def forward(self, table, names):
        return self.head(torch.cat([table, self.names(names)], -1))


@pytest.mark.filterwarnings("ignore:.*they take several inputs")
@pytest.mark.parametrize("validation", [None, 0.3, "data"])
@pytest.mark.parametrize("form", ["tuple", "mapping", "arrays"])
def test_several_inputs_as_tensors(form, validation, tmp_path):
    """Each network with rows of its own, a checkpoint and weights, as from batches of the same rows by a loader."""
    (x, y), names = data(), torch.arange(N) % 5
    shaped = {
        "tuple": lambda rows: (x[rows], names[rows]),
        "mapping": lambda rows: {"names": names[rows], "table": x[rows].double()},
        "arrays": lambda rows: (x[rows].numpy(), names[rows].numpy()),
    }[form]
    every, later = torch.arange(N), torch.arange(200, N)
    given = (shaped(every), y, torch.ones(N))
    held_out = (shaped(later), y[later], torch.ones(100)) if validation == "data" else validation
    settings = {"epochs": 3, "learning_rate": 0.01, "batch_size": 50, "validation": held_out}
    rows = [torch.arange(200), torch.arange(50, 250)]
    fleet = gb.train([Several(0), Several(1)], given, IntervalLoss(0.1), rows=rows, checkpoint=tmp_path, **settings)
    for i in range(2):
        assert_same([gb.train(Several(i), given, IntervalLoss(0.1), rows=rows[i], **settings)], [fleet[i]])
    if validation is None:
        from guardband.training.batches import Draw

        class Loader:
            epoch = 0

            def __iter__(self):
                self.epoch += 1
                order = Draw(rows[0], 0).order(max(1, self.epoch - 1))
                return iter([((x[part], names[part]), y[part]) for part in order.split(50)])

        assert_same([gb.train(Several(0), Loader(), IntervalLoss(0.1), epochs=3, learning_rate=0.01)], [fleet[0]])


def test_a_loss_of_the_users_own():
    x, y = data()

    def squared(outputs, y, weight=None):
        return (outputs[..., 0] - y).square().mean(-1)

    networks = gb.train([point(i) for i in range(2)], (x, y), squared, epochs=30, learning_rate=0.02)
    assert all((net(x)[:, 0] - y).square().mean() < y.var() / 2 for net in networks)


def test_networks_that_cannot_be_stacked_say_why():
    x, y = data(40)
    with pytest.warns(
        gb.SlowTrainingWarning, match="cannot be trained together, and are trained one after another: .*lstm"
    ):
        gb.train([Recurrent(0), Recurrent(1)], (x, y), IntervalLoss(0.1), epochs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gb.train(Recurrent(0), (x, y), IntervalLoss(0.1), epochs=1)
        gb.train([network(0), network(1)], (x, y), IntervalLoss(0.1), epochs=1)


def test_frozen_parameters_stay():
    x, y = data()
    net = network()
    net[0].weight.requires_grad_(False)
    before = copy.deepcopy(net.state_dict())
    gb.train([net, copy.deepcopy(net)], (x, y), IntervalLoss([0.1, 0.2]), epochs=2)
    assert net[0].weight.equal(before["0.weight"])
    assert not net[0].bias.equal(before["0.bias"])


def test_running_statistics_are_kept():
    x, y = data()
    net = nn.Sequential(nn.BatchNorm1d(D), TripleHead(D))
    gb.train([net, copy.deepcopy(net)], (x, y), IntervalLoss([0.1, 0.2]), epochs=3)
    assert net[0].num_batches_tracked == 3 * 2
    assert net[0].running_mean.abs().gt(0).all()


def test_numbers_of_the_networks_own_precision():
    x, y = data()
    net = gb.train(network().double(), (x.numpy(), y.numpy()), IntervalLoss(0.1), epochs=2)
    assert net[0].weight.dtype == torch.float64
    gb.train(network(), (x.double(), y.double()), IntervalLoss(0.1), epochs=1)


def test_half_precision_is_near():
    x, y = data()
    for build in ARCHITECTURES["dense"], ARCHITECTURES["stacked"]:
        settings = {"epochs": 5, "learning_rate": 0.01}
        exact = gb.train([build(0), build(1)], (x, y), IntervalLoss([0.1, 0.2]), **settings)
        rough = gb.train([build(0), build(1)], (x, y), IntervalLoss([0.1, 0.2]), precision="bf16", **settings)
        loss = IntervalLoss([0.1, 0.2])
        a, b = (loss(torch.stack([net(x) for net in nets]), y) for nets in (exact, rough))
        torch.testing.assert_close(a, b, rtol=0.05, atol=0)


def test_after_epoch_sees_the_network_and_can_stop():
    seen, net = [], network()

    def after(epoch):
        seen.append(net[0].weight.clone())
        assert not net.training
        return epoch == 3

    gb.train(net, loader(), IntervalLoss(0.1), epochs=10, after_epoch=after)
    assert len(seen) == 3
    assert not seen[0].equal(seen[1])
    assert net[0].weight.equal(seen[2])


@pytest.mark.parametrize("how", ["loader", "tensors", "early"])
def test_ctrl_c_leaves_the_last_whole_epoch(how):
    x, y = data()
    settings = {"validation": 0.2} if how == "early" else {}
    given = loader() if how == "loader" else (x, y)

    def interrupt(epoch):
        if epoch == 3:
            raise KeyboardInterrupt

    net = network()
    with pytest.raises(KeyboardInterrupt):
        gb.train(net, given, IntervalLoss(0.1), epochs=9, after_epoch=interrupt, **settings)
    assert not net.training
    assert_same([gb.train(network(), given, IntervalLoss(0.1), epochs=3, **settings)], [net], 0)


@pytest.mark.parametrize("when", ["between epochs", "in an epoch", "in the first epoch"])
@pytest.mark.parametrize("validation", [None, 0.3])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_after_ctrl_c_the_same_call_goes_on_from_the_last_whole_epoch(tmp_path, monkeypatch, when, validation, dropout):
    from guardband.training.squad import Squad

    settings = {"epochs": 7, "validation": validation, "patience": 3, "averaging": 2.0, "learning_rate": 0.02}

    def run(**others):
        networks = [network(i, dropout=dropout) for i in range(3)]
        return gb.train(networks, data(), IntervalLoss([0.1, 0.2, 0.5]), **settings, **others)

    expected, real, seen = run(), Squad.epoch, []

    def interrupt(epoch):
        if when == "between epochs" and epoch == 4:
            raise KeyboardInterrupt

    def epoch(self, number, *how):
        real(self, number, *how)
        if number == {"in an epoch": 5, "in the first epoch": 1}.get(when):
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Squad, "epoch", epoch)
        with pytest.raises(KeyboardInterrupt):
            run(checkpoint=tmp_path, after_epoch=interrupt)
    assert_same(expected, run(checkpoint=tmp_path, after_epoch=seen.append), 0)
    assert seen[0] == (1 if when == "in the first epoch" else 5)


def test_ctrl_c_in_the_middle_of_an_epoch():
    """The signal comes while threads are at work: they stop, and the networks are whole."""
    program = """
        import os, signal, threading, time
        import torch
        import guardband as gb
        torch.manual_seed(0)
        x = torch.randn(60_000, 20)
        networks = [gb.nn.FullyConnected(20, (200,)) for _ in range(12)]
        start = [net[0].weight.clone() for net in networks]
        torch.set_num_threads(2)
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        settings = {"epochs": 100_000, "learning_rate": 0.01}
        settings["after_epoch"] = lambda epoch: timer.start() if epoch == 1 else None
        try:
            gb.train(networks, (x, x.sum(-1)), gb.nn.IntervalLoss(0.1), **settings)
        except KeyboardInterrupt:
            assert threading.active_count() <= 2, threading.enumerate()
            assert torch.get_num_threads() == 2
            moved = [not net[0].weight.equal(old) for net, old in zip(networks, start)]
            finite = all(p.isfinite().all() for net in networks for p in net.parameters())
            print("usable", len(set(moved)) == 1 and moved[0], finite, not networks[0].training)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert "usable True True True" in done.stdout, done.stdout + done.stderr


RUN = """
    import functools, json, os, sys, signal
    import torch
    import guardband as gb
    from guardband.training import checkpoint
    checkpoint.SECONDS_BETWEEN = 0.0

    def faded(progress, share):
        return 1 - share * progress

    def own(outputs, y):
        return gb.nn.IntervalLoss(0.3)(outputs, y)

    def run(at, folder, die_at, dropout, settings):
        os.chdir(at)
        x = torch.randn(300, 3, generator=torch.Generator().manual_seed(0))
        torch.manual_seed(0)
        networks = [gb.nn.FullyConnected(3, (16,), dropout=dropout) for _ in range(3)]
        point = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        losses = [gb.nn.IntervalLoss(0.1), gb.nn.IntervalLoss(0.2, power=2), own, gb.nn.AbsoluteLoss()]
        epochs = []

        def die(epoch):
            epochs.append(epoch)
            if len(epochs) == die_at:
                os.kill(os.getpid(), signal.SIGKILL)

        gb.train([*networks, point], (x, x.sum(-1)), losses, epochs=6, learning_rate=0.01, checkpoint=folder or None,
                 after_epoch=die, schedule=functools.partial(faded, share=0.5), **settings)
        torch.save([net.state_dict() for net in [*networks, point]], "result.pt")
        with open("epochs", "w") as file:
            file.write(str(len(epochs)))

    torch.set_num_threads(1)
    gb.train  # torch is loaded once. Each run is a process of its own, which may die
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(*json.loads(line))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def run_apart():
    """Return a function that trains in a process of its own, and says how that ended."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(RUN)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:

        def run(*asked):
            server.stdin.write(json.dumps(asked) + "\n")
            server.stdin.flush()
            return int(server.stdout.readline())

        yield run
        server.stdin.close()


def test_averaging_keeps_the_average_that_it_says():
    """One step in an epoch; what is trained is not changed by it."""
    x = torch.randn(40, D)
    data, states = (x, x.sum(-1)), []
    net = network()
    keep = lambda epoch: states.append({name: t.clone() for name, t in net.state_dict().items()})  # noqa: E731
    gb.train(net, data, gb.nn.IntervalLoss(0.1), epochs=20, batch_size=40, after_epoch=keep)
    expected = network().state_dict()
    for step, state in enumerate(states, 1):
        weight = max(1 / 3, 10 / (step + 10))
        expected = {name: torch.lerp(t, state[name], weight) for name, t in expected.items()}
    averaged = gb.train(network(), data, gb.nn.IntervalLoss(0.1), epochs=20, batch_size=40, averaging=3)
    for name, t in averaged.state_dict().items():
        torch.testing.assert_close(t, expected[name])
    with pytest.raises(ValueError, match="averaging must not be negative"):
        gb.train(network(), data, gb.nn.IntervalLoss(0.1), averaging=-1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    "settings", [{"validation": None}, {"validation": 0.2, "patience": 3, "averaging": 2}], ids=str
)
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_killed_run_goes_on_to_the_same_result(run_apart, tmp_path, settings, dropout):
    def run(saved, die_at):
        return run_apart(str(tmp_path), saved and str(tmp_path / saved), die_at, dropout, settings)

    def epochs():
        return int((tmp_path / "epochs").read_text())

    assert run("", 0) == 0
    whole, expected = epochs(), torch.load(tmp_path / "result.pt")
    (tmp_path / "result.pt").unlink()
    # Killed in the first fleet, then in the second; every time it goes on from the epoch before.
    assert run("saved", 4) == -signal.SIGKILL
    assert run("saved", 5) == -signal.SIGKILL
    assert not (tmp_path / "result.pt").exists()
    assert run("saved", 0) == 0
    assert epochs() < whole
    for one, other in zip(expected, torch.load(tmp_path / "result.pt"), strict=True):
        assert all(value.equal(other[name]) for name, value in one.items())
    assert run("saved", 0) == 0
    assert epochs() == 0  # what is finished is not trained again
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {"fleet-0.checkpoint", "fleet-1.checkpoint"}


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    x, y = data()
    settings = {"epochs": 2, "checkpoint": tmp_path}
    gb.train(network(), (x, y), IntervalLoss(0.1), **settings)
    others = [
        (network(1), (x, y), IntervalLoss(0.1), settings),
        (network(), (x, y + 1), IntervalLoss(0.1), settings),
        (network(), (x, y), IntervalLoss(0.2), settings),
        (network(), (x, y), IntervalLoss(0.1), settings | {"learning_rate": 0.1}),
        (network(), (x, y), IntervalLoss(0.1), settings | {"seed": 1}),
        (network(), (x, y), IntervalLoss(0.1), settings | {"schedule": "cosine"}),
        (network(), (x, y, torch.rand(N)), IntervalLoss(0.1), settings),
        (network(), (x, y), IntervalLoss(0.1), settings | {"rows": torch.arange(N - 1)}),
    ]
    for net, given, loss, other in others:
        start = copy.deepcopy(net)
        with pytest.raises(ValueError, match=r"of the same run.*Remove it"):
            gb.train(net, given, loss, **other)
        assert_same([start], [net], 0)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    x, y = data()
    (tmp_path / "fleet-0.checkpoint").write_bytes(os.urandom(100))
    with pytest.raises(ValueError, match="guardband wrote"):
        gb.train(network(), (x, y), IntervalLoss(0.1), checkpoint=tmp_path)


def test_the_callers_network_loss_and_randomness_are_left_alone_until_the_end():
    x, y = data()
    loss = IntervalLoss(0.1)
    before = torch.get_rng_state()
    a = gb.train(network(dropout=0.5), (x, y), loss, epochs=2)
    assert torch.get_rng_state().equal(before)
    torch.rand(3)
    assert_same([a], [gb.train(network(dropout=0.5), (x, y), loss, epochs=2)], 0)


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        ([], "The loader gave no batch"),
        ([(torch.zeros(2, D), torch.zeros(2, 1))], r"shape \(n,\)"),
        ([torch.zeros(2, D)], "pairs"),
    ],
)
def test_other_loaders_are_refused(batches, words):
    with pytest.raises(ValueError, match=words):
        gb.train(network(), batches, IntervalLoss(0.1), epochs=1)


SHARED = network()


def sharing():
    trunk = nn.Linear(D, D)
    return [nn.Sequential(trunk, TripleHead(D)) for _ in range(2)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": (torch.zeros(5, D),)}, "x, y"),
        ({"data": (torch.zeros(5), torch.zeros(5))}, r"shape \(n, \.\.\.\)"),
        ({"data": (torch.zeros(0, D), torch.zeros(0))}, "at least one row"),
        ({"data": (torch.zeros(5, D), torch.zeros(5, 1))}, r"y must have the shape \(5,\)"),
        ({"data": (torch.zeros(5, D), torch.zeros(5), -torch.ones(5))}, "not be negative"),
        ({"data": ((torch.zeros(5, D), torch.zeros(4, D)), torch.zeros(5))}, r"same number of rows.*found \[4, 5\]"),
        ({"data": ({}, torch.zeros(5))}, "same number of rows"),
        (
            {"data": data(), "validation": (torch.zeros(5, D + 1), torch.zeros(5))},
            "have other shapes",
        ),
        ({"rows": torch.tensor([0, N])}, "positions from 0"),
        ({"rows": torch.tensor([0.5])}, "positions from 0"),
        ({"rows": torch.zeros(N, dtype=torch.bool)}, "at least one"),
        ({"rows": [torch.arange(3)] * 3}, "rows must be one value or one per network, 2, found 3"),
        ({"learning_rate": [0.1] * 3}, "learning_rate must be one value or one per network"),
        ({"loss": IntervalLoss([0.1, 0.2, 0.3])}, "one level, or one per network, 2"),
        ({"loss": [IntervalLoss([0.1, 0.2])] * 2}, "one level"),
        ({"loss": [IntervalLoss(0.1)] * 3}, "loss must be one value or one per network"),
        ({"loss": lambda out, y: out.mean()}, "one number per network"),
        ({"network": [SHARED, SHARED]}, "object of its own"),
        ({"network": [nn.ReLU(), nn.ReLU()]}, "no parameters to train"),
        ({"validation": 1.5}, "validation must be a share"),
        ({"validation": 0.2, "rows": [torch.arange(300), torch.arange(10)]}, "at least 20 rows for each network"),
        (
            {"validation": (torch.zeros(3, D), torch.zeros(3), torch.zeros(3)), "data": (*data(), torch.ones(N))},
            "weight",
        ),
        ({"validation": [1, 2]}, "validation must be a share or tensors"),
        ({"validation": (torch.zeros(3, D), torch.zeros(3), torch.ones(3))}, "if and only if"),
        ({"validation": 0.2, "epochs": [3, 4]}, "one number for all"),
        ({"precision": "tf32"}, "NVIDIA GPU"),
        ({"epochs": "cv"}, "whole number"),
        ({"epochs": 2.0}, "whole number"),
        ({"epochs": []}, "one value or one per network"),
        ({"learning_rate": None}, "learning_rate must be positive"),
        ({"learning_rate": "fast"}, "learning_rate must be positive"),
        ({"seed": None}, "seed must be a whole number"),
        ({"seed": 2**70}, "seed must be a whole number"),
        ({"data": (torch.full((5, D), torch.nan), torch.zeros(5))}, "finite"),
        ({"data": (torch.eye(5, D), torch.tensor([0, 1, torch.inf, 2, 3]))}, "finite"),
        ({"data": (torch.zeros(5, 1), torch.zeros(5))}, "shapes cannot be multiplied|take 3 inputs"),
        ({"data": [(torch.zeros(5, 1), torch.zeros(5))]}, "take 3 inputs"),
        ({"data": [(torch.zeros(5, D), torch.zeros(1))]}, "the same number of rows"),
        ({"loss": IntervalLoss([0.1])}, "one level, or one per network, 2"),
        ({"network": sharing()}, "must not share parameters"),
        ({"network": [nn.LazyLinear(3), nn.LazyLinear(3)]}, "run the network once"),
        ({"data": [(torch.zeros(5, D), torch.zeros(5))], "rows": torch.arange(3)}, "data as tensors"),
    ],
)
def test_bad_input_gets_one_clear_sentence(change, words):
    given = {"network": [network(0), network(1)], "data": data(), "loss": IntervalLoss(0.1), "epochs": 1} | change
    with pytest.raises((ValueError, RuntimeError), match=words):
        gb.train(given.pop("network"), given.pop("data"), given.pop("loss"), **given)


@pytest.mark.parametrize(
    "change", [{"network": "net"}, {"network": []}, {"loss": "mse"}, {"data": iter(())}, {"data": 3}]
)
def test_things_of_another_kind_are_refused(change):
    given = {"network": [network(0)], "loss": IntervalLoss(0.1), "data": data()} | change
    with pytest.raises(TypeError, match="must be"):
        gb.train(given["network"], given["data"], given["loss"], epochs=1)


def test_settings_may_be_numpys():
    x, y = data()
    settings = {"epochs": np.array([2, 3]), "learning_rate": np.array([0.01, 0.02]), "seed": np.arange(2)}
    ours = gb.train([network(0), network(1)], (x, y), IntervalLoss(0.1), rows=list(np.arange(200)), **settings)
    rates = torch.tensor([0.01, 0.02], dtype=torch.float64)
    settings = {"epochs": [2, 3], "learning_rate": rates, "seed": list(np.arange(2))}
    expected = gb.train([network(0), network(1)], (x, y), IntervalLoss(0.1), rows=torch.arange(200), **settings)
    assert_same(expected, ours, 0)
    gb.train(network(), (x, y), IntervalLoss(0.1), epochs=np.int64(2))


def test_nothing_is_trained_if_any_network_cannot_be():
    x, y = data()
    networks = [network(), point(outputs=2)]
    before = copy.deepcopy(networks)
    with pytest.raises(ValueError, match="AbsoluteLoss needs"):
        gb.train(networks, (x, y), [IntervalLoss(0.1), AbsoluteLoss()], epochs=1)
    assert_same(before, networks, 0)


def test_one_that_diverges_is_named_and_the_others_are_trained():
    x, y = data()
    networks = [network(0), network(1)]
    settings = {"validation": 0.2, "epochs": 4}
    with pytest.raises(ValueError, match="diverged for network 1 of 2"):
        gb.train(networks, (x, y), IntervalLoss(0.1), learning_rate=[0.01, 1e30], **settings)
    alone = gb.train(network(0), (x, y), IntervalLoss(0.1), learning_rate=0.01, **settings)
    assert_same([alone, network(1)], networks)


@pytest.mark.parametrize("kind", ["dense", "stacked", "in a row"])
@pytest.mark.filterwarnings("ignore:.*cannot be trained together")
def test_divergence_is_an_error_without_validation_too(kind):
    build, settings = ARCHITECTURES[kind], {"epochs": 4, "batch_size": 64}
    networks = [build(0), build(1), build(2)]
    with pytest.raises(ValueError, match=r"diverged for network 1 of 3.*Lower its learning rate"):
        gb.train(networks, data(), IntervalLoss(0.1), learning_rate=[0.01, 3e38, 0.01], **settings)
    alone = [gb.train(build(i), data(), IntervalLoss(0.1), learning_rate=0.01, **settings) for i in (0, 2)]
    assert_same([alone[0], build(1), alone[1]], networks)


def test_a_buffer_that_is_infinite_is_no_divergence():
    net = nn.Sequential(nn.BatchNorm1d(D), TripleHead(D))
    net.register_buffer("limits", torch.tensor([-torch.inf, torch.inf]))
    assert gb.train(net, data(), IntervalLoss(0.1), epochs=1) is net


class Halved(IntervalLoss):
    """A loss of the user's own that looks like ours."""

    def rows(self, outputs, y):
        return super().rows(outputs, y) * (y > 0)


class Scaled(AbsoluteLoss):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def rows(self, outputs, y):
        return super().rows(outputs, y - self.scale)


def test_losses_derived_from_ours_are_taken_as_they_are():
    x, y = data()
    dense, stacked = (gb.train(net, (x, y), Halved(0.1), epochs=3) for net in (network(), Hidden(network())))
    assert_same([stacked.inner], [dense])
    networks = gb.train([point(0), point(0)], (x, y), [Scaled(0.0), Scaled(5.0)], epochs=30, learning_rate=0.05)
    assert networks[1](x).mean() < networks[0](x).mean() - 1


class Odd(nn.Module):
    """Networks that a careless stack would get wrong."""

    def __init__(self, seed, kind):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.first, self.last = nn.Linear(D, D), nn.Linear(D, 1)
        self.kind, self.seed = kind, seed
        self.register_buffer("mean", torch.zeros(D))
        self.register_buffer("unsaved", torch.ones(()), persistent=False)
        if kind == "other code behind a head of zeros":
            nn.init.zeros_(self.last.weight)
        if kind == "tied weights":
            self.second = nn.Linear(D, D)
            self.second.weight = self.first.weight

    def forward(self, x):
        if self.kind == "a buffer that is assigned":
            if self.training:
                self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
            x = x - self.mean
        if self.kind == "other code in training":
            x = x + (self.seed if self.training else 0)
        x = torch.tanh(self.first(x)) if self.seed == 0 or "behind" not in self.kind else self.first(x).relu()
        if self.kind == "tied weights":
            x = self.second(x)
        return self.last(x) * self.unsaved


@pytest.mark.filterwarnings("ignore:.*cannot be trained together")
@pytest.mark.parametrize(
    "kind",
    [
        *("other code behind a head of zeros", "other code in training", "a buffer that is assigned"),
        *("tied weights", "nothing but an unsaved buffer"),
    ],
)
def test_networks_that_a_careless_stack_would_get_wrong(kind):
    x, y = data()
    networks = [Odd(i, kind) for i in range(3)]
    before = copy.deepcopy(networks)
    gb.train(networks, (x, y), AbsoluteLoss(), epochs=3, learning_rate=0.01)
    for i, start in enumerate(before):
        alone = gb.train(start, (x, y), AbsoluteLoss(), epochs=3, learning_rate=0.01)
        assert_same([alone], [networks[i]])


def test_a_layer_that_comes_twice_counts_twice():
    x, y = data()
    relu, linear = nn.ReLU(), nn.Linear(D, D)
    shared = nn.Sequential(nn.Linear(D, D), relu, nn.Linear(D, 1), relu)
    apart = nn.Sequential(nn.Linear(D, D), nn.ReLU(), nn.Linear(D, 1), nn.ReLU())
    apart.load_state_dict(shared.state_dict())
    for net in (shared, apart):
        gb.train(net, (x, y), AbsoluteLoss(), epochs=3, learning_rate=0.01)
    assert_same([apart], [shared])
    gb.train(nn.Sequential(linear, relu, linear, relu, nn.Linear(D, 1)), (x, y), AbsoluteLoss(), epochs=1)


@pytest.mark.parametrize("shuffle", ["by torch's numbers", "by its own"])
@pytest.mark.parametrize("kind", ["dense", "stacked"])
def test_a_shuffling_loader_gives_a_fleet_what_it_gives_one(kind, shuffle):
    def shuffling():
        generator = torch.Generator().manual_seed(3) if shuffle == "by its own" else None
        return DataLoader(TensorDataset(*data()), batch_size=64, shuffle=True, generator=generator)

    build = ARCHITECTURES[kind]
    fleet = gb.train([build(0), build(1)], shuffling(), IntervalLoss(0.1), epochs=3, learning_rate=0.01)
    for i in range(2):
        assert_same([gb.train(build(i), shuffling(), IntervalLoss(0.1), epochs=3, learning_rate=0.01)], [fleet[i]])


def test_after_epoch_sees_finished_networks_as_they_stay():
    x, y = data()
    networks, seen = [network(i) for i in range(5)], []
    settings = {"epochs": [1, 4, 4, 4, 4], "after_epoch": lambda epoch: seen.append(networks[0][0].weight.clone())}
    gb.train(networks, (x, y), IntervalLoss(0.1), **settings)
    assert len(seen) == 4
    assert all(weight.equal(networks[0][0].weight) for weight in seen)


def test_what_after_epoch_sees_does_not_change_the_start(monkeypatch):
    """Out of memory in the third epoch, so that squads begin again from the networks as they were given."""
    from guardband.training.squad import Squad

    x, y = data()
    expected = gb.train([network(i) for i in range(4)], (x, y), IntervalLoss(0.1), epochs=4)
    real = Squad.epoch

    def epoch(self, number, *how):
        if number == 3 and self._job.size > 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        real(self, number, *how)

    monkeypatch.setattr(Squad, "epoch", epoch)
    networks = [network(i) for i in range(4)]
    assert_same(expected, gb.train(networks, (x, y), IntervalLoss(0.1), epochs=4, after_epoch=lambda epoch: None))


def test_memory_that_is_short_for_held_out_rows_is_taken_in_smaller_blocks(monkeypatch):
    from guardband.training.squad import Squad

    x, y = data()
    expected = gb.train(network(), (x, y), IntervalLoss(0.1), validation=0.5, epochs=3)
    real, blocks = Squad._blocks, []

    def few(self, held_out, count):
        blocks.append(count)
        if count > 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(self, held_out, count)

    monkeypatch.setattr(Squad, "_blocks", few)
    assert_same([expected], [gb.train(network(), (x, y), IntervalLoss(0.1), validation=0.5, epochs=3)])
    assert blocks[:2] == [4, 1]


@pytest.mark.parametrize("kind", ["dense", "stacked"])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_callers_gradient_mode_does_not_matter(mode, kind):
    (x, y), build = data(), ARCHITECTURES[kind]
    networks = [build(0), build(1)]
    with mode():
        gb.train(networks, (x, y), IntervalLoss(0.1), epochs=2)
    assert_same(gb.train([build(0), build(1)], (x, y), IntervalLoss(0.1), epochs=2), networks, 0)


def test_sparse_gradients():
    words = nn.Sequential(nn.Embedding(7, 4, sparse=True), nn.Flatten(), nn.Linear(8, 1))
    before = copy.deepcopy(words)
    gb.train(words, (torch.randint(7, (50, 2)), torch.randn(50)), AbsoluteLoss(), epochs=2)
    assert not words[0].weight.equal(before[0].weight)


def test_networks_of_other_precisions_side_by_side():
    x, y = data()
    networks = gb.train([network(), network().double()], (x, y), IntervalLoss(0.1), epochs=2)
    assert networks[1][0].weight.dtype == torch.float64
    torch.testing.assert_close(networks[0][0].weight, networks[1][0].weight.float(), atol=1e-4, rtol=1e-3)
