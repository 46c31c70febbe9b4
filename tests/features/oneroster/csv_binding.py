"""The CSV binding of OneRoster 1.2 as far as a set of files is held against it: 1EdTech, final release, 1.2.1.

Of the tables of https://www.imsglobal.org/spec/oneroster/v1p2/bind/csv, as other programs that read and write such
files have them, and not of this program: a column for each line, in the order of the standard, `!` where a value is
required in a set that is bulk, and what it may be.
"""

from __future__ import annotations

import csv
import re
from datetime import date
from io import BytesIO, StringIO
from uuid import UUID
from zipfile import ZipFile

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
resourceSourcedIds   text
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
weight               number
""",
    "lineItems": """
title              ! text
description          text
assignDate         ! date
dueDate            ! date
classSourcedId     ! ->classes
categorySourcedId  ! ->categories
resultValueMin       number
resultValueMax       number
academicSessionSourcedId ! ->academicSessions
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

Rows = list[dict[str, str]]


def columns_of(file: str) -> list[tuple[str, bool, str]]:
    """The columns of a file: name, whether a value is required, what it may be."""
    found = []
    for line in (HEADER + TABLES[file]).strip().splitlines():
        if not line:
            continue
        name, *others = line.split(maxsplit=2)
        required = others[0] == "!"
        found.append((name, required, others[-1] if required else line.split(maxsplit=1)[1].strip()))
    return found


def read_zip(content: bytes) -> tuple[dict[str, str], dict[str, Rows]]:
    """Read a set of files, holding it against the binding: the manifest's properties, and the rows of each file."""
    with ZipFile(BytesIO(content)) as archive:
        assert archive.testzip() is None
        texts = {name.removesuffix(".csv"): archive.read(name) for name in archive.namelist()}
    manifest = dict(_records(texts.pop("manifest"), ["propertyName", "value"]))
    assert list(manifest) == MANIFEST.split()
    assert manifest["manifest.version"] == "1.0"
    assert manifest["oneroster.version"] == "1.2"
    states = {name.removeprefix("file."): value for name, value in manifest.items() if "file." in name}
    assert set(states.values()) <= {"bulk", "absent"}
    assert set(texts) == {name for name, state in states.items() if state == "bulk"}
    files = {}
    for name, text in texts.items():
        columns = [column for column, _, _ in columns_of(name)]
        files[name] = [dict(zip(columns, row, strict=True)) for row in _records(text, columns)]
    for name, rows in files.items():
        _check(name, rows, files)
    return manifest, files


def _records(content: bytes, header: list[str]) -> list[list[str]]:
    """The records of a file in UTF-8 without a byte order mark, whose lines end with CRLF (RFC 4180)."""
    text = content.decode("utf-8")
    assert not text.startswith("\ufeff")
    assert text.endswith("\r\n")
    first, *records = csv.reader(StringIO(text, newline=""), strict=True)
    assert first == header
    # A line feed alone stands within quotes only.
    assert "\n" not in re.sub(r'"(?:[^"]|"")*"', "", text.replace("\r\n", ""))
    return records


def _check(name: str, rows: Rows, files: dict[str, Rows]) -> None:
    ids = [row["sourcedId"] for row in rows]
    assert len(set(ids)) == len(ids), f"{name} has an id twice"
    known = {file: {row["sourcedId"] for row in found} for file, found in files.items()}
    for column, required, kind in columns_of(name):
        for row in rows:
            value = row[column]
            assert value or not required, f"{name}.{column} is required: {row}"
            if value:
                assert fits(value, kind, known), f"{name}.{column} is {value!r}, not {kind}"


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
        case "role":
            return value in ROLES.split()
        case "date":
            return date.fromisoformat(value).isoformat() == value
        case "year":
            return re.fullmatch(r"\d{4}", value) is not None
        case "number":
            return re.fullmatch(r"-?\d+(\.\d+)?", value) is not None
        case "list":
            return bool(next(csv.reader([value], strict=True)))
        case "text":
            return value == value.strip()
    return value in kind.split("|")
