import { useEffect, useState } from "preact/hooks";
import type { ItemState } from "../../../core/item.js";
import type { ItemPage, ShownItem, StateCounts } from "../../../documents/page.js";
import { orderedStates, stateWords } from "../../../report/state-words.js";
import { number } from "../../parts/amounts.js";
import { Icon } from "../../parts/icon.js";
import { useWindowing } from "../../parts/windowing.js";
import { Trouble } from "../parts/empty.js";
import { Thumbnail } from "../parts/media.js";
import { StateBadge } from "../parts/states.js";
import { Words } from "../parts/words.js";
import { link } from "../route.js";
import { useRows } from "../server/answer.js";
import { get, withQuery } from "../server/client.js";
import { after } from "../system.js";

const rowHeight = 52;

interface ItemTableProps {
  run: number;
  counts: StateCounts;
  /** Items in this state alone, or in all if it is empty. The address of the page has it. */
  state: string;
  onState: (state: string) => void;
}

/** Every item of a run, in the order of the sheet; only those in view are drawn and loaded. */
export function ItemTable({ run, counts, state, onState }: ItemTableProps) {
  const [typed, setTyped] = useState("");
  const [text, setText] = useState("");
  useEffect(() => after(250, () => setText(typed.trim())), [typed]);
  const [total, setTotal] = useState(0);
  const { list, first, last } = useWindowing<HTMLDivElement>(total, rowHeight);
  const key = `${run} ${state} ${text}`;
  const rows = useRows<ShownItem>(key, first, last, async (from, limit, signal) => {
    const path = withQuery(`/api/runs/${run}/items`, { state, text, from, limit });
    const { items, total } = await get<ItemPage>(path, signal);
    return { rows: items, total };
  });
  useEffect(() => setTotal(rows.total ?? 0), [rows.total]);
  const some = orderedStates.filter((name) => (counts[name] ?? 0) > 0);
  const shown = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index);
  return (
    <section class="items" aria-label="Items">
      <div class="filters">
        <h2>Items</h2>
        <fieldset class="chips">
          <legend class="unseen">State</legend>
          <Chip isOn={state === ""} words="all" onClick={() => onState("")} />
          {some.map((name) => (
            <Chip
              key={name}
              isOn={state === name}
              state={name}
              amount={counts[name] ?? 0}
              onClick={() => onState(name)}
            />
          ))}
        </fieldset>
        <label class="search">
          <Icon name="search" />
          <span class="unseen">Search items</span>
          <input
            type="search"
            placeholder="Row id, prompt, model"
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
      </div>
      {rows.error !== null && <Trouble error={rows.error} />}
      {rows.total === 0 && <p class="none">No item matches.</p>}
      {/* biome-ignore lint/a11y/useSemanticElements: a list of a hundred thousand, of which only some are drawn */}
      <div
        ref={list}
        class="virtual"
        role="list"
        aria-label="Items in the order of the sheet"
        style={{ height: `${total * rowHeight}px` }}
      >
        {shown.map((index) => (
          <ItemRow key={index} index={index} total={total} item={rows.row(index)} />
        ))}
      </div>
    </section>
  );
}

interface ChipProps {
  isOn: boolean;
  onClick: () => void;
  words?: string;
  state?: ItemState;
  amount?: number;
}

function Chip({ isOn, onClick, words, state, amount }: ChipProps) {
  return (
    <button type="button" class="chip" aria-pressed={isOn} onClick={onClick}>
      {state !== undefined && <i class={`dot ${state}`} />}
      {words ?? (state === undefined ? "" : stateWords[state])}
      {amount !== undefined && <span class="quiet">{number(amount)}</span>}
    </button>
  );
}

function ItemRow({ index, total, item }: { index: number; total: number; item: ShownItem | undefined }) {
  const style = { transform: `translateY(${index * rowHeight}px)`, height: `${rowHeight}px` };
  if (item === undefined) return <div class="item-row loading" style={style} />;
  const { id, rowId, rowNumber, prompt, model, state, note, price, src, thumbnail, mime, picked } = item;
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the list
    <div class="item-row" role="listitem" aria-setsize={total} aria-posinset={index + 1} style={style}>
      <a href={link("items", id)}>
        <span class="picture">
          {src !== null && mime !== null && <Thumbnail src={src} thumbnail={thumbnail} mime={mime} name="" />}
        </span>
        <span class="item-id">
          <b>
            <Words text={rowId} />
          </b>
          <span class="quiet">
            row {number(rowNumber)}
            {picked && " · picked"}
          </span>
        </span>
        <span class="item-prompt">
          <Words text={note ?? prompt ?? ""} class={note === null ? "" : "note"} />
        </span>
        <span class="item-model quiet">
          <Words text={model} />
        </span>
        <span class="amount">{number(price)}</span>
        <StateBadge state={state} />
      </a>
    </div>
  );
}
