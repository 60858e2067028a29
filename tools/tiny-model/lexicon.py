"""Words of the stories: names, kinds, places, things, weather.

Only data. What is grammatical with what (articles, pronouns, prepositions) is
in `grammar.py`; what happens is in `plots.py`.
"""

GIRLS = """Ada Alma Amy Anna Anya Aria Asha Bella Beth Bianca Carla Cara Celia Chloe Clara Cora Daisy Dana Dora Edie
Ella Elsa Emma Erin Esme Eva Fay Fern Flora Freya Gina Grace Greta Hana Hazel Heidi Helen Holly Ida Ines Iris Isla
Ivy Jade Jana Jill Joy Julia June Kate Kira Lara Leah Lena Lily Lina Lola Lucy Luna Maja Mara Mary May Maya Mia Mila
Mina Mira Molly Nadia Nell Nina Nora Olga Olive Opal Paula Pearl Pia Polly Poppy Rita Rosa Rose Ruby Ruth Sally Sara
Selma Sofia Stella Sue Tara Tess Thea Tina Uma Vera Willa Wren Yara Zoe""".split()

BOYS = """Abel Adam Alan Albert Alfie Amir Andy Anton Arlo Ben Bert Bill Boris Bruno Carl Casper Charlie Colin Dan Dario
David Dean Dylan Eddie Eli Emil Eric Ethan Ezra Felix Finn Frank Fred Gabe George Gus Hans Harry Henry Hugo Ian Igor
Isaac Ivan Jack Jacob Jake James Jay Jim Joe John Jonas Josh Karl Kit Kofi Lars Leo Levi Liam Louis Luca Luke Marco
Mark Martin Matt Max Miles Milo Nate Ned Nick Niko Noah Olaf Omar Oscar Otto Owen Pablo Paul Percy Peter Quinn Ralph
Ravi Rex Rick Robin Rory Sam Samir Sid Simon Stan Tariq Ted Theo Tim Toby Tom Tomas Victor Will Yusuf Zack""".split()

# Animals that may be heroes, with what they are proud of.
ANIMAL_KINDS = {
    "rabbit": "long ears", "fox": "red tail", "bear": "big paws", "mouse": "tiny whiskers", "hedgehog": "brown spines",
    "squirrel": "bushy tail", "otter": "shiny coat", "badger": "striped nose", "duck": "yellow bill",
    "frog": "strong legs", "mole": "soft nose", "goat": "small horns", "beaver": "flat tail", "owl": "round eyes",
    "raccoon": "dark mask", "lamb": "white wool", "deer": "thin legs", "turtle": "green shell", "pig": "curly tail",
    "hamster": "round cheeks", "cat": "grey fur", "dog": "floppy ears", "goose": "white wings", "donkey": "soft ears",
}

TRAITS = ["kind", "curious", "shy", "cheerful", "brave", "quiet", "clever", "gentle", "busy", "dreamy", "careful",
          "lively", "patient", "friendly", "thoughtful", "playful", "honest", "hopeful"]

HOBBIES = ["paint pictures", "climb trees", "look at the stars", "sing songs", "collect stones", "read books",
           "watch the birds", "bake bread", "build small houses", "ride along the lane", "dance in the kitchen",
           "tell jokes", "draw maps", "play the drum", "count the clouds", "dig in the garden", "write letters",
           "fly kites", "sail toy boats", "listen to old stories", "jump over puddles", "play the flute",
           "make paper birds", "look for shells", "learn new words", "ask questions", "play hide and seek",
           "fix old toys", "plant seeds", "whistle tunes"]

# locale -> (home phrase, its places). A place is "preposition the noun": how one is there.
LOCALES = {
    "in a small village by the sea": ["on the beach", "at the harbour", "by the lighthouse", "in the sand dunes",
                                       "on the pier", "by the rock pools", "in the fish market", "on the cliff path"],
    "at the edge of a green forest": ["in the clearing", "by the stream", "under the old oak tree",
                                       "by the mossy rocks", "on the forest path", "at the wooden bridge",
                                       "in the fern valley", "by the beaver dam"],
    "in a little town with red roofs": ["at the market", "in the park", "in the town square", "in the library",
                                         "at the bakery", "by the fountain", "at the train station", "on the high bridge"],
    "on a quiet farm": ["in the barn", "in the wheat field", "in the orchard", "by the duck pond", "in the stable",
                         "by the old well", "in the vegetable garden", "at the farm gate"],
    "in a valley between two mountains": ["by the lake", "in the flower meadow", "at the old mill", "on the hill",
                                           "by the waterfall", "in the pine wood", "at the stone bridge", "in the cave"],
    "on a small island": ["in the bay", "by the palm trees", "on the white beach", "at the boat house",
                           "in the lagoon", "on the rocky hill", "by the shell cave", "in the banana grove"],
    "in a tall house on a long street": ["in the playground", "at the corner shop", "in the garden behind the house",
                                          "by the river", "at the school", "in the museum", "at the bus stop",
                                          "in the quiet courtyard"],
    "near a wide river": ["on the river bank", "at the ferry", "in the reeds", "on the island in the river",
                           "by the willow tree", "at the fishing spot", "in the berry bushes", "by the water wheel"],
}

