"""The C extensions. Everything else is in pyproject.toml.

Switches (environment): KWIRE_DEBUG=1 keeps symbols and -O0, KWIRE_SANITIZE=1 adds ASan and UBSan,
KWIRE_FUZZ=1 (with CC=clang) ASan and libFuzzer's counters, KWIRE_COVERAGE=1 Cython line tracing and gcov,
KWIRE_PLANT=1 plants an out-of-bounds read, for the tests of the sanitised builds themselves.
KWIRE_ONLY=record_batch,columns builds only these extensions.
"""

import copy
import json
import os
import re
import time
from glob import glob
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

# extension -> the files of kwire_c/core linked into it besides its own .pyx
EXTENSIONS = {
    "arrow": [],
    "batch_builder": ["kwire_c/core/arrow_rows.c"],
    "columns": [
        "kwire_c/core/columns.c", "kwire_c/core/sink.c", "kwire_c/core/buffer.c", "kwire_c/core/batch.c",
        "kwire_c/core/utf8.c",
    ],
    "containers": ["kwire_c/core/containers.c"],
    "crc32c": ["kwire_c/core/crc32c.c", "kwire_c/core/crc32c_x86.c", "kwire_c/core/crc32c_arm.c"],
    "decode": ["kwire_c/core/utf8.c"],
    "encode": [],
    "json": [],
    "log_scan": ["kwire_c/core/log_scan.c"],
    "message_class": [],
    "plan": [],
    "record_batch": ["kwire_c/core/batch.c", "kwire_c/core/utf8.c"],
    "record_text": ["kwire_c/core/record_text.c"],
    "shared_iterator": [],
    "varint": [],
}


def switch(name):
    return os.environ.get("KWIRE_" + name, "0") not in ("", "0")


# no auto-vectoriser: it slows the short strided loops of columns.c; the loops that gain from SIMD use intrinsics
compile_args, link_args, macros, directives = ["-O3", "-fno-tree-vectorize", "-g0", "-std=c11"], ["-Wl,-s"], [], {}
if switch("DEBUG"):
    compile_args, link_args = ["-O0", "-g", "-std=c11"], []
if switch("SANITIZE"):
    sanitizer = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    compile_args = ["-O1", "-g", "-std=c11", "-fno-omit-frame-pointer", "-fno-wrapv", *sanitizer]
    link_args = sanitizer
if switch("COVERAGE"):
    compile_args = ["-O0", "-g", "-std=c11", "--coverage", "-fprofile-update=atomic"]  # threads count too
    link_args = ["--coverage"]
    macros.append(("CYTHON_TRACE_NOGIL", "1"))
    directives["linetrace"] = True
if switch("FUZZ"):
    counters = "-fsanitize=fuzzer-no-link,address"
    compile_args, link_args = ["-O1", "-g", "-w", "-std=c11", "-fno-omit-frame-pointer", "-fno-wrapv", counters], []
if switch("PLANT"):
    macros.append(("KWIRE_PLANT", "1"))


class BuildExt(build_ext):
    """A build folder for each extension: built in parallel (-j), two would write the same batch.o."""

    def build_extension(self, ext):
        alone = copy.copy(self)
        alone.build_temp = os.path.join(self.build_temp, ext.name)
        build_ext.build_extension(alone, ext)


def component(name, version, purl, **more):
    """One component of the bill of materials; everything in a wheel has the Apache licence."""
    entry = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    return {**entry, "licenses": [{"license": {"id": "Apache-2.0"}}], **more}


def bill_of_materials(name, version):
    """The components of a wheel as CycloneDX 1.6: kwire, the schemas of Kafka's jars, and Cython's C code."""
    releases = json.loads(Path("kwire/schema/releases.json").read_text(encoding="utf-8"))["releases"]
    newest = list(releases.values())[-1]
    whole = component(name, version, f"pkg:pypi/{name}@{version}")
    parts = [
        component(
            "kafka-clients", newest, f"pkg:maven/org.apache.kafka/kafka-clients@{newest}", group="org.apache.kafka",
            description=f"Apache Kafka's message schemas, API versions and error codes, up to release {newest}, "
            "in kwire/schema; none of its code",
        ),
        component(
            "cython", Cython.__version__, f"pkg:pypi/cython@{Cython.__version__}",
            description="Its utility code, in the C of every extension of kwire_c",
        ),
    ]  # fmt: skip
    built = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", built), "component": whole},
        "components": parts,
        "dependencies": [
            {"ref": whole["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]},
            *({"ref": part["bom-ref"]} for part in parts),
        ],
    }


class BdistWheel(bdist_wheel):
    """Wheels with a bill of materials (PEP 770). They hold no library except those compiled from these sources."""

    def egg2dist(self, egginfo_path, distinfo_path):
        bdist_wheel.egg2dist(self, egginfo_path, distinfo_path)
        bill = bill_of_materials(self.distribution.get_name(), self.distribution.get_version())
        folder = Path(distinfo_path, "sboms")
        folder.mkdir()
        (folder / "kwire.cdx.json").write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")


# What Cython (as of 3.3.1) gets wrong where memory is short. Of a list comprehension whose list finds no memory to
# grow, the caller lets go of the item as well:
FREED_TWICE = """
    int result = PyList_Append(list, x);
    Py_DECREF(x);
    return result;
"""
FREED_ONCE = """
    if (PyList_Append(list, x) < 0) return -1;
    Py_DECREF(x);
    return 0;
"""
# An exception that is caught has no traceback (NULL), if there was no memory for one:
CAUGHT = re.compile(r"__Pyx_GetException\(&\w+, &\w+, &(\w+)\)")


def corrected(extensions):
    """The extensions, the C that Cython wrote for them made right for where memory is short."""
    for source in (Path(name) for extension in extensions for name in extension.sources):
        written = source.read_text(encoding="utf-8")
        functions = written.replace(FREED_TWICE, FREED_ONCE).split("\n}\n")
        for number, function in enumerate(functions):
            for traceback in set(CAUGHT.findall(function)):
                functions[number] = function = function.replace(
                    f"__Pyx_DECREF({traceback});", f"__Pyx_XDECREF({traceback});")  # fmt: skip
        text = "\n}\n".join(functions)
        if text != written:
            source.write_text(text, encoding="utf-8")
    return extensions


setup(
    cmdclass={"build_ext": BuildExt, "bdist_wheel": BdistWheel},
    # pip install -e adds the checkout to the path; setuptools' default, an import hook, hides it from type checkers
    options={"editable_wheel": {"mode": "compat"}, "build_ext": {"parallel": True}},
    ext_modules=corrected(cythonize(
        [
            Extension(
                f"kwire_c.{name}",
                [f"kwire_c/{name}.pyx", *sources],
                # with the .pyx: the source distribution takes its files from this list
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
            "auto_pickle": False, "embedsignature": True, "embedsignature.format": "python", "binding": False,
            **directives,
        },
    )),
)
