"""Provider libraries from PyPI as senders to the gateway's doors, and a small autopush client as a second receiving device.

A check states what the real service documents (the push services reference), whatever the door answers. An outcome of a call is a short text:
what the call returned, or its exception in the library's own words. So an answer that the gateway is made to give takes one line more."""

import asyncio
import base64
import contextlib
import datetime
import hashlib
import hmac
import json
import logging
import os
import pathlib
import queue
import shutil
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid
import warnings

DEADLINE = 60
TOPIC = "net.example.tidings"

# What the libraries do wrong themselves. The checks that show it end with "(its own fault)"; what no check shows is here for the reader.
KNOWN_FAULTS = {
    "aioapns": [
        "sends json.dumps(message) whatever the message is, so that an empty payload cannot be sent: left to curl",
        "a TTL of 0 becomes the present time and not the 0 of 'one attempt': left to curl",
        "reads no RST_STREAM, so that it waits without end for a stream that is reset: not tried",
        "takes GOAWAY for the end of the connection (h2 does) and sends again what was answered behind it; its id makes that one push",
    ],
    "kalyke-apns": [
        "takes an identifier without dashes for a UUID and sends it so; the service refuses it",
        "puts a CriticalSound into the payload as an object, which is no JSON",
    ],
    "firebase-admin": [
        "send_each_async of the service class has dry_run=True by default; the public function passes False",
        "a refused service account is google-auth's RefreshError in send, and an UnknownError of the whole batch in send_each",
        "subscribe_to_topic has Google's host in the instance, not in a constant: it is replaced on the instance",
    ],
    "pyfcm": [
        "waits and sends again for as long as an answer has Retry-After, whatever its status",
        "async_notify_multiple_devices returns error bodies as results and raises nothing",
        "every 403 is FCMSenderIdMismatchError and every 404 is FCMNotRegisteredError, whatever the body says",
        "sends again for as long as the service says ACCESS_TOKEN_EXPIRED, without end",
    ],
    "django-push-notifications": [
        "names pictures 'img', which is no element of a toast, and speaks of 500 bytes where WNS takes 5000",
        "fetches an access token for each message, so that it never meets a 401: left to curl",
        "looks at no header of an answer, so that X-WNS-Status channelthrottled is a success",
    ],
    "pywebpush": [
        "always sends a TTL: a missing one is left to curl",
        "its command line fails without --head",
        "the line ends of its curl command have a blank behind the backslash, so that a shell ends the command there",
    ],
}

# The reasons of the reference's section 1.8, but those of strict mode, which kalyke-apns does not know.
APPLE_REASONS = {
    400: "BadCollapseId BadDeviceToken BadExpirationDate BadMessageId BadPriority BadTopic DeviceTokenNotForTopic DuplicateHeaders IdleTimeout "
         "InvalidPushType MissingDeviceToken MissingTopic PayloadEmpty TopicDisallowed",
    403: "BadCertificate BadCertificateEnvironment ExpiredProviderToken Forbidden InvalidProviderToken MissingProviderToken",
    404: "BadPath", 405: "MethodNotAllowed", 410: "ExpiredToken Unregistered", 413: "PayloadTooLarge",
    429: "TooManyProviderTokenUpdates TooManyRequests", 500: "InternalServerError", 503: "ServiceUnavailable Shutdown",
}
APPLE_REASONS = [(status, reason) for status, reasons in APPLE_REASONS.items() for reason in reasons.split()]


# MARK: Devices


class Device:
    """`tidings-device run`; its lines are read as they come, and waited for until a deadline."""

    def __init__(self, world, platform, *options):
        folder = pathlib.Path(world.folder) / f"device-{platform}-{uuid.uuid4().hex[:6]}"
        self.process = subprocess.Popen(
            [world.programs / "tidings-device", "run", "--platform", platform, "--state", str(folder), "--ca", world.ca, "--gateway",
            world.origin, *options],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.events = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.handle = self.wait({"handle"}).get("handle")

    def read(self):
        for text in self.process.stdout:
            self.events.put(json.loads(text))

    def wait(self, names):
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                event = self.events.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                return {"event": "nothing came"}
            if event["event"] in names:
                return event

    def shown(self):
        """The text of the next push, or what it was if it has none."""
        event = self.wait({"notification", "silent", "unreadable", "alert", "fetch_failed", "notice"})
        return event.get("text", event["event"])

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=20)


def b64u(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64u(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Subscription:
    """A channel with keys of its own, and what http_ece reads of a frame for it."""

    def __init__(self, answer, channel):
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        self.endpoint, self.channel, self.auth = answer["pushEndpoint"], channel, os.urandom(16)
        self.private = ec.generate_private_key(ec.SECP256R1())
        self.point = self.private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self.keys = {"p256dh": b64u(self.point), "auth": b64u(self.auth)}
        self.info = {"endpoint": self.endpoint, "keys": self.keys}

    def decrypt(self, frame):
        import http_ece

        headers, options = frame["headers"], {}
        if headers["encoding"] == "aesgcm":
            pairs = dict(pair.strip().split("=", 1) for name in ("encryption", "crypto_key") for pair in headers[name].replace(",", ";").split(";"))
            options = {"salt": unb64u(pairs["salt"]), "dh": unb64u(pairs["dh"])}
        return http_ece.decrypt(
            unb64u(frame["data"]), private_key=self.private, auth_secret=self.auth, version=headers["encoding"], **options).decode()


class Autopush:
    """A device that speaks Mozilla's autopush protocol, and no more of it than a device needs."""

    def __init__(self, world, uaid=None, hello=True, broadcasts=None):
        from websockets.sync.client import connect

        self.socket = connect(
            world.origin.replace("https", "wss") + "/", ssl=world.context, subprotocols=["push-notification"], open_timeout=DEADLINE, close_timeout=5)
        self.waiting = []
        self.uaid = None
        if hello:
            message = {"messageType": "hello", "use_webpush": True, "broadcasts": broadcasts or {}}
            self.send(message | ({"uaid": uaid} if uaid is not None else {}))
            self.hello = self.frame("hello")
            self.uaid = self.hello["uaid"]

    def send(self, message):
        self.socket.send(json.dumps(message))

    def frame(self, kind):
        """The next frame of a kind; others stay for later."""
        for index, frame in enumerate(self.waiting):
            if frame.get("messageType") == kind:
                return self.waiting.pop(index)
        while True:
            frame = json.loads(self.socket.recv(timeout=DEADLINE))
            if frame.get("messageType") == kind:
                return frame
            self.waiting.append(frame)

    def register(self, channel, key=None, platform=None):
        self.send({"messageType": "register", "channelID": channel} | ({"key": key} if key else {}) | ({"platform": platform} if platform else {}))
        return self.frame("register")

    def subscribe(self, key=None, platform=None):
        channel = str(uuid.uuid4())
        return Subscription(self.register(channel, key, platform), channel)

    def unregister(self, subscription):
        self.send({"messageType": "unregister", "channelID": subscription.channel, "code": 200})
        return self.frame("unregister")

    def ack(self, frame, **code):
        self.send({"messageType": "ack", "updates": [{"channelID": frame["channelID"], "version": frame["version"], **code}]})

    def notification(self):
        frame = self.frame("notification")
        self.ack(frame, code=100)
        return frame

    def close_code(self):
        """The code with which the gateway ends the connection."""
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                self.socket.recv(timeout=DEADLINE)
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else "no close frame"

    def close(self):
        self.socket.close()


class World:
    """What the senders need: where the doors are, with which credentials, and handles of every platform, live and ended."""

    def __init__(self, check, programs, server, state, full, folder):
        self.check, self.server, self.full, self.folder = check, server, full, folder
        self.programs, self.state = pathlib.Path(programs), pathlib.Path(state)
        self.origin, self.ca = server["gateway"], server["ca"]
        self.port = int(self.origin.rsplit(":", 1)[1])
        # Before the first import of aiohttp, which reads it once.
        os.environ["SSL_CERT_FILE"] = os.environ["REQUESTS_CA_BUNDLE"] = self.ca
        self.context = ssl.create_default_context(cafile=self.ca)
        self.credentials = json.loads((self.state / "keys" / "gateway.json").read_text())
        self.apns = self.credentials["apns"]
        self.certificate = self.state / "keys" / "apns-certificate.pem"
        self.account = self.state / "keys" / "fcm-service-account.json"
        self.project = self.credentials["fcm"]["projectId"]
        self.devices = []
        self.autopush = None
        self.has_faults = self.request("GET", "/-/faults").status_code == 200
        self.started = time.time()

    def device(self, platform, *options):
        device = Device(self, platform, *options)
        self.devices.append(device)
        return device

    def ended(self, platform):
        """A handle that was given back."""
        subscription = self.autopush.subscribe(platform=platform)
        self.autopush.unregister(subscription)
        return subscription.endpoint

    def request(self, method, path, **options):
        import requests

        return requests.request(method, self.origin + path, timeout=DEADLINE, **options)

    @contextlib.contextmanager
    def fault(self, handle, fault="answer", **rule):
        """Meanwhile pushes to the handle get what the rule says; what it yields tells how many did."""
        number = self.request("POST", "/-/faults", json={"fault": fault, "handle": handle} | rule).json()["id"]
        try:
            yield lambda: next(one["applied"] for one in self.request("GET", "/-/faults").json()["faults"] if one["id"] == number)
        finally:
            self.request("DELETE", f"/-/faults/{number}")

    def provider_token(self, issued=None, key=None, **claims):
        import jwt

        return jwt.encode({"iss": self.apns["teamId"], "iat": int(issued or time.time())} | claims, key or self.apns["privateKey"], "ES256",
                          {"kid": self.apns["keyId"]})

    def stop(self):
        if self.autopush:
            self.autopush.close()
        for device in self.devices:
            device.stop()


def outcomes(check, client, describe=lambda error: f"{type(error).__name__}: {error}"[:200]):
    """A runner: what a call came to must be `expected`. An exception is an outcome too, in the words of `describe`."""

    def run(statement, expected, call):
        try:
            found = call()
        except Exception as error:  # noqa: BLE001: every kind of failure is an outcome
            found = describe(error)
        check(client, statement, found == expected, found if found == expected else f"{found!r}, and not {expected!r}")

    return run


def new_key():
    """A P-256 private key in PEM that nobody knows."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def client_certificate(folder):
    """A certificate of Apple's form that no authority signed, with its key, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.USER_ID, TOPIC), x509.NameAttribute(x509.NameOID.COMMON_NAME, f"Apple Push Services: {TOPIC}")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
                   .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1)).sign(key, hashes.SHA256()))
    path = pathlib.Path(folder) / "apple.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificate.public_bytes(Encoding.PEM))
    return str(path)


def apple_payload(count):
    """A payload of so many bytes as aioapns writes it."""
    empty = len(json.dumps({"aps": {"alert": ""}}))
    return {"aps": {"alert": "x" * (count - empty)}}


# MARK: APNs


