"""The wing of attendance: who was there, by day and by lesson.

Its areas, each resting on those below it: `overviews` (what registers come to), `registers` (how they are marked and
corrected), `school_days`, `codes` and `settings`. Their tables are in `models`; `calendar` tells on which days school
is open, and `sums` what counts of a register.
"""
