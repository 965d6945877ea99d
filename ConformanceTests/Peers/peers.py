"""Third-party clients against a Tidings of its own: `tidings serve --dev` and one device, as separate processes.

Prints one line for each check and a table at the end. Exit code 0 only if every check held.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import arm_peers
import firefox_peer
import hub_peers
import provider_peers

PROGRAMS = pathlib.Path(sys.argv[1])
checks = []


def check(client, statement, holds, observed=""):
    checks.append((client, bool(holds)))
    print(f"  [{'ok' if holds else 'FAILED'}] {client}: {statement}{'  ' + str(observed) if observed != '' else ''}", flush=True)


class Process:
    def __init__(self, *arguments, **options):
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def line(self, event):
        """The next line of standard output with that event; the process is ended when none comes."""
        for text in self.process.stdout:
            value = json.loads(text)
            if value["event"] == event:
                return value
        raise SystemExit(f"the process ended: {self.process.stderr.read()}")

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=20)


def connection_strings(process):
    """The two strings that `serve --dev` prints on standard error."""
    found = []
    while len(found) < 2:
        text = process.process.stderr.readline()
        if "Endpoint=" in text:
            found.append(text.split()[-1])
    listen = next(s for s in found if "Listen" in s)
    return listen, next(s for s in found if s != listen)


def curl(server):
    if not shutil.which("curl"):
        print("  [skipped] curl is not installed")
        return
    for name in ("backend", "hub", "gateway"):
        port = server[name].rsplit(":", 1)[1]
        for option, version, scheme in (
            ("--http1.1", "1.1", "https"),
            ("--http2", "2", "https"),
            ("--http1.1", "1.1", "http"),
            ("--http2-prior-knowledge", "2", "http"),
        ):
            result = subprocess.run(
                ["curl", "-sS", option, "--cacert", server["ca"], "-o", os.devnull, "-w", "%{http_version} %{http_code}",
                 f"{scheme}://localhost:{port}/-/health"], capture_output=True, text=True)
            check("curl", f"{option} {scheme} {name}", result.stdout == f"{version} 200", result.stdout or result.stderr)


def main():
    with tempfile.TemporaryDirectory(prefix="tidings-peers") as folder:
        state = pathlib.Path(folder) / "server"
        ports = [f"--{name}-address=127.0.0.1:0" for name in ("backend", "hub", "gateway", "arm")]
        serving = Process(PROGRAMS / "tidings", "serve", "--dev", "--state", str(state), *ports)
        server = serving.line("ready")
        listen, full = connection_strings(serving)
        phone = str(pathlib.Path(folder) / "phone")
        device = Process(
            PROGRAMS / "tidings-device", "run", "--state", phone, "--ca", server["ca"], "--gateway", server["gateway"],
            "--backend", server["backend"], "--hub", listen)
        try:
            handle = device.line("handle")["handle"]
            control = PROGRAMS / "tidings-device"
            subprocess.run([control, "login", "alice", "--state", phone], input="alice\n", text=True, check=True, stdout=subprocess.DEVNULL)
            subprocess.run([control, "subscribe", "World", "--state", phone], check=True, stdout=subprocess.DEVNULL)
            curl(server)
            hub_peers.rest_python(check, server, full, device, handle)
            hub_peers.unofficial(check, server, full, device, handle)
            arm_peers.management(check, hub_peers.operations(check, "azure-mgmt-notificationhubs"), server)
            firefox_peer.push(check, server, full, state)
            provider_peers.providers(check, PROGRAMS, server, state, full, folder)
        finally:
            device.stop()
            serving.stop()
    print()
    for client in dict.fromkeys(name for name, _ in checks):
        results = [holds for name, holds in checks if name == client]
        print(f"{client}: {sum(results)} of {len(results)}")
    failed = sum(not holds for _, holds in checks)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