async def aioapns(world, device):
    """What peers.py does not: every push type, and each refusal that the library can be led into."""
    import aioapns.connection
    from aioapns import APNs, NotificationRequest, PushType

    check, handle, ended = world.check, device.handle, world.ended("apns")
    for protocol in (aioapns.connection.APNsProductionClientProtocol, aioapns.connection.APNsDevelopmentClientProtocol):
        protocol.APNS_SERVER, protocol.APNS_PORT = "localhost", world.port
    # What GOAWAY brings about is looked for below; its trace is noise.
    logging.getLogger("aioapns").setLevel(logging.CRITICAL)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    credentials = {"key": world.apns["privateKey"], "key_id": world.apns["keyId"], "team_id": world.apns["teamId"], "topic": TOPIC}
    failures = []

    async def failed(request, result):
        failures.append(result.description)

    def client(**changes):
        return APNs(**credentials | {"ssl_context": world.context, "err_func": failed} | changes)

    apns = client()

    async def send(statement, expected, through=None, token=handle, message=None, **options):
        try:
            request = NotificationRequest(device_token=token, message=message or {"aps": {"alert": statement}}, **options)
            answer = await asyncio.wait_for((through or apns).send_notification(request), DEADLINE)
            found = "200" if answer.is_successful else f"{answer.status} {answer.description}"
        except Exception as error:  # noqa: BLE001
            answer, found = None, f"{type(error).__name__}: {error}"
        check("aioapns", statement, found == expected, found if found == expected else f"{found!r}, and not {expected!r}")
        return answer

    async def shows(expected):
        found = await asyncio.to_thread(device.shown)
        check("aioapns", "the device shows it", found == expected, found[:40])

    topics = {PushType.VOIP: ".voip", PushType.COMPLICATION: ".complication", PushType.FILEPROVIDER: ".pushkit.fileprovider",
              PushType.LIVEACTIVITY: ".push-type.liveactivity"}
    for kind in PushType:
        priority = 5 if kind == PushType.BACKGROUND else 10
        await send(f"the push type {kind.value} is taken", "200", push_type=kind, priority=priority, apns_topic=TOPIC + topics.get(kind, ""))
        await shows(f"the push type {kind.value} is taken")
    await send("a push without an alert is taken", "200", push_type=PushType.BACKGROUND, priority=5, message={"aps": {"content-available": 1}})
    await shows("silent")
    await send("4096 bytes are taken", "200", message=apple_payload(4096))
    await shows(apple_payload(4096)["aps"]["alert"])
    await send("5120 bytes of VoIP are taken", "200", message=apple_payload(5120), push_type=PushType.VOIP, apns_topic=TOPIC + ".voip")
    await shows(apple_payload(5120)["aps"]["alert"])
    await send("an id in upper case comes back as it was", "200", notification_id=str(uuid.uuid4()).upper())
    await shows("an id in upper case comes back as it was")
    await send("a collapse id of 64 bytes is taken", "200", collapse_key="c" * 64, time_to_live=60)
    await shows("a collapse id of 64 bytes is taken")
    await send("the token in upper case is taken", "200", token=handle.upper())
    await shows("the token in upper case is taken")
    await send("a client of the sandbox is served", "200", through=client(use_sandbox=True))
    await shows("a client of the sandbox is served")

    await send("4097 bytes", "413 PayloadTooLarge", message=apple_payload(4097))
    await send("5121 bytes of VoIP", "413 PayloadTooLarge", message=apple_payload(5121), push_type=PushType.VOIP, apns_topic=TOPIC + ".voip")
    await send("a token that is not hexadecimal", "400 BadDeviceToken", token="xyz")
    await send("a token with an odd count of digits", "400 BadDeviceToken", token="abc")
    await send("a token of 257 bytes", "400 BadDeviceToken", token="ab" * 257)
    await send("no token", "400 MissingDeviceToken", token="")
    await send("a topic with a space", "400 BadTopic", apns_topic="a b")
    await send("priority 7", "400 BadPriority", priority=7)
    await send("priority 10 in the background", "400 BadPriority", priority=10, push_type=PushType.BACKGROUND,
        message={"aps": {"content-available": 1}})
    await send("a collapse id of 65 bytes", "400 BadCollapseId", collapse_key="c" * 65)
    await send("an expiration before 1970", "400 BadExpirationDate", time_to_live=-4_000_000_000)
    await send("an id that is not a UUID", "400 BadMessageId", notification_id="1")
    answer = await send("a token that was given back", "410 Unregistered", token=ended)
    since = (answer.timestamp or 0) / 1000 if answer else 0
    check("aioapns", "its timestamp is in milliseconds, and is when that was", world.started - 60 < since < time.time() + 60, since)
    check("aioapns", "err_func is told of each", failures.count("Unregistered") == 1 and "BadDeviceToken" in failures, len(failures))

    await send("a key that nobody knows", "403 InvalidProviderToken", through=client(key=new_key()))
    await send("another key id", "403 InvalidProviderToken", through=client(key_id="ABCDEFGHJK"))
    await send("another team", "403 InvalidProviderToken", through=client(team_id="ABCDEFGHJK"))
    await send("a certificate that no authority signed", "403 BadCertificate", through=APNs(
        client_cert=client_certificate(world.folder), ssl_context=ssl.create_default_context(cafile=world.ca), err_func=failed))
    await send("the certificate that the gateway issued", "200", through=APNs(
        client_cert=str(world.certificate), ssl_context=ssl.create_default_context(cafile=world.ca), err_func=failed))
    await shows("the certificate that the gateway issued")
    old = aioapns.connection.JWTAuthorizationHeaderProvider
    header = old.get_header
    try:
        old.get_header = lambda self: "bearer " + world.provider_token(time.time() - 3700)
        await send("a token older than an hour", "403 ExpiredProviderToken", through=client())
    finally:
        old.get_header = header
    await send("the first client sends on", "200")
    await shows("the first client sends on")

    if world.has_faults:
        for status, reason in APPLE_REASONS:
            with world.fault(handle, status=status, reason=reason):
                await send(f"an answer of {status} {reason}", f"{status} {reason}")
        for fault in ("close", "dropAnswer", "goaway"):
            with world.fault(handle, fault, count=1) as applied:
                await send(f"it sends through the fault {fault}", "200")
                check("aioapns", "the fault happened", applied() == 1, applied())
            await shows(f"it sends through the fault {fault}")
        with world.fault(handle, "delay", milliseconds=300):
            await send("it waits for a late answer", "200")
        await shows("it waits for a late answer")
        with world.fault(handle, "streamLimit", streams=1, count=1):
            await send("an answer behind SETTINGS with one stream is taken", "200")
            await shows("an answer behind SETTINGS with one stream is taken")
            await asyncio.gather(*[send("it keeps to one stream at a time", "200", message={"aps": {"alert": f"one {index}"}}) for index in range(5)])
        found = {await asyncio.to_thread(device.shown) for _ in range(5)}
        check("aioapns", "the device shows each", found == {f"one {index}" for index in range(5)}, len(found))
    await send("a last one is taken", "200")
    await shows("a last one is taken")


async def kalyke(world, device):
    from kalyke import exceptions
    from kalyke.clients.apns import ApnsClient
    from kalyke.clients.live_activity import LiveActivityClient
    from kalyke.clients.voip import VoIPClient
    from kalyke.clients.voip_certificate import VoIPCertificateClient
    from kalyke.models import ApnsConfig, LiveActivityApnsConfig, LiveActivityPayload, Payload, PayloadAlert, VoIPApnsConfig
    from kalyke.models.apns_priority import ApnsPriority
    from kalyke.models.apns_push_type import ApnsPushType
    from kalyke.models.critical_sound import CriticalSound
    from kalyke.models.interruption_level import InterruptionLevel
    from kalyke.models.live_activity_event import LiveActivityEvent

    name, check, handle, ended = "kalyke-apns", world.check, device.handle, world.ended("apns")
    key_file = next((world.state / "keys").glob("AuthKey_*.p8"))
    for kind in (ApnsClient, VoIPClient, LiveActivityClient, VoIPCertificateClient):
        kind._base_url = property(lambda self: world.origin)

    def client(kind=ApnsClient, **changes):
        return kind(**{"use_sandbox": False, "team_id": world.apns["teamId"], "auth_key_id": world.apns["keyId"],
            "auth_key_filepath": key_file} | changes)

    async def send(statement, expected, through=None, token=handle, payload=None, config=None, **options):
        config = config or ApnsConfig(**{"topic": TOPIC} | options)
        try:
            found = await asyncio.wait_for((through or client()).send_message(token, payload or {"aps": {"alert": statement}}, config), DEADLINE)
            found = "its id" if config.identifier in (None, found) and uuid.UUID(found) else found
            error = None
        except Exception as raised:  # noqa: BLE001
            error, found = raised, type(raised).__name__
            if not isinstance(raised, exceptions.ApnsProviderException):
                found += f": {raised}"
        check(name, statement, found == expected, found if found == expected else f"{found!r}, and not {expected!r}")
        return error

    async def shows(expected):
        found = await asyncio.to_thread(device.shown)
        check(name, "the device shows it", found == expected, found[:40])

    await send("a dictionary is taken", "its id", identifier=str(uuid.uuid4()))
    await shows("a dictionary is taken")
    await send("a payload with every member is taken", "its id", payload=Payload(
        alert=PayloadAlert(title="title", subtitle="subtitle", body="every member"), badge=3, sound="default",
        thread_id="thread", category="category", content_available=True, mutable_content=True, target_content_identifier="window",
        interruption_level=InterruptionLevel.TIME_SENSITIVE, relevance_score=0.5, filter_criteria="focus", custom={"k": [1]}))
    await shows("every member")
    await send("a critical sound fails in the client (its own fault)", "TypeError: Object of type CriticalSound is not JSON serializable",
               payload=Payload(alert="x", sound=CriticalSound(critical=True, name="a", volume=0.5)))
    await send("a critical sound as a dictionary is taken", "its id", payload={
        "aps": {"alert": "critical", "sound": CriticalSound(critical=True, name="a", volume=0.5).dict()}})
    await shows("critical")
    topics = {ApnsPushType.LOCATION: ".location-query", ApnsPushType.VOIP: ".voip", ApnsPushType.COMPLICATION: ".complication",
              ApnsPushType.FILE_PROVIDER: ".pushkit.fileprovider", ApnsPushType.LIVEACTIVITY: ".push-type.liveactivity"}
    for kind in ApnsPushType:
        priority = ApnsPriority.BASED_ON_POWER if kind == ApnsPushType.BACKGROUND else ApnsPriority.IMMEDIATELY
        await send(f"the push type {kind.value} is taken", "its id", push_type=kind, priority=priority, topic=TOPIC + topics.get(kind, ""))
        await shows(f"the push type {kind.value} is taken")
    for priority in ApnsPriority:
        await send(f"priority {priority.value} is taken", "its id", priority=priority, collapse_id="c", expiration=0)
        await shows(f"priority {priority.value} is taken")
    await send("VoIPClient sends", "its id", through=client(VoIPClient), config=VoIPApnsConfig(topic=TOPIC + ".voip"))
    await shows("VoIPClient sends")
    for event in LiveActivityEvent:
        start = {"attributes_type": "Kettle", "attributes": {"size": 1}} if event == LiveActivityEvent.START else {}
        await send(f"LiveActivityClient sends {event.value}", "its id", through=client(LiveActivityClient),
                   payload=LiveActivityPayload(alert=event.value, event=event, content_state={"degrees": 90}, **start),
                   config=LiveActivityApnsConfig(topic=TOPIC + ".push-type.liveactivity"))
        await shows(event.value)

    await send("a token that is not hexadecimal", "BadDeviceToken", token="xyz")
    await send("a token that nobody has", "BadDeviceToken", token="ab" * 32)
    await send("no token", "MissingDeviceToken", token="")
    await send("a topic with a space", "BadTopic", topic="a b")
    await send("priority 10 in the background", "BadPriority", push_type=ApnsPushType.BACKGROUND)
    await send("a collapse id of 65 bytes", "BadCollapseId", collapse_id="c" * 65)
    await send("an expiration before 1970", "BadExpirationDate", expiration=-1)
    await send("an identifier without dashes (its own fault)", "BadMessageId", identifier=uuid.uuid4().hex)
    await send("a long payload", "PayloadTooLarge", payload={"aps": {"alert": "x" * 5000}})
    error = await send("a token that was given back", "Unregistered", token=ended)
    since = getattr(error, "error", {}).get("timestamp", 0) / 1000
    check(name, "its timestamp is in milliseconds, and is when that was", world.started - 60 < since < time.time() + 60, since)
    other_key = pathlib.Path(world.folder) / "other.p8"
    other_key.write_text(new_key())
    await send("a key that nobody knows", "InvalidProviderToken", through=client(auth_key_filepath=other_key))
    await send("another key id", "InvalidProviderToken", through=client(auth_key_id="ABCDEFGHJK"))
    await send("another team", "InvalidProviderToken", through=client(team_id="ABCDEFGHJK"))
    # The token's age is as text, which this client alone writes.
    late = type("Late", (ApnsClient,), {"_make_authorization": lambda self: world.provider_token(iat=str(int(time.time()) - 3700))})
    await send("a token older than an hour", "ExpiredProviderToken", through=client(late))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        certificate = client_certificate(world.folder)
        by_certificate = VoIPCertificateClient(use_sandbox=False, auth_key_filepath=certificate)
        by_issued = VoIPCertificateClient(use_sandbox=False, auth_key_filepath=world.certificate)
    await send("the certificate that the gateway issued", "its id", through=by_issued, config=VoIPApnsConfig(topic=TOPIC + ".voip"))
    await shows("the certificate that the gateway issued")
    await send("a certificate that no authority signed", "BadCertificate", through=by_certificate, config=VoIPApnsConfig(topic=TOPIC + ".voip"))
    if world.has_faults:
        for status, reason in APPLE_REASONS:
            with world.fault(handle, status=status, reason=reason):
                await send(f"an answer of {status} {reason}", reason)
    await send("a last one is taken", "its id")
    await shows("a last one is taken")


