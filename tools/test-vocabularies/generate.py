#!/usr/bin/env python3
"""Writes crates/warpwright-llm/tests/data/tokenizers/: small vocabularies, and llama.cpp's ids for a table of texts.

    pip install gguf tokenizers llama-cpp-python
    python tools/test-vocabularies/generate.py

The vocabularies are trained on texts.py. Merges may join anything, a space and a digit too, so that where a
pre-tokenizer cuts shows in the ids. `cases.json`: for each text the different lists of ids that it has, and for
each case (a vocabulary, keys that are set or removed in it, how a text is encoded) which of them.
"""

import ctypes
import json
import random
import tempfile
from pathlib import Path

import gguf
import llama_cpp.llama_cpp as llama
from texts import CODE, EDGES, PROSE
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

OUT = Path(__file__).parents[2] / "crates/warpwright-llm/tests/data/tokenizers"
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

# Every name that llama.cpp knows for a byte-pair vocabulary.
PRE = """default llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano dbrx smaug-bpe
chatglm-bpe glm4 glm5 jais-2 gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert
jina-v1-en jina-v2-code roberta-bpe mpt olmo jais exaone4 trillion granite-docling starcoder refact command-r smollm
codeshell exaone minerva-7b mellum2 falcon qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open
grok-2 qwen35 ufakzeka laguna minicpm5 bailingmoe bailingmoe2 llada-moe seed-coder exaone-moe deepseek-llm
deepseek-coder deepseek-v3 hunyuan-dense joyai-llm hy_v4 spark2_5 afmoe youtu tiny_aya cohere2moe poro-chat bloom
gpt3-finnish viking tekken gpt-4o llama4 kanana2 talkie minimax-m2 granite-embed-multi-97m chameleon kimi-k2
superbpe""".split()
RAW = "gemma4 granite-embed-multi-311m sarvam-moe".split()

SPECIAL = [
    ("<|endoftext|>", CONTROL),
    ("<|im_start|>", CONTROL),
    ("<|im_end|>", CONTROL),
    ("<mask>", CONTROL),
    ("<pad>", CONTROL),
    ("<tool>", USER),
    ("</tool>", USER),
    ("  \t", USER),
    ("▁outside", NORMAL),
    ("unused", UNUSED),
]


def corpus(seed):
    """Lines in which any text may stand beside any other."""
    draw = random.Random(seed)
    words = [word for text in PROSE + CODE for word in text.split(" ")]
    lines = (PROSE + CODE) * 12
    for _ in range(800):
        join = draw.choice([" ", " ", "", "  ", "\n", "\n\n", "   ", "\t", "\r\n", ", ", "123", " 45"])
        lines.append(join.join(draw.choices(words, k=8)))
    return lines


