"""Firefox (Debian's firefox-esr, headless) as a device of our gateway and a `browser` installation of the hub, over TLS.

It is driven over WebDriver BiDi, which it speaks itself. Its profile is a folder that goes away with the run; our authority is trusted there
and nowhere else, and every address but this machine's leads to a proxy that is not there."""

import base64
import collections
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import queue
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree

NAME = "firefox"
DEADLINE = 60
TEMPLATE = '{"message":"$(text)"}'
# One RFC 8188 record of 4,096 bytes holds that much.
PAYLOAD_BYTE_COUNT_MAX = 3993


def push(check, server, full, state):
    """All checks. `state` is the folder of the server, which holds the hub's VAPID key."""
    if not shutil.which("firefox-esr") or not shutil.which("certutil"):
        print("  [skipped] firefox-esr or certutil (libnss3-tools) is not installed")
        return
    # Firefox goes on writing while it ends.
    with tempfile.TemporaryDirectory(prefix="tidings-firefox", ignore_cleanup_errors=True) as folder, Site() as site:
        browser = Browser(pathlib.Path(folder), server)
        try:
            Run(check, Hub(server, full), browser, site, server, state).all()
        except Exception as error:  # noqa: BLE001: every kind of failure is one failed check
            check(NAME, "the run comes to its end", False, repr(error)[:300])
            print("\n".join(browser.lines), file=sys.stderr)
        finally:
            browser.stop()


