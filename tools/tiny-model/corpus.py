"""The corpus: `story(seed)` is one short story, the same for the same seed.

Training uses seeds from TRAIN_FIRST upwards and never one twice; held-out stories have the
seeds below it.
"""

import argparse
import random

import plots
import plots_more
from tale import Tale

PLOTS = [plots.lost, plots.making, plots.storm, plots.promise, plots.new_friend, plots.mistake, plots.search,
         plots.shared_meal, plots.sick_animal, plots_more.race, plots_more.secret, plots_more.repair, plots_more.fear,
         plots_more.garden, plots_more.lost_way, plots_more.wish, plots_more.swap, plots_more.quarrel,
         plots_more.teacher]

TRAIN_FIRST = 1_000_000


def tale(seed):
    """The tale and the plot's name: what was chosen, for tests; `story` is its text."""
    rng = random.Random(seed)
    t = Tale(rng)
    plot = rng.choice(PLOTS)
    plot(t)
    t.close()
    return t, plot.__name__


def story(seed):
    return tale(seed)[0].text()


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--seed", type=int, default=0, help="seed of the first story")
    args.add_argument("-n", type=int, default=1, help="how many")
    args.add_argument("--plot", help="only stories of this plot")
    args = args.parse_args()
    seed, left = args.seed, args.n
    while left:
        t, plot = tale(seed)
        if args.plot in (None, plot):
            print(f"--- {seed} {plot}\n{t.text()}\n")
            left -= 1
        seed += 1


if __name__ == "__main__":
    main()
