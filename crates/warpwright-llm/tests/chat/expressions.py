"""Writes what jinja2 makes of expressions: `expressions.json` has each with its text, or with `null` where it is an error.

    python expressions.py
"""

import itertools
import json
import pathlib

from expected import environment

NUMBERS = ["0", "7", "-7", "3", "-3", "2.5", "-2.5", "0.1", "1e16", "1e300", "-0.0", "true"]

EXPRESSIONS = [
    # Operators on numbers of both signs.
    *(f"{a} {op} {b}" for op in ["%", "//", "/", "+", "-", "*"] for a, b in itertools.product(NUMBERS, NUMBERS)),
    *(f"({a}) ** ({b})" for a, b in itertools.product(["2", "-2", "0.5", "10"], ["0", "3", "-1", "-2"])),
    "-7 % 3 ~ 'a'", "2 ** 3 ** 2", "-2 ** 2", "7 // 2 * 2 + 7 % 2", "10 ** 20", "2 ** 64 - 1", "2 ** 70",
    # Formats by `%`.
    "'%s and %s' % ('a', 'b')", "'%d' % 3", "'%5.2f|' % 3.14159", "'%s' % 'x'", "'%%' % ()", "'%s' % [1, 2]",
    "'%05d' % 42", "'%-5s|' % 'a'", "'%x' % 255", "'%r' % 'a'", "'%s %s' % 'a'", "'%(a)s' % {'a': 1}", "'%d' % 3.7",
    "'%s' % none", "'%s' % 1.0", "'%e' % 12345.678", "'%g' % 0.0001", "'%+d' % 5", "'%c' % 'a'", "'%i' % 3", "'a' % 1",
    "'%s and %d'|format('a', 3)", "'%.3f'|format(2)", "'%s'|format(1.5)", "'%s'|format(true)", "'%s'|format(none)",
    "'%d' % 100000000", "'%d of %d' % (20000000, 3)", "'%d'|format(99999999)", "'%E' % 1e10", "'{:d}'.format(99999999)",
    # Rounding.
    *(
        f"{x}|round({how})"
        for x in ["2.5", "3.5", "-2.5", "0.5", "1.005", "2.675", "42.55", "7", "1e16", "-0.4", "0.15"]
        for how in ["", "1", "2", "0, 'floor'", "1, 'ceil'", "1, 'floor'", "precision=1", "method='ceil'", "-1"]
    ),
    "2.5|round|int", "'a'|round", "2.5|round(0, 'up')", "true|round",
    # Floats as text.
    *(
        f"{x}{how}"
        for x in ["1.0", "0.1", "1e15", "1e16", "1.5e16", "1e22", "123456789.125", "0.0001", "0.00001", "1e-7", "-0.0"]
        for how in ["", "|string", " ~ ''", "|tojson", "|float", "|int", "|abs"]
    ),
    "[1.0, 1e16]", "{'a': 1e-7}", "[1.0, 1e16]|join(' ')", "1e16|string|length", "[1e16]|tojson", "(1, 2)", "(1,)", "()",
    "[(1, 'a'), (2, 'b')]", "[1e16, 1.5]|sum", "'%s' % 1e16", "1e16 ~ 1e-5", "1e400", "-1e400", "'nan'|float",
    "1e16|upper", "1e16|trim", "1.5|replace('.', ',')", "1e16|lower",
    # Filters on text.
    "'hello world'|title", "\"it's a test-case\"|title", "'HELLO'|capitalize", "'éa b'|capitalize", "' a '|trim",
    "'xxaxx'|trim('x')", "'a'|upper", "'ß'|upper", "'a b c'|wordcount", "'a,b'|replace(',', ';')",
    "'aaa'|replace('a', 'b', 2)", "'abc'|reverse", "'abc'|first", "'abc'|last", "''|first", "'abc'|list", "'a\nb'|indent",
    "'a\nb'|indent(2, true)", "'a\n\nb'|indent(2)", "'a\n\nb'|indent(2, blank=true)", "'abcdef'|truncate(3)",
    "'abc def ghi'|truncate(8)", "'abc def ghi'|truncate(8, true, '')", "'a b'|center(9)", "'<a>'|escape", "'<a>'|e",
    "'<a>'|safe", "'abc'|length", "'a b c'|wordwrap(3)", "'<b>x</b>'|striptags", "'a b'|urlencode", "'42'|int", "'x'|int",
    "'x'|int(7)", "'0x1f'|int(0, 16)", "'4.7'|int", "4.7|int", "-4.7|int", "'1.5'|float", "'x'|float", "'x'|float(2.5)",
    "true|int", "none|int", "'1_000'|int", "' 42 '|int", "'1e3'|float", "'1e3'|int",
    # Filters on lists and dicts.
    "[3, 1, 2]|sort", "[3, 1, 2]|sort(reverse=true)", "['b', 'A', 'c']|sort", "['b', 'A', 'c']|sort(case_sensitive=true)",
    "[1, 2, 3]|sum", "[1, 2, 3]|sum(start=10)", "[1.5, 2]|sum", "[1, 2, 3]|max", "[1, 2, 3]|min", "[]|max", "[]|first",
    "['b', 'A']|max", "['b', 'A']|min", "[1, 2, 2, 1]|unique|list", "['a', 'A', 'b']|unique|list", "[1, 2, 3]|join",
    "[1, 2, 3]|join(', ')", "['a', 1, none, true, 1.0]|join('|')", "[1, 2, 3]|reverse|list", "[1, 2, 3]|last",
    "[1, 2, 3, 4, 5]|batch(2)|list", "[1, 2, 3, 4, 5]|batch(2, 'x')|list", "[1, 2, 3, 4, 5]|slice(2)|list",
    "[1, 2, 3, 4, 5]|slice(3, 'x')|list", "{'b': 2, 'a': 1}|dictsort", "{'b': 1, 'a': 2}|dictsort(by='value')",
    "{'b': 2, 'a': 1}|items|list", "{'b': 2, 'a': 1}|list", "{'b': 2}|length", "[1, 2, 3]|select('odd')|list",
    "[1, 2, 3]|reject('odd')|list", "[0, 1, '', 'a']|select|list", "['a', 'b']|map('upper')|list",
    "[{'a': 1}, {'a': 2}]|map(attribute='a')|list", "[{'a': 1}, {}]|map(attribute='a', default=9)|list",
    "[{'a': 1}, {'a': 2}]|selectattr('a', 'gt', 1)|list", "[{'a': 1}, {'b': 2}]|selectattr('a')|list",
    "[{'a': 1}, {'a': 2}]|rejectattr('a', 'eq', 1)|list", "[{'a': 2}, {'a': 1}]|sort(attribute='a')",
    "[{'a': 1}, {'a': 2}]|sum(attribute='a')", "[1, 2]|tojson", "{'a': [1, 'é', none]}|tojson", "'<a>'|tojson",
    "missing|default('x')", "none|default('x')", "none|default('x', true)", "''|default('x')", "''|d('x', true)",
    "[1, 2, 3]|length", "[1, 2, 3]|count", "'a'|default('b')", "[1, [2, 3]]|string", "none|string", "true|string",
    "{'a': none}|string", "['a\"b', \"it's\"]|string", "[1, 2]|abs", "-3|abs", "-3.5|abs", "'abc'|attr('x')",
    "[{'a': 1, 'b': 2}, {'a': 1, 'b': 3}]|groupby('a')|length", "{'a': 1}|pprint", "[1, 'a']|pprint", "3|filesizeformat",
    "1000000|filesizeformat",
    # Comparisons, logic and indices.
    "1 == 1.0", "1 == true", "'1' == 1", "[1] == [1.0]", "none == false", "1 < 2 < 3", "3 > 2 > 2", "'a' < 'b'", "'B' < 'a'",
    "1 in [1.0]", "'a' in 'abc'", "'a' in {'a': 1}", "1 and 2", "0 or 'x'", "'' or none", "not ''", "not [0]",
    "'x' if true", "'x' if false", "('x' if false) is undefined", "none and 1", "1 is odd", "2 is even", "-3 is odd",
    "6 is divisibleby 3", "7 is divisibleby(3)", "1 is number", "true is number", "true is integer", "1.0 is integer",
    "1.0 is float", "'a' is string", "[] is sequence", "'a' is sequence", "{} is mapping", "none is none", "x is defined",
    "x is undefined", "1 is sameas 1", "true is boolean", "'a' is lower", "'A' is upper", "[] is iterable", "3 is iterable",
    "1 is in [1]", "1 is eq 1", "2 is gt 1", "'abc'[0]", "'abc'[-1]", "'abc'[1:]", "'abc'[::-1]", "[1, 2, 3][-2:]",
    "[1, 2, 3][::2]", "[1, 2, 3][::-1]", "'abc'[5]", "[1][5]", "{'a': 1}['b']", "{'a': 1}.a", "{'a': 1}.get('b', 2)",
    "'é日'[1]", "[1, 2] + [3]", "'a' * 3", "[1] * 2", "'a' + 1", "'a' ~ 1 ~ none ~ true", "1 + true", "(1, 2) + (3,)",
    # Methods of Python's values.
    "'a-b-c'.split('-')", "'a b  c'.split()", "'a-b-c'.split('-', 1)", "'a-b-c'.rsplit('-', 1)", "'abc'.startswith('a')",
    "'abc'.endswith(('c', 'd'))", "'abc'.startswith(('x', 'a'))", "' a '.strip()", "'xax'.lstrip('x')", "'xax'.rstrip('x')",
    "'abc'.upper()", "'aBc'.lower()", "'hello world'.title()", "'hello'.capitalize()", "'a,b'.replace(',', ';')",
    "'aaa'.replace('a', 'b', 1)", "','.join(['a', 'b'])", "'abc'.find('c')", "'abc'.find('x')", "'abcabc'.rfind('b')",
    "'aXbX'.count('X')", "'12'.isdigit()", "'ab'.isalpha()", "'a1'.isalnum()", "' '.isspace()", "'A'.isupper()",
    "'a'.islower()", "'{} {}'.format('a', 1)", "'{0:>4}|'.format('a')", "'{a}'.format(a=1)", "'{:.2f}'.format(3.14159)",
    "'{:05d}'.format(42)", "'{:,}'.format(1234567)", "'{}'.format(1e16)", "'{}'.format(none)",
    "'a\nb'.splitlines()", "'abc'.removeprefix('a')", "'abc'.removesuffix('c')", "'a=b=c'.partition('=')",
    "'a=b=c'.rpartition('=')", "{'a': 1}.items()|list", "{'a': 1}.keys()|list", "{'a': 1}.values()|list", "[1, 2].index(2)",
    "[1, 2, 1].count(1)", "'7'.zfill(3)", "'a'.center(5)", "'a'.ljust(3) ~ '|'", "'a'.rjust(3)", "'aB'.swapcase()",
    "'a\tb'.expandtabs(4)", "'abc'.index('b')",
    # Functions.
    "range(3)|list", "range(1, 10, 3)|list", "range(3, 0, -1)|list", "range(0)|list", "dict(a=1)", "namespace(a=1).a",
    "range(3)|sum", "cycler('a', 'b').next()", "joiner(',')()",
]


def main():
    made = environment()
    table = []
    for expression in EXPRESSIONS:
        try:
            text = made.from_string("{{ " + expression + " }}").render(messages=[], tools=None)
        except Exception:
            text = None
        table.append([expression, text])
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in table)
    path = pathlib.Path(__file__).with_name("expressions.json")
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
