"""A story being told: who and what is in it, and what every plot shares (opening, weather, ending)."""

import lexicon
from grammar import Character, Creature, Food, Place, Thing, Weather, apart, expand


def lower(sentence):
    """For a sentence that may come after "One morning,": its capital is put back where it begins one."""
    return sentence[0].lower() + sentence[1:]


class Tale:
    """The choices made so far. `say` adds one of several wordings; a blank line ends a paragraph."""

    def __init__(self, rng):
        self.rng = rng
        self.paragraphs = [[]]
        self.used_names = set()
        self.animals = rng.random() < 0.35
        locale = rng.choice(list(lexicon.LOCALES))
        places = rng.sample(lexicon.LOCALES[locale], 4)
        self.weather = Weather(rng.choice(list(lexicon.WEATHERS)))
        a, b = self.character(), self.character()
        apart(a, b)
        b.first_mention = "{a.his} [friend|friend|best friend|cousin|neighbour] " + b.name + (f" the {b.kind}" if self.animals else "")
        a.first_mention = None
        self.env = {
            "a": a, "b": b, "locale": locale, "hobby": rng.choice(lexicon.HOBBIES),
            "p": Place(places[0]), "q": Place(places[1]), "r": Place(places[2]), "u": Place(places[3]),
            "o": self.thing(), "food": Food(*rng.choice(lexicon.FOODS)),
            "elder": self.elder(), "n": str(rng.randint(2, 30)),
        }
        w = self.weather
        self.env |= {"sky": lower(rng.choice(w.skies)), "clothes": rng.choice(w.clothes), "wadj": w.adj, "wend": lower(rng.choice(w.ends))}
        self.env |= {"pet": rng.choice(lexicon.PETS), "num": str(rng.randint(3, 12)), "bait": rng.choice(["a button", "a shiny ribbon", "a glass bead"]),
                     "hour": self.pick("6", "7", "8", "six", "seven", "eight"),
                     "day": rng.choice(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"])}
        noun = rng.choice(list(lexicon.CREATURES))
        self.env["c"] = Creature(noun, *lexicon.CREATURES[noun])

    def character(self):
        rng = self.rng
        gender = rng.choice("fm")
        while True:
            name = rng.choice(lexicon.GIRLS if gender == "f" else lexicon.BOYS)
            if name not in self.used_names:
                break
        self.used_names.add(name)
        if self.animals:
            kind = rng.choice([k for k in lexicon.ANIMAL_KINDS if k not in self.used_names])
            self.used_names.add(kind)
        else:
            kind = "girl" if gender == "f" else "boy"
        c = Character(name, gender, kind, rng.choice(lexicon.TRAITS))
        c.first_mention = f"a {kind} [named|called] {name}"
        return c

    def elder(self):
        """A grown-up: one of the family ("his aunt") or a neighbour ("old Mrs. Plum")."""
        word, gender = self.rng.choice(lexicon.ELDERS)
        return Character("{a.his} " + word, gender, word, "wise", adult=True)

    def neighbour(self):
        title, gender = self.rng.choice(lexicon.NEIGHBOURS)
        c = Character(f"{title} {self.rng.choice(lexicon.SURNAMES)}", gender, "neighbour", "old", adult=True)
        c.first_mention = "[old|{a.his} neighbour|] " + c.name
        return c

    def thing(self, *nouns):
        noun = self.rng.choice(nouns or list(lexicon.THINGS))
        return Thing(self.rng.choice(lexicon.THINGS[noun]), noun)

    def set(self, **env):
        self.env |= env

    def pick(self, *options):
        return self.rng.choice(options)

    def chance(self, p):
        return self.rng.random() < p

    def say(self, *templates):
        self.paragraphs[-1].append(expand(self.rng, self.rng.choice(templates), self.env))

    def maybe(self, p, *templates):
        if self.chance(p):
            self.say(*templates)

    def para(self):
        if self.paragraphs[-1]:
            self.paragraphs.append([])

    def text(self):
        return "\n\n".join(" ".join(p) for p in self.paragraphs if p)

    # What every plot shares.

    def opening(self):
        """Who, where, and what the hero is like."""
        kind = "a {a.trait} [little|young|] {a.kind}"
        if self.animals:
            kind = "a [little|small|young|] {a.kind}"
        self.set(who=kind)
        self.say(
            "Once upon a time, there was {who} [named|called] {a}. {a.he} lived {locale}.",
            "Once upon a time, {who} [named|called] {a} lived {locale}.",
            "There was once {who} [named|called] {a}, who lived {locale}.",
            "Long ago, {locale}, there lived {who} [named|called] {a}.",
            "{a} was {who}. {a.he} lived {locale} with {elder}.",
            "{locale} lived {who}. [{a.his} name was {a}|Everyone called {a.him} {a}].",
            "Once there was {who} whose name was {a}. {a.he} lived {locale}.",
        )
        if self.animals:
            tail = lexicon.ANIMAL_KINDS[self.env["a"].kind]
            article = "" if tail.endswith(("s", "wool", "fur")) else "a "
            self.set(proud=tail, a_proud=article + tail)
            self.maybe(0.4, "{a} was [very|] {a.trait}, and {a.he} was proud of {a.his} {proud}.",
                       "{a} had {a_proud} and [was always {a.trait}|a {a.trait} heart].")
        self.maybe(0.55, "{a} loved to {hobby}.", "{a.he} liked to {hobby} [every day|after breakfast|in the evening].",
                   "More than anything, {a} loved to {hobby}.", "Most days, {a} would {hobby}[| until it was dark].",
                   "{a.his} favourite thing in the world was to {hobby}.")

    def morning(self):
        """The day of the story, with its weather."""
        self.say(
            "One {wadj} [morning|day], {a} [woke up early|got up early|looked out of the window]. {sky}.",
            "One [morning|day|afternoon], {sky}.",
            "It was a {wadj} [day|morning]. {sky}.",
            "One {wadj} morning, {a} put on {clothes}. {sky}.",
            "{sky} when {a} [woke up|opened the door|came down for breakfast] one [morning|Sunday|Monday|Saturday].",
            "On a {wadj} day in [spring|March|May|autumn|October|June|September], {a} [got up at {hour} o'clock|was up early]." if self.weather.key not in ("snowy", "hot")
            else "On a {wadj} [day|morning], {a} [got up at {hour} o'clock|was up early].",
        )

    def evening(self):
        """The day's end; the weather is the one it began with."""
        self.say(
            "{wend}, and {a} went home [with a light heart|happy and tired|with a smile].",
            "That [night|evening], {a} [told {elder} all about it|fell asleep with a smile|slept very well].",
            "{wend}. {a} was [tired but happy|very happy|glad].",
            "When {a} lay in bed that night, {a.he} [smiled|thought of it all and smiled|was still smiling].",
            "It had been a [good|long and wonderful|fine] day.",
        )

    def lesson(self, *lessons):
        """What was learned; it belongs to the plot, so the plot gives it."""
        self.set(lesson=self.pick(*lessons))
        self.say(
            "From that day on, {a} knew that {lesson}.",
            "{a} had learned that {lesson}.",
            "And {a} never forgot that {lesson}.",
            "After that, {a} always remembered that {lesson}.",
            '"Now I know that {lesson}," [said {a}|{a} said|thought {a}].',
            "So {a} learned that {lesson}.",
        )

    def close(self):
        self.maybe(0.2, "The end.", "And that is the end of the story.", "And they were all happy.")
