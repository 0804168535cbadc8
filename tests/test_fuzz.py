"""Inputs that were finds, or that reach much of the code, are read by every target of ``benchmarks/fuzz`` again."""

import random
import sys
from functools import partial
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent.parent / "benchmarks" / "fuzz"


NAMES = sorted(path.name for path in (FUZZ / "corpus").iterdir())


@pytest.fixture(autouse=True, scope="module")
def _programs():
    """Let modules of the benchmark be imported; none of them stays so, for others have modules of the same names."""
    sys.path.insert(0, str(FUZZ))
    yield
    sys.path.remove(str(FUZZ))
    for name, module in list(sys.modules.items()):
        if str(FUZZ) in (getattr(module, "__file__", None) or ""):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_every_target_has_inputs():
    from targets import FILES

    assert sorted(FILES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_kept_input_is_used_or_refused_in_one_sentence(name):
    from targets import committed, target

    inputs = committed(name)
    assert inputs
    for path in inputs:
        target(name).one(path.read_bytes())


def test_the_corpus_stays_small():
    from targets import CORPUS

    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 300_000


def _other_error():
    return {}["x"]


def test_any_other_error_is_a_find():
    from judging import Find, refused

    with pytest.raises(Find, match="KeyError"):
        refused(_other_error)


@pytest.mark.parametrize("name", ["rules", "monitors", "checkpoints"])
def test_changed_files_get_past_their_checksum(name):
    from targets import committed, target

    import guardband as gb
    from guardband.training.checkpoint import Checkpoint

    own, path = target(name), Path("file")
    read = {"rules": gb.load, "monitors": gb.Monitor.load, "checkpoints": lambda path: Checkpoint(path, "job").load()}
    past = 0
    for seed in range(30):
        data = committed(name)[0].read_bytes()
        path.write_bytes(own.mutate(data, own.longest, seed, partial(_one_bit, seed)))
        try:
            read[name](path)
        except ValueError as error:
            past += "checksum" not in str(error) and "damaged or cut" not in str(error)
        else:
            past += 1
    assert past >= 20


def _one_bit(seed, body, most):
    at = random.Random(seed).randrange(8 * len(body))
    made = body[: at // 8] + bytes([body[at // 8] ^ (1 << at % 8)]) + body[at // 8 + 1 :]
    return made[:most]
