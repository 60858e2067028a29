"""Trains the model on stories that are made while it trains, within a budget of wall-clock time.

Learning rate and end of training follow the clock, not a count of steps, so a run on a busy
machine still ends with a full cosine. Every checkpoint can be exported.
"""

import argparse
import itertools
import json
import math
import os
import queue
import threading
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from tokenizers import Tokenizer

import corpus
from model import Config, Llama
from tokenizer import BOS, EOS

HELD_OUT = 64  # stories, the seeds from 0; `evaluate.py` takes more


def rows_of_stories(tokenizer, seeds, batch, length):
    """Endless batches `[batch, length + 1]`. A row is a whole story and what fits of the next ones."""
    begin, end = tokenizer.token_to_id(BOS), tokenizer.token_to_id(EOS)
    ready = []
    while True:
        rows = []
        for _ in range(batch):
            row = []
            while len(row) < length + 1:
                if not ready:
                    ready = tokenizer.encode_batch([corpus.story(next(seeds)) for _ in range(64)])
                row += [begin, *ready.pop().ids, end]
            rows.append(row[: length + 1])
        yield torch.tensor(rows)


def ahead(batches, depth=8):
    """The same batches, made by another thread while a step computes."""
    ready = queue.Queue(depth)

    def fill():
        for b in batches:
            ready.put(b)

    threading.Thread(target=fill, daemon=True).start()
    while True:
        yield ready.get()


def held_out(tokenizer, length):
    """Held-out stories, one a row, padded; and the mask of the positions that count."""
    begin, end = tokenizer.token_to_id(BOS), tokenizer.token_to_id(EOS)
    rows = [[begin, *tokenizer.encode(corpus.story(i)).ids, end][: length + 1] for i in range(HELD_OUT)]
    ids = torch.full((len(rows), length + 1), end)
    for row, ids_of in zip(ids, rows):
        row[: len(ids_of)] = torch.tensor(ids_of)
    counts = torch.arange(length)[None] < torch.tensor([len(r) - 1 for r in rows])[:, None]
    return ids, counts


@torch.no_grad()
def evaluate(model, ids, counts):
    """Mean loss a token, in f32."""
    total = 0.0
    for i in range(0, len(ids), 32):
        logits = model(ids[i: i + 32, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[i: i + 32, 1:].flatten(), reduction="none")
        total += (loss * counts[i: i + 32].flatten()).sum().item()
    return total / counts.sum().item()


def average_gradients(model, workers):
    """One exchange a step, all gradients in one piece."""
    gradients = [p.grad for p in model.parameters()]
    flat = torch.cat([g.flatten() for g in gradients])
    dist.all_reduce(flat)
    flat /= workers
    for g, part in zip(gradients, flat.split([g.numel() for g in gradients])):
        g.copy_(part.view_as(g))


def work(rank, args):
    """One worker of the data-parallel run: all hold the same weights, each makes its own stories."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(os.path.join(args.out, "rendezvous"), args.workers),
                            rank=rank, world_size=args.workers)
    torch.manual_seed(args.seed)
    tokenizer = Tokenizer.from_file(args.tokenizer)
    config = Config(vocabulary=tokenizer.get_vocab_size())
    model = Llama(config)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    norms = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": norms, "weight_decay": 0.0}],
                                  lr=args.lr, betas=(0.9, 0.95), fused=True)
    start, step, tokens, recent, reported, saved = time.time(), 0, 0, [], 0.0, 0.0
    if args.resume:
        checkpoint = torch.load(os.path.join(args.out, "checkpoint.pt"), weights_only=True)
        model.load_state_dict(checkpoint["model"])
        step, tokens = checkpoint["record"]["step"], checkpoint["record"]["tokens"]
    # Stories that were trained on before are not met again: each has more than 100 tokens.
    seeds = itertools.count(corpus.TRAIN_FIRST + tokens // 100 + rank, args.workers)
    first_step = step
    if rank == 0:
        print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters", flush=True)
        log = open(os.path.join(args.out, "train.jsonl"), "a" if args.resume else "w")
        test = held_out(tokenizer, args.length)

    def report(save):
        record = {"step": step, "tokens": tokens, "minutes": round((time.time() - start) / 60, 2),
                  "train_loss": round(sum(recent) / len(recent), 4)}
        if save:
            record["held_out_loss"] = round(evaluate(model, *test), 4)
            path = os.path.join(args.out, "checkpoint.pt")
            torch.save({"config": vars(config), "model": model.state_dict(), "record": record}, path + ".tmp")
            os.replace(path + ".tmp", path)
        print(json.dumps(record), flush=True)
        print(json.dumps(record), file=log, flush=True)

    for ids in ahead(rows_of_stories(tokenizer, seeds, args.batch, args.length)):
        # All workers must agree on the time, or one would wait for another that has ended.
        clock = torch.tensor([time.time() - start])
        dist.broadcast(clock, 0)
        done = clock.item() / (args.minutes * 60)
        if done >= 1:
            break
        lr = args.lr * min(1, (step - first_step + 1) / args.warmup) * (0.02 + 0.98 * (1 + math.cos(math.pi * done)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = lr
        with torch.autocast("cpu", torch.bfloat16, enabled=not args.f32):
            logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        average_gradients(model, args.workers)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        tokens += args.workers * args.batch * args.length
        recent = (recent + [loss.item()])[-50:]
        if rank == 0 and clock.item() - reported >= 30:
            reported = clock.item()
            save = reported - saved >= 300
            saved = reported if save else saved
            report(save)
    if rank == 0:
        report(True)


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--minutes", type=float, default=40)
    args.add_argument("--batch", type=int, default=4, help="rows a step and worker")
    args.add_argument("--length", type=int, default=320, help="tokens a row; no story is longer")
    args.add_argument("--lr", type=float, default=2e-3)
    args.add_argument("--warmup", type=int, default=100, help="steps")
    args.add_argument("--workers", type=int, default=2, help="processes of one thread, one a core")
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--resume", action="store_true", help="begin with the checkpoint's weights, and a new schedule")
    args.add_argument("--f32", action="store_true", help="no bf16 autocast")
    args.add_argument("--tokenizer", default="build/tokenizer.json")
    args.add_argument("--out", default="build")
    args = args.parse_args()
    rendezvous = os.path.join(args.out, "rendezvous")
    if os.path.exists(rendezvous):
        os.remove(rendezvous)
    torch.multiprocessing.spawn(work, (args,), args.workers)


if __name__ == "__main__":
    main()
