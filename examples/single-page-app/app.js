import { forgetRegisters, showRegister } from "./register.js";
// Where the service is, and this app's id there: a public client, whose redirect URI is the address of this page.
const SERVICE = "http://127.0.0.1:8000";
const [CLIENT, ISSUER] = ["example", `${SERVICE}/auth`];
const HERE = location.origin + location.pathname;
const at = (id) => document.getElementById(id);
const say = (text) => (at("message").textContent = text);
// The refresh token is this tab's; the access token is in memory alone, and gone when the page is loaded anew.
let access, refreshing, classes, terms, students;
const session = () => JSON.parse(sessionStorage.getItem("session"));
const base64url = (bytes) => btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

async function signIn() {
  const begun = { state: random(), verifier: random() };
  sessionStorage.setItem("begun", JSON.stringify(begun));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(begun.verifier));
  location.assign(`${ISSUER}/authorize?` + new URLSearchParams({
    client_id: CLIENT, redirect_uri: HERE, response_type: "code", scope: "openid", state: begun.state,
    code_challenge: base64url(new Uint8Array(digest)), code_challenge_method: "S256",
  }));
}

async function comeBack(answer) {
  const begun = JSON.parse(sessionStorage.getItem("begun"));
  sessionStorage.removeItem("begun");
  history.replaceState(null, "", HERE);
  // An answer to a request of another page, or of another provider, is none.
  if (!begun || answer.get("state") !== begun.state || answer.get("iss") !== ISSUER) throw new Error("Sign in once more.");
  if (answer.has("error")) throw new Error(answer.get("error_description") ?? answer.get("error"));
  await getToken({ grant_type: "authorization_code", code: answer.get("code"), code_verifier: begun.verifier, redirect_uri: HERE });
}

async function getToken(asked) {
  const answer = await fetch(`${ISSUER}/oauth/token`, { method: "POST", body: new URLSearchParams({ client_id: CLIENT, ...asked }) });
  const token = await answer.json();
  if (token.error === "invalid_grant") sessionStorage.removeItem("session");
  if (!answer.ok) throw new Error(session() ? token.message : "Sign in once more.");
  const { access_token, refresh_token, school_id, id_token = session()?.id_token } = token;
  access = access_token;
  sessionStorage.setItem("session", JSON.stringify({ refresh_token, school_id, id_token }));
}

// One at a time: requests that find their token expired together wait for the same new one.
function refresh() {
  return (refreshing ??= getToken({ grant_type: "refresh_token", refresh_token: session().refresh_token })
    .finally(() => (refreshing = undefined)));
}

async function call(path, options = {}) {
  if (!session()) throw new Error("Sign in once more.");
  if (!access) await refresh();
  const send = () => fetch(new URL(path, SERVICE), {
    ...options, headers: { Authorization: `Bearer ${access}`, "X-SCHOOL-ID": session().school_id, ...options.headers },
  });
  let [used, answer] = [access, await send()];
  if (answer.status === 401) answer = await (access === used ? refresh() : Promise.resolve()).then(send);
  if (answer.ok) return answer;
  const problem = await answer.json();
  throw Object.assign(new Error(problem.message), { status: answer.status, problem });
}
const get = async (path) => (await call(path)).json();
const write = (method, path, body) => call(path, { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
const fill = (id, records, name) => at(id).replaceChildren(...records.map((one) => new Option(name(one), one.id)));

async function showClass() {
  const cohort = at("class").value;
  fill("term", terms.filter((one) => one.sessionId === classes.find(({ id }) => id === cohort).session), (one) => one.displayName);
  students = await get(`/cohorts/${cohort}/students`);
  fill("subject", (await get(`/cohort-subjects?pageNumber=0&pageSize=100&batch=${cohort}`)).data, (one) => one.subject);
  fill("student", students, (one) => `${one.first_name} ${one.last_name}`);
  const teacher = await get(`/teachers/${cohort}`).catch(() => null); // a class may have none
  at("teacher-name").textContent = teacher ? `Form teacher: ${teacher.first_name} ${teacher.last_name}` : "";
  // A photo is read with the token, as all else: an <img> that is given its address has none.
  const photo = teacher?.image_url?.startsWith(SERVICE) ? await call(teacher.image_url) : null;
  if (photo) at("photo").src = URL.createObjectURL(await photo.blob());
  at("photo").hidden = !photo;
  await showAssessments();
  await showRegister(at("register"), { call, say, batch: cohort });
}

async function showAssessments() {
  const chosen = new URLSearchParams({ pageNumber: 0, pageSize: 100, cohort: at("class").value, subject: at("subject").value, term: at("term").value });
  fill("assessment", (await get(`/assessments?${chosen}`)).data, (one) => `${one.name} (of ${one.total_points})`);
}

async function enterScore() {
  const [student, assessment, score] = [at("student").value, at("assessment").value, Number(at("score").value)];
  const { data: [entered] } = await get(`/gradebooks?pageNumber=0&pageSize=1&student=${student}&assessment=${assessment}`);
  const { batch } = students.find((one) => one.id === student);
  await (entered ? write("PATCH", `/gradebooks/${entered.id}`, { score }) : write("POST", "/gradebooks", { student, assessment, batch, score }));
  say("The score is entered.");
}

async function start() {
  const answer = new URLSearchParams(location.search);
  if (answer.has("state")) await comeBack(answer);
  if (!session()) return;
  let sessions;
  [classes, sessions, terms] = await Promise.all([get("/cohorts"), get("/sessions"), get("/terms")]);
  fill("class", classes, (one) => `${one.classroom}, ${sessions.find(({ id }) => id === one.session).name}`);
  at("signed-in").hidden = false;
  await showClass();
}

function signOut() {
  const hint = { id_token_hint: session().id_token, post_logout_redirect_uri: HERE };
  sessionStorage.removeItem("session"), forgetRegisters();
  location.assign(`${ISSUER}/logout?${new URLSearchParams(hint)}`);
}
const showState = () => [at("sign-in").hidden, at("sign-out").hidden] = [!!session(), !session()];
const on = (id, event, work) => at(id).addEventListener(event, (happened) => { happened.preventDefault(); attempt(work); });
const attempt = (work) => Promise.resolve().then(() => say("")).then(work).catch((error) => say(error.message)).finally(showState);

on("sign-in", "click", signIn);
on("sign-out", "click", signOut);
on("class", "change", showClass);
for (const id of ["subject", "term"]) on(id, "change", showAssessments);
on("scores", "submit", enterScore);
attempt(start);
