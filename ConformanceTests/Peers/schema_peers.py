"""schemathesis against a Tidings of its own: requests generated from docs/openapi, valid and invalid, over HTTP.

An operation that OpenAPI cannot describe as one (`x-forms`) is tested form by form. Prints one line for each operation and form, and a table of
the checks at the end. Exit code 0 only if every check held.
"""

import argparse
import base64
import copy
import hashlib
import hmac
import json
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.parse
import warnings
from collections import Counter

import requests
import schemathesis
import yaml
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir
from schemathesis.core.parameters import ParameterLocation
from schemathesis.engine import Status, events, from_schema
from schemathesis.openapi import format as text_format
from schemathesis.openapi import media_type

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
          "response_headers_conformance", "negative_data_rejection", "positive_data_acceptance", "unsupported_method", "ignored_auth",
          "read_back")
METHODS = ("get", "head", "put", "post", "patch", "delete")
# What schemathesis takes for a refusal by itself, and ours: a registration id that is none is 410, a long body 413.
REFUSALS = ["400", "401", "403", "404", "405", "410", "413"]
# A registration of another user's is 403, an installation that is not there 404.
ACCEPTED = ["2xx", "403", "404"]


# MARK: Known false alarms


def detail(response):
    return response.content.decode("utf-8", "replace")


def is_json(body):
    try:
        json.loads(body or b"")
        return True
    except ValueError:
        return False


# Failures that are none: the reason, and when it holds. Each that was met is printed with its count.
KNOWN = []


def known(reason):
    def register(holds):
        KNOWN.append((reason, holds))
        return holds

    return register


@known("how many bytes the payload of a push service takes cannot be said of a text, which is escaped on its way: 413")
def _(check, case, response):
    return check == "positive_data_acceptance" and response.status_code == 413 and "payload of this message has" in detail(response)


@known("how long a target is cannot be said of a text, which is encoded on its way: 414")
def _(check, case, response):
    return check == "positive_data_acceptance" and response.status_code == 414 and len(response.request.path_url) > 8192


@known("a body that is left out, or holds blanks alone, is another form of the same operation")
def _(check, case, response):
    return check == "negative_data_rejection" and case.operation.path in ("/api/register", "/api/notifications") \
        and not (response.request.body or b"").strip()


@known("both parameters left out are another form of the same operation")
def _(check, case, response):
    return check == "negative_data_rejection" and "a text to a user" in form_of(case) and not ({"pns", "to_tag"} & set(case.query or {}))


@known("without a format a send is one of template values, which these also are")
def _(check, case, response):
    return check == "negative_data_rejection" and form_of(case).startswith("explain") and response.status_code == 200 \
        and not response.request.headers.get("ServiceBusNotification-Format")


@known("as the text to a user, a body that is no JSON is the text itself")
def _(check, case, response):
    return check == "negative_data_rejection" and form_of(case).startswith("a text to a user") and not is_json(response.request.body)


@known("that a body's installationId is the one of the address, no schema can say: 400")
def _(check, case, response):
    return check == "positive_data_acceptance" and response.status_code == 400 and "in the body differs from '" in detail(response)


@known("a patch is checked against what is stored: what does not suit its platform, or names a part that is not there, is 400")
def _(check, case, response):
    return check == "positive_data_acceptance" and case.operation.method.lower() == "patch" and response.status_code == 400 and any(
        text in detail(response) for text in ("there is no &apos;", "there is no '", "secondaryTiles are for wns", "The device token is not hexadecimal",
                                              "pushChannel' must be a string"))


# MARK: Texts with a grammar of their own

LITERALS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12).filter(lambda text: text[:1] not in tuple("$.%#{"))
NAMES = st.from_regex(r"[A-Za-z0-9_]{1,12}", fullmatch=True)
EXPRESSIONS = st.one_of(
    NAMES.map("$({})".format), NAMES.map("#({})".format), NAMES.map("%({})".format), NAMES.map("$({}:{{none}})".format),
    st.tuples(NAMES, st.integers(0, 200)).map(lambda pair: "$({}, {})".format(*pair)),
    st.tuples(NAMES, st.integers(0, 200)).map(lambda pair: ".({}, {})".format(*pair)),
    st.tuples(NAMES, NAMES).map(lambda pair: "{{'{}''s ' + $({})}}".format(*pair)),
    st.tuples(NAMES, NAMES).map(lambda pair: "$({})+'-'+%({})".format(*pair)),
)
TEXTS = st.one_of(LITERALS, EXPRESSIONS)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)), max_leaves=6)
OBJECTS = st.dictionaries(st.text(max_size=8), VALUES, max_size=3)
AS_JSON = {"ensure_ascii": False}


