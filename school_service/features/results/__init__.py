"""Results: computed of scores, released, and frozen in report cards; promotions and graduations follow from them.

- `figures`: percents, grades, positions and averages, live or as they were published; broadsheets
- `submissions`: a teacher hands the results of a subject in
- `takers`: a subject becomes elective or compulsory, students take it or drop it
- `publications`: a batch's results of a term are released, and frozen in report cards
- `transcripts`: everything published of a student
- `graduates`: students leaving the school with its last class
- `promotions`: the move of students into classes of the next session
- `report_cards`: cards and transcripts on paper, and their verification by third parties
"""
