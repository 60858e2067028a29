"""More of what happens: see `plots.py`."""


def race(t):
    kind, prize = t.pick("boat race", "running race", "sled race", "cart race", "swimming race", "snail race", "sack race"), t.thing()
    if t.weather.key == "snowy":
        kind = "sled race"
    elif kind == "sled race":
        kind = "running race"
    t.set(kind=kind, prize=prize, d=t.character(), num=t.pick("3", "5", "7", "12", "21", "9"))
    t.opening()
    t.para()
    t.morning()
    t.say("It was the day of the big {kind}. [The winner would get {prize.a}.|The prize was {prize.a}.]", "That day there was a {kind} from {p} to {q}. The winner would get {prize.a}.")
    t.say("{a} had [practised for weeks|practised every day|number {num} on {a.his} back]. {b} wanted to win too.", '"I will win, I am the fastest!" said {b}. {a} said nothing.', "{a} and {b} were both very fast.")
    t.say('"[Ready, steady, go|One, two, three, go]!" called {elder}.', '"Three, two, one, go!" shouted {d}.', "A bell rang, and off they went!")
    t.para()
    if t.chance(0.6):
        t.say("{a} was soon in front. {a.he} could already see {q}.", "At first {b} was ahead, but then {a} [came closer|passed {b.obj}].")
        t.say("Then there was a cry. {b} [had fallen|was stuck in the mud|had hurt {b.his} foot].", "Suddenly {a} heard {b} call for help. {b.he} had [slipped|fallen] and could not get up.")
        t.say("{a} looked at the [finish|goal]. It was so close! Then {a.he} [turned around|went back].", '"If I stop, I will lose," thought {a}. But {a.he} stopped.')
        t.say('"Are you hurt?" asked {a}. "Come, lean on me."', '"Give me your hand," said {a}.')
        t.say("Together they went on, slowly, step by step. {d} [won the {kind}|was the first at the goal].", "Side by side they reached the goal, last of all. {d} had won.")
        t.para()
        t.say('But {d} gave {prize.the} to {a}. "You are the real winner," {d.he} said.', "{a} did not get {prize.the}. But everyone clapped and cheered for {a.him}, and {b} [never forgot it|hugged {a.him}].")
        t.lesson("helping a friend is better than winning", "there are more important things than being first", "a friend is worth more than a prize")
    else:
        t.say("{b} was far ahead. {b.he} laughed and sat down {r.at}. \"I have time,\" {b.he} said, and [closed {b.his} eyes|ate {food.a}].", "{b} ran so fast at the beginning that {b.he} was soon out of breath and had to [rest|stop] {r.at}.")
        t.say("{a} went on, not too fast and not too slow. {a.he} passed {r}. {a.he} passed the last [tree|bend|house].", "But {a} went on, step by step, [without a stop|as steady as a clock].")
        t.say("When {b} [looked up|woke up|could go on], it was too late. {a} was at the goal!", "And so it was {a} who came first!")
        t.para()
        t.say('"Well done," said {b}. "Next time I will not [laugh|be so proud]."', "{elder} gave {a} {prize.the}, and {b} shook {a.pos} hand.")
        t.maybe(0.5, "{a} let {b} hold {prize.the} too.", "In the evening, they shared {food.a}.")
        t.lesson("slow and steady steps go far", "it is not wise to be too proud", "you should not stop before the goal")