def xml_text(text):
    return "".join(c for c in text if c in "\t\n\r" or " " <= c < "\ufffe" or c > "\uffff").replace("&", "&amp;").replace("<", "&lt;").replace("\r", " ")


def tag_expressions():
    tags = st.one_of(st.from_regex(r"[A-Za-z0-9_@#.:-]{1,12}", fullmatch=True), NAMES.map("$UserId:{{{}}}".format))
    return st.one_of(st.just(""), st.recursive(tags, lambda inner: st.one_of(
        inner.map("!{}".format), inner.map("({})".format), st.tuples(inner, inner).map(" && ".join), st.tuples(inner, inner).map("||".join)),
        max_leaves=8))


def register_formats():
    text_format("tidings-json-template", OBJECTS.map(lambda value: json.dumps(value, **AS_JSON)))
    text_format("tidings-fcmv1-template", OBJECTS.map(lambda value: json.dumps({"message": value}, **AS_JSON)))
    text_format("tidings-windows-template", st.tuples(st.sampled_from(["toast", "tile", "badge"]), TEXTS).map(
        lambda pair: f"<{pair[0]}><visual>{xml_text(pair[1])}</visual></{pair[0]}>"))
    text_format("tidings-phone-template", st.tuples(st.sampled_from(["Tile", "Toast"]), TEXTS).map(
        lambda pair: f'<wp:Notification xmlns:wp="WPNotification"><wp:{pair[0]}>{xml_text(pair[1])}</wp:{pair[0]}></wp:Notification>'))
    text_format("tidings-windows-payload", st.tuples(st.sampled_from(["toast", "tile", "badge"]), LITERALS).map(
        lambda pair: f"<{pair[0]}>{xml_text(pair[1])}</{pair[0]}>"))
    text_format("tidings-subscription", st.tuples(NAMES, NAMES, NAMES).map(
        lambda three: json.dumps({"endpoint": "https://push.example/" + three[0], "p256dh": three[1], "auth": three[2]})))
    text_format("tidings-time", st.tuples(
        st.sampled_from(["0002-01-01", "0004-02-29", "2000-02-29", "2026-11-30", "2030-06-15", "9998-12-31"]),
        st.sampled_from(["00:00", "23:59:60", "12:30:15.123", "23:59:59.9999999"]), st.sampled_from(["Z", "z", "", "+14:00", "-14:00", "+0530"]),
    ).map(lambda parts: f"{parts[0]}T{parts[1]}{parts[2]}"))
    text_format("tidings-expiry", st.datetimes().map(lambda time: time.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")))
    text_format("tidings-tag-array", st.lists(NAMES, max_size=4).map(json.dumps))
    text_format("tidings-tag-expression", tag_expressions())
    for name, start in {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF89a", "image/webp": b"RIFF0000WEBP",
                        "audio/mpeg": b"ID3", "audio/ogg": b"OggS", "audio/wav": b"RIFF0000WAVE"}.items():
        media_type(name, st.binary(max_size=64).map(start.__add__))
    media_type("application/xml", st.tuples(st.sampled_from(["toast", "tile", "badge"]), LITERALS).map(
        lambda pair: f"<{pair[0]}>{xml_text(pair[1])}</{pair[0]}>".encode()))


# MARK: A check of our own


def register_check():
    @schemathesis.check
    def read_back(context, response, case):
        """An installation that was taken can be read, as it was given."""
        if case.operation.path != "/installations/{installationId}" or response.status_code != 200 or case.method.upper() not in ("PUT", "PATCH"):
            return True
        answer = requests.get(response.request.url, headers={"Authorization": response.request.headers["Authorization"]}, timeout=20)
        sent = json.loads(response.request.body)
        if answer.status_code == 404 and "expirationtime" in json.dumps(sent).lower():
            return None
        assert answer.status_code == 200, f"a GET of what was taken is {answer.status_code}: {answer.text}"
        if case.method.upper() == "PUT":
            stored = answer.json()
            for name in ("userId", "tags", "pushVariables"):
                wanted = {key: value for key, value in sent[name].items() if value is not None} if name == "pushVariables" and sent.get(name) \
                    else sent.get(name)
                if name == "tags":
                    wanted = list({tag.lower(): tag for tag in reversed(wanted or [])}.values())[::-1]
                assert (stored.get(name) or None) == (wanted or None), f"{name} was {wanted!r} and is {stored.get(name)!r}"
        return None


# MARK: Forms


def documents(path):
    """The operations without forms as one document, and one for each form: (form, document)."""
    whole = yaml.safe_load(path.read_text())
    # schemathesis takes test:test for wrong, which `--dev` takes for right; for a scheme of this kind it sends what is no credential at all.
    # Wrong passwords are checked by `wrong_passwords`.
    for scheme in whole["components"]["securitySchemes"].values():
        scheme.clear()
        scheme.update({"type": "apiKey", "in": "header", "name": "Authorization"})
    for schema in formatted(whole["components"].get("schemas", {})):
        if schema["format"] in EDGES:
            schema["examples"] = EDGES[schema["format"]]
    plain = copy.deepcopy(whole)
    for name, item in whole["paths"].items():
        for method in METHODS:
            operation = item.get(method, {})
            for form in operation.pop("x-forms", []):
                part = {key: value for key, value in whole.items() if key != "paths"}
                part["paths"] = {name: {method: formed(operation, form)}}
                yield form, copy.deepcopy(part)
                plain["paths"][name].pop(method, None)
    plain["paths"] = {name: item for name, item in plain["paths"].items() if set(item) & set(METHODS)}
    yield None, plain


# Values that are always tried.
EDGES = {"tidings-time": ["0002-01-01T00:00:00+14:00", "0004-02-29T00:00:00Z", "9998-12-31T23:59:59.9999999-14:00", "2016-12-31T23:59:60Z"]}


def formatted(value):
    """Every schema with a format."""
    if isinstance(value, dict):
        if isinstance(value.get("format"), str):
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from formatted(inner)


def formed(operation, form):
    operation = copy.deepcopy(operation)
    kept, optional, schemas = form["parameters"], form.get("optional", []), form.get("schemas", {})
    parameters = []
    for parameter in operation.get("parameters", []):
        name = parameter.get("name", "handle")
        if name in kept or name in optional:
            if "$ref" in parameter:
                parameter = dict(SHARED_PARAMETERS[parameter["$ref"].rsplit("/", 1)[1]])
            parameters.append(parameter | {"required": name in kept} | ({"schema": schemas[name]} if name in schemas else {}))
    operation["parameters"] = parameters
    if form.get("body") is False:
        operation.pop("requestBody", None)
    else:
        content = form.get("content") or operation["requestBody"]["content"]
        if "mediaTypes" in form:
            content = {name: content[name] for name in form["mediaTypes"]}
        operation["requestBody"] = {"required": True, "content": content}
    operation["x-form"] = form["name"]
    operation["x-query"] = form.get("query", {})
    return operation


SHARED_PARAMETERS = {}


def form_of(case):
    return case.operation.definition.raw.get("x-form", "")


# MARK: What a request needs besides its own data


class Context:
    """Ids that the server knows, so that not every read is of nothing; and how to make what a patch changes."""

    def __init__(self, seed, state):
        self.random = random.Random(seed)
        self.state = state
        self.installations = []
        self.hub = None
        self.items = []
        self.patched = 0

    def prepare(self, case):
        raw = case.operation.definition.raw
        for name, value in raw.get("x-query", {}).items():
            case.query[name] = value
        key = (case.operation.path, case.method.lower())
        if key[0] == "/installations/{installationId}":
            self.installation(case, key[1])
        elif key[0] == "/api/notifications/{id}" and self.items and self.random.random() < 0.7 and is_valid(case):
            case.path_parameters["id"] = self.random.choice(self.items)

    def installation(self, case, method):
        # What is wrong with a patch must show at an installation that is there.
        if method == "patch" and not (case.meta and case.meta.is_negative_at(ParameterLocation.PATH)):
            seed = {"platform": "apns", "pushChannel": "AB12", "tags": ["seed"], "templates": {"t": {"body": '{"aps":{"alert":"$(m)"}}'}}}
            address, headers = self.hub
            self.patched += 1
            requests.put(f"{address}/installations/patched-{self.patched}", json=seed, headers=headers, timeout=20)
            case.path_parameters["installationId"] = f"patched-{self.patched}"
        elif not is_valid(case):
            return
        elif method in ("get", "head") and self.installations and self.random.random() < 0.8:
            case.path_parameters["installationId"] = self.random.choice(self.installations)
        elif method == "put":
            if isinstance(case.body, dict) and isinstance(case.body.get("installationId"), str):
                case.body["installationId"] = case.path_parameters["installationId"]
            self.installations.append(case.path_parameters["installationId"])

    def read_items(self):
        """The ids of items, which only the devices are told."""
        with sqlite3.connect(f"file:{self.state / 'backend.sqlite'}?mode=ro", uri=True) as database:
            self.items = [row[0] for row in database.execute("SELECT id FROM item WHERE owner = 'alice' ORDER BY sequence")]


def is_valid(case):
    return case.meta is None or case.meta.generation.mode.is_positive


# MARK: Runs


class Report:
    def __init__(self):
        self.operations = {}
        self.checks = {name: Counter() for name in CHECKS}
        self.known = Counter()
        self.failed = 0
        self.problems = []

    def run(self, document, address, options, credentials):
        config = schemathesis.Config.from_dict({
            "seed": options.seed, "base-url": address, "workers": 1, "continue-on-failure": True, "request-timeout": 20,
            "suppress-health-check": ["all"], "cache": {"enabled": False}, "warnings": False,
            "headers": credentials, "output": {"sanitization": {"enabled": False}},
            "generation": {"max-examples": options.max_examples, "database": "none", "no-shrink": True},
            "phases": {"examples": {"enabled": False}, "stateful": {"enabled": False},
                       "coverage": {"extra-data-sources": {"responses": False}},
                       "fuzzing": {"extra-data-sources": {"responses": False}, "error-feedback": {"enabled": False}}},
            "checks": {"enabled": False} | {name: {"enabled": True} for name in CHECKS} | {
                "negative_data_rejection": {"enabled": True, "expected-statuses": REFUSALS},
                "positive_data_acceptance": {"enabled": True, "expected-statuses": ACCEPTED}},
        })
        schema = schemathesis.openapi.from_dict(document, config=config)
        for event in from_schema(schema).execute():
            if isinstance(event, events.ScenarioFinished):
                self.add(event, document)
            elif isinstance(event, events.NonFatalError):
                self.problems.append(f"{event.label}: {event.info.title if hasattr(event.info, 'title') else ''} {event.value!r}"[:2000])
            elif isinstance(event, events.FatalError):
                self.problems.append(repr(event.exception)[:2000])

    def wrong_passwords(self, document, address):
        """403 with an empty body, as the tutorials have it."""
        for path, item in document["paths"].items():
            for method in METHODS:
                if method not in item or item[method].get("security") == []:
                    continue
                answer = requests.request(method, address + path.replace("{id}", "1-2-3"), auth=("alice", "wrong"), timeout=10)
                self.checks["ignored_auth"]["all"] += 1
                if answer.status_code == 403 and not answer.content:
                    self.checks["ignored_auth"]["held"] += 1
                else:
                    self.failed += 1
                    print(f"  [FAILED] {method.upper()} {path} with a wrong password: {answer.status_code} {answer.text}")

    def register_hooks(self, needs):
        @schemathesis.hook
        def before_call(context, case, kwargs):
            needs.prepare(case)

        @schemathesis.hook
        def filter_failure(context, failure, case, response):
            for reason, holds in KNOWN:
                if any(holds(check, case, response) for check in type(failure).checks):
                    self.known[reason] += 1
                    return False
            return True

    def add(self, event, document):
        label = event.label
        if not label or not event.recorder.checks:
            return
        method, _, path = label.partition(" ")
        form = document["paths"].get(path, {}).get(method.lower(), {}).get("x-form")
        name = f"{label} ({form})" if form else label
        counts = self.operations.setdefault(name, Counter())
        for case_id, nodes in event.recorder.checks.items():
            for node in nodes:
                counts["all"] += 1
                if node.name in self.checks:
                    self.checks[node.name]["all"] += 1
                if node.status != Status.FAILURE:
                    counts["held"] += 1
                    if node.name in self.checks:
                        self.checks[node.name]["held"] += 1
                    continue
                self.failed += 1
                kind = (name, node.name, node.failure_info.failure.title)
                counts[kind] += 1
                if counts[kind] <= 3:
                    self.tell(name, node, event.recorder.interactions.get(case_id))

    @staticmethod
    def tell(name, node, interaction):
        print(f"  [FAILED] schemathesis: {name}: {node.name}: {node.failure_info.failure.title}")
        for line in node.failure_info.failure.message.splitlines():
            print(f"      {line}")
        print(f"      {node.failure_info.code_sample}")
        if interaction is not None and interaction.response is not None:
            response = interaction.response
            kind = ", ".join(response.headers.get("content-type", ["no Content-Type"]))
            print(f"      answer: {response.status_code} ({kind}) {response.content[:500].decode('utf-8', 'replace')}", flush=True)

    def finish(self):
        for problem in self.problems:
            print(f"  [FAILED] schemathesis itself: {problem}")
        for name, counts in self.operations.items():
            print(f"  [{'ok' if counts['held'] == counts['all'] else 'FAILED'}] schemathesis: {name}  {counts['held']} of {counts['all']}")
        print()
        for reason, count in self.known.items():
            print(f"known false alarm, {count} times: {reason}")
        for name, counts in self.checks.items():
            print(f"schemathesis {name}: {counts['held']} of {counts['all']}")
        silent = [name for name, counts in self.checks.items() if counts["all"] == 0]
        for name in silent:
            print(f"  [FAILED] the check {name} never ran")
        print(f"{sum(counts['held'] for counts in self.operations.values())} passed, {self.failed} failed", flush=True)
        return 1 if self.failed or self.problems or silent else 0


# MARK: The server


def connection_string(log):
    """The one with every right, which `serve --dev` prints on standard error."""
    for _ in range(200):
        for line in log.read_text().splitlines():
            if "SharedAccessKeyName=DefaultFullSharedAccessSignature;" in line:
                return line.split()[-1]
        time.sleep(0.05)
    raise SystemExit(f"no connection strings: {log.read_text()[:2000]}")


def signature(address, connection):
    members = dict(part.split("=", 1) for part in connection.split(";") if part)
    resource = urllib.parse.quote(address.lower(), safe="").lower()
    expiry = str(int(time.time()) + 7200)
    digest = hmac.new(members["SharedAccessKey"].encode(), f"{resource}\n{expiry}".encode(), hashlib.sha256).digest()
    mark = urllib.parse.quote(base64.b64encode(digest).decode(), safe="")
    return f"SharedAccessSignature sr={resource}&sig={mark}&se={expiry}&skn={members['SharedAccessKeyName']}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--max-examples", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of the name of an operation or form")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    register_formats()
    register_check()
    report = Report()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tidings-schema") as folder:
        set_hypothesis_home_dir(pathlib.Path(folder) / "hypothesis")
        state = pathlib.Path(folder) / "server"
        log = pathlib.Path(folder) / "log"
        ports = [f"--{name}-address=127.0.0.1:0" for name in ("backend", "hub", "gateway")]
        with log.open("w") as errors:
            serving = subprocess.Popen([options.programs / "tidings", "serve", "--dev", "--state", str(state), *ports],
                                       stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            ready = next((value for value in map(json.loads, serving.stdout) if value["event"] == "ready"), None)
            if ready is None:
                raise SystemExit(f"the server ended: {log.read_text()[:2000]}")
            plain = {name: "http://" + ready[name].split("://")[-1].rstrip("/") for name in ("backend", "hub")}
            hub = plain["hub"] + "/tidings"
            headers = {"Authorization": signature(hub, connection_string(log))}
            context = Context(options.seed, state)
            context.hub = (hub, headers)
            report.register_hooks(context)
            for file, address, credentials in (
                ("app-backend.yaml", plain["backend"], {"Authorization": "Basic " + base64.b64encode(b"alice:alice").decode()}),
                ("hub.yaml", hub, headers),
            ):
                path = REPOSITORY / "docs" / "openapi" / file
                SHARED_PARAMETERS.clear()
                SHARED_PARAMETERS.update(yaml.safe_load(path.read_text())["components"].get("parameters", {}))
                for form, document in documents(path):
                    if options.only and options.only not in (form["name"] if form else "plain"):
                        continue
                    if form is None and file == "app-backend.yaml":
                        context.read_items()
                    report.run(document, address, options, credentials)
                    if file == "app-backend.yaml":
                        report.wrong_passwords(document, address)
            if serving.poll() is not None:
                report.problems.append(f"the server ended with {serving.returncode}: {log.read_text()[-2000:]}")
        finally:
            serving.terminate()
            serving.wait(timeout=20)
    status = report.finish()
    print(f"{time.monotonic() - began:.0f} s with --max-examples {options.max_examples} --seed {options.seed}")
    return status


if __name__ == "__main__":
    sys.exit(main())
