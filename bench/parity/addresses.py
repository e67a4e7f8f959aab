#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the hand-written shaders of bench/parity once more, with addresses in place of storage buffers (GL_EXT_buffer_reference), as CUDA
kernels have: docs/parity.md says what for.

usage: bench/parity/addresses.py FOLDER      writes NAME.comp and NAME.spv for each to FOLDER; needs glslangValidator"""

import pathlib
import re
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parent.parent
SHADERS = [BENCH / "handwritten" / f"{name}.comp" for name in ("copy", "sgemm", "nbody", "reduction")] + sorted((BENCH / "parity").glob("*.comp"))
BUFFER = re.compile(r"layout\(std430, binding = \d\) ((?:readonly |writeonly )?)buffer (\w+) \{ (\w+) (\w+)\[\]; \};")
CONSTANTS = "layout(push_constant) uniform Scalars { "
ALIGNMENTS = {"vec4": 16, "vec2": 8}


def with_addresses(text):
    buffers = [(block, name) for _, block, _, name in BUFFER.findall(text)]
    text = BUFFER.sub(lambda m: f"layout(std430, buffer_reference, buffer_reference_align = {ALIGNMENTS.get(m[3], 4)}) {m[1]}buffer {m[2]} {{ {m[3]} {m[4]}[]; }};", text)
    text = text.replace("#version 450", "#version 450\n#extension GL_EXT_buffer_reference : require")
    text = text.replace(CONSTANTS, CONSTANTS + "".join(f"{block} at_{name}; " for block, name in buffers))
    for _, name in buffers:
        text = re.sub(rf"(?<![.\w]){name}\[(?!\])", f"at_{name}.{name}[", text)
    return text


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for shader in SHADERS:
        changed = folder / shader.name
        changed.write_text(with_addresses(shader.read_text()))
        subprocess.run(["glslangValidator", "--quiet", "-V", "--target-env", "vulkan1.2", changed, "-o", changed.with_suffix(".spv")], check=True)


main()