# Sights of a place, keyed by a word of it; the rest use the general ones.
SIGHTS = ["[A|Two|Three] [small|grey|yellow|noisy] [bird sat|birds sat] near.", ]

COLOURS = ["red", "blue", "green", "yellow", "white", "black", "brown", "purple", "orange", "pink", "golden",
           "silver", "grey"]

# Things small enough to be carried, lost and given. noun -> adjectives that suit it.
THINGS = {
    "kite": COLOURS[:11] + ["new"], "ball": COLOURS[:10] + ["bouncy", "small"], "scarf": COLOURS[:10] + ["woolly", "long"],
    "hat": COLOURS[:10] + ["straw", "woolly"], "button": COLOURS + ["shiny", "round"], "key": ["old", "small", "golden", "silver", "rusty"],
    "bell": ["little", "golden", "silver", "shiny"], "whistle": ["tin", "wooden", "silver", "little"],
    "drum": ["red", "blue", "small", "wooden"], "flute": ["wooden", "silver", "small"], "book": ["old", "thick", "blue", "red", "little", "green"],
    "lantern": ["old", "small", "green", "red"], "basket": ["straw", "round", "brown", "little"], "spoon": ["wooden", "silver", "long"],
    "cup": ["blue", "white", "little", "yellow"], "marble": ["blue", "green", "glass", "shiny"], "ribbon": COLOURS[:12] + ["long"],
    "feather": ["white", "blue", "long", "grey", "golden"], "shell": ["pink", "white", "smooth", "little"], "ring": ["silver", "golden", "thin"],
    "umbrella": ["red", "blue", "yellow", "big", "striped"], "blanket": ["soft", "blue", "warm", "striped", "green"], "doll": ["little", "old", "cloth", "wooden"],
    "toy boat": ["red", "blue", "wooden", "little"], "toy train": ["red", "green", "wooden", "tin"], "teddy bear": ["brown", "old", "soft", "fluffy"],
    "pencil": ["red", "blue", "long", "yellow"], "map": ["old", "folded", "little"], "compass": ["brass", "old", "little"],
    "watch": ["silver", "old", "golden"], "bag": ["red", "green", "leather", "little"], "coin": ["golden", "silver", "old", "shiny"],
    "mitten": ["red", "blue", "woolly", "green"], "letter": ["long", "folded", "secret"], "paintbrush": ["thin", "new", "long"],
    "music box": ["little", "old", "wooden", "blue"], "skipping rope": ["new", "red", "long", "striped"],
    "puppet": ["wooden", "funny", "little"], "magnifying glass": ["big", "old", "new"], "paper crown": ["golden", "silver", "red"],
    "notebook": ["blue", "little", "yellow", "green"], "telescope": ["brass", "old", "long"], "yo-yo": ["red", "wooden", "blue"],
    "wooden horse": ["little", "painted", "brown"], "snow globe": ["little", "pretty", "round"],
}

# Good to eat: (phrase with "some"/"a", short name, pronoun)
FOODS = [("a loaf of bread", "bread", "it"), ("a basket of apples", "apples", "them"), ("a bowl of cherries", "cherries", "them"),
         ("a cheese pie", "pie", "it"), ("a bag of nuts", "nuts", "them"), ("a honey cake", "cake", "it"), ("some oat cookies", "cookies", "them"),
         ("a jar of plum jam", "jam", "it"), ("some ripe pears", "pears", "them"), ("a pot of soup", "soup", "it"),
         ("some warm buns", "buns", "them"), ("a plate of pancakes", "pancakes", "them"), ("a carrot cake", "cake", "it"),
         ("some blueberry muffins", "muffins", "them"), ("a slice of melon", "melon", "it"), ("a bunch of grapes", "grapes", "them"),
         ("some roasted chestnuts", "chestnuts", "them"), ("a potato pie", "pie", "it"), ("a box of strawberries", "strawberries", "them"),
         ("some sweet rolls", "rolls", "them")]

