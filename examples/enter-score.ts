// Lists students, enters a score, and sees that a sheet is stale: enter-score.js ADDRESS SCHOOL TOKEN ASSESSMENT.
import { schoolClient } from "school-service-client";

const [address = "", school = "", token = "", assessment = ""] = process.argv.slice(2);
const client = schoolClient(address, token);
const header = { "X-SCHOOL-ID": school };

const students = await client.GET("/students", { params: { header, query: { pageSize: 5 } } });
if (students.error) throw new Error(students.error.message);
for (const { admission_number, first_name, last_name } of students.data.data) {
  console.log(admission_number, first_name, last_name);
}
const params = { header, path: { id: assessment } };
const sheet = await client.GET("/assessments/{id}/scores", { params });
const seen = sheet.data?.find((row) => row.absence === null);
if (!seen) throw new Error(sheet.error?.message ?? "nobody is on the sheet");
for (const score of [seen.score === 1 ? 2 : 1, 3]) {
  // The second time somebody has changed what was seen.
  const body = [{ student: seen.student.id, score, expected: seen.score }];
  const { error } = await client.PUT("/assessments/{id}/scores", { params, body });
  if (error?.type === "stale") console.log("read the sheet again:", error.message); // 409, of a record with If-Match 412
  else console.log(error ? error.message : `saved ${score}`);
}
