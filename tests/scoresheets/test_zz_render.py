from tests.scoresheets.sheets import download
from tests.sheets.workbooks import saved
def test_it(api, make):
    import random
    cohort = make.cohort(make.classroom(name="JSS 1 Gold"))
    subject, term = make.cohort_subject(cohort, make.subject(name="Mathematics", code="MTH")), make.term({"id": cohort["session"]})
    first=["Adaeze","Olúwaṣeun","Chukwuemeka Emmanuel-Oluwatobiloba","Zainab","Ìfẹ́","Musa","=Ngozi","Tamunodiepriye"]
    last=["Okonkwo","Bàlógun","Abdullahi","Ọláyínká-Fashola-Williams","Eze","Danjuma"]
    made=[make.student(first_name=first[i%8],last_name=last[i%6],admission_number=f"QC/2025/{i:04}") for i in range(45)]
    make.enrolled(cohort,*made)
    a=make.assessment(subject,term,name="Second continuous assessment",total_points=20,file_name="maths ca2.xlsx")
    for m in made[:20]: make.entry(a,m["id"],cohort["id"],random.choice([12.5,7,20,0,15.25]))
    r=api.get(f"/assessments/{a['id']}/download-sheet")
    open("/tmp/scores/sheet.xlsx","wb").write(r.data)
