"""What happens. A plot is a function of a tale; each choice it makes binds what comes later:
what is lost is what is found, who helps is who is thanked, why it broke says how it is mended."""

import lexicon
from grammar import Food


def lost(t):
    t.opening()
    t.say("{a} had {o.a} [that {a.he} loved very much|that went with {a.him} everywhere|from {elder}]. ")
    t.para()
    t.morning()
    t.say("{a} went to play {p.at} and took {o.the} along.", "{a} took {o.the} and [walked|ran|went] to {p}.")
    t.maybe(0.5, "Later {a.he} went on to {q}.", "After that, {a.he} [rested|ate a sandwich|sat for a while] {q.at}.")
    t.say("But when {a} came home, {o.the} was gone!", "In the evening, {a} reached for {o.the}, and it was not there.",
          "On the way home, {a} looked for {o.the}. It was gone!")
    t.say('"Oh no!" cried {a}. "Where is my {o.noun}?"', '"My {o.noun}!" [cried|said] {a}. "I have lost it!"',
          "{a} felt [sad|very sad] and [began to cry|did not know what to do].")
    t.para()
    t.say("{b} heard {a.him}. \"[Do not cry|Do not worry|Do not be sad],\" said {b}. \"[I will help you|We will look for it together|Let us look together].\"",
          "Just then {b} came by. \"What is wrong?\" asked {b}. {a} told {b.obj} [everything|about the {o.noun}]. \"[I will help you look|Then let us look for it|We will find it],\" said {b}.")
    t.say("First they looked {q.at}, but [it was not there|they found nothing|there was only an old shoe|there was only a brown leaf].",
          "They looked under the bed and behind the door. They looked {q.at}. [Nothing!|It was not there.]",
          "They asked {elder}, but {elder.he} had not seen it. They looked {q.at}, but it was not there.")
    t.say('"Where did you [have|see] it last?" asked {b}. "{p.at}," said {a}. So they [went|ran|walked] back to {p}.',
          'Then {b} had an idea. "Let us go back the way you came," {b.sub} said. So they went back to {p}.')
    how = t.pick("bird", "wind", "hole", "forgot", "dog")
    if how == "bird":
        t.say("High in a tree, something [shone|moved] in the sun. It was the nest of a [magpie|crow|blackbird], and in the nest lay {o.the}! ")
        t.say("{b} [climbed up carefully|climbed the tree] and brought it down.", "{a} gave the bird {bait} instead, and the bird let {a.him} take the {o.noun}." )
        why = "A bird had carried it away."
        t.say(why)
        t.set(fix="After that, {a} never left {a.his} {o.noun} on the ground.")
    elif how == "wind":
        t.say("The wind had blown it into [a bush|a ditch|the tall grass]. \"There it is!\" [called|cried] {b}.",
              "There, caught in [a bush|the branches of a small tree|a fence], was {o.the}. The wind had taken it.")
        t.set(fix="From then on, {a} held on to {a.his} {o.noun} when the wind blew.")
    elif how == "hole":
        t.say("There, in the middle of the path, lay {o.the}. \"Look,\" said {b}, \"there is a hole in your bag!\" The {o.noun} had fallen out.",
              "{b} saw it first: {o.the} lay between two stones. It had fallen out of {a.pos} bag, because the bag had a hole.")
        t.set(fix="At home, {elder} [showed {a.him} how to sew|helped {a.him} sew], and {a} closed the hole in the bag.")
    elif how == "dog":
        t.say("A [little|big|brown|fluffy] dog sat there, and under its paw lay {o.the}. It only wanted to play. {a} threw a stick, the dog ran after it, and {b} picked up the {o.noun}.",
              "There sat a [little|young|spotted] dog with {o.the} between its paws. \"Good dog,\" said {a}. The dog [wagged its tail|licked {a.pos} hand] and gave it back.")
        t.set(fix="The dog became {a.his} friend, and they often played together.")
    else:
        t.say("And there it was, [on a bench|on a big stone|beside a tree], just where {a} had left it.",
              "{o.the} lay [on a flat stone|under a bench|in the grass], safe and dry. {a} had [put it down|left it there] and forgotten it.")
        t.set(fix="After that, {a} always looked back before {a.he} went home.")
    t.para()
    t.say('"Thank you, {b}!" said {a}, and gave {b.obj} a big hug. ', "{a} was so happy that {a.he} [jumped up and down|danced|laughed out loud]. \"Thank you for your help, {b},\" {a.he} said.",
          '"You are a good friend," said {a}. "[Thank you|I could not have found it without you]."')
    t.say("{fix}")
    if t.chance(0.5):
        t.evening()
    t.lesson("a friend makes a hard search easy", "we must take care of the things we love", "two look better than one",
             "it helps to stay calm and think")


