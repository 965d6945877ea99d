"""Clients of the hub's REST API from PyPI, every operation they have, over TLS.

What they do wrong themselves is listed with the check that shows it, and not worked around."""

import datetime
import json
import os
import time


def operations(check, name):
    """A runner that counts an operation as failed when it raises."""

    def run(statement, body, holds=lambda _: True):
        try:
            value = body()
            check(name, statement, holds(value))
            return value
        except Exception as error:  # noqa: BLE001: every kind of failure is one failed check
            check(name, statement, False, repr(error)[:300])
            return None

    return run


def unofficial(check, server, full, device, handle):
    """azure-notification-hub-unofficial: a port of the JavaScript SDK.

    Known faults of its own: a test send is a header that no hub knows, so that it is a real send; an answer's Location is thrown away, so
    that a caller cannot learn the id of a notification; the feedback address is parsed as JSON, which it is not."""
    os.environ["SSL_CERT_FILE"] = server["ca"]
    import azure_notification_hub as anh

    name = "azure-notification-hub-unofficial"
    run = operations(check, name)
    client = anh.NotificationHubsClient(connection_string=full, hub_name="tidings")
    registrations = run("registrations are listed", client.list_registrations, lambda found: len(found) == 2)
    first = registrations[0]["RegistrationId"]
    run("one registration is read", lambda: client.get_registration(first), lambda one: one["RegistrationId"] == first)

    # Sends that a device shows.
    apple = anh.create_apple_notification(body='{"aps":{"alert":"native"}}')
    run("a native notification to a tag expression is taken", lambda: client.send_notification(apple, tag_expression="username:alice && !x"))
    check(name, "the device shows it", device.line("notification")["text"] == "native")
    template = anh.create_template_notification(body='{"messageParam":"templated"}')
    run("a template notification to a tag is taken", lambda: client.send_notification(template, tag_expression="World"))
    check(name, "the device shows it", device.line("notification")["text"] == "templated")
    run("a broadcast is taken", lambda: client.send_broadcast_notification(apple))
    check(name, "the device shows it", device.line("notification")["text"] == "native")

    # Every other format; nobody has these tags.
    formats = {
        "gcm": anh.create_fcm_legacy_notification(body='{"data":{"message":"x"}}'),
        "fcmv1": anh.create_fcm_v1_notification(body='{"message":{"data":{"message":"x"}}}'),
        "windows toast": anh.create_windows_toast_notification(body="<toast><visual><binding><text>x</text></binding></visual></toast>"),
        "windows tile": anh.create_windows_tile_notification(body="<tile><visual/></tile>"),
        "windows badge": anh.create_windows_badge_notification(body='<badge value="3"/>'),
        "windows raw": anh.create_windows_raw_notification(body="raw"),
        "windowsphone": anh.create_windowsphone_notification(
            body='<wp:Notification xmlns:wp="WPNotification"><wp:Toast><wp:Text1>x</wp:Text1></wp:Toast></wp:Notification>'),
        "adm": anh.create_adm_notification(body='{"data":{"message":"x"}}'),
        "baidu": anh.create_baidu_notification(body='{"title":"x","description":"y"}'),
        "browser": anh.create_browser_notification({"title": "x", "body": "y"}),
        "xiaomi": anh.create_xiaomi_notification(body='{"payload":"x"}'),
    }
    for form, notification in formats.items():
        run(f"a {form} notification is taken", lambda notification=notification: client.send_notification(notification, tag_expression="nobody"))
    run("time to live and urgency are taken",
        lambda: client.send_notification(formats["browser"], tag_expression="nobody", ttl=60, urgency="high"))

    # Schedules.
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    run("a notification is scheduled", lambda: client.schedule_notification(later, apple, tag_expression="nobody"))
    run("a broadcast is scheduled", lambda: client.schedule_broadcast_notification(later, template))
    refused(check, name, anh, "an unknown schedule cannot be cancelled: 404", 404, lambda: client.cancel_scheduled_notification("none"))
    refused(check, name, anh, "an unknown notification has no outcome: 404", 404, lambda: client.get_notification_outcome_details("none"))
    refused(check, name, anh, "a bad payload is refused: 400", 400,
            lambda: client.send_notification(anh.create_apple_notification(body="{"), tag_expression="x"))
    refused(check, name, anh, "a bad expression is refused: 400", 400, lambda: client.send_notification(apple, tag_expression="a &&"))

    # Installations.
    installation = {"installationId": "peer-1", "platform": "apns", "pushChannel": handle, "tags": ["peer"],
                    "templates": {"t": {"body": '{"aps":{"alert":"$(m)"}}'}}}
    run("an installation is made", lambda: client.create_or_update_installation(installation))
    run("it is read", lambda: client.get_installation("peer-1"), lambda one: one["tags"] == ["peer"] and one["platform"] == "apns")
    run("it is patched", lambda: client.update_installation("peer-1", [{"op": "add", "path": "/tags", "value": "plum"}]))
    run("the patch shows", lambda: client.get_installation("peer-1"), lambda one: one["tags"] == ["peer", "plum"])
    run("a notification to its id is taken",
        lambda: client.send_notification(anh.create_apple_notification(body='{"aps":{"alert":"installed"}}'),
                                         tag_expression="$InstallationId:{peer-1}"))
    check(name, "the device shows it", device.line("notification")["text"] == "installed")
    browser = anh.create_browser_installation("peer-2", {"endpoint": "https://push.example/1", "p256dh": "BPk", "auth": "x"}, tags=["web"])
    run("a browser's installation is made", lambda: client.create_or_update_installation(browser))
    run("its channel comes back as it was", lambda: client.get_installation("peer-2"),
        lambda one: one["pushChannel"] == browser["pushChannel"])
    run("it is deleted", lambda: client.delete_installation("peer-2"))
    run("an installation is deleted", lambda: client.delete_installation("peer-1"))
    refused(check, name, anh, "it is gone: 404", 404, lambda: client.get_installation("peer-1"))

    # The client parses the address as JSON; the answer is the plain text that every other SDK wants.
    try:
        client.get_feedback_container_url()
        check(name, "the feedback address fails in the client (its own fault)", False)
    except json.JSONDecodeError:
        check(name, "the feedback address fails in the client (its own fault)", True)
    run("a registration is deleted", lambda: client.delete_registration(first))
    refused(check, name, anh, "it is gone: 404", 404, lambda: client.get_registration(first))


