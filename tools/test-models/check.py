"""Holds `warpwright logits` to the exact logits of models with random weights.

    check.py WARPWRIGHT FOLDER [--only NAME]

A line for each model and way of computing: `ok` or `failed`, the largest error of a row relative to its length, and
what is promised. Files are made in the folder. The exit status says whether all held.
"""

import argparse
import pathlib
import subprocess

import make
import numpy as np

# Arguments, and the error of a row of logits that is promised.
WAYS = [
    (["--kv", "f32"], 1e-4),
    (["--kv", "f16"], 1e-3),
    (["--kv", "f16", "--chunk", "10"], 3e-3),
    (["--kv", "f32", "--chunk", "24"], 3e-3),
    (["--kv", "bf16"], 1e-2),
    (["--kv", "q8_0", "--chunk", "17"], 2e-2),
    (["--kv", "f16", "--act", "int8"], 3e-2),
]


def error(found, exact):
    """The largest error of a row, relative to its length; and in how many rows another token is the likeliest."""
    if found.shape != exact.shape:
        raise SystemExit(f"{found.shape} logits, not {exact.shape}")
    off = np.linalg.norm(found - exact, axis=1) / np.linalg.norm(exact, axis=1)
    return off.max(), int((found.argmax(1) != exact.argmax(1)).sum())


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("program")
    args.add_argument("folder", type=pathlib.Path)
    args.add_argument("--only", choices=make.MODELS)
    args = args.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in [args.only] if args.only else make.MODELS:
        model, tokens, exact = make.make(name, args.folder)
        exact = np.load(exact)
        for arguments, bound in WAYS:
            out = args.folder / f"{name}.found.npy"
            out.unlink(missing_ok=True)
            command = [args.program, "logits", "-m", model, "--tokens", f"@{tokens}", "-o", out, *arguments]
            run = subprocess.run(command, capture_output=True, text=True)
            what = f"{name} {' '.join(arguments)}"
            if run.returncode != 0:
                failed += 1
                print(f"failed {what}: {run.stderr.strip()}", flush=True)
                continue
            most, others = error(np.load(out).astype(np.float64), exact)
            held = most <= bound
            failed += not held
            print(f"{'ok' if held else 'failed'} {what}: {most:.1e} of {bound:.0e}, {others} other tokens", flush=True)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
