"""The CSV bindings of OneRoster 1.2 and 1.1 as far as a set of files is held against them: 1EdTech, final releases.

Columns in their order, required values, types, vocabularies and the manifest are the standard's own, of the final
release 1.2 of September 2022, section 3, which IMS Japan still publishes (https://imsjapan.github.io/or12.html).
Its correction 1.2.1, which has stood at https://www.imsglobal.org/spec/oneroster/v1p2/bind/csv since 2023, is taken
from two programs that name it as their source, have nothing to do with each other or with this one, and agree:
LongsightGroup/oneroster on GitHub, which is run through 1EdTech's own sets for certification, and the gem meibo, in its
profile "CSV Binding Final Release v1.2.1". To the tables of 1.2 it is one change here: `users` lost
`resourceSourcedIds`, which is held here against 1.2, the release that the manifest names.

The columns of 1.1 are of the final release 1.1 (https://www.imsglobal.org/oneroster-v11-final-csv-tables), as two
programs read it that have nothing to do with each other or with this one: Moodle's plugin
(catalyst/moodle-enrol_oneroster, five files) and oat-sa/oneroster-import (config/v1.1). The former has the words for
roles and grades, too.

Each line is a column: `!` where a value is required in a set that is bulk, then its form. One rule of the text
is not here: that no file is without rows (docs/why/oneroster.md says why such files are there, with their header).
"""

from __future__ import annotations

import csv
import re
from datetime import date
from decimal import Decimal
from io import BytesIO, StringIO
from uuid import UUID
from zipfile import ZipFile

MANIFEST_VERSION = "1.0"

HEADER = """
sourcedId          ! id
status               blank
dateLastModified     blank
"""

TABLES = {
    "academicSessions": """
title              ! text
type               ! gradingPeriod|semester|schoolYear|term
startDate          ! date
endDate            ! date
parentSourcedId      ->academicSessions
schoolYear         ! year
""",
    "orgs": """
name               ! text
type               ! department|school|district|local|state|national
identifier           text
parentSourcedId      ->orgs
""",
    "courses": """
schoolYearSourcedId  ->academicSessions
title              ! text
courseCode           text
grades               list
orgSourcedId       ! ->orgs
subjects             list
subjectCodes         list
""",
    "classes": """
title              ! text
grades               list
courseSourcedId    ! ->courses
classCode            text
classType          ! homeroom|scheduled
location             text
schoolSourcedId    ! ->orgs
termSourcedIds     ! ->>academicSessions
subjects             list
subjectCodes         list
periods              list
""",
    "users": """
enabledUser        ! true|false
username           ! text
userIds              text
givenName          ! text
familyName         ! text
middleName           text
identifier           text
email                text
sms                  text
phone                text
agentSourcedIds      ->>users
grades               list
password             text
userMasterIdentifier text
resourceSourcedIds   blank
preferredGivenName   text
preferredMiddleName  text
preferredFamilyName  text
primaryOrgSourcedId  ->orgs
pronouns             text
""",
    "roles": """
userSourcedId      ! ->users
roleType           ! primary|secondary
role               ! role
beginDate            date
endDate              date
orgSourcedId       ! ->orgs
userProfileSourcedId text
""",
    "enrollments": """
classSourcedId     ! ->classes
schoolSourcedId    ! ->orgs
userSourcedId      ! ->users
role               ! administrator|proctor|student|teacher
primary              true|false
beginDate            date
endDate              date
""",
    "demographics": """
birthDate            date
sex                  male|female|unspecified|other
americanIndianOrAlaskaNative true|false
asian                true|false
blackOrAfricanAmerican true|false
nativeHawaiianOrOtherPacificIslander true|false
white                true|false
demographicRaceTwoOrMoreRaces true|false
hispanicOrLatinoEthnicity true|false
countryOfBirthCode   text
stateOfBirthAbbreviation text
cityOfBirth          text
publicSchoolResidenceStatus text
""",
    "categories": """
title              ! text
weight               integer
""",
    "lineItems": """
title              ! text
description          text
assignDate         ! date
dueDate            ! date
classSourcedId     ! ->classes
categorySourcedId  ! ->categories
academicSessionSourcedId ! ->academicSessions
resultValueMin       number
resultValueMax       number
schoolSourcedId    ! ->orgs
""",
    "results": """
lineItemSourcedId  ! ->lineItems
studentSourcedId   ! ->users
scoreStatus        ! exempt|fully graded|not submitted|partially graded|submitted
score                number
scoreDate          ! date
comment              text
textScore            text
classSourcedId       ->classes
inProgress           true|false
incomplete           true|false
late                 true|false
missing              true|false
""",
}  # fmt: skip

