"""Model files from strangers: loading raises ModelFileError, or gives a model that predicts no NaN. Nothing else.

Each forged file has a checksum that is right. benchmarks/attacks/model_files.py tries all of which a sample is here.
"""

import json
import random
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import guardband as gb
from forged_models import (
    NETWORKS,
    PLAIN,
    QUICK,
    RULES,
    entry_mutants,
    forged,
    gaussian,
    judged,
    numbers,
    opened,
    saved,
    tensor_mutants,
    triple,
)
from guardband.data.target import Target
from guardband.doors.kept_report import read_report
from guardband.doors.model_file import save

MODELS = [
    "fast",
    "plain",
    "pav",
    "neg-ll",
    "bayes",
    "few",
    "entities",
    "repeated",
    "target",
    "crossed",
    "own",
    *NETWORKS,
    *RULES,
]
MODELS += ["several", "several-each"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("forged")


@pytest.mark.parametrize("name", MODELS)
def test_models_as_they_were_saved_load(name, folder):
    assert judged(saved(name, folder), name) == "loaded"


@pytest.mark.parametrize("name", MODELS)
def test_a_forged_file_is_refused_or_a_model(name, folder, tmp_path):
    entries, tensors = opened(saved(name, folder))
    chance = random.Random(0)
    outcomes = set()
    for what, change in chance.sample(list(entry_mutants(entries)), 16):
        try:
            outcomes.add(judged(forged(tmp_path / "m", change(), tensors), name))
        except Exception as error:
            pytest.fail(f"{what}: {error!r}")
    for what, own in chance.sample(list(tensor_mutants(tensors)), 8):
        try:
            outcomes.add(judged(forged(tmp_path / "m", entries, own), name))
        except Exception as error:
            pytest.fail(f"{what}: {error!r}")
    assert "refused" in outcomes


def test_damaged_files_are_refused(folder, tmp_path):
    body = saved("plain", folder).read_bytes()
    for part in range(50):
        (tmp_path / "m").write_bytes(body[: len(body) * part // 50])
        assert judged(tmp_path / "m", "plain") == "refused"
    for bit in random.Random(0).sample(range(8 * len(body)), 150):
        damaged = bytearray(body)
        damaged[bit // 8] ^= 1 << bit % 8
        (tmp_path / "m").write_bytes(damaged)
        assert judged(tmp_path / "m", "plain") == "refused", bit


IN_A_SMALL_PROCESS = """
import resource, sys, warnings
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)
from forged_models import judged, opened
judged(Path(sys.argv[2]) / "plain.guardband", "plain")
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + 2**29, taken + 2**29))
resource.setrlimit(resource.RLIMIT_CPU, (300, 300))
for path in sorted(Path(sys.argv[2]).glob("*.forged")):
    assert judged(path, path.name.split(".")[0]) == "refused", path
import guardband as gb
model = gb.load(Path(sys.argv[2]) / "plain.guardband")
(Path(sys.argv[2]) / "plain.guardband").write_bytes(b"")  # a file that is cut in use: a map of it would end the process
model.fitted_.training_prints.sum()
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to limit memory")
def test_small_files_cannot_exhaust(folder, tmp_path):
    asked = {
        "layers": {"hidden": [4] * 3000},
        "many-layers": {"hidden": [4] * 10**6},
        "wide": {"hidden": [30_000, 30_000]},
        "inputs": {"in_features": 10**9},
        "epochs": {"epochs": [1] * 10**6},
        "columns": {"in_features": 10**9, "features": {"names": [], "count": 10**9}},
    }
    near = [{"fraction": f"{10**15 - 3 - i}/{10**15}"} for i in range(1000)]
    params = {
        "levels": {"confidence_level": [i / (10**5 + 1) for i in range(1, 10**5)]},
        "fraction": {"confidence_level": {"fraction": "1e1000000000"}},
        "single": {"confidence_level": {"float32": "1e1000000000"}},
        "digits": {"alpha": {"fraction": "1/" + "9" * 10**5}},
        "near": {"confidence_level": near, "guarantee": "pac", "joint": True},
        "near-pav": {"method": "pav", "confidence_level": near, "guarantee": "pac", "joint": False},
    }
    saved("plain", folder)
    (tmp_path / "plain.guardband").write_bytes(saved("plain", folder).read_bytes())
    entries, tensors = opened(saved("plain", folder))
    for what, own in asked.items():
        forged(tmp_path / f"plain.{what}.forged", entries | own, tensors)
    entries, tensors = opened(saved("few", folder))
    for what, own in params.items():
        forged(tmp_path / f"few.{what}.forged", entries | {"params": entries["params"] | own}, tensors)
    deep = '{"schema": 7, "kind": "table", "params": ' + "[" * 10**6 + "]" * 10**6 + "}"
    forged(tmp_path / "plain.deep.forged", deep, tensors)
    forged(tmp_path / "plain.number.forged", '{"schema": 7, "kind": ' + "1" * 10**6 + "}", tensors)
    tests = str(Path(__file__).parents[1])
    subprocess.run([sys.executable, "-c", IN_A_SMALL_PROCESS, tests, str(tmp_path)], check=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 7.0}, r"at `\$.schema`"),
        ({"schema": True}, r"at `\$.schema`"),
        ({"schema": "7"}, r"at `\$.schema`"),
        ({"params": []}, r"Expected `object`, got `array` - at `\$.params`"),
        ({"params": None}, r"at `\$.params`"),
        ({"kind": "other"}, "Invalid value 'other'"),
        ({"more": 1}, "unknown field `more`"),
        ({"epochs": [0]}, r"at `\$.epochs"),
        ({"hidden": [0]}, r"at `\$.hidden"),
        ({"dropout": 1.0}, r"at `\$.dropout`"),
    ],
)
def test_entries_have_their_types(change, words, folder, tmp_path):
    entries, tensors = opened(saved("plain", folder))
    with pytest.raises(gb.ModelFileError, match=words):
        gb.load(forged(tmp_path / "m", entries | change, tensors))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, -1.0, 1e999])
def test_scales_are_positive_numbers(value, folder, tmp_path):
    entries, tensors = opened(saved("plain", folder))
    for own in (entries["encoder"]["codes"][0], entries["target"]["scales"][0]):
        before, own["scale"] = own["scale"], value
        with pytest.raises(gb.ModelFileError, match=r"scale|malformed|out of range"):
            gb.load(forged(tmp_path / "m", entries, tensors))
        own["scale"] = before


@pytest.mark.parametrize(
    "change",
    [
        {"unit": 0.0},
        {"unit": -1.0},
        {"least": 100.0},
        {"most": 800.0},
        {"unit": None},
        {"origin": float("nan")},
    ],
)
def test_logarithmic_scales_stay_within_numbers(change, tmp_path):
    rows, y = np.random.default_rng(0).random((400, 2)), np.exp(2 * np.random.default_rng(1).standard_normal(400))
    model = gb.IntervalRegressor(hidden=(4,), max_epochs=2, preset="fast", random_state=0).fit(rows, y)
    model.save(tmp_path / "sound")
    entries, tensors = opened(tmp_path / "sound")
    assert entries["target"]["scales"][1]["unit"] > 0
    gb.load(forged(tmp_path / "m", entries, tensors))
    entries["target"]["scales"][1] |= change
    with pytest.raises(gb.ModelFileError):
        gb.load(forged(tmp_path / "m", entries, tensors))


@pytest.mark.parametrize("change", [{"score": "pav"}, {"score": "conf-fw"}, {"score": None}, {"method": "cqr"}])
def test_a_chosen_score_is_one_of_those_compared(change, tmp_path):
    rows = np.random.default_rng(0).random((400, 2))
    gb.IntervalRegressor(hidden=(4,), max_epochs=2, preset="fast", random_state=0).fit(rows, rows[:, 0]).save(
        tmp_path / "sound"
    )
    entries, tensors = opened(tmp_path / "sound")
    gb.load(forged(tmp_path / "m", entries, tensors))
    (entries["params"] if "method" in change else entries).update(change)
    with pytest.raises(gb.ModelFileError, match="score"):
        gb.load(forged(tmp_path / "m", entries, tensors))


@pytest.mark.parametrize("name", ["plain", "fast", "own", "network"])
def test_weights_are_finite(name, folder, tmp_path):
    entries, tensors = opened(saved(name, folder))
    weights = [k for k in tensors if k.startswith(("weights.", "networks."))]
    for value in (float("nan"), float("inf")):
        for which in weights:
            if tensors[which].is_floating_point():
                changed = tensors[which].clone()
                changed.view(-1)[0] = value
                assert judged(forged(tmp_path / "m", entries, tensors | {which: changed}), name) == "refused", which


@pytest.mark.parametrize("name", ["plain", "fast"])
def test_finite_weights_cannot_make_infinite_outputs(name, folder, tmp_path):
    """Products of large weights overflow, and infinity less infinity is NaN."""
    entries, tensors = opened(saved(name, folder))
    large = {k: 1e30 * t if k.startswith("weights.") and t.is_floating_point() else t for k, t in tensors.items()}
    with pytest.raises(gb.ModelFileError, match=r"could predict infinity|too large"):
        gb.load(forged(tmp_path / "m", entries, large))


@pytest.mark.parametrize("name", ["log", "log1p", "asinh", "sqrt"])
def test_ends_that_overflow_are_numbers(name):
    target = Target(name, None, None)
    ends = np.array([-np.inf, -1e300, -800.0, 0.0, 800.0, 1e300, np.inf])
    for end in target.to_units(ends, ends, ends):
        assert not np.isnan(end).any()


def test_a_mask_of_the_users_own_may_be_infinite(tmp_path):
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = gb.nn.TripleHead(3)
            self.register_buffer("mask", torch.tensor([0.0, float("-inf"), 0.0]))
            self.register_buffer("unknown", torch.tensor([float("nan"), 1.0]))

        def forward(self, x):
            return self.head(torch.softmax(x + self.mask, -1))

    X, y = (torch.from_numpy(own).float() for own in numbers())
    guarded = gb.calibrate(Masked(), (X, y))
    guarded.save(tmp_path / "m")
    assert torch.equal(gb.load(tmp_path / "m", network=Masked())(X), guarded(X))
    entries, tensors = opened(tmp_path / "m")
    tensors["networks.0.mask"][0] = float("-inf")
    with pytest.raises(gb.ModelFileError, match=r"networks\.0\.mask holds infinity or NaN"):
        gb.load(forged(tmp_path / "m", entries, tensors), network=Masked())


def test_calibration_of_a_network_must_be_its_rules(folder, tmp_path):
    entries, tensors = opened(saved("network-bayes", folder))
    tensors["calibration.quantiles"][0, 1] = float("nan")
    with pytest.raises(gb.ModelFileError, match="its calibration is NaN, quantiles"):
        gb.load(forged(tmp_path / "m", entries, tensors), network=gaussian())
    entries, tensors = opened(saved("network", folder))
    entries["certificate"]["promise"]["n_calibration"] = 10**6
    with pytest.raises(gb.ModelFileError, match="does not fit its calibration"):
        gb.load(forged(tmp_path / "m", entries, tensors), network=triple())


def packed(document):
    return torch.from_numpy(np.frombuffer(zlib.compress(document, 9), dtype=np.uint8).copy())


@pytest.mark.parametrize(
    "report",
    [
        packed(b" " * 50_000_000 + b"{}"),  # 49 kB that unpack to 50 MB
        packed(b"[" * 10**6 + b"]" * 10**6),
        packed(b"[]"),
        packed(b"null"),
        packed(b'{"a": '),
        packed(b"\xff"),
        packed(json.dumps({}).encode())[:-3],
        packed(b"{}").to(torch.int64),
        packed(b"{}")[None],
        packed(b"{}").float(),
        torch.zeros(0, dtype=torch.uint8),
    ],
)
def test_a_report_is_unpacked_within_bounds(report, folder, tmp_path):
    entries, tensors = opened(saved("plain", folder))
    with pytest.raises(gb.ModelFileError, match=r"holds a report that .* Make a new one with"):
        read_report(forged(tmp_path / "m", entries, tensors | {"report": report}))


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    X, y = numbers()
    model = gb.IntervalRegressor(**PLAIN).fit(pd.DataFrame(X, columns=list("abc")), y)
    model.fitted_.params["max_epochs"] = float("nan")
    with pytest.raises(ValueError, match="malformed"):
        save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_network_too_deep_for_a_bound_is_loaded_all_the_same(tmp_path):
    X, y = numbers()
    model = gb.IntervalRegressor(**QUICK | {"hidden": (64,) * 60}).fit(X, y)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(gb.load(tmp_path / "m").predict(X), model.predict(X))


def test_a_calibration_without_its_certificate_is_refused(folder, tmp_path):
    entries, tensors = opened(saved("plain", folder))
    with pytest.raises(gb.ModelFileError, match="a calibration without its certificate"):
        gb.load(forged(tmp_path / "m", entries | {"certificate": None}, tensors))