def secret(t):
    t.set(gift=t.thing(), spot=t.pick("under the stairs", "in the attic", "in an old box", "behind the shed", "in a hollow tree"), age=str(t.rng.randint(5, 12)))
    t.opening()
    t.para()
    t.morning()
    t.say("{b} would soon be {age} years old, and {a} wanted to give {b.obj} a surprise.", "{a} had a secret. {b} had a birthday on {day}, and {a} was planning a surprise.")
    t.say("{elder} helped {a.him} [make|find|choose] {gift.a}. They hid it {spot}.", "{a} had saved {n} coins and bought {gift.a}. {a.he} hid it {spot}.")
    t.say('"You must not tell {b}," said {elder}. "I will be as silent as a [fish|stone]," said {a}.', "It was very hard not to tell.", '"Not a word!" said {elder} and laughed.')
    t.para()
    t.say('"What are you doing?" asked {b} {p.at}. "Nothing," said {a}, and {a.pos} face turned red.', 'The next day, {b} wanted to play. "I have no time today," said {a}.', "Each time {b} came near, {a} [stopped talking|hid something behind {a.his} back].")
    t.say("{b} was sad. \"{a} does not like me anymore,\" {b.sub} thought.", '"Are you angry with me?" asked {b}. {a} [shook {a.his} head|did not know what to say].', "{b} went to {q} and sat there alone.")
    t.say("{a} wanted to tell {b.obj} everything. But a secret is a secret.", '"Only [two|three] more days," thought {a}.', "{a} felt bad, but {a.he} kept the secret.")
    t.para()
    t.say("At last the big day came. {elder} asked {b} to come to {r}.", "Then it was the day. {a} [led|brought] {b} to {r} and said, \"Close your eyes!\"")
    t.say('"Surprise!" [called|cried|shouted] everyone. There {food.be} {food.a}, there were [{n}|many] paper lanterns, and there was {gift.a}.', "When {b} opened {b.his} eyes, [all {b.his} friends were there|there were lights everywhere]. And {a} gave {b.obj} {gift.the}.")
    t.say('"So that was the secret!" [said|laughed] {b}. "And I thought that you did not like me."', "{b} [cried|laughed and cried] with joy. \"This is my best birthday,\" {b.sub} said.")
    t.say("They [danced|sang|played] until [the stars came out|late in the evening].", "{b} never let go of {gift.the} all day.")
    t.lesson("some secrets are made of love", "a good surprise is worth waiting for", "it is good to trust a friend")


def repair(t):
    thing, trouble, need, job = t.pick(
        ("bridge", "nobody could cross the water", "a long plank", "the carpenter"), ("clock on the tower", "nobody knew what time it was", "a little wheel", "the clockmaker"),
        ("well", "there was no water for the gardens", "a new rope", "the weaver"), ("mill", "there was no flour for bread", "a wooden tooth for the big wheel", "the carpenter"),
        ("oven of the bakery", "there was no bread", "two bricks and some clay", "the potter"), ("street lamp", "the lane was dark at night", "a new glass", "the old sailor"),
        ("school bell", "all the children came late", "an iron hook", "the farmer"), ("ferry", "nobody could visit the other side", "a strong chain", "the old sailor"))
    t.set(thing=thing, trouble=trouble, need=need, job=job, nb=t.neighbour(), short=thing.split(" ")[0] if thing not in ("street lamp", "school bell") else thing)
    t.opening()
    t.para()
    t.say("One day, the {thing} was broken, and {trouble}.", "One {wadj} morning, there was bad news: the {thing} was broken, and {trouble}.")
    t.say("Everybody [was worried|talked about it], but nobody did anything.", '"Somebody should mend it," said the people, and they went home.', '"What shall we do?" asked {nb}. Nobody knew.')
    t.say("{a} went to look at it. {a.he} looked [above and below|very closely]. \"It only needs {need},\" {a.he} said.", '"I will try to mend it," said {a}. {nb} laughed. "You are too small," said {nb}.')
    t.say('"I will help you," said {b}.', "{b} wanted to help too.", '"Two can do more than one," said {b}, and came along.')
    t.para()
    t.say("They needed {need}. First they asked {p.at}, but nobody had such a thing.", "{a} and {b} looked {p.at} and {q.at} for {need}. They found nothing.")
    t.say("Then they went to {job}. \"I can give you {need},\" said {job}, \"if you [sweep my floor|help me for an hour|tell me a story].\" So they did.", '"Ask {job}," said {elder}. And {job} really had {need}.')
    t.say("{a} held it, and {b} [hammered|pulled|pushed]. It was hard work. [Twice it slipped, but they did not give up.|The sweat ran down their faces.]", "They pushed and pulled. Once it did not fit, and they had to start over.")
    t.say("At last it was done. The {short} was [as good as new|whole again]!", "Finally {a} took a step back. The {short} was mended!")
    t.para()
    t.say('Everyone came and clapped. "I was wrong," said {nb}. "You are small, but you [have a big heart|do great things]."', "{nb} shook their hands. \"We only talked,\" {nb.he} said, \"but you did it.\"")
    t.say("That evening, there {food.be} {food.a} for {a} and {b}.", "{elder} was very proud of {a.him}.", "{wend}.")
    t.lesson("it is better to do something than to wait for others", "small hands can mend big things", "work is light when it is shared")


