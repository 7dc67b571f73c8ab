# SPDX-License-Identifier: MIT
"""async_truth: what the asyncio oracles share."""
import ast
import asyncio
import time
import types

from truth import burn, leave  # noqa: F401

now = time.monotonic


def named(name, function):
    """The same function under another name: that of its frames."""
    code = function.__code__.replace(co_name=name, co_qualname=name)
    return types.FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)


def await_lines(file):
    """{qualname: lines on which one of its own awaits stands}."""
    with open(file, encoding="utf-8") as f:
        tree = ast.parse(f.read())
    found = {}

    def visit(node, name, lines):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                visit(child, name + [child.name], [])
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = found.setdefault(".".join(name + [child.name]), [])
                visit(child, name + [child.name, "<locals>"], inner)
            else:
                if isinstance(child, (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.YieldFrom)):
                    lines.append(child.lineno)
                elif isinstance(child, ast.comprehension) and child.is_async:
                    lines.append(child.iter.lineno)
                visit(child, name, lines)
    visit(tree, [], [])
    return found


async def in_turns(seconds, turn=0.004):
    """Uses so much CPU time, a few milliseconds at a time."""
    for _ in range(round(seconds / turn)):
        burn(turn)
        await asyncio.sleep(0)


def blocks(seconds):
    """Keeps the loop waiting."""
    time.sleep(seconds)