# MARK: FCM


def bad_account(world, **changes):
    """A service account's file with something wrong in it."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    account = json.loads(world.account.read_text())
    key = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    path = pathlib.Path(world.folder) / f"account-{uuid.uuid4().hex[:6]}.json"
    path.write_text(json.dumps(account | ({k: v for k, v in changes.items()} or {"private_key": key})))
    return str(path)


def expired_token(world):
    """An access token as the gateway issues them, whose time is over."""
    text = f"fcm:{world.project}|{int(time.time()) - 10}".encode()
    return b64u(text) + "." + b64u(hmac.digest(unb64u(world.credentials["tokenKey"]), text, "sha256"))


def google_credential(world, token, refresh=None):
    """A credential that starts with a token; refreshing fetches a good one, or does what the test wants."""
    from google.oauth2 import service_account

    class Credential(service_account.Credentials):
        def refresh(self, request):
            if not refresh:
                return super().refresh(request)
            self.token = refresh()
            self.expiry = far

    far = datetime.datetime.utcnow() + datetime.timedelta(hours=1)
    credential = Credential.from_service_account_file(str(world.account), scopes=["https://www.googleapis.com/auth/firebase.messaging"])
    credential.token, credential.expiry = token, far
    return credential


def firebase(world, device):
    warnings.simplefilter("ignore", DeprecationWarning)
    import firebase_admin
    from firebase_admin import credentials, exceptions, messaging

    name, check, handle, ended = "firebase-admin", world.check, device.handle, world.ended("fcm")
    messaging._MessagingService.FCM_URL = world.origin + "/v1/projects/{0}/messages:send"
    messaging._MessagingService.IID_URL = world.origin

    class Given(credentials.Base):
        def __init__(self, credential):
            self.credential = credential

        def get_credential(self):
            return self.credential

    def application(credential, **options):
        app = firebase_admin.initialize_app(credential, {"projectId": world.project, "httpTimeout": DEADLINE} | options, uuid.uuid4().hex)
        messaging._get_messaging_service(app)._fcm_topic_url = f"{world.origin}/v1/projects/{app.project_id}/registrations"
        return app

    def describe(error):
        text = type(error).__name__
        if isinstance(error, exceptions.FirebaseError) and error.http_response is not None:
            text += f" {error.http_response.status_code}"
        return text if isinstance(error, exceptions.FirebaseError) else f"{text}: {error}"[:200]

    run = outcomes(check, name, describe)
    app = application(credentials.Certificate(str(world.account)))
    named = lambda value: "a name" if value and value.startswith(f"projects/{world.project}/messages/") else value  # noqa: E731
    told = lambda answer: [named(one.message_id) if one.success else describe(one.exception) for one in answer.responses]  # noqa: E731

    def message(text, token=handle, **options):
        return messaging.Message(**{"token": token, "notification": messaging.Notification(title="title", body=text)} | options)

    def send(**options):
        return named(messaging.send(message(**options), app=app))

    def shows(*expected):
        found = sorted(device.shown() for _ in expected)
        check(name, "the device shows it", found == sorted(expected), [text[:40] for text in found])

    def everything(text):
        seconds = datetime.timedelta(seconds=1)
        return messaging.Message(
            token=handle, data={"k": "v"}, notification=messaging.Notification(title="title", body=text, image="https://example.com/i.png"),
            android=messaging.AndroidConfig(
                collapse_key="c", priority="high", ttl=datetime.timedelta(days=28), restricted_package_name="net.example", data={"message": text},
                direct_boot_ok=True, bandwidth_constrained_ok=True, restricted_satellite_ok=True,
                fcm_options=messaging.AndroidFCMOptions(analytics_label="a"), notification=messaging.AndroidNotification(
                    title="t", body="b", icon="i", color="#112233", sound="s", tag="g", click_action="c", body_loc_key="k", body_loc_args=["1"],
                    title_loc_key="k", title_loc_args=["1"], channel_id="h", image="https://example.com/i.png", ticker="t", sticky=True,
                    event_timestamp=datetime.datetime.now(datetime.timezone.utc), local_only=True, priority="max", vibrate_timings_millis=[100],
                    default_vibrate_timings=False, default_sound=False, default_light_settings=False, visibility="private", notification_count=1,
                    light_settings=messaging.LightSettings(color="#112233", light_on_duration_millis=1, light_off_duration_millis=1), proxy="deny")),
            apns=messaging.APNSConfig(
                headers={"apns-priority": "10"}, live_activity_token="t",
                fcm_options=messaging.APNSFCMOptions(analytics_label="a", image="https://example.com/i"),
                payload=messaging.APNSPayload(aps=messaging.Aps(alert=messaging.ApsAlert(title="t", body="b"), badge=1, sound=messaging.CriticalSound(
                    "s", critical=True, volume=0.5), content_available=True, mutable_content=True, category="c", thread_id="t"))),
            webpush=messaging.WebpushConfig(
                headers={"TTL": str(int(seconds.total_seconds()))}, data={"k": "v"},
                fcm_options=messaging.WebpushFCMOptions(link="https://example.com"),
                notification=messaging.WebpushNotification(
                    title="t", body="b", actions=[messaging.WebpushNotificationAction("a", "t")], silent=True)),
            fcm_options=messaging.FCMOptions(analytics_label="a"))

    # What a device shows.
    run("a message to a token is taken", "a name", lambda: send(text="to a token"))
    shows("to a token")
    run("a message to an installation id is taken", "a name", lambda: send(text="to an id", token=None, fid=handle))
    shows("to an id")
    run("data alone is taken", "a name", lambda: send(text="", notification=None, data={"message": "data"}))
    shows("data")
    run("a message with every field is taken", "a name", lambda: named(messaging.send(everything("every field"), app=app)))
    shows("every field")
    run("4096 bytes of data are taken", "a name", lambda: send(text="", notification=None, data={"message": "x" * 4089}))
    shows("x" * 4089)
    run("a dry run is taken", "a name", lambda: named(messaging.send(message("never"), dry_run=True, app=app)))
    run("send_each takes a list", ["a name", "a name"], lambda: told(messaging.send_each([message("one"), message("two")], app=app)))
    shows("one", "two")
    run("send_each tells each message's own outcome", ["a name", "UnregisteredError 404", "InvalidArgumentError 400"],
        lambda: told(messaging.send_each([message("three"), message("x", ended), message("x", "bad")], app=app)))
    shows("three")
    many = messaging.MulticastMessage(notification=messaging.Notification(body="many"), tokens=[handle, ended], fids=[handle])
    run("send_each_for_multicast takes tokens and ids", ["a name", "UnregisteredError 404", "a name"],
        lambda: told(messaging.send_each_for_multicast(many, app=app)))
    shows("many", "many")

    other = application(credentials.Certificate(str(world.account)), projectId="another")
    late = application(Given(google_credential(world, expired_token(world))))
    never = application(Given(google_credential(world, "none", refresh=lambda: "none")))
    broken = {}

    async def asynchronous():
        """One event loop, as httpx's connections want."""
        try:
            twenty = [message(f"async {index}") for index in range(20)]
            each = await messaging.send_each_async(twenty + [message("x", ended), message("x", "bad")], app=app)
            many = await messaging.send_each_for_multicast_async(messaging.MulticastMessage(
                notification=messaging.Notification(body="async many"), tokens=[handle], fids=[ended]), app=app)
            dry = await messaging.send_each_async([message("never")], dry_run=True, app=app)
            broken["another project"] = told(await messaging.send_each_async([message("x")], app=other))
            broken["an expired access token"] = told(await messaging.send_each_async([message("async again")], app=late))
            broken["an access token that nobody issued"] = told(await messaging.send_each_async([message("x")], app=never))
            if world.has_faults:
                for status, reason in ((401, "THIRD_PARTY_AUTH_ERROR"), (403, "SENDER_ID_MISMATCH"), (429, "QUOTA_EXCEEDED")):
                    with world.fault(handle, status=status, reason=reason):
                        broken[reason] = told(await messaging.send_each_async([message("x")], app=app))
                with world.fault(handle, status=503) as applied:
                    broken["503"] = told(await messaging.send_each_async([message("x")], app=app)) + [applied()]
                with world.fault(handle, status=500, count=1):
                    broken["500"] = told(await messaging.send_each_async([message("async after 500")], app=app))
            joined = await messaging.subscribe_to_topic_async([handle], "async", app=app)
            left = await messaging.unsubscribe_from_topic_async([handle], "async", app=app)
            return told(each), told(many), told(dry), [joined.success_count, left.success_count]
        finally:
            for one in (app, other, late, never):
                await messaging._get_messaging_service(one)._async_client.aclose()

    try:
        each, several, dry, topics = asyncio.run(asyncio.wait_for(asynchronous(), DEADLINE))
    except Exception as error:  # noqa: BLE001
        each = several = dry = topics = describe(error)
    run("send_each_async takes twenty at once and refuses two", ["a name"] * 20 + ["UnregisteredError 404", "InvalidArgumentError 400"], lambda: each)
    run("send_each_for_multicast_async", ["a name", "UnregisteredError 404"], lambda: several)
    after = ["async after 500"] if world.has_faults else []
    shows(*[f"async {index}" for index in range(20)], "async many", "async again", *after)
    run("a dry run of send_each_async is taken", ["a name"], lambda: dry)
    expected = {"another project": ["PermissionDeniedError 403"], "an expired access token": ["a name"],
                "an access token that nobody issued": ["UnauthenticatedError 401"]}
    if world.has_faults:
        expected |= {"THIRD_PARTY_AUTH_ERROR": ["ThirdPartyAuthError 401"], "SENDER_ID_MISMATCH": ["SenderIdMismatchError 403"],
                     "QUOTA_EXCEEDED": ["QuotaExceededError 429"], "503": ["UnavailableError 503", 5], "500": ["a name"]}
    for statement, outcome in expected.items():
        run(f"send_each_async: {statement}", outcome, lambda statement=statement: broken.get(statement))

    # Refusals.
    run("a token that is none", "InvalidArgumentError 400", lambda: send(text="x", token="bad"))
    run("a token that was given back", "UnregisteredError 404", lambda: send(text="x", token=ended))
    run("a dry run to a token that was given back", "UnregisteredError 404",
        lambda: named(messaging.send(message("x", ended), dry_run=True, app=app)))
    run("a dry run to a token that is none", "InvalidArgumentError 400", lambda: named(messaging.send(message("x", "bad"), dry_run=True, app=app)))
    run("4097 bytes of data", "InvalidArgumentError 400", lambda: send(text="", notification=None, data={"message": "x" * 4090}))
    for key in ("from", "message_type", "gcm", "google.x", "gcm.notification.x"):
        run(f"the reserved key {key}", "InvalidArgumentError 400", lambda key=key: send(text="x", data={key: "v"}))
    run("more than 28 days to live", "InvalidArgumentError 400",
        lambda: send(text="x", android=messaging.AndroidConfig(ttl=datetime.timedelta(days=29))))
    run("another project", "PermissionDeniedError 403", lambda: messaging.send(message("x"), app=other))
    refused = application(credentials.Certificate(bad_account(world)))
    run("a key that nobody knows is invalid_grant", True, lambda: raises_grant(lambda: messaging.send(message("x"), app=refused)))
    run("send_each makes an UnknownError of it (its own fault)", "UnknownError", lambda: messaging.send_each([message("x")], app=refused))
    stranger = application(credentials.Certificate(bad_account(world, client_email="nobody@example.com")))
    run("an account that nobody knows is invalid_grant", True, lambda: raises_grant(lambda: messaging.send(message("x"), app=stranger)))
    late = application(Given(google_credential(world, expired_token(world))))
    run("an expired access token is fetched anew", "a name", lambda: named(messaging.send(message("again"), app=late)))
    shows("again")
    fetched = []
    never = application(Given(google_credential(world, "none", refresh=lambda: fetched.append(1) or "none")))
    run("an access token that nobody issued", "UnauthenticatedError 401", lambda: messaging.send(message("x"), app=never))
    check(name, "it fetched two more meanwhile", len(fetched) == 2, len(fetched))

    if world.has_faults:
        for status, reason, expected in (
            (400, "INVALID_ARGUMENT", "InvalidArgumentError 400"), (403, "SENDER_ID_MISMATCH", "SenderIdMismatchError 403"),
            (404, "UNREGISTERED", "UnregisteredError 404"), (429, "QUOTA_EXCEEDED", "QuotaExceededError 429"),
            (401, "THIRD_PARTY_AUTH_ERROR", "ThirdPartyAuthError 401"),
        ):
            with world.fault(handle, status=status, reason=reason) as applied:
                run(f"an answer of {status} {reason}", expected, lambda: send(text="x"))
                tries = 3 if status == 401 else 1
                check(name, f"it was asked for {tries} times", applied() == tries, applied())
        for status, expected in ((500, "InternalError 500"), (503, "UnavailableError 503")):
            with world.fault(handle, status=status) as applied:
                run(f"an answer of {status}", expected, lambda: send(text="x"))
                check(name, "it was asked for 5 times", applied() == 5, applied())
            with world.fault(handle, status=status, count=1):
                run(f"one answer of {status}", "a name", lambda status=status: send(text=f"after {status}"))
            shows(f"after {status}")

    # Topics: section 2.2 for sends, and both forms of managing them.
    answered = lambda answer: [answer.success_count, *[error.reason for error in answer.errors]]  # noqa: E731
    run("subscribe_to_topic", [1], lambda: answered(messaging.subscribe_to_topic([handle], "news", app=app)))
    run("subscribe_to_topic tells a token that was given back", [1, "UNREGISTERED"],
        lambda: answered(messaging.subscribe_to_topic([handle, ended], "news", app=app)))
    run("a message to a topic is taken", "a name", lambda: send(text="to a topic", token=None, topic="news"))
    run("a message to a condition is taken", "a name", lambda: send(text="to a condition", token=None,
        condition="'news' in topics && !('x' in topics)"))
    run("a condition that is none", "InvalidArgumentError 400", lambda: send(text="x", token=None, condition="news"))
    run("unsubscribe_from_topic", [1], lambda: answered(messaging.unsubscribe_from_topic([handle], "news", app=app)))
    run("subscribe_to_topic_legacy", [1], lambda: answered(messaging.subscribe_to_topic_legacy([handle], "news", app=app)))
    run("unsubscribe_from_topic_legacy", [1], lambda: answered(messaging.unsubscribe_from_topic_legacy([handle], "news", app=app)))
    run("subscribe_to_topic_async and unsubscribe_from_topic_async", [1, 1], lambda: topics)
    # Nothing above was shown beyond what was looked for.
    run("a last message is taken", "a name", lambda: send(text="last"))
    seen = []
    while "last" not in seen and "nothing came" not in seen:
        seen.append(device.shown())
    of_topics = [text for text in seen if text.startswith("to a ")]
    check(name, "the device shows what went to its topic and to the condition", sorted(of_topics) == ["to a condition", "to a topic"], of_topics)
    rest = [text[:40] for text in seen if text not in of_topics]
    check(name, "no dry run and no refused message is shown", rest == ["last"], rest)
    for one in (app, other, refused, stranger, late, never):
        firebase_admin.delete_app(one)


