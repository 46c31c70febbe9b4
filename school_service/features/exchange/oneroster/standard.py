"""OneRoster 1.2, CSV binding (1EdTech): the files of a set, and the columns of the files written by the service.

Source: https://www.imsglobal.org/spec/oneroster/v1p2/bind/csv, the final release 1.2, named by the manifest; its
correction 1.2.1 took the column `resourceSourcedIds` of `users` away. Columns come in the standard's order; `status`
and `dateLastModified` are blank in a bulk set.
"""

from __future__ import annotations

MANIFEST_VERSION = "1.0"
VERSION = "1.2"
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

SCHOOL_YEAR, TERM = "schoolYear", "term"
SCHEDULED, HOMEROOM = "scheduled", "homeroom"
STUDENT, TEACHER, SITE_ADMINISTRATOR = "student", "teacher", "siteAdministrator"
PRIMARY, SECONDARY = "primary", "secondary"
FULLY_GRADED, NOT_SUBMITTED, EXEMPT = "fully graded", "not submitted", "exempt"
MALE, FEMALE = "male", "female"
TRUE, FALSE = "true", "false"
