"""Excel in and out, for every sheet of the service: imports, score sheets, metric sheets.

`columns`   what a column of a sheet is, for writing and reading alike
`writing`   workbooks made to be filled in
`package`   opening a workbook that anyone may have made, within fixed bounds
`reading`   its rows by column, and what is wrong with them
`problems`  how bad rows are told
"""
