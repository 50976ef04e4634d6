import { toNumber } from "../../core/money.js";
import type { Plan } from "../../plan/plan.js";
import { mapped } from "../../text/listing.js";

/** A plan for programs: the same facts, with credits as plain numbers. Its lists are written item by item. */
export function planJson(plan: Plan): object {
  const { needed, within, balance, after, maxCredits, spent } = plan.money;
  const { sheet: _sheet, due: _due, unselected, ...rest } = plan;
  return {
    ...rest,
    unselected: unselected.length,
    requests: { ...plan.requests, finishAt: iso(plan.requests.finishAt) },
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
      balance: balance === null ? null : toNumber(balance),
      after: after === null ? null : toNumber(after),
      maxCredits: maxCredits === null ? null : toNumber(maxCredits),
      spent: toNumber(spent),
    },
    fit: { ...plan.fit, credits: toNumber(plan.fit.credits) },
    blockers: plan.blockers.map(({ kind, message }) => ({ kind, message })),
    warnings: plan.warnings.map(({ kind, message }) => ({ kind, message })),
  };
}

function iso(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
