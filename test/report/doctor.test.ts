import { expect, test } from "vitest";
import { doctorExit, doctorText } from "../../src/report/doctor.js";
import { fine, problem, unchecked, warning } from "../../src/upkeep/doctor/machine.js";

const trouble = { expected: "a key", got: "none", todo: "set one" };

test("each check is a line, and what is wrong says what to do", () => {
  const checks = [
    fine("Node", "20 or newer", "20.20.2"),
    warning("clock", { expected: "within 30 s", got: "90 s ahead", todo: "set it" }),
    problem("key form", trouble, "key"),
    unchecked("limits", "some", "nobody was asked"),
  ];
  expect(doctorText(checks)).toMatchInlineSnapshot(`
    "ok           Node      20.20.2
    warning      clock     expected within 30 s; got 90 s ahead
                           -> set it
    problem      key form  expected a key; got none
                           -> set one
    not checked  limits    nobody was asked
    1 problem, 1 warning"
  `);
});

test("a refused key decides the exit before a silent service, and that before all else", () => {
  const all = [
    problem("disk", trouble),
    problem("service", trouble, "unreachable"),
    problem("key", trouble, "key"),
  ];
  expect(doctorExit(all)).toBe("key");
  expect(doctorExit(all.slice(0, 2))).toBe("unreachable");
  expect(doctorExit(all.slice(0, 1))).toBe("usage");
  expect(doctorExit([warning("clock", trouble), unchecked("limits", "", "")])).toBe("done");
});
