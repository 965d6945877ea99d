"""Encrypts and sends the messages of a `WebPushTask` (WebPushLoad.swift) with pywebpush, and prints a `WebPushCost` in JSON.

One kept connection and one key object: what pywebpush offers for its speed. It signs a VAPID token for each message.
"""

import json
import pathlib
import resource
import sys

import requests
from py_vapid import Vapid02
from pywebpush import WebPusher, WebPushException, webpush

WARM_UP = 50


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main(task):
    keys = {"p256dh": task["p256dh"], "auth": task["auth"]}
    subscriptions = [{"endpoint": endpoint, "keys": keys} for endpoint in task["endpoints"]]
    vapid = Vapid02.from_raw(task["vapidPrivateKey"].encode())
    claims = {"sub": task["subject"]}
    session = requests.Session()
    session.verify = task["authority"]
    # Else it reads proxies and certificates from the environment for each request.
    session.trust_env = False
    payload = task["payload"]
    failed = 0

    def encrypt(number):
        WebPusher(subscriptions[number % len(subscriptions)]).encode(payload.encode())

    def send(number):
        nonlocal failed
        try:
            webpush(subscriptions[number % len(subscriptions)], payload, vapid, claims, ttl=0, timeout=30, requests_session=session)
        except WebPushException as error:
            failed += 1
            print(error, file=sys.stderr)

    def cost(act, count):
        for number in range(WARM_UP):
            act(number)
        before = cpu_seconds()
        for number in range(count):
            act(number)
        return cpu_seconds() - before

    print(json.dumps({
        "encryptedCount": task["encryptedCount"], "encryptionSeconds": cost(encrypt, task["encryptedCount"]),
        "sentCount": task["sentCount"], "sendSeconds": cost(send, task["sentCount"]), "failed": failed, "repeated": 0}))


main(json.loads(pathlib.Path(sys.argv[1]).read_text()))