def raises_grant(call):
    from google.auth.exceptions import RefreshError

    try:
        return call()
    except RefreshError as error:
        return error.args[1].get("error") == "invalid_grant"


def pyfcm(world, device):
    import pyfcm.baseapi
    from pyfcm import FCMNotification

    name, check, handle, ended = "pyfcm", world.check, device.handle, world.ended("fcm")
    pyfcm.baseapi.BaseAPI.FCM_END_POINT_BASE = world.origin + "/v1/projects"
    run = outcomes(check, name, lambda error: "it sends again and again" if "again and again" in str(error) else type(error).__name__)
    service = FCMNotification(service_account_file=str(world.account), project_id=world.project)
    named = lambda value: "a name" if value.get("name", "").startswith(f"projects/{world.project}/messages/") else value  # noqa: E731

    def send(through=service, token=handle, **options):
        return named(through.notify(fcm_token=token, timeout=DEADLINE, **options))

    def shows(*expected):
        found = sorted(device.shown() for _ in expected)
        check(name, "the device shows it", found == sorted(expected), [text[:40] for text in found])

    run("a notification is taken", "a name", lambda: send(notification_title="title", notification_body="body",
        notification_image="https://example.com/i"))
    shows("body")
    run("data alone is taken", "a name", lambda: send(data_payload={"message": "data"}))
    shows("data")
    run("every configuration is taken", "a name", lambda: send(
        notification_body="all", android_config={"ttl": "60s", "priority": "HIGH", "collapse_key": "c"},
            apns_config={"headers": {"apns-priority": "5"}},
        webpush_config={"headers": {"Urgency": "high"}}, fcm_options={"analytics_label": "a"}))
    shows("all")
    run("a dry run is taken", "a name", lambda: send(notification_body="never", dry_run=True))
    run("a credential in place of a file is taken", "a name", lambda: send(
        FCMNotification(project_id=world.project, credentials=google_credential(world, None)), notification_body="credential"))
    shows("credential")

    def several(*tokens):
        answers = service.async_notify_multiple_devices(
            [{"fcm_token": token, "notification_body": f"several {index}"} for index, token in enumerate(tokens)], timeout=DEADLINE)
        return [named(answer) if "name" in answer else answer["error"]["status"] for answer in answers]

    run("async_notify_multiple_devices sends each", ["a name", "a name"], lambda: several(handle, handle))
    shows("several 0", "several 1")
    run("it returns errors as results (its own fault)", ["NOT_FOUND", "INVALID_ARGUMENT"], lambda: several(ended, "bad"))

    run("a token that is none", "InvalidDataError", lambda: send(token="bad", notification_body="x"))
    run("a token that was given back", "FCMNotRegisteredError", lambda: send(token=ended, notification_body="x"))
    run("a long payload", "InvalidDataError", lambda: send(data_payload={"message": "x" * 5000}))
    run("a reserved key", "InvalidDataError", lambda: send(data_payload={"from": "x"}))
    run("a value that is no text", "InvalidDataError", lambda: send(data_payload={"n": 1}))
    run("an unknown field", "InvalidDataError", lambda: send(notification_body="x", android_config={"colour": "red"}))
    run("a bad time to live", "InvalidDataError", lambda: send(notification_body="x", android_config={"ttl": "60"}))
    run("a bad priority", "InvalidDataError", lambda: send(notification_body="x", android_config={"priority": "urgent"}))
    run("no target", "InvalidDataError", lambda: send(token=None, notification_body="x"))
    run("two targets", "InvalidDataError", lambda: send(topic_name="news", notification_body="x"))
    run("another project (the library calls every 403 so)", "FCMSenderIdMismatchError", lambda: send(
        FCMNotification(service_account_file=bad_account(world, project_id="another"), project_id="another"), notification_body="x"))
    run("a key that nobody knows", "InvalidDataError", lambda: send(
        FCMNotification(service_account_file=bad_account(world), project_id=world.project), notification_body="x"))
    first = [expired_token(world)]
    good = google_credential(world, None)

    def renewed():
        import google.auth.transport.requests

        if first:
            return first.pop()
        good.refresh(google.auth.transport.requests.Request())
        return good.token

    run("an expired access token is fetched anew", "a name", lambda: send(
        FCMNotification(project_id=world.project, credentials=google_credential(world, None, renewed)), notification_body="again"))
    shows("again")
    fetched = []

    def never():
        fetched.append(1)
        if len(fetched) > 3:
            raise RuntimeError("it sends again and again")
        return "none"

    run("an access token that nobody issued", "AuthenticationError", lambda: send(
        FCMNotification(project_id=world.project, credentials=google_credential(world, None, never)), notification_body="x"))
    if world.has_faults:
        for status, reason, expected in ((400, "INVALID_ARGUMENT", "InvalidDataError"), (403, "SENDER_ID_MISMATCH", "FCMSenderIdMismatchError"),
                                         (404, "UNREGISTERED", "FCMNotRegisteredError"), (429, "QUOTA_EXCEEDED", "FCMServerError"),
                                         (500, "INTERNAL", "FCMServerError")):
            with world.fault(handle, status=status, reason=reason) as applied:
                run(f"an answer of {status} {reason}", expected, lambda: send(notification_body="x"))
                check(name, "it was asked for once", applied() == 1, applied())
        # The library would send without end, were every answer such.
        with world.fault(handle, status=401, reason="THIRD_PARTY_AUTH_ERROR", count=3):
            run("an answer of 401 THIRD_PARTY_AUTH_ERROR", "AuthenticationError", lambda: (
                send(notification_body="third party"), f"sent again, and shown: {device.shown()}")[1])
        for status, more in ((503, {}), (502, {}), (429, {"retryAfter": 1})):
            with world.fault(handle, status=status, count=1, **more):
                run(f"one answer of {status} {more or ''}".strip(), "a name", lambda status=status: send(notification_body=f"after {status}"))
            shows(f"after {status}")
    run("a message to a topic is taken", "a name", lambda: send(token=None, topic_name="nobody", notification_body="x"))
    run("a message to a condition is taken", "a name", lambda: send(token=None, topic_condition="'nobody' in topics", notification_body="x"))
    run("a last message is taken", "a name", lambda: send(notification_body="last"))
    shows("last")


# MARK: WNS


def django_wns(world, device):
    import django
    from django.conf import settings

    name, check, handle, ended = "django-push-notifications", world.check, device.handle, world.ended("wns")
    if not settings.configured:
        settings.configure(
            INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "push_notifications"],
            DEFAULT_AUTO_FIELD="django.db.models.AutoField",
            DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
            PUSH_NOTIFICATIONS_SETTINGS={
                "WNS_ACCESS_URL": world.origin + "/accesstoken.srf", "WNS_PACKAGE_SECURITY_ID": world.credentials["wns"]["packageSid"],
                "WNS_SECRET_KEY": world.credentials["wns"]["secretKey"]})
        django.setup()
    from django.core.management import call_command
    from push_notifications import wns
    from push_notifications.models import WNSDevice
    from push_notifications.settings import PUSH_NOTIFICATIONS_SETTINGS

    call_command("migrate", verbosity=0)
    run = outcomes(check, name, lambda error: f"{type(error).__name__} {str(error)[:8]}" if "HTTP" in str(error) else type(error).__name__)

    def shows(*expected):
        found = [device.shown() for _ in expected]
        check(name, "the device shows it", found == list(expected), [text[:40] for text in found])

    run("a text is taken", "", lambda: wns.wns_send_message(handle, message="toast"))
    shows("toast")
    run("texts and a picture are taken", "", lambda: wns.wns_send_message(
        handle, message={"text": ["title", "second"], "image": ["https://example.com/i"]}, template="ToastImageAndText02"))
    shows("second")
    binding = {"visual": {"children": {"binding": {"attrs": {"template": "ToastText02"}, "children": {"text": [
        {"attrs": {"id": "1"}, "children": "title"}, {"attrs": {"id": "2"}, "children": "tree & <all>"}]}}}}}
    run("a toast from a dictionary is taken", "", lambda: wns.wns_send_message(handle,
        xml_data={"toast": {"attrs": {"launch": "a"}, "children": binding}}))
    shows("tree & <all>")
    run("a tile is taken", "", lambda: wns.wns_send_message(handle, xml_data={"tile": {"children": binding}}))
    shows("tree & <all>")
    run("a badge is taken", "", lambda: wns.wns_send_message(handle, xml_data={"badge": {"attrs": {"value": "7"}}}))
    shows("silent")
    run("a raw notification is taken", "", lambda: wns.wns_send_message(handle, raw_data="raw"))
    shows("raw")
    run("5000 bytes are taken", "", lambda: wns.wns_send_message(handle, raw_data="r" * 5000))
    shows("r" * 5000)
    run("a list of channels is taken", ["", ""], lambda: wns.wns_send_bulk_message([handle, handle], message="bulk"))
    shows("bulk", "bulk")
    WNSDevice.objects.create(registration_id=handle)
    run("a stored device is sent to", "", lambda: WNSDevice.objects.get().send_message("stored"))
    shows("stored")
    run("all stored devices are sent to", [""], lambda: WNSDevice.objects.all().send_message("all"))
    shows("all")

    run("a channel that nobody has", "WNSNotificationResponseError HTTP 404",
        lambda: wns.wns_send_message(world.origin + "/wns/?token=bm9ib2R5", message="x"))
    run("a channel that was given back", "WNSNotificationResponseError HTTP 410", lambda: wns.wns_send_message(ended, message="x"))
    run("5001 bytes", "WNSNotificationResponseError HTTP 413", lambda: wns.wns_send_message(handle, raw_data="r" * 5001))
    run("an unknown type", "WNSNotificationResponseError HTTP 400", lambda: wns.wns_send_message(handle, xml_data={"poster": {"children": binding}}))
    for setting, value in (("WNS_SECRET_KEY", "wrong"), ("WNS_PACKAGE_SECURITY_ID", "ms-app://s-1-15-2-0")):
        before = PUSH_NOTIFICATIONS_SETTINGS[setting]
        PUSH_NOTIFICATIONS_SETTINGS[setting] = value
        run(f"a wrong {setting}", "WNSAuthenticationError", lambda: wns.wns_send_message(handle, message="x"))
        PUSH_NOTIFICATIONS_SETTINGS[setting] = before
    if world.has_faults:
        for status in (400, 401, 403, 404, 405, 406, 410, 413, 500, 503):
            with world.fault(handle, status=status):
                run(f"an answer of {status}", f"WNSNotificationResponseError HTTP {status}", lambda: wns.wns_send_message(handle, message="x"))
    run("a last one is taken", "", lambda: wns.wns_send_message(handle, message="last"))
    shows("last")