_SAME = ("academicSessions", "orgs", "enrollments", "demographics")
TABLES_1_1 = {
    **{name: TABLES[name] for name in _SAME},
    "courses": TABLES["courses"].replace("grades               list", "grades               grades"),
    "classes": TABLES["classes"].replace("grades               list", "grades               grades"),
    "users": """
enabledUser        ! true|false
orgSourcedIds      ! ->>orgs
role               ! administrator|aide|guardian|parent|proctor|relative|student|teacher
username           ! text
userIds              text
givenName          ! text
familyName         ! text
middleName           text
identifier           text
email                text
sms                  text
phone                text
agentSourcedIds      ->>users
grades               grades
password             text
""",
    "categories": """
title              ! text
""",
    "lineItems": """
title              ! text
description          text
assignDate         ! date
dueDate            ! date
classSourcedId     ! ->classes
categorySourcedId  ! ->categories
gradingPeriodSourcedId ! ->academicSessions
resultValueMin     ! number
resultValueMax     ! number
""",
    "results": """
lineItemSourcedId  ! ->lineItems
studentSourcedId   ! ->users
scoreStatus        ! exempt|fully graded|not submitted|partially graded|submitted
score              ! number
scoreDate          ! date
comment              text
""",
}

GRADES = "IT PR PK TK KG 01 02 03 04 05 06 07 08 09 10 11 12 13 PS UG Other"

ROLES = """
aide counselor districtAdministrator guardian parent principal proctor relative siteAdministrator student
systemAdministrator teacher
"""

MANIFEST = """
manifest.version oneroster.version
file.academicSessions file.categories file.classes file.classResources file.courses file.courseResources
file.demographics file.enrollments file.lineItemLearningObjectiveIds file.lineItems file.lineItemScoreScales
file.orgs file.resources file.resultLearningObjectiveIds file.results file.resultScoreScales file.roles
file.scoreScales file.userProfiles file.userResources file.users
source.systemName source.systemCode
"""

MANIFEST_1_1 = """
manifest.version oneroster.version
file.academicSessions file.categories file.classes file.classResources file.courses file.courseResources
file.demographics file.enrollments file.lineItems file.orgs file.resources file.results file.users
source.systemName source.systemCode
"""

BINDINGS = {"1.2": (TABLES, MANIFEST), "1.1": (TABLES_1_1, MANIFEST_1_1)}

Rows = list[dict[str, str]]


def columns_of(file: str, version: str = "1.2") -> list[tuple[str, bool, str]]:
    """The columns of a file: name, whether a value is required, its form."""
    columns = []
    for line in (HEADER + BINDINGS[version][0][file]).strip().splitlines():
        if not line:
            continue
        name, *others = line.split(maxsplit=2)
        required = others[0] == "!"
        columns.append((name, required, others[-1] if required else line.split(maxsplit=1)[1].strip()))
    return columns


def read_zip(content: bytes, version: str = "1.2") -> tuple[dict[str, str], dict[str, Rows]]:
    """Read a set of files, holding it against the binding: the manifest's properties, and the rows of each file."""
    with ZipFile(BytesIO(content)) as archive:
        assert archive.testzip() is None
        texts = {name.removesuffix(".csv"): archive.read(name) for name in archive.namelist()}
    manifest = dict(_records(texts.pop("manifest"), ["propertyName", "value"]))
    assert list(manifest) == BINDINGS[version][1].split()
    assert manifest["manifest.version"] == MANIFEST_VERSION
    assert manifest["oneroster.version"] == version
    states = {name.removeprefix("file."): value for name, value in manifest.items() if "file." in name}
    assert set(states.values()) <= {"bulk", "absent"}
    assert set(texts) == {name for name, state in states.items() if state == "bulk"}
    files = {}
    for name, text in texts.items():
        columns = [column for column, _, _ in columns_of(name, version)]
        files[name] = [dict(zip(columns, row, strict=True)) for row in _records(text, columns)]
    for name, rows in files.items():
        _check(name, rows, files, version)
    _check_together(files)
    return manifest, files


