"""Features of images, computed once: kept on disk by what they depend on."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from guardband.data.files import write_whole
from guardband.images.backbone import Backbone
from guardband.images.rows import ImageRows

DIGEST = 32
Progress = Callable[[int, int], None]
"""Called with how many images are done, and of how many."""


def features(
    rows: ImageRows,
    backbone: Backbone,
    *,
    cache: str | Path | None = None,
    batch_size: int = 64,
    workers: int = 0,
    progress: Progress = lambda done, of: None,
) -> NDArray[np.float32]:
    """Return the features of all rows, ``(n, d)``.

    A cached file that has changed since it was written is computed again.

    Parameters
    ----------
    rows : ImageRows
        The images.
    backbone : Backbone
        The pre-trained network.
    cache : str or path, default None
        A folder in which features are kept for the next call. None keeps nothing.
    batch_size : int, default 64
        How many images are computed at once. Lower it if memory runs out.
    workers : int, default 0
        How many processes decode images. Raise it if decoding is slower than the network.
    progress : function, default None
        Called after each batch with how many images are done, and of how many.
    """
    rows = rows.resized(backbone.size)
    file = None
    if cache is not None:
        key = hashlib.sha256(f"{backbone.fingerprint()} {rows.fingerprint()}".encode()).hexdigest()
        file = Path(cache) / f"{key}.npy"
        kept = _kept(file)
        if kept is not None and len(kept) == len(rows):
            return kept
    parts: list[NDArray[np.float32]] = []
    for images in rows.batches(batch_size, workers):
        parts.append(backbone(images).float().cpu().numpy())
        progress(sum(map(len, parts)), len(rows))
    found = np.concatenate(parts)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, partial(_save, found))
    return found


def _save(found: NDArray[np.float32], path: Path) -> None:
    body = io.BytesIO()
    np.save(body, found, allow_pickle=False)
    path.write_bytes(body.getvalue() + hashlib.sha256(body.getbuffer()).digest())  # numpy reads no further than its own


def _kept(file: Path) -> NDArray[np.float32] | None:
    """Return what was kept, None if there is nothing or its checksum, the last bytes, does not match."""
    if not file.is_file():
        return None
    whole = memoryview(file.read_bytes())
    body, digest = whole[:-DIGEST], whole[-DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        return None
    kept: NDArray[np.float32] = np.load(io.BytesIO(body), allow_pickle=False)
    return kept