def fear(t):
    of, place, first, trick, then = t.pick(
        ("the dark", "the cellar", "saw a black shape", "a small candle", "The black shape was only an old coat"),
        ("deep water", "the lake", "felt the cold water at {a.his} knees", "a big cork belt", "The water carried {a.him} like a soft bed"),
        ("thunder", "the attic", "heard a loud boom", "counting slowly after each flash", "Each time the thunder was a little further away"),
        ("high places", "the tower", "looked down and felt dizzy", "looking only at the next step", "From the top {a.he} could see the whole world"),
        ("the big dog next door", "the yard", "heard it bark", "a piece of bread in the hand", "The dog only wanted to play"),
        ("speaking in front of others", "the stage", "could not say a word", "looking at one friendly face", "The words came out, one after another"),
        ("the old house on the hill", "the old house", "heard a strange noise", "a lantern", "The noise was only a family of owls"),
        ("the long tunnel", "the tunnel", "heard strange steps", "singing loudly", "The steps were only an echo"))
    t.set(of=of, place=place, first=first, trick=trick, then=then)
    t.opening()
    t.say("But {a} was afraid of one thing: {of}.", "There was only one thing that {a} did not like, and that was {of}.", "But nobody knew that {a} was afraid of {of}.")
    t.para()
    t.morning()
    t.say("{elder} said, \"{b} is waiting for you at {place}.\" {a.pos} heart [sank|began to beat fast].", "{b} came by. \"Come with me to {place}!\" {b.sub} said. {a} turned pale.", "That day, {o.the} was lost somewhere near {place}, and {a} had to go and get it.")
    t.say("{a} went a few steps. {a.he} {first}, and {a.he} ran away.", "{a} tried to be brave. But then {a.he} {first}, and {a.his} legs would not move.")
    t.say('"I cannot do it," said {a}. "I am [so|too] afraid."', "{a} sat down {p.at} and [cried|put {a.his} face in {a.his} hands].", '"Everyone will laugh at me," thought {a}.')
    t.para()
    t.say("But {b} did not laugh. \"I used to be afraid of {of} too,\" {b.sub} said.", '"It is all right to be afraid," said {elder}. "I was afraid of {of} when I was small."')
    t.say('"What helped you?" asked {a}. "{trick}," was the answer.', '"There is a trick," said {b}. "What helps is {trick}."')
    t.say("So they went back together, hand in hand. {a} took a deep breath.", "{a} closed {a.his} eyes, counted to [three|five|ten], and tried again.", "{a} thought about it for [a long time|a whole day]. Then {a.he} tried again.")
    t.say("This time, {a.he} did not run away. {then}!", "One step. Two steps. Three steps. And what happened? {then}!")
    t.para()
    t.say('"I did it!" [cried|shouted] {a}.', "{a} laughed. \"Is that all?\" {a.he} said.", '"You see," said {b}, "you are braver than you think."')
    t.maybe(0.5, "Next time, {a} went there all alone.", "After that, {a} was a little afraid at times, but never as much as before.")
    if t.chance(0.3):
        t.evening()
    t.lesson("everyone is afraid of something", "fear grows small when we look at it", "being brave means to try again", "a friend can lend you courage")


