import { toNumber } from "../core/money.js";
import type { PlannedItem } from "../core/ports/draft.js";
import { type Listing, mapped } from "../text/listing.js";
import { isoOrNull } from "../text/times.js";
import type { ExpectedFiles, Finding, Fit, JobChoice, ModelCost, Plan, Requests } from "./plan.js";
import type { WorkflowStep } from "./workflow.js";

type FindingDocument = Pick<Finding, "kind" | "message"> & { choice?: JobChoice };

/** A plan for programs. Credits are plain numbers, times are ISO 8601. */
export interface PlanDocument
  extends Omit<
    Plan,
    | "sheet"
    | "due"
    | "unselected"
    | "leftOut"
    | "otherParams"
    | "workflow"
    | "items"
    | "models"
    | "money"
    | "ordered"
    | "requests"
    | "fit"
    | "files"
    | "blockers"
    | "warnings"
  > {
  /** Variants that a person has ordered and that are made too; `credits` in credits. */
  ordered: { items: number; credits: number };
  /** How many rows were not selected. */
  unselected: number;
  /** In the manifest's order; `price` in credits. `due` are those to be submitted. */
  items: Listing<Omit<PlannedItem, "price"> & { price: number }>;
  /** The cost by model, in credits. */
  models: (Omit<ModelCost, "price" | "credits" | "base" | "charged"> & {
    price: number;
    credits: number;
    base: number;
    charged: { least: number; most: number } | null;
  })[];
  money: {
    /** The cost of all items to be submitted. */
    needed: number;
    /** The part of it that the caps allow. */
    within: number;
    /** What requests without an answer may add: each is sent again if it proves not to have been charged. */
    inDoubt: number;
    /** Null if the service does not report it. */
    balance: number | null;
    /** The balance after that; negative when it does not suffice. */
    after: number | null;
    maxCredits: number | null;
    /** What already counts against the cap, if a run is continued. */
    spent: number;
  };
  requests: Omit<Requests, "finishAt"> & {
    /** When the run will end; null if there is nothing to do. */
    finishAt: string | null;
  };
  fit: Omit<Fit, "credits"> & { credits: number };
  files: ExpectedFiles;
  /** What blocks a run before its first request. */
  blockers: FindingDocument[];
  warnings: FindingDocument[];
  /** The steps of the manifest, if they were asked for. */
  graph?: { steps: (Omit<WorkflowStep, "credits"> & { credits: number })[] };
}

/** A plan for programs: the same facts, with credits as plain numbers. Its lists are written item by item. */
export function planJson(plan: Plan, withGraph = false): PlanDocument {
  const { needed, within, inDoubt, balance, after, maxCredits, spent } = plan.money;
  const {
    sheet: _sheet,
    due: _due,
    leftOut: _leftOut,
    otherParams: _otherParams,
    unselected,
    workflow,
    ...rest
  } = plan;
  return {
    ...rest,
    ...(withGraph
      ? { graph: { steps: Array.from(workflow, (step) => ({ ...step, credits: toNumber(step.credits) })) } }
      : {}),
    unselected: unselected.length,
    ordered: { ...plan.ordered, credits: toNumber(plan.ordered.credits) },
    requests: { ...plan.requests, finishAt: isoOrNull(plan.requests.finishAt) },
    items: mapped(plan.items, (item) => ({ ...item, price: toNumber(item.price) })),
    models: plan.models.map((model) => ({
      ...model,
      price: toNumber(model.price),
      credits: toNumber(model.credits),
      base: toNumber(model.base),
      charged: model.charged && {
        least: toNumber(model.charged.least),
        most: toNumber(model.charged.most),
      },
    })),
    money: {
      needed: toNumber(needed),
      within: toNumber(within),
      inDoubt: toNumber(inDoubt),
      balance: balance === null ? null : toNumber(balance),
      after: after === null ? null : toNumber(after),
      maxCredits: maxCredits === null ? null : toNumber(maxCredits),
      spent: toNumber(spent),
    },
    fit: { ...plan.fit, credits: toNumber(plan.fit.credits) },
    blockers: plan.blockers.map(findingJson),
    warnings: plan.warnings.map(findingJson),
  };
}

function findingJson(finding: Finding): FindingDocument {
  const { kind, message } = finding;
  return "choice" in finding && finding.choice
    ? { kind, message, choice: finding.choice }
    : { kind, message };
}
