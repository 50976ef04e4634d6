import swaggerUi from "swagger-ui-dist/swagger-ui-es-bundle.js";

const place = document.getElementById("reference");
if (place !== null) {
  followScheme();
  place.textContent = "";
  new MutationObserver(() => complete(place)).observe(place, { childList: true, subtree: true });
  const ui = swaggerUi({
    url: "/openapi.json",
    domNode: place,
    defaultModelsExpandDepth: 0,
    syntaxHighlight: { theme: "tomorrow-night" },
    // Swagger UI would otherwise have a badge drawn by a server elsewhere.
    validatorUrl: null,
    // Requests that are tried out carry the key that every sandbox takes.
    onComplete: () => {
      const key = ui.specSelectors
        .specJson()
        .getIn(["components", "securitySchemes", "bearer", "x-sandbox-key"]);
      if (typeof key === "string") ui.preauthorizeApiKey("bearer", key);
    },
  });
}

/** Swagger UI is dark under a class. */
function followScheme(): void {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", scheme.matches);
  scheme.addEventListener("change", follow);
  follow();
}

/** What Swagger UI leaves out for those who hear the page or use it by keyboard: names of controls, and long examples to scroll. */
function complete(within: Element): void {
  for (const control of within.querySelectorAll("select, textarea")) {
    if (control.hasAttribute("aria-label")) continue;
    const parameter = control.closest("[data-param-name]")?.getAttribute("data-param-name");
    const kind = control.tagName === "TEXTAREA" ? "Request body" : "Example";
    control.setAttribute("aria-label", parameter ?? kind);
  }
  for (const example of within.querySelectorAll("pre.microlight")) example.setAttribute("tabindex", "0");
}