def making(t):
    what, parts, bad, fix, joy = t.pick(
        ("a kite", ["some paper", "two thin sticks", "a long string"], "it fell down at once", "a longer tail", "It rose higher and higher until it was a small dot in the sky."),
        ("a little boat", ["a piece of wood", "a white cloth", "some string"], "it tipped over in the water", "a small stone in the bottom", "It sailed straight across the water."),
        ("a bird house", ["four boards", "a box of nails", "some green paint"], "the roof let in the rain", "a second board for the roof", "Two days later, a pair of birds moved in."),
        ("a scarf", ["some blue wool", "two needles", "a soft brush"], "there was a big hole in the middle", "a patch shaped like a heart", "It was warm and soft, and the patch was the best part."),
        ("a swing", ["a strong rope", "a smooth board", "a good branch"], "it hung to one side", "a better knot", "It went so high that the toes touched the leaves."),
        ("a lamp", ["an empty jar", "a candle", "some coloured paper"], "the wind blew it out", "a lid with small holes", "It shone red and gold in the dark."),
        ("a drum", ["an old pot", "a piece of leather", "some cord"], "it made no sound at all", "a tighter cord", "It went boom, boom, boom, and everyone came to listen."),
        ("a cake", ["some flour", "three eggs", "a cup of honey"], "it was as flat as a plate", "a spoon of baking powder", "It came out of the oven tall and golden."),
        ("a puppet", ["an old sock", "two buttons", "some yellow wool"], "one eye fell off", "a stronger thread", "It could nod, and bow, and make everybody laugh."),
        ("a cart", ["a wooden box", "four wheels", "a long handle"], "one wheel came off", "a wooden pin for each wheel", "It rolled down the lane without a bump."),
        ("a raft", ["six logs", "a thick rope", "a long pole"], "the logs drifted apart", "a knot at both ends of each log", "It floated like a duck."),
        ("a telescope", ["a paper tube", "two glass lenses", "some glue"], "everything looked like fog", "a little more space between the lenses", "The moon looked so near that one could almost touch it."),
    )
    parts = t.rng.sample(parts, 3)
    t.set(what=what, it=what.split(" ", 1)[1], p1=parts[0], p2=parts[1], p3=parts[2], bad=bad, repair=fix, joy=joy)
    t.opening()
    t.para()
    t.morning()
    t.say('"Today I will make {what}," [said {a}|{a} said|thought {a}].', "{a} wanted to make {what} [all by {a.himself}|for {b}, who had a birthday soon|for {elder}].",
          "{a} had never made {what} before, but today {a.he} wanted to try.")
    t.say("{a.he} needed three things: {p1}, {p2}, and {p3}.", "For that {a.he} needed {p1}, {p2}, and {p3}.")
    t.say("{a.he} found {p1} [at home|in a box|under the stairs]. {elder} gave {a.him} {p2}. And {b} had {p3}.",
          "{elder} had {p1}. {a.he} found {p2} {p.at}. Last of all, {b} brought {p3}.",
          "{a.he} looked {p.at} and found {p1}. {b} gave {a.him} {p2}. {p3} came from {elder}.")
    t.para()
    t.say("{a} worked [all morning|for two hours|until noon]. But when {a.he} tried the {it}, {bad}.",
          "At last the {it} was ready. {a} tried it, but oh! {bad}.", "{a} and {b} worked hard. They tried the {it}, but {bad}.")
    t.say('"It is no good!" [cried|said] {a}. {a.He} [was angry|was close to tears|wanted to give up].', '{a} sighed. "I cannot do it," {a.he} said.', "{a} was so [sad|disappointed] that {a.he} [sat down on the floor|did not say a word].")
    t.say('"Nobody gets it right the first time," said {elder}. "What is wrong with it?"', '"Let us think," said {b}. "What is wrong with it?"', '"Wait," said {b}. "I think we can mend it."')
    t.say("{a} looked at the {it} [again|from all sides|for a long time]. Then {a.he} smiled. It needed {repair}!", "{a} thought and thought. \"I know!\" {a.he} said. \"It needs {repair}.\"")
    t.para()
    t.say("So {a} tried again, and this time it worked. {joy}", "{a} worked for [another|one more] hour. {joy}", "They tried once more. {joy}")
    t.say('"[Look|Hurray|We did it]!" [shouted|called|cried] {a}.', '"How beautiful!" said {elder}.', "{b} clapped {b.his} hands. \"Well done!\" {b.sub} said.", "{a} was very proud.")
    if t.chance(0.4):
        t.evening()
    t.lesson("a mistake is only the first step", "it is good to try again", "nobody gets everything right the first time", "a little patience makes good work")


