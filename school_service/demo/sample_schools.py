"""The sample schools."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import NAMESPACE_URL, UUID, uuid5

from school_service.demo.people import EDO, EFIK, HAUSA, IGBO, TIV, YORUBA, Names


@dataclass(frozen=True)
class SampleSchool:
    """A sample school; its id is made of its code, unless it has another: every start finds it again.

    `state`: its state of Nigeria. `language`: the Nigerian language it teaches, name and code. `peoples`: the peoples
    of its children, and their weights. `colour`: of its badge, as red, green and blue.
    """

    code: str
    short_name: str
    name: str
    address: str
    state: str
    phone_number: str
    email_address: str
    motto: str
    language: tuple[str, str]
    colour: tuple[int, int, int]
    peoples: tuple[tuple[Names, int], ...]
    school_id: UUID | None = None

    @property
    def id(self) -> UUID:
        """The school's id; of a school of the demo the same in every installation."""
        return self.school_id or uuid5(NAMESPACE_URL, f"urn:school-service:demo:{self.code}")

    @property
    def details(self) -> dict[str, str]:
        """The school's details in the registry beside its name, and its short name."""
        return {
            "short_name": self.short_name,
            "address": self.address,
            "phone_number": self.phone_number,
            "email_address": self.email_address,
            "motto": self.motto,
        }


SCHOOLS = (
    SampleSchool(
        code="QAC",
        short_name="queen-amina",
        name="Queen Amina College, Zaria",
        address="14 Gaskiya Road, Tudun Wada, Zaria, Kaduna State",
        state="Kaduna",
        phone_number="+2348030001401",
        email_address="office@queen-amina.example.org",
        motto="Ilimi haske ne",
        language=("Hausa", "HAU"),
        colour=(20, 80, 60),
        peoples=((HAUSA, 5), (TIV, 2), (IGBO, 1), (YORUBA, 1), (EDO, 1)),
    ),
    SampleSchool(
        code="UHS",
        short_name="unity-high",
        name="Unity High School, Ìbàdàn",
        address="3 Òkè-Àdó Street, Ìbàdàn, Ọ̀yọ́ State",
        state="Oyo",
        phone_number="+2348050002602",
        email_address="office@unity-high.example.org",
        motto="Ìmọ̀ ni agbára",
        language=("Yorùbá", "YOR"),
        colour=(28, 52, 120),
        peoples=((YORUBA, 5), (IGBO, 2), (EFIK, 1), (EDO, 1), (HAUSA, 1)),
    ),
)
