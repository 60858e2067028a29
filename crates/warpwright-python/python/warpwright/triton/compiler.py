"""The compiler backend: NVIDIA's of Triton as far as PTX, which is what the virtual GPU executes.

No ptxas runs, so that a kernel which only ptxas would refuse compiles. Triton's cache files what a backend makes under
a key with the backend's hash, so that nothing made here is ever taken for NVIDIA's, nor the other way.
"""

from __future__ import annotations

from typing import Any

from triton import __version__, knobs
from triton.backends.nvidia.compiler import CUDABackend

PTX_VERSION = 86
"""The version of PTX that a kernel has unless it says another: the newest that the LLVM of Triton 3.5 writes. Triton
would ask ptxas for its own."""

PTX_VERSIONS = {100: 88, 103: 88, 110: 90, 120: 87, 121: 88}
"""The same for targets that need a newer one."""

BINARY = "vgpu"
"""What Triton calls the last stage, whose bytes are loaded. They are the PTX, which is in `asm["ptx"]` as text."""


class VirtualBackend(CUDABackend):
    """NVIDIA's stages up to PTX."""

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        self.binary_ext = BINARY

    def hash(self) -> str:
        """What sets this backend's files in Triton's cache apart."""
        return f"warpwright-{BINARY}-{__version__}-{self.target.arch}"

    def parse_options(self, opts: dict[str, Any]) -> Any:
        """The options of a compilation. ValueError if they ask for what the virtual GPU has not."""
        if opts.get("ptx_version") is None:
            opts = {**opts, "ptx_version": PTX_VERSIONS.get(self.target.arch, PTX_VERSION)}
        options = super().parse_options(opts)
        if options.num_ctas > 1 and self.target.arch < 90:
            raise ValueError(
                f"num_ctas is {options.num_ctas}: there are no clusters of blocks before sm_90. Set num_ctas=1, or "
                "compile for a target that has them: warpwright.triton.enable(sm=90)"
            )
        return options

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
        """NVIDIA's stages, without the last."""
        if knobs.compilation.store_binary_only:
            raise ValueError("TRITON_STORE_BINARY_ONLY leaves out the PTX that the virtual GPU executes: unset it")
        super().add_stages(stages, options, language)
        del stages["cubin"]
        stages[BINARY] = lambda source, metadata: source.encode()
