"""Results: what is computed of scores, said beside it on report cards, released and frozen, and what follows.

- `settings`: how results are computed: weights, rounding, the pass mark
- `letterheads`: name, address, logo and signature on paper
- `term_calendars`: when a term begins and ends, how often school opened
- `figures`: percents, grades, positions and averages, live or as they were published; broadsheets
- `submissions`: a teacher hands the results of a subject in
- `publications`: a batch's results of a term are released, and frozen in report cards
- `metrics`: what is seen of a student's behaviour in a term, trait by trait, and the sheets to enter it with
- `comments`: what form teacher and principal say of a student's term, and how often the student came
- `transcripts`: all that was published of a student
- `graduates`: students who left the school with its last class
- `promotions`: who goes on into which class of the next session
- `report_cards`: cards and transcripts on paper, and their verification by third parties
"""
