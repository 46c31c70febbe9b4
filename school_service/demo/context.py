"""The context of the steps for filling a school."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from random import Random
from uuid import UUID
from zoneinfo import ZoneInfo

from school_service.auth.principal import Principal, VerifiedToken
from school_service.demo.people import Population
from school_service.demo.sample_schools import SampleSchool
from school_service.features.school.models import TIME_ZONE
from tenants.clock import now

# The actor in audit entries.
CLIENT_ID = "demo"


def first_day(year: int) -> date:
    """The first day of the session beginning in a year: the second Monday of September."""
    september = date(year, 9, 8)
    return september.replace(day=8 + (7 - september.weekday()) % 7)


def _year_of_session(day: date) -> int:
    """The year of the beginning of the session around a day."""
    return day.year if day >= first_day(day.year) else day.year - 1


# The day on which the demo is made, where its schools are: they have registers up to then.
TODAY = now().astimezone(ZoneInfo(TIME_ZONE)).date()
# The year in which the current session began.
THIS_YEAR = _year_of_session(TODAY)
THIS_SESSION = f"{THIS_YEAR}/{THIS_YEAR + 1}"
LAST_SESSION = f"{THIS_YEAR - 1}/{THIS_YEAR}"


def everything_allowed() -> Principal:
    """The principal of the demo itself, with the right to everything."""
    token = VerifiedToken(None, CLIENT_ID, own=True, schools=None, granted=True, permissions=None)
    return Principal(token, frozenset(), all_permissions=True)


@dataclass
class DemoContext:
    """A sample school while it is filled: its people, and the ids of the records made so far.

    Those of `terms` are by session and term, of `students`, `cohorts` and `arms` by classroom, of
    `cohort_subjects` by classroom and subject; `teachers` are in order of employment, the others by their own
    name.
    """

    school: SampleSchool
    population: Population
    principal: Principal = field(default_factory=everything_allowed)
    sessions: dict[str, UUID] = field(default_factory=dict)
    terms: dict[tuple[str, str], UUID] = field(default_factory=dict)
    classrooms: dict[str, UUID] = field(default_factory=dict)
    subjects: dict[str, UUID] = field(default_factory=dict)
    teachers: list[UUID] = field(default_factory=list)
    students: dict[str, list[UUID]] = field(default_factory=dict)
    cohorts: dict[str, UUID] = field(default_factory=dict)
    arms: dict[str, tuple[UUID, ...]] = field(default_factory=dict)
    cohort_subjects: dict[tuple[str, str], UUID] = field(default_factory=dict)

    @classmethod
    def of(cls, school: SampleSchool) -> DemoContext:
        """Begin to fill a school; the same people come to it every time."""
        return cls(school, Population(Random(school.code), school.peoples))  # noqa: S311
