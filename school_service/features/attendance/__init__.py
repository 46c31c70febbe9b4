"""The wing of attendance: presence and absence of students, by day and by lesson.

Its areas, each resting on those below it: `overviews` (sums and absences, from registers), `registers` (marking and
correcting them), `school_days`, `codes` and `settings`. Their tables are in `models`; `calendar` tells on which days
school is open, and `sums` adds up the marks of registers as they count.
"""