# MARK: Web Push


def web_push(world, device):
    """pywebpush with py-vapid, to a device of ours and to the autopush client, which http_ece reads for."""
    import requests
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from py_vapid import Vapid01, Vapid02
    from pywebpush import WebPusher, WebPushException, webpush, webpush_async

    name, check, autopush = "pywebpush", world.check, world.autopush

    def describe(error):
        if isinstance(error, WebPushException) and error.response is not None:
            # webpush_async has another kind of answer, whose body was read already.
            if not hasattr(error.response, "status_code"):
                return str(error.response.status)
            return f"{error.response.status_code} {error.response.json()['errno']}"
        return f"{type(error).__name__}: {error}"[:200]

    run = outcomes(check, name, describe)
    vapid = Vapid02()
    vapid.generate_keys()
    stranger = Vapid02()
    stranger.generate_keys()
    public = lambda key: b64u(key.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))  # noqa: E731
    claims = {"sub": "mailto:peer@example.org"}
    subscription = json.loads(device.handle)
    subscription = {"endpoint": subscription["endpoint"], "keys": {"p256dh": subscription["p256dh"], "auth": subscription["auth"]}}
    restricted_device = world.device("browser", "--vapid-key", public(vapid))
    restricted = json.loads(restricted_device.handle)
    restricted = {"endpoint": restricted["endpoint"], "keys": {"p256dh": restricted["p256dh"], "auth": restricted["auth"]}}

    def send(text, to=subscription, key=vapid, **options):
        """The status."""
        keys = {"vapid_private_key": key, "vapid_claims": dict(claims)} if key else {}
        return webpush(to, text, **{"ttl": 60, "timeout": DEADLINE} | keys | options).status_code

    def shows(expected, on=device):
        found = on.shown()
        check(name, "the device shows it", found == expected, found[:40])

    def arrives(expected):
        """At the autopush client, which http_ece reads for."""
        found = live.decrypt(autopush.notification())
        check("autopush client", f"http_ece reads it ({found[:30]})", found == expected, len(found))

    for encoding in ("aes128gcm", "aesgcm"):
        run(f"{encoding} is taken", 201, lambda encoding=encoding: send(f"in {encoding} äöü", content_encoding=encoding))
        shows(f"in {encoding} äöü")
        run(f"{encoding} without VAPID is taken", 201, lambda encoding=encoding: send("plain", key=None, content_encoding=encoding))
        shows("plain")
        run(f"{encoding} with the drafts' Authorization is taken", 201, lambda encoding=encoding: send(
            "draft", key=old_form(Vapid01, vapid), content_encoding=encoding))
        shows("draft")
        run(f"webpush_async sends {encoding}", 201, lambda encoding=encoding: asyncio.run(asyncio.wait_for(webpush_async(
            subscription, "async", vapid, dict(claims), content_encoding=encoding, ttl=60), DEADLINE)).status)
        shows("async")
        run(f"a restricted subscription takes {encoding} of its key", 201,
            lambda encoding=encoding: send("restricted", restricted, content_encoding=encoding))
        shows("restricted", restricted_device)
    run("a session of the caller's is used", 201, lambda: send("session", requests_session=requests.Session()))
    shows("session")
    run("WebPusher.send", 201, lambda: WebPusher(subscription).send("pusher", ttl=60, timeout=DEADLINE).status_code)
    shows("pusher")
    run("no data is a signal", 201, lambda: send(None))
    shows("silent")
    run("every header is taken", 201, lambda: send("headers", headers={"Urgency": "very-low", "Topic": "A-z_0" + "9" * 27}))
    shows("headers")
    run("3993 bytes, a body of 4096, are taken", 201, lambda: send("y" * 3993))
    shows("y" * 3993)
    if shutil.which("curl"):
        def by_curl():
            with contextlib.chdir(world.folder):
                command = webpush(subscription, b"curl", vapid, dict(claims), ttl=60, curl=True)
                mended = command.replace("\\ \n", "\\\n")
                check(name, "its curl command ends after the first header (its own fault)", mended != command)
                quiet = f"curl -sS --max-time {DEADLINE} --cacert {world.ca} -o {os.devnull} -w %{{http_code}} -X"
                return subprocess.run(mended.replace("curl -vX", quiet), shell=True, capture_output=True, text=True).stdout
        run("its curl command, mended, sends", "201", by_curl)
        shows("curl")

    key_file = pathlib.Path(world.folder) / "vapid.pem"
    files = {"info": json.dumps(subscription), "head": '{"ttl":"60"}', "claims": json.dumps(claims)}
    vapid.save_key(str(key_file))
    options = ["--key", str(key_file)]
    for option, text in (files | {"data": "command"}).items():
        (pathlib.Path(world.folder) / f"push-{option}").write_text(text)
        options += [f"--{option}", str(pathlib.Path(world.folder) / f"push-{option}")]
    for encoding in ("aes128gcm", "aesgcm"):
        run(f"its command sends {encoding}", "<Response [201]>", lambda encoding=encoding: subprocess.run(
            [sys.executable, "-m", "pywebpush", *options, "--encoding", encoding], capture_output=True, text=True, timeout=DEADLINE).stdout.strip())
        shows("command")

    # The answer, and a device that is away.
    answer = webpush(subscription, "answer", vapid, dict(claims), ttl=10_000_000, timeout=DEADLINE)
    shows("answer")
    check(name, "TTL comes back, at most 30 days", answer.headers.get("TTL") == "2592000", answer.headers.get("TTL"))
    check(name, "Location is the message's own", answer.headers.get("Location", "").startswith(world.origin + "/m/"), answer.headers.get("Location"))
    away = Autopush(world)
    live = away.subscribe()
    uaid = away.uaid
    away.close()
    run("TTL 0 to a device that is away is taken", 201, lambda: send("never", live.info, ttl=0))
    run("a message with a topic is taken", 201, lambda: send("topic 1", live.info, headers={"Topic": "t"}))
    run("the next with this topic is taken", 201, lambda: send("topic 2", live.info, headers={"Topic": "t"}))
    taken = webpush(live.info, "taken back", vapid, dict(claims), ttl=60, timeout=DEADLINE)
    run("DELETE on its Location takes a message back", 204, lambda: requests.delete(taken.headers["Location"], timeout=DEADLINE).status_code)
    run("once", 404, lambda: requests.delete(taken.headers["Location"], timeout=DEADLINE).status_code)
    run("a last message is taken", 201, lambda: send("last", live.info))
    autopush = Autopush(world, uaid)
    check("autopush client", "a device that comes back has its uaid", autopush.uaid == uaid)
    arrives("topic 2")
    arrives("last")
    for encoding in ("aes128gcm", "aesgcm"):
        run(f"{encoding} to the autopush client is taken", 201, lambda encoding=encoding: send("peer to peer", live.info, content_encoding=encoding))
        arrives("peer to peer")

    # Refusals: the status and Mozilla's errno.
    run("an address that is none", "404 102", lambda: send("x", subscription | {"endpoint": world.origin + "/wpush/v1/AAAA"}))
    run("a subscription that nobody has", "404 102", lambda: send("x", subscription | {"endpoint": world.origin + "/wpush/v1/" + b64u(bytes(24))}))
    ended = autopush.subscribe()
    autopush.unregister(ended)
    run("a subscription that was given back", "410 106", lambda: send("x", ended.info))
    run("webpush_async to it", "410", lambda: str(asyncio.run(asyncio.wait_for(webpush_async(ended.info, "x", ttl=1), DEADLINE)).status))
    run("a TTL that is no number", "400 111", lambda: send("x", ttl=0, headers={"ttl": "soon"}))
    run("a negative TTL", "400 112", lambda: send("x", ttl=-1))
    run("a topic of 33 characters", "400 113", lambda: send("x", headers={"Topic": "t" * 33}))
    run("a topic of other characters", "400 113", lambda: send("x", headers={"Topic": "a.b"}))
    def refused_urgency():
        try:
            return send("x", headers={"Urgency": "soon"})
        except WebPushException as error:
            return error.response.status_code

    run("an unknown urgency", 400, refused_urgency)
    run("3994 bytes, a body of 4097", "413 104", lambda: send("y" * 3994))
    run("a salt beside aes128gcm", "400 110", lambda: send("x", headers={"Encryption": "salt=AAAA"}))
    run("a key beside aes128gcm", "400 110", lambda: send("x", headers={"Crypto-Key": "dh=AAAA"}))
    run("a restricted subscription without VAPID", "401 109", lambda: send("x", restricted, key=None))
    run("a restricted subscription with another key", "403 109", lambda: send("x", restricted, key=stranger))
    run("with another key in the drafts' form", "403 109", lambda: send("x", restricted, key=old_form(Vapid01, stranger)))

    def signed(**changes):
        headers = vapid.sign({"sub": claims["sub"], "aud": world.origin, "exp": int(time.time()) + 60} | changes)
        return send("x", restricted, key=None, headers=headers)

    run("a token for another service", "401 109", lambda: signed(aud="https://push.example.org"))
    run("an expired token", "401 109", lambda: signed(exp=int(time.time()) - 120))
    run("a token for two days", "401 109", lambda: signed(exp=int(time.time()) + 2 * 86400))

    def forged():
        headers = vapid.sign({"sub": claims["sub"], "aud": world.origin, "exp": int(time.time()) + 60})
        head, key = headers["Authorization"].split(",k=")
        return send("x", restricted, key=None, headers={"Authorization": head[:-6] + "AAAAAA,k=" + key})

    run("a token whose signature is wrong", "401 109", forged)
    run("a token beside another key", "401 109", lambda: send("x", restricted, key=None, headers={
        "Authorization": vapid.sign({"sub": claims["sub"], "aud": world.origin, "exp": int(time.time()) + 60})["Authorization"].split(",k=")[0]
        + ",k=" + public(stranger)}))
    if world.has_faults:
        for status, number in ((400, 110), (401, 109), (403, 109), (404, 102), (410, 106), (413, 104), (500, 999), (503, 201)):
            with world.fault(subscription["endpoint"], status=status):
                run(f"an answer of {status}", f"{status} {number}", lambda: send("x"))

        def limited():
            try:
                return send("x")
            except WebPushException as error:
                return error.response.status_code, error.response.headers.get("Retry-After")

        with world.fault(subscription["endpoint"], status=429, retryAfter=7):
            run("an answer of 429 tells when to come again", (429, "7"), limited)
    run("the restricted device still takes its own", 201, lambda: send("own", restricted))
    shows("own", restricted_device)
    autopush.close()
    run("a last one is taken", 201, lambda: send("last"))
    shows("last")


