#!/usr/bin/env python3
"""Regenerates ptx/ from the sources next to this script.

    python3 build.py ENVS [REGEX]

ENVS is a folder for the Python virtual environments with the compilers. Those
that exist there are used as they are, the others are made (PyPI, ~1 GB):
nvccenv, tritonenv, numbaenv. REGEX limits the outputs by file name (Triton,
Numba and clang ones are built only when it names them).
clang is taken from the PATH (clang-19, clang-16 or clang-14); without one its
outputs are skipped.

Every output is assembled with ptxas for its own target (targets below sm_75
with the ptxas of CUDA 12.9). A failing job is reported and its output removed.
"""
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE / "ptx"

# folder -> pinned packages
ENVS = {
    "nvccenv": "nvidia-cuda-nvcc==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-crt==13.5.37 "
               "nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6",
    "tritonenv": "triton==3.9.0 numpy",
    # CUDA 12.9's libnvvm for Numba; its ptxas also checks the targets below sm_75
    "numbaenv": "numba-cuda==0.30.4 numba==0.68.1 nvidia-cuda-nvcc-cu12==12.9.86 "
                "nvidia-cuda-runtime-cu12==12.9.79 nvidia-cuda-nvrtc-cu12==12.9.86",
}

A = ["sm_75", "sm_80"]
# (source, targets, variant -> extra flags); the variant "" gives NAME.nvcc.sm_XX.ptx,
# another one NAME-VARIANT.nvcc.sm_XX.ptx.
CUDA = [
    ("vector_add", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"]),
    ("saxpy", ["sm_75", "sm_89", "sm_90"]),
    ("strided_copy", ["sm_80"]),
    ("reduce_shared", ["sm_75", "sm_90"]),
    ("reduce_warp", ["sm_75", "sm_80", "sm_90"]),
    ("reduce_last_block", ["sm_75", "sm_80"]),
    ("reduce_coop", ["sm_75", "sm_80", "sm_90"]),
    ("grid_sync", ["sm_75", "sm_90"]),
    ("scan", ["sm_80"]),
    ("scan_lookback", ["sm_86", "sm_90"]),
    ("transpose", ["sm_75", "sm_89"]),
    ("histogram", ["sm_75", "sm_90"]),
    ("bitonic_sort", ["sm_86"]),
    ("radix_sort", ["sm_80"]),
    ("stencil", ["sm_75", "sm_90"]),
    ("matmul_tiled", ["sm_75", "sm_80", "sm_90"]),
    ("wmma_f16", ["sm_75", "sm_80"]),
    ("wmma_int", ["sm_75", "sm_86"]),
    ("wmma_ampere", ["sm_80", "sm_90"]),
    ("mma_f16", ["sm_75", "sm_80"]),
    ("mma_types", ["sm_80"]),
    ("mma_fp8", ["sm_89", "sm_120"]),
    ("fp8_convert", ["sm_80", "sm_89"]),
    ("cp_async", ["sm_80"]),
    ("pipeline_async", ["sm_75", "sm_80", "sm_90"]),
    ("barrier_block", ["sm_80", "sm_90"]),
    ("mbarrier_asm", ["sm_80"]),
    ("softmax", ["sm_75", "sm_89"]),
    ("layer_norm", ["sm_86", "sm_90"]),
    ("flash_attention", ["sm_80"]),
    ("gemv", ["sm_75", "sm_90"]),
    ("dequant_gemv", ["sm_75", "sm_86"]),
    ("rope", ["sm_75", "sm_90"]),
    ("top_k", ["sm_80"]),
    ("philox", ["sm_75", "sm_89"]),
    ("sha256", ["sm_75"]),
    ("crc_hash", ["sm_86"]),
    ("bit_twiddling", ["sm_75", "sm_90"]),
    ("half_math", ["sm_75", "sm_80", "sm_90"]),
    ("bf16_math", ["sm_80", "sm_90"]),
    ("rounding", ["sm_75", "sm_80"]),
    ("math_f32", ["sm_75", "sm_90"]),
    ("math_f32_special", ["sm_80"]),
    ("math_f64", ["sm_75"]),
    ("math_f64_pow", ["sm_89"]),
    ("int_div", ["sm_75", "sm_90"]),
    ("int128", ["sm_80"]),
    ("carry_chain", ["sm_75", "sm_86"]),
    ("simd_video", ["sm_75", "sm_90"]),
    ("printf_assert", ["sm_75", "sm_90"]),
    ("recursion", ["sm_75", "sm_89"]),
    ("indirect_calls", ["sm_75", "sm_90"]),
    ("jump_table", ["sm_75", "sm_86"]),
    ("struct_calls", ["sm_75", "sm_90"]),
    ("big_params", ["sm_75", "sm_90"]),
    ("globals", ["sm_75", "sm_80"]),
    ("shared_dynamic", ["sm_86", "sm_90"]),
    ("textures", ["sm_75", "sm_90"]),
    ("surfaces", ["sm_75", "sm_86"]),
    ("texture_queries", ["sm_75"]),
    ("atomics", ["sm_75", "sm_80", "sm_90"]),
    ("atomics_hopper", ["sm_90"]),
    ("memory_model", ["sm_75", "sm_90"]),
    ("warp_ops", ["sm_75", "sm_80"]),
    ("clocks", ["sm_75", "sm_90"]),
    ("cache_ops", ["sm_75", "sm_80", "sm_90"]),
    ("tma_bulk", ["sm_90"]),
    ("tma_tensor", ["sm_90", "sm_100"]),
    ("tensormap_replace", ["sm_90a"]),
    ("wgmma", ["sm_90a"]),
    ("wgmma_pipeline", ["sm_90a"]),
    ("clusters", ["sm_90", "sm_120"]),
    ("launch_bounds", ["sm_75", "sm_90"]),
    ("mandelbrot", ["sm_75", "sm_86"]),
    ("nbody", ["sm_80", "sm_89"]),
    ("conv2d", ["sm_75", "sm_80"]),
    ("fft", ["sm_75", "sm_90"]),
    ("spmv", ["sm_75", "sm_86"]),
    ("string_match", ["sm_80"]),
    ("cross_entropy", ["sm_89"]),
    ("control_flow", ["sm_75", "sm_90"]),
    ("vector_types", ["sm_75", "sm_100"]),
    ("wide_vectors", ["sm_100"]),
    ("variadic_alloca", ["sm_75", "sm_90"]),
    ("cub_block", ["sm_75", "sm_90"]),
    ("cub_warp", ["sm_80"]),
    ("thrust_transform", ["sm_86"]),
    ("complex_math", ["sm_80"]),
    ("mdspan_stencil", ["sm_89"]),
    ("asm_misc", ["sm_90"]),
    ("async_stores", ["sm_90"]),
    ("barrier_tx", ["sm_90"]),
    ("blackwell_misc", ["sm_100a"]),
    ("mma_scaled", ["sm_120a"]),
    ("linear_algebra", ["sm_75", "sm_80"]),
    ("ray_trace", ["sm_75", "sm_86"]),
    ("ciphers", ["sm_75", "sm_80"]),
    ("dispatch", ["sm_75", "sm_90"]),
    ("tcgen05", ["sm_100a"]),
]
# variants: (source, variant, targets, flags)
CUDA_VARIANTS = [
    ("vector_add", "debug", ["sm_75", "sm_90"], ["-G"]),
    ("reduce_shared", "debug", ["sm_80"], ["-G"]),
    ("struct_calls", "debug", ["sm_75"], ["-G"]),
    ("indirect_calls", "debug", ["sm_90"], ["-G"]),
    ("globals", "debug", ["sm_80"], ["-G"]),
    ("jump_table", "debug", ["sm_86"], ["-G"]),
    ("reduce_warp", "lineinfo", ["sm_80"], ["-lineinfo"]),
    ("inline_lines", "", ["sm_75"], []),
    ("inline_lines", "lineinfo", ["sm_75", "sm_90"], ["-lineinfo"]),
    ("inline_lines", "debug", ["sm_80"], ["-G"]),
    ("transpose", "lineinfo", ["sm_75"], ["-lineinfo"]),
    ("softmax", "lineinfo", ["sm_90"], ["-lineinfo"]),
    ("barrier_block", "lineinfo", ["sm_80"], ["-lineinfo"]),
    ("wmma_f16", "lineinfo", ["sm_80"], ["-lineinfo"]),
    ("rdc_extern", "", ["sm_75", "sm_80", "sm_90"], ["-rdc=true"]),
    ("dynamic_parallel", "", ["sm_75", "sm_90"], ["-rdc=true"]),
    ("struct_calls", "rdc", ["sm_80"], ["-rdc=true"]),
    ("globals", "rdc", ["sm_75"], ["-rdc=true"]),
    ("recursion", "rdc", ["sm_86"], ["-rdc=true"]),
    ("indirect_calls", "rdc", ["sm_80"], ["-rdc=true", "-lineinfo"]),
    ("math_f32", "fast", ["sm_75", "sm_89"], ["-use_fast_math"]),
    ("softmax", "fast", ["sm_80"], ["-use_fast_math"]),
    ("rounding", "ftz", ["sm_89"], ["-ftz=true", "-prec-div=false", "-prec-sqrt=false"]),
    ("nbody", "nofma", ["sm_75"], ["-fmad=false"]),
    ("matmul_tiled", "maxreg32", ["sm_86"], ["-maxrregcount=32"]),
    ("matmul_tiled", "O0", ["sm_80"], ["-Xcicc", "-O0"]),
    ("scan", "O0", ["sm_90"], ["-Xcicc", "-O0"]),
    ("bit_twiddling", "O0", ["sm_75"], ["-Xcicc", "-O0"]),
    ("struct_calls", "O0", ["sm_86"], ["-Xcicc", "-O0"]),
    ("dispatch", "jump", ["sm_75", "sm_90"], ["-Xcicc", "-jump-table-density=10"]),
    ("jump_table", "brx", ["sm_80", "sm_90"], ["-Xcicc", "-jump-table-density=10"]),
    ("control_flow", "brx", ["sm_75"], ["-Xcicc", "-jump-table-density=10"]),
    ("stencil", "source", ["sm_75"], ["-lineinfo", "-src-in-ptx"]),
    ("nbody", "dopt", ["sm_86"], ["-G", "-dopt=on"]),
    ("fft", "fast", ["sm_80"], ["-use_fast_math", "-extra-device-vectorization"]),
    ("dispatch", "O0", ["sm_80"], ["-Xcicc", "-O0"]),
    ("histogram", "O1", ["sm_80"], ["-Xcicc", "-O1"]),
    ("control_flow", "O0", ["sm_89"], ["-Xcicc", "-O0"]),
    ("flash_attention", "O1", ["sm_75"], ["-Xcicc", "-O1"]),
]


def site(env, *parts):
    hits = sorted(env.glob("lib/python3*/site-packages"))
    return hits[0].joinpath(*parts)


def make_env(base, name):
    env = base / name
    if not (env / "bin" / "python3").exists():
        subprocess.run([sys.executable, "-m", "venv", env], check=True)
        subprocess.run([env / "bin" / "pip", "install", "-q", *ENVS[name].split()], check=True)
    return env


def neutral(text, base):
    """Removes machine paths: toolchain headers become include/..., our folder becomes ."""
    text = re.sub(r'"[^"\n]*/nvidia/(?:cu13|cuda_runtime|cuda_cccl|cuda_nvcc|curand)/(?:bin/\.\./)?include/', '"include/', text)
    text = re.sub(r'"[^"\n]*/site-packages/(triton|numba_cuda|numba)/', r'"include/\1/', text)
    text = text.replace(str(HERE) + "/", "")
    text = text.replace('"' + str(HERE) + '"', '"."')
    # The debug sections hold strings as lists of byte values; a path there is
    # overwritten by one of the same length, so that no offset changes.
    path = str(HERE).encode()
    if len(path) >= 8:
        text = replace_bytes(text, path, (b"/corpus" + b"/." * len(path))[: len(path)])
    return text


def replace_bytes(text, old, new):
    """Replaces a run of bytes in `.b8` lists (one or many values a line, with or without comments)."""
    if ".b8" not in text:
        return text
    pat = r"(?:[ \t\n,]|\.b8|//[^\n]*)+".join(str(b) for b in old)
    pat = re.compile(r"(?<![0-9])" + pat + r"(?![0-9])")

    def sub(m):
        it = iter(new)
        return re.sub(r"//[^\n]*|\.b8|[0-9]+", lambda t: str(next(it)) if t.group(0)[0].isdigit() else t.group(0), m.group(0))

    return pat.sub(sub, text)


def finish(name, text, base, ptxas, fails):
    arch = re.search(r"\.(sm_\w+)\.ptx$", name).group(1)
    text = neutral(text, base)
    path = OUT / name
    path.write_text(text)
    r = subprocess.run([ptxas, "-arch=" + arch, "-c", path, "-o", "/dev/null"], capture_output=True, text=True)
    if r.returncode:
        fails.append((name, (r.stderr + r.stdout).strip()[:600]))
        path.unlink()
        return
    for bad in ("/tmp/", "/work/", "/root/", "/home/", "site-packages"):
        if bad in text:
            fails.append((name, "holds a machine path: " + bad))


def nvcc_job(job, base, env, ptxas, fails, compiler="nvcc"):
    src, variant, arch, flags = job
    name = f"{src}{'-' + variant if variant else ''}.{compiler}.{arch}.ptx"
    root = site(env, "nvidia")
    cmd = [root / "cu13" / "bin" / "nvcc", "-ptx", "-arch=" + arch, "-std=c++17", "-w", "-Icuda", "-I" + str(root / "cu13" / "include"),
           "-I" + str(root / "cu13" / "include" / "cccl"), *flags, f"cuda/{src}.cu", "-o", "-"]
    tmp = base / ("out-" + name)
    cmd[-1] = tmp
    r = subprocess.run(cmd, capture_output=True, text=True, cwd=HERE)
    if r.returncode:
        fails.append((name, (r.stderr + r.stdout).strip()[:1500]))
        return
    text = tmp.read_text()
    tmp.unlink()
    finish(name, text, base, ptxas, fails)


TRITON_CHILD = r"""
import importlib.util, json, os, re, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
tmp, want = sys.argv[1], re.compile(sys.argv[2])
for file in sorted(os.listdir("triton")):
    if not file.endswith(".py"): continue
    spec = importlib.util.spec_from_file_location(file[:-3], os.path.join("triton", file))
    mod = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mod)
    for name, fn, types, consts, options, archs in mod.KERNELS:
        types = types.split()
        names = fn.arg_names
        # A type followed by ! has no promise that the argument is a multiple of 16.
        sig = {n: t.rstrip("!") for n, t in zip(names, types)}
        sig.update({n: "constexpr" for n in consts})
        assert len(sig) == len(names), (name, names, sig)
        attrs = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(types) if not t.endswith("!") and not t.startswith("fp")}
        for arch in archs:
            out = f"{name}.triton.sm_{arch}{'a' if arch in (90, 100, 120) else ''}.ptx"
            if not want.search(out): continue
            try:
                src = ASTSource(fn, dict(sig), {(names.index(n),): v for n, v in consts.items()}, attrs)
                k = triton.compile(src, target=GPUTarget("cuda", arch, 32), options=dict(options))
                text = k.asm["ptx"]
                real = re.search(r"^\.target (sm_\w+)", text, re.M).group(1)
                open(os.path.join(tmp, f"{name}.triton.{real}.ptx"), "w").write(text)
            except Exception as e:
                print("FAILED", out, type(e).__name__, str(e)[-800:].replace("\n", " | "), flush=True)
"""


def triton_jobs(base, env, ptxas, fails, want):
    tmp = base / "triton-out"
    tmp.mkdir(exist_ok=True)
    for f in tmp.iterdir():
        f.unlink()
    vars = dict(os.environ, TRITON_CACHE_DIR=str(base / "triton-cache"), TRITON_ALWAYS_COMPILE="1")
    r = subprocess.run([env / "bin" / "python3", "-I", "-c", TRITON_CHILD, tmp, want.pattern if want else ""], cwd=HERE, env=vars, capture_output=True, text=True)
    for line in r.stdout.splitlines():
        fails.append(("triton", line))
    if r.returncode:
        fails.append(("triton", r.stderr[-2000:]))
    for f in sorted(tmp.iterdir()):
        finish(f.name, f.read_text(), base, ptxas, fails)


NUMBA_CHILD = r"""
import importlib.util, os, re, sys
tmp, want = sys.argv[1], re.compile(sys.argv[2])
spec = importlib.util.spec_from_file_location("kernels", os.path.join("numba", "kernels.py"))
mod = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mod)
from numba import cuda
for name, fn, sig, archs, options in mod.KERNELS:
    for arch in archs:
        out = f"{name}.numba.sm_{arch}.ptx"
        if not want.search(out): continue
        try:
            text, _ = cuda.compile_ptx(fn, sig, cc=divmod(arch, 10), device=False, **options)
            open(os.path.join(tmp, out), "w").write(text)
        except Exception as e:
            print("FAILED", out, type(e).__name__, str(e)[-800:].replace("\n", " | "), flush=True)
"""


def numba_jobs(base, env, ptxas, fails, want):
    tmp = base / "numba-out"
    tmp.mkdir(exist_ok=True)
    for f in tmp.iterdir():
        f.unlink()
    r = subprocess.run([env / "bin" / "python3", "-I", "-c", NUMBA_CHILD, tmp, want.pattern if want else ""], cwd=HERE, capture_output=True, text=True)
    for line in r.stdout.splitlines():
        fails.append(("numba", line))
    if r.returncode:
        fails.append(("numba", r.stderr[-2000:]))
    for f in sorted(tmp.iterdir()):
        finish(f.name, f.read_text(), base, ptxas, fails)


# source -> targets; each is built with every clang that is installed unless versions are named
CLANG = [
    # source, variant, targets, flags, clang versions
    ("saxpy.cu", "", ["sm_50", "sm_75", "sm_80"], ["-O2"], [14, 19]),
    ("saxpy.cu", "O0", ["sm_75"], ["-O0"], [19]),
    ("saxpy.cu", "debug", ["sm_80"], ["-O1", "-g"], [19]),
    ("reduce.cu", "", ["sm_60", "sm_75", "sm_90"], ["-O2"], [16, 19]),
    ("matmul.cu", "", ["sm_70", "sm_80"], ["-O3"], [14, 19]),
    ("matmul.cu", "O0", ["sm_86"], ["-O0"], [19]),
    ("structs.cu", "", ["sm_60", "sm_75"], ["-O1"], [14, 19]),
    ("structs.cu", "O0", ["sm_80"], ["-O0"], [16, 19]),
    ("structs.cu", "debug", ["sm_75"], ["-O1", "-g"], [19]),
    ("integers.cu", "", ["sm_75", "sm_80"], ["-O2"], [14, 19]),
    ("asm_mma.cu", "", ["sm_75"], ["-O2", "-Xclang", "-target-feature", "-Xclang", "+ptx65"], [14, 19]),
    ("half.cu", "", ["sm_60", "sm_80"], ["-O2"], [19]),
    ("half.cu", "fast", ["sm_75"], ["-O2", "-ffast-math"], [19]),
    ("plain.c", "", ["sm_75", "sm_90"], ["-O2"], [19]),
    ("alias.c", "", ["sm_75"], ["-O1"], [19]),
    ("plain.c", "", ["sm_52"], ["-O1"], [19]),
    ("vecadd.cl", "", ["sm_75", "sm_80"], ["-O2"], [14, 19]),
]
PTX_FEATURE = {50: 50, 52: 50, 60: 60, 70: 60, 75: 63, 80: 70, 86: 71, 89: 78, 90: 78}


def clang_jobs(base, ptxas, old_ptxas, fails, want):
    for src, variant, archs, flags, versions in CLANG:
        for v in versions:
            if not shutil.which(f"clang-{v}"):
                continue
            for arch in archs:
                n = int(arch[3:])
                stem = src.replace(".", "_") if not src.endswith(".cu") else src[:-3]
                name = f"{stem}{'-' + variant if variant else ''}.clang{v}.{arch}.ptx"
                if want and not want.search(name):
                    continue
                feature = ["-Xclang", "-target-feature", "-Xclang", f"+ptx{PTX_FEATURE[n]}"]
                if src.endswith(".cu"):
                    how = ["-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=" + arch, "-Wno-unknown-cuda-version"]
                elif src.endswith(".cl"):
                    how = ["--target=nvptx64-nvidia-nvcl", "-x", "cl", "-cl-std=CL1.2", "-march=" + arch]
                else:
                    how = ["--target=nvptx64-nvidia-cuda", "-march=" + arch]
                tmp = base / ("out-" + name)
                r = subprocess.run([f"clang-{v}", *how, *feature, *flags, "-ffile-prefix-map=" + str(HERE) + "=.", "-S", "clang/" + src, "-o", tmp], cwd=HERE, capture_output=True, text=True)
                if r.returncode:
                    fails.append((name, r.stderr[:800]))
                    continue
                text = tmp.read_text()
                tmp.unlink()
                finish(name, text, base, old_ptxas if n < 75 else ptxas, fails)


def main():
    base = Path(sys.argv[1]).resolve()
    want = re.compile(sys.argv[2]) if len(sys.argv) > 2 else None
    OUT.mkdir(exist_ok=True)
    fails = []
    todo = lambda name: want is None or want.search(name)

    jobs = [(s, "", a, []) for s, archs in CUDA for a in archs]
    jobs += [(s, v, a, f) for s, v, archs, f in CUDA_VARIANTS for a in archs]
    jobs = [j for j in jobs if todo(f"{j[0]}{'-' + j[1] if j[1] else ''}.nvcc.{j[2]}.ptx")]
    env = make_env(base, "nvccenv")
    ptxas = site(env, "nvidia", "cu13", "bin", "ptxas")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda j: nvcc_job(j, base, env, ptxas, fails), jobs))

    if want is None or "triton" in want.pattern:
        triton_jobs(base, make_env(base, "tritonenv"), ptxas, fails, want)
    if want is None or "numba" in want.pattern:
        numba = make_env(base, "numbaenv")
        numba_jobs(base, numba, site(numba, "nvidia", "cuda_nvcc", "bin", "ptxas"), fails, want)
    if want is None or "clang" in want.pattern:
        old = site(make_env(base, "numbaenv"), "nvidia", "cuda_nvcc", "bin", "ptxas")
        clang_jobs(base, ptxas, old, fails, want)

    for name, why in sorted(fails):
        print(f"FAILED {name}: {why}\n")
    print(f"{len(list(OUT.glob('*.ptx')))} files, {sum(f.stat().st_size for f in OUT.glob('*.ptx')) / 1e6:.2f} MB, {len(fails)} failures")
    return bool(fails)


if __name__ == "__main__":
    sys.exit(main())
