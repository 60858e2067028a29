"""Properties of the corpus that hold for every story."""

import re

import pytest

import corpus
import lexicon
from grammar import Character, expand, tidy
from random import Random

STORIES = 3000


@pytest.fixture(scope="module")
def tales():
    return [corpus.tale(seed) for seed in range(STORIES)]


def words(text):
    return re.findall(r"[A-Za-z]+", text.lower())


def test_a_seed_is_a_story():
    assert [corpus.story(s) for s in range(50)] == [corpus.story(s) for s in range(50)]


def test_no_two_stories_are_the_same(tales):
    assert len({t.text() for t, _ in tales}) == STORIES


def test_held_out_stories_are_not_trained_on(tales):
    held_out = {t.text() for t, _ in tales[:256]}
    assert not any(corpus.story(corpus.TRAIN_FIRST + i) in held_out for i in range(STORIES))


def test_every_plot_is_told(tales):
    assert {name for _, name in tales} == {p.__name__ for p in corpus.PLOTS}


def test_nothing_of_a_template_is_left(tales):
    for t, _ in tales:
        assert not re.search(r"[\[\]{}|_]|  | [,.!?]|None|\.\.", t.text()), t.text()


def test_quotations_are_closed_in_each_paragraph(tales):
    for t, _ in tales:
        for paragraph in t.text().split("\n\n"):
            assert paragraph.count('"') % 2 == 0, paragraph


def test_sentences_begin_with_a_capital(tales):
    for t, _ in tales:
        assert not re.search(r"(^|[.!?] |\n)[a-z]", t.text()), t.text()


def test_articles_go_with_the_word(tales):
    for t, _ in tales:
        assert not re.search(r"\b[Aa] [aeiou](?!ne\b|ni)|\b[Aa]n [^aeiouh]", t.text()), t.text()


def test_pronouns_have_somebody_to_stand_for(tales):
    """Where all who are in it have one gender, the pronouns of the other do not occur."""
    seen = 0
    for t, plot in tales:
        genders = {c.gender for c in t.env.values() if isinstance(c, Character)}
        if len(genders) == 1 and plot != "quarrel":  # which has an old woman without a name
            seen += 1
            wrong = {"he", "him", "his", "himself"} if genders == {"f"} else {"she", "her", "hers", "herself"}
            text = t.text().replace("the clockmaker and swept his shop", "")
            assert not wrong & set(words(text)), text
    assert seen > STORIES / 20


def test_what_is_lost_is_what_is_found(tales):
    for t, plot in tales:
        if plot == "lost":
            noun = t.env["o"].noun
            first, rest = t.text().split("\n\n", 1)
            assert noun in first and noun in rest
            rest = rest.split("\n\n", 1)[1]
            for words_of_place in (t.env[p].the for p in "pqru"):
                rest = rest.replace(words_of_place, "")
            found = re.findall(r"\b(?:the|my|his|her) (?:\w+ )?(%s)\b" % "|".join(lexicon.THINGS), rest)
            # A bag may have had the hole.
            assert set(found) - {"bag"} <= {noun}, t.text()


def test_the_weather_stays_what_it_is(tales):
    for t, plot in tales:
        text = t.text().lower() if plot != "storm" else ""  # which makes its own
        for key, (_, skies, _, ends) in lexicon.WEATHERS.items():
            if key != t.weather.key:
                assert not any(s.lower() in text for s in skies + ends), t.text()


def test_a_story_has_a_length(tales):
    lengths = [len(words(t.text())) for t, _ in tales]
    assert min(lengths) >= 80 and max(lengths) <= 280


def test_templates():
    assert tidy('a owl sat. "we are one." it left.') == 'An owl sat. "We are one." it left.'
    assert tidy('"No," said a elf, "not yet."') == '"No," said an elf, "not yet."'
    assert {expand(Random(i), "[a|b[c|d]|]x", {}) for i in range(99)} == {"Ax", "Bcx", "Bdx", "X"}
