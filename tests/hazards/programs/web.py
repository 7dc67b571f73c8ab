# SPDX-License-Identifier: MIT
"""web: what the servers serve, as WSGI (application) and as ASGI (asgi).

/ burns 30 ms of CPU in burn_request; /slow?PATH makes the file PATH, waits for
0.3 s and burns. Both answer with the pid of the process and how many milliseconds
of CPU it has burnt in them so far.
"""
import asyncio
import os
import time

burnt = [0]


def burn_request():
    begin = time.thread_time()
    while time.thread_time() - begin < 0.03:
        sum(range(200))
    burnt[0] += 30
    return b"%d %d" % (os.getpid(), burnt[0])


def mark(path):
    with open(path, "w", encoding="utf-8"):
        pass


def application(environ, start_response):
    if environ["PATH_INFO"] == "/slow":
        mark(environ["QUERY_STRING"])
        time.sleep(0.3)
    body = burn_request()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["path"] == "/slow":
        mark(scope["query_string"].decode())
        await asyncio.sleep(0.3)
    body = burn_request()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
