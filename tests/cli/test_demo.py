import pytest

pytest.importorskip("guardband.report.page")


def test_demo_prints_table_and_certificates_and_writes_figure_and_page(command, tmp_path):
    said = command("demo", "--rows", "600", "-o", tmp_path / "out")
    assert said.code == 0, said.err
    for part in ("conf-nn", "pav", "coverage", "width / best possible", "mean absolute error", "Promise:", "Assumes:"):
        assert part in said.out
    assert (tmp_path / "out" / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (tmp_path / "out" / "demo.html").read_text()
