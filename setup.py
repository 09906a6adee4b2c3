"""The C extensions. Everything else stands in pyproject.toml.

Switches (environment): KWIRE_DEBUG=1 keeps symbols and -O0, KWIRE_SANITIZE=1 adds ASan and UBSan,
KWIRE_FUZZ=1 (with CC=clang) ASan and libFuzzer's counters, KWIRE_COVERAGE=1 Cython line tracing and gcov,
KWIRE_PLANT=1 plants an out-of-bounds read for the tests that show the sanitisers awake.
KWIRE_ONLY=records,columns builds these extensions alone.
"""

import copy
import os
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# extension -> the files of kwire_c/core linked into it besides its own .pyx
EXTENSIONS = {
    "cursor": [],
    "crc32c": ["kwire_c/core/crc32c.c", "kwire_c/core/crc32c_x86.c", "kwire_c/core/crc32c_arm.c"],
    "block": [],
    "frames": ["kwire_c/core/frames.c"],
    "heads": ["kwire_c/core/batch.c"],
    "records": ["kwire_c/core/batch.c", "kwire_c/core/utf8.c"],
    "batches": ["kwire_c/core/batch.c"],
    "rows": ["kwire_c/core/batch.c"],
    "build": [],
    "decode": [],
    "encode": [],
    "instance": [],
    "jsonable": [],
    "plan": [],
    "reader": ["kwire_c/core/utf8.c"],
    "sinks": ["kwire_c/core/sink.c"],
    "values": [],
    "writer": [],
    "arrow": [],
    "arrow_rows": ["kwire_c/core/arrow_rows.c"],
    "casts": [],
    "columns": ["kwire_c/core/columns.c", "kwire_c/core/buffer.c", "kwire_c/core/batch.c", "kwire_c/core/utf8.c"],
    "gather": ["kwire_c/core/batch.c"],
    "scan": ["kwire_c/core/scan.c"],
}


def switch(name):
    return os.environ.get("KWIRE_" + name, "0") not in ("", "0")


# no vectoriser: it makes the short strided loops of columns.c slower; what gains by SIMD has it by hand
compile_args, link_args, macros, directives = ["-O3", "-fno-tree-vectorize", "-g0", "-std=c11"], ["-Wl,-s"], [], {}
if switch("DEBUG"):
    compile_args, link_args = ["-O0", "-g", "-std=c11"], []
if switch("SANITIZE"):
    sanitizer = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    compile_args = ["-O1", "-g", "-std=c11", "-fno-omit-frame-pointer", "-fno-wrapv", *sanitizer]
    link_args = sanitizer
if switch("COVERAGE"):
    compile_args, link_args = ["-O0", "-g", "-std=c11", "--coverage"], ["--coverage"]
    macros.append(("CYTHON_TRACE_NOGIL", "1"))
    directives["linetrace"] = True
if switch("FUZZ"):
    counters = "-fsanitize=fuzzer-no-link,address"
    compile_args, link_args = ["-O1", "-g", "-w", "-std=c11", "-fno-omit-frame-pointer", "-fno-wrapv", counters], []
if switch("PLANT"):
    macros.append(("KWIRE_PLANT", "1"))


class BuildExt(build_ext):
    """Objects of each extension in a folder of its own: built side by side (-j), two would write the same batch.o."""

    def build_extension(self, ext):
        alone = copy.copy(self)
        alone.build_temp = os.path.join(self.build_temp, ext.name)
        build_ext.build_extension(alone, ext)


setup(
    cmdclass={"build_ext": BuildExt},
    ext_modules=cythonize(
        [
            Extension(
                f"kwire_c.{name}",
                [f"kwire_c/{name}.pyx", *sources],
                # the .pyx as well: the source distribution has what stands here, and .pyx only because of this
                depends=[f"kwire_c/{name}.pyx", *glob("kwire_c/core/*"), *glob("kwire_c/*.pxd")],
                extra_compile_args=compile_args,
                extra_link_args=link_args,
                define_macros=macros,
                include_dirs=["kwire_c/core"],
            )
            for name, sources in EXTENSIONS.items()
            if name in os.environ.get("KWIRE_ONLY", ",".join(EXTENSIONS)).split(",")
        ],
        build_dir="build/cython",
        compiler_directives={
            "language_level": "3", "boundscheck": False, "wraparound": False, "initializedcheck": False,
            "auto_pickle": False, "embedsignature": True, "embedsignature.format": "python", "binding": False, **directives,
        },
    ),
)
