"""The lists of tests of others that are left out."""

import pathlib


def read_skips(path):
    """The tests of a list, by name, with whose fault it is and why. A name stands for all that begin with it.
    A line `include FILE` stands for the lines of that list beside this one."""
    skips = {}
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("include "):
            skips |= read_skips(pathlib.Path(path).with_name(line.removeprefix("include ").strip()))
            continue
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 3 or fields[1] not in ("ours", "theirs", "hardware"):
            raise ValueError(f"{path}:{number}: not `test | ours, theirs or hardware | reason`")
        skips[fields[0]] = f"{fields[1]}: {fields[2]}"
    return skips