def garden(t):
    seed, grows = t.pick(("sunflower", "taller than a house"), ("pumpkin", "as big as a wheel"), ("bean", "up to the roof"), ("apple", "into a little tree"), ("rose", "red and sweet"),
                         ("carrot", "long and orange"), ("melon", "round and heavy"), ("tulip", "yellow as butter"), ("pear", "into a thin green tree"), ("pea", "up a long stick"), ("cherry", "into a tree with white flowers"))
    t.set(seed=seed, grows=grows, from_=t.neighbour())
    t.opening()
    t.para()
    t.say("One spring day, {from_} gave {a} a small seed. \"It is a {seed} seed,\" said {from_}. \"Take good care of it.\"", "In spring, {a} found a {seed} seed {p.at}. \"What can I do with it?\" {a.he} asked. \"Plant it,\" said {elder}.")
    t.say("{a} dug a hole behind the house, put the seed in, and [covered it with earth|gave it some water].", "{a.he} put the seed in [a pot|the earth near the door] and gave it water.")
    t.say("The next morning, {a.he} ran to look. There was nothing but [brown earth|mud].", "{a} sat down beside it and waited. Nothing happened.", '"Grow!" said {a}. But the seed did not grow.')
    t.say("A day went by, and another. [Still nothing.|{a} looked every hour.]", "After a week, there was still nothing to see.")
    t.para()
    t.say('"It does not work!" said {a}. {a.He} wanted to dig it up.', '"Maybe it is dead," said {a} sadly.', '"I will never wait so long again," said {a}.')
    t.say('"Wait," said {b}. "It is working under the ground, where you cannot see it."', '"Some things take time," said {elder}. "Give it water, and wait."')
    t.say("So {a} waited. When it was hot, {a.he} brought water. When it was windy, {a.he} put [stones|a little fence] around it.", "{a} watered it every morning and sang to it every evening.")
    t.say("Then, one [morning|day], there was a tiny green [leaf|tip]!", "And then, after [two|three|four] weeks, something green came out of the earth.")
    t.say("It grew and grew, {grows}.", "All summer it grew, until it was {grows}." if not grows.startswith(("into", "up")) else "All summer it grew {grows}.")
    t.para()
    t.say("{a} [invited|called] {b} and {from_} to see it. \"[How beautiful|Look at that]!\" said {b}.", "Everybody came to see it, and {a} was [very proud|as proud as a king].")
    t.say("{a} gave {b} a new seed. \"But you must be patient,\" {a.sub} said.", "In autumn, there were {n} new seeds. {a} gave one to each of {a.his} friends.")
    t.lesson("good things take time", "patience is like water for a seed", "not everything that grows can be seen at once")


def lost_way(t):
    clue, how = t.pick(("the sound of the river", "the river flows past our house"), ("the north star", "the north star stands over our roof"), ("the smell of fresh bread", "that must be the bakery"),
                       ("the sound of the church bells", "the church is close to our house"), ("a row of white stones", "I saw these stones this morning"), ("the light of a lantern", "somebody is looking for us"),
                       ("the call of a rooster", "that is our rooster"), ("a line of footprints in the mud", "these are our own steps"))
    reason = t.pick("followed a butterfly", "chased a rabbit" if not t.animals else "chased a dry leaf", "looked for berries", "followed a strange song", "took a shortcut", "counted birds and did not look at the path")
    t.set(clue=clue, how=how, reason=reason)
    t.opening()
    t.para()
    t.morning()
    t.say("{a} and {b} went for a walk to {p}.", "{a} and {b} wanted to visit an old friend {p.at}.", "{elder} sent {a} and {b} to {p} with {food.a}.")
    t.say("They {reason}, and soon they did not know where they were.", "On the way they {reason}. When they looked up, the path was gone.")
    t.say('"Are we lost?" asked {b}. "I think so," said {a}.', '"I have never been here," said {b}. {b.pos} voice was [small|thin].', "Everything looked the same: trees, stones, and more trees.")
    t.say("It was getting [dark|late|cold]. [An owl called.|The shadows grew long.|A branch cracked.]", "They walked in a circle and came back to the same [rock|tree].")
    t.para()
    t.say("{b} began to cry. {a} [took {b.his} hand|put an arm around {b.obj}]. \"[We must stay together|We will find the way],\" {a.sub} said.", '"Stop," said {a}. "Let us sit down and think."', "They [sat down|shared the last piece of {food}] and thought.")
    t.say("It was very quiet. And then {a} noticed something: {clue}!", '"Do you notice that?" asked {b}. It was {clue}.')
    t.say('"I know!" said {a}. "{how}. Come!"', '"That is it," said {b}. "{how}. We only have to follow it."')
    t.say("Hand in hand they followed it, over roots and stones.", "They walked on and on, and they did not let go of each other.")
    t.para()
    t.say("And there, at last, was [the light of home|the garden gate|a window they knew]!", "Then the trees opened, and they saw [the roof of the house|the lights of home].")
    t.say("{elder} ran out and hugged them both. \"I was so worried,\" {elder.he} said.", '"There you are!" cried {elder}, and {elder.he} gave them [hot soup|warm milk|a blanket and tea].')
    t.lesson("it is good to stay calm and think", "two friends are never quite lost", "you should keep an eye on the path", "we should listen before we run")


