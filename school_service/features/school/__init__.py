"""School: the records of a school before anybody is in it.

- `settings`: the choices of a school; departments, employee categories, positions
- `letterheads`: name, address, logo and signature on paper
- `geography`: nationalities, states and local government areas, the same for every school
- `classrooms`: the structure of the school, such as JSS 1
- `subjects`: subjects such as Mathematics, under the path `/templates`
- `sessions`: academic sessions (years) and their terms
- `cohorts`: a classroom in an academic session, its arms (batches), and the sheets of a class
"""
