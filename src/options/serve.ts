import { plans } from "../api/plans.js";
import { asChanges, type FlagsOf, option, toggle } from "./definition.js";
import { workspaceFlags } from "./shared.js";
import { anyText, budget, oneOf, pathName, portNumber } from "./values.js";

/** Flags of the commands that serve a workspace: its page, and its tools for agents. */

export const dashboardFlags = {
  port: option("<n>", "port of the page on 127.0.0.1", portNumber, {
    default: 0,
    defaultText: "any free port",
  }),
  ...workspaceFlags,
};
export type DashboardFlags = FlagsOf<typeof dashboardFlags>;

// Standard output belongs to the protocol.
const { json: _json, ...withoutJson } = workspaceFlags;
export const mcpFlags = withoutJson;
export type McpFlags = FlagsOf<typeof mcpFlags>;

const stateFlag = {
  state: option(
    "<folder>",
    "where jobs, outputs and keys are kept (default: .bulkgen/service beside the models file)",
    pathName,
    { isPath: true },
  ),
};

const serveJson = toggle("print one JSON document on stdout");

export const serveFlags = {
  host: option("<address>", "address to listen on", anyText, { default: "127.0.0.1" }),
  port: option("<n>", "port to listen on", portNumber, { default: 0, defaultText: "any free port" }),
  tlsCert: option("<file>", "certificate for https (PEM)", pathName, { isPath: true }),
  tlsKey: option("<file>", "its private key (PEM)", pathName, { isPath: true }),
  behindProxy: option(
    "<url>",
    "the https address at which a proxy on this host or network passes requests on to this one",
    anyText,
  ),
  json: toggle("print {url, key, page} on one line once it listens"),
  ...stateFlag,
};
export type ServeFlags = FlagsOf<typeof serveFlags>;

const keySettings = {
  plan: option("<plan>", `its requests a minute and a day: ${plans.join(", ")}`, oneOf(...plans), {
    default: "Pro",
  }),
  credits: budgetFlag("in all"),
  creditsPerMonth: budgetFlag("in a month (UTC)"),
  creditsPerDay: budgetFlag("in a day (UTC)"),
};

function budgetFlag(span: string) {
  return option<number | null>("<n>", `credits that it may spend ${span}, or none for no limit`, budget, {
    defaultText: "none",
  });
}

export const serveKeyFlags = { ...keySettings, json: serveJson, ...stateFlag };
export type ServeKeyFlags = FlagsOf<typeof serveKeyFlags>;

/** What is not given stays as it was. */
export const serveKeyEditFlags = { ...asChanges(keySettings), json: serveJson, ...stateFlag };
export type ServeKeyEditFlags = FlagsOf<typeof serveKeyEditFlags>;

export const serveStateFlags = { json: serveJson, ...stateFlag };
export type ServeStateFlags = FlagsOf<typeof serveStateFlags>;

export const serveJobsFlags = {
  unknown: toggle("only those of which nobody knows whether the provider has them"),
  ...serveStateFlags,
};
export type ServeJobsFlags = FlagsOf<typeof serveJobsFlags>;

export const serveResolveFlags = {
  found: option("<name>", "the provider has it, under this name or id", anyText, {
    conflicts: ["failed", "again"],
  }),
  failed: toggle("the provider has not taken it, or has failed it; its credits are given back", {
    conflicts: ["again"],
  }),
  again: toggle("send it again; if the provider has it after all, it is paid for twice"),
  ...serveStateFlags,
};
export type ServeResolveFlags = FlagsOf<typeof serveResolveFlags>;