def wish(t):
    giver, where = t.pick(("fish", "in a net"), ("old lamp", "under the sand"), ("star", "in the grass"), ("owl", "in a thorn bush"), ("frog", "in a bucket"), ("tiny fairy", "in a spider web"), ("old tree", "behind a wall"), ("white stag", "between two rocks"))
    alive = giver not in ("old lamp", "star", "old tree")
    t.set(giver=giver, where=where, selfish=t.pick("a castle of sugar", "a chest of gold", "a hundred toys", "a crown", "a flying horse", "a mountain of cake"),
          need=t.pick(("Rain had not fallen for {n} weeks, and the fields were dry", "rain for the fields", "That night, soft rain fell on every field"),
                      ("{elder} had been sick for a long time", "health for {elder}", "When {a} came home, {elder} stood in the kitchen and sang"),
                      ("{b} had lost {b.his} home in a fire", "a new home for {b}", "The next morning, a small house with a blue door stood there"),
                      ("{b} could not sleep because of bad dreams", "good dreams for {b}", "That night, {b} slept until the sun was high"),
                      ("It was winter, and the birds had nothing to eat", "food for the birds", "Soon there were seeds on every wall, and the birds sang"),
                      ("Nobody in the valley could laugh anymore", "laughter for everyone", "In the evening, laughter came out of every window")))
    need = t.env["need"]
    t.set(bare=t.env["selfish"].split(" ", 1)[1], trouble=need[0], good=need[1], happy=need[2])
    t.opening()
    t.say("{trouble}.", "But there was a worry. {trouble}.")
    t.para()
    t.say("One [day|evening|night], {a} was {p.at}. [There {a.he} heard a voice.|There {a.he} saw something shine.]", "One [day|evening|night], {a} went to {p}, and there {a.he} [heard a voice|saw a strange light].")
    if alive:
        t.say("A {giver} was caught {where}. \"Please help me!\" it said.", "It was a {giver}, caught {where}. \"Help me,\" it called, \"and I will thank you.\"")
        t.say("{a} was surprised that it could speak. But {a.he} [helped at once|set it free].", "Carefully {a} set the {giver} free.")
    else:
        t.say("{where}, there was a {giver}. {a} [cleaned it with {a.his} sleeve|touched it gently]. \"Thank you,\" it said.",
              "It was the voice of a {giver} {where}. \"I am so dusty,\" it said. {a} cleaned it.")
    t.say('"You have a good heart," said the {giver}. "You may have one wish. Only one!"', '"I will give you one wish," said the {giver}. "Think well."')
    t.para()
    t.say("{a} thought of {selfish}. How fine that would be! But then {a.he} thought of home.", '"I could wish for {selfish}," thought {a}. "Or for a kite, or for a drum." Then {a.he} became quiet.')
    t.say('"I wish for {good}," said {a}.', '{a} took a deep breath. "I wish for {good}," {a.he} said.')
    t.say('"Nothing for yourself?" asked the {giver}. "No," said {a}. "[That is what I want most|That would make me happy]."', "The {giver} [smiled|nodded] and was gone.")
    t.para()
    t.say("{happy}.", "And so it came true. {happy}.")
    t.say("{a} had no {bare}, but {a.he} was happier than ever.", "Nobody knew who had made the wish, only {a}, and {a.he} smiled.", "{a} told only {b}, and {b} gave {a.obj} a hug.")
    t.lesson("the best wishes are for others", "to make others happy is to be happy", "a good heart is worth more than gold")


