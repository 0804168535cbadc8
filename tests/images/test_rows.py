import io
import os
import struct
import zlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow import parquet
from torch.utils.data import DataLoader

import guardband as gb

RNG = np.random.default_rng(0)


def encoded(seed, size=(20, 20), kind="PNG"):
    pixels = np.random.default_rng(seed).integers(0, 255, (*size, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


@pytest.fixture
def folder(tmp_path):
    for i in range(6):
        (tmp_path / f"{i}.png").write_bytes(encoded(i))
    return tmp_path


def test_a_folder_and_its_labels_are_rows(folder):
    labels = pd.DataFrame({"id": [3, 1, 5], "age": [30.0, 10.0, 50.0]})
    rows = gb.images.from_folder(folder, labels["id"], labels["age"], suffix=".png", size=16)
    assert rows.names == ("3.png", "1.png", "5.png")
    image, y = rows[1]
    assert image.shape == (3, 16, 16)
    assert 0 <= image.min() <= image.max() <= 1
    assert y == 10
    assert len(rows.take([2, 0])) == 2
    assert rows.take([2, 0]).names == ("5.png", "3.png")
    x, y = next(iter(DataLoader(rows, batch_size=3)))
    assert x.shape == (3, 3, 16, 16)
    assert y.tolist() == [30, 10, 50]


def test_parquet_with_bytes_is_rows(tmp_path):
    plain = pd.DataFrame({"id": ["a", "b"], "image": [encoded(0), encoded(1, kind="JPEG")], "age": [1.0, 2.0]})
    plain.to_parquet(tmp_path / "plain.parquet")
    wrapped = plain.assign(image=[{"bytes": b, "path": None} for b in plain["image"]])  # as data sets on hubs have them
    wrapped.to_parquet(tmp_path / "wrapped.parquet")
    for name in ("plain", "wrapped"):
        rows = gb.images.from_parquet(tmp_path / f"{name}.parquet", image="image", target="age", name="id", size=20)
        assert rows.names == ("a", "b")
        assert rows.y.tolist() == [1, 2]
        pixels = np.array(Image.open(io.BytesIO(encoded(0))), dtype=np.float32)
        torch.testing.assert_close(rows.image(0), torch.tensor(pixels).permute(2, 0, 1) / 255)
    with pytest.raises(ValueError, match=r"must hold the columns \['image', 'years'\]"):
        gb.images.from_parquet(tmp_path / "plain.parquet", image="image", target="years")


@pytest.mark.parametrize("workers", [0, 2])
def test_damaged_and_missing_images_are_named_and_none_is_dropped(folder, workers):
    (folder / "2.png").write_bytes(encoded(2)[:200])
    (folder / "4.png").unlink()
    rows = gb.images.from_folder(folder, range(6), np.arange(6.0), suffix=".png", size=16)
    words = r"2 of 6 images cannot be read: 2\.png \(.+\), 4\.png \(missing\)"
    with pytest.raises(gb.images.DamagedImagesError, match=words) as told:
        list(rows.batches(2, workers))
    assert set(told.value.damaged) == {"2.png", "4.png"}
    with pytest.raises(gb.images.DamagedImagesError, match=r"2\.png"):
        rows[2]
    network = torch.nn.Sequential(torch.nn.Flatten(), gb.nn.TripleHead(3 * 16 * 16))
    with pytest.raises(gb.images.DamagedImagesError):  # calibration does not go on without them
        gb.calibrate(network, rows)


def test_augmentation_is_random_over_rows_and_the_same_each_time(folder):
    rows = gb.images.from_folder(folder, [0, 0, 0, 0], np.zeros(4), suffix=".png", size=20)
    changed = rows.augmented(gb.images.Augmentation(rotation=30, seed=1))
    images = [changed.image(i) for i in range(4)]
    assert torch.equal(images[0], changed.image(0))
    assert not torch.equal(images[0], images[1])
    assert not torch.equal(images[0], rows.augmented(gb.images.Augmentation(rotation=30, seed=2)).image(0))
    mirrored = rows.augmented(gb.images.Augmentation(rotation=0))
    found = {torch.equal(mirrored.image(i), rows.image(i)) for i in range(4)}
    assert found == {True, False}
    for i in range(4):
        plain, own = rows.image(i), mirrored.image(i)
        assert torch.equal(own, plain) or torch.equal(own, plain.flip(-1))


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        gb.images.from_folder(tmp_path / "none", ["a"], [1.0])


def test_what_is_no_image_file_is_named_and_never_read_to_its_end(folder):
    """A link may lead to a device without an end, and a table of labels anywhere."""
    (folder / "endless.png").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.png")
    rows = gb.images.from_folder(folder, ["endless", "pipe"], [1.0, 2.0], suffix=".png")
    with pytest.raises(gb.images.DamagedImagesError) as told:
        list(rows.batches())
    assert told.value.damaged == {"endless.png": "not a file", "pipe.png": "not a file"}
    assert rows.fingerprint()
    for name in ("../secret", "/etc/passwd", "a/../../b"):
        with pytest.raises(ValueError, match=r"lies outside of .*: name images by their place"):
            gb.images.from_folder(folder, [name], [1.0])


def test_images_that_unpack_to_too_much_and_strange_ones_are_named(tmp_path):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    def png(width, height):
        head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")

    sources = [png(20_000, 20_000), png(2**31 - 1, 2**31 - 1), png(0, 0), b"GIF89a", b"II*\0\xff\xff\xff\xff", b"BM"]
    table = pa.table({"image": pa.array(sources, pa.binary()), "y": [1.0] * len(sources)})
    parquet.write_table(table, tmp_path / "t.parquet")
    rows = gb.images.from_parquet(tmp_path / "t.parquet", image="image", target="y")
    with pytest.raises(gb.images.DamagedImagesError) as told:
        list(rows.batches())
    assert list(told.value.damaged) == [str(i) for i in range(len(sources))]
    assert "decompression bomb" in told.value.damaged["0"]


def test_a_parquet_file_of_images_is_tested_as_any_table(tmp_path):
    table = pa.table({"image": pa.array([b"x"] * 50, pa.binary()), "y": [1.0] * 50})
    parquet.write_table(table, tmp_path / "t.parquet", compression="none")
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "bad.parquet").write_bytes(whole[:4] + bytes(40) + whole[44:])
    with pytest.raises(ValueError, match="begins as Parquet, but cannot be read"):
        gb.images.from_parquet(tmp_path / "bad.parquet", image="image", target="y")
    # Python makes as many empty bytes of a number as it says.
    parquet.write_table(pa.table({"image": [10**12] * 3, "y": [1.0] * 3}), tmp_path / "numbers.parquet")
    with pytest.raises(ValueError, match="must hold encoded images as bytes, found int"):
        gb.images.from_parquet(tmp_path / "numbers.parquet", image="image", target="y")


def test_an_image_that_is_a_program_is_not_run(tmp_path, monkeypatch):
    """Pillow hands PostScript to the program gs."""
    monkeypatch.setattr("PIL.EpsImagePlugin.has_ghostscript", lambda: pytest.fail("Ghostscript was asked for"))
    program = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n(x) print\n%%EOF\n"
    (tmp_path / "a.png").write_bytes(program)
    rows = gb.images.from_folder(tmp_path, ["a.png"], [1.0])
    with pytest.raises(ValueError, match=r"1 of 1 images cannot be read: a.png \(cannot identify image file"):
        rows.image(0)


def test_a_small_file_of_many_pixels_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr("guardband.images.rows.MOST_PIXELS", 300)
    (tmp_path / "a.png").write_bytes(encoded(0))
    with pytest.raises(ValueError, match="20 by 20 pixels, more than 300"):
        gb.images.from_folder(tmp_path, ["a.png"], [1.0]).image(0)
