"""Trains the byte-level BPE. Its pre-tokenizer is gpt-2's, which llama.cpp knows by that name."""

import argparse

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import corpus

BOS, EOS = "<|begin|>", "<|end|>"


def train(vocabulary, stories):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=[BOS, EOS], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    first = corpus.TRAIN_FIRST // 2
    tokenizer.train_from_iterator((corpus.story(first + i) for i in range(stories)), trainer)
    return tokenizer


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("-o", "--out", default="build/tokenizer.json")
    args.add_argument("--vocabulary", type=int, default=3072)
    args.add_argument("--stories", type=int, default=20000)
    args = args.parse_args()
    tokenizer = train(args.vocabulary, args.stories)
    tokenizer.save(args.out)
    text = [corpus.story(i) for i in range(500)]
    tokens = sum(len(tokenizer.encode(s).ids) for s in text)
    print(f"{tokenizer.get_vocab_size()} tokens; {sum(map(len, text)) / tokens:.2f} characters a token, "
          f"{tokens / len(text):.0f} tokens a story")
    assert all(tokenizer.decode(tokenizer.encode(s).ids) == s for s in text)


if __name__ == "__main__":
    main()