def storm(t):
    who, where, sign = t.pick(("kitten", "under a bush", "a thin meow"), ("lamb", "behind a rock", "a weak bleat"), ("puppy", "in a ditch", "a soft whine"),
                              ("duckling", "in the wet grass", "a tiny peep"), ("baby goat", "on a narrow ledge", "a frightened cry"), ("foal", "beside a broken fence", "a low whinny"))
    if who.endswith(t.env["a"].kind):
        who, where, sign = "kitten", "under a bush", "a thin meow"
    t.set(y=who, where=where, sign=sign, end=t.pick("The storm was over", "The rain had stopped", "The wind had grown quiet"))
    t.opening()
    t.say("{a} had a [little|young|small] {y} [called|named] {pet}, and they were always together.", "In {a.his} home there also lived a [little|young] {y} [called|named] {pet}.")
    t.para()
    t.say("One [evening|afternoon|night], [dark clouds came over the hills|the sky turned black|a great storm came up]. The wind [howled|blew and blew], and [thunder rolled|lightning flashed].",
          "One [evening|day], {a} saw dark clouds. \"A storm is coming,\" said {elder}. Soon the rain [beat on the roof|came down in sheets].")
    t.say("{a} looked [for {pet} everywhere|under the table and behind the stove], but {pet} was not [there|in the house].", "But where was {pet}? {a} called and called, but no {y} came.")
    t.say('"{pet} is out there all alone!" said {a}.', '"I must find {pet}," said {a}.', "{a} was afraid of the [storm|thunder], but {a.he} was more afraid for {pet}.")
    t.say("{a.he} put on a raincoat, took a lantern, and went out with {elder}.", "{elder} took the big lantern, {a} put on {a.his} boots, and they went out together.", '"I will come with you," said {b}. They put on their coats and lit a lantern.')
    t.para()
    t.say("They looked {p.at}. They looked {q.at}. [No {y}.|There was nothing but rain.|They called until they had no voice left.]", "The path to {p} was full of [mud|water|fallen branches]. Step by step they went on.")
    t.say('"{pet}! {pet}!" [called|shouted] {a}. Then {a.he} heard {sign}.', "Suddenly {a} stopped. \"Listen!\" {a.he} said. It was {sign}.")
    t.say("There, {where}, [sat|was] the {y}, wet and [cold|shaking].", "{pet} was {where}, too frightened to move.")
    t.say("{a} wrapped the {y} in {a.his} [scarf|jacket|coat] and [held it close|carried it home].", '"Do not be afraid, I am here," [said|whispered] {a}, and took the {y} in {a.his} arms.')
    t.para()
    t.say("At home, they dried {pet} with a [warm|soft] towel. {elder} made [hot soup|hot milk with honey|a big pot of tea].", "Soon they were all sitting by the fire. There was [hot soup|warm milk|tea with honey] for everyone.")
    t.say("{pet} [fell asleep|curled up] on {a.pos} lap.", "The {y} [licked {a.pos} hand|closed its eyes] and fell asleep.")
    t.maybe(0.6, "{end}, and the stars came out.", "In the morning, the sky was blue again.", "{end}, and the house was still.")
    t.lesson("being brave does not mean having no fear", "love is stronger than fear", "a friend is worth a walk through the storm", "even the worst storm comes to an end")


