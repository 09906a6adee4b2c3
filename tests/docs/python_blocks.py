"""Runs python blocks for tests.docs.examples: lines of JSON in (page, folder, code), what each printed out.

The blocks of a page share their names, and `await` may be used outside of functions, as in `python -m asyncio`.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import json
import os
import sys
import traceback
from contextlib import redirect_stdout
from typing import Any


def run(code: str, names: dict[str, Any]) -> str:
    """What the code prints, a traceback included."""
    out = io.StringIO()
    with redirect_stdout(out):
        try:
            compiled = compile(code, "<example>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            if compiled.co_flags & inspect.CO_COROUTINE:
                asyncio.run(eval(compiled, names))
            else:
                exec(compiled, names)
        except Exception:
            print(traceback.format_exc())
    return out.getvalue()


def main() -> None:
    """Answer until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what other processes print is no answer
    sys.path[0] = ""
    pages: dict[str, dict[str, Any]] = {}
    for line in sys.stdin:
        page, folder, code = json.loads(line)
        os.chdir(folder)
        print(json.dumps(run(code, pages.setdefault(page, {"__name__": "__main__"}))), file=answers, flush=True)


if __name__ == "__main__":
    main()
