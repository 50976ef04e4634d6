/**
 * Prints `N passed, N failed` from vitest's JSON report, as the last line of a check. A report that is missing, holds
 * no test, or tells of a file that could not even be loaded counts as a failure.
 */
import { readFileSync } from "node:fs";

const [path] = process.argv.slice(2);
let report;
try {
  report = JSON.parse(readFileSync(path, "utf8"));
} catch {
  report = { testResults: [] };
}
const tests = report.testResults.flatMap((file) => file.assertionResults);
const passed = tests.filter((test) => test.status === "passed").length;
// A file that breaks while it is loaded has no tests to count, and still is one failure.
const broken = report.testResults.filter(
  (file) => file.status === "failed" && !file.assertionResults.some(isBad),
);
const failed = tests.filter(isBad).length + broken.length;
const nothingRan = tests.length === 0 && failed === 0;

for (const file of broken) console.log(`could not run ${file.name}: ${String(file.message).split("\n")[0]}`);
if (nothingRan) console.log("no test ran");
console.log(`${passed} passed, ${nothingRan ? 1 : failed} failed`);
process.exitCode = failed > 0 || nothingRan || report.success === false ? 1 : 0;

/** Every test must run: what was skipped counts as failed. */
function isBad(test) {
  return test.status !== "passed";
}
