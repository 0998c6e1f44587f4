"""Metadata of writes: owners, the uid of an update, and managedFields that cannot be read."""

from __future__ import annotations

from tests.apiserver.client import CONFIG_MAPS, MERGE_PATCH, Client, config_map

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}


def test_an_owner_that_is_written_twice_is_stored_once(client: Client) -> None:
    made = client.post(CONFIG_MAPS, config_map(ownerReferences=[OWNER, OWNER]))
    assert made.json["metadata"]["ownerReferences"] == [OWNER]
    (warning,) = (value for name, value in made.headers if name == "warning")
    assert "duplicate entries; API server dedups" in warning
    assert warning.endswith('UID(s) observed: u"')
    twice = {"metadata": {"ownerReferences": [OWNER, OWNER]}}
    changed = client.patch(f"{CONFIG_MAPS}/m", twice, MERGE_PATCH)
    (warning,) = (value for name, value in changed.headers if name == "warning")
    assert "after mutating admission happens" in warning


def test_an_update_of_another_object_of_the_same_name_is_a_conflict(client: Client) -> None:
    client.post(CONFIG_MAPS, config_map())
    reply = client.put(f"{CONFIG_MAPS}/m", config_map(uid="other"))
    assert (reply.status, reply.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: other" in reply.message


def test_managed_fields_that_cannot_be_read_are_left_as_they_are(client: Client) -> None:
    made = client.post(CONFIG_MAPS, config_map()).json
    for entry in ({"manager": "x"}, {"operation": "Update", "apiVersion": "v1"}):
        reply = client.put(f"{CONFIG_MAPS}/m", config_map(managedFields=[entry]))
        assert reply.status == 200
        managers = [each["manager"] for each in reply.json["metadata"]["managedFields"]]
        assert managers == [each["manager"] for each in made["metadata"]["managedFields"]]
