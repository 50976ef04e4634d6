import type { AnnouncedBudget } from "../api/announced.js";
import { credits, inCredits, showCredits } from "./money.js";

/** What is left of a key's budget, and until when: `2 of 12 credits left today, renewed at 00:00 UTC`. */
export function budgetText({ left, of, per, renewsAt }: AnnouncedBudget): string {
  const [day, time] = new Date(renewsAt).toISOString().split("T");
  const until =
    per === "day" ? `today, renewed at ${time?.slice(0, 5)} UTC` : `this month, renewed on ${day} UTC`;
  return `${showCredits(credits(left))} of ${inCredits(credits(of))} left ${until}`;
}
