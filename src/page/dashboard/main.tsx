import { render } from "preact";
import { App } from "./app.js";
import { shareToken, takeToken } from "./server/client.js";
import { followCommands } from "./server/commands.js";
import { followStanding } from "./server/standing.js";

takeToken();
// The link of another dashboard may be opened in a tab that has this page.
addEventListener("hashchange", () => {
  if (takeToken()) location.reload();
});
const page = document.getElementById("page");
if (page !== null) {
  page.textContent = "";
  render(<App />, page);
}
void shareToken().then(followStanding);
followCommands();
