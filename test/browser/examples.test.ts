import { test } from "vitest";
import { makesItsSheet } from "../serve/examples.js";

test("examples/models/template-html makes every row of its sheet, at the price that is listed", () =>
  makesItsSheet("template-html"));
