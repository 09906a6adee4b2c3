"""The C without Python: small programs that check its primitives, and how they are built."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "kwire_c" / "core"
SOURCES = {
    "crc32c_check": ("crc32c.c", "crc32c_x86.c", "crc32c_arm.c"),
    "buffers_check": ("buffer.c",),
    "arrow_rows_check": ("arrow_rows.c",),
    "record_text_check": ("record_text.c",),
}
OPTIONS = {
    "crc32c_check": ("-include", str(HERE / "processor.h")),
    "buffers_check": ("-pthread", "-Dmmap=told_mmap", "-Dmremap=told_mremap"),
    "record_text_check": ("-Drealloc=told_realloc",),
}
# what an x86-64 processor may lack, as processor.h has it -> the variants that are left of all
X86 = {
    "": ("avx512-vpclmulqdq", "sse4.2-pclmul", "sse4.2", "table"),
    "1-": ("table",),
    "1c20": ("table",),  # SSE 4.2
    "1c1": ("sse4.2", "table"),  # PCLMULQDQ
    "1c27": ("sse4.2-pclmul", "sse4.2", "table"),  # OSXSAVE
    "7-": ("sse4.2-pclmul", "sse4.2", "table"),
    "7b16": ("sse4.2-pclmul", "sse4.2", "table"),  # AVX512F
    "7b17": ("sse4.2-pclmul", "sse4.2", "table"),  # AVX512DQ
    "7b31": ("sse4.2-pclmul", "sse4.2", "table"),  # AVX512VL
    "7c10": ("sse4.2-pclmul", "sse4.2", "table"),  # VPCLMULQDQ
}
LESS = X86 if platform.machine() == "x86_64" else {}


def build(name: str, program: Path, *options: str) -> None:
    """Compiles a check. options: of the compiler."""
    sources = [str(HERE / f"{name}.c"), *(str(CORE / source) for source in SOURCES[name])]
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{CORE}", *OPTIONS.get(name, ()), *options]
    subprocess.run(["cc", *flags, *sources, "-o", str(program)], check=True)


def run(program: Path, lacks: str = "") -> list[str]:
    """The words that a check prints, on a processor with less."""
    environment = {**os.environ, "LACKS": f" {lacks} "}
    ran = subprocess.run([program], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()
