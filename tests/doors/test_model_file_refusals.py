"""Files that contradict themselves, and what is brought to a file that does not need it."""

import pytest
import torch

import guardband as gb
from forged_models import forged, numbers, opened, own_network, triple
from tiny_models import Mine, first_positive, half, is_x, line, made

pytestmark = pytest.mark.filterwarnings("ignore::guardband.InsufficientCalibrationWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def change(*path, to):
    """Return what puts a value at a place of the entries, or a tensor in the place of another."""

    def apply(entries, tensors):
        *above, last = path
        inside = entries
        for step in above:
            inside = inside[step]
        inside[last] = to(inside[last]) if callable(to) else to

    return apply


def tensor(prefix, to):
    def apply(entries, tensors):
        name = next((own for own in tensors if own.startswith(prefix)), prefix)
        tensors[name] = to(tensors.get(name))

    return apply


def with_one(t):
    own = t.clone()
    own.view(-1)[0] = float("nan")
    return own


def larger(entries, tensors):
    tensors |= {name: 1e30 * t for name, t in tensors.items() if name.startswith("weights.")}


FORGED = [
    ("plain", change("several", to={"names": ["a", "b"], "others": [], "scales": []}), "targets are not what its arg"),
    ("several", change("several", to=None), "its targets are not what its arguments ask for"),
    ("plain", change("target", "y_min", to=-9.0), "its target is not what its arguments ask for"),
    ("crossed", change("crossed", 1, "target", "y_min", to=-9.0), "its target is not what its arguments ask for"),
    ("plain", tensor("more", lambda _: torch.zeros(1)), "it holds something unknown, 'more'"),
    ("plain", tensor("training_prints", lambda t: t.double()), "training_prints is no list of whole numbers"),
    ("plain", change("crossed", to=lambda _: "of another"), "it holds folds that its arguments do not ask for"),
    ("crossed", change("crossed", to=None), "it holds other folds than its arguments ask for"),
    (
        "crossed",
        tensor("placed.places", lambda _: torch.zeros(60)),
        "places of calibration rows that its networks do not",
    ),
    ("heads", change("score", to="cqr"), "its score, 'cqr', is not what its arguments ask for"),
    ("auto", change("score", to=None), "its score, None, is not what its arguments ask for"),
    ("auto", change("score", to="pav"), "its score, 'pav', is not what its arguments ask for"),
    ("plain", change("certificate", to=None), "it holds a calibration without its certificate"),
    ("plain", change("epochs", to=lambda own: own * 2), "it holds other networks than its arguments ask for"),
    ("heads", change("epochs", to=[1]), "it holds other networks than its arguments ask for"),
    ("copies", change("epochs", to=[1]), "it holds other networks than its arguments ask for"),
    ("plain", change("hidden", to=[10**6]), "its networks are larger than its weights"),
    ("plain", change("in_features", to=2), "its encoder does not make what its networks take"),
    ("plain", tensor("weights.", lambda t: t[:, :1]), "its networks need "),
    ("plain", tensor("weights.", with_one), "holds infinity or NaN"),
    ("own", tensor("weights.", with_one), "holds infinity or NaN"),
    ("plain", larger, "could predict infinity"),
    ("network-several", change("several", to=None), "its targets are not what its arguments ask for"),
    ("network", change("several", to=["a", "b"]), "its targets are not what its arguments ask for"),
    ("network", change("groups", to=[[0, 1]]), "its groups are not what its arguments ask for"),
    ("network-groups", change("groups", to=None), "its groups are not what its arguments ask for"),
    ("network-groups", change("groups", 0, to=[1, 0]), "its groups are no different labels in order"),
    ("network-groups", change("groups", 0, to=[0, 0]), "its groups are no different labels in order"),
    ("network-groups", change("groups", 0, to=[0, 2**63]), "its groups are larger than any label"),
    ("network-members", change("groups", 0, to=[1] * 30), "its groups are no different labels in order"),
    ("network-members", change("groups", 0, to=[10**30]), "its groups are no different labels in order"),
    ("network", tensor("calibration_prints", lambda t: t.double()), "calibration_prints is no list of whole numbers"),
    ("network", change("certificate", "promise", "n_calibration", to=10**6), "does not fit its calibration"),
    ("network", tensor("networks.", with_one), "holds infinity or NaN"),
    ("network", change("meaning", to="something else"), "it was calibrated as something else, and with what"),
]


@pytest.mark.parametrize(("name", "forge", "words"), FORGED)
def test_entries_that_contradict_each_other_are_refused(name, forge, words, folder, tmp_path):
    _, path, own = made(name, folder)
    entries, tensors = opened(path)
    other, _ = opened(made("crossed", folder)[1])
    forge(entries, tensors)
    if entries.get("crossed") == "of another":
        entries["crossed"] = other["crossed"]
    with pytest.raises(gb.ModelFileError) as found:
        gb.load(forged(tmp_path / "m", entries, {key: t.contiguous() for key, t in tensors.items()}), **own)
    assert words in str(found.value)


IDLE = [
    ("plain", {"groups": is_x}, "it holds its own groups: remove groups=..."),
    ("plain", {"method": Mine()}, "it holds its own method: remove method=..."),
    ("risk", {"risk": gb.Risk(0.2, 3)}, "it holds its own risk: remove risk=..."),
    ("plain", {"weights": first_positive}, "it needs no function for weights: remove weights=..."),
    ("plain", {"model": line}, "it holds its own model: remove model=... and residuals=..."),
    ("plain", {"residuals": numbers()}, "it holds its own model: remove model=... and residuals=..."),
    ("rule", {"model": line}, "it holds no model: remove model=... and residuals=..."),
    ("network", {"model": line, "network": triple()}, "it holds a network: remove model=... and residuals=..."),
    (
        "online",
        {"residuals": numbers()},
        "it holds an OnlineCalibrator, which takes model=... and method=...: pass no more.",
    ),
    ("online", {"groups": is_x}, "it holds an OnlineCalibrator, which takes model=... and method=...: pass no more."),
    ("rule", {"groups": is_x}, "it holds its own groups: remove groups=..."),
    ("model", {"model": line, "outputs": half}, "it holds its own outputs: remove outputs=..."),
    (
        "distribution",
        {"model": line},
        "it holds a DistributionCalibrator, which needs nothing of your own: pass nothing.",
    ),
    (
        "distribution",
        {"residuals": numbers()},
        "it holds a DistributionCalibrator, which needs nothing of your own: pass nothing.",
    ),
    (
        "distribution",
        {"groups": is_x},
        "it holds a DistributionCalibrator, which needs nothing of your own: pass nothing.",
    ),
    ("own-groups", {}, "it was made with a groups of your own: pass it as load(..., groups=...)."),
    ("own-risk", {}, "it was made with a risk of your own: pass it as load(..., risk=...)."),
    ("own-online", {}, None),
    ("network", {"network": [triple(), triple()]}, None),
    ("network", {"network": "net"}, None),
    ("network", {}, None),
    ("networks", {"network": triple()}, None),
    ("networks", {"network": [triple(), "net"]}, None),
]


@pytest.mark.parametrize(("name", "given", "words"), IDLE)
def test_what_is_brought_must_be_what_the_file_needs(name, given, words, folder):
    _, path, _ = made(name, folder)
    count = 2 if name == "networks" else 1
    otherwise = f"it holds {count} calibrated network(s): build the network anew and pass network=..."
    if name == "own-online":
        otherwise = "it was made with a method of your own: pass it: gb.OnlineCalibrator.load(path, method=...)."
    with pytest.raises(gb.ModelFileError) as found:
        gb.load(path, **given)
    assert str(found.value) == f"{path}: {words or otherwise}"


def test_what_to_check_depends_on_what_was_brought(folder, tmp_path):
    again = "Get the file again from whoever made it, or fit the model again."
    for name, own, hint in (
        ("plain", {}, again),
        ("own", {"network": own_network}, f"Check what you pass to load. {again}"),
    ):
        entries, tensors = opened(made(name, folder)[1])
        path = forged(tmp_path / name, entries | {"certificate": None}, tensors)
        with pytest.raises(gb.ModelFileError) as found:
            gb.load(path, **own)
        why = "it holds a calibration without its certificate"
        assert str(found.value) == f"{path} does not hold what this version of guardband can use: {why}. {hint}"


def test_a_device_that_is_not_there_is_no_fault_of_the_file(folder):
    with pytest.raises(ValueError, match=r"^device must be") as found:
        gb.load(made("plain", folder)[1], device="nothing")
    assert type(found.value) is ValueError


def test_a_network_of_an_earlier_version_has_no_fingerprints(folder, tmp_path):
    _, path, own = made("network", folder)
    entries, tensors = opened(path)
    del tensors["calibration_prints"]
    assert gb.load(forged(tmp_path / "m", entries, tensors), **own).calibration_prints.shape == (0,)