def train(raw, size):
    tokenizer = Tokenizer(models.BPE())
    if raw:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
        alphabet = []
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, limit_alphabet=600, max_token_length=12, show_progress=False
    )
    # Runs of newlines are words of their own where a vocabulary is raw.
    lines = [part for line in corpus(7) for part in (line.split("\n") if raw else [line])]
    tokenizer.train_from_iterator(lines, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return tokens, merges


def write(name, model, tokens, types, merges=None, scores=None, **keys):
    writer = gguf.GGUFWriter(str(OUT / f"{name}.gguf"), "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if scores:
        writer.add_token_scores(scores)
    if merges:
        writer.add_token_merges(merges)
    for key, value in keys.items():
        add = writer.add_bool if isinstance(value, bool) else writer.add_uint32
        add(f"tokenizer.ggml.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def vocabularies():
    OUT.mkdir(parents=True, exist_ok=True)
    tokens, merges = train(False, 1400)
    # A token that nothing merges to, merges of what is no token, and a merge that is none.
    merges[40:40] = ["q z", "Ġ qz", "nospace", "t h"]
    count = len(tokens)
    texts = tokens + [text for text, _ in SPECIAL]
    types = [NORMAL] * count + [kind for _, kind in SPECIAL]
    write("bpe", "gpt2", texts, types, merges, bos_token_id=count, eos_token_id=count)

    tokens, merges = train(True, 1500)
    head = [("<pad>", CONTROL), ("<eos>", CONTROL), ("<bos>", CONTROL), ("<unk>", UNKNOWN)]
    head += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    tail = [("\n" * n, NORMAL) for n in (1, 2, 3)] + [("<turn|>", CONTROL), ("<tool>", USER), ("</tool>", USER)]
    texts = [text for text, _ in head] + tokens + [text for text, _ in tail]
    types = [kind for _, kind in head] + [NORMAL] * len(tokens) + [kind for _, kind in tail]
    write("raw", "gpt2", texts, types, merges, bos_token_id=2, eos_token_id=1, unknown_token_id=3)

    # SentencePiece's scores are the ranks of its merges; some are equal here, for the tie.
    head = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    head += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    tail = [("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<tool>", USER), ("     ", USER)]
    tail += [("<|endoftext|>", CONTROL)]
    tokens = [token for token in tokens if len(token) > 1] + [token for token in tokens if len(token) == 1]
    texts = [text for text, _ in head] + tokens + [text for text, _ in tail]
    types = [kind for _, kind in head] + [NORMAL] * len(tokens) + [kind for _, kind in tail]
    scores = [0.0] * len(head) + [-float(rank // 3) for rank in range(len(tokens))] + [0.0] * len(tail)
    write("spm", "llama", texts, types, scores=scores, bos_token_id=1, eos_token_id=2, unknown_token_id=0)


class Oracle:
    def __init__(self, path):
        params = llama.llama_model_default_params()
        params.vocab_only = True
        model = llama.llama_model_load_from_file(str(path).encode(), params)
        assert model, path
        self.vocab = llama.llama_model_get_vocab(model)

    def encode(self, text, add_special, parse_special):
        data = text.encode()
        buffer = (ctypes.c_int32 * (len(data) + 64))()
        count = llama.llama_tokenize(self.vocab, data, len(data), buffer, len(buffer), add_special, parse_special)
        assert count >= 0, text
        return list(buffer[:count])

    def ends(self):
        return [id for id in range(llama.llama_vocab_n_tokens(self.vocab)) if llama.llama_vocab_is_eog(self.vocab, id)]


def variant(name, keys):
    """The vocabulary with keys set, or removed where the value is None; as a file."""
    reader = gguf.GGUFReader(str(OUT / f"{name}.gguf"))
    path = Path(tempfile.mkdtemp()) / "variant.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    fields = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    for key, field in fields.items():
        if key in keys or key == "general.architecture":
            continue
        value = field.contents()
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, value)
        else:
            writer.add_key_value(key, value, field.types[0])
    for key, value in keys.items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif value is not None:
            writer.add_string(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def main():
    @llama.llama_log_callback
    def quiet(_level, _text, _data):
        pass

    llama.llama_log_set(quiet, ctypes.c_void_p(0))
    llama.llama_backend_init()
    vocabularies()

    ggml = "tokenizer.ggml."
    plain = {"add_special": True, "parse_special": True}
    cases = [("bpe", {ggml + "pre": name}, plain) for name in PRE]
    cases += [("bpe", {}, plain), ("bpe", {ggml + "pre": "qwen2"}, {"add_special": True, "parse_special": False})]
    cases += [
        ("bpe", {ggml + "pre": "gpt-2", ggml + "add_bos_token": True, ggml + "add_eos_token": True}, plain),
        ("bpe", {ggml + "pre": "llama-bpe", ggml + "add_bos_token": False}, plain),
        ("bpe", {ggml + "pre": "llama-bpe"}, {"add_special": False, "parse_special": False}),
        ("bpe", {ggml + "pre": "gpt-2", ggml + "bos_token_id": None, ggml + "eos_token_id": None}, plain),
    ]
    cases += [("raw", {ggml + "pre": name}, plain) for name in RAW]
    cases.append(("raw", {ggml + "model": "gemma4"}, plain))
    cases += [
        ("spm", {}, plain),
        ("spm", {}, {"add_special": True, "parse_special": False}),
        ("spm", {ggml + "add_space_prefix": False}, plain),
        ("spm", {ggml + "add_bos_token": False, ggml + "add_eos_token": True}, plain),
        ("spm", {"general.name": "Our PHI3"}, plain),
        ("spm", {ggml + "bos_token_id": None, ggml + "eos_token_id": None, ggml + "unknown_token_id": None}, plain),
    ]

    texts = EDGES + PROSE + CODE
    known = [[] for _ in texts]
    table = []
    for name, keys, how in cases:
        oracle = Oracle(variant(name, keys))
        outcome = []
        for text, lists in zip(texts, known):
            ids = oracle.encode(text, **how)
            if ids not in lists:
                lists.append(ids)
            outcome.append(lists.index(ids))
        table.append({"vocabulary": name, "set": keys, **how, "ends": oracle.ends(), "outcome": outcome})
    document = {"texts": [{"text": text, "ids": ids} for text, ids in zip(texts, known)], "cases": table}
    rows = [
        '{"texts":[\n',
        ",\n".join(json.dumps(text, separators=(",", ":")) for text in document["texts"]),
        '\n],"cases":[\n',
        ",\n".join(json.dumps(case, separators=(",", ":")) for case in table),
        "\n]}\n",
    ]
    (OUT / "cases.json").write_text("".join(rows))


if __name__ == "__main__":
    main()
