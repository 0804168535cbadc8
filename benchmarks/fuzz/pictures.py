"""Images: each becomes numbers between 0 and 1, or is named with the reason."""

from __future__ import annotations

import io
import random

import numpy as np
from judging import Find, Target, refused
from mutate import Raw, with_png_checksums

from guardband.images.rows import FORMATS, ImageRows

SIZE = 8


def image(data: bytes) -> None:
    """Decode an image."""
    rows = ImageRows(("a.png",), (data,), np.zeros(1), SIZE)

    def work() -> None:
        found = rows.image(0)
        if tuple(found.shape) != (3, SIZE, SIZE) or not ((found >= 0) & (found <= 1)).all():
            raise Find("it is no image of that size")

    refused(work)


def _images() -> dict[str, bytes]:
    from PIL import Image, features

    made, random_ = {}, np.random.default_rng(0)
    colours = Image.fromarray(random_.integers(0, 255, (5, 7, 3), dtype=np.uint8))
    modes = {"PNG": ("RGB", "P", "1", "LA", "I;16"), "TIFF": ("RGB", "F"), "GIF": ("P",)}
    for name in FORMATS:
        for mode in modes.get(name, ("RGB",)):
            sink = io.BytesIO()
            try:
                (colours.convert("I").convert("I;16") if mode == "I;16" else colours.convert(mode)).save(sink, name)
            except (OSError, KeyError, ValueError):
                continue
            made[f"{name} {mode}".replace(";", "")] = sink.getvalue()
    sink = io.BytesIO()
    colours.save(sink, "PNG", interlace=1, pnginfo=None)
    assert features
    return made


def _changed(data: bytes, most: int, seed: int, raw: Raw) -> bytes:
    made = raw(data, most)
    if data.startswith(b"\x89PNG") and random.Random(seed).random() < 0.8:
        made = with_png_checksums(made)[:most]
    return made


TARGETS = {"images": Target(image, _images, _changed, longest=2_000)}
