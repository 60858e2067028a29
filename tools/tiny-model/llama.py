"""llama.cpp as it is asked here: one thread, keys and values in f32, no fused attention."""

import llama_cpp
import numpy as np


def load(path, context=512, **more):
    return llama_cpp.Llama(path, n_ctx=context, n_batch=context, n_ubatch=context, n_threads=1, n_threads_batch=1,
                           type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32, flash_attn=False,
                           logits_all=True, verbose=False, **more)


def logits(path, tokens):
    """f32 logits after each token, all in one batch."""
    model = load(path, max(32, len(tokens)))
    model.eval(tokens)
    out = np.array(model.scores[: len(tokens)])
    model.close()
    return out


def greedy(path, tokens, count, stop=None):
    """The most probable continuation, a token at a time."""
    model = load(path)
    model.eval(tokens)
    ids = []
    while True:
        ids.append(int(model.scores[model.n_tokens - 1].argmax()))
        if ids[-1] == stop or len(ids) == count:
            break
        model.eval([ids[-1]])
    model.close()
    return ids
