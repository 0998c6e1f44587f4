"""A driver on the SDK, as a program: `moor driver check -- python gooddriver.py`."""

from __future__ import annotations

from moorage.driver import Claim, ClaimName, ContainerEdits, Device, Driver, Prepared, run


class Good(Driver):
    name = "good.example.com"

    def devices(self) -> list[Device]:
        return [Device(name=f"good-{number}") for number in range(3)]

    def prepare(self, claim: Claim) -> list[Prepared]:
        return [
            Prepared(each, ContainerEdits(env=(f"GOOD={each.name}",))) for each in claim.devices
        ]

    def unprepare(self, claim: ClaimName) -> None:
        pass


if __name__ == "__main__":
    run(Good())