def promise(t):
    deed, when, wait, result = t.pick(
        ("water {elder.his} tomatoes", "before noon", "The leaves hung down, and the earth was dry", "The leaves stood up again"),
        ("bring {elder.him} a letter", "before dark", "The letter was still in {a.pos} pocket", "{elder} read the letter and smiled"),
        ("feed the hens", "at four o'clock", "The hens were hungry and looked at the gate", "The hens ran to their corn"),
        ("shut the garden gate", "before dark", "The gate stood wide open", "Not one sheep came into the garden"),
        ("carry home the firewood", "before the evening", "The stove was cold", "Soon a warm fire was burning"),
        ("fetch fresh milk", "before supper", "The jug on the table was empty", "There was enough milk for everyone"),
        ("sweep the yard", "before supper", "Leaves lay all over the yard", "The yard was as clean as a plate"),
        ("help pick the apples", "after lunch", "The baskets were empty", "Soon {n} baskets were full"),
    )
    fun = t.pick("play ball", "swim", "climb the big tree", "sail toy boats", "fly a kite", "play hide and seek", "look for frogs", "build a hut", "slide down the hill")
    t.set(deed=deed, when=when, waiting=wait, result=result, fun=fun, o2=t.thing())
    t.opening()
    t.para()
    t.morning()
    t.say("{elder} had [much|a lot] to do that day. \"Can you {deed_you} {when}?\" {elder.he} asked. \"I promise,\" said {a}.".replace("{deed_you}", deed.replace("{elder.his}", "my").replace("{elder.him}", "me")),
          "{a} had promised {elder} to {deed} {when}.", '"I will {deed_i} {when}," said {a} to {elder}. "That is a promise."'.replace("{deed_i}", deed.replace("{elder.his}", "your").replace("{elder.him}", "you")))
    t.say("But on the way, {a.he} met {b} {p.at}.", "Then {b} came along.", "{p.at} {a.he} saw {b}.")
    t.say('"Come and {fun} with us!" [called|said] {b}.', '"Do you want to {fun}?" asked {b}. "It is so much fun!"')
    t.para()
    if t.chance(0.5):
        t.say("{a} wanted to {fun} very much. [{a.he} looked at {b}. {a.he} looked at the road.|{a.he} thought about it for a moment.]")
        t.say('"I made a promise," {a.sub} said. "First I must keep it. Then I will come."', '"Not now," said {a}. "I gave my word. But I will come later."')
        t.say("{b} was [a little sad|not pleased] at first. Then {b.sub} [said|smiled and said], \"I will help you. Two are faster than one.\"", '"All right," said {b}. "I will wait for you {p.at}."')
        t.say("{a} [ran|hurried] home and did what {a.he} had promised. {result}.", "So {a} kept {a.his} word. {result}.")
        t.para()
        t.say("\"You kept your promise,\" said {elder}, and {elder.he} gave {a.him} {food.a}.", "{elder} was proud. \"I can trust you,\" {elder.he} said.")
        t.say("Then {a} and {b} went out to {fun}, and they [laughed|played] until [the sun went down|it was dark].",
              "After that, there was still time to {fun} with {b}.")
        t.lesson("a promise comes before play", "it feels good to keep a promise", "a kept promise makes others happy")
    else:
        t.say("{a} forgot all about the promise. They [played|laughed and played] [all afternoon|for hours|until the sun was low].", '"Just for a moment," said {a}. But the moment became an hour, and the hour became two.')
        t.say("Then {a.he} remembered. \"Oh no! My promise!\" {a.he} cried, and ran home as fast as {a.he} could.", "Suddenly {a} stood still. \"I forgot my promise!\" {a.he} said.")
        t.say("It was late. {waiting}.", "{waiting}. {a} felt [ashamed|terrible].")
        t.say('"I am sorry," said {a}. "I gave my word, and I forgot."', "{a} looked at the floor. \"I was playing,\" {a.he} said. \"I am very sorry.\"")
        t.say('"Thank you for telling me the truth," said {elder}. "It is not too late."', "{elder} was not angry. \"Then let us do it now, together,\" {elder.he} said.")
        t.para()
        t.say("{a} set to work at once, and {b} helped too. {result}.", "So {a} did it right away. {result}.")
        t.maybe(0.5, "{wend}.")
        t.lesson("a promise must not be forgotten", "it is never too late to make things right", "it is better to do what we promised first")


