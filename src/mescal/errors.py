"""What a user sees when an input cannot be used: what was found, what was expected, what to do.

Every check of the package raises through these classes, so that messages have one shape and callers one thing to catch.
"""


class InputError(ValueError):
    """An input that cannot be used.

    **Arguments:**

    - `found`: what was found, as a sentence without its full stop.
    - `expected`: what would have been accepted.
    - `advice`: what the user can do about it.
    """

    def __init__(self, found: str, expected: str, advice: str):
        self.found, self.expected, self.advice = found, expected, advice
        end = "" if advice.endswith("?") else "."
        super().__init__(f"{found}.\n  Expected: {expected}.\n  What to do: {advice}{end}")

    def __reduce__(self):
        return type(self), (self.found, self.expected, self.advice)


class InputTypeError(InputError, TypeError):
    """An input of a type that cannot be used."""
