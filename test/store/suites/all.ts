import { describe } from "vitest";
import { accountsSuite } from "./accounts.js";
import { editionsSuite } from "./editions.js";
import { foreignRequestsSuite } from "./foreign-requests.js";
import { newsSuite } from "./news.js";
import type { OpenDatabase } from "./open.js";
import { ordersSuite } from "./orders.js";
import { sharedTransactionsSuite } from "./shared-transactions.js";
import { spendLogSuite } from "./spend-log.js";
import { spendingSuite } from "./spending.js";
import { stepsSuite } from "./steps.js";
import { usersSuite } from "./users.js";
import { workspaceSuite } from "./workspace.js";

/** What every database has to do that a workspace and its accounts run on. Properties try so many cases. */
export function storeSuites(open: OpenDatabase, numRuns: number): void {
  describe("workspace", () => workspaceSuite(open));
  describe("orders", () => ordersSuite(open));
  describe("editions", () => editionsSuite(open));
  describe("users", () => usersSuite(open));
  describe("accounts", () => accountsSuite(open, numRuns));
  describe("foreign requests", () => foreignRequestsSuite(open));
  describe("spend log", () => spendLogSuite(open));
  describe("steps", () => stepsSuite(open));
  describe("news", () => newsSuite(open));
  describe("spending", () => spendingSuite(open));
  describe("at the same moment", () => sharedTransactionsSuite(open));
}
