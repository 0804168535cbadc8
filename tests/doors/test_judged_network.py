"""The audit of a calibrated network, and its page."""

import numpy as np
import pytest
import torch
from torch import nn

import guardband as gb
from reported import is_headed

torch.manual_seed(0)
X = torch.randn(900, 4)
Y = X.sum(1) + torch.randn(900)
OLD, NEW = slice(0, 400), slice(400, 900)


def build():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), gb.nn.TripleHead(8))


GUARDED = gb.calibrate(build(), (X[OLD], Y[OLD]))


@pytest.mark.parametrize("as_kind", [lambda t: t, lambda t: t.numpy()])
def test_new_rows_judge_a_network(as_kind):
    found = GUARDED.audit(as_kind(X[NEW]), as_kind(Y[NEW]), group=np.arange(500) % 2, batch_size=7)
    assert found.verdict == "consistent"
    out = GUARDED(X[NEW])
    assert found.levels[0].covered == int(((out[:, 0] <= Y[NEW]) & (Y[NEW] <= out[:, 2])).sum())
    assert found.levels[0].covered / 500 == gb.metrics.coverage(Y[NEW], out)
    assert {family.title for family in found.families} >= {"x0", "x3"}
    assert GUARDED.audit(X[NEW], 9 * Y[NEW]).verdict == "broken"


def test_calibration_rows_cannot_judge_also_after_loading(tmp_path):
    GUARDED.save(tmp_path / "network")
    for guarded in (GUARDED, gb.load(tmp_path / "network", network=build())):
        found = guarded.audit(X[OLD], Y[OLD])
        assert found.verdict == "cannot judge"
        assert "400 of 400 rows" in found.sentence


def test_several_levels_and_inputs_that_are_no_matrix(tmp_path):
    network = nn.Sequential(nn.Flatten(), build())
    guarded = gb.calibrate(network, (X[OLD].reshape(-1, 2, 2), Y[OLD]), confidence_level=[0.9, 0.5])
    found = guarded.audit((X[NEW].reshape(-1, 2, 2),), Y[NEW])
    assert [level.level for level in found.levels] == [0.9, 0.5]
    page = guarded.report(tmp_path / "page.html", X[NEW].reshape(-1, 2, 2), Y[NEW])
    assert found.sentence.split(": ")[1] in page.read_text()


def test_without_rows_the_page_shows_the_promise(tmp_path):
    text = GUARDED.report(tmp_path / "page.html").read_text()
    assert "Not yet checked" in text
    assert "Sequential" in text


def test_the_page_of_a_network_takes_title_author_and_unit(tmp_path):
    page = GUARDED.report(tmp_path / "p.html", X[NEW], Y[NEW], title="Sales", author="A. Analyst", unit="EUR")
    assert is_headed(page.read_text(encoding="utf-8"))


def test_rows_must_be_tensors_with_their_true_values():
    with pytest.raises(TypeError, match="x must be a tensor"):
        GUARDED.audit("rows", Y)
    with pytest.raises(ValueError, match="y"):
        GUARDED.audit(X[NEW], Y[:7])


def test_an_audit_takes_all_that_calibrate_takes():
    torch.manual_seed(0)
    x, y = torch.randn(300, 2), torch.randn(300)
    net = torch.nn.Sequential(torch.nn.Linear(2, 8), gb.nn.TripleHead(8))
    guarded = gb.calibrate(net, (x[:100], y[:100]))
    one = guarded.audit(x[100:], y[100:])
    data = torch.utils.data.TensorDataset(x[100:], y[100:])
    loader = torch.utils.data.DataLoader(data, batch_size=64)
    named = [{"x": x[a : a + 64], "price": y[a : a + 64]} for a in range(100, 300, 64)]
    for every in ((x[100:], y[100:]), data, loader):
        assert guarded.audit(every).verdict == one.verdict
    by_name = gb.calibrate(Named(net), [{"x": x[:100], "price": y[:100]}], target="price")
    assert by_name.audit(named, target="price").verdict == one.verdict
    with pytest.raises(TypeError, match=r"Pass inputs and true values, as \(x, y\)"):
        guarded.audit(x)
    with pytest.raises(ValueError, match="The data hold no rows"):
        guarded.audit([])


class Named(torch.nn.Module):
    """A network that takes its input by name."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(x)


def test_a_page_takes_a_loader(tmp_path):
    pytest.importorskip("guardband.report.page")
    x, y = torch.randn(300, 2), torch.randn(300)
    guarded = gb.calibrate(torch.nn.Sequential(torch.nn.Linear(2, 8), gb.nn.TripleHead(8)), (x[:100], y[:100]))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[100:], y[100:]), batch_size=64)
    assert "200" in guarded.report(tmp_path / "page.html", loader).read_text()
