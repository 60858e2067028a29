#!/usr/bin/env python3
"""Writes crates/warpwright-llm/src/tokenizer/unicode/classes.txt: where runs of one class begin.

    pip install unicodedata2==15.1.0
    python tools/test-vocabularies/unicode_classes.py

The classes are Unicode 15.1's, the version that llama.cpp's tables are made from.
"""

from pathlib import Path

import unicodedata2

OTHER, NUMBER, LETTER, MARK, PUNCTUATION, SYMBOL, SPACE = range(7)
BY_CATEGORY = {"N": NUMBER, "L": LETTER, "M": MARK, "P": PUNCTUATION, "S": SYMBOL}
SPACES = {*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}


def class_of(code):
    if code in SPACES:
        return SPACE
    return BY_CATEGORY.get(unicodedata2.category(chr(code))[0], OTHER)


def main():
    assert unicodedata2.unidata_version == "15.1.0", unicodedata2.unidata_version
    runs = []
    for code in range(0x110000):
        kind = class_of(code)
        if not runs or runs[-1][1] != kind:
            runs.append((code, kind))
    words = [f"{first:x}:{'CNLMPSZ'[kind]}" for first, kind in runs]
    lines = [" ".join(words[i : i + 12]) for i in range(0, len(words), 12)]
    out = Path(__file__).parents[2] / "crates/warpwright-llm/src/tokenizer/unicode/classes.txt"
    out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
