"""OneRoster, CSV binding (1EdTech): the files of a set, and the columns of the files written by the service.

Sources: https://www.imsglobal.org/spec/oneroster/v1p2/bind/csv, the final release 1.2, named by the manifest; its
correction 1.2.1 took the column `resourceSourcedIds` of `users` away.
https://www.imsglobal.org/oneroster-v11-final-csv-tables, the final release 1.1. Columns come in the standard's order;
`status` and `dateLastModified` are blank in a bulk set.
"""

from __future__ import annotations

from dataclasses import dataclass

MANIFEST_VERSION = "1.0"
BULK, ABSENT = "bulk", "absent"

FILES = (
    "academicSessions",
    "categories",
    "classes",
    "classResources",
    "courses",
    "courseResources",
    "demographics",
    "enrollments",
    "lineItemLearningObjectiveIds",
    "lineItems",
    "lineItemScoreScales",
    "orgs",
    "resources",
    "resultLearningObjectiveIds",
    "results",
    "resultScoreScales",
    "roles",
    "scoreScales",
    "userProfiles",
    "userResources",
    "users",
)
"""Every file of a manifest."""

_BEGINNING = ("sourcedId", "status", "dateLastModified")

COLUMNS = {
    "academicSessions": (
        *_BEGINNING,
        *("title", "type", "startDate", "endDate", "parentSourcedId", "schoolYear"),
    ),
    "orgs": (*_BEGINNING, "name", "type", "identifier", "parentSourcedId"),
    "courses": (
        *_BEGINNING,
        *("schoolYearSourcedId", "title", "courseCode", "grades", "orgSourcedId", "subjects", "subjectCodes"),
    ),
    "classes": (
        *_BEGINNING,
        *("title", "grades", "courseSourcedId", "classCode", "classType", "location", "schoolSourcedId"),
        *("termSourcedIds", "subjects", "subjectCodes", "periods"),
    ),
    "users": (
        *_BEGINNING,
        *("enabledUser", "username", "userIds", "givenName", "familyName", "middleName", "identifier"),
        *("email", "sms", "phone", "agentSourcedIds", "grades", "password", "userMasterIdentifier"),
        *("resourceSourcedIds", "preferredGivenName", "preferredMiddleName", "preferredFamilyName"),
        *("primaryOrgSourcedId", "pronouns"),
    ),
    "roles": (
        *_BEGINNING,
        *("userSourcedId", "roleType", "role", "beginDate", "endDate", "orgSourcedId"),
        "userProfileSourcedId",
    ),
    "enrollments": (
        *_BEGINNING,
        *("classSourcedId", "schoolSourcedId", "userSourcedId", "role", "primary", "beginDate", "endDate"),
    ),
    "demographics": (
        *_BEGINNING,
        *("birthDate", "sex", "americanIndianOrAlaskaNative", "asian", "blackOrAfricanAmerican"),
        *("nativeHawaiianOrOtherPacificIslander", "white", "demographicRaceTwoOrMoreRaces"),
        *("hispanicOrLatinoEthnicity", "countryOfBirthCode", "stateOfBirthAbbreviation", "cityOfBirth"),
        "publicSchoolResidenceStatus",
    ),
    "categories": (*_BEGINNING, "title", "weight"),
    "lineItems": (
        *_BEGINNING,
        *("title", "description", "assignDate", "dueDate", "classSourcedId", "categorySourcedId"),
        *("academicSessionSourcedId", "resultValueMin", "resultValueMax", "schoolSourcedId"),
    ),
    "results": (
        *_BEGINNING,
        *("lineItemSourcedId", "studentSourcedId", "scoreStatus", "score", "scoreDate", "comment"),
        *("textScore", "classSourcedId", "inProgress", "incomplete", "late", "missing"),
    ),
}
"""The columns of the files written by the service, in this order: records named in one stand in those before."""

_SAME = ("academicSessions", "orgs", "courses", "classes", "enrollments", "demographics")

COLUMNS_1_1 = {
    **{name: COLUMNS[name] for name in _SAME},
    "users": (
        *_BEGINNING,
        *("enabledUser", "orgSourcedIds", "role", "username", "userIds", "givenName", "familyName"),
        *("middleName", "identifier", "email", "sms", "phone", "agentSourcedIds", "grades", "password"),
    ),
    "categories": (*_BEGINNING, "title"),
    "lineItems": (
        *_BEGINNING,
        *("title", "description", "assignDate", "dueDate", "classSourcedId", "categorySourcedId"),
        *("gradingPeriodSourcedId", "resultValueMin", "resultValueMax"),
    ),
    "results": (
        *_BEGINNING,
        *("lineItemSourcedId", "studentSourcedId", "scoreStatus", "score", "scoreDate", "comment"),
    ),
}
"""The same of 1.1: roles are columns of `users`."""

_FILES_1_1 = (
    *("academicSessions", "categories", "classes", "classResources", "courses", "courseResources"),
    *("demographics", "enrollments", "lineItems", "orgs", "resources", "results", "users"),
)


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the standard: every file of its manifest, and the columns of those written by the service."""

    number: str
    files: tuple[str, ...]
    columns: dict[str, tuple[str, ...]]


V1_1 = Version("1.1", _FILES_1_1, COLUMNS_1_1)
V1_2 = Version("1.2", FILES, COLUMNS)
VERSIONS = {version.number: version for version in (V1_1, V1_2)}

SCHOOL_YEAR, TERM = "schoolYear", "term"
SCHEDULED, HOMEROOM = "scheduled", "homeroom"
STUDENT, TEACHER, SITE_ADMINISTRATOR = "student", "teacher", "siteAdministrator"
ADMINISTRATOR_1_1 = "administrator"
PRIMARY, SECONDARY = "primary", "secondary"
FULLY_GRADED, NOT_SUBMITTED, EXEMPT = "fully graded", "not submitted", "exempt"
MALE, FEMALE = "male", "female"
TRUE, FALSE = "true", "false"
