"""What to say of a command that was typed wrongly: what to type instead."""

from __future__ import annotations

from typing import Any

WANTED = {"TABLE...": "a table", "BANDS...": "a table of predictions", "MODEL": "a model", "MODEL|RUN": "a model"}
"""What an argument is, by its name in the help."""
REPORT_BY = "{} finds the groups that have a promise in the model. To see coverage for other groups, use --report-by."
OTHERWISE = {
    ("audit", "--level"): "audit uses the model's own levels. Fit a model with --level 0.8,0.9.",
    ("audit", "--group"): REPORT_BY.format("audit"),
    ("report", "--group"): REPORT_BY.format("report"),
    ("predict", "--group"): "predict finds the groups in the columns of the table. Remove --group.",
}
"""Options that a command lacks, though another has them."""


def usage_in_words(error: Any) -> str:
    """Return what an error of the command line says, with an example where something is missing."""
    said = str(error.format_message())
    command = getattr(getattr(error, "ctx", None), "command", None)
    if command is None:
        return said
    said = OTHERWISE.get((command.name, getattr(error, "option_name", "")), said)
    missing, example = getattr(error, "param", None), _example(command)
    if type(error).__name__ != "MissingParameter" or missing is None or not example:
        return said
    wanted = WANTED.get(str(missing.metavar)) if missing.param_type_name == "argument" else None
    return f"Name {wanted}, for example: {example}" if wanted else f"{said} For example: {example}"


def _example(command: Any) -> str:
    """Return the first example in the help of a command."""
    paragraphs = (" ".join(own.split()) for own in (command.help or "").split("\n\n"))
    return next((own.strip("`") for own in paragraphs if own.startswith(f"`guardband {command.name} ")), "")
