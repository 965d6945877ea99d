"""Sends the pushes of an `APNsTask` (APNsLoad.swift) with aioapns, and prints a `PushCost` in JSON.

One connection, with as many requests under way as that connection may have: aioapns begins every further connection with 1,000
requests, and never hears that the server refused some of them (it reads no RST_STREAM).
"""

import asyncio
import json
import logging
import pathlib
import resource
import ssl
import sys
import urllib.parse

import aioapns.connection
from aioapns import APNs, NotificationRequest, PushType

UNDER_WAY = 200
WARM_UP = 250
# Of the whole run: a push whose answer is lost is waited for without end.
DEADLINE = 900


class Never(int):
    """A time to live that makes `apns-expiration: 0`: aioapns adds it to the present time."""

    def __radd__(self, other):
        return 0


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def send_all(client, requests):
    """As many workers as requests may be under way. Returns the count of answers that are not 200."""
    waiting = iter(requests)
    failed = 0

    async def work():
        nonlocal failed
        for request in waiting:
            failed += not (await client.send_notification(request)).is_successful

    await asyncio.gather(*(work() for _ in range(UNDER_WAY)))
    return failed


async def main(task):
    logging.getLogger("aioapns").setLevel(logging.ERROR)
    gateway = urllib.parse.urlsplit(task["gateway"])
    protocol = aioapns.connection.APNsProductionClientProtocol
    protocol.APNS_SERVER, protocol.APNS_PORT = gateway.hostname, gateway.port
    client = APNs(
        key=task["privateKey"], key_id=task["keyID"], team_id=task["teamID"], topic=task["topic"], max_connections=1,
        ssl_context=ssl.create_default_context(cafile=task["authority"]))
    message = json.loads(task["payload"])
    tokens = task["tokens"]

    def requests(count):
        return [
            NotificationRequest(tokens[number % len(tokens)], message, time_to_live=Never(), priority=10, push_type=PushType.ALERT)
            for number in range(count)
        ]

    # The first one alone: the server's limit of requests arrives with its answer.
    failed = await send_all(client, requests(1)) + await send_all(client, requests(WARM_UP))
    measured = requests(task["count"])
    before = cpu_seconds()
    failed += await send_all(client, measured)
    print(json.dumps({"count": len(measured), "failed": failed, "cpuSeconds": cpu_seconds() - before}))


asyncio.run(asyncio.wait_for(main(json.loads(pathlib.Path(sys.argv[1]).read_text())), DEADLINE))
