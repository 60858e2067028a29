"""Takes each fence, wait and arrival out of a program's kernels, one at a time, and prints what the checks say of it.

    planted.py WARPWRIGHT SM PROGRAM [ARGUMENT...]

WARPWRIGHT is the program, SM the compute capability; PROGRAM has its PTX in it, not compressed (nvcc `-no-compress`). It
prints a line for each: the number, the instruction, and the kinds of findings that come besides those of the program as it
is; `wrong` if its exit status is another one without any; or `nothing`.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import nvcc

SECONDS = 300
# The opcodes; a wait for an mbarrier becomes one that does not look at the outcome.
DELETED = re.compile(
    rb"(?:@!?%?\w+\s+)?(?:fence|membar|mbarrier\.arrive|mbarrier\.expect_tx|bar\.sync|barrier\.sync|barrier\.cluster"
    rb"|tcgen05\.(?:commit|wait|fence)|wgmma\.(?:fence|commit_group|wait_group)|cp\.async\.(?:commit_group|wait_)"
    rb"|cp\.async\.bulk\.(?:commit_group|wait_group)|cp\.async\.mbarrier)[^;{}\n]*;"
    rb"|(?<=;)\s*@!?%?\w+(?=\s+bra)", re.IGNORECASE)
WAIT = re.compile(rb"mbarrier\.(?:try|test)_wait[^;]*;\s*$")


def outcome(warpwright, sm, program, arguments, log):
    """Kinds of findings, and the exit status."""
    log.unlink(missing_ok=True)
    command = [warpwright, "exec", "--check", "all", "--sm", sm, "--findings", log, f"--fail={nvcc.FOUND}", "--", program,
               *arguments]
    try:
        ended = subprocess.run(list(map(str, command)), capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"timeout"}, 0
    events = map(json.loads, log.read_text().splitlines()) if log.exists() else []
    return {event["kind"] for event in events if event["event"] in ("finding", "trap")}, ended.returncode


def main():
    with tempfile.TemporaryDirectory() as folder:
        delete_each(pathlib.Path(folder))


def delete_each(folder):
    warpwright, sm, program = sys.argv[1:4]
    arguments = sys.argv[4:]
    image = pathlib.Path(program).read_bytes()
    texts = [match.span() for match in re.finditer(rb"\.version \d+\.\d+[^\0]*", image)]
    before, status = outcome(warpwright, sm, program, arguments, folder / "findings")
    print(f"as it is: {' '.join(sorted(before)) or 'nothing'}", flush=True)
    number, path = 0, folder / "program"
    for begin, end in texts:
        for match in DELETED.finditer(image, begin, end):
            text = match.group()
            is_branch = text.lstrip().startswith(b"@") and b";" not in text
            if is_branch and not WAIT.search(image[max(begin, match.start() - 300):match.start()]):
                continue
            number += 1
            changed = bytearray(image)
            changed[match.start():match.end()] = b" " * len(text)
            path.write_bytes(changed)
            path.chmod(0o755)
            found, ended = outcome(warpwright, sm, path, arguments, folder / "findings")
            new = found - before
            said = " ".join(sorted(new)) or ("wrong" if ended not in (status, nvcc.FOUND) else "nothing")
            line = image.count(b"\n", begin, match.start()) + 1
            shown = "wait of the mbarrier" if is_branch else text.decode().strip()
            print(f"{number} {line} {shown}: {said}", flush=True)


if __name__ == "__main__":
    main()
