import type { PageModel, ServedCheck, ServedStanding } from "../../api/served-page.js";
import { number } from "../parts/amounts.js";
import { visible } from "../parts/visible.js";
import { price } from "./money.js";

interface ModelsProps {
  standing: ServedStanding;
  /** Null while the providers are being asked. */
  check: ServedCheck | null;
  askProviders: () => Promise<void>;
}

/** Every model with its price, its state and its jobs. */
export function Models({ standing: { models, credit }, check, askProviders }: ModelsProps) {
  return (
    <section class="panel" aria-labelledby="models">
      <div class="head">
        <h2 id="models">Models</h2>
        <button type="button" disabled={check === null} onClick={() => void askProviders()}>
          {check === null ? "Asking the providers …" : "Check again"}
        </button>
      </div>
      <table class="models">
        <thead>
          <tr>
            <th>Model</th>
            <th>Provider</th>
            <th>Price</th>
            <th>State</th>
            <th class="number">Waiting</th>
            <th class="number">At work</th>
          </tr>
        </thead>
        <tbody>
          {models.map((model) => (
            <tr key={model.key}>
              <th scope="row">
                {model.key}
                <span class="quiet under">
                  {model.name === model.key ? "" : `${visible(model.name)} · `}
                  {model.category}
                </span>
              </th>
              <td data-label="Provider">
                <span>
                  {model.provider}
                  {model.kind !== model.provider && <span class="quiet under">{model.kind}</span>}
                </span>
              </td>
              <td data-label="Price">
                <Price model={model} credit={credit} />
              </td>
              <td data-label="State" class="state">
                <State problem={check?.find(({ provider }) => provider === model.provider)?.problem} />
              </td>
              <td class="number" data-label="Waiting">
                {number(model.waiting)}
              </td>
              <td class="number" data-label="At work">
                {number(model.working)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Price({ model, credit }: { model: PageModel; credit: ServedStanding["credit"] }) {
  return (
    <span>
      {price(model.credits, credit)}
      {model.prices.map(({ param, option, credits }) => (
        <span key={`${param} ${option}`} class="quiet under">
          {param} {option}: {price(credits, credit)}
        </span>
      ))}
    </span>
  );
}

/** Nothing is known of a model that came into the file after the check. */
function State({ problem }: { problem: string | null | undefined }) {
  if (problem === undefined) return <span class="quiet">not checked yet</span>;
  if (problem === null) return <span class="badge active">good</span>;
  return <span class="problem">{visible(problem)}</span>;
}