def old_form(kind, vapid):
    """The same key, signing as the drafts before RFC 8292 did."""
    return kind.from_pem(vapid.private_pem())


def hub_to_autopush(world):
    """The hub encrypts, http_ece decrypts: a registration and an installation of the autopush client, restricted to the hub's key and not."""
    import requests

    name, check = "autopush client", world.check
    fields = dict(part.split("=", 1) for part in world.full.split(";"))
    base = world.server["hub"] + "/tidings"

    def request(method, path, body=None, **headers):
        resource = urllib.parse.quote(base.lower(), safe="").lower()
        expires = str(int(time.time()) + 300)
        signature = base64.b64encode(hmac.digest(fields["SharedAccessKey"].encode(), f"{resource}\n{expires}".encode(), hashlib.sha256)).decode()
        token = f"SharedAccessSignature sr={resource}&sig={urllib.parse.quote(signature, safe='')}&se={expires}&skn={fields['SharedAccessKeyName']}"
        return requests.request(method, f"{base}{path}?api-version=2020-06", data=body, timeout=DEADLINE,
                                headers={"Authorization": token} | {key.replace("_", "-"): value for key, value in headers.items()})

    def send(form, text, tags, **headers):
        body = {"browser": text, "template": json.dumps({"message": text})}[form]
        return request("POST", "/messages", body.encode(), ServiceBusNotification_Format=form, ServiceBusNotification_Tags=tags,
                       Content_Type="application/json;charset=utf-8", **headers)

    run = outcomes(check, name)
    autopush = Autopush(world)
    key = world.credentials["webPush"]["publicKey"]
    open_one, restricted = autopush.subscribe(), autopush.subscribe(key)

    def entry(subscription, tag, template=None):
        kind = "BrowserTemplateRegistrationDescription" if template else "BrowserRegistrationDescription"
        body = f"<BodyTemplate><![CDATA[{template}]]></BodyTemplate>" if template else ""
        return (f'<?xml version="1.0"?><entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><{kind} '
                f'xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"><Tags>{tag}</Tags>'
                f'<Endpoint>{subscription.endpoint}</Endpoint>'
                f'<P256DH>{subscription.keys["p256dh"]}</P256DH><Auth>{subscription.keys["auth"]}</Auth>{body}</{kind}></content></entry>')

    made = {}

    def register(subscription, tag, template=None):
        answer = request("POST", "/registrations", entry(subscription, tag, template), Content_Type="application/atom+xml;type=entry;charset=utf-8")
        made[tag] = answer.text.split("<RegistrationId>")[-1].split("<")[0]
        return answer.status_code

    def arrives(statement, subscription, expected):
        frame = autopush.notification()
        found = subscription.decrypt(frame) if frame.get("data") else "no data"
        check(name, statement, found == expected and frame["headers"]["encoding"] == "aes128gcm" and frame["channelID"] == subscription.channel,
            found[:40])

    run("a registration of its subscription is made", 200, lambda: register(open_one, "python-open"))
    run("one of a subscription restricted to the hub's key is made", 200, lambda: register(restricted, "python-restricted"))
    run("one with a template is made", 200, lambda: register(restricted, "python-template", '{"title":"T","body":"$(message)"}'))
    message = json.dumps({"title": "native", "body": "äöü"}, ensure_ascii=False)
    run("the hub takes a native notification", 201, lambda: send("browser", message, "python-open").status_code)
    arrives("http_ece reads what the hub encrypted", open_one, message)
    run("the hub takes one for the restricted subscription", 201, lambda: send("browser", message, "python-restricted").status_code)
    arrives("http_ece reads it", restricted, message)
    run("the hub takes a template notification", 201, lambda: send("template", "filled", "python-template").status_code)
    arrives("http_ece reads it", restricted, '{"title":"T","body":"filled"}')
    longest = json.dumps({"title": "T", "body": ""})
    longest = json.dumps({"title": "T", "body": "z" * (3993 - len(longest))})
    run("the hub takes 3993 bytes", 201, lambda: send("browser", longest, "python-open").status_code)
    arrives("http_ece reads all of them", open_one, longest)
    installation = {"installationId": "python-peer", "platform": "browser", "tags": ["python-installation"],
                    "pushChannel": {"endpoint": open_one.endpoint, "p256dh": open_one.keys["p256dh"], "auth": open_one.keys["auth"]}}
    run("an installation of its subscription is made", 200, lambda: request(
        "PUT", "/installations/python-peer", json.dumps(installation), Content_Type="application/json").status_code)
    run("the hub takes a notification to it", 201, lambda: send("browser", message, "python-installation").status_code)
    arrives("http_ece reads it", open_one, message)

    # The subscription ends: the gateway says 410, and the hub forgets it.
    autopush.unregister(open_one)
    run("the hub takes a notification to a subscription that was given back", 201, lambda: send("browser", message, "python-open").status_code)

    def forgotten():
        # The hub tells nobody when it forgets: it is asked.
        deadline = time.monotonic() + DEADLINE
        while (status := request("GET", f"/registrations/{made['python-open']}").status_code) != 404 and time.monotonic() < deadline:
            time.sleep(0.2)
        return status

    run("its registration is gone", 404, forgotten)
    run("the restricted one stays", 200, lambda: request("GET", f"/registrations/{made['python-restricted']}").status_code)
    for tag in ("python-restricted", "python-template"):
        request("DELETE", f"/registrations/{made[tag]}", If_Match="*")
    request("DELETE", "/installations/python-peer")
    autopush.close()


def autopush_rules(world):
    """The device's side of section 6 that no sender sees."""
    name, check = "autopush client", world.check
    run = outcomes(check, name)
    device = Autopush(world)
    check(name, "hello answers with what Firefox wants", device.hello["status"] == 200 and device.hello["use_webpush"] is True
          and isinstance(device.hello["broadcasts"], dict) and len(device.uaid) == 32 and set(device.uaid) <= set("0123456789abcdef"), device.hello)
    check(name, "the subprotocol is chosen", device.socket.subprotocol == "push-notification", device.socket.subprotocol)
    channel = str(uuid.uuid4())
    first = device.register(channel)
    run("registering again is the same endpoint", first, lambda: device.register(channel))
    check(name, "an endpoint has fewer than 1000 characters", len(first["pushEndpoint"]) < 1000, len(first["pushEndpoint"]))
    run("a key that is none is 400", 400, lambda: device.register(str(uuid.uuid4()), "AAAA")["status"])
    padded = base64.urlsafe_b64encode(unb64u(world.credentials["webPush"]["publicKey"])).decode()
    run("a key with padding, as Firefox writes it, is taken", 200, lambda: device.register(str(uuid.uuid4()), padded)["status"])
    for platform, start in (("apns", ""), ("fcm", ""), ("wns", world.origin + "/")):
        handle = device.subscribe(platform=platform).endpoint
        check(name, f"a handle for {platform} is given", handle.startswith(start) and len(handle) > 40, handle[:60])
    run("unregister is confirmed", 200, lambda: device.unregister(Subscription(first, channel))["status"])
    run("so is that of a channel that nobody has", 200, lambda: device.unregister(Subscription(first, str(uuid.uuid4())))["status"])
    device.send({"messageType": "nack", "version": "none", "code": 302})
    device.send({"messageType": "ack", "updates": [{"channelID": channel, "version": "none"}]})
    device.send({})
    run("a nack and an ack of an unknown version pass; {} is answered", {}, lambda: json.loads(device.socket.recv(timeout=DEADLINE)))
    device.send({})
    run("a second ping at once closes the connection", 1011, device.close_code)

    # Broadcasts.
    def set_broadcast(version):
        return world.request("PUT", "/-/broadcasts/remote-settings/monitor_changes", json={"version": version}).status_code

    followed = "remote-settings/monitor_changes"
    run("the operator sets a broadcast", 204, lambda: set_broadcast('"1"'))
    device = Autopush(world, broadcasts={followed: '"0"', "a/b": '"1"'})
    check(name, "hello tells what is newer and what is unknown",
          device.hello["broadcasts"] == {followed: '"1"', "errors": {"a/b": "Broadcast not found"}}, device.hello["broadcasts"])
    run("and again when its version changes", 204, lambda: set_broadcast('"2"'))
    run("the device is told", {followed: '"2"'}, lambda: device.frame("broadcast")["broadcasts"])
    device.send({"messageType": "broadcast_subscribe", "broadcasts": {followed: '"2"'}})
    device.send({})
    run("who has the version hears nothing", {}, lambda: json.loads(device.socket.recv(timeout=DEADLINE)))
    device.send({"messageType": "broadcast_subscribe", "broadcasts": {followed: '"1"'}})
    run("who has another is told at once", {followed: '"2"'}, lambda: device.frame("broadcast")["broadcasts"])
    device.send({"messageType": "broadcast_subscribe", "broadcasts": [followed]})
    run("broadcasts that are no object close the connection", 1011, device.close_code)

    unknown = "0" * 32
    other = Autopush(world, unknown)
    check(name, "an unknown uaid gets a new one", other.uaid != unknown)
    empty = Autopush(world, "")
    check(name, "an empty uaid gets a new one", len(empty.uaid) == 32)
    other.send({"messageType": "hello", "use_webpush": True})
    run("a second hello closes the connection", 1011, other.close_code)
    empty.socket.send(b"\x00")
    run("a binary frame closes the connection", 1003, empty.close_code)
    for statement, text in (
        ("bad JSON", "{"), ("an unknown message type", '{"messageType":"hope"}'),
        ("a channel id in upper case", '{"messageType":"register","channelID":"ABCDEF00-0000-4000-8000-000000000000"}'),
    ):
        one = Autopush(world)
        one.socket.send(text)
        run(f"{statement} closes the connection", 1011, one.close_code)
    early = Autopush(world, hello=False)
    early.send({"messageType": "ack", "updates": []})
    run("anything before hello closes the connection", 1011, early.close_code)
    silent = Autopush(world, hello=False)
    run("no hello in 5 seconds closes the connection", 1011, silent.close_code)

    # Acknowledgements.
    from pywebpush import webpush

    device = Autopush(world)
    subscription = device.subscribe()
    for text in ("1", "2", "3"):
        webpush(subscription.info, text, ttl=60, timeout=DEADLINE)
    frames = [device.frame("notification") for _ in range(3)]
    check(name, "messages come in their order", [subscription.decrypt(frame) for frame in frames] == ["1", "2", "3"])
    # Without a code, as kunifiedpush does. The answer to register shows that it was read.
    device.ack(frames[1])
    device.register(str(uuid.uuid4()))
    newer = Autopush(world, device.uaid)
    run("the newer connection of a device ends the older", 1011, device.close_code)
    found = [subscription.decrypt(newer.frame("notification")) for _ in range(2)]
    check(name, "what was not acknowledged comes again, in order", found == ["1", "3"], found)
    newer.close()


# MARK: A full mailbox


