import { useEffect, useState } from "preact/hooks";
import type { OfferedPrice } from "../../../documents/page.js";
import { counted, credits } from "../../parts/amounts.js";
import { Dialog } from "../../parts/dialog.js";
import { visible } from "../../parts/visible.js";
import { type Proposal, perform, priceOf, withdraw } from "../server/commands.js";
import { Words } from "./words.js";

/** Asks a person to agree to an act: what would happen, what it costs, and only then the button. */
export function ProposalDialog({ proposal }: { proposal: Proposal }) {
  const { act, price: given, title, words, verb, isGrave = false, line, onDone } = proposal;
  const [price, setPrice] = useState<OfferedPrice | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    if (given !== "asked") return;
    priceOf(act).then(setPrice, (reason: unknown) => setError(messageOf(reason)));
  }, [act, given]);
  // The agreed price is sent with the act, so that nobody pays another price.
  const total = price?.total ?? (typeof given === "number" ? given : null);
  const agree = async () => {
    setBusy(true);
    setError(null);
    try {
      const command = await perform(total !== null && "price" in act ? { ...act, price: total } : act);
      withdraw(proposal);
      onDone?.(command);
    } catch (reason) {
      setError(messageOf(reason));
      setBusy(false);
    }
  };
  const back = () => withdraw(proposal);
  const isReady = !isBusy && (given !== "asked" || price !== null);
  return (
    <Dialog title={title} onClose={back}>
      <p dir="auto">{visible(words)}</p>
      {given === "asked" && price === null && error === null && <p class="quiet">Asking for the price…</p>}
      {price !== null && price.items.length + price.rest.items > 0 && <PriceTable price={price} />}
      {line !== undefined && (
        <p class="line">
          <Words text={line} />
        </p>
      )}
      {error !== null && (
        <p class="alert" role="alert" dir="auto">
          {visible(error)}
        </p>
      )}
      <footer>
        <button type="button" data-first onClick={back}>
          Back
        </button>
        <button
          type="button"
          class={isGrave ? "grave" : "main"}
          disabled={!isReady}
          onClick={() => void agree()}
        >
          {isBusy ? "Working…" : total === null || total === 0 ? verb : `${verb} for ${credits(total)}`}
        </button>
      </footer>
    </Dialog>
  );
}

const itemsMax = 6;

function PriceTable({ price: { items, credits: own, rest, note, total } }: { price: OfferedPrice }) {
  const more = items.length - itemsMax;
  return (
    <>
      <table class="price">
        <tbody>
          {items.slice(0, itemsMax).map(({ rowId, model, price }, index) => (
            // A list that never changes, whose ids may repeat.
            <tr key={index}>
              <td>
                <Words text={rowId} />
              </td>
              <td class="quiet">
                <Words text={model} />
              </td>
              <td class="amount">{credits(price)}</td>
            </tr>
          ))}
          {more > 0 && (
            <tr>
              <td colSpan={2} class="quiet">
                and {counted(more, "more item")}
              </td>
              <td class="amount">
                {credits(own - items.slice(0, itemsMax).reduce((sum, { price }) => sum + price, 0))}
              </td>
            </tr>
          )}
          {rest.items > 0 && (
            <tr>
              <td colSpan={2}>
                {counted(rest.items, "item")}{" "}
                {items.length === 0 ? "to submit" : "of the same run, which are made too"}
              </td>
              <td class="amount">{credits(rest.credits)}</td>
            </tr>
          )}
        </tbody>
        <tfoot>
          <tr>
            <th colSpan={2} scope="row">
              All together, at most
            </th>
            <td class="amount">{credits(total)}</td>
          </tr>
        </tfoot>
      </table>
      {note !== null && (
        <p class="quiet" dir="auto">
          {visible(note)}
        </p>
      )}
    </>
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