def new_friend(t):
    game = t.pick("hide and seek", "catch", "a game with stones", "pirates", "tag", "a guessing game", "shop")
    t.set(game=game)
    t.env["b"].first_mention = None  # nobody knows the newcomer's name yet
    t.opening()
    t.say("But {a} had nobody to play with.", "{a.he} often [played alone|felt lonely].", "Still, something was missing: a friend.")
    t.para()
    t.morning()
    t.say("{a} was walking {p.at} when {a.he} saw somebody new.", "When {a} came to {p}, somebody was already there.", "{a} took {o.the} and went to {p}.")
    if t.animals:
        t.say("A [young|small] {b.kind} was sitting there all alone, looking at the ground.", "It was a {b.kind}, and {b.he} looked [sad|lost|very shy].")
    else:
        t.say("A {b.kind} was sitting there all alone, looking at the ground.", "It was a {b.kind}, and {b.he} looked [sad|lost|very shy].")
    t.say('"Hello, I am {a}," said {a}. "What is your name?" "{b}," said the {b.kind} [very|] softly.', '"Hello! What is your name?" asked {a}. "My name is {b}," said the {b.kind}. "We moved here [yesterday|last week|{n} days ago]. I do not know anyone."')
    t.say("For a while, nobody said anything. [{a} did not know what to say.|Only the birds were singing.]", "{a} was [a little shy|shy too], but {a.he} [sat down|stayed].", "{b} looked away.")
    t.para()
    t.say('Then {a} held out {o.the}. "Would you like to [try|hold|see] it?" {a.sub} asked.', 'Then {a} had an idea and showed {b} {o.the}. "You can have a turn," {a.sub} said.')
    t.say("{b} smiled for the first time.", "{b.pos} eyes grew [big|bright]. \"[May I|Really]?\" {b.sub} asked.", "\"It is [beautiful|wonderful]!\" said {b}.")
    t.say("Soon they were playing {game} {q.at}.", "After that, they [ran to|went to] {q} and played {game}.")
    t.maybe(0.6, "{b} knew [a song|a joke|a trick] that {a} had never heard, and they laughed [a lot|until their bellies hurt].", "They shared {food.a} and talked about [everything|their dreams|the stars].")
    t.para()
    t.say('"Will you come [again|back] tomorrow?" asked {b}. "[Of course|Yes, I will]," said {a}. "Friends always come back."', '"Are we friends now?" asked {b}. "Yes," said {a}, "we are."',
          "When it was time to go home, {b} gave {a} a [smooth stone|little flower|bright leaf]. \"This is for you,\" {b.sub} said.")
    if t.chance(0.5):
        t.evening()
    t.say("From that day on, {a} and {b} [met every day|were best friends|did everything together].", "{a} was never lonely again.") if t.chance(0.6) else None
    t.lesson("a kind word can open a door", "a new friend may be waiting just around the corner", "sharing is a good way to begin", "it only takes one hello to make a friend")


