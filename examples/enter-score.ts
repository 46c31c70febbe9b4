// Lists students, enters a score, and handles a stale sheet: enter-score.js ADDRESS SCHOOL TOKEN ASSESSMENT.
import { schoolClient, type SchemaClassScore } from "school-service-client";

const [address = "", school = "", token = "", assessment = ""] = process.argv.slice(2);
const client = schoolClient(address, token);
const header = { "X-SCHOOL-ID": school };

const students = await client.GET("/students", { params: { header, query: { pageSize: 5 } } });
if (students.error) throw new Error(students.error.message);
for (const { admission_number, first_name, last_name } of students.data.data) {
  console.log(admission_number, first_name, last_name);
}
const params = { header, path: { id: assessment } };
let seen: SchemaClassScore | undefined;
for (const score of [1.25, 3, 3]) {
  // The second time somebody has changed what was seen, and it is read again.
  if (!seen) {
    const sheet = await client.GET("/assessments/{id}/scores", { params });
    seen = sheet.data?.find((row) => row.absence === null);
    if (!seen) throw new Error(sheet.error?.message ?? "nobody is on the sheet");
  }
  const body = [{ student: seen.student.id, score, expected: seen.score }];
  const { error } = await client.PUT("/assessments/{id}/scores", { params, body });
  console.log(error?.type === "stale" ? `read the sheet again: ${error.message}` : error?.message ?? `saved ${score}`);
  if (error?.type === "stale") seen = undefined; // 409, of a record with If-Match 412
}