def _records(content: bytes, header: list[str]) -> list[list[str]]:
    """The records of a file in UTF-8 without a byte order mark, with lines that end with CRLF (RFC 4180)."""
    text = content.decode("utf-8")
    assert not text.startswith("\ufeff")
    assert text.endswith("\r\n")
    first, *records = csv.reader(StringIO(text, newline=""), strict=True)
    assert first == header
    # There are no line breaks within a field.
    lines = text.split("\r\n")
    assert len(lines) == len(records) + 2
    assert not re.search(r"[\r\n]", "".join(lines))
    return records


def _check(name: str, rows: Rows, files: dict[str, Rows], version: str) -> None:
    ids = [row["sourcedId"] for row in rows]
    assert len(set(ids)) == len(ids), f"{name} has an id twice"
    known = {file: {row["sourcedId"] for row in rows} for file, rows in files.items()}
    for column, required, kind in columns_of(name, version):
        for row in rows:
            value = row[column]
            assert value or not required, f"{name}.{column} is required: {row}"
            if value:
                assert fits(value, kind, known), f"{name}.{column} is {value!r}, not {kind}"


def _check_together(files: dict[str, Rows]) -> None:
    """Hold the files against the binding's rules of several columns and files."""
    known = {"users": {row["sourcedId"] for row in files["users"]}}
    for row in files.get("demographics", []):
        assert fits(row["sourcedId"], "->users", known), "a demographic has the id of its user"
    if "roles" in files:
        _check_roles(files["roles"], known["users"])
    teaching = [row["classSourcedId"] for row in files.get("enrollments", []) if row["primary"] == "true"]
    assert len(set(teaching)) == len(teaching), "a class has one primary teacher at most"
    for row in files.get("enrollments", []):
        assert row["primary"] != "true" or row["role"] == "teacher", "primary is of teachers alone"
    for row in files.get("academicSessions", []):
        assert row["startDate"] < row["endDate"], "the end is exclusive"
    years = {row["sourcedId"] for row in files.get("academicSessions", []) if row["type"] == "schoolYear"}
    assert {row["schoolYearSourcedId"] for row in files.get("courses", [])} <= {*years, ""}
    items = {row["sourcedId"]: row for row in files.get("lineItems", [])}
    for row in files.get("results", []):
        item = items[row["lineItemSourcedId"]]
        assert row.get("classSourcedId", "") in ("", item["classSourcedId"])
        if row["score"]:
            low, high = (Decimal(item[name]) for name in ("resultValueMin", "resultValueMax"))
            assert low <= Decimal(row["score"]) <= high


def _check_roles(roles: Rows, users: set[str]) -> None:
    primary = [(row["userSourcedId"], row["orgSourcedId"]) for row in roles if is_primary(row)]
    assert len(set(primary)) == len(primary), "of a user's roles in an org one at most is primary"
    assert {user for user, _ in primary} == users, "every user has a role"


def is_primary(role: dict[str, str]) -> bool:
    return role["roleType"] == "primary"


def fits(value: str, kind: str, known: dict[str, set[str]]) -> bool:
    """Tell whether a value is of a kind: a type, a reference, or one word of a vocabulary."""
    if kind.startswith("->>"):
        return set(value.split(",")) <= known[kind[3:]]
    if kind.startswith("->"):
        return value in known[kind[2:]]
    match kind:
        case "id":
            return str(UUID(value)) == value
        case "blank":
            return False
        case "grades":
            return set(value.split(",")) <= set(GRADES.split())
        case "role":
            return value in ROLES.split()
        case "date":
            return date.fromisoformat(value).isoformat() == value
        case "year":
            return re.fullmatch(r"\d{4}", value) is not None
        case "integer":
            return re.fullmatch(r"-?\d+", value) is not None
        case "number":
            return re.fullmatch(r"-?\d+(\.\d+)?", value) is not None
        case "list":  # its texts hold no commas, and nothing within the field is quoted
            return all(text.strip() and not text.startswith('"') for text in value.split(","))
        case "text":
            return value == value.strip()
    return value in kind.split("|")
