import { render } from "preact";
import { App } from "./app.js";
import { takeToken } from "./server/client.js";
import { followCommands } from "./server/commands.js";
import { followStanding } from "./server/standing.js";

takeToken();
const page = document.getElementById("page");
if (page !== null) {
  page.textContent = "";
  render(<App />, page);
}
void followStanding();
followCommands();
