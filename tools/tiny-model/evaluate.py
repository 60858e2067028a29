"""What the model card reports: the loss on held-out stories, with the exact forward, and samples."""

import argparse
import math

import llama_cpp
import numpy as np
from tokenizers import Tokenizer

import corpus
from reference import Model, Session
from tokenizer import BOS, EOS


def loss(model, tokenizer, stories):
    """Mean loss a token over the stories with the seeds from 0, and how many characters a token has."""
    begin, end = tokenizer.token_to_id(BOS), tokenizer.token_to_id(EOS)
    total, tokens, characters = 0.0, 0, 0
    for seed in range(stories):
        text = corpus.story(seed)
        ids = [begin, *tokenizer.encode(text).ids, end]
        logits = Session(model).extend(ids[:-1])
        top = logits.max(-1)
        log_sum = top + np.log(np.exp(logits - top[:, None]).sum(-1))
        total += (log_sum - logits[np.arange(len(ids) - 1), ids[1:]]).sum()
        tokens += len(ids) - 1
        characters += len(text)
    return total / tokens, characters / tokens


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("models", nargs="+", help="GGUF files")
    args.add_argument("--tokenizer", default="build/tokenizer.json")
    args.add_argument("--stories", type=int, default=128)
    args.add_argument("--samples", type=int, default=0, help="stories to print, the first one greedy")
    args.add_argument("--prompt", default="Once upon a time")
    args.add_argument("--temperature", type=float, default=0.8)
    args = args.parse_args()
    tokenizer = Tokenizer.from_file(args.tokenizer)
    for path in args.models:
        if args.stories:
            nats, characters = loss(Model(path), tokenizer, args.stories)
            print(f"{path}: loss {nats:.4f} nats a token, perplexity {math.exp(nats):.4f}, "
                  f"{nats / characters / math.log(2):.4f} bits a character, {args.stories} held-out stories")
        if args.samples:
            model = llama_cpp.Llama(path, n_ctx=512, n_threads=1, seed=1, verbose=False)
            for i in range(args.samples):
                temperature = args.temperature if i else 0.0
                answer = model.create_completion(args.prompt, max_tokens=400, temperature=temperature, top_p=1.0, top_k=0,
                                                 min_p=0.0, repeat_penalty=1.0)["choices"][0]
                print(f"--- temperature {temperature}, {answer['finish_reason']}\n{args.prompt}{answer['text']}\n")


if __name__ == "__main__":
    main()
