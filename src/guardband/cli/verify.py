"""``guardband verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.console import Speaker
from guardband.cli.help import DATA
from guardband.cli.options import Json, ModelPath, Quiet


def verify(
    model_path: ModelPath,
    key: Annotated[
        Path,
        typer.Option(
            "--key", metavar="PUBLIC", help="Public key of whoever must have signed the model.", rich_help_panel=DATA
        ),
    ],
    signature: Annotated[
        Path | None,
        typer.Option(
            metavar="SIGNATURE",
            help="Signature of the model.",
            show_default="the model's name with .sig added",
            rich_help_panel=DATA,
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check who signed a model, and that it was not changed since.

    guardband reads the model's bytes, and nothing of what they mean. A good signature says whose model it is. It does
    not say that the model is good: see `guardband audit`.

    The exit code is 0 if the signature is good, and 2 if it is not.

    Example:

    `guardband verify sales.guardband --key release.public.pem`
    """
    from guardband.doors.signed_file import check_file

    speaker = Speaker(quiet, as_json)
    _, signed = check_file(model_path, key, signature)
    speaker.tell(f"{model_path} is unchanged since it was signed by the key {signed.key}")
    if signed.comment:
        speaker.tell(f"Comment of the signer: {signed.comment}")
    speaker.tell_json({"model": str(model_path), "fingerprint": signed.key, "comment": signed.comment})