class Run:
    def __init__(self, check, hub, browser, site, server, state):
        self.check = lambda statement, holds, observed="": check(NAME, statement, holds, observed)
        self.hub, self.browser, self.site, self.server = hub, browser, site, server
        self.key = json.loads((state / "keys" / "gateway.json").read_text())["webPush"]["publicKey"]

    def all(self):
        self.check("it starts headless and answers WebDriver BiDi", True, self.browser.start())
        for name, key, version in (("open", None, "v1"), ("restricted", self.key, "v2")):
            self.subscribe(name, key, version)
            self.sends(name)
        self.strangers()
        self.sizes()
        self.closed()
        self.unsubscribe()

    def subscribe(self, name, key, version):
        """A subscription is an installation with its scope's name as tag."""
        page = self.browser.page(self.site, name)
        subscription, attempts = page.subscribe(key)
        observed = f"attempts: {attempts}" if attempts > 1 else ""
        self.check(f"{name}: it subscribes at the gateway over wss, with our authority",
                   subscription["endpoint"].startswith(f"{self.server['gateway']}/wpush/{version}/"), observed)
        keys = subscription["keys"]
        self.check(f"{name}: its keys are base64url without padding", (len(keys["p256dh"]), len(keys["auth"])) == (87, 22))
        self.hub.put(name, subscription)
        channel = self.hub.installation(name)["pushChannel"]
        self.check(f"{name}: its installation holds the subscription", channel == {"endpoint": subscription["endpoint"], **keys})

    def sends(self, name):
        for form, body in (("browser", {"message": f"native for {name}", "n": 1}), ("template", {"text": f'"templated" for {name} ☂'})):
            outcome = self.hub.outcome(self.hub.send(form, name, json.dumps(body)))
            self.check(f"{name}: a {form} send by tag succeeds", outcome == ("Completed", {"Success": 1}), outcome)
            want = body if form == "browser" else {"message": body["text"]}
            text = self.browser.pushed(name)
            self.check(f"{name}: the page's service worker gets it", json.loads(text) == want, text)
        for text in ("first", "second"):
            self.hub.outcome(self.hub.send("browser", name, json.dumps({"message": text})))
        got = [json.loads(self.browser.pushed(name))["message"] for _ in range(2)]
        self.check(f"{name}: two messages come in order", got == ["first", "second"], got)

    def strangers(self):
        """An application server without the key that a subscription is restricted to, and one without anything to say."""
        status, body = self.hub.bare_push(self.endpoint("restricted"))
        self.check("restricted: a push without the key is refused", (status, json.loads(body)["errno"]) == (401, 109), status)
        # A hub sends no message without a body (400), so that the test is the application server here.
        status, _ = self.hub.bare_push(self.endpoint("open"))
        self.check("open: a push without a body is taken", status == 201, status)
        self.check("open: its event has no data", self.browser.pushed("open") is None)

    def sizes(self):
        frame = len(json.dumps({"message": ""}))
        for count, outcome in ((PAYLOAD_BYTE_COUNT_MAX, "Success"), (PAYLOAD_BYTE_COUNT_MAX + 1, "InvalidNotificationSize")):
            body = json.dumps({"message": "x" * (count - frame)})
            found = self.hub.outcome(self.hub.send("browser", "restricted", body))
            self.check(f"a payload of {count:,} bytes ends as {outcome}", found == ("Completed", {outcome: 1}), found)
            if outcome == "Success":
                text = self.browser.pushed("restricted")
                self.check("the service worker gets each byte of it", text == body, len(text))

    def closed(self):
        """What was sent while Firefox was closed comes to its service workers, which no page needs to be open for."""
        before = {name: self.endpoint(name) for name in ("open", "restricted")}
        self.browser.close()
        sends = [("open", "browser", '{"message":"waited 1"}'), ("open", "template", '{"text":"waited 2"}'),
                 ("open", "browser", '{"message":"waited 3"}'), ("restricted", "browser", '{"message":"waited"}')]
        for name, form, body in sends:
            outcome = self.hub.outcome(self.hub.send(form, name, body))
            self.check(f"closed: a {form} send to {name} succeeds", outcome == ("Completed", {"Success": 1}), outcome)
        self.check("closed: nothing came meanwhile", self.site.received.empty())
        self.browser.start()
        got = collections.defaultdict(list)
        with contextlib.suppress(queue.Empty):
            for _ in sends:
                value = self.site.received.get(timeout=DEADLINE)
                got[value["scope"]].append(json.loads(value["text"])["message"])
        want = {"open": ["waited 1", "waited 2", "waited 3"], "restricted": ["waited"]}
        self.check("started again: it gets all that waited, in order", got == want, dict(got))
        for name, endpoint in before.items():
            found = self.browser.page(self.site, name).subscription()
            self.check(f"started again: {name} is the same subscription", found and found["endpoint"] == endpoint)

    def unsubscribe(self):
        registrations = self.hub.registrations("restricted")
        self.check("the hub holds a native and a template registration", registrations == 2, registrations)
        page = self.browser.pages["restricted"]
        self.check("restricted: it unsubscribes", page.unsubscribe() is True)
        outcome = self.hub.outcome(self.hub.send("browser", "restricted", '{"message":"gone"}'))
        self.check("the next send, the gateway's first 410, ends as ExpiredChannel", outcome == ("Completed", {"ExpiredChannel": 1}), outcome)
        registrations = self.hub.registrations("restricted")
        self.check("the hub has dropped both registrations", registrations == 0, registrations)
        self.check("its installation is marked", self.hub.installation("restricted").get("pushChannelExpired") is True)
        for form, body in (("browser", '{"message":"x"}'), ("template", '{"text":"x"}')):
            outcome = self.hub.outcome(self.hub.send(form, "restricted", body))
            self.check(f"a {form} send after that has no target", outcome[0] == "NoTargetFound", outcome)
        self.hub.send("browser", "open", '{"message":"still here"}')
        text = self.browser.pushed("open")
        self.check("open: the other subscription stays", text == '{"message":"still here"}', text)
        old = self.endpoint("restricted")
        subscription, _ = page.subscribe(self.key)
        self.check("restricted: subscribed again, its endpoint is another", subscription["endpoint"] != old)
        self.hub.put("restricted", subscription)
        self.hub.send("template", "restricted", '{"text":"back"}')
        text = self.browser.pushed("restricted")
        self.check("restricted: it is reached again", text == '{"message":"back"}', text)

    def endpoint(self, name):
        return self.hub.installation(name)["pushChannel"]["endpoint"]


# MARK: The hub


