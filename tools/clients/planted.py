"""Takes each fence, wait and arrival out of a program's kernels, one at a time, and prints what the checks say of it.

    planted.py WARPWRIGHT SM PROGRAM [ARGUMENT...]

WARPWRIGHT is the program, SM the compute capability; PROGRAM has its PTX in it, not compressed (nvcc `-no-compress`). It
prints a line for each: the number, the instruction, and the kinds of findings that come besides those of the program as it
is; `wrong` if there are none and it says that it has failed; or `nothing`.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import nvcc

SECONDS = 300
# The opcodes. A wait for an mbarrier goes with the condition of the branch that leaves its loop.
DELETED = re.compile(
    rb"(?:@!?%?\w+\s+)?(?:fence|membar|mbarrier\.arrive|mbarrier\.expect_tx|bar\.sync|barrier\.sync|barrier\.cluster"
    rb"|tcgen05\.(?:commit|wait|fence)|wgmma\.(?:fence|commit_group|wait_group)|cp\.async\.(?:commit_group|wait_)"
    rb"|cp\.async\.bulk\.(?:commit_group|wait_group)|cp\.async\.mbarrier)[^;{}\n]*;"
    rb"|mbarrier\.(?:try|test)_wait[^;]*;\s*@!?%?\w+(?=\s+bra)", re.IGNORECASE)


def outcome(warpwright, sm, program, arguments, log):
    """Kinds of findings, and whether the program says that it has failed."""
    log.unlink(missing_ok=True)
    command = [warpwright, "exec", "--check", "all", "--sm", sm, "--findings", log, f"--fail={nvcc.FOUND}", "--", program,
               *arguments]
    try:
        ended = subprocess.run(list(map(str, command)), capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"timeout"}, False
    events = map(json.loads, log.read_text().splitlines()) if log.exists() else []
    failed = ended.returncode not in (0, nvcc.FOUND) or nvcc.FAILED.search(ended.stdout.decode(errors="replace"))
    return {event["kind"] for event in events if event["event"] in ("finding", "trap")}, bool(failed)


def main():
    if len(sys.argv) < 4:
        raise SystemExit("planted.py WARPWRIGHT SM PROGRAM [ARGUMENT...]")
    with tempfile.TemporaryDirectory() as folder:
        delete_each(pathlib.Path(folder))


def delete_each(folder):
    warpwright, sm, program, *arguments = sys.argv[1:]
    program = pathlib.Path(program).resolve()
    if not program.is_file():
        raise SystemExit(f"{program} is not there")
    image = program.read_bytes()
    texts = [match.span() for match in re.finditer(rb"\.version \d+\.\d+[^\0]*", image)]
    if not texts:
        raise SystemExit(f"{program} has no PTX that can be read: compile it to PTX, with nvcc's -no-compress")
    before, failed = outcome(warpwright, sm, program, arguments, folder / "findings")
    if failed:
        raise SystemExit(f"{program} fails as it is")
    print(f"as it is: {' '.join(sorted(before)) or 'nothing'}", flush=True)
    number, path = 0, folder / "program"
    for begin, end in texts:
        for match in DELETED.finditer(image, begin, end):
            text = match.group()
            number += 1
            changed = bytearray(image)
            changed[match.start():match.end()] = re.sub(rb"\S", b" ", text)
            path.write_bytes(changed)
            path.chmod(0o755)
            found, failed = outcome(warpwright, sm, path, arguments, folder / "findings")
            new = found - before
            said = " ".join(sorted(new)) or ("wrong" if failed else "nothing")
            line = image.count(b"\n", begin, match.start()) + 1
            shown = " ".join(text.decode().split())
            print(f"{number} {line} {shown}: {said}", flush=True)


if __name__ == "__main__":
    main()
