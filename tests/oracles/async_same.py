# SPDX-License-Identifier: MIT
"""async_same: the same work three times: in tasks, in coroutines of one task, in plain functions.

    async_same.py tasks|coroutines|plain SECONDS waits|busy

The three are made from one text, written to work.py in the current directory, so
that every call stands on the same line of the same file; busy: nothing in it waits.
The truth: how long each function computed and waited, by the clock, and what CPU
it used in that.
"""
import asyncio
import os
import re
import sys
import time

from truth import leave

TEXT = '''
import asyncio, time
from truth import burn

spent = {}
cpu = {}

def note(name, began):
    spent[name] = spent.get(name, 0) + time.monotonic() - began

async def pause(name, seconds):
    began = time.monotonic()
    await asyncio.sleep(seconds)
    note("pause " + name, began)

def compute(name, seconds):
    began, before = time.monotonic(), time.thread_time()
    burn(seconds)
    note("compute " + name, began)
    cpu[name] = cpu.get(name, 0) + time.thread_time() - before

def totals(seconds):
    compute("totals", seconds)

async def query():
    await pause("query", 0.054)

async def load():
    await query()
    compute("load", 0.018)

async def order():
    await load()
    totals(0.036)

async def render():
    compute("render", 0.027)
    await pause("render", 0.018)

async def page():
    await order()
    await render()
    await pause("page", 0.030)

async def serve(end):
    while time.monotonic() < end:
        await page()
        compute("serve", 0.009)

async def main(seconds):
    await serve(time.monotonic() + seconds)
'''


def as_tasks(text):
    return re.sub(r"await (?!asyncio)(.*)", r"await asyncio.create_task(\1)", text)


def as_plain(text):
    return text.replace("await asyncio.sleep", "time.sleep").replace("async def", "def").replace("await ", "")


def main():
    form, seconds, busy = sys.argv[1], float(sys.argv[2]), sys.argv[3] == "busy"
    text = {"tasks": as_tasks, "coroutines": str, "plain": as_plain}[form](TEXT.replace("sleep(seconds)", "sleep(0)") if busy else TEXT)
    with open("work.py", "w", encoding="utf-8") as f:
        f.write(text)
    sys.path.insert(0, os.getcwd())
    import work
    drive = work.main if form == "plain" else (lambda seconds: asyncio.run(work.main(seconds)))
    began = time.monotonic()
    drive(seconds)
    leave({"form": form, "spent": work.spent, "cpu": work.cpu, "whole": time.monotonic() - began})


main()
