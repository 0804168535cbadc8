"""Copies, folds and fleets that are spread over workers come out as on one machine."""

import os

import numpy as np
import pytest
import torch

import guardband as gb
from guardband.cli.process import main
from guardband.data.hash_split import HashSplit
from guardband.data.table import read_table
from guardband.learning.presets import WITH_MUON
from guardband.ray.gathered import divided, in_order, joined, together
from ray_rows import COLUMNS, QUICK, same_networks, table, write

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    # Ray 2.60 sets options of its own that it deprecates, and leaves pipes to the collector.
    *(pytest.mark.filterwarnings(f"ignore::{name}") for name in ("DeprecationWarning", "ResourceWarning")),
    pytest.mark.filterwarnings("ignore::ray.util.annotations.RayDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SPLIT = HashSplit(QUICK["random_state"], 0.25)


def with_prints(rows):
    X, y = rows.select(COLUMNS), rows["y"].to_numpy()
    return joined(X, y, SPLIT.prints(read_table(X), y))


def columns(part):
    X, y = divided(part)
    return X, y.copy()


def test_copies_that_muon_trains_are_those_of_one_machine(tmp_path):
    rows = table(5600, 5).select([*COLUMNS, "y"])
    options = {"hidden": (8, 8), "max_epochs": 2, "random_state": 0}
    training, calibration = map(columns, in_order([with_prints(rows)], SPLIT))
    alone = gb.IntervalRegressor(calibration_size=None, verbose=False, **options).fit(*training).calibrate(*calibration)
    model = gb.ray.fit(write(tmp_path / "in", rows, 2), target="y", **options)
    assert model.fitted_.learned.copies == WITH_MUON["default"].copies
    same_networks(model.fitted_.learned, alone.fitted_.learned)
    assert model.certificate_.promise == alone.certificate_.promise
    found, wanted = (own.calibration_.found.arrays["threshold"] for own in (model, alone))
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


@pytest.mark.parametrize("kind", ["cv+", "cv-minmax"])
def test_folds_are_those_of_one_machine_in_any_order_of_files(kind, tmp_path):
    rows = table(300, 6).select([*COLUMNS, "y"])
    options = QUICK | {"calibration": kind, "folds": 5}
    whole, order = together([with_prints(rows)], SPLIT)
    X, y = columns(whole.take(order))
    alone = gb.IntervalRegressor(**options).fit(X, y)
    options.pop("verbose")
    pattern = write(tmp_path / "in", rows.take(np.random.default_rng(0).permutation(300)), 2)
    model = gb.ray.fit(pattern, target="y", checkpoints=tmp_path / "checkpoints", **options)
    assert model.certificate_.promise == alone.certificate_.promise
    np.testing.assert_array_equal(model.fitted_.training_prints, alone.fitted_.training_prints)
    np.testing.assert_array_equal(model.fitted_.calibration_prints, alone.fitted_.calibration_prints)
    for own, other in zip(model.fitted_.learned.each, alone.fitted_.learned.each, strict=True):
        assert own.encoder == other.encoder
        same_networks(own, other)
    found, wanted = (each.predict_interval(X.slice(0, 20)) for each in (model, alone))
    np.testing.assert_allclose(found.lower, wanted.lower, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.upper, wanted.upper, rtol=1e-3, atol=1e-3)
    said = str(model.certificate_)
    assert "divided into folds at random" in said
    assert "One process held all rows" in said
    again = gb.ray.fit(pattern, target="y", checkpoints=tmp_path / "checkpoints", **options)
    for own, other in zip(again.fitted_.learned.each, model.fitted_.learned.each, strict=True):
        assert all((t == other.members.snapshot()[name]).all() for name, t in own.members.snapshot().items())


def test_the_command_fits_by_cross_validation(tmp_path, monkeypatch, capfd):
    pattern, place = write(tmp_path / "in", table(120, 9).select(["a", "y"]), 2), tmp_path / "m.guardband"
    command = ["fit", pattern, "--target", "y", "--preset", "fast", "--calibration", "cv+", "--folds", "4"]
    monkeypatch.setattr("sys.argv", ["guardband", *command, "--ray", "auto", "-o", str(place)])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert gb.load(place).certificate_.promise.fold_sizes == (30,) * 4
    assert "look at the coverage of files that were not used" in capfd.readouterr().out


def test_repeated_rows_are_refused_with_what_to_do(tmp_path):
    rows = table(200, 7).select([*COLUMNS, "y"])
    pattern = write(tmp_path / "in", rows.take([*range(200)] * 2), 2)
    options = {name: value for name, value in QUICK.items() if name != "verbose"}
    with pytest.raises(ValueError, match="some rows of this table are repeated"):
        gb.ray.fit(pattern, target="y", calibration="cv+", **options)


def test_the_machine_with_the_least_memory_decides_how_many_rows_one_process_holds(tmp_path, monkeypatch):
    here = os.getpid()
    monkeypatch.setattr("guardband.ray.fitting.memory", lambda: 1 << 40 if os.getpid() == here else 1000)
    pattern = write(tmp_path / "in", table(100, 8).select([*COLUMNS, "y"]), 1)
    with pytest.raises(ValueError, match="Cross-validation needs all rows in one process, and they are more than"):
        gb.ray.fit(pattern, target="y", calibration="cv+")


class Mortal(torch.nn.Module):
    """A network of two inputs, whose process dies in a training step, once."""

    def __init__(self, seed, marker):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.last, self.marker, self.steps = gb.nn.TripleHead(3), marker, 0

    def forward(self, x, shift):
        self.steps += self.training
        if self.steps > 8 and self.marker is not None and not os.path.exists(self.marker):
            with open(self.marker, "w"):
                os._exit(1)
        return self.last(x + shift)


def rows_of_a_fleet(n=300):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, generator=generator)
    return x, x.sum(-1) + torch.randn(n, generator=generator)