def refused(check, name, anh, statement, status, body):
    try:
        body()
        check(name, statement, False, "it was taken")
    except anh.AzureNHError as error:
        check(name, statement, error.status_code == status, error.status_code)


def rest_python(check, server, full, device, handle):
    """notificationhubs-rest-python: sends alone, and it insists on 201.

    Known fault of its own: the T of a schedule time stands in quotes."""
    os.environ["REQUESTS_CA_BUNDLE"] = server["ca"]
    from notificationhubs_rest_python.NotificationHub import AzureNotificationHub

    name = "notificationhubs-rest-python"
    run = operations(check, name)
    hub = AzureNotificationHub(full, "tidings", 0)
    taken = lambda answer: answer[0] == 201  # noqa: E731
    apple = {"aps": {"alert": "rest"}}
    run("a direct notification is taken", lambda: hub.send_apple_notification(True, apple, device_handle=handle), taken)
    check(name, "the device shows it", device.line("notification")["text"] == "rest")
    run("tags as a set are taken", lambda: hub.send_apple_notification(False, apple, tags={"nobody", "noone"}), taken)
    run("a google notification is taken", lambda: hub.send_google_notification(False, {"data": {"message": "x"}}, tags="nobody"), taken)
    run("an amazon notification is taken", lambda: hub.send_amazon_notification(False, {"data": {"message": "x"}}, tags="nobody"), taken)
    run("a baidu notification is taken", lambda: hub.send_baidu_notification(False, {"title": "x", "description": "y"}, tags="nobody"), taken)
    toast = "<toast><visual><binding template=\"ToastText01\"><text id=\"1\">x</text></binding></visual></toast>"
    run("a windows notification is taken", lambda: hub.send_windows_notification(False, toast, tags="nobody"), taken)
    phone = '<wp:Notification xmlns:wp="WPNotification"><wp:Toast><wp:Text1>x</wp:Text1></wp:Toast></wp:Notification>'
    run("a windows phone notification is taken", lambda: hub.send_windows_phone_notification(False, phone, tags="nobody"), taken)
    run("a template notification is taken", lambda: hub.send_template_notification({"messageParam": "x"}, tags="nobody"), taken)
    later = datetime.datetime.utcfromtimestamp(time.time() + 3600)
    run("a scheduled notification is taken, quotes and all",
        lambda: hub.send_apple_notification(False, apple, tags="nobody", scheduled_time=later), taken)
    run("a scheduled template notification is taken",
        lambda: hub.send_template_notification({"messageParam": "x"}, tags="nobody", scheduled_time=later), taken)
    debug = AzureNotificationHub(full, "tidings", 1)
    run("a debug (test) send is taken", lambda: debug.send_apple_notification(True, apple, device_handle=handle), taken)
    check(name, "the device shows it", device.line("notification")["text"] == "rest")
    AzureNotificationHub(full, "tidings", 0)
    try:
        hub.send_apple_notification(False, {"aps": 1}, tags="a &&")
        check(name, "a bad expression raises", False)
    except Exception as error:  # noqa: BLE001: the client raises the base class
        check(name, "a bad expression raises", "400" in str(error), error)
