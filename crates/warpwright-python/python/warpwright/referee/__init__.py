"""The referee judges kernels that people and machines write: `docs/referee.md`.

```text
__main__ ── spec ──┐
                   ├── judge ── stage ──┬── candidates   .ptx, .cu: kernels in this process
                   │                    └── program      .py: its kernels in this process, its host code in `child`
                   └── reference, compare               when the candidate is gone
```

Nothing that a candidate says about itself counts: kernels run in the referee's process, on memory that only kernels
write, with values that the candidate's host code does not get, drawn from a seed that it does not know.
"""
