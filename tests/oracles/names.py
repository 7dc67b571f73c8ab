# SPDX-License-Identifier: MIT
"""names: functions of odd names, odd files and odd lines, each of which burns a little.

Each burner notes who called it and from which line, as the interpreter itself
says; where names are made by replace(), what they were replaced with. Burners
call nothing of ours, so each is a leaf.
"""
import functools
import os
import sys
import time
import types

from truth import leave

AMOUNT = float(sys.argv[1]) if len(sys.argv) > 1 else 0.02
rows = []


def burn_here(amount=AMOUNT, clock=time.thread_time):
    """The leaf; its caller's name, file and line are what is tested."""
    frame = sys._getframe(1)
    code = frame.f_code
    row = [code.co_qualname, code.co_filename, frame.f_lineno, 0.0]
    rows.append(row)
    end = clock() + amount
    before = clock()
    while clock() < end:
        for _ in range(100):
            pass
    row[3] = clock() - before
    return 0


def renamed(name, file):
    """A function whose code says so; its own body burns through burn_here."""
    def original():
        burn_here()
    code = original.__code__.replace(co_name=name, co_qualname=name, co_filename=file)
    types.FunctionType(code, globals())()


ODD_NAMES = {
    "ascii": "plain", "latin1": "d\u00e9j\u00e0_vu_\u00ff", "greek": "\u03c3\u03c5\u03bd\u03ac\u03c1\u03c4\u03b7\u03c3\u03b7",
    "cjk": "\u51fd\u6570\u540d\u524d", "emoji": "f_\U0001f40d\U0001f525", "semicolon": "a;b;c", "backslash": "a\\b\\x41",
    "newline": "two\nlines\r\ttab", "nul": "with\0nul", "c1": "next\u0085line", "delete": "del\x7f", "surrogate": "lone\udc80\ud800end",
    "space digits": "ends in 42", "parenthesis": "f (g:1)", "brackets": "[marker]", "space": " ", "long": "n" * 3000,
    "long twin": "n" * 2999 + "m", "long greek": "\u03b1" * 3000, "long escapes": ";" * 3000, "exactly 1000": "k" * 1000,
    "mixed": "\u00e9;\u51fd\\\U0001f40d",
}
ODD_FILES = {
    "plain": "/x/y/module.py", "parenthesis": "/x/dir (old)/a (b).py", "semicolon": "/x/a;b.py", "backslash": "C:\\x\\y.py",
    "newline": "/x/new\nline.py", "greek": "/x/\u03b1\u03b2.py", "cjk": "/x/\u51fd.py", "emoji": "/x/\U0001f40d.py",
    "surrogate": "/x/bad\udcff.py", "colon": "/x/a:12.py", "digits": "/x/file 12", "long": "/x/" + "p" * 3000,
    "angle": "<string>", "empty": "",
}


def odd_names():
    for name in ODD_NAMES.values():
        renamed(name, "/odd/names.py")


def odd_files():
    for label, file in ODD_FILES.items():
        renamed("in_" + label, file)


# ---------------------------------------------------------------- kinds of code


def by_exec():
    exec("burn_here()")
    exec("def inner():\n\n    burn_here()\ninner()")


def by_eval():
    eval("burn_here()")
    eval("[burn_here() for _ in (1,)]")


def class_bodies():
    class Outer:
        burn_here()

        class Inner:
            burn_here()

        def method(self):
            burn_here()

        @staticmethod
        def static():
            burn_here()

        @classmethod
        def of_class(cls):
            burn_here()

        @property
        def attribute(self):
            return burn_here()

        def __call__(self):
            burn_here()

        def __del__(self):
            burn_here()
    thing = Outer()
    thing.method()
    thing.static()
    thing.of_class()
    thing.attribute
    thing()
    del thing


def lambdas():
    f = lambda: burn_here()  # noqa: E731
    f()
    (lambda n: burn_here() if n else 0)(1)


def decorated():
    def wraps(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)
        return wrapper

    @wraps
    @functools.lru_cache
    def wrapped():
        return burn_here()
    wrapped()


def nested():
    def one():
        def two():
            def three():
                burn_here()
            three()
        two()
    one()


def comprehensions():
    [burn_here() for _ in (1,)]
    {burn_here() for _ in (1,)}
    {burn_here(): 1 for _ in (1,)}
    list(burn_here() for _ in (1,))


def lines():
    x = 1

    burn_here()

    # a comment, then a call

    x = x + burn_here()
    burn_here(

        AMOUNT,
        time.thread_time,
    )
    x = (1 +
         burn_here() +
         2)
    text = """
    one
    two %s
    """.strip() % burn_here()
    """
    a string
    """.join([str(
        burn_here())])
    y = [
        1,
        burn_here(),
    ]
    if (x and
            not burn_here()):
        pass
    try:
        burn_here(); burn_here()
        raise ValueError
    except ValueError:
        burn_here()
    finally:

        burn_here()
    for _ in (burn_here(),):
        pass
    while burn_here():
        pass
    with open(os.devnull) as f:
        burn_here()
    assert not burn_here(), \
        "never"
    return text, y, f


def nine_thousand_lines():
    body = ["def long_function(x):"] + ["    x += 1"] * 9000
    body[4500] = "    burn_here()"
    body += ["    burn_here()", "    return x"]
    names = {"burn_here": burn_here}
    exec(compile("\n".join(body), "/odd/nine thousand.py", "exec"), names)
    names["long_function"](0)


def far_jumps():
    """Lines that go back, and far, within one function."""
    source = "def jumps(n):\n  for i in range(n):\n" + "\n" * 400 + "    burn_here()\n" + "\n" * 70000 + "    i = burn_here()\n"
    names = {"burn_here": burn_here}
    exec(compile(source, "/odd/jumps.py", "exec"), names)
    names["jumps"](1)


def main():
    odd_names()
    odd_files()
    by_exec()
    by_eval()
    class_bodies()
    lambdas()
    decorated()
    nested()
    comprehensions()
    lines()
    nine_thousand_lines()
    far_jumps()
    leave({"rows": rows, "file": __file__})


burn_here()
main()