def full_mailbox(world):
    """A device that is away and has as many messages waiting as it may: what each library makes of it."""
    import firebase_admin
    import pyfcm as fcm
    from firebase_admin import credentials, messaging
    from push_notifications import wns
    from pywebpush import WebPushException, webpush

    check = world.check
    away = Autopush(world)
    apple, google, windows, browser = [away.subscribe(platform=platform) for platform in ("apns", "fcm", "wns", None)]
    uaid = away.uaid
    away.close()

    async def fill():
        """Until the device may have no more, at most 2000 messages."""
        from aioapns import APNs, NotificationRequest

        async def ignore(request, result):
            pass

        sender = APNs(key=world.apns["privateKey"], key_id=world.apns["keyId"], team_id=world.apns["teamId"], topic=TOPIC, ssl_context=world.context,
                      err_func=ignore)
        for start in range(0, 2000, 200):
            answers = await asyncio.gather(*[sender.send_notification(NotificationRequest(
                apple.endpoint, {"aps": {"alert": str(index)}})) for index in range(start, start + 200)])
            refused = {f"{answer.status} {answer.description}" for answer in answers if not answer.is_successful}
            if refused or start == 1800:
                last = await sender.send_notification(NotificationRequest(apple.endpoint, {"aps": {"alert": "x"}}))
                return refused | {f"{last.status} {last.description}"}

    found = asyncio.run(asyncio.wait_for(fill(), DEADLINE))
    check("aioapns", "a full mailbox is TooManyRequests", found == {"429 TooManyRequests"}, found)
    app = firebase_admin.initialize_app(credentials.Certificate(str(world.account)), name="full")
    outcomes(check, "firebase-admin", lambda error: type(error).__name__)(
        "a full mailbox is QuotaExceededError", "QuotaExceededError",
        lambda: messaging.send(messaging.Message(token=google.endpoint, data={"a": "b"}), app=app))
    firebase_admin.delete_app(app)
    outcomes(check, "pyfcm", lambda error: type(error).__name__)("a full mailbox is FCMServerError", "FCMServerError", lambda: fcm.FCMNotification(
        service_account_file=str(world.account), project_id=world.project).notify(fcm_token=google.endpoint, notification_body="x"))
    outcomes(check, "django-push-notifications")(
        "a full mailbox (channelthrottled) is a success (its own fault)", "", lambda: wns.wns_send_message(windows.endpoint, message="x"))
    try:
        webpush(browser.info, "x", ttl=60, timeout=DEADLINE)
        check("pywebpush", "a full mailbox is 503", False, "it was taken")
    except WebPushException as error:
        check("pywebpush", "a full mailbox is 503 202 with Retry-After", error.response.status_code == 503 and error.response.json()["errno"] == 202
              and error.response.headers.get("Retry-After", "").isdigit(), error.response.text[:60])
    back = Autopush(world, uaid)
    check("autopush client", "a device that comes back with a full mailbox gets its first message first",
          json.loads(unb64u(back.notification()["data"])) == {"aps": {"alert": "0"}})
    back.close()


# MARK: curl