def fleet():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        alike = [gb.nn.FullyConnected(3, hidden=(8,)) for _ in range(4)]
        return [*alike, gb.nn.FullyConnected(3, hidden=(4,))]


def same_weights(one, other, tolerance):
    for own, wanted in zip(one, other, strict=True):
        assert not own.training
        for name, t in wanted.state_dict().items():
            torch.testing.assert_close(own.state_dict()[name], t, rtol=tolerance, atol=tolerance)


def test_a_fleet_on_workers_is_that_of_one_machine(tmp_path):
    x, y = rows_of_a_fleet()
    folds = torch.arange(300).chunk(3)
    kept = [torch.cat([fold for fold in folds if fold is not held_out]) for held_out in folds]
    options = {
        "rows": [*kept, kept[0], torch.arange(300)],
        "seed": [0, 1, 2, 0, 3],
        "learning_rate": [0.01, 0.01, 0.02, 0.01, 0.01],
        "schedule": "cosine",
        "epochs": 6,
        "patience": 2,
        "validation": (x[:50], y.expand(5, -1)[:, :50]),
    }
    data, losses = (x, torch.stack([y, y + 1, 2 * y, y, -y])), [gb.nn.IntervalLoss(0.1 * (i + 1)) for i in range(5)]
    alone = gb.train(fleet(), data, losses, **options)
    networks = fleet()
    assert gb.ray.train(networks, data, losses, checkpoint=tmp_path, **options) is networks
    same_weights(networks, alone, 1e-5)
    same_weights(gb.ray.train(fleet(), data, losses, checkpoint=tmp_path, **options), networks, 0)
    assert any(tmp_path.iterdir())


@pytest.mark.usefixtures("sent_as_they_are")
@pytest.mark.filterwarnings("ignore:.*cannot be trained together")
def test_a_worker_that_dies_while_it_trains_a_fleet_changes_nothing(tmp_path):
    marker = str(tmp_path / "dead")
    options, loss = {"epochs": 4, "batch_size": 64, "seed": [0, 1, 2]}, gb.nn.IntervalLoss(0.1)
    x, y = rows_of_a_fleet()
    data = (x, torch.linspace(0, 1, len(x))[:, None]), y
    found = gb.ray.train([Mortal(i, marker) for i in range(3)], data, loss, **options)
    assert os.path.exists(marker)
    same_weights(found, gb.train([Mortal(i, None) for i in range(3)], data, loss, **options), 1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"after_epoch": print}, "after_epoch cannot be used on Ray. The networks are on workers"),
        ({"data": [rows_of_a_fleet()]}, r"On Ray, data must be tensors \(x, y\), found list"),
        ({"checkpoint": "s3://bucket/folder"}, "Checkpoints cannot be in object storage"),
        ({"learning_rate": 1e30}, "Training diverged for network 0, 1, 2, 3, 4 of 5"),
    ],
)
def test_what_a_fleet_on_ray_cannot_do_is_said(options, words):
    asked = {"data": rows_of_a_fleet(), "loss": gb.nn.IntervalLoss(0.1), "epochs": 2} | options
    with pytest.raises(ValueError, match=words):
        gb.ray.train(fleet(), asked.pop("data"), asked.pop("loss"), **asked)
