"""The diagnostics of reading data.

No message holds a value that was read: only what the spec declares and, for inputs of a declared size, how
many rows or columns there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from privspec.core.diagnostics import DataError, Diagnostic

CLIP_RULE = (
    "numbers outside the domain move to its nearest point, records outside a ball onto it; what is "
    "missing or cannot be read becomes the point nearest to zero"
)
DROP_RULE = "records with a value that is missing or not in its attribute's domain are left out of the counts"
FIRST_RULE = "a table's value that is missing or not in its attribute's domain becomes that domain's first value"
STRICT_RULE = "data that do not fit the declared domains are refused (strict)"
STRICT_WARNING = Diagnostic(
    "PS0810",
    "--strict refuses data that do not fit their domain, and a refusal reveals that such a record exists",
    help="use it only where the keeper of the data alone sees whether the run was refused",
    severity="warning",
)


def refuse(code: str, message: str, *notes: str, help: str | None = None) -> NoReturn:  # noqa: A002
    """Raise a DataError; any error being handled is hidden, because its text may quote the data."""
    raise DataError.of(code, message, *notes, help=help) from None


def refuse_strictly(name: str) -> NoReturn:
    """What --strict says when something does not fit: not what, not where, not how often."""
    refuse(
        "PS0809",
        f"the data for {name} do not all fit the declared domain, and --strict was asked for",
        "this refusal itself reveals something about the data",
        help="without --strict a public rule is applied to every record by itself",
    )


def refuse_unreadable(name: str, what: str) -> NoReturn:
    """A file or object that is not of the form its name or type says."""
    refuse("PS0803", f"the data for {name} cannot be read as {what}")


def given_for(name: str, data: Mapping[str, Any]) -> Any:
    """The data of one input.

    Raises: DataError PS0801 if there are none.
    """
    if name not in data:
        refuse("PS0801", f"no data for the input {name}", help=f"give --input {name}=FILE")
    return data[name]