def mistake(t):
    thing, cause, mend = t.pick(
        ("vase", "ran through the room", "glued the pieces together, one by one"), ("window", "kicked the ball too hard", "helped to put in a new glass"),
        ("teapot", "reached for the cookies", "saved {a.his} coins for a new one"), ("kite", "pulled the string too hard", "made a new tail and a new frame"),
        ("toy boat", "dropped the toy boat on the stones", "carved a new mast"), ("picture", "spilled water on the table", "painted a new picture"),
        ("flower pot", "chased a butterfly", "planted the flower in a new pot"), ("sand castle", "jumped without looking", "built a new castle with two towers"),
        ("music box", "wound the music box up too far", "took it to the clockmaker and swept his shop in return"), ("birthday cake", "bumped into the table", "baked a new one"),
        ("lantern", "swung the lantern too fast", "cut new paper for every side"), ("fence", "climbed over the fence", "nailed the boards back on"))
    owner = t.pick("b", "b", "nb")
    t.set(thing=thing, cause=cause, mend=mend, x=t.env["b"] if owner == "b" else t.neighbour())
    t.opening()
    t.para()
    t.morning()
    t.say("{a} was at the house of {x}. {a.he} {cause}, and crash! The {thing} was broken.", "{a} was visiting {x}. {a.he} {cause}, and then it happened: the {thing} broke.",
          "{x} had a beautiful {thing}. That day, {a} {cause}, and the {thing} broke.")
    t.say("Nobody had seen it.", "The room was very still.", "{a.pos} heart beat fast.", '"Oh no," whispered {a}.')
    t.say("{a} [was afraid|was scared] and ran away to {p}.", "{a} hid behind a [tree|door|wall]. \"Maybe nobody will know,\" {a.he} thought.", "{a} went home and said nothing.")
    t.para()
    t.say("But {a.he} could not [eat|sleep|play|laugh]. There was something heavy in {a.his} [heart|chest].", "But all day long {a.he} thought of the {thing}. Even {food} did not taste good.",
          "{elder} looked at {a.him}. \"You are so quiet today,\" {elder.he} said. {a} [told {elder.him} everything|began to cry and told {elder.him} what had happened].")
    t.say('"I must tell the truth," thought {a}.', 'At last {a} made up {a.his} mind. "I will say that I am sorry," {a.he} thought.', '"[It is hard to tell the truth|Telling the truth takes courage]," said {elder}, "but it will make you feel [lighter|better]."')
    t.say("So {a} went back. {a.his} knees were [weak|shaking].", "The next morning, {a} knocked at the door.")
    t.say('"I broke your {thing}," {a.sub} said. "It was my fault, and I am sorry."', '"{x}," said {a}, "it was me. I broke the {thing}. Please forgive me."')
    t.para()
    t.say("{x} was [silent|quiet] for a moment. Then {x.he} [smiled|nodded]. \"Thank you for telling me,\" {x.he} said." , "At first {x} was sad. But then {x.he} said, \"[I am glad that you told me the truth|It was brave to come here]. I forgive you.\"")
    t.say("Together they cleaned up, and {a} {mend}.", "{a} {mend}. It took [all day|a whole week|three days], but {a.he} did not mind.")
    t.say("{a} felt as light as a feather.", "Now {a} could laugh again.", "That night, {a} slept [well|deeply].")
    t.lesson("the truth makes the heart light", "it is brave to say sorry", "a mistake can be mended, but first it must be told", "an honest word is worth more than any {thing}".replace("{thing}", thing))


