"""What a calibrated network refuses to load, it refuses before anything is changed."""

import copy

import pytest
import torch
from torch import nn

import guardband as gb

torch.manual_seed(0)
X = torch.randn(200, 4)
Y = X.sum(1) + torch.randn(200)
LEVELS = (0.025, 0.05, 0.5, 0.95, 0.975)


def guarded(width=8, seed=1, **asked):
    torch.manual_seed(seed)
    return gb.calibrate(gb.nn.FullyConnected(4, (width,)), (X, Y), **asked)


def without(state, name):
    return {key: value for key, value in state.items() if key != name}


def refused_states():
    own = guarded(seed=2).state_dict()
    return {
        "another method": guarded(method="cqr").state_dict(),
        "another level": guarded(confidence_level=0.8).state_dict(),
        "more levels": guarded(confidence_level=[0.9, 0.5]).state_dict(),
        "another guarantee": guarded(guarantee="pac").state_dict(),
        "other outputs": guarded(outputs=lambda out: out).state_dict(),
        "another shape": guarded(width=9).state_dict(),
        "no threshold": without(own, "calibration.threshold"),
        "no weight": without(own, "networks.0.0.weight"),
        "no certificate": without(own, "_extra_state"),
        "more than there is": own | {"networks.1.0.weight": torch.zeros(8, 4)},
        "nothing": {},
    }


@pytest.fixture(scope="module")
def refused():
    return refused_states()


def everything(network):
    return {name: copy.deepcopy(value) for name, value in network.state_dict().items()}


def assert_unchanged(network, before, certificate, out):
    after = network.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(value, before[name]) for name, value in after.items())
    assert network.certificate == certificate
    assert torch.equal(network(X), out)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("what", list(refused_states()))
def test_a_refused_state_leaves_all_as_it_was(refused, what, strict):
    here = guarded()
    before, certificate, out = everything(here), here.certificate, here(X)
    with pytest.raises(ValueError, match="A state must"):
        here.load_state_dict(refused[what], strict=strict)
    assert_unchanged(here, before, certificate, out)


class Larger(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.beside = inner, nn.Linear(2, 2)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("what", list(refused_states()))
def test_a_refused_state_of_a_larger_module_leaves_its_calibrated_part_as_it_was(refused, what, strict):
    here = guarded()
    larger = Larger(here)
    before, certificate, out = everything(here), here.certificate, here(X)
    state = {f"inner.{name}": value for name, value in refused[what].items()}
    beside = {f"beside.{name}": torch.ones_like(value) for name, value in larger.beside.state_dict().items()}
    with pytest.raises(ValueError, match="A state must"):
        larger.load_state_dict(state | beside, strict=strict)
    assert_unchanged(here, before, certificate, out)


def test_a_state_of_a_larger_module_comes_back_whole():
    here, other = guarded(), guarded(seed=2)
    Larger(here).load_state_dict(Larger(other).state_dict())
    assert torch.equal(here(X), other(X))
    assert here.certificate == other.certificate


READ = {
    "bands": {"outputs": "bands"},
    "bounds": {"outputs": "bounds"},
    "gaussian": {"outputs": "gaussian"},
    "quantiles": {"outputs": LEVELS},
    "other quantiles": {"outputs": (0.03, 0.05, 0.5, 0.95, 0.97)},
    "a function": {"outputs": lambda out: out},
}


def passing(asked, method="conf-fw"):
    """Return a calibrated network without weights, so that only the reading tells states apart."""
    outputs = asked["outputs"]
    columns = {"bands": 3, "bounds": 2, "gaussian": 2}.get(outputs, 3) if callable(outputs) or outputs in READ else 5
    x = X.abs().cumsum(1)
    x = torch.cat([x, x[:, -1:] + 1], 1)[:, :columns]
    return gb.calibrate(nn.Identity(), (x, Y), method, **asked), x


@pytest.mark.parametrize("saved", list(READ))
@pytest.mark.parametrize("shell", list(READ))
def test_a_state_goes_only_where_outputs_are_read_alike(saved, shell):
    (here, x), (other, _) = passing(READ[shell]), passing(READ[saved])
    before, out = everything(here), here(x)
    if saved == shell:
        here.load_state_dict(other.state_dict())
        assert torch.equal(here(x), other(x))
        return
    with pytest.raises(ValueError, match="A state must come from a network that was calibrated in the same way"):
        here.load_state_dict(other.state_dict())
    assert all(torch.equal(value, before[name]) for name, value in here.state_dict().items())
    assert torch.equal(here(x), out)


def test_a_state_goes_only_where_the_same_pair_of_quantiles_is_taken():
    (here, x), (other, _) = (passing({"outputs": LEVELS, "tau": tau}, "conf-nn") for tau in (0.1, 0.05))
    before, certificate, out = everything(here), here.certificate, here(x)
    with pytest.raises(ValueError, match="A state must come from a network that was calibrated in the same way"):
        here.load_state_dict(other.state_dict())
    assert all(torch.equal(value, before[name]) for name, value in here.state_dict().items())
    assert here.certificate == certificate
    assert torch.equal(here(x), out)


def test_a_copy_refuses_what_its_original_refuses(refused):
    here = copy.deepcopy(guarded())
    with pytest.raises(ValueError, match="A state must"):
        here.load_state_dict(refused["another level"])
    here.load_state_dict(guarded(seed=2).state_dict())
    assert torch.equal(here(X), guarded(seed=2)(X))


def test_a_state_with_rounded_thresholds_is_refused():
    x, y = torch.randn(200, 3), torch.randn(200)
    guarded = gb.calibrate(torch.nn.Sequential(torch.nn.Linear(3, 4), gb.nn.TripleHead(4)), (x, y))
    state = {name: t.bfloat16() if name.startswith("calibration.") else t for name, t in guarded.state_dict().items()}
    with pytest.raises(ValueError, match="must keep its precision"):
        guarded.load_state_dict(state)


def test_a_cut_that_is_no_dataclass_exchanges_states():
    class Own(gb.Cut):
        word = "own"

        def calibrate(self, *given):
            return gb.extend.MarginalCut().calibrate(*given)

    x, y = torch.randn(200, 3), torch.randn(200)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), gb.nn.TripleHead(4))
    one, two = (gb.calibrate(net, (x, y + shift), guarantee=Own()) for shift in (0, 1))
    two.load_state_dict(one.state_dict())
    assert torch.equal(one(x), two(x))