def swap(t):
    a1, a2, a3, a4 = t.thing(), t.thing(), t.thing(), t.thing()
    while len({x.noun for x in (a1, a2, a3, a4)}) < 4:
        a1, a2, a3, a4 = t.thing(), t.thing(), t.thing(), t.thing()
    t.set(o=a1, o2=a2, o3=a3, o4=a4, x=t.neighbour(), y=t.character())
    t.opening()
    t.say("{a} wished for {o4.a}, but all {a.he} had was {o.a}.", "{a} had {o.a}, but what {a.he} really wanted was {o4.a}.")
    t.para()
    t.morning()
    t.say("{p.at} {a.he} met {x}, who looked sad. \"I need {o.a},\" said {x}, \"but I only have {o2.a}.\"", "First {a.he} met {x} {p.at}. \"What a [nice|fine] {o.noun}!\" said {x}. \"I would give {o2.a} for it.\"")
    t.say('"Take mine," said {a}. And so {a} got {o2.the}.', '"Let us swap," said {a}. Now {a.he} had {o2.a}.')
    t.say("Then {a.he} came to {q}. There was {b}. {b.he} had [been looking for|wanted] {o2.a} for a long time. \"Would you take {o3.a} for it?\" asked {b}. \"Gladly,\" said {a}.")
    t.say("So {a} walked on with {o3.the}.", "Now {a} had {o3.a}.")
    t.para()
    if t.chance(0.5):
        t.say("Last of all, {a} met {y} {r.at}. {y.he} was crying. \"I have lost my {o3.noun},\" said {y}. {a} [did not think long|gave {y.him} {o3.the}]. \"[Here, take this one|You can have this one],\" said {a}.")
        t.say("{y} [smiled|dried {y.his} tears]. \"Wait,\" said {y}, and ran home. When {y.he} came back, {y.he} held {o4.a}. \"This is for you!\"")
        t.say('{a} could not believe it. "[Just|Exactly] what I wished for!" {a.he} said.', "{a} laughed with joy. It was just what {a.he} had wanted.")
        t.lesson("a gift often comes back", "giving is the best way of getting", "a kind heart makes the best swaps")
    else:
        t.say("At last {a} met {y} {r.at}, and {y} had {o4.a}! They swapped, {o3.the} for {o4.the}.", "{r.at} sat {y} with {o4.a}. \"Do you want to swap?\" asked {a}. \"Yes!\" said {y}.")
        t.say("But on the way home, {a} thought of {o.the}. [It had been so dear to {a.him}.|It had been a present from {elder}.] Now it was gone.", "{a} was happy. But in the evening, something was missing. It was {o.the}.")
        t.say("The next day, {a} told {x} about it. \"You may [have|use] it whenever you like,\" said {x}. \"We can share it.\"", '{x} saw that {a} was sad. "Come and visit me," {x.he} said. "Then we can both use the {o.noun}."')
        t.lesson("we often see what we had when it is gone", "new things are not always better", "some things are dear because of who gave them")