def search(t):
    goal, reason, thanks = t.pick(
        ("a blue flower", "{elder} was sick and wished to see one", "The flower stood by the bed, and {elder} was well again after three days"),
        ("a four-leaf clover", "{b} needed luck for a big day", "{b} kept it in a book for a very long time"),
        ("the first strawberry of the year", "{elder} loved strawberries", "{elder} cut it in two, and they ate it together"),
        ("a white stone", "{b} needed one more for a necklace", "{b} put it in the middle of the necklace"),
        ("a big pearl shell", "{b} had never seen one", "When {b} held it to {b.his} ear, {b.he} could hear the waves"),
        ("a silver leaf", "an old song told about it", "It hung over {a.pos} bed and shone in the dark"),
        ("some wild honey", "{elder} had a bad cough", "After {n} spoons of honey, the cough was gone"),
        ("a star stone", "{elder} had lost one long ago", "{elder} had tears of joy in {elder.his} eyes"),
        ("a golden feather", "{b} did not believe that there was one", "\"So it is true!\" said {b}"),
        ("some mint leaves", "{elder} wanted to make a special tea", "Soon the whole house smelled of mint"))
    g1, g2, g3 = t.rng.sample(["frog", "snail", "beetle", "robin", "crow", "bee", "squirrel", "cow", "toad", "mole", "goose", "lizard", "cat", "woodpecker"], 3)
    if t.env["a"].kind in (g1, g2):
        g1, g2 = "snail", "bee"
    t.set(goal=goal, reason=reason, thanks=thanks, g1=g1, g2=g2, bare=goal.split(" ", 1)[1])
    t.opening()
    t.para()
    t.morning()
    t.say("{a} wanted to find {goal}, because {reason}.", "{a} set out to look for {goal}. {reason}.")
    t.say("{a.he} took {food.a} and [went off|set off].", "{a.he} packed {food.a} and [waved goodbye|set off].")
    t.para()
    t.say("{p.at} {a.he} met a {g1}. \"Have you seen {goal}?\" asked {a}. \"No,\" said the {g1}, \"but ask the {g2} {q.at}.\"",
          "First {a.he} came to {p}. A {g1} was sitting there. \"I am looking for {goal},\" said {a}. \"Go to {q} and ask the {g2},\" said the {g1}.")
    t.say("So {a} went to {q}. It was a long way.", "{a} thanked the {g1} and walked on to {q}.")
    t.say("The {g2} was [busy|hungry|tired]. {a} gave it some of the {food}, and the {g2} said, \"[What you are looking for|It] is {r.at}, [behind a big rock|under a root|where the sun comes up first|between two tall trees].\"",
          "\"If you [help me first|carry this twig for me|tell me a riddle], I will tell you,\" said the {g2}. {a} did so gladly. \"Now go to {r},\" said the {g2}, \"and look down.\"")
    t.para()
    t.say("{a} [hurried|ran] to {r}. {a.he} looked left, and {a.he} looked right. There it was!" if not goal.startswith("some") else "{a} [hurried|ran] to {r}. {a.he} looked left, and {a.he} looked right. At last {a.he} found it!",
          "At first {a} saw nothing {r.at}. {a.he} sat down, tired and sad. Then {a.he} looked down, and [there it was|right before {a.him} was the {bare}]!")
    t.say("Carefully {a.he} [took it|put it into {a.his} bag] and [ran|walked] home.", "{a.he} laughed [with joy|out loud] and [ran|hurried] all the way home.")
    t.say("{thanks}.")
    t.maybe(0.4, "{wend}.")
    t.lesson("those who help others are helped in return", "a friendly question opens many doors", "it is worth going one more step", "good things are often closer to the ground than we think")


def shared_meal(t):
    t.opening()
    t.para()
    t.morning()
    c1, c2 = t.neighbour(), t.character()
    foods = [Food(*f) for f in t.rng.sample(lexicon.FOODS, 3)]
    t.set(x=c1, y=c2, food=foods[0], f2=foods[1], f3=foods[2])
    t.say("{a} had {food.a} and [wanted to eat {food.it} {p.at}|went to {p} to eat {food.it}].", "{elder} gave {a} {food.a} for lunch, and {a} went to {p}.")
    t.say("Just as {a.he} sat down, {b} came by. {b.he} looked [hungry|tired|sad].", "There sat {b}, who had [nothing to eat|forgotten {b.his} lunch].", "{b} was there too. {b.pos} belly [was growling|made a loud noise].")
    t.say("{a} looked at the {food}. There was not much. [But {a.he} could not eat while {b} was hungry.|\"What shall I do?\" {a.he} thought.]", '"I have not eaten since [yesterday|this morning]," said {b}.')
    t.say('"Come, sit with me," said {a}, and gave {b} half of the {food}.', '"We can share," said {a}. "Half for you, half for me."')
    t.para()
    t.say("Then {x} came along the path. \"May I sit with you? I have {f2.a},\" said {x}, \"and it is no fun to eat alone.\"",
          '"That looks nice," said {x}, who was passing by. "I will get {f2.a}, and then we will have even more."')
    t.say("Soon {y} joined them and brought {f3.a}.", "After a while {y} came too. {y.he} had {f3.a} in {y.his} basket.")
    t.say("So there [was|was suddenly] a whole feast: {food.a}, {f2.a}, and {f3.a}!", "They spread a [cloth|blanket] on the ground and put everything on it: {food.a}, {f2.a}, and {f3.a}.")
    t.para()
    t.say("They ate and talked and laughed.", "{x} told [a funny story|a story about the old days], and {y} sang a song.", "Everyone ate until [they were full|nothing was left but crumbs].")
    t.say('"I gave away one half," said {a}, "and I got so much back!"', "{a} had never had such a [good|fine|merry] lunch.", '"{food} never tasted so good," said {b}.')
    if t.chance(0.4):
        t.evening()
    t.lesson("food tastes better when it is shared", "sharing makes a little into a lot", "a table has room for one more")


