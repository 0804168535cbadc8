"""``guardband audit --ray``: the verdict on rows of many files, from counts alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from guardband.cli.console import Speaker, complain
from guardband.cli.exit_codes import CANNOT_JUDGE, REFUSED, exit_code

if TYPE_CHECKING:
    from guardband.audit.audit import Audit
    from guardband.audit.several import SeveralAudit


def audit_on_ray(
    of_model: tuple[Path, Path | None, str],
    table_paths: Sequence[str],
    target: str | None,
    significance: float,
    skip_corrupt: bool,
    address: str,
    speaker: Speaker,
) -> NoReturn:
    """Audit files, say what came of it, and end with the exit code of the verdict."""
    from guardband.audit.promised_groups import findings_of_groups, group_lines, promised_groups
    from guardband.audit.several import SeveralAudit
    from guardband.cli.audit_words import command_to_recalibrate, tell_audit
    from guardband.cli.judged_rows import judged_targets
    from guardband.cli.model_columns import load_for_tables
    from guardband.cli.several_words import tell_several
    from guardband.cli.stream import Inputs
    from guardband.doors.signed_file import trusted_file
    from guardband.ray.cluster import connected
    from guardband.ray.judging import audit
    from guardband.ray.sources import Files

    model_path, trusted, device = of_model
    source = trusted_file(model_path, trusted)
    files = Files.of(table_paths, skip_corrupt)
    with speaker.loading("Loading PyTorch"):
        model = load_for_tables(source, device)
    inputs = Inputs.of(model, files.like)
    own = judged_targets(model, source, target, files.like, inputs)
    with speaker.doing(f"Checking the promise on {files.like.label}"), connected(address):
        found = audit(model, files, target=own, significance=significance, skip_corrupt=skip_corrupt)
    if isinstance(found, SeveralAudit):
        tell_several(found, speaker)
        speaker.tell_json(found.to_dict())
        _end(found, speaker)
    certificate = model.calibration_.certificate
    groups = group_lines(promised_groups(certificate), findings_of_groups(certificate, found.parts))
    said = found.to_dict() | {"groups": groups}
    command = command_to_recalibrate(str(model_path), list(table_paths), target)
    tell_audit(said | {"drawn": 0}, [], command, speaker, False)
    speaker.tell_json(said)
    _end(found, speaker)


def _end(found: Audit | SeveralAudit, speaker: Speaker) -> NoReturn:
    """End with the exit code of the verdict."""
    code = exit_code(found.verdict)
    if code == REFUSED:
        complain(found.sentence if speaker.quiet else CANNOT_JUDGE)
    raise typer.Exit(code)