# Small creatures that may need help: noun -> (hurt part, home)
CREATURES = {
    "sparrow": ("wing", "the hedge"), "robin": ("wing", "the apple tree"), "kitten": ("paw", "the shed"), "puppy": ("paw", "the barn"),
    "duckling": ("foot", "the reeds"), "hedgehog": ("foot", "the pile of leaves"), "baby rabbit": ("leg", "the burrow"),
    "squirrel": ("tail", "the hollow tree"), "young owl": ("wing", "the old tower"), "seagull": ("wing", "the cliffs"),
    "lamb": ("leg", "the meadow"), "turtle": ("foot", "the pond"), "pigeon": ("wing", "the roof"), "baby goat": ("leg", "the hill"),
    "crow": ("wing", "the tall pine"), "butterfly": ("wing", "the flower garden"), "foal": ("leg", "the field"), "little bat": ("wing", "the attic"),
}

# key -> (adjective, sky sentences, clothes, how it ends)
WEATHERS = {
    "sunny": ("sunny", ["The sun was shining", "The sky was blue and clear", "There was not a single cloud in the sky"],
              ["a straw hat", "a light shirt", "a sun hat"], ["The sun was going down", "The sky turned pink and orange"]),
    "rainy": ("rainy", ["Rain was falling on the roofs", "It had rained since dawn", "Big drops of rain fell from the grey sky"],
              ["a raincoat", "a raincoat and rubber boots", "a yellow raincoat"], ["The rain had stopped at last", "A rainbow stood over the hills"]),
    "windy": ("windy", ["The wind was blowing hard", "A strong wind shook the trees", "The wind chased the clouds across the sky"],
              ["a scarf", "a thick jacket", "a jacket with many pockets"], ["The wind had grown quiet", "The leaves lay still on the ground"]),
    "snowy": ("snowy", ["Snow covered the ground", "Soft snow was falling", "Everything was white with snow"],
              ["a warm coat and mittens", "a woolly hat", "thick boots and a warm coat"], ["The snow shone in the light of the moon", "Snow fell softly on the roof"]),
    "foggy": ("foggy", ["A thick fog lay over the land", "The fog was as white as milk", "Fog hid the tops of the trees"],
              ["a warm jumper", "a bright red jacket", "a grey coat"], ["The fog had gone, and the stars came out", "The fog was gone, and the air was clear again"]),
    "hot": ("hot", ["The air was warm and still", "It was so hot that even the bees were sleepy", "The stones were warm from the sun"],
            ["a sun hat", "sandals", "a thin shirt"], ["A cool wind came up at last", "The evening was cool and pleasant"]),
    "cold": ("cold", ["Frost shone on the grass", "The puddles were frozen", "The air was cold and fresh"],
             ["a warm coat", "a woolly jumper", "a thick scarf"], ["The first stars shone in the cold sky", "A warm fire was burning in the stove"]),
    "cloudy": ("cloudy", ["Grey clouds hung low", "Clouds like sheep moved over the hills", "The sun hid behind the clouds"],
               ["a light jacket", "a green jumper", "a cap"], ["The clouds opened, and the moon looked out", "The last clouds moved away"]),
}

ELDERS = [("grandmother", "f"), ("grandfather", "m"), ("mother", "f"), ("father", "m"), ("aunt", "f"), ("uncle", "m")]
NEIGHBOURS = [("Mr.", "m"), ("Mrs.", "f")]
SURNAMES = """Finch Plum Brown Hill Green Miller Baker Stone Marsh Wood Reed Bell Cook Field Brook Moss Lake Frost Gray
Hart Hedge Rowan Thorn Birch Ash Fisher Potter""".split()
JOBS = ["the baker", "the teacher", "the gardener", "the postman", "the shoemaker", "the farmer", "the carpenter",
        "the old sailor", "the weaver", "the clockmaker", "the beekeeper", "the doctor", "the potter"]

PETS = """Patch Snow Pepper Button Sunny Cloud Muffin Pebble Star Ginger Shadow Dot Nut Biscuit Misty Fluff Honey Cocoa
Poppet Speck Bramble Clover Acorn Berry Twig Velvet Socks Domino""".split()
