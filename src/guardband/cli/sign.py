"""``guardband sign``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.console import Speaker
from guardband.cli.help import DATA, OUTPUT
from guardband.cli.options import Json, ModelPath, Quiet
from guardband.cli.paths import need_no_link, need_writable


def sign(
    model_path: ModelPath,
    key: Annotated[
        Path,
        typer.Option(
            "--key", metavar="PRIVATE", help="Private key, as guardband keys writes it.", rich_help_panel=DATA
        ),
    ],
    comment: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help='What you vouch for, such as "house prices, 2026". It is signed too, and verify shows it.',
            rich_help_panel=DATA,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="SIGNATURE",
            help="File to write.",
            show_default="the model's name with .sig added",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Sign a model, and let others check that it comes from you and was not changed.

    The signature is a small file of its own. The model stays as it is. Whoever has your public key can check it with
    `guardband verify`, or use the model with --trusted.

    Example:

    `guardband sign sales.guardband --key release.private.pem`
    """
    from guardband.doors.keys import PrivateKey

    speaker = Speaker(quiet, as_json)
    own = PrivateKey.read(key)
    with speaker.loading("Loading PyTorch"):
        from guardband.doors.signed_file import sign_file, signature_beside

        place = output or signature_beside(model_path)
        if output is None:
            need_no_link(place, "Name the signature with -o")
        need_writable((place,), (model_path, key))
        speaker.step(f"Signing {model_path}")
        sign_file(model_path, own, place, comment or "")
    speaker.tell(f"Signature: {place}, by the key {own.fingerprint}")
    speaker.tell_json({"signature": str(place), "fingerprint": own.fingerprint, "comment": comment})
