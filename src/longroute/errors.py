"""The one error that a person can mend: what was given is wrong, and the message says what, where and what would do."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Bad input: a file, a key or a value. The command line prints the message alone and exits with 2."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """The part of an error message that helps: `; did you mean 'rope'? (valid: alibi, rope)`."""
    choices = sorted(set(valid))
    close = difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    suggestion = f"; did you mean {close[0]!r}?" if close else ""
    return f"{suggestion} (valid: {', '.join(choices)})"