def sick_animal(t):
    t.opening()
    t.para()
    t.morning()
    t.say("{p.at} {a.he} heard a [weak|small|soft] sound. A {c} [lay|sat] on the ground. Its {c.hurt} was hurt.", "{a} went to {p}. There {a.he} found a {c} that could not move. Its {c.hurt} was [bleeding a little|hurt|broken].",
          "On the way to {p}, {a} saw a {c} in the [grass|leaves]. It looked at {a.him} with big eyes. Something was wrong with its {c.hurt}.")
    t.say('"You poor thing," said {a}. "I will help you."', '"Do not be afraid," said {a} softly. "I will not hurt you."', "{a} came closer, step by step. The {c} was shaking.")
    t.say("{a.he} wrapped it in {a.his} [scarf|jacket|jumper] and carried it home.", "Carefully {a.he} put it in a basket and took it home.")
    t.para()
    t.say('"What shall we do?" asked {a}. {elder} looked at the {c.hurt}. "It needs a bandage and rest," {elder.he} said.', "{b}, who knew a lot about animals, came to help. {b.he} [cleaned the {c.hurt}|put a bandage on the {c.hurt}].")
    t.say("{a} made a bed of [straw|soft hay|an old blanket] in a box.", "They made a nest of [wool|hay|soft cloth] by the stove.")
    t.say("{a} called the {c} {pet}.", '"I will call you {pet}," said {a}.', '"Its name is {pet}," said {a}.')
    t.say("Every [day|morning], {a.he} brought {pet} water and food and [told it stories|sang to it|sat beside it].", "{a.he} fed {pet} with a [little|small] spoon, [three|four|five] times a day.")
    t.say("On the first day, {pet} [would not eat|only slept]. On the second day, it ate a little. On the third day, it [looked around|stood up|made a happy sound]!", "At first {pet} was too weak to eat. But {a} was patient, and little by little {pet} grew stronger.")
    t.para()
    t.say("After [two weeks|{n} days|a month], the {c.hurt} was [well again|healed].", "Then came the day when {pet} was [healthy|strong] again.")
    t.say('"It wants to go home," said {elder}. {a} was sad, but {a.he} knew that it was right.', '{a} wanted to keep {pet}. "But {pet} belongs in {c.home}," said {b}. {a} [nodded|knew that it was true].')
    t.say("They took {pet} back to {c.home}. [It looked back once, and then it was gone.|\"Goodbye, {pet}!\" called {a}.]", "{a} opened {a.his} hands. \"Goodbye, little friend,\" {a.he} said, and {pet} was free.")
    t.maybe(0.6, "But every [spring|evening|Sunday], {pet} came back to visit.", "The next morning, {pet} sat outside the window, just to say hello.", "Sometimes, {p.at}, {a} saw {pet} from far away and waved.")
    t.lesson("to love somebody also means to let go", "small hands can do great good", "patience and care can heal", "even the smallest creature needs a friend")
