"""Options of Ray are refused where they have no meaning, before Ray is loaded."""

import os
import socket
import sys

import pytest

from guardband.ray.cluster import MEMORY_OPTION, _join, connect


@pytest.fixture(autouse=True)
def no_ray(monkeypatch):
    """Let no command start Ray."""
    monkeypatch.setattr("guardband.ray.cluster.connect", lambda *a: pytest.fail("Ray was started"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("predict", "MODEL", "TABLE", "-o", "out", "--skip-corrupt"), "--skip-corrupt works with --ray only"),
        (("audit", "MODEL", "TABLE", "--skip-corrupt"), "--skip-corrupt works with --ray only"),
        (("predict", "MODEL", "TABLE", "-o", "out", "--ray", " "), "--ray needs local or the address"),
        (("predict", "MODEL", "TABLE", "--ray", "local"), "Name files, and a folder with -o OUT/"),
        (("predict", "MODEL", "TABLE", "-o", "TABLE", "--ray", "local"), "cannot be a folder"),
        (("audit", "MODEL", "TABLE", "--ray", "local", "--all"), "--all needs the rows themselves"),
        (("predict", "MODEL", "s3://b/x.csv", "-o", "out.csv"), "is in object storage, which only --ray reads"),
        (("predict", "MODEL", "TABLE", "-o", "s3://b/x.csv"), "is in object storage, which only --ray writes to"),
        (("audit", "MODEL", "s3://b/x.csv"), "is in object storage, which only --ray reads"),
        (("audit", "MODEL", "s3://a:hidden@b/x.csv", "--ray", "local"), "must not hold credentials"),
        (("predict", "MODEL", "TABLE", "-o", "s3://a:hidden@b/x", "--ray", "local"), "must not hold credentials"),
        (
            ("monitor", "MODEL", "TABLE", "--state", "s", "--ray", "local", "--split-by", "a"),
            "--split-by needs the rows",
        ),
        (("monitor", "MODEL", "TABLE", "--state", "s", "--ray", "local", "--recalibrate", "b"), "--recalibrate needs"),
    ],
)
def test_what_cannot_be_is_refused(command, small_model, arguments, said):
    places = {"MODEL": small_model.model_path, "TABLE": small_model.path}
    complaint = command(*(places.get(own, own) for own in arguments)).complaint
    assert said in complaint
    assert "hidden" not in complaint


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--keep-scores", 10), "--keep-scores works with --ray only"),
        (("--ray", "local", "--sheet", "k"), "--sheet and --ray exclude each other"),
        (("--ray", "local", "--group", "g"), "--training must say which groups there are"),
    ],
)
def test_calibrate_refuses_what_ray_cannot_do(command, tmp_path, more, said):
    (tmp_path / "b.csv").write_text("m,y,g,k\n1,2,a,1\n2,3,b,2\n")
    asked = ("calibrate", tmp_path / "b.csv", "--point", "m", "--target", "y", "-o", tmp_path / "r.rule")
    assert said in command(*asked, *more).complaint


def test_without_ray_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr("guardband.data.packages.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "guardband\[ray\]"'):
        connect()


def test_an_address_where_nobody_listens_is_refused_before_ray_tries(monkeypatch):
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    monkeypatch.setattr(ray, "init", lambda **options: pytest.fail("Ray tries for minutes"))
    with socket.create_server(("127.0.0.1", 0)) as own:
        address = f"127.0.0.1:{own.getsockname()[1]}"
    with pytest.raises(ConnectionError, match=f"There is no Ray at {address}: .*refused. Check the address"):
        _join(address, {})


def test_a_cluster_that_this_machine_cannot_join_is_told_from_one_that_is_not_there(monkeypatch):
    ray = pytest.importorskip("ray", reason="needs the extra ray")

    def refused(**options):
        raise ConnectionError("Failed to connect to Ray cluster")

    monkeypatch.setattr(ray, "init", refused)
    with socket.create_server(("127.0.0.1", 0)) as own:
        address = f"127.0.0.1:{own.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=r"this machine cannot join: Failed to connect.*auth_token, copy it"):
            _join(address, {})
    with pytest.raises(ConnectionError, match="There is no Ray at auto"):
        _join("auto", {})


def test_what_needs_too_much_memory_is_not_begun_anew_for_ever(monkeypatch):
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    monkeypatch.setenv(MEMORY_OPTION, "")
    monkeypatch.delenv(MEMORY_OPTION)
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    connect()
    assert int(os.environ[MEMORY_OPTION]) < 10
    monkeypatch.setenv(MEMORY_OPTION, "-1")
    connect()
    assert os.environ[MEMORY_OPTION] == "-1"
