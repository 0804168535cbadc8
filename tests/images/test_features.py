import hashlib
import io
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import guardband as gb
from guardband.images.backbone import downloaded, torchvision
from guardband.images.rows import ImageRows


def some(n=5, size=20, seed=0):
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        file = io.BytesIO()
        Image.fromarray(rng.integers(0, 255, (size, size, 3), dtype=np.uint8)).save(file, "PNG")
        out.append(file.getvalue())
    return ImageRows(tuple(map(str, range(n))), tuple(out), np.arange(float(n)), size)


def tiny(seed=0, layer="0"):
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten())
    return gb.images.Backbone(network, layer, 12, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25))


def test_features_are_the_layers_output_averaged_over_places():
    rows, extractor = some(), tiny()
    images = torch.stack([rows.resized(12).image(i) for i in range(5)])
    expected = extractor.network[0]((images - 0.5) / 0.25).mean(dim=(2, 3))
    np.testing.assert_allclose(gb.images.features(rows, extractor, batch_size=2), expected, rtol=1e-4, atol=1e-5)
    assert gb.images.features(rows, tiny(layer="2")).shape == (5, 4 * 10 * 10)
    with pytest.raises(ValueError, match="layer must be a name"):
        tiny(layer="nothing")


def test_the_backbone_is_frozen_and_in_eval_mode():
    extractor = tiny()
    assert not any(p.requires_grad for p in extractor.network.parameters())
    assert not extractor.network.training


def test_features_are_computed_once(tmp_path):
    rows, extractor = some(), tiny()
    seen = []
    first = gb.images.features(rows, extractor, cache=tmp_path, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(5, 5)]
    again = gb.images.features(rows, tiny(), cache=tmp_path, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(5, 5)]
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    "changed",
    [
        (some(seed=1), tiny()),
        (some(), tiny(seed=1)),
        (some(), tiny(layer="1")),
        (some().augmented(gb.images.Augmentation(seed=3)), tiny()),
        (some().take([1, 0, 2, 3, 4]), tiny()),
    ],
    ids=["images", "weights", "layer", "augmentation", "order"],
)
def test_whatever_they_depend_on_makes_other_features(changed, tmp_path):
    gb.images.features(some(), tiny(), cache=tmp_path)
    gb.images.features(*changed, cache=tmp_path)
    assert len(list(tmp_path.glob("*.npy"))) == 2


def test_features_that_have_changed_on_disk_are_computed_again(tmp_path):
    rows, extractor = some(), tiny()
    expected = gb.images.features(rows, extractor, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    whole, random = file.read_bytes(), np.random.default_rng(0)
    bits = random.permutation(8 * len(whole))[:100]
    damaged = [bytearray(whole) for _ in bits]
    for body, bit in zip(damaged, bits, strict=True):
        body[bit // 8] ^= 1 << (bit % 8)
    old = io.BytesIO()
    np.save(old, expected + 1)  # as it was kept without a checksum
    for body in [*damaged, whole[:-1], whole[:40], b"", old.getvalue()]:
        file.write_bytes(body)
        np.testing.assert_array_equal(gb.images.features(rows, extractor, cache=tmp_path), expected)
        assert file.read_bytes() == whole


def test_downloaded_weights_are_checked_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    body = b"weights"
    name = f"net-{hashlib.sha256(body).hexdigest()[:8]}.pth"
    (tmp_path / name).write_bytes(body)
    file = downloaded((tmp_path / name).as_uri())
    assert file.read_bytes() == body
    (tmp_path / name).unlink()
    assert downloaded((tmp_path / name).as_uri()) == file
    file.write_bytes(b"waights")
    with pytest.raises(ValueError, match=r"are damaged\. Remove the file"):
        downloaded((tmp_path / name).as_uri())


def test_damaged_images_leave_no_features(tmp_path):
    rows = some()
    broken = ImageRows(rows.names, (*rows.sources[:4], b"nothing"), rows.y, rows.size)
    with pytest.raises(gb.images.DamagedImagesError, match="1 of 5"):
        gb.images.features(broken, tiny(), cache=tmp_path)
    assert not list(tmp_path.iterdir())


def test_efficientnet_lite0_comes_with_its_weights():
    extractor = gb.images.backbone("efficientnet-lite0")
    found = gb.images.features(some(2, 64), extractor)
    assert found.shape == (2, 1280)
    assert np.isfinite(found).all()
    assert found.std() > 0.1
    with pytest.raises(ValueError, match="one of efficientnet-lite0, inception-v3"):
        gb.images.backbone("resnet")


def test_inception_v3_loads_from_a_file_with_a_layer_of_choice(tmp_path):
    if find_spec("torchvision") is None:
        pytest.skip("needs torchvision")
    torch.manual_seed(0)
    network = torchvision().models.inception_v3(weights=None, init_weights=False)
    torch.save(network.state_dict(), tmp_path / "inception.pth")
    extractor = gb.images.backbone("inception-v3", weights=tmp_path / "inception.pth", layer="Mixed_6e")
    assert gb.images.features(some(1, 32), extractor).shape == (1, 768)
    last = gb.images.backbone("inception-v3", weights=tmp_path / "inception.pth")
    assert gb.images.features(some(1, 32), last).shape == (1, 2048)