def curl(world, apple, google, windows, browser):
    """Requests that no library writes, over HTTP/2: each is a command line that can be tried by hand."""
    if not shutil.which("curl"):
        print("  [skipped] curl is not installed")
        return
    check, name = world.check, "curl --http2"
    run = outcomes(check, name)

    def request(path, *options, data=None):
        """Status, headers and body. A body is given as bytes on standard input."""
        command = ["curl", "-sS", "--http2", "--max-time", str(DEADLINE), "--cacert", world.ca, "-D", "-", *options]
        if data is not None:
            command += ["--data-binary", "@-"]
        result = subprocess.run([*command, world.origin + path], input=data, capture_output=True)
        head, _, rest = result.stdout.replace(b"\r\n", b"\n").partition(b"\n\n")
        lines = head.decode().splitlines()
        if not lines:
            raise RuntimeError(result.stderr.decode().strip())
        fields = {key.lower(): value.strip() for key, value in (line.split(":", 1) for line in lines[1:])}
        return lines[0], fields, rest.decode()

    def options(**fields):
        return [part for key, value in fields.items() for part in ("-H", f"{key.replace('_', '-')}: {value}")]

    def form_options(**fields):
        return [part for key, value in fields.items() for part in ("--data-urlencode", f"{key}={value}")]

    # APNs.
    payload = b'{"aps":{"alert":"curl"}}'
    bearer = {"authorization": "bearer " + world.provider_token(), "apns_topic": TOPIC}

    def push(path=f"/3/device/{apple.handle}", *more, data=payload, without=(), **fields):
        fields = {key: value for key, value in (bearer | fields).items() if key not in without}
        status, headers, text = request(path, *options(**fields), *more, data=data)
        return f"{status.split()[1]} {json.loads(text)['reason']}" if text else status.split()[1]

    run("APNs takes a push", "200", push)
    check(name, "the device shows it", apple.shown() == "curl")
    for topic in ([], ["-H", "apns-topic: net.example.other"]):
        run(f"APNs takes the issued certificate in place of a token, {'its topic' if not topic else 'another topic'}", "200",
            lambda: push(f"/3/device/{apple.handle}", "--cert", str(world.certificate), *topic, without=("authorization", "apns_topic")))
        check(name, "the device shows it", apple.shown() == "curl")
    run("APNs takes an expiration of 0", "200", lambda: push(apns_expiration="0"))
    check(name, "the device shows it", apple.shown() == "curl")
    status, headers, _ = request(f"/3/device/{apple.handle}", *options(**bearer), data=payload)
    check(name, "without an apns-id one is made", status.split()[:2] == ["HTTP/2", "200"] and len(headers.get("apns-id", "")) == 36,
        headers.get("apns-id"))
    apple.shown()
    dot = world.provider_token(iat=time.time())
    run("an iat with a fraction, as apns2-up writes it, is taken", "200", lambda: push(authorization="Bearer " + dot))
    check(name, "the device shows it", apple.shown() == "curl")
    for statement, expected, call in (
        ("another method", "405 MethodNotAllowed", lambda: push(f"/3/device/{apple.handle}", data=None)),
        ("another path", "404 BadPath", lambda: push("/3/devices/ab")),
        ("a path that goes on", "404 BadPath", lambda: push(f"/3/device/{apple.handle}/x")),
        ("no token in the path", "400 MissingDeviceToken", lambda: push("/3/device")),
        ("no topic", "400 MissingTopic", lambda: push(without=["apns_topic"])),
        ("no provider token", "403 MissingProviderToken", lambda: push(without=["authorization"])),
        ("a provider token that is none", "403 InvalidProviderToken", lambda: push(authorization="bearer x")),
        ("a provider token of tomorrow", "403 ExpiredProviderToken",
            lambda: push(authorization="bearer " + world.provider_token(time.time() + 86400))),
        ("priority 10 of a payload with content-available alone", "400 BadPriority",
         lambda: push(apns_priority="10", data=b'{"aps":{"content-available":1}}')),
        ("an unknown push type", "400 InvalidPushType", lambda: push(apns_push_type="loud")),
        ("an expiration that is no number", "400 BadExpirationDate", lambda: push(apns_expiration="tomorrow")),
        ("a header twice", "400 DuplicateHeaders", lambda: push(f"/3/device/{apple.handle}", "-H", "apns-topic: again")),
        ("no payload", "400 PayloadEmpty", lambda: push(data=b"")),
        ("an unknown token is not told before authentication", "403 MissingProviderToken",
            lambda: push("/3/device/" + "ab" * 32, without=["authorization"])),
    ):
        run(f"APNs: {statement}", expected, call)

    # FCM.
    from google.auth.transport.requests import Request

    credential = google_credential(world, None)
    credential.refresh(Request())
    access = {"Authorization": f"Bearer {credential.token}", "Content_Type": "application/json"}
    path = f"/v1/projects/{world.project}/messages:send"

    def message(to=path, text="curl", raw=None, fields=None, top=None, **members):
        raw = raw or json.dumps({"message": {"token": google.handle, "notification": {"body": text}} | members} | (top or {})).encode()
        status, headers, answer = request(to, *options(**access if fields is None else fields), data=raw)
        value = json.loads(answer)
        if "name" in value:
            return "200"
        codes = [detail.get("errorCode") or detail.get("reason") or "BadRequest" for detail in value["error"].get("details", [])]
        return " ".join([status.split()[1], value["error"]["status"], *codes])

    run("FCM takes a message", "200", message)
    check(name, "the device shows it", google.shown() == "curl")
    run("FCM takes an encoded colon", "200", lambda: message(path.replace(":", "%3A")))
    check(name, "the device shows it", google.shown() == "curl")
    run("FCM takes camel case", "200", lambda: message(raw=json.dumps({"validateOnly": False, "message": {
        "token": google.handle, "notification": {"body": "camel"}, "android": {"collapseKey": "c", "ttl": "60.5s"},
            "fcmOptions": {"analyticsLabel": "a"}}}).encode()))
    check(name, "the device shows it", google.shown() == "camel")
    run("FCM: no access token", "401 UNAUTHENTICATED", lambda: message(fields={"Content_Type": "application/json"})[:19])
    run("FCM: an expired access token", "401 UNAUTHENTICATED ACCESS_TOKEN_EXPIRED",
        lambda: message(fields=access | {"Authorization": "Bearer " + expired_token(world)}))
    run("FCM: a body that is not JSON", "400 INVALID_ARGUMENT", lambda: message(raw=b"{")[:20])
    run("FCM: an unknown field of the message", "400 INVALID_ARGUMENT", lambda: message(colour="red")[:20])
    run("FCM: it has a BadRequest detail", True, lambda: "BadRequest" in message(colour="red"))
    run("FCM: an unknown field beside the message", "400 INVALID_ARGUMENT", lambda: message(text="beside", top={"colour": "red"})[:20])
    run("FCM: an analytics label of 51 characters", "400 INVALID_ARGUMENT",
        lambda: message(text="label", fcm_options={"analytics_label": "a" * 51})[:20])
    run("FCM: a notification that is no object", "400 INVALID_ARGUMENT", lambda: message(notification="text")[:20])
    run("FCM: a title that is no text", "400 INVALID_ARGUMENT", lambda: message(notification={"title": 1, "body": "title"})[:20])
    run("FCM: an android that is no object", "400 INVALID_ARGUMENT", lambda: message(android="text")[:20])
    run("FCM: a validate_only that is no boolean", "400 INVALID_ARGUMENT", lambda: message(text="validate", top={"validate_only": "yes"})[:20])
    run("FCM: a reserved key behind android's own data", "400 INVALID_ARGUMENT", lambda: message(
        text="reserved", data={"from": "x"}, android={"data": {"a": "b"}})[:20])
    run("FCM: a topic that is none", "400 INVALID_ARGUMENT", lambda: message(
        raw=b'{"message":{"topic":"a b","data":{"a":"b"}}}')[:20])
    run("FCM: a token that is no text", "400 INVALID_ARGUMENT", lambda: message(token=1)[:20])
    run("FCM: a token given back", "404 NOT_FOUND UNREGISTERED", lambda: message(token=world.ended("fcm")))

    def oauth(**fields):
        status, _, answer = request("/token", *form_options(**fields))
        return f"{status.split()[1]} {json.loads(answer).get('error', 'a token')}"

    import jwt

    account = json.loads(world.account.read_text())
    grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

    def assertion(**changes):
        now = int(time.time())
        return jwt.encode({"iss": account["client_email"], "scope": "https://www.googleapis.com/auth/firebase.messaging", "aud": account["token_uri"],
                           "iat": now, "exp": now + 3600} | changes, account["private_key"], "RS256", {"kid": account["private_key_id"]})

    run("Google's token service takes an assertion for itself", "200 a token", lambda: oauth(grant_type=grant, assertion=assertion()))
    run("another grant", "400 unsupported_grant_type", lambda: oauth(grant_type="password", assertion=assertion()))
    run("an assertion that is none", "400 invalid_grant", lambda: oauth(grant_type=grant, assertion="x"))
    run("an assertion of two hours", "400 invalid_grant", lambda: oauth(grant_type=grant, assertion=assertion(exp=int(time.time()) + 7200)))
    run("an assertion that is over", "400 invalid_grant", lambda: oauth(grant_type=grant,
        assertion=assertion(iat=int(time.time()) - 7200, exp=int(time.time()) - 3600)))
    run("an assertion for somebody else", "400 invalid_grant", lambda: oauth(grant_type=grant, assertion=assertion(aud="https://example.com/token")))

    # Shut down by Google, kept here: section 2.6.
    for legacy in ("/fcm/send", "/gcm/send"):
        run(f"{legacy} refuses an unknown server key", "401", lambda legacy=legacy: request(
            legacy, *options(Authorization="key=none", Content_Type="application/json"), data=b'{"to":"x","data":{}}')[0].split()[1])
    server_key = {"Authorization": "key=" + world.credentials["fcm"]["serverKey"]}

    def old_json(raw=None, **members):
        status, _, answer = request("/fcm/send", *options(**server_key, Content_Type="application/json"), data=raw or json.dumps(members).encode())
        if status.split()[1] != "200":
            return status.split()[1]
        value = json.loads(answer)
        return [one.get("error", "an id") for one in value["results"]] if "results" in value else value.get("error", "an id")

    def old_form(**fields):
        status, _, answer = request("/gcm/send", *options(**server_key), *form_options(**fields))
        return answer.strip().split(":")[0] if status.split()[1] == "200" else status.split()[1]

    ended = world.ended("fcm")
    run("legacy: a notification", ["an id"], lambda: old_json(to=google.handle, notification={"body": "legacy"}, priority="high"))
    check(name, "the device shows it", google.shown() == "legacy")
    run("legacy: each token has its result", ["an id", "NotRegistered", "InvalidRegistration"],
        lambda: old_json(registration_ids=[google.handle, ended, "bad"], data={"message": "legacy data"}, time_to_live=60))
    check(name, "the device shows it", google.shown() == "legacy data")
    run("legacy: a form", "id=0", lambda: old_form(registration_id=google.handle, **{"data.message": "legacy form"}))
    check(name, "the device shows it", google.shown() == "legacy form")
    run("legacy: a form without a token", "Error=MissingRegistration", lambda: old_form(**{"data.message": "x"}))
    run("legacy: a form to a token given back", "Error=NotRegistered", lambda: old_form(registration_id=ended, **{"data.message": "x"}))
    joined = json.loads(request("/iid/v1:batchAdd", *options(**server_key), data=json.dumps(
        {"to": "/topics/old", "registration_tokens": [google.handle, ended, "a b"]}).encode())[2])
    check(name, "legacy: tokens join a topic", joined == {"results": [{}, {"error": "NOT_FOUND"}, {"error": "INVALID_ARGUMENT"}]}, joined)
    info = json.loads(request(f"/iid/info/{google.handle}?details=true", *options(**server_key))[2])
    check(name, "legacy: a token tells its topics", info.get("rel") == {"topics": {"old": {}}}, info)
    run("legacy: a topic", "an id", lambda: old_json(to="/topics/old", data={"message": "legacy topic"}))
    check(name, "the device shows it", google.shown() == "legacy topic")
    run("legacy: a condition", "an id", lambda: old_json(condition="'old' in topics || 'new' in topics", data={"message": "legacy condition"}))
    check(name, "the device shows it", google.shown() == "legacy condition")
    run("legacy: a dry run", ["an id", "NotRegistered"], lambda: old_json(registration_ids=[google.handle, ended], dry_run=True, data={"message": "x"}))
    for statement, expected, members in (
        ("a reserved key", ["InvalidDataKey"], {"data": {"from": "x"}}), ("a long message", ["MessageTooBig"], {"data": {"a": "x" * 4096}}),
        ("29 days to live", ["InvalidTtl"], {"time_to_live": 2505600}), ("a field that is not known", "400", {"colour": "red"}),
        ("a field of another type", "400", {"dry_run": "yes"}), ("two targets", "400", {"condition": "'a' in topics"}),
    ):
        run(f"legacy: {statement}", expected, lambda members=members: old_json(to=google.handle, **members))
    run("legacy: a body that is not JSON", "400", lambda: old_json(raw=b"{"))
    run("legacy: no target", "400", lambda: old_json(data={"a": "b"}))

    # WNS.
    secrets = world.credentials["wns"]

    def wns_oauth(**changes):
        form = {"grant_type": "client_credentials", "client_id": secrets["packageSid"], "client_secret": secrets["secretKey"],
            "scope": "notify.windows.com"}
        status, _, answer = request("/accesstoken.srf", *form_options(**form | changes))
        return status.split()[1], json.loads(answer)

    _, given = wns_oauth()
    check(name, "WNS gives an access token for a day", given.get("token_type") == "bearer" and given.get("expires_in") == 86400,
        given.get("expires_in"))
    for member, value, expected in (("client_secret", "wrong", "invalid_client"), ("client_id", "ms-app://s", "invalid_client"),
                                    ("grant_type", "password", "unsupported_grant_type"), ("scope", "all", "invalid_scope")):
        run(f"WNS: a wrong {member}", ("400", expected), lambda member=member, value=value: (
            lambda answer: (answer[0], answer[1]["error"]))(wns_oauth(**{member: value})))
    toast = b"<toast><visual><binding template='ToastText01'><text id='1'>curl</text></binding></visual></toast>"
    base = {"Authorization": f"Bearer {given['access_token']}", "X_WNS_Type": "wns/toast", "Content_Type": "text/xml"}
    channel = urllib.parse.urlsplit(windows.handle)
    channel = f"{channel.path}?{channel.query}"

    def windows_push(*more, to=channel, data=toast, without=(), **fields):
        status, headers, _ = request(to, *options(**{key: value for key, value in (base | fields).items() if key not in without}), *more, data=data)
        return int(status.split()[1]), headers

    def sent(*more, **fields):
        status, headers = windows_push(*more, **fields)
        return f"{status} {headers.get('x-wns-status', '')}".strip() if status == 200 else str(status)

    status, headers = windows_push(X_WNS_RequestForStatus="true", MS_CV="cv.1")
    check(name, "WNS takes a toast", status == 200 and headers.get("x-wns-status") == "received", status)
    check(name, "the device shows it", windows.shown() == "curl")
    check(name, "WNS names the message in at most 16 letters and digits",
        headers.get("x-wns-msg-id", "-").isalnum() and len(headers["x-wns-msg-id"]) <= 16)
    check(name, "WNS sends back MS-CV", headers.get("ms-cv") == "cv.1")
    check(name, "WNS tells the device's state when it is asked", headers.get("x-wns-deviceconnectionstatus") == "connected",
        headers.get("x-wns-deviceconnectionstatus"))
    status, headers = windows_push()
    check(name, "and not when it is not", status == 200 and "x-wns-deviceconnectionstatus" not in headers)
    windows.shown()
    run("WNS takes every header", "200 received", lambda: sent(
        X_WNS_TTL="60", X_WNS_Tag="t" * 16, X_WNS_Group="g" * 16, X_WNS_PRIORITY="1", X_WNS_Cache_Policy="cache"))
    check(name, "the device shows it", windows.shown() == "curl")
    run("WNS over HTTP/1.1 refuses chunks", True, lambda: sent("--http1.1", Transfer_Encoding="chunked") in ("400", "411"))
    for statement, expected, call in (
        ("no access token", "401", lambda: sent(without=["Authorization"])),
        ("an access token that nobody issued", "401", lambda: sent(Authorization="Bearer x")),
        ("an access token of another service", "401", lambda: sent(Authorization=access["Authorization"])),
        ("no type", "400", lambda: sent(without=["X_WNS_Type"])),
        ("an unknown type", "400", lambda: sent(X_WNS_Type="wns/poster")),
        ("a raw notification as XML", "400", lambda: sent(X_WNS_Type="wns/raw")),
        ("a payload that is not XML", "400", lambda: sent(data=b"toast")),
        ("a badge as a toast", "400", lambda: sent(data=b"<badge value='1'/>")),
        ("no payload", "400", lambda: sent(data=b"")),
        ("5001 bytes", "413", lambda: sent(data=b"x" * 5001, X_WNS_Type="wns/raw", Content_Type="application/octet-stream")),
        ("another method", "405", lambda: sent("-X", "PUT")),
        ("DELETE with X-WNS-Match takes toasts back", "200", lambda: sent("-X", "DELETE", data=None, without=["X_WNS_Type", "Content_Type"],
                                                                         X_WNS_Match="type:wns/toast;all")[:3]),
        ("a bad X-WNS-TTL", "400", lambda: sent(X_WNS_TTL="soon")),
        ("a tag of 17 characters", "400", lambda: sent(X_WNS_Tag="t" * 17)),
        ("a group of 17 characters", "400", lambda: sent(X_WNS_Group="g" * 17)),
        ("priority 5", "400", lambda: sent(X_WNS_PRIORITY="5")),
        ("an unknown cache policy", "400", lambda: sent(X_WNS_Cache_Policy="maybe")),
    ):
        run(f"WNS: {statement}", expected, call)
    # Raw notifications are kept for a device that is away only on request.
    away = Autopush(world)
    subscription = away.subscribe(platform="wns")
    uaid = away.uaid
    away.close()
    place = urllib.parse.urlsplit(subscription.endpoint)
    raw = {"X_WNS_Type": "wns/raw", "Content_Type": "application/octet-stream", "to": f"{place.path}?{place.query}"}
    run("WNS drops a raw notification for a device that is away", "200 dropped", lambda: sent(data=b"default", **raw))
    run("WNS keeps it on request", "200 received", lambda: sent(data=b"kept", X_WNS_Cache_Policy="cache", **raw))
    back = Autopush(world, uaid)
    found = unb64u(back.notification()["data"])
    check(name, "the device gets what was kept alone", found == b"kept", found)
    back.close()
    entra = form_options(grant_type="client_credentials", client_id=secrets["packageSid"], client_secret=secrets["secretKey"],
                         scope="https://wns.windows.com/.default")
    run("Entra's token service gives an access token", "200", lambda: request("/tenant/oauth2/v2.0/token", *entra)[0].split()[1])

    # Web Push.
    endpoint = urllib.parse.urlsplit(json.loads(browser.handle)["endpoint"]).path

    def web(*more, to=endpoint, data=b"x", **fields):
        status, headers, answer = request(to, *options(**fields), *more, data=data)
        if status.split()[1] == "201":
            return "201"
        value = json.loads(answer)
        check(name, "Mozilla's members are there", value["code"] == int(status.split()[1]) and {"error", "message", "more_info"} <= set(value))
        return f"{value['code']} {value['errno']}"

    run("Web Push: no TTL", "400 111", lambda: web(Content_Encoding="aes128gcm"))
    run("Web Push: no Content-Encoding", "400 110", lambda: web(TTL="1"))
    run("Web Push: the older aesgcm128", "400 110", lambda: web(TTL="1", Content_Encoding="aesgcm128"))
    run("Web Push: aesgcm without a salt", "400 110", lambda: web(TTL="1", Content_Encoding="aesgcm", Crypto_Key="dh=AAAA"))
    run("Web Push: aesgcm without a key", "400 110", lambda: web(TTL="1", Content_Encoding="aesgcm", Encryption="salt=AAAA"))
    run("Web Push: a receipt that is asked for is not sent", "201", lambda: web(TTL="1", Prefer="respond-async", data=b""))
    check(name, "the device gets the signal", browser.shown() == "silent")
    run("Web Push: a body that no key encrypted is taken", "201", lambda: web(TTL="1", Content_Encoding="aes128gcm", data=bytes(120)))
    check(name, "the device cannot read it", browser.shown() == "unreadable")
    ended = urllib.parse.urlsplit(world.ended(None)).path
    status, headers, _ = request(ended, *options(TTL="1"), data=b"")
    check(name, "Web Push: 410 may be remembered for a day", status.split()[1] == "410" and headers.get("cache-control") == "max-age=86400", status)
    run("UnifiedPush finds its server", '{"unifiedpush":{"version":1}}', lambda: request(endpoint)[2])


# MARK: All of them


def providers(check, programs, server, state, full, folder, only=()):
    """Runs every sender, or those that `only` names. Each has devices of its own, so that a push too many shows where it belongs."""
    world = World(check, programs, server, state, full, folder)
    try:
        world.autopush = Autopush(world)
        parts = [
            ("aioapns", "apns", lambda device: asyncio.run(aioapns(world, device))),
            ("kalyke-apns", "apns", lambda device: asyncio.run(kalyke(world, device))),
            ("firebase-admin", "fcm", lambda device: firebase(world, device)),
            ("pyfcm", "fcm", lambda device: pyfcm(world, device)),
            ("django-push-notifications", "wns", lambda device: django_wns(world, device)),
            ("pywebpush", "browser", lambda device: web_push(world, device)),
            ("autopush client", None, lambda _: hub_to_autopush(world)),
            ("autopush client", None, lambda _: autopush_rules(world)),
            ("autopush client", None, lambda _: full_mailbox(world)),
            ("curl --http2", ("apns", "fcm", "wns", "browser"), lambda devices: curl(world, *devices)),
        ]
        if not world.has_faults:
            print("  [skipped] answers on demand: this gateway has no faults")
        for name, platforms, body in parts:
            if only and name not in only:
                continue
            try:
                body([world.device(one) for one in platforms] if isinstance(platforms, tuple) else world.device(platforms) if platforms else None)
            except Exception as error:  # noqa: BLE001: the other senders are to be heard as well
                check(name, "it runs to its end", False, repr(error)[:300])
    finally:
        world.stop()
