"""Results: what is computed of scores, released and frozen in report cards, and what follows.

- `figures`: percents, grades, positions and averages, live or as they were published; broadsheets
- `submissions`: a teacher hands the results of a subject in
- `publications`: a batch's results of a term are released, and frozen in report cards
- `transcripts`: all that was published of a student
- `graduates`: students who left the school with its last class
- `promotions`: who goes on into which class of the next session
- `report_cards`: cards and transcripts on paper, and their verification by third parties
"""
