"""Token id files: decimal ids separated by blanks or newlines, as `rung tokenize` prints them."""


def read_ids(path):
    with open(path, encoding="ascii") as handle:
        return [int(word) for word in handle.read().split()]


def write_ids(path, ids, per_line=24):
    ids = [str(int(value)) for value in ids]
    lines = [" ".join(ids[first:first + per_line]) for first in range(0, len(ids), per_line)]
    with open(path, "w", encoding="ascii") as handle:
        handle.write("\n".join(lines) + "\n")
