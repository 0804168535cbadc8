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


class NamesItself:
    """A command whose name is known to all errors of its command line; Typer forgets it in some."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        try:
            read: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
            return read
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]
            raise


def usage_in_words(error: Any) -> str:
    """Return what an error of the command line says, and what to type instead."""
    said = " ".join(str(error.format_message()).split()).replace(": Value error, ", ": ")
    command = getattr(getattr(error, "ctx", None), "command", None)
    if not said:  # help was shown
        return ""
    if other := OTHERWISE.get((str(getattr(command, "name", "")), getattr(error, "option_name", ""))):
        return other
    if near := getattr(error, "possibilities", None):
        return f"No such option: {error.option_name}. Did you mean {near[0]}?"
    if said.endswith("?"):  # the command that was meant
        return said
    said = f"{said.removesuffix('.')}."
    if type(error).__name__ == "MissingParameter" and (example := _example(command)):
        wanted = WANTED.get(str(error.param.metavar)) if error.param.param_type_name == "argument" else None
        return f"Name {wanted}, for example: {example}." if wanted else f"{said} For example: {example}."
    if command is None or hasattr(command, "commands"):
        return f"{said} Run 'guardband --help' to see the commands."
    return f"{said} Run 'guardband {command.name} --help' to see the options."


def _example(command: Any) -> str:
    """Return the first example in the help of a command."""
    paragraphs = (" ".join(own.split()) for own in (command.help or "").split("\n\n"))
    return next((own.strip("`") for own in paragraphs if own.startswith(f"`guardband {command.name} ")), "")
