"""The story of a school that is restored from the backup of a release: its results are published again."""

from __future__ import annotations

from collections.abc import Iterator

from tests.features.results.golden.school import GoldenSchool, SchoolClass
from tests.features.results.golden.story import Moment

TERMS = ("FIRST", "SECOND")


def restored(school: GoldenSchool) -> Iterator[Moment]:
    """Read both terms as they were published, correct them, publish them again, and read them anew."""
    school.clock.go_to("2026-05-04")
    of = _find(school)
    both = tuple((of, term) for term in TERMS)
    yield Moment("as restored", both, whole=True)
    for term in reversed(TERMS):
        for arm in of.arms:
            school.reopen(of, arm, term)
    yield Moment("under review", both)
    someone = of.known[-1]
    school.correct(of, "SECOND", "Mathematics", someone, 0.05)
    school.publish(of, "FIRST")
    school.publish(of, "SECOND")
    yield Moment("published again", both, whole=True)


def _find(school: GoldenSchool) -> SchoolClass:
    """Find the class, its students, papers and publications."""
    get = school.read
    (cohort,) = get("/cohorts")
    (session,) = get("/sessions")
    batches = get(f"/cohorts/{cohort['id']}/batches")
    of = SchoolClass("JSS 1", session["name"], cohort, {batch["name"]: batch["id"] for batch in batches})
    school.labels |= {batch: f"JSS 1 {arm}" for arm, batch in of.arms.items()}
    for student in get("/students?pageSize=50")["data"]:
        school.ability[student["id"]] = 1
        of.known.append(school.label(student, student["admission_number"])["id"])
    for taught in get("/cohort-subjects?pageSize=50")["data"]:
        of.subjects[taught["subject"]] = school.label(taught, taught["subject"])["id"]
    for term in get("/terms"):
        school.terms[session["name"], term["term"]] = term
        for name, subject in of.subjects.items():
            papers = get(f"/assessments?cohort={cohort['id']}&subject={subject}&term={term['id']}")
            of.papers[name, term["term"]] = [paper for paper in papers["data"] if paper["category"] == "EXAM"]
    for made in reversed(get("/publications?pageSize=50")["data"]):
        school.note(made)
    return of
