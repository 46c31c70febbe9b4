"use strict";

// Requests are shown in one form, which this browser remembers; sections are found by their words.
const FORM = "guide-form";
const bar = document.querySelector(".guide-bar");
const requests = [...document.querySelectorAll("pre[data-form=http]")];
const sections = [...document.querySelectorAll(".guide h2")];
const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

function formsOf(request) {
  const forms = { http: request };
  for (let next = request.nextElementSibling; next?.dataset.form && next.dataset.form !== "http"; ) {
    forms[next.dataset.form] = next;
    next = next.nextElementSibling;
  }
  return forms;
}

// A request that has no such form stays as it is.
function showAs(form) {
  for (const request of requests) {
    const forms = formsOf(request);
    const shown = forms[form] ?? request;
    for (const each of Object.values(forms)) each.hidden = each !== shown;
  }
}

function partsOf(section) {
  const parts = [section];
  for (let next = section.nextElementSibling; next && next.tagName !== "H2"; next = next.nextElementSibling) parts.push(next);
  return parts;
}

const told = sections.map((section) => {
  const parts = partsOf(section);
  // Other forms of a request say no more than it does.
  const words = parts.filter(({ dataset }) => !dataset.form || dataset.form === "http").map((part) => part.textContent);
  return { section, words: plain(words.join(" ")) };
});

function find(phrase) {
  const sought = plain(phrase).split(/\s+/).filter(Boolean);
  let count = 0;
  for (const { section, words } of told) {
    const fits = sought.every((word) => words.includes(word));
    count += fits;
    document.querySelector(`.guide nav a[href="#${section.id}"]`).parentElement.hidden = !fits;
  }
  document.getElementById("found").textContent = sought.length ? `${count} of ${told.length} sections` : "";
}

bar.addEventListener("submit", (event) => event.preventDefault());
bar.addEventListener("change", ({ target }) => {
  if (target.name !== "form") return;
  localStorage.setItem(FORM, target.value);
  showAs(target.value);
});
document.getElementById("seek").addEventListener("input", ({ target }) => find(target.value));

const chosen = bar.querySelector(`input[value="${CSS.escape(localStorage.getItem(FORM) ?? "http")}"]`);
if (chosen) {
  chosen.checked = true;
  showAs(chosen.value);
}
