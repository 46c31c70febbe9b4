"use strict";

// The school is remembered in this browser, so that X-SCHOOL-ID is given once and not again for each operation. A token
// never is: it is in the memory of this page alone, and gone when the page is closed or loaded anew.
const HEADER = "X-SCHOOL-ID";
const form = document.getElementById("school-form");
const field = document.getElementById("school");

// Where an earlier version of this page left a token.
localStorage.removeItem("authorized");

function show(authorized) {
  const school = localStorage.getItem(HEADER) || "";
  const shown = document.getElementById("operations");
  // A new element, as the one that Swagger UI has drawn in stays its own.
  const place = shown.cloneNode(false);
  shown.replaceWith(place);
  field.value = school;
  const page = SwaggerUIBundle({
    url: place.dataset.document,
    domNode: place,
    layout: "BaseLayout",
    deepLinking: true,
    displayRequestDuration: true,
    filter: true,
    persistAuthorization: false,
    tryItOutEnabled: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    validatorUrl: null,
    parameterMacro: (_operation, parameter) => (parameter.name === HEADER && school ? school : parameter.default),
    onComplete: () => authorized && page.authActions.authorize(authorized),
  });
  return page;
}

let page = show(null);

form.addEventListener("submit", (event) => {
  event.preventDefault();
  localStorage.setItem(HEADER, field.value.trim());
  // Drawn anew, as every operation takes the school when it is drawn; the token and the place on the page outlast this.
  page = show(page.authSelectors.authorized().toJS());
});
