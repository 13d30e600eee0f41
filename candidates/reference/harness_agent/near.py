"""Names that somebody may have meant."""


def near_names(typed: str, names) -> list[str]:
    """At most three names within two edits of `typed` or that begin with it, the nearest first."""
    found = []
    for name in names:
        distance = edit_distance(typed, name)
        if distance <= 2 or (typed and name.startswith(typed)):
            found.append((distance, name.encode(), name))
    return [name for _, _, name in sorted(found)[:3]]


def edit_distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
    return row[-1]
