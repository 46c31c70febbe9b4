"use strict";

// Remembered in this browser, so that X-SCHOOL-ID is given once and not again for each operation.
const HEADER = "X-SCHOOL-ID";
const form = document.getElementById("school-form");
const field = document.getElementById("school");
const school = localStorage.getItem(HEADER) || "";

field.value = school;
form.addEventListener("submit", (event) => {
  event.preventDefault();
  localStorage.setItem(HEADER, field.value.trim());
  // The page reads it when it opens; the token and the place on the page outlast this.
  location.reload();
});

SwaggerUIBundle({
  url: document.getElementById("operations").dataset.document,
  dom_id: "#operations",
  layout: "BaseLayout",
  deepLinking: true,
  displayRequestDuration: true,
  filter: true,
  persistAuthorization: true,
  tryItOutEnabled: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  parameterMacro: (_operation, parameter) => (parameter.name === HEADER && school ? school : parameter.default),
});
