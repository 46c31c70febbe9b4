"""The first settings of a new school: the default departments, categories, positions, grade bands and traits.

Sources: the grade bands are those of the West African Examinations Council (WAEC); the traits those of
docs/rules/observations.md, "Traits".
"""

from __future__ import annotations

DEPARTMENTS = (
    "Administration",
    "Bursary",
    "Commercial",
    "Humanities",
    "Languages",
    "Library",
    "Mathematics",
    "Sciences",
    "Vocational and Technical",
)
EMPLOYEE_CATEGORIES = ("Contract", "Non-teaching", "Teaching")
POSITIONS = (
    "Principal",
    "Vice Principal (Academic)",
    "Vice Principal (Administration)",
    "Head of Department",
    "Teacher",
    "Guidance Counsellor",
    "Bursar",
    "Registrar",
    "Librarian",
    "Laboratory Technician",
    "School Nurse",
    "Security Officer",
)
GRADE_BANDS = (
    (75, 100, "A1", "Excellent"),
    (70, 74, "B2", "Very Good"),
    (65, 69, "B3", "Good"),
    (60, 64, "C4", "Credit"),
    (55, 59, "C5", "Credit"),
    (50, 54, "C6", "Credit"),
    (45, 49, "D7", "Pass"),
    (40, 44, "E8", "Pass"),
    (0, 39, "F9", "Fail"),
)
"""Lower and upper threshold in percent, letter, remarks."""
TRAITS = {
    "AFFECTIVE": (
        "punctuality",
        "neatness",
        "honesty",
        "reliability",
        "relationship with others",
        "politeness",
        "alertness",
        "self control",
        "attentiveness",
        "perseverance",
    ),
    "PSYCHOMOTOR": (
        "handwriting",
        "games and sports",
        "drawing and arts",
        "painting",
        "construction",
        "musical skills",
        "flexibility",
        "handling tools",
    ),
}
"""The traits of each metric type, in the order of the sheets."""
