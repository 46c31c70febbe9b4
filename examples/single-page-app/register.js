// Takes the register of a class, with a network or without: what the teacher marks is kept on the device, and sent as soon
// as the service can be reached. The rules are in the guide (/docs/guide), "Two devices, and no network".
const KEPT = "registers"; // of each register, by its key: the answer that was seen last, and the PUT that is not sent yet
const all = () => JSON.parse(localStorage.getItem(KEPT) ?? "{}");
const keep = (record) => localStorage.setItem(KEPT, JSON.stringify({ ...all(), [nameOf(record.key)]: record }));
const nameOf = ({ batch, date, part }) => `${batch} ${date} ${part}`;
const today = () => new Date().toLocaleDateString("sv"); // YYYY-MM-DD, as the device shows it
const isRefused = (error) => error.problem && ![429, 503].includes(error.status); // else: later, as it is

let call, say, place, shown; // `shown` is the key of the register on the page

/** Forget what the device has kept of the classes: nobody who uses it next sees their names. */
export const forgetRegisters = () => localStorage.removeItem(KEPT);

/** Show the register of a class today in an element; `call` sends a request with the token, `say` tells a person. */
export async function showRegister(element, options) {
  ({ call, say } = options);
  place = element;
  place.hidden = false;
  await send();
  const date = today();
  let parts = ["DAY"];
  try {
    const [day] = await (await call(`/school-days?from=${date}&to=${date}`)).json();
    parts = day?.parts ?? [];
    if (!parts.length) return place.replaceChildren(`There is no register today${day?.name ? `: ${day.name}` : ""}.`);
  } catch (error) {
    if (error.status === 403) return (place.hidden = true); // whoever takes no registers is shown none
    if (error.problem) throw error;
    const kept = Object.values(all()).filter(({ key }) => key.batch === options.batch && key.date === date);
    parts = kept.length ? kept.map(({ key }) => key.part) : parts;
  }
  const choice = document.createElement("select");
  choice.append(...parts.map((part) => new Option({ DAY: "Today", MORNING: "This morning", AFTERNOON: "This afternoon" }[part], part)));
  const form = document.createElement("form");
  const label = Object.assign(document.createElement("label"), { textContent: "Register " });
  label.append(choice);
  const open = () => openRegister(form, { batch: options.batch, date, part: choice.value }).catch((error) => {
    place.hidden = error.status === 403;
    if (!place.hidden) say(error.message);
  });
  choice.onchange = open;
  place.replaceChildren(label, form);
  await open();
}

async function openRegister(form, key) {
  shown = nameOf(key);
  const kept = all()[shown];
  try {
    const [seen, codes] = await Promise.all([
      call(`/registers?${new URLSearchParams(key)}`).then((answer) => answer.json()),
      call("/attendance-codes").then((answer) => answer.json()),
    ]);
    keep({ key, put: kept?.put, seen, codes });
  } catch (error) {
    if (error.problem || !kept) throw error; // without a network, as it was seen last
  }
  draw(form, all()[shown]);
}

function draw(form, { key, put, seen, codes }) {
  const usual = codes.find(({ kind }) => kind === "PRESENT").code;
  const rows = seen.marks.map(({ student, code, correction }) => {
    const select = document.createElement("select");
    select.name = student.id;
    select.append(...codes.map((one) => new Option(`${one.code} ${one.name}`, one.code)));
    select.value = put?.marks[student.id] ?? code ?? usual;
    const label = Object.assign(document.createElement("label"), { textContent: `${student.first_name} ${student.last_name} ` });
    if (correction) label.append(`(the office says ${correction.code}) `);
    label.append(select);
    return label;
  });
  const button = Object.assign(document.createElement("button"), { textContent: put ? "Hand in again" : "Hand in" });
  form.replaceChildren(...rows, button);
  form.onsubmit = (submitted) => {
    submitted.preventDefault();
    const given = Object.fromEntries(new FormData(form));
    // Whoever has no mark yet and is present is left to `default`: it never conflicts.
    const differs = ({ student, code }) => given[student.id] !== (code ?? usual);
    const marks = Object.fromEntries(seen.marks.filter(differs).map(({ student }) => [student.id, given[student.id]]));
    keep({ key, seen, codes, put: { version: seen.version, marks, usual, taken_at: new Date().toISOString() } });
    send().then(() => draw(form, all()[nameOf(key)])).catch((error) => say(error.message));
  };
}

/** Send what is kept, in any order: the same PUT sent ten times ends as sent once. */
async function send() {
  for (const record of Object.values(all()).filter(({ put }) => put)) {
    const { version, marks, usual, taken_at } = record.put;
    const body = {
      ...record.key, version, taken_at, default: usual, submit: true,
      marks: Object.entries(marks).map(([student, code]) => ({ student, code })),
    };
    const options = { method: "PUT", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    try {
      keep({ ...record, put: null, seen: await (await call("/registers", options)).json() });
      say("The register is handed in.");
    } catch (error) {
      if (!isRefused(error)) {
        say("Kept on this device: it is sent as soon as the service can be reached.");
      } else if (!(await decide(record, error.problem.errors?.json))) {
        keep({ ...record, put: null });
        say(`Not handed in on ${record.key.date}: ${error.message}`);
      }
    }
  }
}

/** Let the teacher decide where another device marked otherwise, and send what remains; false where that is not why. */
async function decide(record, why) {
  if (!why?.marks) return false;
  const nameOfStudent = (id) => record.seen.marks.find(({ student }) => student.id === id)?.student.first_name ?? "a student";
  const marks = { ...record.put.marks };
  for (const { student, stored, given } of why.marks) {
    const asked = `${nameOfStudent(student)}: ${why.changed_by_name} marked ${stored.code ?? "nothing"}, you ${given.code}. Take yours?`;
    if (!confirm(asked)) delete marks[student];
  }
  keep({ ...record, put: { ...record.put, marks, version: why.version } });
  await send();
  return true;
}

addEventListener("online", () => call && send().catch((error) => say(error.message)));
