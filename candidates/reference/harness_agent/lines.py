"""Lines that belong together: one that ends in a backslash goes on in the next."""


def continuation(line: str):
    """Return the line and whether the next one belongs to it."""
    if line.endswith("\\\\"):
        return line[:-1], False
    if line.endswith("\\"):
        return line[:-1], True
    return line, False
