"""Writes what the engine's tests compare with: logits and greedy continuations of the tiny model, from
the exact forward in `reference.py` and from llama.cpp.

`tiny.json` has for each prompt its tokens, both continuations and, for the exact one, by how much each
token led; `NAME.exact.npy` and `NAME.llama.npy` are f32 logits, one row for each token of the prompt.
llama.cpp quantises activations before it multiplies, so the two differ by what `relative_l2` says.
"""

import argparse
import json
import os

import numpy as np
from tokenizers import Tokenizer

import llama
from reference import Model, Session
from tokenizer import BOS, EOS

PROMPTS = {
    "once": "Once upon a time",
    "talk": 'Once there was a curious boy named Finn. "What is in that box?" asked Finn, at 8 o\'clock. "Wait',
    "long": "There was once a shy young fox called Otto, who lived near a wide river. On a rainy day in May, Otto was up "
            "early. He put on a raincoat and",
}


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--model", default="../../crates/warpwright/models/tiny.gguf")
    args.add_argument("--tokenizer", default="build/tokenizer.json")
    args.add_argument("--count", type=int, default=96, help="tokens of a continuation")
    args.add_argument("-o", "--out", default="../../crates/warpwright/tests/tiny")
    args = args.parse_args()
    os.makedirs(args.out, exist_ok=True)
    tokenizer = Tokenizer.from_file(args.tokenizer)
    begin, end = tokenizer.token_to_id(BOS), tokenizer.token_to_id(EOS)
    model = Model(args.model)
    record = []
    for name, prompt in PROMPTS.items():
        tokens = [begin, *tokenizer.encode(prompt).ids]
        exact, theirs = Session(model).extend(tokens), llama.logits(args.model, tokens)
        distance = np.linalg.norm(theirs - exact, axis=-1) / np.linalg.norm(exact, axis=-1)
        np.save(os.path.join(args.out, f"{name}.exact.npy"), exact.astype(np.float32))
        np.save(os.path.join(args.out, f"{name}.llama.npy"), theirs.astype(np.float32))
        ids, margins = Session(model).greedy(tokens, args.count, stop=end)
        their_ids = llama.greedy(args.model, tokens, args.count, stop=end)
        text = lambda ids: tokenizer.decode(ids, skip_special_tokens=True)
        record.append({
            "name": name, "prompt": prompt, "tokens": tokens,
            "exact": {"ids": ids, "text": text(ids), "margins": [round(m, 6) for m in margins]},
            "llama": {"ids": their_ids, "text": text(their_ids), "relative_l2": [round(float(d), 6) for d in distance]},
        })
        agree = next((i for i, (a, b) in enumerate(zip(ids, their_ids)) if a != b), len(ids))
        print(f"{name}: {len(tokens)} tokens; llama.cpp is {distance.max():.2e} away and goes with it for {agree} of {len(ids)}")
    with open(os.path.join(args.out, "tiny.json"), "w") as f:
        # One line a list, so that a change can be read.
        f.write("[\n" + ",\n".join(json.dumps(r) for r in record) + "\n]\n")


if __name__ == "__main__":
    main()
