"""How a story is put into words: templates, characters, things.

A template is text with alternatives `[one|two|]` (they nest; an empty one is
allowed) and slots `{name}` or `{name.attribute}`. Expanding one chooses each
alternative and fills each slot; articles and capitals are put right at the end,
so a template need not know what comes before it.
"""

import functools
import re

import lexicon


class Character:
    """A person or a storybook animal. `{c}` is the name; pronouns agree with the gender."""

    def __init__(self, name, gender, kind, trait, adult=False):
        self.name, self.gender, self.kind, self.trait, self.adult = name, gender, kind, trait, adult
        self.he, self.him, self.his = ("she", "her", "her") if gender == "f" else ("he", "him", "his")
        self.first_mention = None  # how the narration names a newcomer, until it has
        self.himself = "herself" if gender == "f" else "himself"
        self.s = name + "'s"
        # What stands for the character where another one is near: see `apart`.
        self.sub, self.obj, self.pos = self.he, self.him, self.his

    def __getattr__(self, key):
        """`He`, `Sub`, `Pos` …: the same with a capital, for a sentence that begins after a quotation."""
        if key[:1].isupper():
            value = getattr(self, key.lower())
            return value[0].upper() + value[1:]
        raise AttributeError(key)

    def __str__(self):
        return self.name


def apart(a, b):
    """Two characters of one gender share their pronouns, so both go by name where it could mislead."""
    if a.gender == b.gender:
        for c in (a, b):
            c.sub, c.obj, c.pos = c.name, c.name, c.s


class Thing:
    """`{t}` is "red kite", `{t.a}` "a red kite", `{t.the}` "the red kite", `{t.noun}` "kite"."""

    def __init__(self, adjective, noun):
        self.noun, self.adjective = noun, adjective
        self.full = f"{adjective} {noun}"
        self.a, self.the = "a " + self.full, "the " + self.full

    def __str__(self):
        return self.full


class Place:
    """`{p}` is "the beach", `{p.at}` "on the beach"."""

    def __init__(self, at):
        self.at = at
        self.the = at[at.index("the "):]

    def __str__(self):
        return self.the


class Food:
    """`{f.a}` "a loaf of bread", `{f}` "bread", `{f.it}` "it" or "them", `{f.be}` "was" or "were" before the phrase."""

    def __init__(self, phrase, short, it):
        self.a, self.short, self.it = phrase, short, it
        self.they = "they" if it == "them" else "it"
        self.be = "were" if phrase.startswith("some ") and it == "them" else "was"

    def __str__(self):
        return self.short


class Creature:
    def __init__(self, noun, hurt, home):
        self.noun, self.hurt, self.home = noun, hurt, home

    def __str__(self):
        return self.noun


class Weather:
    def __init__(self, key):
        self.key = key
        self.adj, self.skies, self.clothes, self.ends = lexicon.WEATHERS[key]


@functools.lru_cache(maxsize=None)
def parse(template):
    """The template as a list of: a string, ("slot", name, attribute) or ("alt", [sequences])."""
    pos = 0

    def sequence(stop):
        nonlocal pos
        out, text = [], ""
        while pos < len(template) and template[pos] not in stop:
            c = template[pos]
            pos += 1
            if c == "[":
                options = [sequence("|]")]
                while template[pos] == "|":
                    pos += 1
                    options.append(sequence("|]"))
                pos += 1
                out += [text, ("alt", options)]
                text = ""
            elif c == "{":
                end = template.index("}", pos)
                name, _, attribute = template[pos:end].partition(".")
                pos = end + 1
                out += [text, ("slot", name, attribute or None)]
                text = ""
            else:
                text += c
        return [x for x in out + [text] if x != ""]

    tree = sequence("")
    assert pos == len(template), f"unbalanced brackets in {template!r}"
    return tree


def expand(rng, template, env):
    out = []

    def walk(nodes):
        for node in nodes:
            if isinstance(node, str):
                out.append(node)
            elif node[0] == "alt":
                walk(node[1][int(rng.random() * len(node[1]))])
            else:
                value = env[node[1]]
                if node[2]:
                    value = getattr(value, node[2])
                elif getattr(value, "first_mention", None) and "".join(out).count('"') % 2 == 0:
                    # Whoever was not heard of yet is introduced, but not by those who speak.
                    newcomer, value = value, value.first_mention
                    newcomer.first_mention = None
                value = str(value)
                if "[" in value or "{" in value:
                    walk(parse(value))
                else:
                    out.append(value)

    walk(parse(template))
    return tidy("".join(out))


_SPACES = re.compile(r" {2,}")
_AN = re.compile(r"\b([Aa]) (?=[aeiou])(?!one\b|use|uni)")
# A quotation after a comma may go on with a sentence, so it keeps what the template says.
_CAPITAL = re.compile(r'(^|[.!?] |(?:^|(?<!,)[ (])")([a-z])')


def tidy(text):
    text = _SPACES.sub(" ", text).strip().replace(" ,", ",").replace(" .", ".")
    text = _AN.sub(lambda m: m[1] + "n ", text)
    return _CAPITAL.sub(lambda m: m[1] + m[2].upper(), text)