class Hub:
    """The hub's REST API with the string that may everything."""

    def __init__(self, server, full):
        self.address = server["hub"] + "/tidings"
        self.context = ssl.create_default_context(cafile=server["ca"])
        members = dict(part.split("=", 1) for part in full.split(";") if part)
        resource = urllib.parse.quote(self.address.lower(), safe="").lower()
        expiry = str(int(time.time()) + 7200)
        digest = hmac.new(members["SharedAccessKey"].encode(), f"{resource}\n{expiry}".encode(), hashlib.sha256).digest()
        mark = urllib.parse.quote(base64.b64encode(digest).decode(), safe="")
        self.authorization = f"SharedAccessSignature sr={resource}&sig={mark}&se={expiry}&skn={members['SharedAccessKeyName']}"

    def http(self, method, address, fields, body=None):
        request = urllib.request.Request(address, data=body, method=method, headers=fields)
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=DEADLINE) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def bare_push(self, endpoint):
        """Past the hub, without a key and without a body."""
        status, _, body = self.http("POST", endpoint, {"TTL": "60"}, b"")
        return status, body

    def call(self, method, path, body=None, fields=None):
        status, headers, answer = self.http(
            method, f"{self.address}{path}?api-version=2020-06",
            {"Authorization": self.authorization, "Content-Type": "application/json;charset=utf-8", **(fields or {})},
            None if body is None else body.encode())
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:200]!r}")
        return headers, answer

    def put(self, name, subscription):
        channel = {"endpoint": subscription["endpoint"], **subscription["keys"]}
        self.call("PUT", f"/installations/{name}", json.dumps({
            "installationId": name, "platform": "browser", "pushChannel": channel, "tags": [name], "templates": {"text": {"body": TEMPLATE}}}))

    def installation(self, name):
        return json.loads(self.call("GET", f"/installations/{name}")[1])

    def registrations(self, tag):
        feed = ElementTree.fromstring(self.call("GET", f"/tags/{tag}/registrations")[1])
        return len(feed.findall("{http://www.w3.org/2005/Atom}entry"))

    def send(self, form, tag, body):
        """The id of the notification."""
        fields = {"ServiceBusNotification-Format": form, "ServiceBusNotification-Tags": tag}
        headers, _ = self.call("POST", "/messages", body, fields)
        return urllib.parse.urlsplit(headers["Location"]).path.rsplit("/", 1)[1]

    def outcome(self, notification):
        """The state in which it ended, and its outcomes. The API has no event for this: clients ask until it is there."""
        deadline = time.monotonic() + DEADLINE
        while True:
            details = ElementTree.fromstring(self.call("GET", f"/messages/{notification}")[1])
            space = details.tag.split("}")[0] + "}"
            state = details.findtext(f"{space}State")
            if state not in ("Enqueued", "Processing"):
                counts = details.findall(f"{space}BrowserOutcomeCounts/{space}Outcome")
                return state, {one.findtext(f"{space}Name"): int(one.findtext(f"{space}Count")) for one in counts}
            if time.monotonic() > deadline:
                raise TimeoutError(f"the notification stays {state}")
            time.sleep(0.05)


# MARK: The site


# The page of a scope relays what its service worker posts; without a page the worker tells the site itself. One promise after the other, so
# that nothing is overtaken.
WORKER = """
let last = Promise.resolve();
async function tell(text) {
    const value = JSON.stringify({scope: new URL(registration.scope).pathname.split("/")[1], text});
    const pages = (await clients.matchAll({includeUncontrolled: true})).filter(page => page.url.startsWith(registration.scope));
    if (pages.length) pages.forEach(page => page.postMessage(value));
    else await fetch("/received", {method: "POST", body: value});
}
addEventListener("push", event => {
    const text = event.data ? event.data.text() : null;
    last = last.then(() => tell(text));
    event.waitUntil(last);
});
addEventListener("pushsubscriptionchange", event => event.waitUntil(tell("pushsubscriptionchange")));
addEventListener("install", () => skipWaiting());
addEventListener("activate", event => event.waitUntil(clients.claim()));
"""


