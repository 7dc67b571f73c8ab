#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small web service with four habits, each slow in a way of its own.

  /catalogue  serialises some hundred rows as JSON
  /orders     waits for a slow database, behind a pool of a few connections
  /risk       computes in pure Python, and keeps everybody else waiting; as does the
              call for today's rate before, which does not await its answer

Prints its port once it listens; ends on SIGTERM after the requests under way.
"""
import asyncio
import json
import random
import socket
import time

from aiohttp import web

ROWS = [{"id": n, "name": "article %d" % n, "price": n * 1.25, "tags": ["new", "sale", "blue"][: n % 3 + 1],
         "stock": {"north": n % 7, "south": n % 11}} for n in range(400)]


class Database:
    """Answers slowly, and to few at once."""

    def __init__(self, connections=24, delay=0.015):
        self.free = asyncio.Semaphore(connections)
        self.delay = delay

    async def query(self, table):
        async with self.free:
            await asyncio.sleep(self.delay)
            return {"table": table, "rows": 3}


def serialise_catalogue():
    return json.dumps(ROWS, indent=1, sort_keys=True)


async def catalogue(request):
    return web.Response(text=serialise_catalogue(), content_type="application/json")


async def load_order(database):
    return await asyncio.gather(*(database.query(table) for table in ("orders", "customers", "stock")))


async def orders(request):
    return web.json_response(await load_order(request.app["database"]))


def walk_price(price, steps):
    for _ in range(steps):
        price *= 1.0 + random.gauss(0.0, 0.01)
    return price


def value_at_risk(paths=300, steps=100):
    losses = sorted(100.0 - walk_price(100.0, steps) for _ in range(paths))
    return losses[-paths // 20]


def fetch_rate():
    time.sleep(0.005)  # another service's answer
    return 1.02


async def risk(request):
    return web.json_response({"value_at_risk": fetch_rate() * value_at_risk()})


async def announce(app):
    print(app["socket"].getsockname()[1], flush=True)


def main():
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    app = web.Application()
    app["socket"] = listener

    async def connect(app):
        app["database"] = Database()

    app.on_startup.append(connect)
    app.on_startup.append(announce)
    app.router.add_get("/catalogue", catalogue)
    app.router.add_get("/orders", orders)
    app.router.add_get("/risk", risk)
    web.run_app(app, sock=listener, print=None, access_log=None)  # aiohttp ends gracefully on SIGTERM


if __name__ == "__main__":
    main()
