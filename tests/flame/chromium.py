# SPDX-License-Identifier: MIT
"""chromium: a page in headless Chromium, driven over a pipe by its DevTools protocol,
with nothing but Python and Debian's chromium.

    with Browser() as browser:
        page = browser.open()
        page.go("file:///...")
        page.evaluate("1 + 1"); page.click(10, 20); page.key("Enter")
        page.errors, page.requests

Every wait ends with an answer of the browser's or with the limit of LIMIT seconds,
after which the test fails; no test waits by the clock for something to happen.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

LIMIT = 60

SWITCHES = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
            "--window-size=1280,800", "--force-color-profile=srgb"]


def program():
    """Path of chromium, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One process of the browser, with a profile folder of its own."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="aprof-chromium-")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def place():  # it reads from 3 and writes to 4
            high = [os.dup2(fd, to, inheritable=True) for fd, to in ((theirs_in, 63), (theirs_out, 64))]
            for fd, to in zip(high, (3, 4)):
                os.dup2(fd, to, inheritable=True)
                os.close(fd)

        self.process = subprocess.Popen([program(), *SWITCHES, "--user-data-dir=" + self.folder, "about:blank"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        close_fds=False, preexec_fn=place, start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        self.reader, self.writer = ours_in, ours_out
        self.buffer = b""
        self.next_id = 0
        self.answers = {}
        self.pages = {}
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.reader)
        os.close(self.writer)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.writer, data):]
        wanted = self.next_id
        self.wait(lambda: wanted in self.answers, method)
        answer = self.answers.pop(wanted)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait(self, ready, what):
        """Takes what the browser says until ready() is true."""
        end = time.monotonic() + LIMIT
        while not ready():
            if not select.select([self.reader], [], [], max(0, end - time.monotonic()))[0]:
                raise RuntimeError(f"{what}: chromium has not answered in {LIMIT} seconds")
            self.buffer += (part := os.read(self.reader, 1 << 20))
            if not part:
                raise RuntimeError(f"{what}: chromium has ended")
            *messages, self.buffer = self.buffer.split(b"\0")
            for message in messages:
                self.take(json.loads(message))

    def take(self, message):
        if "id" in message:
            self.answers[message["id"]] = message
        elif message.get("sessionId") in self.pages:
            self.pages[message["sessionId"]].event(message["method"], message["params"])

    def open(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        self.pages[session] = page
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(domain + ".enable")
        return page


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.errors = []    # exceptions, console.error, and what the browser logs as one
        self.requests = []  # addresses, the page's own excepted
        self.loaded = False
        self.url = None

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def event(self, method, parameters):
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.errors.append(str([one.get("value") for one in parameters["args"]]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            address = parameters["request"]["url"]
            if address != self.url and not address.startswith("data:"):
                self.requests.append(address)

    def go(self, url):
        self.loaded, self.url = False, url
        self.call("Page.navigate", url=url)
        self.browser.wait(lambda: self.loaded, "loading " + url)

    def close(self):
        self.call("Page.close")

    def evaluate(self, expression):
        """Its value; a promise's when it is kept."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def settle(self):
        """Two frames: what was asked for is drawn. Only the page in front has frames."""
        self.call("Page.bringToFront")
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))")

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "Escape": 27, "Backspace": 8, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
                "ArrowDown": 40}.get(key, ord(key[0].upper()))
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def picture(self, path, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)
        self.settle()
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
