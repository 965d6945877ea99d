"""azure-mgmt-notificationhubs: the 28 operations of its Resource Manager client, over TLS, against the listener of `arm.address`."""

import pathlib
import time


class Credential:
    """What azure-identity would bring: the operator's token."""

    def __init__(self, token):
        self.token = token

    def get_token(self, *scopes, **options):
        from azure.core.credentials import AccessToken

        return AccessToken(self.token, int(time.time()) + 3600)


def management(check, run, server):
    from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
    from azure.mgmt.notificationhubs import NotificationHubsManagementClient

    token = pathlib.Path(server["armToken"]).read_text().strip()
    client = NotificationHubsManagementClient(Credential(token), "sub-1", base_url=server["arm"], connection_verify=server["ca"])
    namespaces, hubs = client.namespaces, client.notification_hubs
    group, space = "group-1", "orchard"

    run("operations are listed", lambda: list(client.operations.list()), lambda found: len(found) == 2)
    run("a namespace's name is free", lambda: namespaces.check_availability({"name": space}), lambda answer: answer.is_availiable is True)
    run("a namespace is made", lambda: namespaces.create_or_update(group, space, {"location": "here", "sku": {"name": "Standard"}}),
        lambda made: made.name == space and made.location == "here")
    run("it is read", lambda: namespaces.get(group, space), lambda one: one.status == "Active" and one.sku.name == "Standard")
    run("it is patched", lambda: namespaces.patch(group, space, {"tags": {"team": "plums"}}), lambda one: one.tags == {"team": "plums"})
    run("namespaces of a group are listed", lambda: list(namespaces.list(group)), lambda found: [one.name for one in found] == [space])
    run("all namespaces are listed", lambda: list(namespaces.list_all()), lambda found: len(found) == 1)

    rule = {"properties": {"rights": ["Listen", "Send"]}}
    run("a rule of the namespace is made", lambda: namespaces.create_or_update_authorization_rule(group, space, "sender", rule),
        lambda made: made.rights == ["Listen", "Send"])
    run("it is read", lambda: namespaces.get_authorization_rule(group, space, "sender"), lambda one: one.key_name == "sender")
    run("rules are listed", lambda: list(namespaces.list_authorization_rules(group, space)), lambda found: len(found) == 2)
    keys = run("its keys are told", lambda: namespaces.list_keys(group, space, "sender"),
               lambda found: found.primary_connection_string.startswith("Endpoint=sb://"))
    new = run("its primary key is made anew", lambda: namespaces.regenerate_keys(group, space, "sender", {"policyKey": "PrimaryKey"}),
              lambda found: found.primary_key != keys.primary_key)
    check("azure-mgmt-notificationhubs", "the secondary key stays", new.secondary_key == keys.secondary_key)
    run("it is deleted", lambda: namespaces.delete_authorization_rule(group, space, "sender"))

    run("a hub's name is free", lambda: hubs.check_notification_hub_availability(group, space, {"name": "garden"}),
        lambda answer: answer.is_availiable is True)
    run("a hub is made", lambda: hubs.create_or_update(group, space, "garden", {"location": "here"}), lambda made: made.name == "garden")
    run("its name is taken", lambda: hubs.check_notification_hub_availability(group, space, {"name": "garden"}),
        lambda answer: answer.is_availiable is False)
    run("it is read", lambda: hubs.get(group, space, "garden"), lambda one: len(one.authorization_rules) == 2)
    run("it is patched with a credential",
        lambda: hubs.patch(group, space, "garden", {"properties": {"admCredential": {"properties": {
            "clientId": "id", "clientSecret": "secret", "authTokenUrl": "https://api.amazon.com/auth/O2/token"}}}}))
    run("its credentials are told", lambda: hubs.get_pns_credentials(group, space, "garden"),
        lambda found: found.adm_credential.client_id == "id" and found.apns_credential is None)
    run("hubs are listed", lambda: list(hubs.list(group, space)), lambda found: "garden" in [one.name for one in found])
    run("a debug send is taken", lambda: hubs.debug_send(group, space, "garden", {"data": {"message": "x"}}),
        lambda answer: answer.success == 0 and answer.failure == 0)
    run("a rule of the hub is made", lambda: hubs.create_or_update_authorization_rule(group, space, "garden", "listener", {"properties": {"rights": ["Listen"]}}),
        lambda made: made.rights == ["Listen"])
    run("it is read", lambda: hubs.get_authorization_rule(group, space, "garden", "listener"), lambda one: one.name == "listener")
    run("rules are listed", lambda: list(hubs.list_authorization_rules(group, space, "garden")), lambda found: len(found) == 3)
    run("its keys are told", lambda: hubs.list_keys(group, space, "garden", "listener"), lambda found: len(found.primary_key) == 44)
    run("its secondary key is made anew", lambda: hubs.regenerate_keys(group, space, "garden", "listener", {"policyKey": "SecondaryKey"}))
    run("it is deleted", lambda: hubs.delete_authorization_rule(group, space, "garden", "listener"))
    run("the hub is deleted", lambda: hubs.delete(group, space, "garden"))
    raises(check, "the hub is gone", ResourceNotFoundError, lambda: hubs.get(group, space, "garden"))
    raises(check, "another namespace is refused", ResourceExistsError, lambda: namespaces.create_or_update(group, "other", {"location": "here"}))
    run("the namespace is deleted", lambda: namespaces.begin_delete(group, space).wait())
    raises(check, "it is gone", ResourceNotFoundError, lambda: namespaces.get(group, space))
    other = NotificationHubsManagementClient(Credential("wrong"), "sub-1", base_url=server["arm"], connection_verify=server["ca"])
    raises(check, "another token is refused", Exception, lambda: other.namespaces.get(group, space))


def raises(check, statement, kind, body):
    try:
        body()
        check("azure-mgmt-notificationhubs", statement, False, "it was taken")
    except kind as error:
        check("azure-mgmt-notificationhubs", statement, True, getattr(error, "status_code", ""))
