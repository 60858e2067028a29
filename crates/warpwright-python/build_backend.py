"""The build of the wheel: Maturin's, after the program and the libraries that the wheel carries.

`WARPWRIGHT_PROFILE` is the profile of Cargo, `release` if it is not set.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import (  # noqa: F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent
PACKAGES = [
    "warpwright",
    "warpwright-libcuda",
    "warpwright-libcudart",
    "warpwright-libnvrtc",
    "warpwright-libnvjitlink",
]
FILES = [
    "warpwright",
    "libwarpwright_cuda.so",
    "libwarpwright_cudart.so",
    "libwarpwright_nvrtc.so",
    "libwarpwright_nvjitlink.so",
]


def _profile() -> str:
    return os.environ.get("WARPWRIGHT_PROFILE", "release")


def _build_programs() -> None:
    """Builds the program and the libraries, and puts them into the package, without symbols."""
    if _profile() == "dev":
        # With the rest of the workspace, for which other features are chosen: nothing is built twice.
        packages = ["--workspace", "--exclude", "warpwright-macros", "--examples"]
    else:
        packages = [argument for package in PACKAGES for argument in ("--package", package)]
    command = ["cargo", "build", "--locked", "--profile", _profile(), "--lib", "--bins", *packages]
    subprocess.run(command, cwd=ROOT, check=True)
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    target = Path(json.loads(metadata.stdout)["target_directory"])
    built = target / {"dev": "debug"}.get(_profile(), _profile())
    place = FOLDER / "python" / "warpwright" / "bin"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for file in FILES:
        shutil.copy2(built / file, place / file)
        if shutil.which("strip"):
            subprocess.run(["strip", str(place / file)], check=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the wheel."""
    _build_programs()
    os.environ.setdefault("MATURIN_PEP517_ARGS", f"--profile {_profile()}")
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds what leads to the package in this folder."""
    _build_programs()
    os.environ.setdefault("MATURIN_PEP517_ARGS", f"--profile {_profile()}")
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
