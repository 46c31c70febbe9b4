// What a front end does in a school's year, for the compiler: the generated types have to fit it under --strict, and
// what is wrong has to be an error (each @ts-expect-error fails where there is none).
import createClient from "openapi-fetch";
import type { components, operations, paths } from "./schema";

type Student = components["schemas"]["Student"];
type SignedIn = operations["signInUser"]["responses"][200]["content"]["application/json"];

const client = createClient<paths>({ baseUrl: "https://schools.example.org" });

export async function signIn(username: string, password: string, school: string): Promise<SignedIn> {
  const { data, error } = await client.POST("/users/login", {
    params: { header: { "X-SCHOOL-ID": school } },
    body: { username, password },
  });
  if (error) throw new Error(`${error.code}: ${error.message} (${error.request_id})`);
  return data;
}

export async function everyStudent(school: string): Promise<Student[]> {
  const found: Student[] = [];
  for (let pageNumber = 0; ; pageNumber += 1) {
    const { data, error } = await client.GET("/students", {
      params: { header: { "X-SCHOOL-ID": school }, query: { pageNumber, pageSize: 100, status: "ACTIVE" } },
    });
    if (error) throw new Error(error.message);
    found.push(...data.data);
    if (pageNumber + 1 >= data.total_pages) return found;
  }
}

export function guardianOf(student: Student): string {
  // @ts-expect-error: a student may have no guardian.
  student.guardian.full_name;
  return student.guardian?.full_name ?? "nobody";
}

export async function openTerm(school: string, session_id: string): Promise<components["schemas"]["TermName"]> {
  const header = { "X-SCHOOL-ID": school };
  const body = { session_id, term: "FIRST" as const, display_name: "First Term" };
  const { data, error } = await client.POST("/terms", { params: { header }, body });
  if (error) throw new Error(error.message);

  // @ts-expect-error: there are three terms.
  await client.POST("/terms", { params: { header }, body: { ...body, term: "FOURTH" } });
  // @ts-expect-error: the school is required here.
  await client.GET("/classrooms", {});
  // @ts-expect-error: there is no such address.
  await client.GET("/pupils", { params: { header } });
  // @ts-expect-error: a classroom has a level.
  await client.POST("/classrooms", { params: { header }, body: { name: "JSS 1" } });
  return data.term;
}

export async function upload(school: string, id: string, sheet: File): Promise<string[]> {
  const { data, error } = await client.POST("/assessments/{id}/scoresheet", {
    params: { header: { "X-SCHOOL-ID": school }, path: { id } },
    body: { scoresheet: "" },
    bodySerializer: () => {
      const form = new FormData();
      form.append("scoresheet", sheet);
      return form;
    },
  });
  const row: (fault: components["schemas"]["RowError"]) => string = (fault) =>
    `${fault.row} ${fault.column}: ${fault.message}`;
  return error ? (error.errors?.rows ?? []).map(row) : [`${data.created} of ${data.rows}`];
}

export async function reportCard(school: string, id: string): Promise<Blob> {
  const { data, error } = await client.GET("/students/{id}/report-card", {
    params: { header: { "X-SCHOOL-ID": school }, path: { id }, query: { term: "THIRD", session: "2025/2026" } },
    parseAs: "blob",
  });
  if (error) throw new Error(error.message);
  return data;
}

export async function enterScores(school: string, id: string, student: string): Promise<number | null | undefined> {
  const { data, error } = await client.PUT("/assessments/{id}/scores", {
    params: { header: { "X-SCHOOL-ID": school }, path: { id } },
    body: [
      { student, score: 17, expected: null },
      { student, absence: "EXCUSED", expected: 17.5 },
      { student, score: null, absence: null, expected: "ABSENT" },
      // @ts-expect-error: away with leave is EXCUSED.
      { student, absence: "ILL" },
    ],
  });
  if (error) throw new Error((error.errors?.rows ?? []).map((row) => row.message).join("; "));
  return data[0]?.score;
}

export async function nextSession(school: string, id: string): Promise<string[]> {
  const { data, error } = await client.POST("/sessions/{id}/copy-from", {
    params: { header: { "X-SCHOOL-ID": school }, path: { id }, query: { dry_run: true } },
    body: { session: "2025/2026", parts: ["TERMS", "COHORTS"] },
  });
  if (error) throw new Error(error.message);
  return data.rows.filter((row) => row.outcome === "LEFT_OUT").map((row) => row.reason ?? "");
}

export async function gradeOf(school: string, assessment: string, student: string, score: number) {
  const { data } = await client.POST("/gradebooks", {
    params: { header: { "X-SCHOOL-ID": school } },
    body: { assessment, student, score, batch: assessment },
  });
  const category: components["schemas"]["AssessmentCategory"] | undefined = data?.assessment_category;
  return category;
}
