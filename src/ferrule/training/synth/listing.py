"""Short lists written as one string: easier to read and to add to than a row of quotes."""


def listed(text: str) -> tuple[str, ...]:
    """The words of a string, in order."""
    return tuple(text.split())
