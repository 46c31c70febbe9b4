"use strict";

// The school is remembered in this browser, so that X-SCHOOL-ID is given once and not again for each operation. A token
// never is: it is in the memory of this page alone, and gone when the page is closed or loaded anew.
const HEADER = "X-SCHOOL-ID";
const form = document.getElementById("school-form");
const field = document.getElementById("school");

// Where an earlier version of this page left a token.
localStorage.removeItem("authorized");

// The document's addresses are relative to its own. Swagger UI opens these in a window and needs them whole.
function withWholeAddresses(text, address) {
  const description = JSON.parse(text);
  const flow = description.components.securitySchemes.oauth2?.flows.authorizationCode;
  for (const name of ["authorizationUrl", "tokenUrl", "refreshUrl"]) {
    if (flow) flow[name] = new URL(flow[name], address).href;
  }
  return JSON.stringify(description);
}

// A person's token is of one school.
const takeSchool = () => ({
  statePlugins: {
    auth: {
      wrapActions: {
        authorizeOauth2: (original) => (payload) => {
          const done = original(payload);
          const school = payload.token.school_id;
          if (school && school !== field.value) setTimeout(() => use(school));
          return done;
        },
      },
    },
  },
});

function show(authorized) {
  const school = localStorage.getItem(HEADER) || "";
  const shown = document.getElementById("operations");
  // A new element, as the one that Swagger UI has drawn in stays its own.
  const place = shown.cloneNode(false);
  shown.replaceWith(place);
  field.value = school;
  const description = new URL(place.dataset.document, location.href).href;
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
    oauth2RedirectUrl: new URL("docs/oauth2-redirect.html", description).href,
    plugins: [takeSchool],
    parameterMacro: (_operation, parameter) => (parameter.name === HEADER && school ? school : parameter.default),
    responseInterceptor: (answer) => {
      if (answer.ok && answer.url === description) answer.text = withWholeAddresses(answer.text, description);
      return answer;
    },
    onComplete: () => {
      for (const [name, way] of Object.entries(authorized || {})) {
        if (way.token) page.authActions.authorizeOauth2({ auth: way, token: way.token });
        else page.authActions.authorize({ [name]: way });
      }
    },
  });
  page.initOAuth({ clientId: "docs", usePkceWithAuthorizationCodeGrant: true, scopes: "openid profile" });
  return page;
}

function use(school) {
  localStorage.setItem(HEADER, school);
  // Drawn anew, as every operation takes the school when it is drawn; the token and the place on the page outlast this.
  page = show(page.authSelectors.authorized().toJS());
}

let page = show(null);

form.addEventListener("submit", (event) => {
  event.preventDefault();
  use(field.value.trim());
});
