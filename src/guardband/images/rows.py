"""Images with their responses: from a folder with a table of labels, or from Parquet with encoded bytes."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from guardband.data.disk import open_table
from guardband.data.packages import need_packages
from guardband.data.table import as_array
from guardband.data.target import read_target
from guardband.data.whole_table import whole_of

Array = NDArray[np.float64]
NAMED = 5
FORMATS = ("JPEG", "PNG", "TIFF", "BMP", "GIF", "WEBP", "PPM", "JPEG2000", "AVIF")
"""Those that are pictures and nothing else: of others some are programs, which Ghostscript would run."""
MOST_PIXELS = 90_000_000
"""A file of a few kilobytes may say that it is larger than memory."""


class DamagedImagesError(ValueError):
    """Some images cannot be read; ``damaged`` maps their names to the reasons."""

    def __init__(self, damaged: dict[str, str], of: int) -> None:
        listed = ", ".join(f"{name} ({why})" for name, why in list(damaged.items())[:NAMED])
        more = ", ..." if len(damaged) > NAMED else ""
        super().__init__(
            f"{len(damaged)} of {of} images cannot be read: {listed}{more}. Repair them, or remove them before you "
            "split the rows."
        )
        self.damaged = damaged


@dataclass(frozen=True)
class Augmentation:
    """A random turn of at most ``rotation`` degrees and, half of the time, a mirror image; for rows that train.

    Parameters
    ----------
    rotation : float, default 20.0
        The largest angle by which an image is turned, in degrees.
    flip : bool, default True
        Whether half of the images are mirrored. Use False if left and right mean something.
    seed : int, default 0
        The seed. The same seed changes a row in the same way.
    """

    rotation: float = 20.0
    flip: bool = True
    seed: int = 0

    def __call__(self, image: Any, row: int) -> Any:
        """Return the image changed, the same way each time for the same row and seed."""
        from PIL import Image

        random = np.random.default_rng([self.seed, row])
        turned = image.rotate(random.uniform(-self.rotation, self.rotation), Image.Resampling.BILINEAR)
        mirror = self.flip and random.random() < 0.5
        return turned.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirror else turned


@dataclass(frozen=True)
class ImageRows(Dataset[tuple[Tensor, Tensor]]):
    """Images and their targets; row i is a tensor ``(3, size, size)`` with values in [0, 1], and its target.

    An image that cannot be decoded raises ``DamagedImagesError`` with its name. None is left out silently, because
    calibration rows that were chosen by what can be read are no longer a random sample.

    Parameters
    ----------
    names : tuple of str
        The names of the images, for messages.
    sources : tuple of path or bytes
        The files, or the encoded images themselves.
    y : array of shape (n,)
        The targets.
    size : int, default 224
        The width and height of the images, in pixels. Use the size that the network was trained with.
    augmentation : Augmentation, default None
        Random changes of the images, for training alone.
    """

    names: tuple[str, ...]
    sources: tuple[Path | bytes, ...]
    y: Array
    size: int = 224
    augmentation: Augmentation | None = None

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return self.image(i), torch.tensor(self.y[i], dtype=torch.float32)

    def image(self, i: int) -> Tensor:
        """Return one image, ``(3, size, size)``.

        Parameters
        ----------
        i : int
            The position of the row.
        """
        found = self._decoded(i)
        if isinstance(found, str):
            raise DamagedImagesError({self.names[i]: found}, len(self))
        return found

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> ImageRows:
        """Return some of the rows, in the order given.

        Parameters
        ----------
        rows : sequence of int
            The positions of the rows.
        """
        some = [int(i) for i in rows]
        names, sources = tuple(self.names[i] for i in some), tuple(self.sources[i] for i in some)
        return replace(self, names=names, sources=sources, y=self.y[some])

    def augmented(self, augmentation: Augmentation) -> ImageRows:
        """Return the rows with random changes, for training alone.

        Parameters
        ----------
        augmentation : Augmentation
            The changes.
        """
        return replace(self, augmentation=augmentation)

    def resized(self, size: int) -> ImageRows:
        """Return the rows at another size.

        Parameters
        ----------
        size : int
            The width and height of the images, in pixels. Use the size that the network was trained with.
        """
        return replace(self, size=size)

    def batches(self, batch_size: int = 64, workers: int = 0) -> Iterator[Tensor]:
        """Give the images in batches, decoded in worker processes if asked; at the end all damaged ones are named.

        Parameters
        ----------
        batch_size : int, default 64
            How many images are computed at once. Lower it if memory runs out.
        workers : int, default 0
            How many processes decode images. Raise it if decoding is slower than the network.
        """
        context = "spawn" if workers else None  # a forked process may wait for threads that it does not have
        loader = DataLoader(
            _Decoded(self), batch_size, num_workers=workers, collate_fn=list, multiprocessing_context=context
        )
        damaged: dict[str, str] = {}
        row = 0
        for found in loader:
            failed = {self.names[row + i]: why for i, why in enumerate(found) if isinstance(why, str)}
            damaged |= failed
            row += len(found)
            if not damaged:
                yield torch.stack(found)
        if damaged:
            raise DamagedImagesError(damaged, len(self))

    def fingerprint(self) -> str:
        """Return a digest of the encoded images, their size and augmentation."""
        digest = hashlib.sha256(repr((self.size, self.augmentation)).encode())
        for source in self.sources:
            digest.update(hashlib.sha256(source if isinstance(source, bytes) else _bytes_of(source)).digest())
        return digest.hexdigest()

    def _decoded(self, i: int) -> Tensor | str:
        """Return one image, or why it cannot be read."""
        from PIL import Image

        source = self.sources[i]
        try:
            encoded = source if isinstance(source, bytes) else _bytes_in(source)
            with Image.open(io.BytesIO(encoded), formats=FORMATS) as opened:
                if opened.width * opened.height > MOST_PIXELS:
                    return f"{opened.width:,} by {opened.height:,} pixels, more than {MOST_PIXELS:,}"
                image = opened.convert("RGB")
        except FileNotFoundError:
            return "missing"
        except Exception as error:  # what reads a format may raise anything
            return str(error).split("\n")[0].replace(str(source), "").strip() or type(error).__name__
        if image.size != (self.size, self.size):
            image = image.resize((self.size, self.size), Image.Resampling.BILINEAR)
        if self.augmentation is not None:
            image = self.augmentation(image, i)
        return torch.from_numpy(np.asarray(image, dtype=np.float32) / 255).permute(2, 0, 1).contiguous()


class _Decoded(Dataset[Any]):
    """The images alone, or why they cannot be read."""

    def __init__(self, rows: ImageRows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, i: int) -> Tensor | str:
        return self._rows._decoded(i)


def from_folder(folder: str | Path, names: Any, y: Any, *, suffix: str = "", size: int = 224) -> ImageRows:
    """Return images of a folder with their targets.

    Parameters
    ----------
    folder : str or path
        The folder.
    names : sequence of str
        The names of the files, one for each row.
    y : array of shape (n,)
        The targets, in the same order.
    suffix : str, default ""
        What to add to each name, such as ".png".
    size : int, default 224
        The width and height of the images, in pixels. Use the size that the network was trained with.
    """
    listed = [str(name) for name in as_array(names)]
    paths = tuple(Path(folder) / f"{name}{suffix}" for name in listed)
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"There is no folder {folder}. Check the path.")
    top = os.path.abspath(folder)
    outside = [path for path in paths if not Path(os.path.abspath(path)).is_relative_to(top)]
    if outside:
        raise ValueError(f"The image {outside[0]} lies outside of {folder}: name images by their place in that folder.")
    return ImageRows(tuple(path.name for path in paths), paths, read_target(y, len(paths)), size)


def from_parquet(path: str | Path, *, image: str, target: str, name: str | None = None, size: int = 224) -> ImageRows:
    """Return images of a Parquet file with their targets.

    Parameters
    ----------
    path : str or path
        The Parquet file.
    image : str
        The column of encoded images.
    target : str
        The column of targets.
    name : str, default None
        The column of names, for messages. None uses the number of the row.
    size : int, default 224
        The width and height of the images, in pixels. Use the size that the network was trained with.
    """
    need_packages("images", "pyarrow")
    columns = [image, target, *([name] if name else [])]
    disk = open_table(str(path))
    missing = [column for column in columns if column not in disk.names]
    if missing:
        raise ValueError(f"{path} must hold the columns {columns}, found {list(disk.names)}.")
    table = whole_of(disk, columns)
    with disk.reading():
        encoded = table.column(image).to_pylist()
        encoded = [entry.get("bytes") if isinstance(entry, dict) else entry for entry in encoded]
        names = [str(entry) for entry in (table.column(name).to_pylist() if name else range(len(encoded)))]
        y = read_target(table.column(target).to_numpy(), len(encoded))
    strange = next((entry for entry in encoded if not isinstance(entry, bytes | None)), None)
    if strange is not None:
        raise ValueError(
            f"The column {image!r} of {path} must hold encoded images as bytes, found {type(strange).__name__}: write "
            "the bytes of the image files into it."
        )
    return ImageRows(tuple(names), tuple(entry or b"" for entry in encoded), y, size)


def _bytes_in(path: Path) -> bytes:
    """Return the bytes of a file; a device or a pipe, perhaps by a link, would have no end."""
    if path.exists() and not path.is_file():
        raise ValueError("not a file")
    return path.read_bytes()


def _bytes_of(path: Path) -> bytes:
    try:
        return _bytes_in(path)
    except (OSError, ValueError):
        return b""