class Site:
    """Serves a page and a service worker below each path, over http: localhost is a secure context."""

    def __enter__(self):
        self.received = queue.Queue()
        received = self.received

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                is_worker = self.path.endswith("/worker.js")
                self.answer(200, "text/javascript" if is_worker else "text/html", WORKER if is_worker else "<!doctype html><title>page</title>")

            def do_POST(self):
                received.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.answer(200, "text/plain", "")

            def answer(self, status, type, text):
                self.send_response(status)
                self.send_header("Content-Type", type)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


# MARK: The browser


def preferences(server):
    return {
        "dom.push.serverURL": server["gateway"].replace("https://", "wss://", 1) + "/",
        "permissions.default.desktop-notification": 1,
        "dom.push.loglevel": "debug",
        # Its frames and complaints go to standard output, which is printed when the run fails.
        "devtools.console.stdout.chrome": True,
        # What WebDriver BiDi sets for tests turns off the push connection (dom.push.connection.enabled).
        "remote.prefs.recommended": False,
        # Nothing but this machine is reached: localhost needs no proxy, and at port 9 there is none.
        "network.proxy.type": 1,
        "network.proxy.http": "127.0.0.1", "network.proxy.http_port": 9,
        "network.proxy.ssl": "127.0.0.1", "network.proxy.ssl_port": 9,
        "network.trr.mode": 5,
        "network.captive-portal-service.enabled": False,
        "network.connectivity-service.enabled": False,
        "app.normandy.enabled": False,
        "app.update.disabledForTesting": True,
        "browser.aboutwelcome.enabled": False,
        "browser.newtabpage.enabled": False,
        "browser.region.network.url": "",
        "browser.safebrowsing.downloads.enabled": False,
        "browser.safebrowsing.malware.enabled": False,
        "browser.safebrowsing.phishing.enabled": False,
        "browser.safebrowsing.update.enabled": False,
        "browser.sessionstore.resume_from_crash": False,
        "browser.shell.checkDefaultBrowser": False,
        "browser.startup.homepage_override.mstone": "ignore",
        "browser.startup.page": 0,
        "datareporting.healthreport.uploadEnabled": False,
        "datareporting.policy.dataSubmissionEnabled": False,
        "extensions.getAddons.cache.enabled": False,
        "extensions.update.enabled": False,
        "messaging-system.rsexperimentloader.enabled": False,
        "services.settings.server": "data:,#remote-settings-dummy/v1",
        "termsofuse.bypassNotification": True,
        "toolkit.telemetry.enabled": False,
        "toolkit.telemetry.server": "",
        "trailhead.firstrun.didSeeAboutWelcome": True,
    }


