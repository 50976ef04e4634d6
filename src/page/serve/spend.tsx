import type { ServedSpend, ServedStanding, Spent } from "../../api/served-page.js";
import { number } from "../parts/amounts.js";
import { visible } from "../parts/visible.js";
import { money } from "./money.js";

interface SpendProps {
  spend: ServedSpend;
  credit: ServedStanding["credit"];
}

/** What was charged in the last 30 days, by key, by model and by day. */
export function Spend({ spend: { keys, models, days }, credit }: SpendProps) {
  return (
    <section class="panel" aria-labelledby="spend">
      <div class="head">
        <h2 id="spend">Spend of the last 30 days</h2>
      </div>
      {days.length === 0 ? (
        <p class="empty">Nothing was spent in the last 30 days.</p>
      ) : (
        <div class="spend">
          <SpendTable title="By key" of="Key" rows={keys} credit={credit} />
          <SpendTable title="By model" of="Model" rows={models} credit={credit} />
          <SpendTable title="By day" of="Day (UTC)" rows={days} credit={credit} />
        </div>
      )}
    </section>
  );
}

interface TableProps {
  title: string;
  /** What a row is. */
  of: string;
  rows: readonly Spent[];
  credit: ServedStanding["credit"];
}

function SpendTable({ title, of, rows, credit }: TableProps) {
  const most = Math.max(...rows.map(({ credits }) => credits), 0);
  return (
    <table>
      <caption>{title}</caption>
      <thead>
        <tr>
          <th>{of}</th>
          <th class="number">Tasks</th>
          <th class="number">Credits</th>
          {credit !== null && <th class="number">{credit.currency}</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, tasks, credits }) => (
          <tr key={name}>
            <th scope="row">
              {visible(name)}
              <svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
                <rect width={most === 0 ? 0 : (100 * credits) / most} height="1" />
              </svg>
            </th>
            <td class="number" data-label="Tasks">
              {number(tasks)}
            </td>
            <td class="number" data-label="Credits">
              {number(credits)}
            </td>
            {credit !== null && (
              <td class="number" data-label={credit.currency}>
                {money(credits, credit)}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
