"""``guardband keys``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.console import Speaker
from guardband.cli.help import OUTPUT
from guardband.cli.options import Json, Quiet


def keys(
    name: Annotated[
        Path, typer.Argument(metavar="NAME", help="Name of the pair, such as release.", rich_help_panel=OUTPUT)
    ],
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make a pair of keys, to sign models and to check signatures.

    guardband writes NAME.private.pem and NAME.public.pem, and never replaces a key. If only the private key is there,
    it gets its public key. Keep the private key to yourself: whoever has it can sign in your name. Give the public key
    to whoever uses your models.

    Examples:

    `guardband keys release`

    `guardband sign sales.guardband --key release.private.pem`
    """
    speaker = Speaker(quiet, as_json)
    from guardband.doors.keys import make_keys

    pair = make_keys(name)
    there = "" if pair.is_new else " It was there already, and only its public key is new."
    speaker.tell(f"Private key: {pair.private}. Keep it to yourself. It signs.{there}")
    speaker.tell(f"Public key:  {pair.public}. Give it to whoever uses your models. It checks signatures.")
    speaker.tell(f"Fingerprint: {pair.fingerprint}")
    speaker.tell_json({"private": str(pair.private), "public": str(pair.public), "fingerprint": pair.fingerprint})