class Browser:
    def __init__(self, folder, server):
        self.folder = folder
        self.profile = folder / "profile"
        self.profile.mkdir()
        self.process = self.socket = None
        self.connection = contextlib.ExitStack()
        self.lines = collections.deque(maxlen=200)
        text = "".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences(server).items())
        (self.profile / "user.js").write_text(text)
        database = f"sql:{self.profile}"
        for arguments in (["-N", "--empty-password"], ["-A", "-n", "Tidings", "-t", "C,,", "-i", server["ca"]]):
            subprocess.run(["certutil", "-d", database, *arguments], check=True)

    def start(self):
        """Starts with the profile of before; the version. Its pages are to be opened again."""
        from websockets.sync.client import connect

        environment = {**os.environ, "HOME": str(self.folder), "MOZ_CRASHREPORTER_DISABLE": "1", "MOZ_HEADLESS": "1"}
        environment.pop("DISPLAY", None)
        self.process = subprocess.Popen(
            ["firefox-esr", "--headless", "--no-remote", "--profile", self.profile, "--remote-debugging-port", "0", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment)
        address = queue.Queue()
        threading.Thread(target=self.read, args=(self.process.stdout, address), daemon=True).start()
        found = address.get(timeout=DEADLINE)
        if found is None:
            raise RuntimeError("Firefox ended")
        self.socket = self.connection.enter_context(connect(found + "/session", max_size=None, proxy=None, open_timeout=DEADLINE))
        self.number = 0
        self.events = collections.deque()
        self.pages = {}
        version = self.command("session.new", capabilities={})["capabilities"]["browserVersion"]
        self.command("session.subscribe", events=["script.message"])
        return version

    def read(self, stream, address):
        mark = "WebDriver BiDi listening on "
        with stream:
            for line in stream:
                self.lines.append(line.rstrip()[:2000])
                if mark in line:
                    address.put(line.split(mark)[1].strip())
        address.put(None)

    def command(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            value = self.receive(time.monotonic() + DEADLINE)
            if value.get("id") != self.number:
                self.events.append(value)
            elif value["type"] == "error":
                raise RuntimeError(f"{method}: {value['error']}: {value['message']}")
            else:
                return value["result"]

    def receive(self, deadline):
        return json.loads(self.socket.recv(timeout=max(0, deadline - time.monotonic())))

    def pushed(self, scope):
        """The text of the next push that the page of `scope` is told; None when it had none."""
        deadline = time.monotonic() + DEADLINE
        seen = []
        while True:
            try:
                value = self.events.popleft() if self.events else self.receive(deadline)
            except TimeoutError:
                raise TimeoutError(f"no push came to {scope}") from None
            if value.get("method") == "script.message":
                message = json.loads(value["params"]["data"]["value"])
                if message["scope"] == scope:
                    self.events.extendleft(reversed(seen))
                    return message["text"]
            seen.append(value)

    def page(self, site, name):
        self.pages[name] = Page(self, f"{site.address}/{name}/")
        return self.pages[name]

    def close(self):
        """As a user does it: everything is written down."""
        self.command("browser.close")
        self.connection.close()
        self.process.wait(timeout=DEADLINE)
        self.process = None

    def stop(self):
        self.connection.close()
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Page:
    def __init__(self, browser, address):
        self.browser = browser
        self.context = browser.command("browsingContext.create", type="tab")["context"]
        browser.command("browsingContext.navigate", context=self.context, url=address, wait="complete")
        relay = {"type": "channel", "value": {"channel": "push"}}
        self.call("relay => { navigator.serviceWorker.onmessage = event => relay(event.data) }", relay)

    def call(self, function, *arguments):
        """The value of a function of the page: a primitive one."""
        found = self.browser.command(
            "script.callFunction", functionDeclaration=function, arguments=list(arguments), awaitPromise=True,
            target={"context": self.context}, userActivation=True)
        if found["type"] == "exception":
            raise RuntimeError(found["exceptionDetails"]["text"])
        return found["result"].get("value")

    def subscribe(self, key):
        """The subscription, and how often it took.

        What is asked in the first seconds of the browser's life can be lost in it, so that the promise stays pending, without a sign or an
        event to wait for. Its own deadline for an answer of the gateway is 10 s (dom.push.requestTimeout): beyond it is asked again."""
        seconds = 12
        for attempt in range(1, DEADLINE // seconds + 1):
            text = self.call(
                """async (key, seconds) => {
                    const registration = await navigator.serviceWorker.register("worker.js");
                    await navigator.serviceWorker.ready;
                    const options = {userVisibleOnly: true, ...(key && {applicationServerKey: key})};
                    const late = new Promise(resolve => setTimeout(resolve, seconds * 1000));
                    const subscription = await Promise.race([registration.pushManager.subscribe(options), late]);
                    return subscription ? JSON.stringify(subscription) : null;
                }""",
                {"type": "string", "value": key} if key else {"type": "null"}, {"type": "number", "value": seconds})
            if text:
                return json.loads(text), attempt
        raise TimeoutError("subscribe() stays pending")

    def subscription(self):
        """The one that the profile holds; None without one."""
        text = self.call(
            """async () => JSON.stringify(await (await navigator.serviceWorker.ready).pushManager.getSubscription())""")
        return json.loads(text)

    def unsubscribe(self):
        return self.call("async () => (await (await navigator.serviceWorker.ready).pushManager.getSubscription()).unsubscribe()")
