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
  groups = description["x-tagGroups"] ?? [];
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

// Finds operations by words: of the summary, the address, the name, the tag, and of the group that the tag is in.
let groups = [];
const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
const placeOf = (tag) => groups.flatMap((group) => group.tags).indexOf(tag);
const groupOf = (tag) => groups.find((group) => group.tags.includes(tag))?.name ?? "";

function findOperations(tagged, phrase) {
  const sought = plain(phrase).trim();
  const group = groups.find(({ name }) => plain(name) === sought);
  if (group) return tagged.filter((_, tag) => group.tags.includes(tag));
  // Also of one where several are sought: students find "Create a student".
  const words = sought.split(/\s+/).map((word) => (word.length > 3 ? word.replace(/s$/, "") : word));
  const fits = (tag) => (one) => {
    const operation = one.get("operation");
    const told = [operation.get("summary"), one.get("method"), one.get("path"), operation.get("operationId"), tag];
    const text = plain([...told, groupOf(tag)].join(" "));
    return words.every((word) => text.includes(word));
  };
  return tagged
    .map((each, tag) => each.set("operations", each.get("operations").filter(fits(tag))))
    .filter((each) => each.get("operations").size > 0);
}

const findThings = (system) => {
  const { createElement: make, Fragment } = system.React;
  const seek = (phrase) => system.layoutActions.updateFilter(phrase);

  // The field, a button for each group, and how many operations are shown.
  const Finder = () => {
    const filter = system.layoutSelectors.currentFilter();
    const phrase = typeof filter === "string" && filter !== "true" ? filter : "";
    const shown = system.specSelectors.taggedOperations().reduce((sum, each) => sum + each.get("operations").size, 0);
    const button = (name, sought) =>
      make(
        "button",
        { key: name, type: "button", "aria-pressed": plain(phrase) === plain(sought), onClick: () => seek(sought) },
        name,
      );
    return make(
      "search",
      { className: "wrapper finder" },
      make("label", { htmlFor: "finder" }, "Find an operation"),
      make("input", {
        id: "finder",
        className: "operation-filter-input",
        type: "search",
        placeholder: "such as: score sheet, or POST students",
        value: phrase,
        onChange: (event) => seek(event.target.value),
      }),
      make("span", { role: "status" }, `${shown} operation${shown === 1 ? "" : "s"}`),
      make(
        "div",
        { className: "groups", role: "group", "aria-label": "Groups" },
        button("All", ""),
        groups.map(({ name }) => button(name, name)),
      ),
    );
  };

  // A heading before the first tag of each group that is shown.
  const headed = (Original) => (props) => {
    const shown = system.specSelectors.taggedOperations().keySeq();
    const group = groupOf(props.tag);
    const first = group && shown.find((tag) => groupOf(tag) === group) === props.tag;
    return make(Fragment, null, first ? make("h2", { className: "group" }, group) : null, make(Original, props));
  };
  return {
    components: { FilterContainer: Finder },
    wrapComponents: { OperationTag: headed },
    fn: { opsFilter: findOperations },
  };
};

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
    tagsSorter: (one, other) => placeOf(one) - placeOf(other),
    persistAuthorization: false,
    tryItOutEnabled: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    validatorUrl: null,
    oauth2RedirectUrl: new URL("docs/oauth2-redirect.html", description).href,
    plugins: [takeSchool, findThings],
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