def quarrel(t):
    t.env["b"].first_mention = None
    t.opening()
    t.say("{a.his} best friend was {b.name}" + (", a {b.trait} {b.kind}." if t.animals else "."))
    t.para()
    t.morning()
    t.say("{a} and {b} found {o.a} {p.at}. \"I saw it first!\" said {a}. \"No, I did!\" said {b}.", '{p.at} lay {o.a}. "It is mine!" said {a}. "It is mine!" said {b}, and both of them pulled.')
    t.say("They pulled this way and that way, until both fell [into the mud|to the ground].", "They shouted so loudly that the birds flew away.")
    t.say('"You are not my friend anymore!" [said|shouted] {b}, and ran to {q}. {a} ran home.', '"Then keep it!" said {b}, and went away. {a} had the {o.noun}, but {a.he} was not happy.')
    t.para()
    t.say("All [day|afternoon], {a} sat alone with {o.the}. It was no fun without {b}.", "At home, {a} [looked at|thought of] {o.the}. It was not as nice as before.", "{a} wanted to {hobby}, but alone it was no fun.")
    t.say('"What is a {o.noun} without a friend?" {a.he} thought.', '"What is the matter?" asked {elder}. {a} told {elder.him}. "What do you miss more," asked {elder}, "the {o.noun} or {b}?"')
    t.say("{a} took {o.the} and [ran|went] to {q}. On the way, {a.he} met {b}, who was coming to {a.him}.", "So {a} went to look for {b}. {b} was sitting {q.at}, all alone.")
    t.say('"I am sorry," they both said at the same time, and then they [laughed|had to laugh].', '"I am sorry," said {a}. "You can have it." "No," said {b}, "you can have it."')
    t.para()
    t.say("From then on, {o.the} stayed with {a} for one week and with {b} for the next.", "They put {o.the} {p.at}, where both of them could use it.", "Then an old woman came by. It was her {o.noun}! They gave it back, and she gave them {food.a}, which they shared.")
    t.maybe(0.4, "{wend}, and two friends walked home side by side.")
    t.lesson("a friend is worth more than a thing", "saying sorry is the shortest way back", "a thing that is shared is twice as nice")


def teacher(t):
    skill, bad, step = t.pick(("swim", "swallowed water", "hold your breath and float"), ("ride a bicycle", "fell into the grass", "look straight ahead"), ("whistle", "only blew air", "make your lips small and round"),
                              ("read", "mixed up all the letters", "take one letter at a time"), ("skate", "sat down on the ice", "bend your knees"), ("tie a knot", "ended with a big tangle", "make a loop like a rabbit's ear"),
                              ("juggle", "dropped both balls", "begin with one ball"), ("play the flute", "made a terrible squeak", "blow as softly as the wind"), ("bake bread", "burned the first loaf", "listen to the oven"),
                              ("climb a rope", "slid down again", "use your feet, not only your hands"), ("count to 100", "got stuck after 29", "think of ten small steps"))
    t.set(skill=skill, bad=bad, step=step, teach=t.neighbour(), m=t.pick("three", "four", "five", "ten"))
    t.opening()
    t.para()
    t.say("{a} could do many things, but {a.he} could not {skill}.", "All the others could {skill}, only {a} could not.")
    t.say('"I am too [small|slow|clumsy] for that," {a.he} said.', "When {b} saw it, {b.he} laughed a little, and {a} [felt bad|went away].", "It made {a.him} sad.")
    t.say("One day, {teach} saw {a.him} {p.at}. \"Do you want to learn how to {skill}?\" asked {teach}. {a} nodded.", '{teach} said, "I could not {skill} either, when I was {num}. Come, I will show you."')
    t.para()
    t.say("On the first day, {a} {bad}. On the second day, it was the same.", "{a} tried, and {a.he} {bad}. {a.he} tried again, and {a.he} {bad} again.")
    t.say('"The trick is this," said {teach}: "{step}."', '"Do not hurry," said {teach}. "{step}."')
    t.say("{a} practised in the morning. {a.he} practised in the evening. {a.he} even practised in {a.his} dreams.", "Every day, {a} went to {p} and practised.")
    t.say("After {m} days, it was a little better. After {m} weeks, {a} could {skill}!", "And one [day|morning], all of a sudden, it worked!")
    t.para()
    t.say('"[Look, look|Look at me]!" [cried|called] {a}. {teach} clapped.', '"I can {skill}!" called {a}, so loudly that everyone {q.at} heard it.')
    t.say("{b} was amazed. \"Can you teach me a trick too?\" {b.sub} asked, and {a} did.", "Some time later, {a} met a small child who could not {skill}. \"Do not hurry,\" {a.he} said. \"{step}.\"")
    t.lesson("practice makes hard things easy", "everyone begins as a beginner", "learning takes time, and that is all right")
