"""What a fit on Ray cannot do is refused before Ray is loaded, in one sentence."""

import pytest


@pytest.fixture(autouse=True)
def no_ray(monkeypatch):
    """Let no command start Ray."""
    monkeypatch.setattr("guardband.ray.cluster.connect", lambda *a: pytest.fail("Ray was started"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--memory-limit", "2"), "--memory-limit is for a fit on Ray. Add --ray"),
        (("--checkpoints", "there"), "--checkpoints is for a fit on Ray. Add --ray"),
        (("--ray", "local", "--folds", "4"), 'folds=4 has no effect with calibration="split"'),
        (("--ray", "local", "--weight", "x"), "--weight cannot be used with --ray"),
        (("--ray", "local", "--check", "0.2"), "--check cannot be used with --ray"),
        (("--ray", "local", "--report", "page.html"), "--report cannot be used with --ray"),
        (("--ray", " "), "--ray needs local or the address"),
    ],
)
def test_what_cannot_be_is_refused(command, small_model, more, said):
    assert said in command("fit", small_model.path, "--target", "y", *more).complaint


def test_cells_on_ray_have_no_jobs(command, tmp_path):
    run = command("reproduce", "simulation", "--quick", "-o", str(tmp_path), "--ray", "local", "--jobs", "2")
    assert "--ray and --jobs exclude each other" in run.complaint
